"""Limits that a process sets itself before it reads what it does not trust.

Programs that run on their own load this file alone, not the package, to start at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

try:
    import resource
except ImportError:  # not on Windows, where the one who waits loses patience instead
    resource: Any = None


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
