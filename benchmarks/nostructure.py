"""How often the default estimators see blocks where there are none."""

import argparse

import numpy as np
from joblib import Parallel, delayed

from benchmarks.record import store
from ccot import CCOT, CCOTGW

METHODS = {
    "CCOT": lambda: CCOT(random_state=0),
    "CCOTGW": lambda: CCOTGW(exact_refinement=False),
}
SHAPES = ((120, 80), (90, 140), (100, 100), (300, 60))


def gaussian(rng, shape):
    return rng.normal(size=shape)


def uniform(rng, shape):
    return rng.uniform(size=shape)


def gradient(rng, shape):
    slope = np.add.outer(np.linspace(0, 1, shape[0]), np.linspace(0, 2, shape[1]))
    return slope + 0.01 * rng.normal(size=shape)


KINDS = (gaussian, uniform, gradient)


def trial(method: str, seed: int) -> dict:
    kind, shape = KINDS[seed % len(KINDS)], SHAPES[seed // len(KINDS) % len(SHAPES)]
    model = METHODS[method]().fit(kind(np.random.default_rng(seed), shape))
    found = (model.n_row_clusters_, model.n_column_clusters_)
    return {"method": method, "kind": kind.__name__, "clean": found == (1, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--matrices", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    tasks = (delayed(trial)(m, s) for m in METHODS for s in range(arguments.matrices))
    trials = list(Parallel(n_jobs=arguments.jobs)(tasks))
    cells = []
    for method in METHODS:
        for kind in KINDS:
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
