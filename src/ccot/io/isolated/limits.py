"""Limits that a process sets itself before it reads a file that is not trusted."""

from __future__ import annotations

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
    """End this process soon after the one that started it has ended."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def write_no_core() -> None:
    """Leave no core file behind where a library crashes."""
    if resource is not None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def limit_time(seconds: int) -> None:
    """Let the system end this process after so many more seconds of work."""
    if resource is not None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        _set(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime) + 1 + seconds)


def memory_taken() -> int:
    """Return the bytes of addresses in use; 0 where the system does not tell."""
    usage = Path("/proc/self/statm")
    if resource is None or not usage.exists():
        return 0
    return int(usage.read_text().split()[0]) * resource.getpagesize()


def limit_memory(taken: int, more: int) -> None:
    """Let the system refuse this process more than it has taken and so many bytes."""
    if taken:
        _set(resource.RLIMIT_AS, min(taken + more, 2**63 - 1))


def _set(kind: int, limit: int) -> None:
    """Set a limit, unless whoever started this process set a lower one."""
    _, most = resource.getrlimit(kind)
    limit = limit if most == resource.RLIM_INFINITY else min(limit, most)
    resource.setrlimit(kind, (limit, most))
