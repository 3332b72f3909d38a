"""Ratings: what both detectors say about the scalings of MovieLens-100K.

The set is not ours to ship: ``benchmarks.data`` says where ``ml-100k/u.data`` is looked for.
"""

from pathlib import Path

import numpy as np

from benchmarks.data import need_data
from benchmarks.record import store
from ccot import CCOT, CCOTGW
from ccot.scalings.jumps import DETECTORS, LEVEL


def ratings(path: Path) -> np.ndarray:
    """Users by movies, zero where there is no rating."""
    user, movie, rating = np.loadtxt(path, dtype=np.int64, usecols=(0, 1, 2)).T
    matrix = np.zeros((user.max(), movie.max()))
    matrix[user - 1, movie - 1] = rating
    return matrix


def main() -> None:
    matrix = ratings(need_data() / "ml-100k" / "u.data")
    cells = []
    for detector in DETECTORS:
        for name, model in (
            ("CCOT", CCOT(detector=detector, n_samplings=32, random_state=0)),
            ("CCOTGW, KL loss", CCOTGW(detector=detector, loss="kl")),
        ):
            model.fit(matrix)
            cells.append(
                {
                    "method": name,
                    "detector": detector,
                    "row_clusters": model.n_row_clusters_,
                    "column_clusters": model.n_column_clusters_,
                }
            )
            print(cells[-1], flush=True)
    print(f"stored {store('movielens', {'level': LEVEL, 'cells': cells})}")


if __name__ == "__main__":
    main()
