"""MovieLens-100K at every loss and regularisation that was tried with CCOT-GW.

The paper names neither. The parts:

settings  the numbers of clusters by the authors' detector, at each setting
blocks    for the setting with the paper's numbers: the share of rated pairs and the mean rating of
          every block, and how much of the ratings' variance blocks explain, beside blocks of the
          same sizes with members drawn at random, and beside the means of single movies
"""

import argparse
import time

import numpy as np
import scipy.sparse as sp

from benchmarks.data import need_data
from benchmarks.record import load, of_this_run, store
from ccot import CCOTGW
from ccot.datasets import fetch_movielens_100k
from ccot.experiments.movielens import block_ratings

SETTINGS = (
    *(("kl", reg) for reg in (10.0, 1.0, 0.1, 0.01)),
    *(("square", reg) for reg in (1.0, 0.1, 0.01)),
)
CHOSEN = ("kl", 1.0)
N_RANDOM = 20


def fitted(matrix: np.ndarray, loss: str, reg: float) -> CCOTGW:
    return CCOTGW(loss=loss, reg=reg, detector="authors").fit(matrix)


def settings(movies) -> dict:
    matrix, cells = movies.data.toarray(), []
    for loss, reg in SETTINGS:
        start = time.process_time()
        model = fitted(matrix, loss, reg)
        cell = {
            "loss": loss,
            "reg": reg,
            "users": model.n_row_clusters_,
            "movies": model.n_column_clusters_,
            "seconds": round(time.process_time() - start, 1),
        }
        print(cell, flush=True)
        cells.append(of_this_run(cell))
    return {"cells": cells, "chosen": list(CHOSEN)}


def explained(ratings: sp.coo_array, rows: np.ndarray, columns: np.ndarray) -> float:
    """Share of the variance of the ratings that is between blocks."""
    block = rows[ratings.row] * (columns.max() + 1) + columns[ratings.col]
    counts = np.bincount(block)
    means = np.bincount(block, ratings.data) / np.maximum(counts, 1)
    return float(1 - ((ratings.data - means[block]) ** 2).mean() / ratings.data.var())


def blocks(movies) -> dict:
    model = fitted(movies.data.toarray(), *CHOSEN)
    ratings = sp.coo_array(movies.data, dtype=float)
    labels = model.row_labels_, model.column_labels_
    rng = np.random.default_rng(0)
    drawn = [explained(ratings, *map(rng.permutation, labels)) for _ in range(N_RANDOM)]
    alone = np.zeros(ratings.shape[0], dtype=int), np.arange(ratings.shape[1])
    return {
        **block_ratings(movies, model),
        "explained": {
            "blocks": explained(ratings, *labels),
            "random": float(np.mean(drawn)),
            "movies": explained(ratings, *alone),
        },
    }


PARTS = {"settings": settings, "blocks": blocks}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=list(PARTS))
    asked = parser.parse_args().parts
    movies = fetch_movielens_100k(need_data())
    result = {} if set(asked) == set(PARTS) else kept()
    for part in asked:
        result |= PARTS[part](movies)
    print(f"stored {store('movielens_settings', result)}")


def kept() -> dict:
    """Return what is stored, every setting with the run that made it."""
    result = load("movielens_settings")
    facts = result.pop("facts")
    earlier = {key: facts[key] for key in ("command", "commit", "date")}
    return result | {"cells": [{"run": earlier, **cell} for cell in result["cells"]]}


if __name__ == "__main__":
    main()
