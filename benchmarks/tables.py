"""Row clusters of ordinary tables against known classes, beside the usual preparation and K-means.

``TransportCoclustering`` gets the data frame as it was read, once with the number of classes and
once without, always with the same settings. The others get standardised numbers (gaps filled by
the mean) and one-hot categories with the total variance of one number: K-means with the number
given and with the one of largest silhouette, Gaussian mixtures with diagonal covariances and the
number of least BIC, and k-prototypes (numbers and words apart, the number given) where ``kmodes``
is installed. Khiops, where it is installed, gets the table as it was read and clusters instances
and variables by its own criterion; it draws nothing at random and runs once, for five minutes of
processor time at most unless ``--khiops-seconds`` says otherwise.
"""

import argparse
import resource
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score, silhouette_score
from sklearn.mixture import GaussianMixture

from benchmarks.data import need_data
from benchmarks.record import load, of_this_run, store
from ccot import TransportCoclustering
from ccot.blocks.columns import BY_LEVEL, recognise
from ccot.experiments.bench.automatic import khiops_rows
from ccot.io.frames import table_from_frame

NUMBERS = range(2, 21)
# Processor time that Khiops may take for a table.
KHIOPS_SECONDS = 300


@dataclass(frozen=True)
class LabelledTable:
    """A table whose row classes are known."""

    name: str
    frame: pd.DataFrame
    classes: np.ndarray

    @property
    def n_classes(self) -> int:
        return len(np.unique(self.classes))

    def parts(self) -> tuple[np.ndarray, np.ndarray]:
        """Standardised numbers, and categories as words."""
        kinds = recognise(table_from_frame(self.frame))
        numbers, words = [], []
        for kind in kinds:
            column = self.frame[kind.name]
            if kind.is_used and (kind.kind in BY_LEVEL or column.dtype == object):
                words.append(column.astype(str).to_numpy())
            elif kind.is_used:
                values = column.to_numpy(dtype=float)
                numbers.append((values - np.nanmean(values)) / np.nanstd(values))
        empty = np.empty((len(self.frame), 0))
        numeric = np.nan_to_num(np.column_stack(numbers)) if numbers else empty
        return numeric, np.column_stack(words) if words else empty.astype(object)

    def expanded(self) -> np.ndarray:
        """Numbers and one-hot categories, each column of variance one in all."""
        numeric, words = self.parts()
        columns = [numeric]
        for word in words.T:
            level = pd.get_dummies(word).to_numpy(dtype=float)
            level -= level.mean(axis=0)
            columns.append(level / np.sqrt(level.var(axis=0).sum()))
        return np.hstack(columns)


Fit = Callable[[LabelledTable, int], np.ndarray]


def ours(data: LabelledTable, seed: int, n_row_clusters: int | None) -> np.ndarray:
    return TransportCoclustering(n_row_clusters, random_state=seed).fit(data.frame).row_labels_


def k_means(data: LabelledTable, seed: int) -> np.ndarray:
    return KMeans(data.n_classes, n_init=10, random_state=seed).fit_predict(data.expanded())


def k_means_silhouette(data: LabelledTable, seed: int) -> np.ndarray:
    X = data.expanded()
    found = [KMeans(k, n_init=10, random_state=seed).fit_predict(X) for k in NUMBERS]
    scores = [silhouette_score(X, labels, sample_size=1000, random_state=0)
              if len(X) > 1000 else silhouette_score(X, labels) for labels in found]  # fmt: skip
    return found[int(np.argmax(scores))]


def gaussian_mixture(data: LabelledTable, seed: int) -> np.ndarray:
    X = data.expanded()
    fits = [
        GaussianMixture(k, covariance_type="diag", reg_covar=1e-3, n_init=3, random_state=seed).fit(
            X
        )
        for k in (1, *NUMBERS)
    ]
    return min(fits, key=lambda fit: fit.bic(X)).predict(X)


def k_prototypes(data: LabelledTable, seed: int) -> np.ndarray:
    from kmodes.kprototypes import KPrototypes

    numeric, words = data.parts()
    if not words.size or not numeric.size:
        return k_means(data, seed)
    X = np.column_stack([numeric.astype(object), words])
    places = list(range(numeric.shape[1], X.shape[1]))
    model = KPrototypes(data.n_classes, n_init=3, random_state=seed)
    return model.fit_predict(X, categorical=places)


def khiops(data: LabelledTable, seed: int, limit: int = KHIOPS_SECONDS) -> np.ndarray:
    with ProcessPoolExecutor(1, initializer=limit_processor_time, initargs=(limit,)) as apart:
        return apart.submit(in_limited_process, data).result()


