"""Whether stored trials of the paper's comparison come out again, byte for byte.

Reruns some trials of every method, chosen at random among those of each commit that made any, and
compares everything but time, machine, commit and versions. Stores how many came out again; ends
with exit code 1 if one did not.
"""

import argparse
import json
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.paper import FOLDER
from benchmarks.readings import run_task
from benchmarks.record import store
from ccot.experiments.protocol import Trial
from ccot.experiments.store import MEASURED, load_trials, run_tasks


def choose(trials: Sequence[Trial], number: int, seed: int) -> list[Trial]:
    """Return some trials of every method and commit."""
    rng, groups = random.Random(seed), defaultdict(list)
    for trial in trials:
        groups[trial.method, trial.commit].append(trial)
    return [t for found in groups.values() for t in rng.sample(found, min(number, len(found)))]


def content(trial: Trial) -> bytes:
    """Return what must not differ, as it is stored."""
    kept = {k: v for k, v in asdict(trial).items() if k not in (*MEASURED, "versions")}
    return json.dumps(kept).encode()


def differing(trials: Sequence[Trial], jobs: int) -> list[tuple[Trial, Trial]]:
    """Run tasks of stored trials again; return the stored and the new one where they differ."""
    stored = {trial.task: trial for trial in trials}
    fresh = run_tasks(list(stored), jobs, run_task)
    return [(stored[t.task], t) for t in fresh if content(stored[t.task]) != content(t)]


def counted(trials: Sequence[Trial], different: Sequence[tuple[Trial, Trial]]) -> list[dict]:
    """Return for each method and commit how many were rerun, and how many came out again."""
    missed = Counter((old.method, old.commit) for old, _ in different)
    rerun = Counter((trial.method, trial.commit) for trial in trials)
    return [
        {"method": method, "commit": commit, "rerun": n, "same": n - missed[method, commit]}
        for (method, commit), n in rerun.items()
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=10, help="of every method and commit")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    arguments = parser.parse_args()
    trials = choose(load_trials(arguments.folder), arguments.trials, arguments.seed)
    different = differing(trials, arguments.jobs)
    for old, new in different:
        print(f"{old.task}:\n  stored {content(old)!r}\n  now    {content(new)!r}")
        if old.versions != new.versions:
            print(f"  stored with {old.versions}\n  now with    {new.versions}")
    store("rerun", {"cells": counted(trials, different)})
    print(f"{len(trials) - len(different)} of {len(trials)} stored trials came out again")
    return int(bool(different))


if __name__ == "__main__":
    sys.exit(main())
