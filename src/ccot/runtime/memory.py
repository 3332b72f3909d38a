"""Memory of the machine, and of what may be taken of it."""

from __future__ import annotations

import os
from pathlib import Path


def total_bytes() -> int | None:
    """Return the memory of the machine; None where the system does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def free_bytes() -> int | None:
    """Return how much memory may still be taken; None where the system does not tell."""
    listing = Path("/proc/meminfo")
    if listing.exists():
        for line in listing.read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    return total_bytes()
