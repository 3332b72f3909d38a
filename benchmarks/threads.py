"""TransportCoclustering on one thread and on several, in turns, on the same sparse counts.

Products of BLAS stay on the thread that calls them, so that one thread is one core. Every round
fits with each number of threads, after one fit that warms up::

    python -m benchmarks.threads --jobs 1 2
    python -m benchmarks.threads --jobs 1 16
"""

import argparse
import os
import time

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.large_blocks import planted_counts
from benchmarks.record import RESULTS, load, of_this_run, store
from ccot import TransportCoclustering


def timed_fit(matrix, n_jobs: int) -> tuple[TransportCoclustering, float, float]:
    """Return a fit, and its seconds on the clock and of the processor."""
    wall, cpu = time.perf_counter(), time.process_time()
    model = TransportCoclustering(random_state=0, n_jobs=n_jobs).fit(matrix)
    return model, time.perf_counter() - wall, time.process_time() - cpu


def differ(one: TransportCoclustering, other: TransportCoclustering) -> bool:
    names = "row_labels_", "column_labels_", "row_confidence_", "block_means_"
    return any(not np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


def compare(n_rows: int, jobs: list[int], n_rounds: int) -> dict:
    matrix = planted_counts(n_rows)[0]
    seconds = {n_jobs: [] for n_jobs in jobs}
    processor = {n_jobs: [] for n_jobs in jobs}
    first = timed_fit(matrix, jobs[0])[0]
    same = True
    for _ in range(n_rounds):
        for n_jobs in jobs:
            model, wall, cpu = timed_fit(matrix, n_jobs)
            seconds[n_jobs].append(round(wall, 2))
            processor[n_jobs].append(round(cpu, 2))
            same = same and not differ(first, model)
            print(f"{n_jobs} threads: {wall:.2f} s, {cpu:.2f} s of the processor", flush=True)
    one, several = (np.array(seconds[n_jobs]) for n_jobs in (jobs[0], jobs[-1]))
    return {
        "threads": jobs[-1],
        "shape": list(matrix.shape),
        "nnz": int(matrix.nnz),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "seconds": {str(n_jobs): taken for n_jobs, taken in seconds.items()},
        "processor_seconds": {str(n_jobs): taken for n_jobs, taken in processor.items()},
        "times_faster": round(float(np.median(one / several)), 2),
        "same_results": same,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, nargs=2, default=(1, 2), metavar=("ONE", "SEVERAL"))
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    with threadpool_limits(1):
        found = of_this_run(compare(asked.rows, list(asked.jobs), asked.rounds))
    kept = load("threads")["cells"] if (RESULTS / "threads.json").exists() else []
    others = [cell for cell in kept if cell["threads"] != found["threads"]]
    cells = sorted([*others, found], key=lambda cell: cell["threads"])
    print(found)
    print(f"stored {store('threads', {'cells': cells})}")


if __name__ == "__main__":
    main()
