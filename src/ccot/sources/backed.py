"""Rows of matrices that others keep: AnnData in its file, Dask in blocks."""

from __future__ import annotations

import math
import warnings
from typing import Any

from ccot.sources.base import PART_CELLS, Matrix, RowSource, even_parts, stacked, two_axes
from ccot.sources.memory import ArraySource

# Few entries or none: a part of a sparse matrix has at most so many rows.
_MOST_ROWS = 2**15


def is_backed(X: Any) -> bool:
    """Return True for a data set of h5py, or a sparse one of anndata."""
    package = type(X).__module__.partition(".")[0]
    if package == "anndata":
        return hasattr(X, "to_memory") and hasattr(X, "format")
    return package == "h5py" and hasattr(X, "dtype") and hasattr(X, "shape")


class BackedSource(RowSource):
    """Rows of an ``h5py.Dataset`` or ``anndata.abc.CSRDataset``, as in a backed AnnData.

    The file stays open as long as it is read.
    """

    def __init__(self, stored: Any) -> None:
        self.stored, self.shape = stored, two_axes(stored.shape)
        if not hasattr(stored, "format"):
            self.parts = even_parts(*self.shape, multiple=(stored.chunks or (1,))[0])
            return
        # As many rows as hold about PART_CELLS entries.
        entries_of_a_row = int(stored.group["indptr"][-1]) // max(self.shape[0], 1)
        width = max(entries_of_a_row, PART_CELLS // _MOST_ROWS)
        self.parts = even_parts(self.shape[0], width)

    @classmethod
    def of(cls, stored: Any) -> RowSource:
        """Return the source of a matrix; one that is stored by columns is read as a whole."""
        if getattr(stored, "format", "csr") == "csr":
            return cls(stored)
        warnings.warn(
            "the matrix is stored by columns (CSC) and is read as a whole: write it as CSR to have "
            "it read row by row",
            stacklevel=2,
        )
        return ArraySource(stored.to_memory())

    def _read(self, part: slice) -> Matrix:
        return self.stored[part]


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
        """Return the blocks of rows that are not empty, one a part, as delayed values."""
        blocks = self.array.to_delayed().ravel()
        return [block for block, n in zip(blocks, self.array.chunks[0], strict=True) if n]

    def _read(self, part: slice) -> Matrix:
        return self.array[part].compute()

    def transposed(self) -> DaskSource:
        """Return the source of the columns."""
        return DaskSource(self.array.T.rechunk({0: "auto", 1: -1}))
