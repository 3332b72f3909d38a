import subprocess
import sys

import pytest

from ccot import __version__


def test_the_module_is_the_command():
    command = [sys.executable, "-m", "ccot", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert __version__ in done.stdout


@pytest.mark.parametrize(("arguments", "told"), [
    (("--bogus",), "no such option: --bogus"),
    (("nosuch",), "no such command 'nosuch'"),
    (("fit",), "missing argument 'INPUT'"),
    (("fit", "x.csv", "--output", "there"), "no such option: --output"),
    (("fit", "x.csv", "--method", "foo"), "'foo' is not one of 'auto'"),
    (("bench", "[x]"), "([x])"),
    (("paper", "--quik"), "no such option: --quik"),
])  # fmt: skip
def test_what_is_misused_is_told_in_one_line(ccot, arguments, told):
    (line,) = ccot(*arguments, code=2).stderr.splitlines()
    assert line.startswith("error: ")
    # Releases of click differ in the marks around names.
    assert told.replace(":", "").replace("'", "") in line.replace(":", "").replace("'", "")
    assert line.endswith(" --help)")


def seconds_of(*arguments):
    """Processor time, the least of three: others share the machine."""
    resource = pytest.importorskip("resource", reason="processor times of POSIX")

    def spent():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    times = []
    for _ in range(3):
        before = spent()
        subprocess.run([sys.executable, "-m", "ccot", *arguments], capture_output=True, check=True)
        times.append(spent() - before)
    return min(times)


def test_the_version_and_help_come_at_once():
    # Half of that on an idle machine.
    assert seconds_of("--version") < 0.2
    assert seconds_of("fit", "--help") < 0.8
