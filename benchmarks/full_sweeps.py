"""Sweeps over all rows of a matrix that is read row by row: on a cluster, and what they gain.

``cluster``: two workers on this machine, each of which may take 1.5 GB, make and sweep sparse
counts of 2,000,000 x 2,000 block by block, until one label in 10,000 moves. The fit is made
undisturbed, again while one worker is killed as the sample is read and another one in a sweep, and
once more without Dask over the same blocks. ``gain``: one sweep, the default, and sweeps until
nothing moves, on simulated counts and on real ones of which a quarter of the rows are searched::

    python -m benchmarks.full_sweeps --parts cluster gain
"""

import argparse
import os
import signal
import time
import warnings
from tempfile import TemporaryDirectory

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import normalized_mutual_info_score

from benchmarks.data import labelled
from benchmarks.large_blocks import CONTRAST, DENSE
from benchmarks.record import RESULTS, load, of_this_run, store
from ccot import TransportCoclustering
from ccot.blocks import streaming
from ccot.sources import FunctionSource

SHAPE, PART_ROWS, ENTRIES_A_ROW = (2_000_000, 2_000), 20_000, 20
WORKER_BYTES = 1_500_000_000
TOL = 1e-4
# Passes that are compared: the rows placed once, the default, until nothing moves.
PASSES = (1, 4, None)
SEEDS = range(3)
# Sets with fewer rows have too few for a sample.
LEAST_ROWS = 2000


