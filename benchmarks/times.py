"""Seconds of a fit of every method of the paper's comparison, taken in turn on one processor.

The stored trials were made on several processors; here every method has the same matrices, one
after another, so that what else the machine does is shared by all.
"""

import argparse
from statistics import median

from benchmarks.record import store
from ccot.experiments.protocol import Protocol, run_task
from ccot.experiments.store import run_tasks
from ccot.runtime.progress import LineProgress


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5, help="matrices of each set")
    seeds = parser.parse_args().seeds
    protocol = Protocol(n_trials=seeds, overlaps=("published",))
    print(f"stored {store('times', {'matrices': seeds, 'cells': timed(protocol)})}")


def timed(protocol: Protocol) -> list[dict]:
    """Return the median processor time of every method on every set."""
    tasks, progress, seconds = protocol.tasks(), LineProgress("times"), {}
    for number, trial in enumerate(run_tasks(tasks, 1, run_task), start=1):
        seconds.setdefault((trial.data_set, trial.method), []).append(trial.seconds)
        progress("fits", number, len(tasks))
    return [
        {"set": name, "method": method, "seconds": round(median(found), 4)}
        for (name, method), found in seconds.items()
    ]


if __name__ == "__main__":
    main()
