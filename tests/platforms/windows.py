"""Takes away from Python what Windows does not have: ``pytest -p tests.platforms.windows``.

Modules, functions and signals of Unix, the sync of files that are open for reading only. Paths stay
as they are. What pytest and Dask load for Linux is loaded before.
"""

import errno
import fcntl
import os
import signal
import sys
from contextlib import suppress

if "pytest" in sys.modules:
    with suppress(ImportError):
        import distributed  # noqa: F401

MODULES = ("fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty")
NAMES = {
    os: ("fork", "forkpty", "getpgid", "killpg", "mkfifo", "openpty", "setsid", "sysconf",
         "O_DIRECTORY"),
    signal: ("SIGALRM", "SIGHUP", "SIGKILL", "SIGUSR1", "SIGXCPU", "SIGXFSZ", "alarm", "pause"),
}  # fmt: skip


def refuse_readers(handle: int, sync=os.fsync, flags=fcntl.fcntl) -> None:
    if flags(handle, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    sync(handle)


os.fsync = refuse_readers
for module in MODULES:
    sys.modules[module] = None  # type: ignore[assignment]
for place, names in NAMES.items():
    for name in names:
        vars(place).pop(name, None)
