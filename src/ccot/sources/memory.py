"""Rows in memory, and rows made when they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from ccot.persistence.digest import digest
from ccot.runtime.run import Progress, no_progress
from ccot.sources.base import Matrix, RowSource, checked_rows, even_parts, stacked, two_axes


class ArraySource(RowSource):
    """Rows of an array in memory, dense or CSR, or of anything that is indexed like one."""

    def __init__(self, array: Any) -> None:
        self.shape = two_axes(array.shape)
        self.array = sp.csr_array(array) if sp.issparse(array) else array
        self.parts = even_parts(*self.shape)

    def _read(self, part: slice) -> Matrix:
        return self.array[part]

    def rows(self, indices: np.ndarray, progress: Progress = no_progress) -> Matrix:
        """Return chosen rows; all of them are the array itself."""
        chosen = self.array if len(indices) == self.shape[0] else self.array[indices]
        return checked_rows(chosen, self.allow_nan, lambda row: int(indices[row]))

    def digest(self) -> str:
        """Return a checksum of the array."""
        return digest(self.array)

    def transposed(self) -> ArraySource:
        """Return the source of the columns."""
        return ArraySource(self.array.T)


class FunctionSource(RowSource):
    """Rows that a function makes when asked: simulations, views, databases.

    Parameters
    ----------
    make : callable
        Takes the first row and the one after the last, returns these rows, the same each time; with
        ``n_jobs`` it is called from several threads.
    shape : tuple of int
        Numbers of rows and columns.
    part_rows : int, optional
        Rows to ask for at once; ``make`` is only called with multiples of it (or the last row).

    Examples
    --------
    >>> import numpy as np
    >>> from ccot import CCOT
    >>> from ccot.sources import FunctionSource
    >>> means = np.array([[4.0, 0.0, 2.0], [1.0, 5.0, 1.0]])
    >>> def make(first, last):
    ...     rng = np.random.default_rng(first)
    ...     rows = means[np.arange(first, last) % 2].repeat(10, axis=1)
    ...     return rows + 0.05 * rng.normal(size=rows.shape)
    >>> source = FunctionSource(make, shape=(80_000, 30), part_rows=8_000)
    >>> model = CCOT(n_samplings=20, random_state=0).fit(source)
    >>> model.row_labels_[:6], model.column_labels_[::5]
    (array([0, 1, 0, 1, 0, 1], dtype=int32), array([1, 1, 2, 2, 0, 0]))
    """

    def __init__(
        self,
        make: Callable[[int, int], Matrix],
        shape: tuple[int, int],
        part_rows: int | None = None,
    ) -> None:
        self.make, self.shape = make, two_axes(shape)
        step = part_rows or even_parts(*self.shape)[0].stop
        self.parts = stacked([min(step, shape[0] - row) for row in range(0, shape[0], step)])

    def _read(self, part: slice) -> Matrix:
        return self.make(part.start, part.stop)
