"""Rows of files and of other libraries' arrays: ``.npy``, Parquet, Zarr, AnnData, Dask."""

import math
import mmap
import warnings
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from ccot.io.layout import Column, ReadOptions
from ccot.io.matrix import InputError
from ccot.io.parquet import ArrowTable, parquet_reader
from ccot.runtime.run import Progress, no_progress
from ccot.runtime.types import Matrix
from ccot.sources.base import ArraySource, RowSource, checked_rows, even_parts, stacked, two_axes

# A part of a sparse matrix has at most so many rows, even if it has few entries.
_MOST_ROWS = 2**15


class NpySource(RowSource):
    """Rows of a ``.npy`` file, read and not mapped: mapped pages count as memory of the process."""

    def __init__(self, mapped: np.memmap) -> None:
        self.path, self.dtype = Path(str(mapped.filename)), mapped.dtype
        self.offset, self._files = int(mapped.offset), [self.path]
        self.shape = two_axes(mapped.shape)
        self._row_bytes = self.shape[1] * self.dtype.itemsize
        self.parts = even_parts(*self.shape)

    @classmethod
    def of(cls, mapped: np.memmap) -> RowSource:
        """Return the source of a memory-mapped array: its file, if that has the same values."""
        # A view of a map, or a map with changes that are not in the file, is read as an array.
        plain = isinstance(mapped.base, mmap.mmap) and mapped.flags.c_contiguous
        in_file = plain and mapped.filename is not None and mapped.mode != "c"
        return cls(mapped) if in_file else ArraySource(mapped)

    def _read(self, part: slice) -> np.ndarray:
        count = (part.stop - part.start) * self.shape[1]
        offset = self.offset + part.start * self._row_bytes
        return np.fromfile(self.path, self.dtype, count, offset=offset).reshape(-1, self.shape[1])

    def rows(self, indices: np.ndarray, progress: Progress = no_progress) -> np.ndarray:
        """Return chosen rows, each read on its own."""
        chosen = np.empty((len(indices), self.shape[1]), self.dtype)
        with self.path.open("rb", buffering=0) as file:
            for row, index in zip(chosen, indices.tolist(), strict=True):
                file.seek(self.offset + index * self._row_bytes)
                file.readinto(row.data)
        return checked_rows(chosen, self.allow_nan, lambda row: int(indices[row]))

    def transposed(self) -> ArraySource:
        """Return the source of the columns; reading one goes through the whole file."""
        mapped = np.memmap(self.path, self.dtype, "r", self.offset, self.shape)
        return ArraySource(mapped.T)


class ParquetSource(RowSource):
    """Rows of a Parquet file, or of all in a folder, sorted by name; a part is a row group."""

    def __init__(
        self, path: Path, index_col: Column | bool | None = None, drop: Sequence[Column] = ()
    ) -> None:
        files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
        reader, options = parquet_reader(), ReadOptions(index_col=index_col, drop=drop)
        self._tables = [ArrowTable(file, reader) for file in files]
        groups: list[tuple[ArrowTable, int]] = []
        self._index: str | None = None
        for table in self._tables:
            columns, index = table.matrix_columns(options)
            pairs = zip_longest([index, *columns], [self._index, *(self.column_names or ())])
            if groups and (other := [pair for pair in pairs if pair[0] != pair[1]]):
                first = "{!r} instead of {!r}".format(*other[0])
                raise InputError(f"{table.path} has other columns than {files[0]}: {first}")
            self.column_names, self._index = columns, index
            groups += [(table, group) for group in range(len(table.group_rows))]
        held = [(table, group) for table, group in groups if table.group_rows[group]]
        self.parts = stacked([table.group_rows[group] for table, group in held])
        self._files = [table.path for table in self._tables if any(table.group_rows)]
        self._groups = dict(zip((part.start for part in self.parts), held, strict=True))
        n_rows = sum(table.n_rows for table in self._tables)
        self.shape = n_rows, len(self.column_names or ())

    def _read(self, part: slice) -> np.ndarray:
        table, group = self._groups[part.start]
        return table.read(self.column_names or (), group)

    def row_names(self) -> list[str] | None:
        """Return the names of all rows, if a column holds them."""
        if self._index is None:
            return None
        names = (table.row_names(str(self._index), self.shape[1]) for table in self._tables)
        return [name for part in names for name in part]


class BackedSource(RowSource):
    """Rows of an ``h5py.Dataset``, ``anndata.abc.CSRDataset`` or Zarr array, by whole chunks."""

    def __init__(self, stored: Any) -> None:
        self.stored, self.shape = stored, two_axes(stored.shape)
        if not hasattr(stored, "format"):
            self.parts = even_parts(*self.shape, multiple=(stored.chunks or (1,))[0])
            return
        entries_of_a_row = int(stored.group["indptr"][-1]) // max(self.shape[0], 1)
        self.parts = even_parts(self.shape[0], max(entries_of_a_row, 1), most=_MOST_ROWS)

    @staticmethod
    def takes(X: Any) -> bool:
        """Return True for a data set of h5py, a sparse one of anndata, or a Zarr array."""
        known = {"anndata": ("to_memory", "format"), "h5py": ("dtype", "shape"), "zarr": ("shape",)}
        names = known.get(type(X).__module__.partition(".")[0])
        return names is not None and all(hasattr(X, name) for name in names)

    @classmethod
    def of(cls, stored: Any) -> RowSource:
        """Return the source of a matrix; one that is stored by columns is read as a whole."""
        if getattr(stored, "format", "csr") == "csr":
            return cls(stored)
        problem = "the matrix is stored by columns (CSC) and is read as a whole"
        warnings.warn(f"{problem}: store it as CSR to read it row by row", stacklevel=2)
        return ArraySource(stored.to_memory())

    def _read(self, part: slice) -> Matrix:
        return self.stored[part]


class DaskSource(RowSource):
    """Rows of a Dask array; a part is a block of rows."""

    def __init__(self, array: Any) -> None:
        if any(math.isnan(size) for size in array.shape):
            raise ValueError("the Dask array has an unknown shape: call X.compute_chunk_sizes()")
        # All columns of a row must be in one block, which costs one more task per block.
        self.shape = two_axes(array.shape)
        self.array = array if array.numblocks[1] == 1 else array.rechunk({1: -1})
        self.parts = stacked(self.array.chunks[0])

    def blocks(self) -> list[Any]:
        """Return the blocks of rows that are not empty, one per part, as delayed values."""
        blocks = self.array.to_delayed().ravel()
        return [block for block, n in zip(blocks, self.array.chunks[0], strict=True) if n]

    def _read(self, part: slice) -> Matrix:
        return self.array[part].compute()

    def transposed(self) -> "DaskSource":
        """Return the source of the columns."""
        return DaskSource(self.array.T.rechunk({0: "auto", 1: -1}))
