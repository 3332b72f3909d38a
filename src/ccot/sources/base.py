"""Base class of row sources, and sources for arrays in memory and for functions."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from itertools import accumulate, islice, pairwise
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import gen_batches

from ccot.persistence.digest import digest
from ccot.runtime.run import Progress, counted, no_progress
from ccot.runtime.types import Matrix, is_sparse

# Rows are read in parts of about this many numbers.
PART_CELLS = 2**20
# Tables of parts are added in groups of so many, then the sums of the groups, and so on.
_GROUP = 8


class RowSource(ABC):
    """A matrix that is read row by row.

    Attributes
    ----------
    shape : tuple of int, numbers of rows and columns
    parts : tuple of slice, ranges of rows to read at once, in order; together all rows
    column_names : sequence of str, or None if the format has none
    allow_nan : bool, whether NaN is accepted, as missing
    """

    shape: tuple[int, int]
    parts: tuple[slice, ...]
    column_names: Sequence[str] | None = None
    allow_nan: bool = False
    # Files whose dates and sizes also identify this matrix.
    _files: Sequence[Path] = ()

    @abstractmethod
    def _read(self, part: slice) -> Matrix:
        """Return the rows of one part as they are stored."""

    def read(self, part: slice) -> Matrix:
        """Return the rows of one of the parts.

        Parameters
        ----------
        part : slice, one of ``parts``

        Returns
        -------
        ndarray or CSR array of float64, of shape (rows of the part, n_columns)
        """
        return checked_rows(self._read(part), self.allow_nan, lambda row: part.start + row)

    def rows(self, indices: np.ndarray, progress: Progress = no_progress) -> Matrix:
        """Return chosen rows; no part is read twice.

        Parameters
        ----------
        indices : ndarray of int, ascending
        progress : callable, optional, told how many of how many parts are read

        Returns
        -------
        ndarray or CSR array of float64, of shape (len(indices), n_columns)
        """
        chosen = counted(split_by_part(indices, self.parts), "parts read", progress)
        return stack_rows([self.read(part)[within] for part, within in chosen], self.shape[1])

    def row_names(self) -> list[str] | None:
        """Return the names of all rows, if the format has them."""
        return None

    def digest(self) -> str:
        """Return shape, checksums of the first and last part, and sizes and times of files."""
        ends = [digest(self.read(part)) for part in (self.parts[0], self.parts[-1])]
        known = (file.stat() for file in self._files)
        written = (f"{one.st_size}@{one.st_mtime_ns}" for one in known)
        return " ".join([str(self.shape), *ends, *written])

    def transposed(self) -> "RowSource":
        """Return the source of the columns; an error if they cannot be read like rows."""
        wide = f"X has more columns ({self.shape[1]}) than rows ({self.shape[0]})"
        raise ValueError(f"{wide} and is read row by row: store and fit the transposed matrix")


def split_by_part(indices: np.ndarray, parts: Sequence[slice]) -> list[tuple[slice, np.ndarray]]:
    """Return the parts that ascending indices fall into, each with the positions within it."""
    edges = np.searchsorted(indices, [part.start for part in parts] + [parts[-1].stop])
    return [
        (part, indices[first:last] - part.start)
        for part, (first, last) in zip(parts, pairwise(edges), strict=True)
        if first < last
    ]


def stack_rows(blocks: Sequence[Matrix], n_columns: int) -> Matrix:
    """Return one matrix from blocks of rows, dense or sparse."""
    if blocks and is_sparse(blocks[0]):
        return sp.vstack(blocks, format="csr")
    return np.concatenate(blocks) if blocks else np.empty((0, n_columns))


def add_up(items: Iterable[Any]) -> Any:
    """Return the sum of items, added in order."""
    return reduce(add, items)


def sum_in_tree(items: Iterable[Any], n_items: int, add_group: Callable = add_up) -> Any:
    """Return the sum of items, added in groups: few are held at once, and the order is fixed."""
    while n_items > 1:
        items, n_items = map(add_group, _grouped(items)), -(-n_items // _GROUP)
    (total,) = items
    return total


def _grouped(items: Iterable[Any]) -> Iterator[list[Any]]:
    items = iter(items)
    while group := list(islice(items, _GROUP)):
        yield group


def checked_rows(rows: Matrix, allow_nan: bool, number: Callable[[int], int]) -> Matrix:
    """Return rows as finite float64; an error names the first bad row by its ``number`` in X."""
    sparse = is_sparse(rows)
    found: Any = sp.csr_array(rows) if sparse else np.asarray(rows)
    found = found.astype(np.float64, copy=False)
    values = found.data if sparse else found
    bad = np.isinf(values) if allow_nan else ~np.isfinite(values)
    if bad.any():
        first = int(np.argwhere(bad)[0][0])  # an entry of a sparse matrix, or a row
        if sparse:
            first = int(np.searchsorted(found.indptr, first, side="right")) - 1
        name = "NaN" if np.isnan(values[bad]).any() else "infinity"
        remedy = "drop such rows, or impute the entries, before the fit"
        raise ValueError(f"Input X contains {name} in row {number(first)}: {remedy}")
    return found


def even_parts(
    n_rows: int, n_columns: int, multiple: int = 1, most: int = PART_CELLS
) -> tuple[slice, ...]:
    """Return parts of about ``PART_CELLS`` numbers, with a multiple of ``multiple`` rows each."""
    if not n_rows or not n_columns:
        return ()
    step = max(1, min(most, PART_CELLS // (n_columns * multiple))) * multiple
    return tuple(gen_batches(n_rows, step))


def stacked(heights: Sequence[int]) -> tuple[slice, ...]:
    """Return the ranges of rows of blocks of these heights, without the empty ones."""
    ends = zip(accumulate(heights), heights, strict=True)
    return tuple(slice(end - height, end) for end, height in ends if height)


def two_axes(shape: Sequence[int]) -> tuple[int, int]:
    """Return the shape of a matrix; an error if it has not two axes."""
    if len(shape) != 2:
        raise ValueError(f"Expected a matrix with two axes, got an array of shape {tuple(shape)}")
    return int(shape[0]), int(shape[1])


class ArraySource(RowSource):
    """Rows of an array in memory, dense or CSR, or of anything that is indexed like one."""

    def __init__(self, array: Any) -> None:
        self.shape = two_axes(array.shape)
        self.array = sp.csr_array(array) if sp.issparse(array) else array
        self.parts = even_parts(*self.shape)

    def _read(self, part: slice) -> Matrix:
        return self.array[part]

    def rows(self, indices: np.ndarray, progress: Progress = no_progress) -> Matrix:
        """Return chosen rows; if all are chosen, the array itself."""
        chosen = self.array if len(indices) == self.shape[0] else self.array[indices]
        return checked_rows(chosen, self.allow_nan, lambda row: int(indices[row]))

    def digest(self) -> str:
        """Return a checksum of the array."""
        return digest(self.array)

    def transposed(self) -> "ArraySource":
        """Return the source of the columns."""
        return ArraySource(self.array.T)


class FunctionSource(RowSource):
    """Rows that a function returns: simulations, views, databases.

    Parameters
    ----------
    make : callable
        Takes the first row and the one after the last, returns these rows, the same each time; with
        ``n_jobs`` it is called from several threads.
    shape, part_rows : tuple of int; int, optional
        Numbers of rows and columns; number of rows in a call (the last call may have fewer).

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
        self, make: Callable[..., Matrix], shape: tuple[int, int], part_rows: int | None = None
    ) -> None:
        self.make, self.shape = make, two_axes(shape)
        step = part_rows or even_parts(*self.shape)[0].stop
        self.parts = stacked([min(step, shape[0] - row) for row in range(0, shape[0], step)])

    def _read(self, part: slice) -> Matrix:
        return self.make(part.start, part.stop)
