"""Matrices that are read row by row, wherever they are kept.

A :class:`RowSource` knows its shape and hands out rows: a part at a time, in order, or a chosen
few. What it hands out is float64 and finite, dense or CSR; the whole matrix is never held.
"""

from __future__ import annotations

import math
import mmap
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ccot.io.binary import numeric_columns, open_parquet

Matrix = Any

# Rows are read in parts of about this many numbers.
PART_CELLS = 2**20


class RowSource(ABC):
    """A matrix that hands out its rows.

    Attributes
    ----------
    shape : tuple of int
        Numbers of rows and columns.
    parts : tuple of slice
        Ranges of rows that are best read at once; together, in order, all rows.
    column_names : sequence of str or None
        Names of the columns, where the format has them.
    allow_nan : bool
        Whether NaN may pass, as a missing entry.
    """

    shape: tuple[int, int]
    parts: tuple[slice, ...]
    column_names: Sequence[str] | None = None
    allow_nan: bool = False

    @abstractmethod
    def _read(self, part: slice) -> Matrix:
        """Return the rows of one part as they are stored."""

    def read(self, part: slice) -> Matrix:
        """Return the rows of one of the parts.

        Parameters
        ----------
        part : slice
            One of ``parts``.

        Returns
        -------
        ndarray or CSR matrix
            Its rows, float64.
        """
        return checked_rows(self._read(part), self.allow_nan, lambda row: part.start + row)

    def rows(self, indices: np.ndarray) -> Matrix:
        """Return chosen rows; no part is read twice.

        Parameters
        ----------
        indices : int array of shape (n_chosen,)
            Rows, ascending.

        Returns
        -------
        ndarray or CSR matrix of shape (n_chosen, n_columns)
            The rows, float64.
        """
        chosen = split_by_part(indices, self.parts)
        return stack_rows([self.read(part)[within] for part, within in chosen], self.shape[1])

    def transposed(self) -> RowSource:
        """Return the source of the columns, where they can be read as well as the rows."""
        raise ValueError(
            f"X has more columns ({self.shape[1]}) than rows ({self.shape[0]}) and is read row by "
            "row: store it transposed, and fit that"
        )


def split_by_part(indices: np.ndarray, parts: Sequence[slice]) -> list[tuple[slice, np.ndarray]]:
    """Return the parts that ascending indices fall into, each with the positions within it.

    Examples
    --------
    >>> import numpy as np
    >>> split_by_part(np.array([1, 2, 9]), (slice(0, 4), slice(4, 8), slice(8, 12)))
    [(slice(0, 4, None), array([1, 2])), (slice(8, 12, None), array([1]))]
    """
    edges = np.searchsorted(indices, [part.start for part in parts] + [parts[-1].stop])
    return [
        (part, indices[first:last] - part.start)
        for part, (first, last) in zip(parts, pairwise(edges), strict=True)
        if first < last
    ]


def stack_rows(blocks: Sequence[Matrix], n_columns: int) -> Matrix:
    """Put blocks of rows, dense or sparse, on top of one another."""
    if not blocks:
        return np.empty((0, n_columns))
    if sp.issparse(blocks[0]):
        return sp.vstack(blocks, format="csr")
    return np.concatenate(blocks)


def checked_rows(rows: Matrix, allow_nan: bool, number: Callable[[int], int]) -> Matrix:
    """Return rows as finite float64, or say which row is wrong; ``number`` counts it in X."""
    if sp.issparse(rows):
        rows = sp.csr_array(rows).astype(np.float64, copy=False)
        values = rows.data
    else:
        rows = values = np.asarray(rows, dtype=np.float64)
    bad = np.isinf(values) if allow_nan else ~np.isfinite(values)
    if bad.any():
        if sp.issparse(rows):
            first = int(np.searchsorted(rows.indptr, np.flatnonzero(bad)[0], side="right")) - 1
        else:
            first = int(np.flatnonzero(bad.any(axis=1))[0])
        name = "NaN" if np.isnan(values[bad]).any() else "infinity"
        raise ValueError(
            f"Input X contains {name} in row {number(first)}: drop such rows, or fill the entries "
            "in, before the fit"
        )
    return rows


