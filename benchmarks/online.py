"""Rows that arrive after the fit: placed in closed form, by an updated coupling, and by a refit.

A fifth of the rows of D1 to D4 is held out; in a second part, all rows of one cluster. CCOT and
CCOT-GW are fitted to the others. Three ways to label the rows held out:

extended  `predict` and, for CCOT, `partial_fit`: one more half step of Sinkhorn for the new rows,
          nothing else moves
updated   the coupling of the reference draw is scaled again with the new rows in it, beginning at
          the old scalings, and its steps are read again (CCOT only): the online setting that the
          paper names, after Perrot et al. (2016)
refit     a fit to all rows

Errors are those of the rows held out: a cluster stands for the class that most of its old rows
have, and for that of its new rows only if it has no others.
"""

import argparse
import time
import warnings

import numpy as np

from benchmarks.record import store
from ccot import CCOT, CCOTGW, detect_jumps
from ccot.experiments.protocol import DATA_SETS, load_matrix
from ccot.transport.sinkhorn import sinkhorn

SHARE = 0.2
MAX_ITER, TOL = 1000, 1e-6


def make(method: str, seed: int) -> CCOT | CCOTGW:
    return CCOT(random_state=seed) if method == "CCOT" else CCOTGW()


def error_of_new(labels: np.ndarray, truth: np.ndarray, new: np.ndarray) -> float:
    """Share of new rows in clusters that stand for another class."""
    old_counts, counts = (np.zeros((labels.max() + 1, truth.max() + 1)) for _ in range(2))
    np.add.at(old_counts, (labels[~new], truth[~new]), 1)
    np.add.at(counts, (labels, truth), 1)
    has_old = old_counts.any(axis=1, keepdims=True)
    stands_for = np.where(has_old, old_counts, counts).argmax(axis=1)
    return float((stands_for[labels[new]] != truth[new]).mean())


def update(model: CCOT, rows: np.ndarray) -> tuple[np.ndarray, int]:
    """Scale the coupling of the reference draw with all rows in it; return labels, iterations."""
    placement = model._coclustering.row.placement
    drawn = slice(None) if placement.members is None else placement.members
    points = (rows[:, drawn] - placement.offset) * placement.scale
    anchors = placement.anchors
    log_kernel = points @ anchors.T - (anchors**2).sum(axis=1) / 2
    extended = placement.scaling(rows) - (points**2).sum(axis=1) / 2
    found = sinkhorn(log_kernel, log_row_start=extended, max_iter=MAX_ITER, tol=TOL)
    log_row = found.log_row + (points**2).sum(axis=1) / 2
    order = np.argsort(log_row, kind="stable")
    labels = np.zeros(len(rows), dtype=int)
    labels[order] = np.searchsorted(detect_jumps(log_row[order]), np.arange(len(rows)), "right")
    return labels, int(found.n_iter)


def timed(work):
    start = time.process_time()
    found = work()
    return found, time.process_time() - start


def split(truth, seed: int, arriving: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the rows with the held out ones last, their classes, and which ones are held out."""
    if arriving:
        new = truth.row_labels == seed % truth.block_means.shape[0]
    else:
        new = np.random.default_rng([seed, 1]).random(len(truth.data)) < SHARE
    order = np.argsort(new, kind="stable")
    return truth.data[order], truth.row_labels[order], new[order]


def trial(name: str, method: str, seed: int, arriving: bool) -> dict:
    matrix, classes, new = split(load_matrix(name, "published", seed), seed, arriving)
    model, seconds_fit = timed(lambda: make(method, seed).fit(matrix[~new]))
    placed, seconds = timed(lambda: model.predict(matrix[new]))
    refit, seconds_refit = timed(lambda: make(method, seed).fit(matrix))
    seen = {
        "set": name,
        "method": method,
        "seed": seed,
        "arriving": arriving,
        "new_rows": int(new.sum()),
        "classes": int(classes.max()) + 1,
        "clusters_before": model.n_row_clusters_,
        "clusters_refit": refit.n_row_clusters_,
        "error_extended": error_of_new(np.append(model.row_labels_, placed), classes, new),
        "error_refit": error_of_new(refit.row_labels_, classes, new),
        "seconds_extended": seconds,
        "seconds_fit": seconds_fit,
        "seconds_refit": seconds_refit,
    }
    if method == "CCOT":
        (labels, n_iter), seconds = timed(lambda: update(model, matrix))
        seen |= {
            "error_updated": error_of_new(labels, classes, new),
            "clusters_updated": int(labels.max()) + 1,
            "seconds_updated": seconds,
            "iterations_updated": n_iter,
            **arrive(model, matrix[new], placed),
        }
    return seen


def arrive(model: CCOT, rows: np.ndarray, placed: np.ndarray) -> dict:
    """Whether `partial_fit` labels rows as `predict` does, and says that they are of a new kind."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        labels = model.partial_fit(rows).row_labels_[-len(rows) :]
    return {
        "same_labels": bool((labels == placed).all()),
        "warned": any("of a new kind" in str(one.message) for one in caught),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    seeds = parser.parse_args().seeds
    trials = []
    for arriving in (False, True):
        for name in DATA_SETS:
            for method in ("CCOT", "CCOT-GW"):
                trials += [trial(name, method, seed, arriving) for seed in range(seeds)]
                print(
                    name,
                    method,
                    arriving,
                    [t["error_extended"] for t in trials[-seeds:]],
                    flush=True,
                )
    print(f"stored {store('online', {'share': SHARE, 'seeds': seeds, 'trials': trials})}")


if __name__ == "__main__":
    main()
