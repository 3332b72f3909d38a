"""The rivals' speed: against public implementations where there are any, and on two cores.

Public implementations that can be installed: scikit-learn's KMeans and NMF, run on both sides of
the matrix, and CGC (clustering-geodata-cubes), whose block-average co-clustering by the
I-divergence is the nearest kin of information-theoretic co-clustering. All get the true numbers
and equally many starts, on one thread, in turns. For double K-means, tri-factorisation, the
Gaussian latent block model and residual Bayesian co-clustering there is none in Python.
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.cluster import KMeans
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from benchmarks.record import load, of_this_run, store
from ccot.baselines import InformationTheoreticCoclustering, TwoSidedKMeans, TwoSidedNMF
from ccot.datasets import load_simulated, make_latent_blocks
from ccot.experiments.protocol import NON_NEGATIVE, RIVALS
from ccot.metrics import coclustering_error

SETS = ("D1", "D4")
# Done with D1 in less than a second.
LIGHT = ("K-means", "DKM", "GLBM", "ITCC")


def sides(matrix, shape):
    return zip((matrix, np.ascontiguousarray(matrix.T)), shape, strict=True)


def sklearn_kmeans(matrix, shape, n_init):
    return [KMeans(k, n_init=n_init, random_state=0).fit(side).labels_
            for side, k in sides(matrix, shape)]  # fmt: skip


def sklearn_nmf(matrix, shape, n_init):
    labels = []
    for side, k in sides(matrix, shape):
        runs = []
        for seed in range(n_init):
            model = NMF(k, init="random", max_iter=10_000, tol=1e-4, random_state=seed)
            weights = model.fit_transform(side)
            runs.append((model.reconstruction_err_, weights.argmax(axis=1)))
        labels.append(min(runs, key=lambda run: run[0])[1])
    return labels


def cgc(matrix, shape, n_init):
    from cgc.coclustering_numpy import coclustering

    np.random.seed(0)  # noqa: NPY002 - CGC draws its starts from the global generator
    positive = matrix + 1e-8 * matrix.mean()
    runs = [coclustering(positive, *shape, errobj=1e-5, niters=300) for _ in range(n_init)]
    best = min(runs, key=lambda run: run[-1])
    return best[2], best[3]


PUBLIC = {
    "K-means": (TwoSidedKMeans, "scikit-learn KMeans, twice", sklearn_kmeans),
    "NMF": (TwoSidedNMF, "scikit-learn NMF, twice", sklearn_nmf),
    "ITCC": (InformationTheoreticCoclustering, "CGC, I-divergence", cgc),
}


def matrices(name):
    if name == "large":
        means = [[4, 0, 2], [1, 5, 1], [0, 2, 6]]
        truth = make_latent_blocks(means, 2400, 1200, sigma=8.0, random_state=0)
    else:
        truth = load_simulated(name, random_state=0, overlap="calibrated")
    return truth, {True: truth.data - truth.data.min(), False: truth.data}


def clock(work):
    """Return seconds on the clock, of the processor, and the answer."""
    wall, processor = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        answer = work()
    return time.perf_counter() - wall, time.process_time() - processor, answer


def against(method, name, n_init, repeats):
    make, public, run = PUBLIC[method]
    truth, prepared = matrices(name)
    matrix, shape = prepared[method in NON_NEGATIVE], truth.block_means.shape
    times = {"ours": [], "theirs": []}
    with threadpool_limits(1):
        for _ in range(repeats):
            _, seconds, model = clock(
                lambda: make(*shape, n_init=n_init, random_state=0).fit(matrix)
            )
            times["ours"].append(seconds)
            _, seconds, labels = clock(lambda: run(matrix, shape, n_init))
            times["theirs"].append(seconds)
    true = truth.row_labels, truth.column_labels
    return {
        "method": method,
        "set": name,
        "public": public,
        "starts": n_init,
        "seconds_ours": min(times["ours"]),
        "seconds_public": min(times["theirs"]),
        "ratio": min(times["ours"]) / min(times["theirs"]),
        "error_ours": coclustering_error(*true, model.row_labels_, model.column_labels_),
        "error_public": coclustering_error(*true, *labels),
    }


def on_two_cores(method, name, n_init, repeats):
    truth, prepared = matrices(name)
    matrix, shape = prepared[method in NON_NEGATIVE], truth.block_means.shape
    walls, labels = {1: [], 2: []}, {}
    for _ in range(repeats):
        for n_jobs in (1, 2):
            model = RIVALS[method](*shape, n_init=n_init, n_jobs=n_jobs, random_state=0)
            wall, _, _ = clock(lambda model=model: model.fit(matrix))
            walls[n_jobs].append(wall)
            labels[n_jobs] = model.row_labels_
    assert (labels[1] == labels[2]).all()
    return {
        "method": method,
        "set": name,
        "shape": matrix.shape,
        "starts": n_init,
        "seconds_one": min(walls[1]),
        "seconds_two": min(walls[2]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=list(PARTS))
    arguments = parser.parse_args()
    try:
        stored = {part: load("rivals")[part] for part in PARTS}
    except (FileNotFoundError, KeyError):
        stored = {part: [] for part in PARTS}
    for part in arguments.parts:
        stored[part] = list(map(of_this_run, PARTS[part](arguments.repeats)))
        print(*stored[part], sep="\n", flush=True)
    store("rivals", stored)


# The second wants a machine with two cores to spare.
PARTS = {
    "public": lambda repeats: [against(m, name, 10, repeats) for m in PUBLIC for name in SETS],
    "cores": lambda repeats: [
        *(on_two_cores(method, "D1", 50, repeats) for method in RIVALS),
        *(on_two_cores(method, "large", 50, repeats) for method in LIGHT),
    ],
}


if __name__ == "__main__":
    main()
