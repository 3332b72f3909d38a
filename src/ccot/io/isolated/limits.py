"""Limits on what is read of a file that is not trusted, and on the process that reads it."""

import io
import os
import threading
import time
from pathlib import Path
from typing import Any

try:
    import resource
except ImportError:  # not on Windows, where the client stops waiting instead
    resource: Any = None

# Seconds between two looks whether the parent is still there.
_SECONDS_BETWEEN_LOOKS = 1.0


def end_with_parent(parent: int) -> None:
    """End this process soon after the one that started it; leave no core file where it crashes."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    if resource is not None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def memory_taken() -> int:
    """Return the bytes of addresses in use; 0 where the system does not tell."""
    usage = Path("/proc/self/statm")
    if resource is None or not usage.exists():
        return 0
    return int(usage.read_text().split()[0]) * resource.getpagesize()


def limit(seconds: int, taken: int, more: int) -> None:
    """Let the system end this process after so much work, and refuse it more memory than this."""
    if resource is not None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        _set(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime) + 1 + seconds)
    if taken and resource is not None:
        _set(resource.RLIMIT_AS, min(taken + more, 2**63 - 1))


def _set(kind: int, limit: int) -> None:
    """Set a limit, unless whoever started this process set a lower one."""
    _, most = resource.getrlimit(kind)
    limit = limit if most == resource.RLIM_INFINITY else min(limit, most)
    resource.setrlimit(kind, (limit, most))


class LimitedStream(io.RawIOBase):
    """An unpacked stream of which no more than so many bytes are read; then it raises an error."""

    def __init__(self, stream: Any, limit: int, error: type[Exception], name: str) -> None:
        self._stream, self._left = stream, limit
        large = f"{limit / 1e6:.3g} MB, far more than its size, so it may be malicious"
        remedy = "if you trust it, unpack it first"
        self._refusal = error(f"{name} unpacks to more than {large}: {remedy}")

    def counted(self) -> "LimitedStream":
        """Return itself; all was unpacked once, so that a trap is told before anything is kept."""
        limit, buffer = self._left, bytearray(1 << 16)
        while self.readinto(buffer):
            pass
        self._stream.seek(0)
        self._left = limit
        return self

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer, and return how much."""
        content = self._stream.read1(len(buffer))
        self._left -= len(content)
        if self._left < 0:
            raise self._refusal
        buffer[: len(content)] = content
        return len(content)

    def close(self) -> None:
        """Close the stream below."""
        self._stream.close()
        super().close()
