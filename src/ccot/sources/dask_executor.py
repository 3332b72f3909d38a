"""Rows of a Dask array, worked on by the workers that hold them; any task can be run again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from ccot.runtime.backends import one_blas_thread
from ccot.runtime.run import Progress, counted, no_progress
from ccot.runtime.types import Matrix
from ccot.sources import DaskSource
from ccot.sources.base import checked_rows, split_by_part, stack_rows


def get_dask_executor(source: DaskSource, progress: Progress = no_progress) -> DaskExecutor | None:
    """Return the cluster whose client is active; None: there is none."""
    from distributed import default_client

    with suppress(ValueError):
        return DaskExecutor(source, default_client(), progress)


@dataclass
class DaskExecutor:
    """The workers of a ``dask.distributed`` client, which keep the rows gathered last."""

    source: DaskSource
    client: Any
    progress: Progress = no_progress
    gathered: Any = None  # what the cluster will hold of them

    def gather(self, indices: np.ndarray) -> Matrix:
        """Return the rows at ascending indices, and keep them on the cluster too."""
        from dask.delayed import delayed

        starts = (part.start for part in self.source.parts)
        blocks = dict(zip(starts, self.source.blocks(), strict=True))
        picks = [
            delayed(_pick)(blocks[part.start], within, part.start, self.source.allow_nan)
            for part, within in split_by_part(indices, self.source.parts)
        ]
        self.gathered = self.client.compute(delayed(stack_rows)(picks, self.source.shape[1]))
        return self.gathered.result()

    def each_part(
        self, work: Callable[..., Any], extras: Iterable[Any], first: int = 0
    ) -> Iterator[Any]:
        """Yield ``work(rows, extra)`` for every block of the array from the first, in order."""
        from dask.delayed import delayed

        worker, parts = delayed(work, pure=False), self.source.parts[first:]
        tasks = [
            delayed(_work)(worker, block, extra, part.start, self.source.allow_nan)
            for part, block, extra in zip(parts, self.source.blocks()[first:], extras, strict=True)
        ]
        futures = self.client.compute(tasks)
        for _ in counted(range(len(tasks)), "parts read", self.progress):
            # Let go of each answer as it is taken: neither side keeps them all.
            yield futures.pop(0).result()


def _pick(block: Matrix, within: np.ndarray, first: int, allow_nan: bool) -> Matrix:
    return checked_rows(block[within], allow_nan, lambda row: first + int(within[row]))


def _work(work: Callable, block: Matrix, extra: Any, first: int, allow_nan: bool) -> Any:
    with one_blas_thread():
        return work(checked_rows(block, allow_nan, lambda row: first + row), extra)
