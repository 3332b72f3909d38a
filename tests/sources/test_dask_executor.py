"""CCOT and TransportCoclustering on a real local cluster of two processes."""

import os
import signal
import threading
import time

import dask.array as da
import joblib
import numpy as np
import pytest
from distributed import Client, LocalCluster

from ccot import CCOT, TransportCoclustering
from ccot.blocks import streaming
from ccot.datasets import make_latent_blocks
from ccot.runtime.run import Run
from ccot.scalings import sampling
from ccot.sources import DaskSource, FunctionSource
from ccot.sources.executors import DaskExecutor, get_executor
from tests.conftest import needs_unix

BLOCKS = make_latent_blocks([[4, 0, 2], [1, 5, 1]], 2000, 40, sigma=0.3, random_state=0)


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    settings = {
        "n_workers": 2,
        "threads_per_worker": 1,
        "processes": True,
        "dashboard_address": ":0",
        "local_directory": tmp_path_factory.mktemp("workers"),
    }
    with LocalCluster(**settings) as cluster, Client(cluster) as client:
        yield client


@pytest.fixture
def small_pool(monkeypatch):
    monkeypatch.setattr(sampling, "POOL_ROWS", 400)


def same(one, other):
    for name in ("row_labels_", "column_labels_", "row_confidence_", "column_confidence_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)
    np.testing.assert_allclose(one.block_means_, other.block_means_, rtol=1e-10)


def slowly(block, marker):
    """Leave a mark that work has begun, and take some time."""
    marker.write(f"{os.getpid()}\n")
    time.sleep(0.05)
    return block


class Marker:
    """A file that grows while workers compute blocks; it travels with the task."""

    def __init__(self, path):
        self.path = str(path)

    def write(self, text):
        with open(self.path, "a") as file:
            file.write(text)

    def lines(self):
        return open(self.path).read().split() if os.path.exists(self.path) else []


def kill_one_at_work(marker, after, killed):
    """Kill a worker once it has been seen at work."""
    while len(marker.lines()) < after:
        time.sleep(0.01)
    pid = int(marker.lines()[-1])
    os.kill(pid, signal.SIGKILL)
    killed.append(pid)


@needs_unix
@pytest.mark.parametrize("after", [3, 25], ids=["while rows are picked", "while rows are placed"])
def test_a_worker_killed_in_the_middle_costs_time_only(client, small_pool, tmp_path, after):
    marker = Marker(tmp_path / "marks")
    array = da.from_array(BLOCKS.data, chunks=(100, 40)).map_blocks(slowly, marker, dtype=float)
    killed = []
    killer = threading.Thread(target=kill_one_at_work, args=(marker, after, killed), daemon=True)
    killer.start()
    there = CCOT(n_samplings=200, random_state=0).fit(array)
    assert killed, "the fit was over before a worker could be killed"
    assert isinstance(get_executor(DaskSource(array), Run()), DaskExecutor)
    here = CCOT(n_samplings=200, random_state=0).fit(BLOCKS.data)
    same(there, here)
    client.wait_for_workers(2, timeout=30)


@pytest.fixture
def small_sample(monkeypatch):
    monkeypatch.setattr(streaming, "POOL_ENTRIES", 1)
    monkeypatch.setattr(streaming, "POOL_ROWS", 200)


def noisy_rows():
    """Return rows that move for several sweeps."""
    return BLOCKS.data + np.random.default_rng(1).normal(scale=5, size=BLOCKS.data.shape)


def swept(X, **options):
    options |= {"n_row_clusters": 2, "n_column_clusters": 3, "n_init": 1, "center": "none"}
    return TransportCoclustering(max_passes=None, tol=0, random_state=0, **options).fit(X)


# While the sample is read, in the first sweep over 20 blocks, and in a later one.
@needs_unix
@pytest.mark.parametrize("kills", [(60,), pytest.param((8, 35, 70), marks=pytest.mark.slow)])
def test_workers_killed_in_any_sweep_cost_time_only(client, small_sample, tmp_path, kills):
    X, marker, killed = noisy_rows(), Marker(tmp_path / "marks"), []
    array = da.from_array(X, chunks=(100, 40)).map_blocks(slowly, marker, dtype=float)
    for after in kills:
        arguments = marker, after, killed
        threading.Thread(target=kill_one_at_work, args=arguments, daemon=True).start()
    there = swept(array)
    assert len(set(killed)) == len(kills), "the fit was over before all workers could be killed"
    same(there, swept(FunctionSource(lambda first, last: X[first:last], X.shape, 100)))
    client.wait_for_workers(2, timeout=30)


def test_every_sweep_has_the_same_tasks(client, small_sample):
    X, counts = noisy_rows(), []

    def follow(message, done=0, total=0):
        if message.startswith("pass "):
            counts.append(n_tasks(client))

    swept(da.from_array(X, chunks=(100, 40)), verbose=follow)
    assert len(counts) > 3
    assert len(set(np.diff(counts))) == 1
    # For each of 20 blocks: it, the sweep, its labels and its tables; tables in 3 groups and one.
    assert np.diff(counts)[0] <= 4 * 20 + 3 + 1 + 1


def test_work_is_done_by_the_workers_and_is_bounded(client, small_pool):
    """Twice the draws are not twice the tasks, and no iteration is a task."""
    array = da.from_array(BLOCKS.data, chunks=(250, 40))
    counts = []
    for n_samplings in (300, 600):
        before = n_tasks(client)
        there = CCOT(n_samplings=n_samplings, random_state=0).fit(array)
        counts.append(n_tasks(client) - before)
        same(there, CCOT(n_samplings=n_samplings, random_state=0).fit(BLOCKS.data))
    assert 2 * 8 < counts[0] <= counts[1] < 100


def n_tasks(client):
    """Tasks that the scheduler has ever seen finish."""
    return client.run_on_scheduler(
        lambda dask_scheduler: sum(
            prefix.state_counts["memory"] for prefix in dask_scheduler.task_prefixes.values()
        )
    )


def test_small_wide_and_new_matrices_on_the_cluster(client, small_pool):
    X = BLOCKS.data[:300]
    here = CCOT(n_samplings=20, random_state=0).fit(X)
    there = CCOT(n_samplings=20, random_state=0).fit(da.from_array(X, chunks=(70, 15)))
    same(there, here)
    turned = CCOT(n_samplings=20, random_state=0).fit(da.from_array(X.T, chunks=(40, 100)))
    np.testing.assert_array_equal(turned.column_labels_, here.row_labels_)
    new = da.from_array(BLOCKS.data[300:500], chunks=(50, 40))
    same(there.partial_fit(new), here.partial_fit(BLOCKS.data[300:500]))


def test_bad_rows_are_named_from_afar(client, small_pool):
    dirty = BLOCKS.data.copy()
    dirty[1234, 5] = np.inf
    with pytest.raises(ValueError, match="infinity in row 1234: drop"):
        CCOT(n_samplings=5, random_state=0).fit(da.from_array(dirty, chunks=(250, 40)))


@pytest.mark.parametrize(
    "backend", ["dask", pytest.param("loky", marks=pytest.mark.slow), "threading"]
)
def test_n_jobs_goes_to_the_backend_of_joblib(client, backend):
    X = BLOCKS.data[:300]
    here = CCOT(n_samplings=60, random_state=0).fit(X)
    before = n_tasks(client)
    with joblib.parallel_config(backend=backend):
        there = CCOT(n_samplings=60, n_jobs=2, random_state=0).fit(X)
    same(there, here)
    assert (n_tasks(client) > before) == (backend == "dask")
