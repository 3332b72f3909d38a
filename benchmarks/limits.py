"""Where steps vanish: noise on the simulated sets, and clusters whose scalings coincide."""

import argparse
import time

import numpy as np
from sklearn.cluster import KMeans

from benchmarks.record import store
from ccot import CCOT, CCOTGW
from ccot.datasets import load_simulated
from ccot.metrics import coclustering_error

SETS = ("D1", "D4")
SIGMAS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
METHODS = {
    "CCOT": lambda: CCOT(random_state=0),
    "CCOTGW": lambda: CCOTGW(exact_refinement=False),
}
# Block-diagonal matrices, one on the diagonal: alike in everything but their sizes.
DIAGONALS = {
    "2 equal": (60, 60),
    "2 unequal": (40, 80),
    "3 equal": (40, 40, 40),
    "3 unequal": (20, 40, 60),
    "4 equal": (30, 30, 30, 30),
    "4 unequal": (16, 24, 34, 46),
}


def two_sided_kmeans(matrix: np.ndarray, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """K-means of rows and of columns, told the true numbers."""
    rows, columns = (
        KMeans(number, n_init=10, random_state=0).fit_predict(side)
        for number, side in zip(shape, (matrix, matrix.T), strict=True)
    )
    return rows, columns


def noise(name: str, sigma: float, seeds: int) -> list[dict]:
    trials = {method: [] for method in (*METHODS, "K-means, numbers given")}
    for seed in range(seeds):
        truth = load_simulated(name, random_state=seed, sigma=sigma)
        labels = truth.row_labels, truth.column_labels
        for method, make in METHODS.items():
            model = make().fit(truth.data)
            numbers = model.n_row_clusters_, model.n_column_clusters_
            error = coclustering_error(*labels, model.row_labels_, model.column_labels_)
            trials[method].append((numbers == truth.block_means.shape, error))
        rows, columns = two_sided_kmeans(truth.data, truth.block_means.shape)
        trials["K-means, numbers given"].append((True, coclustering_error(*labels, rows, columns)))
    return [
        {
            "set": name,
            "sigma": sigma,
            "method": method,
            "seeds": seeds,
            "both_numbers_right": sum(right for right, _ in seen),
            "mean_error": float(np.mean([error for _, error in seen])),
        }
        for method, seen in trials.items()
    ]


def diagonal(name: str, seeds: int) -> list[dict]:
    labels = np.repeat(np.arange(len(DIAGONALS[name])), DIAGONALS[name])
    found = {method: [] for method in METHODS}
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        rows, columns = rng.permutation(labels), rng.permutation(labels)
        matrix = 1.0 * np.equal.outer(rows, columns) + 0.01 * rng.normal(size=(len(labels),) * 2)
        for method, make in METHODS.items():
            model = make().fit(matrix)
            found[method].append((model.n_row_clusters_, model.n_column_clusters_))
    truth = (len(DIAGONALS[name]),) * 2
    return [
        {
            "blocks": name,
            "method": method,
            "seeds": seeds,
            "both_numbers_right": sum(numbers == truth for numbers in seen),
        }
        for method, seen in found.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    seeds = parser.parse_args().seeds
    start = time.perf_counter()
    noisy, diagonals = [], []
    for name in SETS:
        for sigma in SIGMAS:
            noisy += noise(name, sigma, seeds)
            print(f"{name} sigma {sigma:g}: {time.perf_counter() - start:.0f} s", flush=True)
    for name in DIAGONALS:
        diagonals += diagonal(name, seeds)
    print(f"stored {store('limits', {'noise': noisy, 'diagonal': diagonals})}")


if __name__ == "__main__":
    main()
