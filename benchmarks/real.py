"""Row clusters of real matrices against known classes, beside rivals that are told the number.

``TransportCoclustering`` gets the stored values as they are, once with the number of row classes
and once without, always with the same settings. Rivals get the number, and values prepared as is
usual for them: K-means l2-normalised TF-IDF of text and standardised columns of the rest, spectral
co-clustering the values themselves, shifted to be non-negative and without empty rows and columns.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans, SpectralCoclustering
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.preprocessing import StandardScaler

from benchmarks.data import KINDS, Labelled, labelled, need_data, without_empty
from benchmarks.record import of_this_run, store, stored_trials
from ccot import TransportCoclustering

Fit = Callable[[Labelled, int], dict[str, Any]]


def ours(data: Labelled, seed: int, n_row_clusters: int | None) -> dict[str, Any]:
    model = TransportCoclustering(n_row_clusters, random_state=seed).fit(data.matrix)
    return {
        "labels": model.row_labels_,
        "family": model.family_,
        "column_clusters": model.n_column_clusters_,
    }


def k_means(data: Labelled, seed: int) -> dict[str, Any]:
    prepare = TfidfTransformer() if data.kind == "text" else StandardScaler()
    model = KMeans(data.n_classes, n_init=10, random_state=seed)
    return {"labels": model.fit_predict(prepare.fit_transform(data.matrix))}


def spectral(data: Labelled, seed: int) -> dict[str, Any]:
    matrix = data.matrix
    if not sp.issparse(matrix):
        matrix = matrix - min(matrix.min(), 0.0)
    matrix, stayed = without_empty(matrix)
    model = SpectralCoclustering(data.n_classes, random_state=seed)
    # Rows that hold nothing have to go somewhere to be counted: to the first cluster.
    labels = np.zeros(len(stayed), dtype=np.int64)
    labels[stayed] = model.fit(matrix).row_labels_
    return {"labels": labels}


METHODS: dict[str, Fit] = {
    "given": lambda data, seed: ours(data, seed, data.n_classes),
    "found": lambda data, seed: ours(data, seed, None),
    "k_means": k_means,
    "spectral_coclustering": spectral,
}


def trial(data: Labelled, method: str, seed: int) -> dict:
    start = time.perf_counter()
    answer = METHODS[method](data, seed)
    seconds = time.perf_counter() - start
    labels = answer.pop("labels")
    return {
        "kind": data.kind,
        "set": data.name,
        "shape": list(data.matrix.shape),
        "classes": data.n_classes,
        "method": method,
        "seed": seed,
        "row_clusters": len(np.unique(labels)),
        "nmi": round(float(normalized_mutual_info_score(data.classes, labels)), 5),
        "ari": round(float(adjusted_rand_score(data.classes, labels)), 5),
        "seconds": round(seconds, 3),
        **answer,
    }


def summarise(trials: list[dict]) -> list[dict]:
    """Means over the sets of a kind: of the first seed, and of each seed's mean."""
    cells = []
    for kind, method in dict.fromkeys((t["kind"], t["method"]) for t in trials):
        cell = [t for t in trials if (t["kind"], t["method"]) == (kind, method)]
        by_seed = [[t for t in cell if t["seed"] == seed] for seed in {t["seed"] for t in cell}]
        by_seed.sort(key=lambda trials: trials[0]["seed"])
        nmi = [float(np.mean([t["nmi"] for t in trials])) for trials in by_seed]
        first = by_seed[0]
        cells.append(
            {
                "kind": kind,
                "method": method,
                "sets": len(first),
                "seeds": len(by_seed),
                "nmi": round(nmi[0], 4),
                "ari": round(float(np.mean([t["ari"] for t in first])), 4),
                "nmi_over_seeds": round(float(np.mean(nmi)), 4),
                "nmi_lowest_seed": round(min(nmi), 4),
                "number_right": sum(t["row_clusters"] == t["classes"] for t in first),
                "seconds": round(sum(t["seconds"] for t in first), 1),
            }
        )
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--kinds", nargs="*", choices=KINDS, default=["text", "gene", "other"])
    parser.add_argument(
        "--methods", nargs="*", choices=METHODS, default=list(METHODS), help="the others are kept"
    )
    arguments = parser.parse_args()
    need_data()
    # The rivals divide by the degrees of rows and columns that are nearly empty.
    warnings.filterwarnings("ignore", category=RuntimeWarning)
    trials = []
    for kind in arguments.kinds:
        for data in labelled(kind):
            for seed in range(arguments.seeds):
                trials += [of_this_run(trial(data, m, seed)) for m in arguments.methods]
            shown = trials[-len(arguments.methods) :]
            print(data.name, *(f"{t['method']} {t['nmi']:.3f}" for t in shown), flush=True)
    kept = [t for t in stored_trials("real") if t["method"] not in arguments.methods]
    trials = sorted(
        trials + kept, key=lambda t: (list(KINDS).index(t["kind"]), t["set"], t["seed"])
    )
    cells = summarise(trials)
    print(*cells, sep="\n")
    print(f"stored {store('real', {'cells': cells, 'trials': trials})}")


if __name__ == "__main__":
    main()
