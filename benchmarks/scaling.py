"""What TransportCoclustering costs: end to end on real text, and a sweep as the matrix grows.

End to end it finds its numbers, beside ``SpectralCoclustering`` told the true one; the two take
turns, so that a busy machine slows both, and get no empty rows and columns, which crash the rival.
Real text is left out where it is absent. A sweep is timed on generated counts of a fixed number of
entries a row, while the number of rows grows.

With ``--beside FOLDER``, the checkout of another version, nothing is measured but the same fits by
both versions, in turns and each in a process of its own: processor time with one thread, and time
on the clock with two, which a version that knows ``n_jobs`` gets as ``n_jobs=2``.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import SpectralCoclustering

from benchmarks.data import PROJECT, Labelled, data_home, need_data, read, without_empty
from benchmarks.record import store
from ccot import TransportCoclustering
from ccot.blocks.problem import make_blocks, make_problem
from ccot.blocks.sweep import sweep

SETS = ("classic3", "la1")
ROWS = (1_000, 3_000, 10_000, 30_000, 100_000)
N_COLUMNS, ENTRIES, N_CLUSTERS = 2_000, 50, 30
# Run by other versions, too: it needs nothing of them but the estimator. The first fit is for what
# is imported on the way.
ONE_FIT = """
import inspect, json, sys, time
import scipy.sparse as sp
from ccot import TransportCoclustering

matrix = sp.load_npz(sys.argv[1])
known = "n_jobs" in inspect.signature(TransportCoclustering).parameters
TransportCoclustering(2, 2, random_state=0).fit(matrix[:200])
model = TransportCoclustering(random_state=0, **({"n_jobs": int(sys.argv[2])} if known else {}))
wall, cpu = time.perf_counter(), time.process_time()
model.fit(matrix)
wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
print(json.dumps({"wall": round(wall, 3), "processor": round(cpu, 3)}))
"""


def seconds(work: Callable[[], object]) -> tuple[float, float]:
    """Time on the clock, and of the processor: others on the machine lengthen only the first."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def peak_megabytes(work: Callable[[], object]) -> float:
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def end_to_end(data: Labelled, repeats: int) -> dict:
    matrix = without_empty(data.matrix)[0]
    fits = {
        "ours": lambda: TransportCoclustering(random_state=0).fit(matrix),
        "spectral": lambda: SpectralCoclustering(data.n_classes, random_state=0).fit(matrix),
    }
    times = {name: [] for name in fits}
    for _ in range(repeats):
        for name, fit in fits.items():
            times[name].append(seconds(fit))
    ours, spectral = (np.median(times[name], axis=0) for name in fits)
    nnz, (n_rows, n_columns) = matrix.nnz, matrix.shape
    return {
        "set": data.name,
        "shape": [n_rows, n_columns],
        "nnz": nnz,
        "repeats": repeats,
        "seconds_ours": round(float(ours[0]), 3),
        "seconds_spectral": round(float(spectral[0]), 3),
        "ratio": round(float(ours[0] / spectral[0]), 2),
        "ratio_of_processor_time": round(float(ours[1] / spectral[1]), 2),
        "all_seconds": {name: np.round(seen, 3).tolist() for name, seen in times.items()},
        **{f"peak_megabytes_{name}": round(peak_megabytes(fit), 1) for name, fit in fits.items()},
        "matrix_megabytes": round((12 * nnz + 4 * n_rows) / 1e6, 1),
    }


def counts(n_rows: int, rng: np.random.Generator) -> sp.csr_array:
    """Sparse counts with the same expected number of entries in every row."""
    columns = rng.integers(N_COLUMNS, size=n_rows * ENTRIES).astype(np.int32)
    ends = np.arange(0, n_rows * ENTRIES + 1, ENTRIES, dtype=np.int32)
    matrix = sp.csr_array((np.ones(len(columns)), columns, ends), shape=(n_rows, N_COLUMNS))
    matrix.sum_duplicates()
    return matrix


def one_sweep(n_rows: int, repeats: int) -> dict:
    rng = np.random.default_rng(0)
    matrix = counts(n_rows, rng)
    problem = make_problem(matrix, "poisson")
    labels = (rng.integers(N_CLUSTERS, size=size) for size in matrix.shape)
    blocks = make_blocks(problem, *labels)
    times = [seconds(lambda: sweep(problem, blocks, max_iter=1)) for _ in range(repeats)]
    return {"rows": n_rows, "nnz": matrix.nnz, "seconds": min(cpu for _, cpu in times)}


def in_own_process(checkout: Path, matrix: Path, threads: int) -> dict:
    """Time one fit by the version of ccot in a checkout; both times in seconds."""
    own = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    own |= {"PYTHONPATH": str(checkout / "src")} | (
        {"OMP_NUM_THREADS": "1"} if threads == 1 else {}
    )
    done = subprocess.run(
        [sys.executable, "-c", ONE_FIT, str(matrix), str(threads)],
        env=own, cwd=matrix.parent, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(done.stdout)


def beside(other: Path, repeats: int) -> dict:
    """Fit by another version and by this one, in turns."""
    asked = ["git", "rev-parse", "--short=12", "HEAD"]
    commit = subprocess.run(asked, cwd=other, capture_output=True, text=True, check=True)
    cells = []
    for name in SETS:
        data = read(need_data() / "text" / f"{name}.npz")
        assert data is not None
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "matrix.npz")
            sp.save_npz(path, sp.csr_array(without_empty(data.matrix)[0]))
            for threads, what in ((1, "processor"), (2, "wall")):
                fit = partial(in_own_process, matrix=path, threads=threads)
                pairs = [[fit(one)[what] for one in (other, PROJECT)] for _ in range(repeats)]
                before, now = np.median(pairs, axis=0).tolist()
                cells.append(
                    {"set": name, "threads": threads, "what": what, "before": before, "now": now}
                    | {"ratio": round(now / before, 2), "all_seconds": pairs}
                )
                print(cells[-1], flush=True)
    return {"other_commit": commit.stdout.strip(), "repeats": repeats, "cells": cells}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--beside", type=Path, metavar="FOLDER")
    arguments = parser.parse_args()
    if arguments.beside:
        found = beside(arguments.beside.resolve(), arguments.repeats)
        print(f"stored {store('scaling_beside', found)}")
        return
    sweeps = [one_sweep(n_rows, 2 * arguments.repeats) for n_rows in ROWS]
    nnz, times = (np.array([s[key] for s in sweeps], dtype=float) for key in ("nnz", "seconds"))
    exponent = float(np.polyfit(np.log(nnz), np.log(times), 1)[0])
    print(*sweeps, f"seconds grow like nnz to the {exponent:.2f}", sep="\n", flush=True)
    cells, home = [], data_home()
    for name in SETS if home else ():
        data = read(home / "text" / f"{name}.npz")
        assert data is not None
        cells.append(end_to_end(data, arguments.repeats))
        print(cells[-1], flush=True)
    result = {
        "cells": cells,
        "sweeps": sweeps,
        "exponent": round(exponent, 3),
        "columns": N_COLUMNS,
        "entries_a_row": ENTRIES,
        "clusters": N_CLUSTERS,
    }
    print(f"stored {store('scaling', result)}")


if __name__ == "__main__":
    main()
