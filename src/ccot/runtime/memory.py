"""Total and free memory of the machine."""

import os
import re
from pathlib import Path


def total_bytes() -> int | None:
    """Return the memory of the machine; None if it is unknown."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def free_bytes() -> int | None:
    """Return the free memory, or all memory if only that is known; None if nothing is known."""
    listing = Path("/proc/meminfo")
    text = listing.read_text(encoding="ascii") if listing.exists() else ""
    available = re.search(r"^MemAvailable:\s*(\d+)", text, re.MULTILINE)
    return 1024 * int(available[1]) if available else total_bytes()
