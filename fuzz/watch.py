"""What a reader may not do while it reads, whatever the file says."""

from __future__ import annotations

import os
import resource
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# Beyond ten times the file: what readers take for any file, be it empty.
CONSTANT = 192 << 20
FACTOR = 10
_PAGE = resource.getpagesize()
_FORBIDDEN = (
    "pickle.find_class", "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork",
    "os.putenv", "socket.connect", "socket.bind", "ctypes.dlopen", "shutil.", "webbrowser.open",
    "os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.symlink", "os.link", "os.chmod",
)  # fmt: skip


class ForbiddenError(BaseException):
    """Something that no reader may do; no handler of ordinary errors hides it."""


class Guard:
    """Watches files, processes and memory during one read at a time.

    Attributes
    ----------
    folder : pathlib.Path
        Where reading and writing is allowed; elsewhere, only the modules of Python are read.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)
        temporary = tempfile.gettempdir()
        self._writable = (self.folder, f"{temporary}/ccot-", f"{temporary}/tmp")
        self._readable = tuple(
            {self.folder, "/proc/", "/dev/null", sys.prefix, sys.base_prefix}
            | {os.path.abspath(place) for place in sys.path if place and place != "/"}
        )
        self._on = False
        self.growth = 0  # the most that one read added to the peak of the process, bytes
        sys.addaudithook(self._hook)

    @contextmanager
    def watch(self, size: int) -> Iterator[None]:
        """Watch a read of a file of so many bytes."""
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        limit = pages * _PAGE + FACTOR * size + CONSTANT
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
        self._on = True
        try:
            yield
        finally:
            self._on = False
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            self.growth = max(self.growth, (after - before) << 10)

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if not self._on:
            return
        if event == "open":
            self._check_open(args[0], args[1], args[2])
        elif event.startswith(_FORBIDDEN):
            if event == "subprocess.Popen" and "ccot.io.isolated" in str(args[1]):
                return
            name = str(args[0]) if args else ""
            # A name relative to an open folder belongs to a removal that was looked at before.
            beside = not os.path.isabs(name) and args[-1:] != (-1,) and event == "os.remove"
            if not (beside or name.startswith(self._writable)):
                self._forbid(event, args)

    def _check_open(self, path: Any, mode: Any, flags: Any) -> None:
        if isinstance(path, int) or path is None:
            return
        name = os.path.abspath(os.fsdecode(path))
        writes = bool((flags or 0) & (os.O_WRONLY | os.O_RDWR))
        if name.startswith((*self._writable, os.devnull)) or "__pycache__" in name:
            return
        if writes or not name.startswith(self._readable):
            self._forbid("open", (name, mode))

    def _forbid(self, event: str, args: Any) -> None:
        self._on = False
        raise ForbiddenError(f"{event}{args!r}"[:300])
