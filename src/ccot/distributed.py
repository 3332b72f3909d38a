"""The Dask side: draws are solved and rows placed on the workers that hold the data.

Every task can be run again from the blocks of the array, so a worker that is lost costs time and
nothing else. A fit sends one task a block to pick the rows that vote, a few tasks a worker for each
round of draws, and one task a block to place all rows: iterations run within tasks.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ccot.arrays import one_blas_thread
from ccot.draws import Ballots, DrawSolver, cast_alone, join_ballots
from ccot.progress import Report, counted, silent
from ccot.sources import DaskSource, RowSource
from ccot.sources.base import checked_rows, split_by_part, stack_rows

Matrix = Any
Client = Any
Future = Any

# Tasks of a round of draws for each thread of the cluster: enough to even out slower workers.
_TASKS_A_THREAD = 4


def find_cluster(source: RowSource, report: Report = silent) -> Cluster | None:
    """Return the cluster whose client is active, if the source is a Dask array."""
    if not isinstance(source, DaskSource) or "distributed" not in sys.modules:
        return None
    from distributed import default_client

    try:
        return Cluster(source, default_client(), report)
    except ValueError:
        return None


class Cluster:
    """The workers of a ``dask.distributed`` client.

    Parameters
    ----------
    source : DaskSource
        The matrix.
    client : distributed.Client
        The client.
    report : Report, optional
        Told how far it is.
    """

    def __init__(self, source: DaskSource, client: Client, report: Report = silent) -> None:
        self.source, self.client, self.report = source, client, report
        self._pool: Future = None

    def gather(self, indices: np.ndarray) -> Matrix:
        """Return the rows at ascending indices, and keep them on the cluster too."""
        from dask.delayed import delayed

        blocks = dict(zip((part.start for part in self.source.parts), self._blocks(), strict=True))
        picks = [
            delayed(_pick)(blocks[part.start], within, part.start, self.source.allow_nan)
            for part, within in split_by_part(indices, self.source.parts)
        ]
        self._pool = self.client.compute(delayed(stack_rows)(picks, self.source.shape[1]))
        return self._pool.result()

    def prepare(self, matrix: Matrix, draws: np.ndarray, **how: Any) -> ClusterSolver:
        """Return a solver of draws of the gathered rows that works on the cluster."""
        here = DrawSolver.prepare(matrix, draws, **how)
        # Made again over there from the rows that are there: the same numbers, nothing sent.
        there = self.client.submit(DrawSolver.prepare, self._pool, draws[:4], **how, pure=False)
        same = {field.name: getattr(here, field.name) for field in fields(DrawSolver)}
        return ClusterSolver(**same, client=self.client, there=there)

    def each_part(
        self, work: Callable[..., Any], extras: Iterable[Any], first: int = 0
    ) -> Iterator[Any]:
        """Yield ``work(rows, extra)`` for every block of the array from the first, in order."""
        from dask.delayed import delayed

        worker, parts = delayed(work, pure=False), self.source.parts[first:]
        tasks = [
            delayed(_work)(worker, block, extra, part.start, self.source.allow_nan)
            for part, block, extra in zip(parts, self._blocks()[first:], extras, strict=True)
        ]
        futures = self.client.compute(tasks)
        for _ in counted(range(len(tasks)), "parts read", self.report):
            # Let go of each answer as it is taken: neither side keeps them all.
            yield futures.pop(0).result()

    def _blocks(self) -> list[Any]:
        sizes = self.source.array.chunks[0]
        return [block for block, size in zip(self.source.blocks(), sizes, strict=True) if size]


@dataclass(frozen=True)
class ClusterSolver(DrawSolver):
    """A solver of draws that has the batches solved by workers.

    Attributes
    ----------
    client : distributed.Client
        The client.
    there : Future
        The same solver on the cluster.
    """

    client: Client
    there: Future

    def ballots(
        self, draws: np.ndarray, n_row_clusters: int | None, n_column_clusters: int | None
    ) -> Ballots:
        """Solve draws on the cluster and read the steps of their scalings."""
        numbers = (n_row_clusters, n_column_clusters)
        n_workers = _TASKS_A_THREAD * max(1, sum(self.client.nthreads().values()))
        futures = [
            self.client.submit(cast_alone, self.there, task, *numbers, pure=False)
            for task in self.tasks(draws, n_workers)
        ]
        return join_ballots(self.client.gather(futures))


def _pick(block: Matrix, within: np.ndarray, first: int, allow_nan: bool) -> Matrix:
    return checked_rows(block[within], allow_nan, lambda row: first + int(within[row]))


def _work(work: Callable, block: Matrix, extra: Any, first: int, allow_nan: bool) -> Any:
    with one_blas_thread():
        return work(checked_rows(block, allow_nan, lambda row: first + row), extra)
