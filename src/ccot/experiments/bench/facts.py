"""The machine, the versions and the commit that a measurement belongs to."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ccot._version import __version__
from ccot.runtime.memory import total_bytes

PACKAGES = ("ccot", "numpy", "scipy", "scikit-learn", "POT")


def machine_facts(command: str = "", packages: Sequence[str] = PACKAGES) -> dict[str, Any]:
    """Return what every stored measurement carries."""
    total = total_bytes()
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "versions": {name: installed_version(name) or "none" for name in packages},
        "system": f"{platform.system()} {platform.machine()}",
        "processor": processor(),
        "cores": os.cpu_count(),
        "gigabytes": None if total is None else round(total / 2**30, 1),
        "load": round(os.getloadavg()[0], 2),
        "threads": os.environ.get("OMP_NUM_THREADS", "default"),
        "command": command,
    }


@cache
def versions() -> str:
    """Return the versions that results may depend on, in one line."""
    packages = (f"{name}={installed_version(name) or 'none'}" for name in PACKAGES)
    return " ".join([f"python={platform.python_version()}", *packages])


@cache
def processor() -> str:
    """Return the name of the processor."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


@cache
def commit() -> str | None:
    """Return the commit that is run, with ``-dirty`` if files differ, None outside a checkout."""
    # A copy of a checkout has it from the environment.
    if given := os.environ.get("CCOT_COMMIT"):
        return given
    ask = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    folder = Path(__file__).parent
    try:
        done = subprocess.run(ask, cwd=folder, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def installed_version(package: str) -> str | None:
    """Return the version of a package, None without; ours need not be installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return __version__ if package == "ccot" else None
