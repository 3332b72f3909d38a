"""Memory of the machine, and of what may be taken of it."""

import os
import re
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
    text = listing.read_text(encoding="ascii") if listing.exists() else ""
    available = re.search(r"^MemAvailable:\s*(\d+)", text, re.MULTILINE)
    return 1024 * int(available[1]) if available else total_bytes()
