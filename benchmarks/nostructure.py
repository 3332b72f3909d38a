"""How often the default estimators see blocks where there are none."""

import argparse

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed

from benchmarks.record import store
from ccot import CCOT, CCOTGW, TransportCoclustering

METHODS = {
    "CCOT": lambda: CCOT(random_state=0),
    "CCOTGW": lambda: CCOTGW(exact_refinement=False),
    "TransportCoclustering": lambda: TransportCoclustering(random_state=0),
}
SHAPES = ((120, 80), (90, 140), (100, 100), (300, 60))


def gaussian(rng, shape):
    return rng.normal(size=shape)


def uniform(rng, shape):
    return rng.uniform(size=shape)


def heavy_tails(rng, shape):
    return rng.standard_t(3, size=shape)


def gradient(rng, shape):
    slope = np.add.outer(np.linspace(0, 1, shape[0]), np.linspace(0, 2, shape[1]))
    return slope + 0.01 * rng.normal(size=shape)


def poisson(rng, shape):
    return rng.poisson(3.0, size=shape)


def degrees(rng, shape):
    rates = np.outer(rng.gamma(2.0, size=shape[0]), rng.gamma(2.0, size=shape[1]))
    return rng.poisson(rates)


def sparse_counts(rng, shape):
    return sp.csr_array(rng.poisson(0.1, size=shape).astype(float))


def bernoulli(rng, shape):
    return (rng.random(size=shape) < 0.4).astype(float)


# A gradient has no steps, but it is not without structure: blocks may well approximate it.
STEPS = (gaussian, uniform, gradient)
FAMILIES = (gaussian, uniform, heavy_tails, poisson, degrees, sparse_counts, bernoulli)
KINDS = {"CCOT": STEPS, "CCOTGW": STEPS, "TransportCoclustering": FAMILIES}


def trial(method: str, seed: int) -> dict:
    kinds = KINDS[method]
    kind, shape = kinds[seed % len(kinds)], SHAPES[seed // len(kinds) % len(SHAPES)]
    model = METHODS[method]().fit(kind(np.random.default_rng(seed), shape))
    found = (model.n_row_clusters_, model.n_column_clusters_)
    return {"method": method, "kind": kind.__name__, "clean": found == (1, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--matrices", type=int, default=67, help="of each kind")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    tasks = (
        delayed(trial)(method, seed)
        for method in METHODS
        for seed in range(arguments.matrices * len(KINDS[method]))
    )
    trials = list(Parallel(n_jobs=arguments.jobs)(tasks))
    cells = []
    for method in METHODS:
        for kind in KINDS[method]:
            clean = [
                t["clean"] for t in trials if t["method"] == method and t["kind"] == kind.__name__
            ]
            cells.append(
                {
                    "method": method,
                    "kind": kind.__name__,
                    "matrices": len(clean),
                    "one_by_one": sum(clean),
                }
            )
            print(cells[-1], flush=True)
    store("nostructure", {"cells": cells})


if __name__ == "__main__":
    main()
