"""Takes away from Python what Windows does not have: ``pytest -p tests.platforms.windows``.

Modules, functions and signals of Unix, the sync of files that are open for reading only. Paths stay
as they are. What others load for Linux is loaded before.
"""

import asyncio  # noqa: F401
import errno
import os
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

MODULES = ("fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty")
NAMES = {
    os: ("fork", "forkpty", "getpgid", "killpg", "mkfifo", "openpty", "setsid", "sysconf",
         "O_DIRECTORY"),
    signal: ("SIGALRM", "SIGHUP", "SIGKILL", "SIGUSR1", "SIGXCPU", "SIGXFSZ", "alarm", "pause"),
}  # fmt: skip


def pretend() -> None:
    """Take everything away, until the process ends."""
    import fcntl

    sync, flags, kind = os.fsync, fcntl.fcntl, fcntl.F_GETFL

    def refuse_readers(handle: int) -> None:
        if flags(handle, kind) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        sync(handle)

    os.fsync = refuse_readers
    # Linux's way to end a process, by the number of a signal that has no name any more.
    subprocess.Popen.kill = lambda self: self.send_signal(9)  # type: ignore[method-assign]
    for module in MODULES:
        sys.modules[module] = None  # type: ignore[assignment]
    for place, names in NAMES.items():
        for name in names:
            vars(place).pop(name, None)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    with suppress(ImportError):
        import distributed  # noqa: F401
    pretend()
