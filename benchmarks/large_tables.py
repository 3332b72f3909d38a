"""``ccot fit`` on a file of a million rows and fifty columns of several kinds: time and memory.

Five planted clusters of rows; twenty columns of numbers, ten of counts, fifteen of words, three of
yes or no, one of dates, one of money, with gaps. The table is written once as CSV and once as
Parquet. Every run is a process of its own: what it took is what the system saw, from the start of
Python to the last file of results, the report included.
"""

import argparse
import csv
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.record import of_this_run, store
from ccot.metrics import error_rate

N_COLUMNS, N_CLUSTERS, GAPS = 50, 5, 0.05
# CSV takes more memory and comes last.
FORMATS = ("parquet", "csv")


def planted(n_rows: int, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """A table of fifty columns, and the clusters of its rows."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(N_CLUSTERS, size=n_rows)
    columns: dict[str, np.ndarray] = {}

    def mean(spread: float) -> np.ndarray:
        return (spread * rng.normal(size=N_CLUSTERS))[truth]

    def words(levels: list[str]) -> np.ndarray:
        share = np.exp(rng.normal(size=(N_CLUSTERS, len(levels))))
        share = (share / share.sum(axis=1, keepdims=True)).cumsum(axis=1)
        drawn = (share[truth] < rng.random((n_rows, 1))).sum(axis=1)
        return np.array(levels, dtype=object)[drawn.clip(0, len(levels) - 1)]

    for j in range(20):
        unit = 10 ** rng.uniform(-2, 4)
        columns[f"number{j}"] = np.round((mean(0.8) + rng.normal(size=n_rows)) * unit, 3)
    for j in range(10):
        columns[f"count{j}"] = rng.poisson(np.exp(1.2 + mean(0.4))).astype(float)
    for j in range(15):
        columns[f"word{j}"] = words([f"level {j} {k}" for k in range(3 + j % 6)])
    for j in range(3):
        columns[f"answer{j}"] = words(["yes", "no"])
    days = (18_000 + 400 * (mean(1.0) + rng.normal(size=n_rows))).astype(np.int64)
    columns["date"] = days.astype("datetime64[D]").astype(str).astype(object)
    amounts = np.exp(4 + mean(0.5) + 0.5 * rng.normal(size=n_rows))
    columns["price"] = np.array([f"${amount:,.2f}" for amount in amounts], dtype=object)
    for values in columns.values():
        values[rng.random(n_rows) < GAPS] = None if values.dtype == object else np.nan
    return pd.DataFrame(columns), truth


def write(folder: Path, n_rows: int) -> None:
    """Write the table in both formats, and its clusters."""
    frame, truth = planted(n_rows)
    frame.to_parquet(folder / "table.parquet")
    frame.to_csv(folder / "table.csv", index=False)
    np.save(folder / "truth.npy", truth)


def measure(path: Path, truth: np.ndarray) -> dict:
    """Run the command line on a file, in a process of its own."""
    out = path.with_name(f"{path.suffix[1:]}-results")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    command = [sys.executable, "-m", "ccot", "fit", str(path), "--out", str(out), "--json", "-q"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    with (out / "row_labels.csv").open(newline="") as file:
        labels = np.array([int(row["cluster"]) for row in csv.DictReader(file)])
    return {
        "format": path.suffix[1:],
        "megabytes_of_file": round(path.stat().st_size / 1e6),
        "seconds": round(wall, 1),
        "processor_seconds": round(
            after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1
        ),
        # The largest of all processes so far.
        "gigabytes": round(after.ru_maxrss * 1024 / 1e9, 2),
        "row_clusters": len(np.unique(labels)),
        "row_error": round(error_rate(truth, labels), 5),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", help="where the files are, or are to be kept")
    arguments = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(arguments.threads)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(arguments.folder or temporary)
        if not (folder / "truth.npy").exists():
            write(folder, arguments.rows)
        truth, runs = np.load(folder / "truth.npy"), []
        for kind in FORMATS:
            runs.append(of_this_run(measure(folder / f"table.{kind}", truth)))
            print(runs[-1], flush=True)
    shape = [len(truth), N_COLUMNS]
    result = {"shape": shape, "clusters": N_CLUSTERS, "threads": arguments.threads, "runs": runs}
    print(f"stored {store('large_tables', result)}")


if __name__ == "__main__":
    main()
