"""Fits that are really killed, disks that are really full, workers that are really lost."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from joblib import parallel_config
from joblib.externals.loky import get_reusable_executor

from benchmarks.faults import CASES, stress
from ccot import CCOT, TransportCoclustering
from ccot.baselines.base import run_all
from ccot.datasets import make_latent_blocks
from ccot.report import write_report
from ccot.scalings.draws import DrawSolver
from tests.faults import no_room

needs_kill = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs kill -9")


@needs_kill
def test_killed_a_few_times_a_fit_comes_to_the_same():
    counts = stress("CCOTGW, landmarks", n_kills=3)
    assert counts["n_kills"] == 3
    assert counts["n_identical"] == counts["n_fits"]


@needs_kill
@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_killed_many_times_a_fit_comes_to_the_same(case):
    counts = stress(case, n_kills=25, seed=1)
    assert counts["n_identical"] == counts["n_fits"]


# Disks ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model():
    matrix = make_latent_blocks([[4, 0], [1, 5]], 300, 40, sigma=0.05, random_state=0).data
    return TransportCoclustering(n_init=2, random_state=0).fit(matrix)


@pytest.mark.parametrize(
    "write", [TransportCoclustering.save, lambda m, path: write_report(path, m)]
)
@pytest.mark.parametrize("n_bytes", [0, 3000])
def test_on_a_full_disk_the_old_file_stays(write, n_bytes, model, tmp_path):
    path = tmp_path / "old"
    path.write_text("what was there")
    with (
        no_room(n_bytes),
        pytest.raises(OSError, match="old was not written: the disk has no room"),
    ):
        write(model, path)
    assert path.read_text() == "what was there"
    assert list(tmp_path.iterdir()) == [path]


def test_long_labels_on_a_full_disk(monkeypatch, tmp_path):
    monkeypatch.setattr("ccot.runtime.spilled.MEMORY_BYTES", 1000)
    monkeypatch.setattr("ccot.scalings.sampling.POOL_ROWS", 100)
    matrix = make_latent_blocks([[4, 0], [1, 5]], 5000, 20, sigma=0.05, random_state=0).data
    fit = CCOT(n_samplings=10, random_state=0).fit
    with no_room(2000), pytest.raises(OSError, match="set TMPDIR to another folder"):
        fit(matrix)


# Workers --------------------------------------------------------------------------------------


def kill_a_worker(marker, killed):
    """Kill the process that says it is at work."""
    while not marker.exists() or not marker.read_text():
        time.sleep(0.01)
    os.kill(int(marker.read_text()), signal.SIGKILL)
    killed.append(True)


@needs_kill
def test_a_lost_process_costs_time_and_not_the_result(tmp_path, monkeypatch):
    matrix = make_latent_blocks([[4, 0, 2], [1, 5, 1]], 400, 60, sigma=0.05, random_state=0).data
    expected = CCOT(n_samplings=200, random_state=0).fit(matrix)
    marker, killed = tmp_path / "at-work", []
    monkeypatch.setattr("ccot.scalings.draws.solve_alone", Slowly(str(marker)))
    killer = threading.Thread(target=kill_a_worker, args=(marker, killed), daemon=True)
    killer.start()
    try:
        with (
            parallel_config("loky", n_jobs=2),
            pytest.warns(RuntimeWarning, match="a worker process died"),
        ):
            model = CCOT(n_samplings=200, random_state=0).fit(matrix)
    finally:
        get_reusable_executor().shutdown(kill_workers=True)
    assert killed
    np.testing.assert_array_equal(model.row_labels_, expected.row_labels_)
    np.testing.assert_array_equal(model.row_confidence_, expected.row_confidence_)


def dies_elsewhere(task):
    """Do a task in this process; in any other, be killed."""
    here, number = task
    if os.getpid() != here:
        os.kill(os.getpid(), signal.SIGKILL)
    return number**2


@needs_kill
@pytest.mark.slow
def test_starts_of_a_lost_process_are_made_here(monkeypatch):
    monkeypatch.setattr("ccot.baselines.base._WORTH_PROCESSES", -1.0)
    tasks = [(os.getpid(), number) for number in range(6)]
    try:
        with pytest.warns(RuntimeWarning, match="a worker process died"):
            assert run_all(dies_elsewhere, tasks, n_jobs=2) == [0, 1, 4, 9, 16, 25]
    finally:
        get_reusable_executor().shutdown(kill_workers=True)


class Slowly:
    """Casts the votes of draws in another process, after saying that it is at it."""

    def __init__(self, marker):
        self.marker = marker

    def __call__(self, *arguments):
        from ccot.scalings.draws import solve_alone

        with open(self.marker, "w") as file:
            file.write(str(os.getpid()))
        time.sleep(2)
        return solve_alone(*arguments)


# Memory ---------------------------------------------------------------------------------------

# Fits with chunks of draws that are as large as those of a GPU, in less memory than these take.
CRAMPED = """
import resource, sys
import numpy as np
from ccot import CCOT
from ccot.runtime import backends as arrays
from ccot.scalings import draws
from ccot.datasets import make_latent_blocks

