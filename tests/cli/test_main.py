import subprocess
import sys

from ccot import __version__


def test_the_module_is_the_command():
    command = [sys.executable, "-m", "ccot", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert __version__ in done.stdout
