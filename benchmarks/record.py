"""What every stored result carries: versions, machine, and the run that made it.

A run is a command, a commit and a date. A script that measures everything again writes it once,
under ``facts``. A script that can measure a part of its rows and keep the others marks every row it
measures with `of_this_run`, so that no row is shown under a command that did not make it.
"""

import json
import os
import shlex
import sys
from pathlib import Path

from ccot.experiments.bench.facts import commit, machine_facts
from ccot.persistence.atomic import write_atomically

RESULTS = Path(__file__).parent / "results"


def facts() -> dict:
    return machine_facts(command()) | {"commit": commit()}


def of_this_run(row: dict) -> dict:
    """Return a row with the command, commit and date of this run."""
    return {**row, "run": this_run()}


def this_run() -> dict:
    known = facts()
    return {key: known[key] for key in ("command", "commit", "date")}


def store(name: str, result: dict) -> Path:
    """Write a result and the facts around it; the page is rendered from this file alone."""
    path = RESULTS / f"{name}.json"
    with write_atomically(path, "w") as file:
        file.write(json.dumps({"facts": facts(), **result}, indent=1) + "\n")
    return path


def load(name: str) -> dict:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def stored_trials(name: str) -> list[dict]:
    """Return the trials of a stored result, each with the run that made it."""
    result = load(name)
    earlier = {key: result["facts"].get(key) for key in ("command", "commit", "date")}
    return [{"run": earlier, **trial} for trial in result["trials"]]


def command() -> str:
    """Return the command line; paths of this machine say nothing to others and are left out."""
    arguments = ["PATH" if os.path.isabs(text) else shlex.quote(text) for text in sys.argv[1:]]
    script = Path(sys.argv[0])
    return " ".join(["python", "-m", f"{script.parent.name}.{script.stem}", *arguments])
