"""The machine and the versions that a measurement belongs to."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from ccot.experiments.protocol import processor
from ccot.runtime.memory import total_bytes

PACKAGES = ("ccot", "numpy", "scipy", "scikit-learn", "POT")


def machine_facts(command: str = "", packages: Sequence[str] = PACKAGES) -> dict[str, Any]:
    """Return what every stored measurement carries.

    Examples
    --------
    >>> facts = machine_facts("ccot bench")
    >>> facts["command"], sorted(facts["versions"])[0]
    ('ccot bench', 'POT')
    """
    total = total_bytes()
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in packages},
        "system": f"{platform.system()} {platform.machine()}",
        "processor": processor(),
        "cores": os.cpu_count(),
        "gigabytes": None if total is None else round(total / 2**30, 1),
        "load": round(os.getloadavg()[0], 2),
        "threads": os.environ.get("OMP_NUM_THREADS", "default"),
        "command": command,
    }
