"""Numbers found and errors made on the paper's simulated sets, beside the paper's own.

A seed is separable when, along the sorted scalings, the true clusters do not interleave and the
smallest gap between them is over twice the 99th percentile of the gaps within them. The paper's
error averages the trials with both numbers right; so does ``error_where_right``.
"""

import argparse
import time

import numpy as np
from joblib import Parallel, delayed

from benchmarks.record import load, of_this_run, store
from ccot import CCOT, CCOTGW
from ccot.datasets import load_simulated
from ccot.metrics import coclustering_error

SETS = ("D1", "D2", "D3", "D4")
METHODS = {
    "CCOT": lambda: CCOT(random_state=0),
    'CCOT reg="cv"': lambda: CCOT(random_state=0, reg="cv"),
    **{f"CCOT reg={reg}": lambda reg=reg: CCOT(random_state=0, reg=reg) for reg in (1.0, 0.5, 0.1)},
    "CCOTGW": lambda: CCOTGW(),
}


def is_separable(log_scaling: np.ndarray, truth: np.ndarray) -> bool:
    order = np.argsort(log_scaling)
    changes = np.flatnonzero(np.diff(truth[order]))
    if len(changes) != len(np.unique(truth)) - 1:
        return False
    gaps = np.diff(log_scaling[order])
    return bool(gaps[changes].min() > 2 * np.quantile(np.delete(gaps, changes), 0.99))


def trial(method: str, name: str, seed: int) -> dict:
    bunch = load_simulated(name, random_state=seed)
    start = time.perf_counter()
    model = METHODS[method]().fit(bunch.data)
    seconds = time.perf_counter() - start
    return {
        "method": method,
        "set": name,
        "seed": seed,
        "numbers": [model.n_row_clusters_, model.n_column_clusters_],
        "truth": list(bunch.block_means.shape),
        "separable": is_separable(model.row_log_scaling_, bunch.row_labels)
        and is_separable(model.column_log_scaling_, bunch.column_labels),
        "error": coclustering_error(
            bunch.row_labels, bunch.column_labels, model.row_labels_, model.column_labels_
        ),
        "seconds": round(seconds, 3),
    }


def summarise(trials: list[dict]) -> list[dict]:
    cells = []
    for method, name in sorted({(t["method"], t["set"]) for t in trials}):
        cell = [t for t in trials if (t["method"], t["set"]) == (method, name)]
        found, truth = (np.array([t[key] for t in cell]) for key in ("numbers", "truth"))
        error = np.array([t["error"] for t in cell])
        separable = np.array([t["separable"] for t in cell])
        right = (found == truth).all(axis=1)
        cells.append(
            {
                "method": method,
                "set": name,
                "seeds": len(cell),
                "row_number_right": int((found == truth)[:, 0].sum()),
                "column_number_right": int((found == truth)[:, 1].sum()),
                "both_right": int(right.sum()),
                "mean_error": float(error.mean()),
                "error_where_right": float(error[right].mean()) if right.any() else None,
                "separable": int(separable.sum()),
                "right_where_separable": int((right & separable).sum()),
                "error_where_separable": float(error[separable].mean())
                if separable.any()
                else None,
                "seconds": float(np.median([t["seconds"] for t in cell])),
            }
        )
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    cells = []
    for method in arguments.methods:
        tasks = (delayed(trial)(method, n, s) for n in SETS for s in range(arguments.seeds))
        trials = list(Parallel(n_jobs=arguments.jobs)(tasks))
        cells += map(of_this_run, summarise(trials))
        print(*cells[-len(SETS) :], sep="\n", flush=True)
    try:
        others = [c for c in load("quality")["cells"] if c["method"] not in arguments.methods]
    except FileNotFoundError:
        others = []
    store("quality", {"seeds": arguments.seeds, "cells": others + cells})


if __name__ == "__main__":
    main()
