"""Whether confidence can be believed on real matrices: claimed against right.

``TransportCoclustering`` finds its number. A row counts as right if its class is the one that most
rows of its cluster have. Rows of all sets are put into bins by their confidence; each set counts
alike.
"""

import argparse
from itertools import pairwise

import numpy as np
from joblib import Parallel, delayed

from benchmarks.data import Labelled, labelled, need_data
from benchmarks.record import store
from ccot import TransportCoclustering

KINDS = ("text", "gene", "cells")
EDGES = (0.0, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)


def is_right(classes: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Whether each row has the class of most rows of its cluster."""
    own = np.unique(classes, return_inverse=True)[1]
    counts = np.zeros((labels.max() + 1, own.max() + 1))
    np.add.at(counts, (labels, own), 1)
    return counts.argmax(axis=1)[labels] == own


def trial(data: Labelled, seed: int) -> dict:
    model = TransportCoclustering(random_state=seed).fit(data.matrix)
    confidence, right = model.row_confidence_, is_right(data.classes, model.row_labels_)
    found = np.clip(np.digitize(confidence, EDGES) - 1, 0, len(EDGES) - 2)
    bins = [
        {"rows": int(own.sum()), "claimed": float(confidence[own].mean()),
         "right": float(right[own].mean())} if (own := found == k).any() else None
        for k in range(len(EDGES) - 1)
    ]  # fmt: skip
    return {
        "kind": data.kind,
        "set": data.name,
        "seed": seed,
        "row_clusters": int(model.n_row_clusters_),
        "claimed": round(float(confidence.mean()), 4),
        "right": round(float(right.mean()), 4),
        "bins": bins,
    }


def summarise(trials: list[dict]) -> list[dict]:
    """Means over the sets of a bin, those with at least ten rows in it."""
    cells = []
    for k, (low, high) in enumerate(pairwise(EDGES)):
        own = [t["bins"][k] for t in trials if t["row_clusters"] > 1 and t["bins"][k]]
        own = [one for one in own if one["rows"] >= 10]
        cells.append({"from": low, "to": high, "sets": len(own)} | {
            key: round(float(np.mean([one[key] for one in own])), 4) for key in ("claimed", "right")
        })  # fmt: skip
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    need_data()
    sets = [data for kind in KINDS for data in labelled(kind)]
    trials = Parallel(arguments.jobs, verbose=5)(delayed(trial)(data, 0) for data in sets)
    cells = summarise(trials)
    print(*cells, sep="\n")
    store("confidence", {"cells": cells, "trials": trials})


if __name__ == "__main__":
    main()
