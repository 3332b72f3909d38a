"""Row clusters of real matrices where every method finds its own number.

``TransportCoclustering`` gets the stored values as they are: with its default criterion, with the
jump of the merge costs alone, and told the number for comparison. K-means, on TF-IDF of text and on
standardised columns of the rest, both on 50 leading singular vectors, takes the number of the
highest silhouette; HDBSCAN works on the same vectors.
"""

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
from joblib import Parallel, delayed
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import (
    adjusted_mutual_info_score,
    adjusted_rand_score,
    normalized_mutual_info_score,
    silhouette_score,
)
from sklearn.preprocessing import StandardScaler

from benchmarks.data import KINDS, Labelled, labelled, need_data
from benchmarks.record import of_this_run, store, stored_trials
from ccot import TransportCoclustering

_VECTORS, _MOST_CLUSTERS, _SILHOUETTE_ROWS = 50, 20, 2000


def ours(data: Labelled, seed: int, **options) -> np.ndarray:
    return TransportCoclustering(random_state=seed, **options).fit(data.matrix).row_labels_


def vectors(data: Labelled) -> np.ndarray:
    prepare = TfidfTransformer() if data.kind == "text" else StandardScaler(with_mean=False)
    n_vectors = min(_VECTORS, min(data.matrix.shape) - 1)
    return TruncatedSVD(n_vectors, random_state=0).fit_transform(prepare.fit_transform(data.matrix))


def k_means_silhouette(data: Labelled, seed: int) -> np.ndarray:
    points = vectors(data)
    most = min(_MOST_CLUSTERS, len(points) - 1)
    found = [KMeans(k, n_init=3, random_state=seed).fit_predict(points) for k in range(2, most + 1)]
    size = min(_SILHOUETTE_ROWS, len(points))
    scores = [
        silhouette_score(points, labels, sample_size=size, random_state=0) for labels in found
    ]
    return found[int(np.argmax(scores))]


def hdbscan(data: Labelled, seed: int) -> np.ndarray:
    return HDBSCAN(copy=True).fit_predict(vectors(data))


METHODS: dict[str, Callable[[Labelled, int], np.ndarray]] = {
    "found": ours,
    "jump": lambda data, seed: ours(data, seed, criterion="jump"),
    "given": lambda data, seed: ours(data, seed, n_row_clusters=data.n_classes),
    "k_means_silhouette": k_means_silhouette,
    "hdbscan": hdbscan,
}


def trial(data: Labelled, method: str, seed: int) -> dict:
    # What a method warns of its own numerics is not the subject here.
    warnings.filterwarnings("ignore", category=RuntimeWarning)
    start = time.process_time()
    labels = METHODS[method](data, seed)
    seconds = time.process_time() - start
    scores = {
        "nmi": normalized_mutual_info_score,
        "ami": adjusted_mutual_info_score,
        "ari": adjusted_rand_score,
    }
    return {
        "kind": data.kind,
        "set": data.name,
        "classes": data.n_classes,
        "method": method,
        "seed": seed,
        "row_clusters": len(np.unique(labels)),
        **{name: round(float(score(data.classes, labels)), 4) for name, score in scores.items()},
        "seconds": round(seconds, 2),
    }


def summarise(trials: list[dict]) -> list[dict]:
    """Means over the sets of a kind."""
    cells = []
    for kind, method in dict.fromkeys((t["kind"], t["method"]) for t in trials):
        cell = [t for t in trials if (t["kind"], t["method"]) == (kind, method)]
        means = {
            name: round(float(np.mean([t[name] for t in cell])), 4)
            for name in ("nmi", "ami", "ari", "seconds")
        }
        cells.append(
            {"kind": kind, "method": method, "sets": len({t["set"] for t in cell}), **means}
        )
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kinds", nargs="*", choices=KINDS, default=["text", "gene", "cells"])
    parser.add_argument("--methods", nargs="*", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    need_data()
    tasks = [
        (data, method, seed)
        for kind in arguments.kinds
        for data in labelled(kind)
        for method in arguments.methods
        for seed in range(arguments.seeds)
    ]
    fresh = Parallel(arguments.jobs, verbose=5)(delayed(trial)(*task) for task in tasks)
    # What is not measured again is kept, with the run that made it.
    made = {(kind, method) for kind in arguments.kinds for method in arguments.methods}
    kept = [t for t in stored_trials("automatic") if (t["kind"], t["method"]) not in made]
    trials = [*kept, *map(of_this_run, fresh)]
    trials.sort(key=lambda t: (list(KINDS).index(t["kind"]), list(METHODS).index(t["method"])))
    cells = summarise(trials)
    print(*cells, sep="\n")
    print(f"stored {store('automatic', {'cells': cells, 'trials': trials})}")


if __name__ == "__main__":
    main()