def even_parts(n_rows: int, n_columns: int, multiple: int = 1) -> tuple[slice, ...]:
    """Cut rows into parts of about ``PART_CELLS`` numbers, a multiple of so many rows each."""
    step = max(1, PART_CELLS // (n_columns * multiple)) * multiple
    return tuple(slice(first, min(first + step, n_rows)) for first in range(0, n_rows, step))


# What is in memory, or behaves as if it were ---------------------------------------------------


class ArraySource(RowSource):
    """Rows of an array in memory, dense or CSR, or of anything that is indexed like one."""

    def __init__(self, array: Any) -> None:
        self.shape = _two(array.shape)
        self.array = sp.csr_array(array) if sp.issparse(array) else array
        self.parts = even_parts(*self.shape)

    def _read(self, part: slice) -> Matrix:
        return self.array[part]

    def rows(self, indices: np.ndarray) -> Matrix:
        """Return chosen rows; all of them are the array itself."""
        chosen = self.array if len(indices) == self.shape[0] else self.array[indices]
        return checked_rows(chosen, self.allow_nan, lambda row: int(indices[row]))

    def transposed(self) -> ArraySource:
        """Return the source of the columns."""
        return ArraySource(self.array.T)


class FunctionSource(RowSource):
    """Rows that a function makes when asked: simulations, views, databases.

    Parameters
    ----------
    make : callable
        Takes the first row and the one after the last, returns these rows. Asked twice, it must
        give the same rows; with ``n_jobs`` it is called from several threads.
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
        self.make, self.shape = make, _two(shape)
        step = part_rows or even_parts(*self.shape)[0].stop
        self.parts = tuple(
            slice(first, min(first + step, shape[0])) for first in range(0, shape[0], step)
        )

    def _read(self, part: slice) -> Matrix:
        return self.make(part.start, part.stop)


# Files -----------------------------------------------------------------------------------------


class NpySource(RowSource):
    """Rows of a ``.npy`` file.

    The file is read, not mapped: mapped pages count as memory of the process until someone else
    needs it, so that a map grows to the size of the file.
    """

    def __init__(self, mapped: np.memmap) -> None:
        self.path, self.dtype = Path(str(mapped.filename)), mapped.dtype
        self.offset = int(mapped.offset)
        self.shape = _two(mapped.shape)
        self.parts = even_parts(*self.shape)

    @property
    def _row_bytes(self) -> int:
        return self.shape[1] * self.dtype.itemsize

    def _read(self, part: slice) -> np.ndarray:
        count = (part.stop - part.start) * self.shape[1]
        offset = self.offset + part.start * self._row_bytes
        return np.fromfile(self.path, self.dtype, count, offset=offset).reshape(-1, self.shape[1])

    def rows(self, indices: np.ndarray) -> np.ndarray:
        """Return chosen rows, each read on its own."""
        chosen = np.empty((len(indices), self.shape[1]), self.dtype)
        with self.path.open("rb", buffering=0) as file:
            for row, index in zip(chosen, indices.tolist(), strict=True):
                file.seek(self.offset + index * self._row_bytes)
                file.readinto(row.data)
        return checked_rows(chosen, self.allow_nan, lambda row: int(indices[row]))

    def transposed(self) -> ArraySource:
        """Return the source of the columns, which are gathered from all over the file."""
        mapped = np.memmap(self.path, self.dtype, "r", self.offset, self.shape)
        return ArraySource(mapped.T)


def _map_source(mapped: np.memmap) -> RowSource:
    # A view of a map, or one with changes that are in no file, is read through itself.
    plain = isinstance(mapped.base, mmap.mmap) and mapped.flags.c_contiguous
    if plain and mapped.filename is not None and mapped.mode != "c":
        return NpySource(mapped)
    return ArraySource(mapped)


class ParquetSource(RowSource):
    """Rows of a Parquet file, or of all in a folder in the order of their names.

    A part is a row group: that much must fit into memory, several times over.
    """

    def __init__(self, path: Path) -> None:
        files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
        groups: list[tuple[Path, int]] = []
        heights: list[int] = []
        for file in files:
            with open_parquet(file) as opened:
                columns, _ = numeric_columns(opened.schema_arrow)
                if groups and list(columns) != self.column_names:
                    raise ValueError(f"{file} has other columns than {files[0]}")
                self.column_names = list(columns)
                count = opened.metadata.num_row_groups
                groups += [(file, group) for group in range(count)]
                heights += [opened.metadata.row_group(group).num_rows for group in range(count)]
        self.parts = _stacked(heights)
        self._groups = dict(zip((part.start for part in self.parts), groups, strict=True))
        self.shape = sum(heights), len(self.column_names or ())

    def _read(self, part: slice) -> np.ndarray:
        file, group = self._groups[part.start]
        with open_parquet(file) as opened:
            table = opened.read_row_group(group, columns=list(self.column_names or ()))
        values = np.empty(table.shape)
        for place, column in enumerate(table.itercolumns()):
            values[:, place] = column.cast("float64", safe=False).to_numpy()
        return values


class ZarrSource(RowSource):
    """Rows of a Zarr array; a part is as many chunks as make about ``PART_CELLS`` numbers."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.shape = _two(array.shape)
        self.parts = even_parts(*self.shape, multiple=int(array.chunks[0]))

    @classmethod
    def open(cls, path: Path) -> ZarrSource:
        """Open the array stored at a path."""
        try:
            import zarr
        except ImportError as missing:
            raise ImportError(
                "Zarr arrays need zarr, which is not installed: pip install 'ccot[zarr]'"
            ) from missing
        array = zarr.open(str(path), mode="r")
        if not hasattr(array, "shape"):
            raise ValueError(f"{path} is a group of arrays: pass the path of one of them")
        return cls(array)

    def _read(self, part: slice) -> np.ndarray:
        return np.asarray(self.array[part])


# Dask ------------------------------------------------------------------------------------------


class DaskSource(RowSource):
    """Rows of a Dask array; a part is a block of rows."""

    def __init__(self, array: Any) -> None:
        if any(math.isnan(size) for size in array.shape):
            raise ValueError("the Dask array does not know its shape: X.compute_chunk_sizes()")
        # The columns of a row must be together; that is one more task a block, not more.
        self.shape = _two(array.shape)
        self.array = array if array.numblocks[1] == 1 else array.rechunk({1: -1})
        self.parts = _stacked(self.array.chunks[0])

    def blocks(self) -> list[Any]:
        """Return the blocks of rows, one a part, as delayed values."""
        return list(self.array.to_delayed().ravel())

    def _read(self, part: slice) -> Matrix:
        return self.array[part].compute()

    def transposed(self) -> DaskSource:
        """Return the source of the columns."""
        return DaskSource(self.array.T.rechunk({0: "auto", 1: -1}))


# One door --------------------------------------------------------------------------------------


def is_source(X: Any) -> bool:
    """Tell whether a matrix is to be read row by row rather than taken as a whole."""
    kinds = (RowSource, np.memmap, str, os.PathLike)
    return isinstance(X, kinds) or _comes_from(X, "dask.array") or _comes_from(X, "zarr")


def as_source(X: Any, *, allow_nan: bool = False) -> RowSource:
    """Return the source of a matrix's rows.

    Parameters
    ----------
    X : path-like, memmap, Dask or Zarr array, ndarray, sparse matrix, or RowSource
        A path leads to a ``.npy`` file, a Parquet file or a folder of them, or a Zarr array.
    allow_nan : bool, default=False
        Let NaN pass.

    Returns
    -------
    RowSource
        Its rows.

    Examples
    --------
    >>> import numpy as np
    >>> source = as_source(np.eye(5))
    >>> source.rows(np.array([1, 4]))
    array([[0., 1., 0., 0., 0.],
           [0., 0., 0., 0., 1.]])
    """
    source = _make_source(X)
    source.allow_nan = allow_nan
    return source


def _make_source(X: Any) -> RowSource:
    if isinstance(X, RowSource):
        return X
    if isinstance(X, str | os.PathLike):
        return _open_path(Path(X))
    if X.dtype.kind not in "biuf":
        raise ValueError(f"X holds values of type {X.dtype} where numbers are expected")
    if isinstance(X, np.memmap):
        return _map_source(X)
    if _comes_from(X, "dask.array"):
        return DaskSource(X)
    return ZarrSource(X) if _comes_from(X, "zarr") else ArraySource(X)


def _open_path(path: Path) -> RowSource:
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}: check the path")
    if path.suffix == ".npy":
        return _make_source(np.load(path, mmap_mode="r", allow_pickle=False))
    parquet = path.suffix in (".parquet", ".pq")
    if parquet or (path.is_dir() and next(path.rglob("*.parquet"), None)):
        return ParquetSource(path)
    if path.is_dir():
        return ZarrSource.open(path)
    raise ValueError(
        f"{path} is no .npy, .parquet or .zarr: read it with ccot.io.read_matrix, and pass the "
        "matrix"
    )


def _comes_from(X: Any, package: str) -> bool:
    return f"{type(X).__module__}.".startswith(f"{package}.") and hasattr(X, "shape")


def _stacked(heights: Sequence[int]) -> tuple[slice, ...]:
    """Return the ranges of rows of blocks of these heights, without the empty ones."""
    ends = accumulate(heights)
    return tuple(
        slice(end - height, end) for end, height in zip(ends, heights, strict=True) if height
    )


def _two(shape: Sequence[int]) -> tuple[int, int]:
    if len(shape) != 2:
        raise ValueError(f"Expected a matrix with two axes, got an array of shape {tuple(shape)}")
    return int(shape[0]), int(shape[1])
