"""TransportCoclustering on the simulated sets, from crisp to overlapping, beside its rivals.

At each noise level: the numbers it finds and its error; the error of sweeps started from the truth
with the true numbers (those of the fit, those without reaction, hard ones), which no start can be
expected to beat by much; and the error of rivals that are given the true numbers.
"""

import argparse
import time

import numpy as np
from joblib import Parallel, delayed
from sklearn.cluster import KMeans, SpectralBiclustering

from benchmarks.record import store
from ccot import TransportCoclustering
from ccot.baselines import GaussianLatentBlockModel
from ccot.blocks.problem import make_blocks, make_problem
from ccot.blocks.sweep import settle, sweep
from ccot.blocks.tap import soft_sweep
from ccot.datasets import load_simulated
from ccot.metrics import coclustering_error, error_rate

SETS = ("D1", "D2", "D3", "D4")
# Noise levels around the calibrated one, as multiples of it; the last is beyond recognition.
LADDER = (0.6, 0.8, 1.0, 1.1, 1.2, 1.4)


def from_truth(matrix, truth, move):
    problem = make_problem(matrix, "gaussian")
    return move(problem, make_blocks(problem, *truth), max_iter=200, tol=1e-6).labels


def given(matrix, shape):
    model = TransportCoclustering(*shape, random_state=0).fit(matrix)
    return model.row_labels_, model.column_labels_


def k_means(matrix, shape):
    return tuple(
        KMeans(k, n_init=10, random_state=0).fit_predict(side)
        for k, side in zip(shape, (matrix, matrix.T), strict=True)
    )


def spectral(matrix, shape):
    # Bistochastic scaling wants positive entries.
    model = SpectralBiclustering(shape, method="log", random_state=0)
    model.fit(matrix - matrix.min() + 1.0)
    return model.row_labels_, model.column_labels_


def latent_blocks(matrix, shape):
    model = GaussianLatentBlockModel(*shape, n_init=10, random_state=0).fit(matrix)
    return model.row_labels_, model.column_labels_


def trial(name: str, seed: int, overlap: str, factor: float) -> dict:
    base = load_simulated(name, random_state=seed, overlap=overlap).sigma
    bunch = load_simulated(name, random_state=seed, sigma=factor * base)
    truth, shape = (bunch.row_labels, bunch.column_labels), bunch.block_means.shape
    start = time.perf_counter()
    model = TransportCoclustering(random_state=0).fit(bunch.data)
    seconds = time.perf_counter() - start
    answers = {
        "found": (model.row_labels_, model.column_labels_),
        "given": given(bunch.data, shape),
        "from_truth": from_truth(bunch.data, truth, soft_sweep),
        "from_truth_mean_field": from_truth(bunch.data, truth, settle),
        "from_truth_hard": from_truth(bunch.data, truth, sweep),
        "k_means": k_means(bunch.data, shape),
        "spectral_biclustering": spectral(bunch.data, shape),
        "latent_block_model": latent_blocks(bunch.data, shape),
    }
    shares = (
        (model.row_confidence_, model.n_row_clusters_),
        (model.column_confidence_, model.n_column_clusters_),
    )
    return {
        # The share of labels that are right, as the confidence has it: chance counts as 0 there.
        "claimed": float(np.mean([np.mean(sure + (1 - sure) / k) for sure, k in shares])),
        "true_share": float(1 - np.mean(list(map(error_rate, truth, answers["found"])))),
        "right": (model.n_row_clusters_, model.n_column_clusters_) == shape,
        "seconds": seconds,
        **{key: coclustering_error(*truth, *labels) for key, labels in answers.items()},
    }


def cell(name, overlap, factor, trials):
    means = {key: float(np.mean([t[key] for t in trials])) for key in trials[0] if key != "right"}
    right = sum(t["right"] for t in trials)
    return {
        "set": name,
        "overlap": overlap,
        "factor": factor,
        "sigma": factor * load_simulated(name, random_state=0, overlap=overlap).sigma,
        "seeds": len(trials),
        "numbers_right": right,
        **{key: round(value, 5) for key, value in means.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--ladder-seeds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    levels = [("published", 1.0), *(("calibrated", factor) for factor in LADDER)]
    cells = []
    for overlap, factor in levels:
        n_seeds = arguments.seeds if factor == 1.0 else arguments.ladder_seeds
        for name in SETS:
            tasks = (delayed(trial)(name, seed, overlap, factor) for seed in range(n_seeds))
            trials = list(Parallel(n_jobs=arguments.jobs)(tasks))
            cells.append(cell(name, overlap, factor, trials))
            print(cells[-1], flush=True)
    store("robust", {"cells": cells})


if __name__ == "__main__":
    main()
