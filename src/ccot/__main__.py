"""``python -m ccot``: the command line, where no ``ccot`` command is on the path."""

from ccot.cli import main

main()
