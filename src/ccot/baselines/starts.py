"""Many starts, one loop: a baseline makes a first state, improves it, and reads partitions off it.

:func:`run_start` is the only loop.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from threadpoolctl import ThreadpoolController

from ccot.runtime.backends import one_blas_thread

# Seconds of work from which it pays to start processes.
_WORTH_PROCESSES = 2.0


class State(Protocol):
    """The state of an iterative baseline."""

    @property
    def criterion(self) -> float:
        """Value of the baseline's own criterion."""
        ...


class Method(Protocol):
    """An iterative baseline bound to a matrix."""

    def start(self, rng: np.random.Generator) -> Any:
        """Return a random first state."""
        ...

    def step(self, state: Any) -> Any:
        """Return a state whose criterion is at least as good."""
        ...

    def labels(self, state: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the row and column clusters of a state."""
        ...


@dataclass(frozen=True)
class Start:
    """The result of one start.

    Attributes
    ----------
    row_labels, column_labels : int arrays
        The partitions; a cluster may be empty.
    criterion : float
        The baseline's own criterion at the end.
    path : array of shape (n_iter + 1,)
        The criterion before the first step and after each.
    n_iter : int
        Steps made.
    converged : bool
        Whether the last step changed the criterion by no more than the tolerance.
    state : object
        The last state, for baselines that predict from it.
    """

    row_labels: np.ndarray
    column_labels: np.ndarray
    criterion: float
    path: np.ndarray
    n_iter: int
    converged: bool
    state: Any = None


def run_start(method: Method, state: State, max_iter: int, tol: float) -> Start:
    """Return the result of stepping until the criterion changes no more."""
    path, converged = [state.criterion], False
    while not converged and len(path) <= max_iter:
        state = method.step(state)
        path.append(state.criterion)
        converged = abs(path[-1] - path[-2]) <= tol * abs(path[-1])
    rows, columns = method.labels(state)
    return Start(rows, columns, path[-1], np.array(path), len(path) - 1, converged, state)


def run_all(run: Callable[[Any], Any], tasks: Sequence[Any], n_jobs: int | None) -> list[Any]:
    """Return the results of all tasks, one or a few starts each, run in parallel.

    The arithmetic libraries get one thread each, whatever ``n_jobs`` is, so that sums are the same
    to the last bit. Where the first task takes so long that processes pay, the others are run by
    processes; by threads again if one of these is lost.
    """
    with one_blas_thread():
        start = time.perf_counter()
        first = _run_in_thread(run, tasks[0])
        expected = (time.perf_counter() - start) * (len(tasks) - 1)
        if effective_n_jobs(n_jobs) > 1 and expected > _WORTH_PROCESSES:
            try:
                others = Parallel(n_jobs=n_jobs, prefer="processes")(
                    delayed(_run_in_process)(run, task) for task in tasks[1:]
                )
                return [first, *others]
            except BrokenProcessPool:
                warnings.warn(
                    "a worker process was lost, perhaps for lack of memory: all starts are made by "
                    "threads of this process",
                    RuntimeWarning,
                    stacklevel=2,
                )
        others = Parallel(n_jobs=n_jobs, require="sharedmem")(
            delayed(_run_in_thread)(run, task) for task in tasks[1:]
        )
    return [first, *others]


def _run_in_thread(run: Callable[[Any], Any], task: Any) -> Any:
    # OpenMP counts its threads anew in every thread, so the limit is set in each of them.
    with _libraries().limit(limits=1, user_api="openmp"):
        return run(task)


def _run_in_process(run: Callable[[Any], Any], task: Any) -> Any:
    with one_blas_thread():
        return _run_in_thread(run, task)


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()