def limit_processor_time(limit: int) -> None:
    """Have the system end what this process starts, each after so many seconds of its own."""
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))


def in_limited_process(data: LabelledTable) -> np.ndarray:
    """Return the clusters that Khiops finds; none at all if it was ended."""
    try:
        return khiops_rows(data.frame, len(data.frame))
    except TimeoutError:
        return np.empty(0)


METHODS: dict[str, Fit] = {
    "found": lambda data, seed: ours(data, seed, None),
    "given": lambda data, seed: ours(data, seed, data.n_classes),
    "k_means_silhouette": k_means_silhouette,
    "k_means_given": k_means,
    "gaussian_mixture_bic": gaussian_mixture,
}
if find_spec("kmodes"):
    METHODS["k_prototypes_given"] = k_prototypes
if find_spec("khiops"):
    METHODS["khiops"] = khiops
# Those that draw nothing at random.
ONCE = ("khiops",)


def tables() -> list[LabelledTable]:
    folder = need_data() / "tables"
    labels = sorted(folder.glob("*.labels.csv"))
    return [_read(path) for path in labels]


def _read(labels: Any) -> LabelledTable:
    name = labels.name.removesuffix(".labels.csv")
    frame = pd.read_csv(labels.with_name(f"{name}.csv"), na_values=["?"])
    return LabelledTable(name, frame, pd.read_csv(labels).label.astype(str).to_numpy())


def trial(data: LabelledTable, method: str, seed: int) -> dict[str, Any]:
    start = time.perf_counter()
    labels = METHODS[method](data, seed)
    seconds = time.perf_counter() - start
    nmi = ari = None
    if len(labels):
        nmi = round(float(normalized_mutual_info_score(data.classes, labels)), 5)
        ari = round(float(adjusted_rand_score(data.classes, labels)), 5)
    row = {
        "set": data.name,
        "shape": list(data.frame.shape),
        "classes": data.n_classes,
        "method": method,
        "seed": seed,
        "row_clusters": len(np.unique(labels)),
        "nmi": nmi,
        "ari": ari,
        "seconds": round(seconds, 3),
    }
    return of_this_run(row)


def summarise(trials: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means over the tables that were finished: of the first seed, and over all seeds."""
    cells = []
    for method in dict.fromkeys(t["method"] for t in trials):
        cell = [t for t in trials if t["method"] == method and t["nmi"] is not None]
        first = [t for t in cell if t["seed"] == 0]
        cells.append(
            {
                "method": method,
                "sets": len(first),
                "nmi": round(float(np.mean([t["nmi"] for t in first])), 4),
                "ari": round(float(np.mean([t["ari"] for t in first])), 4),
                "nmi_over_seeds": round(float(np.mean([t["nmi"] for t in cell])), 4),
                "number_right": sum(t["row_clusters"] == t["classes"] for t in first),
                "seconds": round(sum(t["seconds"] for t in first), 1),
            }
        )
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--khiops-seconds", type=int, default=KHIOPS_SECONDS)
    parser.add_argument(
        "--methods", nargs="+", choices=METHODS, help="these; others stay as stored"
    )
    arguments = parser.parse_args()
    asked = arguments.methods or list(METHODS)
    stored = load("tables") if arguments.methods else {}
    limit = stored.get("khiops_seconds", arguments.khiops_seconds)
    if "khiops" in METHODS:
        METHODS["khiops"] = partial(khiops, limit=limit)
    # The rivals warn of constant columns and of fits that did not converge; scores show both.
    warnings.filterwarnings("ignore")
    trials = [
        {"run": {key: stored["facts"][key] for key in ("command", "commit", "date")}} | trial
        for trial in stored.get("trials", [])
        if trial["method"] not in asked
    ]
    for data in tables():
        for seed in range(arguments.seeds):
            methods = [method for method in asked if seed == 0 or method not in ONCE]
            trials += [trial(data, method, seed) for method in methods]
        shown = [
            t for t in trials if (t["set"], t["seed"]) == (data.name, 0) and t["method"] in asked
        ]
        print(data.name, *(f"{t['method']} {t['nmi']}" for t in shown), flush=True)
    cells = summarise(trials)
    print(*cells, sep="\n")
    rivals = stored.get("rivals", {}) | {
        name: version(name) for name in ("kmodes", "khiops") if find_spec(name)
    }
    result = {"rivals": rivals, "khiops_seconds": limit, "cells": cells, "trials": trials}
    print(f"stored {store('tables', result)}")


if __name__ == "__main__":
    main()
