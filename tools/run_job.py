"""Run the commands of jobs in clean copies: ``python -m tools.run_job test lint docs``.

The first word is a workflow, the others are jobs of it; without jobs they are listed. Each job gets
a clone of the last commit and an empty environment as ``python``. What actions of the host do
(checkout, uploads) is named and left out; commands of the machine (docker, a browser) must exist.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

PROJECT = Path(__file__).parents[1]
WORKFLOWS = PROJECT / ".github" / "workflows"
# What would lead a job to another Python than its own.
HIDDEN = {"VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "MAKEFLAGS", "MAKELEVEL"}


def read_jobs(workflow: str) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the variables that all jobs of a workflow have, and the jobs."""
    told = yaml.safe_load((WORKFLOWS / f"{workflow}.yml").read_text(encoding="utf-8"))
    return told.get("env", {}), told["jobs"]


def variables(python: Path, shared: dict[str, str]) -> dict[str, str]:
    plain = {key: it for key, it in os.environ.items() if key not in HIDDEN}
    path = os.pathsep.join([str(python.parent), plain.get("PATH", os.defpath)])
    return {**plain, **shared, "PATH": path, "CI": "true"}


def run_step(step: dict[str, Any], folder: Path, environment: dict[str, str]) -> bool:
    """Run a step as the host would; True unless it fails."""
    if "run" not in step:
        print("left out:", step["uses"].partition("@")[0], flush=True)
        return True
    print("$", step["run"].strip().replace("\n", "\n  "), flush=True)
    strict = ["-o", "pipefail"] if step.get("shell") == "bash" else []
    return not subprocess.run(["bash", "-e", *strict, "-c", step["run"]],
                              cwd=folder, env=environment, check=False).returncode  # fmt: skip


def run_job(job: dict[str, Any], shared: dict[str, str], interpreter: str) -> bool:
    with tempfile.TemporaryDirectory(prefix="ccot-job-") as place:
        clone, python = Path(place) / "ccot", Path(place) / "python" / "bin" / "python"
        subprocess.run(["git", "clone", "--quiet", str(PROJECT), str(clone)], check=True)
        subprocess.run([interpreter, "-m", "venv", str(python.parents[1])], check=True)
        environment = variables(python, shared)
        return all(run_step(step, clone, environment) for step in job["steps"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("workflow", choices=sorted(path.stem for path in WORKFLOWS.glob("*.yml")))
    parser.add_argument("jobs", nargs="*")
    parser.add_argument("--python", default=sys.executable, help="interpreter of the jobs")
    arguments = parser.parse_args()
    shared, jobs = read_jobs(arguments.workflow)
    if not arguments.jobs:
        print(*jobs, sep="\n")
    failed = [name for name in arguments.jobs
              if not run_job(jobs[name], shared, arguments.python)]  # fmt: skip
    print(*(f"failed: {name}" for name in failed), sep="\n")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
