"""TransportCoclustering on sparse counts that grow from a hundred thousand entries to 1e8.

Counts with planted blocks are generated row by row at a fixed number of entries a row; rows and
columns grow together, up to 1e6 x 1e5. Every size is fitted in a process of its own, so that its
peak of memory, the matrix included, is its own too. The largest one must be asked for::

    python -m benchmarks.large_blocks --entries 1e8
"""

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np
import scipy.sparse as sp

from benchmarks.record import RESULTS, load, of_this_run, store
from ccot import TransportCoclustering
from ccot.metrics import error_rate

ENTRIES = ("1e5", "3e5", "1e6", "3e6", "1e7")
ENTRIES_A_ROW, ROWS_A_COLUMN = 100, 10
# How much likelier than elsewhere an entry is where a block is dense; each row cluster has two.
CONTRAST = 6.0
DENSE = np.array([[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 0], [0, 3], [1, 4]])


def planted_counts(n_rows: int, seed: int = 0) -> tuple[sp.csr_array, np.ndarray, np.ndarray]:
    """Sparse counts with 8 x 6 blocks and columns of unlike degrees, and the labels behind them."""
    rng = np.random.default_rng(seed)
    n_columns, n_kinds = n_rows // ROWS_A_COLUMN, int(DENSE.max()) + 1
    rows = rng.integers(len(DENSE), size=n_rows)
    columns = np.sort(rng.integers(n_kinds, size=n_columns))
    ends = np.searchsorted(columns, np.arange(n_kinds + 1))
    weight = np.ones((len(DENSE), n_kinds))
    np.put_along_axis(weight, DENSE, CONTRAST, axis=1)
    share = np.cumsum(weight * np.diff(ends), axis=1)
    share /= share[:, -1:]
    places = np.empty((n_rows, ENTRIES_A_ROW), dtype=np.int32)
    for start in range(0, n_rows, 10_000):
        part = slice(start, start + 10_000)
        drawn = rng.random(places[part].shape)
        kind = (drawn[:, :, None] > share[rows[part], None, :-1]).sum(axis=2)
        # Columns at the head of their kind are hit more often than those at its end.
        within = rng.random(drawn.shape) ** 1.5
        places[part] = ends[kind] + (within * (ends[kind + 1] - ends[kind])).astype(np.int64)
    places.sort(axis=1)
    starts = np.arange(0, places.size + 1, ENTRIES_A_ROW, dtype=np.int32)
    matrix = sp.csr_array((np.ones(places.size), places.ravel(), starts), shape=(n_rows, n_columns))
    matrix.sum_duplicates()
    return matrix, rows, columns


def peak_gigabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def grow(n_entries: int) -> dict:
    matrix, rows, columns = planted_counts(n_entries // ENTRIES_A_ROW)
    made = peak_gigabytes()
    wall, cpu = time.perf_counter(), time.process_time()
    model = TransportCoclustering(random_state=0, verbose=1).fit(matrix)
    return {
        "entries_drawn": n_entries,
        "shape": list(matrix.shape),
        "nnz": int(matrix.nnz),
        "seconds": round(time.process_time() - cpu, 2),
        "seconds_on_the_clock": round(time.perf_counter() - wall, 2),
        "gigabytes_to_generate": round(made, 3),
        "gigabytes": round(peak_gigabytes(), 3),
        "clusters": [model.n_row_clusters_, model.n_column_clusters_],
        "sweeps": model.n_iter_,
        "row_error": round(error_rate(rows, model.row_labels_), 5),
        "column_error": round(error_rate(columns, model.column_labels_), 5),
    }


def in_a_process(n_entries: int) -> dict:
    command = [sys.executable, "-m", "benchmarks.large_blocks", "--one", str(n_entries)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def stored_cells() -> list[dict]:
    """What earlier runs saw: sizes are added one at a time, since the largest takes long."""
    return load("large_blocks")["cells"] if (RESULTS / "large_blocks.json").exists() else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entries", type=float, nargs="+", default=[float(e) for e in ENTRIES])
    parser.add_argument("--one", type=int, help="fit one size, print what was seen")
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(grow(arguments.one)))
        return
    sizes = [int(size) for size in arguments.entries]
    seen = []
    for size in sizes:
        seen.append(of_this_run(in_a_process(size)))
        print(seen[-1], flush=True)
    cells = {cell["entries_drawn"]: cell for cell in [*stored_cells(), *seen]}
    ordered = [cells[size] for size in sorted(cells)]
    nnz, times = (np.array([cell[key] for cell in ordered], float) for key in ("nnz", "seconds"))
    exponent = float(np.polyfit(np.log(nnz), np.log(times), 1)[0]) if len(ordered) > 1 else None
    print(f"seconds grow like nnz to the {exponent}")
    print(f"stored {store('large_blocks', {'cells': ordered, 'exponent': exponent})}")


if __name__ == "__main__":
    main()
