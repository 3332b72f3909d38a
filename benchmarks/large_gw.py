"""CCOTGW against POT's barycentre, and with landmarks as the number of rows grows.

Fits without exact refinement take turns with ``ot.gromov.entropic_gromov_barycenters`` at the same
support, limits and tolerance, on D1 and, where it is at hand, on MovieLens-100K; their scalings are
compared with those of couplings that are written out. With ``n_support=100`` rows grow at a fixed
number of columns; every size is fitted in a process of its own, so that memory is its own too.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from unittest.mock import patch

import numpy as np

from benchmarks.data import data_home
from benchmarks.movielens import ratings
from benchmarks.record import store
from benchmarks.speed import gw_ours, gw_pot
from ccot import CCOTGW
from ccot.datasets import load_simulated
from ccot.metrics import error_rate
from ccot.transport import gromov

MEANS = np.array([[4.0, 0.5, 1.5], [1.8, 4.5, 1.1], [1.5, 1.5, 5.5]])
N_COLUMNS, SIGMA, N_SUPPORT = 2_000, 0.05, 100
ROWS = (10_000, 30_000, 100_000)
# Where all pairs still fit well.
BOTH_ROWS = 4_000


def blocks(n_rows: int, n_columns: int = N_COLUMNS) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Noisy blocks, filled some rows at a time, and the labels behind them."""
    rng = np.random.default_rng(0)
    rows, columns = rng.integers(3, size=n_rows), rng.integers(3, size=n_columns)
    matrix = np.empty((n_rows, n_columns))
    for start in range(0, n_rows, 1_000):
        part = slice(start, start + 1_000)
        noise = rng.standard_normal(matrix[part].shape, dtype=np.float32)
        matrix[part] = MEANS[rows[part]][:, columns] + SIGMA * noise
    return matrix, rows, columns


def grow(n_rows: int) -> dict:
    """One fit with landmarks: processor time, memory, and how well the blocks are found."""
    matrix, rows, columns = blocks(n_rows)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wall, cpu = time.perf_counter(), time.process_time()
    model = CCOTGW(n_support=N_SUPPORT, random_state=0).fit(matrix)
    seconds = time.process_time() - cpu
    return {
        "rows": n_rows,
        "columns": N_COLUMNS,
        "seconds": round(seconds, 3),
        "seconds_on_the_clock": round(time.perf_counter() - wall, 3),
        "megabytes_of_the_matrix": round(matrix.nbytes / 1e6),
        "megabytes_more": round(
            (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e3
        ),
        "clusters": [model.n_row_clusters_, model.n_column_clusters_],
        "row_error": error_rate(rows, model.row_labels_),
        "column_error": error_rate(columns, model.column_labels_),
    }


def both() -> dict:
    """Landmarks beside all pairs, where both run."""
    matrix, *_ = blocks(BOTH_ROWS)
    few = CCOTGW(n_support=N_SUPPORT, kernel_rank=256, random_state=0).fit(matrix)
    full = CCOTGW(n_support=N_SUPPORT, kernel_rank=None).fit(matrix)
    return {
        "rows": BOTH_ROWS,
        "clusters": [full.n_row_clusters_, full.n_column_clusters_],
        "row_labels_that_differ": error_rate(full.row_labels_, few.row_labels_),
        "column_labels_that_differ": error_rate(full.column_labels_, few.column_labels_),
    }


def against_pot(name: str, matrix: np.ndarray, repeats: int) -> dict:
    """Processor times of both, taking turns, and how far our scalings are from the faithful."""
    ours, theirs = [], []
    model = gw_ours(matrix)
    for _ in range(repeats):
        for times, work in ((ours, gw_ours), (theirs, gw_pot)):
            start = time.process_time()
            work(matrix)
            times.append(time.process_time() - start)
    with patch.object(gromov, "_solve_product", lambda *_: None):
        faithful = gw_ours(matrix)
    differences = (
        np.abs(getattr(model, side) - getattr(faithful, side)).max()
        for side in ("row_log_scaling_", "column_log_scaling_")
    )
    return {
        "set": name,
        "shape": list(matrix.shape),
        "times_faster": round(float(np.median(np.array(theirs) / np.array(ours))), 2),
        "seconds_ours": round(float(np.median(ours)), 4),
        "seconds_pot": round(float(np.median(theirs)), 4),
        "scalings_differ_by": max(float(difference) for difference in differences),
    }


def in_a_process(n_rows: int) -> dict:
    command = [sys.executable, "-m", "benchmarks.large_gw", "--one", str(n_rows)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--one", type=int, help="fit one size, print what was seen")
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(grow(arguments.one)))
        return
    home = data_home()
    matrices = {"D1": load_simulated("D1", random_state=1).data}
    if home is not None and (home / "ml-100k" / "u.data").is_file():
        matrices["MovieLens-100K"] = ratings(home / "ml-100k" / "u.data")
    speed = [against_pot(*item, arguments.repeats) for item in matrices.items()]
    print(*speed, sep="\n", flush=True)
    same = both()
    print(same, flush=True)
    cells = []
    for n_rows in arguments.rows:
        cells.append(in_a_process(n_rows))
        print(cells[-1], flush=True)
    sizes, times = (np.array([cell[key] for cell in cells], float) for key in ("rows", "seconds"))
    exponent = float(np.polyfit(np.log(sizes), np.log(times), 1)[0]) if len(cells) > 1 else None
    print(f"seconds grow like rows to the {exponent}")
    result = {"speed": speed, "both": same, "cells": cells, "exponent": exponent}
    print(f"stored {store('large_gw', {'n_support': N_SUPPORT, 'sigma': SIGMA, **result})}")


if __name__ == "__main__":
    main()
