"""Rows of a Dask array, worked on by the workers that hold them; any task can be run again."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ccot.runtime.backends import one_blas_thread
from ccot.runtime.run import Progress, counted, no_progress
from ccot.runtime.types import Matrix
from ccot.sources import DaskSource
from ccot.sources.base import add_up, checked_rows, split_by_part, stack_rows, sum_in_tree


@dataclass
class DaskExecutor:
    """The workers of a ``dask.distributed`` client."""

    source: DaskSource
    client: Any
    progress: Progress = no_progress
    # The rows gathered last, on the workers that read them.
    picked: list[Any] = field(default_factory=list)

    def gather(self, indices: np.ndarray) -> Matrix:
        """Return the rows at ascending indices; the workers keep them too."""
        from dask.delayed import delayed

        starts = (part.start for part in self.source.parts)
        blocks = dict(zip(starts, self.source.blocks(), strict=True))
        picks = [
            delayed(_pick)(blocks[part.start], within, part.start, self.source.allow_nan)
            for part, within in split_by_part(indices, self.source.parts)
        ]
        self.picked = self.client.compute(picks)
        rows = counted(self.picked, "parts read", self.progress)
        return stack_rows([one.result() for one in rows], self.source.shape[1])

    def gathered(self) -> Any:
        """Return the rows gathered last, as the cluster will hold them in one place."""
        return self.client.submit(stack_rows, self.picked, self.source.shape[1])

    def each_part(
        self, work: Callable[..., Any], extras: Iterable[Any], first: int = 0
    ) -> Iterator[Any]:
        """Yield ``work(rows, extra)`` for every block of the array from the first, in order."""
        yield from self._taken(self.client.compute(self._tasks(work, extras, first)))

    def sum_parts(self, work: Callable[..., Any]) -> tuple[list[Any], Any]:
        """Return what ``work(rows, None)`` keeps of every block, and the sum of its tables."""
        from dask.delayed import delayed

        tasks = self._tasks(work, [None] * len(self.source.parts))
        # The workers add the tables of blocks as they come; the client gets their sum alone.
        table = sum_in_tree((task[1] for task in tasks), len(tasks), delayed(add_up))
        *kept, table = self.client.compute([*(task[0] for task in tasks), table])
        return list(self._taken(kept)), table.result()

    def _tasks(self, work: Callable[..., Any], extras: Iterable[Any], first: int = 0) -> list[Any]:
        """Return one task for every block of the array from the first."""
        from dask.delayed import delayed

        worker, parts = delayed(work, pure=False), self.source.parts[first:]
        return [
            delayed(_work)(worker, block, extra, part.start, self.source.allow_nan)
            for part, block, extra in zip(parts, self.source.blocks()[first:], extras, strict=True)
        ]

    def _taken(self, futures: list[Any]) -> Iterator[Any]:
        """Yield answers in order; each is let go of when taken: neither side keeps them all."""
        for _ in counted(range(len(futures)), "parts read", self.progress):
            yield futures.pop(0).result()


def get_dask_executor(source: DaskSource, progress: Progress = no_progress) -> DaskExecutor | None:
    """Return the cluster whose client is active; None: there is none."""
    from distributed import default_client

    with suppress(ValueError):
        return DaskExecutor(source, default_client(), progress)


def _pick(block: Matrix, within: np.ndarray, first: int, allow_nan: bool) -> Matrix:
    return checked_rows(block[within], allow_nan, lambda row: first + int(within[row]))


def _work(work: Callable, block: Matrix, extra: Any, first: int, allow_nan: bool) -> Any:
    with one_blas_thread():
        return work(checked_rows(block, allow_nan, lambda row: first + row), extra)
