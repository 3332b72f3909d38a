"""The paper's comparison at full length, stored for the page on reproduction.

100 matrices of each set and overlap, 1000 draws, 50 starts. Takes hours of processor time and can
be stopped at any time: the same command goes on. The parts:

main      ten methods on the four sets, at the published and at the calibrated noise
equal     the same on D3 with the equal proportions that the paper's table states
variants  other readings of CCOT and CCOT-GW: detectors, votes, draws, losses
starts    the rivals from random partitions
sweep     the ten methods at twelve levels of noise, ten matrices each
"""

import argparse
import sys
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.readings import (
    ALL_METHODS,
    D3_EQUAL,
    RANDOM_STARTS,
    VARIANTS,
    at_sigma,
    load_matrix,
    run_task,
)
from benchmarks.record import RESULTS
from ccot.experiments.protocol import DATA_SETS, Protocol
from ccot.experiments.store import JOURNAL, TrialStore, load_trials, run_protocol
from ccot.runtime.progress import LineProgress

FOLDER = RESULTS / "paper"
# Levels of the sweep, in units of the calibrated noise of each set.
LEVELS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 0.5, 0.7, 0.85, 1.0, 1.2, 1.5)
SWEEP_SEEDS = 10


def sweep(**options) -> list[Protocol]:
    """Return a protocol for each set: its levels of noise are its own."""
    options = {"n_trials": SWEEP_SEEDS} | options
    protocols = []
    for name in DATA_SETS:
        sigma = load_matrix(name, "calibrated", 0).sigma
        overlaps = tuple(at_sigma(level * sigma) for level in LEVELS)
        protocols.append(Protocol(data_sets=(name,), overlaps=overlaps, **options))
    return protocols


PARTS = {
    "main": lambda **options: [Protocol(**options)],
    "equal": lambda **options: [Protocol(data_sets=(D3_EQUAL,), **options)],
    "variants": lambda **options: [
        Protocol(data_sets=(*DATA_SETS, D3_EQUAL), **{"methods": tuple(VARIANTS)} | options)
    ],
    "starts": lambda **options: [Protocol(**{"methods": tuple(RANDOM_STARTS)} | options)],
    "sweep": sweep,
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=["main"])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seeds", type=int, help="matrices of each set, fewer than usual")
    parser.add_argument("--n-init", type=int, default=50)
    parser.add_argument(
        "--methods", nargs="*", choices=ALL_METHODS, help="of the parts, these only"
    )
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument(
        "--forget", action="store_true", help="first drop stored trials of --parts and --methods"
    )
    parser.add_argument("--add", type=Path, help="take in the trials of another folder, then end")
    arguments = parser.parse_args()
    options = {"n_init": arguments.n_init}
    options |= {"n_trials": arguments.seeds} if arguments.seeds else {}
    asked = [
        (part, protocol)
        for part in arguments.parts
        for protocol in protocols(part, arguments.methods or ALL_METHODS, **options)
    ]
    if arguments.forget:
        forget([protocol for _, protocol in asked], arguments.folder)
    if arguments.add:
        return add(arguments.add, arguments.folder)
    for part, protocol in asked:
        run(protocol, arguments.folder, arguments.jobs, part)
    return 0


def protocols(part: str, methods: Collection[str], **options) -> list[Protocol]:
    """Return what a part consists of, with some methods only."""
    whole = PARTS[part](**options)
    return [replace(p, methods=tuple(m for m in p.methods if m in methods)) for p in whole]


def forget(asked: Sequence[Protocol], folder: Path) -> None:
    """Drop the trials of some protocols."""
    unwanted = {task for protocol in asked for task in protocol.tasks()}
    with TrialStore(folder) as store:
        store.trials = {t: trial for t, trial in store.trials.items() if t not in unwanted}
        store.checkpoint()


def run(protocol: Protocol, folder: Path, jobs: int, part: str) -> None:
    try:
        run_protocol(protocol, folder, n_jobs=jobs, progress=LineProgress(part), run=run_task)
    except ImportError as error:
        print(f"{error}; the trials stay in {folder / JOURNAL}, --add takes them in")


def add(source: Path, target: Path) -> int:
    """Take in trials: those of the same task are replaced."""
    trials = load_trials(source)
    with TrialStore(target) as store:
        store.trials |= {trial.task: trial for trial in trials}
        store.checkpoint()
    print(f"{len(trials)} trials added to {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
