"""Rows of matrices that AnnData leaves in their file: dense ones in HDF5, sparse ones anywhere."""

from __future__ import annotations

import warnings
from typing import Any

from ccot.sources.base import PART_CELLS, Matrix, RowSource, even_parts, two_axes
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
    """Rows of a matrix in an HDF5 or Zarr file, as in a backed AnnData.

    Parameters
    ----------
    stored : h5py.Dataset or anndata.abc.CSRDataset
        The matrix; the file stays open as long as it is read.
    """

    def __init__(self, stored: Any) -> None:
        self.stored = stored
        self.shape = two_axes(stored.shape)
        self.parts = _parts(stored, self.shape)

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


def _parts(stored: Any, shape: tuple[int, int]) -> tuple[slice, ...]:
    if not hasattr(stored, "format"):
        return even_parts(*shape, multiple=(stored.chunks or (1,))[0])
    # As many rows as hold about PART_CELLS entries.
    entries_of_a_row = int(stored.group["indptr"][-1]) // max(shape[0], 1)
    return even_parts(shape[0], max(entries_of_a_row, PART_CELLS // _MOST_ROWS))
