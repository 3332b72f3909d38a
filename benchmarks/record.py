"""What every stored result carries: versions, machine, time."""

import json
import sys
from pathlib import Path

from ccot.experiments.bench.facts import machine_facts
from ccot.persistence.atomic import write_atomically

RESULTS = Path(__file__).parent / "results"


def facts() -> dict:
    return machine_facts("python -m " + " ".join([_module(), *sys.argv[1:]]))


def store(name: str, result: dict) -> Path:
    """Write a result and the facts around it; the page is rendered from this file alone."""
    path = RESULTS / f"{name}.json"
    with write_atomically(path, "w") as file:
        file.write(json.dumps({"facts": facts(), **result}, indent=1) + "\n")
    return path


def load(name: str) -> dict:
    return json.loads((RESULTS / f"{name}.json").read_text())


def _module() -> str:
    return f"benchmarks.{Path(sys.argv[0]).stem}"
