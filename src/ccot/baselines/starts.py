"""Many starts, one loop: make a first state, improve it, read partitions off it."""

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


class Method(Protocol):
    """An iterative baseline bound to a matrix; its states have a ``criterion``."""

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
    """The result of one start: partitions, in which clusters may be empty, and how it got there.

    ``path`` has the criterion before the first step and after each; ``state`` is the last one.
    """

    row_labels: np.ndarray
    column_labels: np.ndarray
    criterion: float
    path: np.ndarray
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
