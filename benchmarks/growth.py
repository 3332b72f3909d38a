"""What CCOT costs as rows are added: time, memory and error from ten thousand rows to 1e8.

Rows of 100 numbers (float32) are made when they are asked for, from a seed and their place, and
never stored. Every fit has a process of its own, whose highest resident memory is what the system
saw; processor time is fitted, because others on the machine lengthen only that on the clock.
"""

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np
from scipy.optimize import linear_sum_assignment

from benchmarks.record import load, of_this_run, store
from ccot import CCOT
from ccot.datasets import load_simulated
from ccot.sources import FunctionSource

ROWS = (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
LARGE = 100_000_000
N_COLUMNS, PART = 100, 10_000
OUT_OF_CORE = 100_000
NAME = "growth"

_BLOCKS = load_simulated("D1", random_state=0)
_COLUMN_LABELS = np.arange(N_COLUMNS) % _BLOCKS.block_means.shape[1]
_PROFILES = _BLOCKS.block_means[:, _COLUMN_LABELS].astype(np.float32)


def row_labels(first: int, last: int) -> np.ndarray:
    return np.random.default_rng([1, first]).integers(len(_PROFILES), size=last - first)


def make(first: int, last: int) -> np.ndarray:
    """Rows of the paper's first simulated set, the same whenever they are asked for."""
    rng = np.random.default_rng([2, first])
    rows = rng.standard_normal((last - first, N_COLUMNS), dtype=np.float32)
    rows *= np.float32(_BLOCKS.sigma)
    rows += _PROFILES[row_labels(first, last)]
    return rows


def row_error(labels: np.ndarray, n_clusters: int) -> float:
    """Share of rows in the wrong cluster, counted part by part."""
    shared = np.zeros((len(_PROFILES), n_clusters), dtype=np.int64)
    for first in range(0, len(labels), PART):
        last = min(first + PART, len(labels))
        np.add.at(shared, (row_labels(first, last), labels[first:last]), 1)
    return 1 - shared[linear_sum_assignment(shared, maximize=True)].sum() / len(labels)


def one_fit(n_rows: int, n_jobs: int) -> dict:
    """Fit in this process, which must have done nothing else."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    source = FunctionSource(make, (n_rows, N_COLUMNS), PART)
    wall, cpu = time.perf_counter(), time.process_time()
    model = CCOT(random_state=0, n_jobs=n_jobs).fit(source)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "rows": n_rows,
        "n_jobs": n_jobs,
        "seconds": round(wall, 2),
        "processor_seconds": round(cpu, 2),
        "peak_megabytes": round(peak / 1e3, 1),
        "megabytes_before": round(before / 1e3, 1),
        "matrix_megabytes": 4e-6 * n_rows * N_COLUMNS,
        "draws": model.n_samplings_,
        "numbers": [model.n_row_clusters_, model.n_column_clusters_],
        "row_error": row_error(model.row_labels_, model.n_row_clusters_),
        "mean_confidence": round(float(model.row_confidence_.mean()), 4),
    }


def in_a_process(n_rows: int, n_jobs: int) -> dict:
    command = [sys.executable, "-m", "benchmarks.growth", "--one", str(n_rows), str(n_jobs)]
    answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    print(answer.strip(), flush=True)
    return of_this_run(json.loads(answer))


def exponents(fits: list[dict]) -> dict:
    """Slopes of processor time against rows on log axes: over all sizes, and the steepest."""
    rows, times = (np.array([fit[key] for fit in fits]) for key in ("rows", "processor_seconds"))
    slopes = np.diff(np.log(times)) / np.diff(np.log(rows))
    outside = [fit["peak_megabytes"] for fit in fits if fit["rows"] >= OUT_OF_CORE]
    return {
        "exponent": round(float(np.polyfit(np.log(rows), np.log(times), 1)[0]), 3),
        "steepest_exponent": round(float(slopes.max()), 3),
        "last_exponent": round(float(slopes[-1]), 3),
        "memory_growth": round(max(outside) / min(outside) - 1, 4),
    }


def stored() -> dict:
    """What earlier runs saw: the large fit and the others are made one without the other."""
    try:
        return {key: value for key, value in load(NAME).items() if key != "facts"}
    except FileNotFoundError:
        return {}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--large", action="store_true", help=f"only the fit of {LARGE:.0e} rows")
    parser.add_argument("--one", type=int, nargs=2, metavar=("ROWS", "JOBS"))
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(one_fit(*arguments.one)))
        return
    if arguments.large:
        result = stored() | {"large": in_a_process(LARGE, 2)}
    else:
        fits = [in_a_process(n_rows, 1) for n_rows in ROWS]
        result = stored() | {"columns": N_COLUMNS, "fits": fits, **exponents(fits)}
    print(f"stored {store(NAME, result)}")


if __name__ == "__main__":
    main()
