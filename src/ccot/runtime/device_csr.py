"""Sparse matrices on a device: CSR tensors of PyTorch, and what is done to them there."""

import importlib
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from ccot.runtime.backends import make_csr, with_values
from ccot.runtime.types import Array


def to_scipy(matrix: Any) -> sp.csr_array:
    """Bring a matrix to SciPy."""
    parts = matrix.values(), matrix.col_indices(), matrix.crow_indices()
    values, columns, starts = (part.cpu().numpy() for part in parts)
    return sp.csr_array(
        (values.astype(np.float64, copy=False), columns, starts), shape=tuple(matrix.shape)
    )


def multiply(matrix: Any, other: Array, width: int) -> Array:
    """Return the product with a narrow dense matrix; by labels, columns summed within clusters."""
    kernel = _kernel() if matrix.is_cuda else None
    if kernel is not None:
        return kernel(matrix, other, width)
    return matrix @ (shares(other, width, matrix.dtype) if other.ndim == 1 else other)


def shares(labels: Array, n_clusters: int, dtype: Any) -> Array:
    """Return labels as shares of zero and one."""
    names = labels.new_ones(n_clusters).cumsum(0) - 1
    return (labels[:, None] == names).to(dtype)


@cache
def _kernel() -> Callable[[Any, Array, int], Array] | None:
    """Return what is faster than the products of PyTorch, where Triton is installed."""
    try:
        return importlib.import_module("ccot.runtime.kernels").collapse
    except ImportError:
        return None


def by_row(matrix: Any, vector: Array) -> Array:
    """Return the value of its row for every entry."""
    counts = matrix.crow_indices().diff()
    return vector.repeat_interleave(counts, output_size=matrix.values().shape[0])


def row_numbers(matrix: Any) -> Array:
    """Return the row of every entry."""
    columns = matrix.col_indices()
    return by_row(matrix, columns.new_ones(matrix.shape[0]).cumsum(0, dtype=columns.dtype) - 1)


def row_sums(matrix: Any) -> Array:
    """Return the sum of every row."""
    return multiply(matrix, matrix.values().new_ones((matrix.shape[1], 1)), 1)[:, 0]


def transposed(matrix: Any) -> Any:
    """Return a matrix kept by its columns."""
    columns, n_columns = matrix.col_indices(), matrix.shape[1]
    order = columns.argsort(stable=True)
    starts = columns.new_zeros(n_columns + 1)
    starts[1:] = columns.bincount(minlength=n_columns).cumsum(0)
    parts = row_numbers(matrix)[order], matrix.values()[order]
    return make_csr(starts, *parts, (n_columns, matrix.shape[0]))


def scaled(matrix: Any, row_scale: Array, column_scale: Array) -> Any:
    """Return a matrix with rows and columns multiplied."""
    values = matrix.values() * column_scale[matrix.col_indices()]
    values *= by_row(matrix, row_scale)
    return with_values(matrix, values)


def take_rows(matrix: Any, members: Array) -> Any:
    """Return some rows."""
    starts = matrix.crow_indices()
    counts = starts.diff()[members]
    ends = starts.new_zeros(len(members) + 1)
    ends[1:] = counts.cumsum(0)
    shift = (starts[:-1][members] - ends[:-1]).repeat_interleave(counts)
    index = shift + shift.new_ones(len(shift)).cumsum(0) - 1
    parts = matrix.col_indices()[index], matrix.values()[index]
    return make_csr(ends, *parts, (len(members), matrix.shape[1]))


def sum_blocks(matrix: Any, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return sums over blocks, given the shares of rows and columns in them."""
    tensor = matrix.values().new_tensor
    return (tensor(rows).T @ multiply(matrix, tensor(columns), columns.shape[1])).cpu().numpy()
