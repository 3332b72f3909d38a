"""Sparse matrices in memory: SciPy's CSR arrays, and operations by threads on parts of the rows.

SciPy's kernels add in place: parts are not copied, and the interpreter lock is released. Clearing
new memory, or making a matrix of every part, would hold the lock.
"""

from collections.abc import Callable
from functools import reduce

import numpy as np
import scipy.sparse as sp
from scipy.sparse import _sparsetools as sparsetools

from ccot.runtime.backends import Backend
from ccot.runtime.types import Matrix, is_sparse

# Entries that are processed together and fit into a cache.
CACHE_ENTRIES = 2**18
# Entries of a part of a product; most parts whose sums are held at once.
_ENTRIES, _MOST_PARTS = 2**19, 16
# From this many threads, sorting parts of a matrix is faster: placing them takes as long again.
_LEAST_SORTING = 4


def multiply(matrix: sp.csr_array, dense: np.ndarray, backend: Backend) -> np.ndarray:
    """Return the product with a narrow dense matrix."""
    given = np.ascontiguousarray(dense, dtype=matrix.dtype).ravel()

    def fill(part: slice, out: np.ndarray) -> None:
        sparsetools.csr_matvecs(
            len(out), matrix.shape[1], out.shape[1], *_entries(matrix, part), given, out.ravel()
        )

    return _filled(matrix, dense.shape[1], fill, backend)


def collapse(
    matrix: sp.csr_array, labels: np.ndarray, n_clusters: int, backend: Backend
) -> np.ndarray:
    """Return the columns summed within clusters."""
    # The kernel needs labels of the same type as the indices.
    names = labels.astype(matrix.indices.dtype, copy=False)

    def fill(part: slice, out: np.ndarray) -> None:
        """Replace the columns of some rows by their labels: entries with equal ones are summed."""
        starts, columns, values = _entries(matrix, part)
        sparsetools.csr_todense(len(out), n_clusters, starts, names.take(columns), values, out)

    return _filled(matrix, n_clusters, fill, backend)


def multiply_transposed(matrix: sp.csr_array, dense: np.ndarray, backend: Backend) -> np.ndarray:
    """Return the product of the transposed matrix and a narrow dense one."""
    if matrix.nnz <= 2 * _ENTRIES:
        return matrix.T @ dense
    width = dense[0].size

    def add_up(part: slice) -> np.ndarray:
        given, out = dense[part].ravel(), np.empty((matrix.shape[1], width), dense.dtype)
        out.fill(0)
        sparsetools.csc_matvecs(
            len(out), len(dense[part]), width, *_entries(matrix, part), given, out.ravel()
        )
        return out

    sums = backend.map(add_up, summed_parts(matrix))
    total = backend.by_rows(lambda *some: reduce(np.add, some), *sums)
    return total.reshape(-1, *dense.shape[1:])


def row_sums(matrix: sp.csr_array, backend: Backend) -> np.ndarray:
    """Return the sum of every row."""
    parts = row_parts(matrix, CACHE_ENTRIES)
    sums = backend.map(lambda part: rows_of(matrix, part).sum(axis=1, dtype=np.float64), parts)
    return np.concatenate(sums)


def scaled(
    matrix: sp.csr_array, row_scale: np.ndarray, column_scale: np.ndarray, backend: Backend
) -> sp.csr_array:
    """Return the matrix with rows and columns multiplied; index arrays are not copied."""
    data = np.empty(matrix.nnz, row_scale.dtype)

    def scale(part: slice) -> None:
        starts, columns, values = _entries(matrix, part)
        out = data[matrix.indptr[part.start] : matrix.indptr[part.stop]]
        np.multiply(column_scale.take(columns), values, out=out)
        sparsetools.csr_scale_rows(
            len(starts) - 1, matrix.shape[1], starts, columns, out, row_scale[part]
        )

    backend.map(scale, row_parts(matrix, CACHE_ENTRIES))
    return sp.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def transposed(matrix: sp.csr_array, backend: Backend) -> sp.csr_array:
    """Return the transposed matrix; several threads sort and place parts of the rows."""
    rows = row_parts(matrix, max(_ENTRIES, -(-matrix.nnz // backend.n_jobs)))
    if backend.n_jobs < _LEAST_SORTING or len(rows) == 1:
        return sp.csr_array(matrix.T)
    parts = backend.map(lambda part: rows_of(matrix, part).tocsc(), rows)
    counts = np.array([np.diff(part.indptr) for part in parts])
    starts = np.append(0, np.cumsum(counts.sum(axis=0))).astype(matrix.indptr.dtype)
    # By how much entries move from their position in a part, for each part and column.
    shifts = starts[:-1] + np.cumsum(counts, axis=0) - counts
    data, indices = np.empty_like(matrix.data), np.empty_like(matrix.indices)

    def place(index: int) -> None:
        part = parts[index]
        columns = np.empty(part.nnz, part.indptr.dtype)
        sparsetools.expandptr(len(shifts[index]), part.indptr, columns)
        there = (shifts[index] - part.indptr[:-1]).take(columns) + np.arange(part.nnz)
        data[there] = part.data
        indices[there] = part.indices + rows[index].start

    backend.map(place, range(len(parts)))
    return sp.csr_array((data, indices, starts), shape=matrix.shape[::-1])


def row_parts(matrix: Matrix, size: int) -> list[slice]:
    """Return parts of the rows with about ``size`` entries, for any number of threads."""
    n_rows = matrix.shape[0]
    if is_sparse(matrix):
        # Rows may have very different numbers of entries: as many rows do not take as long.
        starts = matrix.indptr
        ends = np.searchsorted(starts, np.arange(size, matrix.nnz, size, dtype=starts.dtype))
        ends = [*sorted({*ends.tolist()} - {0, n_rows}), n_rows]
    else:
        step = max(1, -(-n_rows * size // max(matrix.size, 1)))
        ends = [*range(step, n_rows, step), n_rows]
    return [slice(first, end) for first, end in zip([0, *ends[:-1]], ends, strict=True)]


def summed_parts(matrix: Matrix) -> list[slice]:
    """Return parts of the rows whose sums are added: the same for any number of threads."""
    size = matrix.nnz if is_sparse(matrix) else matrix.size
    return row_parts(matrix, max(_ENTRIES, size // _MOST_PARTS))


def rows_of(matrix: sp.csr_array, part: slice) -> sp.csr_array:
    """Return some rows, which share their entries with the matrix."""
    rows = sp.csr_array((part.stop - part.start, matrix.shape[1]), dtype=matrix.dtype)
    # SciPy's constructor would copy them.
    rows.indptr, rows.indices, rows.data = _entries(matrix, part)
    return rows


def _entries(matrix: sp.csr_array, part: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the starts of some rows within their entries, and the entries' columns and values."""
    starts = matrix.indptr[part.start : part.stop + 1]
    held = slice(starts[0], starts[-1])
    return starts - starts[0], matrix.indices[held], matrix.data[held]


def _filled(
    matrix: sp.csr_array, width: int, fill: Callable[..., None], backend: Backend
) -> np.ndarray:
    """Return an array of ``width`` columns that threads fill by parts of the rows."""
    total = np.empty((matrix.shape[0], width), dtype=matrix.dtype)

    def fill_part(part: slice) -> None:
        total[part].fill(0)
        fill(part, total[part])

    # Two parts per thread, within limits: every part holds the interpreter lock for a moment.
    size = np.clip(matrix.nnz // (2 * backend.n_jobs), CACHE_ENTRIES, _ENTRIES)
    backend.map(fill_part, row_parts(matrix, int(size)))
    return total
