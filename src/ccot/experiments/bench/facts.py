"""The machine, the versions and the commit that a measurement belongs to."""

import os
import platform
import re
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
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
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "threads": os.environ.get("OMP_NUM_THREADS", "default"),
        "command": command,
    }


def describe_installation() -> list[str]:
    """Return what a report of a fault should say: versions, system, BLAS and devices."""
    import_module("numpy")  # its BLAS is seen only once it is loaded
    from threadpoolctl import threadpool_info

    devices = ["no PyTorch"]
    if installed_version("torch") is not None:
        import torch

        devices = ["cpu", *map(torch.cuda.get_device_name, range(torch.cuda.device_count()))]
    optional = ("pandas", "pyarrow", "dask", "anndata", "torch", "matplotlib", "typer")
    facts = machine_facts(packages=(*PACKAGES, *optional))
    blas = {
        f"{found.get('internal_api')} {found.get('version')}, {found.get('num_threads')} threads"
        for found in threadpool_info()
    }
    return [
        f"python {facts['python']}, {facts['system']}, {facts['processor']}",
        f"{facts['cores']} cores, {facts['gigabytes']} GiB",
        *(f"{name} {number}" for name, number in facts["versions"].items() if name != "ccot"),
        *sorted(blas),
        f"devices: {', '.join(devices)}",
    ]


@cache
def versions() -> str:
    """Return the versions that results may depend on, in one line."""
    packages = (f"{name}={installed_version(name) or 'none'}" for name in PACKAGES)
    return " ".join([f"python={platform.python_version()}", *packages])


@cache
def processor() -> str:
    """Return the name of the processor."""
    cpuinfo = Path("/proc/cpuinfo")
    told = cpuinfo.read_text(encoding="utf-8") if cpuinfo.exists() else ""
    if found := re.search(r"^model name\s*:(.*)", told, re.MULTILINE):
        return found[1].strip()
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
        if package == "ccot":
            return __version__
    # Of packages of the system, such as graph-tool, Python knows no more than the module.
    found = find_spec(package.replace("-", "_"))
    # A folder that happens to have the name has no origin.
    return None if found is None or found.origin is None else import_module(found.name).__version__
