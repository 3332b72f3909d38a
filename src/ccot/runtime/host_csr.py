"""Sparse matrices in memory: CSR of SciPy, and what is done to parts of its rows by threads."""

from collections.abc import Callable
from copy import copy
from functools import lru_cache, partial, reduce
from typing import Any

import numpy as np
import scipy.sparse as sp

from ccot.runtime.backends import Backend
from ccot.runtime.types import Matrix, is_sparse

# Entries looked at together so that they stay in a cache.
CACHE_ENTRIES = 2**18
# Entries of a part of a product, and the parts whose sums may have to be held at once.
_ENTRIES, _MOST_PARTS = 2**19, 16
# Threads from which on it is worth to sort parts of a matrix: placing them takes as long again.
_LEAST_SORTING = 4


def multiply(matrix: sp.csr_array, dense: np.ndarray, backend: Backend) -> np.ndarray:
    """Return the product with a narrow dense matrix."""

    def fill(part: slice, out: np.ndarray) -> None:
        out[:] = rows_of(matrix, part) @ dense

    return _filled(matrix, dense.shape[1], fill, backend)


def collapse(
    matrix: sp.csr_array, labels: np.ndarray, n_clusters: int, backend: Backend
) -> np.ndarray:
    """Return the columns summed within clusters."""
    # Names as long as the indices are not looked through for shorter ones.
    names = labels.astype(matrix.indices.dtype, copy=False)

    def rename(part: slice, out: np.ndarray) -> None:
        """Give the columns of some rows the names of their clusters: equal ones are summed."""
        rows_of(matrix, part, names, n_clusters).toarray(out=out)

    return _filled(matrix, n_clusters, rename, backend)


def multiply_transposed(matrix: sp.csr_array, dense: np.ndarray, backend: Backend) -> np.ndarray:
    """Return the product of the transposed matrix and a narrow dense one."""
    if matrix.nnz <= 2 * _ENTRIES:
        return matrix.T @ dense
    parts = summed_parts(matrix)
    turned = partial(rows_of, matrix, kind=sp.csc_array)
    sums = backend.map(lambda part: turned(part) @ dense[part], parts)
    return backend.by_rows(lambda *some: reduce(np.add, some), *sums)


def row_sums(matrix: sp.csr_array, backend: Backend) -> np.ndarray:
    """Return the sum of every row."""
    parts = row_parts(matrix, CACHE_ENTRIES)
    sums = backend.map(lambda part: rows_of(matrix, part).sum(axis=1, dtype=np.float64), parts)
    return np.concatenate(sums)


def scaled(
    matrix: sp.csr_array, row_scale: np.ndarray, column_scale: np.ndarray, backend: Backend
) -> sp.csr_array:
    """Return the matrix with rows and columns multiplied; places of entries are not copied."""
    data = np.empty(matrix.nnz, row_scale.dtype)

    def scale(part: slice) -> None:
        rows = rows_of(matrix, part)
        out = data[matrix.indptr[part.start] : matrix.indptr[part.stop]]
        np.multiply(column_scale.take(rows.indices), rows.data, out=out)
        out *= np.repeat(row_scale[part], np.diff(rows.indptr))

    backend.map(scale, row_parts(matrix, CACHE_ENTRIES))
    return sp.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def transposed(matrix: sp.csr_array, backend: Backend) -> sp.csr_array:
    """Return the transposed matrix, of which several threads sort and place parts of the rows."""
    rows = row_parts(matrix, max(_ENTRIES, -(-matrix.nnz // backend.n_jobs)))
    if backend.n_jobs < _LEAST_SORTING or len(rows) == 1:
        return sp.csr_array(matrix.T)
    parts = backend.map(lambda part: rows_of(matrix, part).tocsc(), rows)
    counts = np.array([np.diff(part.indptr) for part in parts])
    starts = np.append(0, np.cumsum(counts.sum(axis=0))).astype(matrix.indptr.dtype)
    # Where the entries of a part go is further on than in the part, by so much for each column.
    shifts = starts[:-1] + np.cumsum(counts, axis=0) - counts
    data, indices = np.empty_like(matrix.data), np.empty_like(matrix.indices)

    def place(index: int) -> None:
        part, count = parts[index], counts[index]
        there = np.repeat(shifts[index] - part.indptr[:-1], count) + np.arange(part.nnz)
        data[there] = part.data
        indices[there] = part.indices + rows[index].start

    backend.map(place, range(len(parts)))
    return sp.csr_array((data, indices, starts), shape=matrix.shape[::-1])


def row_parts(matrix: Matrix, size: int) -> list[slice]:
    """Cut the rows into parts of about so many entries, whatever the number of threads."""
    n_rows = matrix.shape[0]
    if is_sparse(matrix):
        # Rows may hold very different numbers of entries: as many rows do not take as long.
        starts = matrix.indptr
        ends = np.searchsorted(starts, np.arange(size, matrix.nnz, size, dtype=starts.dtype))
        ends = [*sorted({*ends.tolist()} - {0, n_rows}), n_rows]
    else:
        step = max(1, -(-n_rows * size // max(matrix.size, 1)))
        ends = [*range(step, n_rows, step), n_rows]
    return [slice(first, end) for first, end in zip([0, *ends[:-1]], ends, strict=True)]


def summed_parts(matrix: Matrix) -> list[slice]:
    """Cut the rows into parts whose sums are added: as many on every number of threads."""
    size = matrix.nnz if is_sparse(matrix) else matrix.size
    return row_parts(matrix, max(_ENTRIES, size // _MOST_PARTS))


def rows_of(
    matrix: sp.csr_array,
    part: slice,
    names: np.ndarray | None = None,
    n_names: int = 0,
    kind: Any = sp.csr_array,
) -> Any:
    """Return some rows that share their entries, columns perhaps renamed; as CSC transposed."""
    starts = matrix.indptr[part.start : part.stop + 1]
    held = slice(starts[0], starts[-1])
    indices = matrix.indices[held] if names is None else names.take(matrix.indices[held])
    shape = len(starts) - 1, n_names or matrix.shape[1]
    rows = copy(_empty(kind, shape if kind is sp.csr_array else shape[::-1], matrix.dtype))
    rows.data, rows.indices, rows.indptr = matrix.data[held], indices, starts - starts[0]
    return rows


def _filled(
    matrix: sp.csr_array, width: int, fill: Callable[..., None], backend: Backend
) -> np.ndarray:
    """Return so many columns for the rows of a matrix, of which threads fill parts."""
    total = np.empty((matrix.shape[0], width), dtype=matrix.dtype)
    # Every part holds the interpreter for a moment: many threads want few of them.
    size = np.clip(matrix.nnz // (2 * backend.n_jobs), CACHE_ENTRIES, _ENTRIES)
    backend.map(lambda part: fill(part, total[part]), row_parts(matrix, int(size)))
    return total


@lru_cache(maxsize=64)
def _empty(kind: Any, shape: tuple[int, int], dtype: np.dtype) -> Any:
    """Return an empty sparse array; to make one takes fifty times as long as to copy it."""
    return kind(shape, dtype=dtype)
