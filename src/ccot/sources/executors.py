"""Workers that read the rows of a source: threads of this process, or a Dask cluster."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from joblib import Parallel, delayed

from ccot.runtime.backends import one_blas_thread
from ccot.runtime.run import Progress, Run, counted
from ccot.runtime.types import Matrix
from ccot.sources import DaskSource, RowSource
from ccot.sources.base import add_up, checked_rows, split_by_part, stack_rows, sum_in_tree


@dataclass(frozen=True)
class ThreadExecutor:
    """Threads of one process, as many as ``n_jobs`` says."""

    source: RowSource
    n_jobs: int | None
    progress: Progress

    def gather(self, indices: np.ndarray) -> Matrix:
        """Return the rows at ascending indices."""
        return self.source.rows(indices, self.progress)

    def each_part(
        self, work: Callable[..., Any], extras: Iterable[Any], first: int = 0
    ) -> Iterator[Any]:
        """Yield ``work(rows, extra)`` for every part of the source from the first, in order."""
        parts = zip(self.source.parts[first:], extras, strict=True)
        parallel = Parallel(n_jobs=self.n_jobs, require="sharedmem", return_as="generator")
        answers = parallel(delayed(self._work)(work, part, extra) for part, extra in parts)
        return counted(answers, "parts read", self.progress, len(self.source.parts))

    def sum_parts(self, work: Callable[..., Any]) -> tuple[list[Any], Any]:
        """Return what ``work(rows, None)`` keeps of every part, and the sum of its tables."""
        kept, n_parts = [], len(self.source.parts)

        def tables() -> Iterator[Any]:
            for of_the_part, table in self.each_part(work, [None] * n_parts):
                kept.append(of_the_part)
                yield table

        return kept, sum_in_tree(tables(), n_parts)

    def _work(self, work: Callable[..., Any], part: slice, extra: Any) -> Any:
        return work(self.source.read(part), extra)


@dataclass
class DaskExecutor:
    """The workers of a ``dask.distributed`` client; any task can be run again."""

    source: DaskSource
    client: Any
    progress: Progress
    # The rows gathered last, on the workers that read them.
    picked: list[Any] = field(default_factory=list)

    def gather(self, indices: np.ndarray) -> Matrix:
        """Return the rows at ascending indices; the workers keep them too."""
        from dask.delayed import delayed as later

        starts = (part.start for part in self.source.parts)
        blocks = dict(zip(starts, self.source.blocks(), strict=True))
        picks = [
            later(_pick)(blocks[part.start], within, part.start, self.source.allow_nan)
            for part, within in split_by_part(indices, self.source.parts)
        ]
        self.picked = self.client.compute(picks)
        rows = counted(self.picked, "parts read", self.progress)
        return stack_rows([one.result() for one in rows], self.source.shape[1])

    def gathered(self) -> Any:
        """Return a future of the rows gathered last, joined on one worker."""
        return self.client.submit(stack_rows, self.picked, self.source.shape[1])

    def each_part(
        self, work: Callable[..., Any], extras: Iterable[Any], first: int = 0
    ) -> Iterator[Any]:
        """Yield ``work(rows, extra)`` for every block of the array from the first, in order."""
        yield from self._taken(self.client.compute(self._tasks(work, extras, first)))

    def sum_parts(self, work: Callable[..., Any]) -> tuple[list[Any], Any]:
        """Return what ``work(rows, None)`` keeps of every block, and the sum of its tables."""
        from dask.delayed import delayed as later

        tasks = self._tasks(work, [None] * len(self.source.parts))
        # The workers add the tables of blocks; the client gets only the sum.
        table = sum_in_tree((task[1] for task in tasks), len(tasks), later(add_up))
        *kept, table = self.client.compute([*(task[0] for task in tasks), table])
        return list(self._taken(kept)), table.result()

    def _tasks(self, work: Callable[..., Any], extras: Iterable[Any], first: int = 0) -> list[Any]:
        """Return one task for every block of the array from the first."""
        from dask.delayed import delayed as later

        worker, parts = later(work, pure=False), self.source.parts[first:]
        return [
            later(_work)(worker, block, extra, part.start, self.source.allow_nan)
            for part, block, extra in zip(parts, self.source.blocks()[first:], extras, strict=True)
        ]

    def _taken(self, futures: list[Any]) -> Iterator[Any]:
        """Yield answers in order; each is released after its use, so that memory stays small."""
        for _ in counted(range(len(futures)), "parts read", self.progress):
            yield futures.pop(0).result()


Executor: TypeAlias = ThreadExecutor | DaskExecutor


def get_executor(source: RowSource, run: Run) -> Executor:
    """Return the workers of the active client for a Dask array; otherwise threads."""
    distributed = sys.modules.get("distributed")
    if isinstance(source, DaskSource) and distributed is not None:
        with suppress(ValueError):  # no client
            return DaskExecutor(source, distributed.default_client(), run.progress)
    return ThreadExecutor(source, run.n_jobs, run.progress)


def _pick(block: Matrix, within: np.ndarray, first: int, allow_nan: bool) -> Matrix:
    return checked_rows(block[within], allow_nan, lambda row: first + int(within[row]))


def _work(work: Callable, block: Matrix, extra: Any, first: int, allow_nan: bool) -> Any:
    with one_blas_thread():
        return work(checked_rows(block, allow_nan, lambda row: first + row), extra)
