"""What every stored result carries: versions, machine, time."""

import json
import os
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
_PACKAGES = ("ccot", "numpy", "scipy", "scikit-learn", "POT")


def facts() -> dict:
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in _PACKAGES},
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": os.environ.get("OMP_NUM_THREADS", "default"),
        "command": "python -m " + " ".join([_module(), *sys.argv[1:]]),
    }


def store(name: str, result: dict) -> Path:
    """Write a result and the facts around it; the page is rendered from this file alone."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps({"facts": facts(), **result}, indent=1) + "\n")
    return path


def load(name: str) -> dict:
    return json.loads((RESULTS / f"{name}.json").read_text())


def _module() -> str:
    return f"benchmarks.{Path(sys.argv[0]).stem}"


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
