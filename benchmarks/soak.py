"""Two thousand fits in one process: what grows, and what is left behind.

Every estimator and every rival, on matrices in memory and on rows that are read from files, by
threads and by processes, small ones so that the fits are many. Every so often the process looks at
itself: resident memory, open files, threads, children, temporary files. After a warm-up none of
them may grow.
"""

import argparse
import gc
import itertools
import os
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

import joblib
import numpy as np
import psutil
import scipy.sparse as sp
from joblib.externals.loky import get_reusable_executor

from benchmarks.record import store
from ccot import CCOT, CCOTGW, TransportCoclustering, load_model
from ccot.baselines import (
    DoubleKMeans,
    GaussianLatentBlockModel,
    InformationTheoreticCoclustering,
    ResidualBayesianCoclustering,
    TriNMF,
    TwoSidedKMeans,
    TwoSidedNMF,
)
from ccot.sources import FunctionSource

MEANS = np.array([[9.0, 1.0, 2.0], [1.0, 6.0, 1.0], [3.0, 1.0, 4.0]])
RIVALS = (
    TwoSidedKMeans,
    TwoSidedNMF,
    DoubleKMeans,
    TriNMF,
    GaussianLatentBlockModel,
    InformationTheoreticCoclustering,
    ResidualBayesianCoclustering,
)
# Small matrices take the paths of large ones: pools, columns that leave memory, processes.
SMALL = {
    "ccot.scalings.sampling.POOL_ROWS": 64,
    "ccot.scalings.sampling.POOL_CELLS": 2**10,
    "ccot.blocks.streaming.POOL_ROWS": 64,
    "ccot.blocks.streaming.POOL_ENTRIES": 2**10,
    "ccot.runtime.spilled.MEMORY_BYTES": 2**8,
}


def blocks(rng, n_rows=60, n_columns=24):
    rows, columns = rng.integers(0, 3, n_rows), rng.integers(0, 3, n_columns)
    return MEANS[rows][:, columns] + 0.05 * rng.normal(size=(n_rows, n_columns)) + 0.5


# What is fitted -------------------------------------------------------------------------------


def fit_in_memory(rng, folder):
    model = CCOT(n_samplings=16, random_state=0).fit(X := blocks(rng))
    model.predict(X[:5])
    model.predict_columns(X.T[:5])


def fit_threads(rng, folder):
    CCOT(n_samplings=64, n_jobs=2, random_state=0).fit(blocks(rng))


def fit_processes(rng, folder):
    with joblib.parallel_config("loky", n_jobs=2):
        CCOT(n_samplings=64, n_jobs=2, random_state=0).fit(blocks(rng))


def fit_sparse(rng, folder):
    X = blocks(rng)
    CCOT(n_samplings=16, random_state=0).fit(sp.csr_array(np.where(X > 3, X, 0.0)))


def fit_arriving(rng, folder):
    X = blocks(rng, 90)
    CCOT(n_samplings=16, random_state=0).partial_fit(X[:60]).partial_fit(X[60:])


def fit_npy(rng, folder):
    path = folder / "rows.npy"
    np.save(path, blocks(rng, 400, 12))
    CCOT(random_state=0, n_jobs=2).fit(path)
    path.unlink()


def fit_memmap(rng, folder):
    path = folder / "mapped.npy"
    np.save(path, blocks(rng, 400, 12))
    TransportCoclustering(n_init=2, random_state=0).fit(np.load(path, mmap_mode="r"))
    path.unlink()


def fit_parquet(rng, folder):
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder / "rows.parquet"
    X = blocks(rng, 300, 12)
    pq.write_table(pa.table({f"c{j}": column for j, column in enumerate(X.T)}), path)
    CCOT(random_state=0).fit(path)
    path.unlink()


def fit_function(rng, folder):
    X = blocks(rng, 400, 12)
    source = FunctionSource(lambda start, stop: X[start:stop], X.shape)
    CCOT(random_state=0).fit(source)


def fit_dask(rng, folder):
    import dask.array as da

    CCOT(random_state=0).fit(da.from_array(blocks(rng, 300, 12), chunks=(25, 12)))


def fit_gw(rng, folder):
    loss = "kl" if rng.uniform() < 0.5 else "square"
    CCOTGW(loss=loss, exact_refinement=bool(rng.integers(2))).fit(blocks(rng, 40, 24))


def fit_landmarks(rng, folder):
    CCOTGW(n_support=10, kernel_rank=10, random_state=0).fit(blocks(rng, 60, 24))


def fit_gaussian(rng, folder):
    X = blocks(rng)
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    model = TransportCoclustering(n_init=2, random_state=0).fit(X)
    model.score(X)


def fit_counts(rng, folder):
    X = sp.csr_array(rng.poisson(0.2 * blocks(rng)).astype(float))
    TransportCoclustering(family="poisson", n_init=2, random_state=0).fit(X)


def fit_and_keep(rng, folder):
    path = TransportCoclustering(n_init=2, random_state=0).fit(blocks(rng)).save(folder / "m.ccot")
    load_model(path)
    path.unlink()


