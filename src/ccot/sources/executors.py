"""Workers that read the rows of a source: threads of this process, or a Dask cluster."""

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from joblib import Parallel, delayed

from ccot.runtime.run import Progress, Run, counted
from ccot.runtime.types import Matrix
from ccot.sources import DaskSource, RowSource
from ccot.sources.base import sum_in_tree
from ccot.sources.dask_executor import DaskExecutor, get_dask_executor


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


Executor: TypeAlias = ThreadExecutor | DaskExecutor


def get_executor(source: RowSource, run: Run) -> Executor:
    """Return the workers that hold a Dask array, where a client is active; else threads."""
    executor = None
    if isinstance(source, DaskSource) and "distributed" in sys.modules:
        executor = get_dask_executor(source, run.progress)
    return executor or ThreadExecutor(source, run.n_jobs, run.progress)