def planted(first: int, last: int, n_columns: int, contrast: float = CONTRAST):
    """Return counts of some rows, the same each time, and the clusters of the rows."""
    rng, n_kinds = np.random.default_rng(first), int(DENSE.max()) + 1
    rows = rng.integers(len(DENSE), size=last - first)
    weight = np.ones((len(DENSE), n_kinds))
    np.put_along_axis(weight, DENSE, contrast, axis=1)
    share = np.cumsum(weight / weight.sum(axis=1, keepdims=True), axis=1)
    drawn = rng.random((len(rows), ENTRIES_A_ROW))
    kinds = (drawn[:, :, None] > share[rows, None, :-1]).sum(axis=2)
    # Columns at the head of their kind are hit more often than those at its end.
    within = rng.random(drawn.shape) ** 1.5 * (n_columns // n_kinds)
    columns = kinds * (n_columns // n_kinds) + within.astype(np.int32)
    starts = np.arange(0, drawn.size + 1, ENTRIES_A_ROW)
    entries = np.ones(drawn.size, np.float32), columns.ravel().astype(np.int32), starts
    made = sp.csr_array(entries, shape=(len(rows), n_columns))
    made.sum_duplicates()
    return made, rows


def planted_rows(first: int, last: int) -> sp.csr_array:
    return planted(first, last, SHAPE[1])[0]


def planted_array():
    """Return the counts as a Dask array; workers make every block when they need it."""
    import dask.array as da

    def make(block_id=None):
        first = block_id[0] * PART_ROWS
        return planted_rows(first, first + PART_ROWS)

    chunks = (PART_ROWS,) * (SHAPE[0] // PART_ROWS), (SHAPE[1],)
    empty = sp.csr_array((0, 0), dtype=np.float32)
    return da.map_blocks(make, chunks=chunks, dtype=np.float32, meta=empty)


def peak_megabytes(pid: int) -> float:
    with open(f"/proc/{pid}/status") as status:
        line = next(line for line in status if line.startswith("VmHWM"))
    return round(int(line.split()[1]) / 1e3, 1)


class Watch:
    """Follows a fit on a cluster: tasks and seconds of every pass; kills workers if told to."""

    def __init__(self, client, kill: bool) -> None:
        self.client, self.killed, self.passes = client, [], []
        # The stage, and the number of parts that are read, at which a worker is killed.
        self.to_kill = {"sample": 20, "pass 3": 40} if kill else {}
        self.phase, self.peaks = "sample", {}
        self.clock, self.n_tasks = time.perf_counter(), self.count()

    def __call__(self, message: str, done: float = 0, total: float = 0) -> None:
        if message == "parts read" and done == self.to_kill.get(self.phase):
            self.kill()
        if message.startswith("pass "):
            number, now, n_tasks = message.split()[1], time.perf_counter(), self.count()
            seen = {"seconds": round(now - self.clock, 1), "tasks": n_tasks - self.n_tasks}
            self.passes.append({"moved": message.split(": ")[1], **seen})
            self.clock, self.n_tasks, self.phase = now, n_tasks, f"pass {int(number) + 1}"
            print(self.passes[-1], flush=True)
        elif message.endswith("are searched for blocks"):
            self.clock, self.n_tasks = time.perf_counter(), self.count()

    def count(self) -> int:
        """Return the number of tasks that the scheduler has seen finish."""
        return self.client.run_on_scheduler(
            lambda dask_scheduler: sum(
                prefix.state_counts["memory"] for prefix in dask_scheduler.task_prefixes.values()
            )
        )

    def look(self) -> None:
        """Note the peaks of memory of the workers that there are."""
        self.peaks |= {pid: peak_megabytes(pid) for pid in self.client.run(os.getpid).values()}

    def kill(self) -> None:
        self.look()
        pid = min(self.client.run(os.getpid).values())
        os.kill(pid, signal.SIGKILL)
        self.killed.append(self.phase)
        print(f"killed a worker: {self.phase}", flush=True)
        del self.to_kill[self.phase]


def settle(X, watch=0) -> tuple[TransportCoclustering, float]:
    model = TransportCoclustering(
        n_row_clusters=len(DENSE),
        n_column_clusters=int(DENSE.max()) + 1,
        n_init=1,
        random_state=0,
        max_passes=None,
        tol=TOL,
        verbose=watch,
    )
    begun = time.perf_counter()
    model.fit(X)
    return model, round(time.perf_counter() - begun, 1)


def on_cluster(kill: bool) -> tuple[TransportCoclustering, dict]:
    """Fit with two workers that may take 1.5 GB each; return the model and what was seen."""
    from distributed import Client, LocalCluster

    with (
        TemporaryDirectory() as folder,
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            memory_limit=WORKER_BYTES,
            dashboard_address=None,
            local_directory=folder,
        ) as cluster,
        Client(cluster) as client,
    ):
        watch = Watch(client, kill)
        model, seconds = settle(planted_array(), watch)
        watch.look()
        return model, {
            "how": "two workers, one killed while the sample is read, one in a sweep"
            if kill
            else "two workers",
            "seconds": seconds,
            "passes": watch.passes,
            "killed": watch.killed,
            "worker_megabytes": sorted(watch.peaks.values()),
        }


def on_a_cluster() -> dict:
    model, seen = on_cluster(kill=False)
    runs = [seen]
    again, seen = on_cluster(kill=True)
    alone, seconds = settle(FunctionSource(planted_rows, SHAPE, PART_ROWS), watch=1)
    runs += [
        {**seen, **differences(model, again)},
        {"how": "without Dask", "seconds": seconds, **differences(model, alone)},
    ]
    truth = [planted(first, first + PART_ROWS, SHAPE[1])[1] for first in part_starts()]
    return {
        "shape": list(SHAPE),
        "entries": int(sum(planted_rows(first, first + PART_ROWS).nnz for first in part_starts())),
        "blocks": len(part_starts()),
        "client_megabytes": peak_megabytes(os.getpid()),
        "row_nmi": round(normalized_mutual_info_score(np.concatenate(truth), model.row_labels_), 4),
        "runs": [of_this_run(run) for run in runs],
    }


def part_starts() -> range:
    return range(0, SHAPE[0], PART_ROWS)


def differences(one, other) -> dict:
    """Return how many labels and confidences of two fits differ."""
    names = "row_labels_", "column_labels_", "row_confidence_"
    return {
        f"{name.strip('_')}_that_differ": int((getattr(one, name) != getattr(other, name)).sum())
        for name in names
    }


def simulated(seed: int, n_rows: int = 100_000):
    """Return counts whose blocks are faint, as the real ones' are."""
    return planted(seed * n_rows, (seed + 1) * n_rows, SHAPE[1], contrast=3.0)


def gains(name: str, make) -> dict:
    """Return how well rows are found, and ICL, after one sweep, a few, and all."""
    seen: dict[str, list] = {"nmi": [], "icl": [], "sweeps": []}
    for seed in SEEDS:
        X, classes = make(seed)
        streaming.POOL_ROWS, streaming.POOL_ENTRIES = X.shape[0] // 4, 1
        step = -(-X.shape[0] // 8)
        source = FunctionSource(lambda first, last, X=X: X[first:last], X.shape, step)
        fitted = [
            TransportCoclustering(
                n_row_clusters=len(np.unique(classes)), random_state=seed, max_passes=passes
            ).fit(source)
            for passes in PASSES
        ]
        seen["nmi"].append(
            [float(normalized_mutual_info_score(classes, one.row_labels_)) for one in fitted]
        )
        seen["icl"].append([one.icl_ for one in fitted])
        # Those of the sample are counted too.
        first = fitted[0].n_iter_ - 1
        seen["sweeps"].append([one.n_iter_ - first for one in fitted])
    row = {"set": name, "shape": list(X.shape), "seeds": len(SEEDS), **seen}
    print(row, flush=True)
    return of_this_run(row)


def compare() -> list[dict]:
    warnings.simplefilter("ignore")
    real = [*labelled("cells"), *labelled("text")]
    rows = [gains("simulated counts", simulated)]
    for one in real:
        if one.matrix.shape[0] >= LEAST_ROWS:
            rows.append(gains(one.name, lambda seed, one=one: (one.matrix, one.classes)))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", default=["cluster", "gain"])
    parts = parser.parse_args().parts
    for part, measure in (("cluster", on_a_cluster), ("gain", compare)):
        if part in parts:
            measured = measure()
            known = load("full_sweeps") if (RESULTS / "full_sweeps.json").exists() else {}
            result = {key: known[key] for key in ("cluster", "gain") if key in known}
            print(f"stored {store('full_sweeps', result | {part: measured})}")


if __name__ == "__main__":
    main()
