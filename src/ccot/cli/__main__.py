"""``python -m ccot.cli`` is ``ccot``."""

from ccot.cli import main

main()