matrix = make_latent_blocks([[4, 0, 2], [1, 5, 1]], 600, 400, sigma=0.05, random_state=0).data
model = CCOT(n_samplings=200, random_state=0, device="cpu")
model.fit(matrix[:, :50])  # whatever is loaded once is loaded
arrays._CPU_CHUNK_BYTES = 2**30
sizes = []
solve = draws.DrawSolver.solve
def counted(self, some, *precision):
    sizes.append(len(some))
    return solve(self, some, *precision)
draws.DrawSolver.solve = counted
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 200 * 2**20, resource.RLIM_INFINITY))
model.fit(matrix)
print(*sizes)
print(*model.row_labels_)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs to limit memory")
def test_a_chunk_for_which_there_is_no_memory_is_solved_in_parts():
    pytest.importorskip("torch")
    told = subprocess.run(
        [sys.executable, "-c", CRAMPED], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    sizes = [int(size) for size in told[0].split()]
    assert sizes[:2] == [200, 100], "the first chunk was to be too large"
    matrix = make_latent_blocks([[4, 0, 2], [1, 5, 1]], 600, 400, sigma=0.05, random_state=0).data
    expected = CCOT(n_samplings=200, random_state=0).fit(matrix)
    assert told[1].split() == expected.row_labels_.astype(str).tolist()


def test_a_gpu_that_is_too_small_solves_chunks_in_parts(monkeypatch):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    matrix = make_latent_blocks([[4, 0, 2], [1, 5, 1]], 600, 400, sigma=0.05, random_state=0).data
    expected = CCOT(n_samplings=2000, random_state=0, device="cuda").fit(matrix)
    sizes = []
    solve = DrawSolver.solve

    def counted(self, draws, *precision):
        sizes.append(len(draws))
        return solve(self, draws, *precision)

    monkeypatch.setattr(DrawSolver, "solve", counted)
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(1.5e9 / total)
    try:
        model = CCOT(n_samplings=2000, random_state=0, device="cuda").fit(matrix)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert sizes[0] == 2000
    assert sizes[1] == 1000
    np.testing.assert_array_equal(model.row_labels_, expected.row_labels_)
    np.testing.assert_array_equal(model.column_labels_, expected.column_labels_)


def test_one_draw_for_which_there_is_no_memory_is_an_error(monkeypatch):
    def refuse(self, draws, precision=None):
        raise MemoryError("no room for a square")

    monkeypatch.setattr("ccot.scalings.draws.DrawSolver.solve", refuse)
    matrix = make_latent_blocks([[4, 0], [1, 5]], 60, 40, sigma=0.05, random_state=0).data
    with pytest.raises(MemoryError, match="no room for a square"):
        CCOT(n_samplings=4, random_state=0, device="cpu").fit(matrix)


def test_other_errors_of_pytorch_are_not_taken_for_lack_of_memory(monkeypatch):
    def refuse(self, draws, precision=None):
        raise RuntimeError("shapes do not match")

    monkeypatch.setattr("ccot.scalings.draws.DrawSolver.solve", refuse)
    matrix = make_latent_blocks([[4, 0], [1, 5]], 60, 40, sigma=0.05, random_state=0).data
    with pytest.raises(RuntimeError, match="shapes do not match"):
        CCOT(n_samplings=4, random_state=0, device="cpu").fit(matrix)
