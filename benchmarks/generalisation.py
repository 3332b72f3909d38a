"""How row partitions agree between disjoint samples of the columns, as the matrix and noise grow.

The same rows are clustered twice, by two disjoint samples of columns, which share nothing but the
rows: what both find is a property of the rows, what one finds alone is chance. Rows, columns of
each sample, and noise grow one at a time around a matrix of 200 rows and 100 columns. CCOT, CCOT-GW
and TransportCoclustering find the number of clusters; the rivals are given it. The agreement is the
adjusted Rand index, 0 where a sample gives a single cluster; the error is that of one sample
against the truth.
"""

import argparse
import warnings

import numpy as np
from joblib import Parallel, delayed
from sklearn.metrics import adjusted_rand_score

from benchmarks.record import store
from ccot import CCOT, CCOTGW, TransportCoclustering, baselines
from ccot.datasets import load_simulated, make_latent_blocks
from ccot.metrics import error_rate

BASE = {"rows": 200, "columns": 100, "noise": 1.0}
AXES = {
    "rows": (25, 50, 100, 200, 400, 800),
    "columns": (12, 25, 50, 100, 200, 400),
    "noise": (0.001, 0.01, 0.03, 0.1, 0.3, 0.6, 1.0, 1.5),
}
OURS = {"CCOT": CCOT, "CCOT-GW": CCOTGW, "TransportCoclustering": TransportCoclustering}
GIVEN = {
    "K-means": baselines.TwoSidedKMeans,
    "DKM": baselines.DoubleKMeans,
    "ITCC": baselines.InformationTheoreticCoclustering,
    "Tri-NMF": baselines.TriNMF,
    "GLBM": baselines.GaussianLatentBlockModel,
}
_MEANS = load_simulated("D1", random_state=0).block_means
# Noise 1 is where the row clusters of 100 columns are found with few errors, and not with none.
_SIGMA = 4.0 * float(np.std(_MEANS))


def row_labels(method: str, matrix: np.ndarray, seed: int) -> np.ndarray:
    if method in OURS:
        return OURS[method](random_state=seed).fit(matrix).row_labels_
    model = GIVEN[method](*_MEANS.shape, n_init=10, random_state=seed)
    if method in ("ITCC", "Tri-NMF"):
        matrix = matrix - matrix.min()
    return model.fit(matrix).row_labels_


def trial(axis: str, size: float, seed: int) -> list[dict]:
    """One matrix with twice as many columns, both samples of them, by every method."""
    where = BASE | {axis: size}
    truth = make_latent_blocks(
        _MEANS, where["rows"], 2 * where["columns"], sigma=where["noise"] * _SIGMA,
        random_state=seed,
    )  # fmt: skip
    shuffled = np.random.default_rng(seed).permutation(2 * where["columns"])
    samples = np.split(truth.data[:, shuffled], 2, axis=1)
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for method in (*OURS, *GIVEN):
            first, second = (row_labels(method, sample, seed) for sample in samples)
            numbers = [len(np.unique(labels)) for labels in (first, second)]
            agreement = adjusted_rand_score(first, second) if min(numbers) > 1 else 0.0
            found.append(
                {
                    "axis": axis,
                    "size": size,
                    "seed": seed,
                    "method": method,
                    "agreement": round(float(agreement), 4),
                    "error": round(float(error_rate(truth.row_labels, first)), 4),
                    "row_clusters": numbers,
                }
            )
    return found


def summarise(trials: list[dict]) -> list[dict]:
    cells = []
    for key in dict.fromkeys((t["axis"], t["size"], t["method"]) for t in trials):
        own = [t for t in trials if (t["axis"], t["size"], t["method"]) == key]
        cells.append(
            dict(zip(("axis", "size", "method"), key, strict=True))
            | {name: round(float(np.mean([t[name] for t in own])), 4)
               for name in ("agreement", "error")}
        )  # fmt: skip
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    tasks = [(a, size, s) for a in AXES for size in AXES[a] for s in range(arguments.seeds)]
    found = Parallel(arguments.jobs, verbose=5)(delayed(trial)(*task) for task in tasks)
    trials = [one for several in found for one in several]
    cells = summarise(trials)
    shape = list(_MEANS.shape)
    store("generalisation", {"base": BASE, "clusters": shape, "cells": cells, "trials": trials})


if __name__ == "__main__":
    main()
