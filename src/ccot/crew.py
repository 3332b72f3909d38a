"""Who works on the rows of a source: threads of this process, or a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from joblib import Parallel, delayed

from ccot.distributed import find_cluster
from ccot.draws import DrawSolver
from ccot.progress import Report, counted, silent
from ccot.sources import RowSource

Matrix = Any


class Crew(Protocol):
    """Who does the work, and where."""

    def gather(self, indices: np.ndarray) -> Matrix:
        """Return the rows at ascending indices."""
        ...

    def prepare(self, matrix: Matrix, draws: np.ndarray, **how: Any) -> DrawSolver:
        """Return the solver of draws of the gathered rows."""
        ...

    def each_part(
        self, work: Callable[..., Any], extras: Iterable[Any], first: int = 0
    ) -> Iterator[Any]:
        """Yield ``work(rows, extra)`` for every part of the source from the first, in order."""
        ...


@dataclass(frozen=True)
class Threads:
    """Threads of one process, as many as ``n_jobs`` says."""

    source: RowSource
    n_jobs: int | None
    report: Report = silent

    def gather(self, indices: np.ndarray) -> Matrix:
        """Return the rows at ascending indices."""
        return self.source.rows(indices, self.report)

    def prepare(self, matrix: Matrix, draws: np.ndarray, **how: Any) -> DrawSolver:
        """Return the solver of draws of the gathered rows."""
        return DrawSolver.prepare(matrix, draws, **how)

    def each_part(
        self, work: Callable[..., Any], extras: Iterable[Any], first: int = 0
    ) -> Iterator[Any]:
        """Yield ``work(rows, extra)`` for every part of the source from the first, in order."""
        parts = zip(self.source.parts[first:], extras, strict=True)
        run = Parallel(n_jobs=self.n_jobs, require="sharedmem", return_as="generator")
        answers = run(delayed(self._work)(work, part, extra) for part, extra in parts)
        return counted(answers, "parts read", self.report, len(self.source.parts))

    def _work(self, work: Callable[..., Any], part: slice, extra: Any) -> Any:
        return work(self.source.read(part), extra)


def find_crew(source: RowSource, n_jobs: int | None, report: Report = silent) -> Crew:
    """Return the workers that hold a Dask array, where a client is active; else threads."""
    return find_cluster(source, report) or Threads(source, n_jobs, report)
