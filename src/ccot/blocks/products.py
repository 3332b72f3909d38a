"""Products of sparse matrices with narrow dense ones, by parts of their rows on several threads.

Parts do not depend on the number of threads, so neither do sums.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
import scipy.sparse as sp

from ccot.runtime import device_csr
from ccot.runtime.backends import NUMPY, Backend
from ccot.runtime.device_csr import is_device_csr, n_stored
from ccot.runtime.types import Matrix, is_sparse

# Entries of a part, and the parts whose sums may have to be held at once.
_ENTRIES, _MOST_PARTS = 2**20, 16


def multiply(matrix: Matrix, dense: np.ndarray, backend: Backend = NUMPY) -> np.ndarray:
    """Return the product of a matrix and a dense one."""
    if is_device_csr(matrix):
        return device_csr.multiply(matrix, dense)
    if backend.n_jobs == 1 or not is_sparse(matrix):
        return matrix @ dense
    parts = row_parts(matrix, _ENTRIES)
    return np.concatenate(backend.map(lambda part: rows_of(matrix, part) @ dense, parts))


def multiply_transposed(matrix: Matrix, dense: np.ndarray, backend: Backend = NUMPY) -> np.ndarray:
    """Return the product of a transposed matrix and a dense one."""
    if not is_sparse(matrix) or matrix.nnz <= _ENTRIES:
        return matrix.T @ dense
    parts = row_parts(matrix, max(_ENTRIES, matrix.nnz // _MOST_PARTS))
    sums = backend.map(lambda part: transpose(rows_of(matrix, part)) @ dense[part], parts)
    return reduce(np.add, sums)


def row_parts(matrix: Matrix, size: int) -> list[slice]:
    """Cut the rows of a matrix into parts of about so many entries."""
    n_rows = matrix.shape[0]
    step = max(1, n_rows * size // max(n_entries(matrix), 1))
    return [slice(first, min(first + step, n_rows)) for first in range(0, n_rows, step)]


def n_entries(matrix: Matrix) -> int:
    """Return how many entries a matrix stores."""
    if is_device_csr(matrix):
        return n_stored(matrix)
    return matrix.nnz if is_sparse(matrix) else matrix.size


def rows_of(
    matrix: sp.csr_array, part: slice, names: np.ndarray | None = None, n_names: int = 0
) -> sp.csr_array:
    """Return some rows, which share their entries with the matrix; columns may be renamed."""
    starts = matrix.indptr[part.start : part.stop + 1]
    held = slice(starts[0], starts[-1])
    indices = matrix.indices[held] if names is None else names.take(matrix.indices[held])
    rows = sp.csr_array((len(starts) - 1, n_names or matrix.shape[1]), dtype=matrix.dtype)
    return _with_entries(rows, matrix.data[held], indices, starts - starts[0])


def transpose(rows: sp.csr_array) -> sp.csc_array:
    """Return a transposed matrix that shares its entries."""
    columns = sp.csc_array(rows.shape[::-1], dtype=rows.dtype)
    return _with_entries(columns, rows.data, rows.indices, rows.indptr)


def _with_entries(matrix: Any, data: np.ndarray, indices: np.ndarray, starts: np.ndarray) -> Any:
    """Set the arrays of a matrix, which its constructor would look through and copy."""
    matrix.data, matrix.indices, matrix.indptr = data, indices, starts
    return matrix