def fit_rival(rival, n_jobs, worth_processes):
    def fit(rng, folder):
        with patch("ccot.baselines.base._WORTH_PROCESSES", worth_processes):
            rival(3, 3, n_init=4, max_iter=30, n_jobs=n_jobs, random_state=0).fit(blocks(rng))

    return fit


WORK: dict[str, Callable] = {
    "CCOT, in memory": fit_in_memory,
    "CCOT, threads": fit_threads,
    "CCOT, processes": fit_processes,
    "CCOT, sparse": fit_sparse,
    "CCOT, rows that arrive": fit_arriving,
    "CCOT, .npy": fit_npy,
    "CCOT, Parquet": fit_parquet,
    "CCOT, function": fit_function,
    "CCOT, Dask": fit_dask,
    "CCOTGW": fit_gw,
    "CCOTGW, landmarks": fit_landmarks,
    "TransportCoclustering, missing entries": fit_gaussian,
    "TransportCoclustering, sparse counts": fit_counts,
    "TransportCoclustering, memory-mapped": fit_memmap,
    "TransportCoclustering, saved and loaded": fit_and_keep,
    **{f"{rival.__name__}, threads": fit_rival(rival, 2, np.inf) for rival in RIVALS},
    "TwoSidedKMeans, processes": fit_rival(TwoSidedKMeans, 2, 0.0),
    "DoubleKMeans, processes": fit_rival(DoubleKMeans, 2, 0.0),
}


# What is looked at ----------------------------------------------------------------------------


def look(process: psutil.Process, folder: Path) -> dict:
    """Return what the process holds at this moment."""
    gc.collect()
    children = process.children(recursive=True)
    # joblib keeps an empty folder of every call to processes until the interpreter exits.
    shared = list(Path("/dev/shm").glob(f"joblib_memmapping_folder_{process.pid}_*"))
    return {
        "megabytes": process.memory_info().rss / 2**20,
        "children_megabytes": sum(_resident(child) for child in children),
        "files": process.num_fds(),
        "threads": process.num_threads(),
        "children": len(children),
        "temporary_files": sum(_count_files(place) for place in (folder, *shared)),
        "folders_of_joblib": len(shared),
    }


def _resident(child: psutil.Process) -> float:
    try:
        return child.memory_info().rss / 2**20
    except psutil.NoSuchProcess:
        return 0.0


def _count_files(place: Path) -> int:
    return sum(not path.is_dir() for path in place.rglob("*"))


def soak(n_fits: int, every: int, report: Callable[[str], None] = print) -> dict:
    """Make fits of every kind in turn, and return what was seen meanwhile."""
    process, samples, done = psutil.Process(), [], Counter()
    begun = time.perf_counter()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="soak-")))
        stack.enter_context(patch.object(tempfile, "tempdir", str(folder)))
        stack.enter_context(patch.dict(os.environ, TMPDIR=str(folder)))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        for name, value in SMALL.items():
            stack.enter_context(patch(name, value))
        work = itertools.islice(itertools.cycle(WORK.items()), n_fits)
        for fit, (name, make) in enumerate(work, 1):
            make(np.random.default_rng(fit), folder)
            done[name] += 1
            if fit % every == 0 or fit == n_fits:
                samples.append({"fit": fit, **look(process, folder)})
                report(f"{time.perf_counter() - begun:6.0f} s {samples[-1]}")
        get_reusable_executor().shutdown(wait=True)
        end = look(process, folder)
        children = process.children(recursive=True)
        remaining = [" ".join(["python", *child.cmdline()[1:]]) for child in children]
    return {
        "fits": n_fits,
        "seconds": time.perf_counter() - begun,
        "kinds": dict(done),
        "samples": samples,
        "after_shutdown": end,
        "processes_after_shutdown": remaining,
        # Pools that libraries keep for the next call; the rest of the threads is native.
        "python_threads": sorted(thread.name for thread in threading.enumerate()),
        **growth(samples),
    }


def growth(samples: list[dict]) -> dict:
    """Return what grew after the first quarter of the fits, by the median of all slopes."""
    late = [s for s in samples if s["fit"] >= samples[-1]["fit"] / 4]
    slopes = {
        name: [
            (b[name] - a[name]) / (b["fit"] - a["fit"]) for a, b in itertools.combinations(late, 2)
        ]
        for name in ("megabytes", "children_megabytes")
    }
    return {
        "warm_up_fits": late[0]["fit"],
        "growth_per_100_fits": {
            name: 100 * float(np.median(values)) if values else 0.0
            for name, values in slopes.items()
        },
        "left_behind": {
            name: late[-1][name] - late[0][name]
            for name in ("files", "threads", "children", "temporary_files")
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fits", type=int, default=2000)
    parser.add_argument("--every", type=int, default=len(WORK))
    arguments = parser.parse_args()
    seen = soak(arguments.fits, arguments.every)
    print(f"stored {store('soak', seen)}: {seen['growth_per_100_fits']}, {seen['left_behind']}")


if __name__ == "__main__":
    main()
