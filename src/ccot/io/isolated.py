"""Readers that run as programs of their own, since the files they read may make them fall over."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

# Seconds of work that any file may take, and bytes that are good for one second more.
_SECONDS, _BYTES_A_SECOND = 5, 1_000_000
# Seconds on the clock for every second of work: other programs want to run as well.
_PATIENCE = 60


def started_as(program: Path, *arguments: Any) -> tuple[list[str], dict[str, str]]:
    """Return the command that starts a program, and its environment."""
    # It finds what this process finds, and reserves no addresses for threads ahead.
    paths = os.pathsep.join(place for place in sys.path if place)
    command = [sys.executable, "-P", str(program), *map(str, arguments)]
    return command, os.environ | {"PYTHONPATH": paths, "MALLOC_ARENA_MAX": "1"}


def seconds_of_work(n_bytes: int) -> int:
    """Return the seconds of work that so many bytes may take."""
    return _SECONDS + n_bytes // _BYTES_A_SECOND


def seconds_of_patience(n_bytes: int) -> int:
    """Return the seconds on the clock after which nobody waits any more."""
    return _PATIENCE * seconds_of_work(n_bytes)
