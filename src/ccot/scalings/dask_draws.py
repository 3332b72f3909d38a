"""Draws of one matrix, solved by the workers of a Dask cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ccot.runtime.types import Matrix
from ccot.scalings.draws import DrawPartitions, DrawSolver, solve_alone
from ccot.scalings.steps import join
from ccot.sources.dask_executor import Client, DaskExecutor, Future

# Tasks for each thread of the cluster and round of draws: several, since workers differ in speed.
_TASKS_A_THREAD = 4


def prepare_on_dask(
    executor: DaskExecutor, matrix: Matrix, draws: np.ndarray, *options: Any
) -> DaskDrawSolver:
    """Return a solver of draws of the rows that the executor gathered last."""
    local = DrawSolver.prepare(matrix, draws, *options)
    # Computed again on the cluster from the rows held there: the same numbers, no transfer.
    again = DrawSolver.prepare, executor.gathered, draws[:4], *options
    remote = executor.client.submit(*again, pure=False)
    return DaskDrawSolver(**vars(local), client=executor.client, remote=remote)


@dataclass(frozen=True)
class DaskDrawSolver(DrawSolver):
    """A solver whose batches are solved by the workers, which hold the same solver, ``remote``."""

    client: Client
    remote: Future

    def partitions(self, draws: np.ndarray) -> DrawPartitions:
        """Solve draws on the cluster and read the steps of their scalings."""
        n_workers = _TASKS_A_THREAD * max(1, sum(self.client.nthreads().values()))
        futures = [
            self.client.submit(solve_alone, self.remote, task, pure=False)
            for task in self.tasks(draws, n_workers)
        ]
        return join(self.client.gather(futures))
