"""Rows of Dask arrays."""

from __future__ import annotations

import math
from typing import Any

from ccot.sources.base import Matrix, RowSource, stacked, two_axes


class DaskSource(RowSource):
    """Rows of a Dask array; a part is a block of rows."""

    def __init__(self, array: Any) -> None:
        if any(math.isnan(size) for size in array.shape):
            raise ValueError("the Dask array does not know its shape: X.compute_chunk_sizes()")
        # The columns of a row must be together; that is one more task a block, not more.
        self.shape = two_axes(array.shape)
        self.array = array if array.numblocks[1] == 1 else array.rechunk({1: -1})
        self.parts = stacked(self.array.chunks[0])

    def blocks(self) -> list[Any]:
        """Return the blocks of rows, one a part, as delayed values."""
        return list(self.array.to_delayed().ravel())

    def _read(self, part: slice) -> Matrix:
        return self.array[part].compute()

    def transposed(self) -> DaskSource:
        """Return the source of the columns."""
        return DaskSource(self.array.T.rechunk({0: "auto", 1: -1}))
