"""Many starts, one loop: draw partitions, make a state of them, improve it, read partitions off."""

import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from threadpoolctl import ThreadpoolController

from ccot.baselines.partitions import Method, NearestMeans, TwoWay, first_labels
from ccot.runtime.backends import one_blas_thread
from ccot.runtime.types import Matrix

# Seconds of work from which it pays to start processes.
_WORTH_PROCESSES = 2.0
# Partitions that a start may begin with.
KINDS = ("double_kmeans", "k-means++", "kmeans", "random")


@dataclass(frozen=True)
class Start:
    """The result of one start: partitions, in which clusters may be empty, and the last state."""

    row_labels: np.ndarray
    column_labels: np.ndarray
    criterion: float
    path: np.ndarray  # the criterion before the first step and after each
    n_iter: int
    converged: bool
    state: Any = None


def run_start(method: Method, state: Any, max_iter: int, tol: float) -> Start:
    """Return the result of stepping until the criterion changes by ``tol`` of its size or less."""
    path, converged = [state.criterion], False
    while not converged and len(path) <= max_iter:
        state = method.step(state)
        path.append(state.criterion)
        converged = abs(path[-1] - path[-2]) <= tol * abs(path[-1])
    rows, columns = method.labels(state)
    return Start(rows, columns, path[-1], np.array(path), len(path) - 1, converged, state)


@dataclass(frozen=True)
class FirstPartitions:
    """Where the starts of every baseline come from, as ``init`` says."""

    means: NearestMeans  # double K-means of the matrix
    points: TwoWay  # rows and columns whose distances K-means and K-means++ take

    @classmethod
    def of(cls, matrix: Matrix, shape: tuple[int, int]) -> "FirstPartitions":
        """Return the starts of a matrix that is its own set of points."""
        means = NearestMeans.of(matrix, shape)
        return cls(means, means.matrix)

    def draw(self, kind: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Return partitions of the rows and of the columns, no cluster empty."""
        rng = np.random.default_rng(seed)
        each = "k-means++" if kind == "double_kmeans" else kind
        rows = first_labels(each, self.points.by_row, self.means.shape[0], rng)
        columns = first_labels(each, self.points.by_column, self.means.shape[1], rng)
        if kind == "double_kmeans":
            end = run_start(self.means, self.means.start_from(rows, columns), 300, 1e-6)
            rows, columns = end.row_labels, end.column_labels
        return rows, columns


def run_all(run: Callable[[Any], Any], tasks: Sequence[Any], n_jobs: int | None) -> list[Any]:
    """Return the results of all tasks, by threads, or by processes where the first takes long."""
    # The arithmetic libraries get one thread each, so that sums are the same to the last bit.
    with one_blas_thread():
        start = time.perf_counter()
        first = _run_in_thread(run, tasks[0])
        expected = (time.perf_counter() - start) * (len(tasks) - 1)
        if effective_n_jobs(n_jobs) > 1 and expected > _WORTH_PROCESSES:
            try:
                work = (delayed(_run_in_process)(run, task) for task in tasks[1:])
                return [first, *Parallel(n_jobs=n_jobs, prefer="processes")(work)]
            except BrokenProcessPool:
                warnings.warn(
                    "a worker process was lost, perhaps for lack of memory: all starts are made by "
                    "threads of this process",
                    RuntimeWarning,
                    stacklevel=2,
                )
        work = (delayed(_run_in_thread)(run, task) for task in tasks[1:])
        return [first, *Parallel(n_jobs=n_jobs, require="sharedmem")(work)]


def _run_in_thread(run: Callable[[Any], Any], task: Any) -> Any:
    # OpenMP counts its threads anew in every thread, so the limit is set in each of them.
    with _libraries().limit(limits=1, user_api="openmp"):
        return run(task)


def _run_in_process(run: Callable[[Any], Any], task: Any) -> Any:
    with one_blas_thread():
        return _run_in_thread(run, task)


_libraries = cache(ThreadpoolController)
