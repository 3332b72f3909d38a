"""Sparse matrices on a device: CSR tensors of PyTorch, and what is done to them there."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any, TypeGuard

import numpy as np
import scipy.sparse as sp

from ccot.runtime.types import Array


def is_device_csr(X: Any) -> TypeGuard[Any]:
    """Tell whether something is a CSR tensor of PyTorch."""
    return bool(getattr(X, "is_sparse_csr", False))


def as_device_csr(X: Any) -> Any | None:
    """Return a CSR matrix of PyTorch or CuPy as a tensor where it is; None for anything else."""
    if is_device_csr(X):
        return X
    if not type(X).__module__.startswith("cupyx.scipy.sparse"):
        return None
    torch: Any = importlib.import_module("torch")
    rows = X.tocsr()
    starts, columns, values = map(torch.from_dlpack, (rows.indptr, rows.indices, rows.data))
    return make_csr(starts, columns, values, rows.shape)


def make_csr(starts: Array, columns: Array, values: Array, shape: Any) -> Any:
    """Return a CSR tensor of its parts."""
    torch: Any = importlib.import_module("torch")
    with warnings.catch_warnings():
        # PyTorch tells everyone that its sparse matrices are young.
        warnings.simplefilter("ignore", UserWarning)
        return torch.sparse_csr_tensor(starts, columns, values, size=tuple(shape))


def with_values(matrix: Any, values: Array) -> Any:
    """Return a matrix with other values in the same places, which are shared."""
    return make_csr(matrix.crow_indices(), matrix.col_indices(), values, matrix.shape)


def to_scipy(matrix: Any) -> sp.csr_array:
    """Bring a matrix to SciPy."""
    parts = matrix.values(), matrix.col_indices(), matrix.crow_indices()
    values, columns, starts = (part.cpu().numpy() for part in parts)
    return sp.csr_array(
        (values.astype(np.float64, copy=False), columns, starts), shape=tuple(matrix.shape)
    )


def n_stored(matrix: Any) -> int:
    """Return how many entries are stored."""
    return matrix.values().shape[0]


def multiply(matrix: Any, dense: Array) -> Array:
    """Return the product of a matrix and a narrow dense one."""
    kernel = _kernel() if matrix.is_cuda else None
    return matrix @ dense if kernel is None else kernel(matrix, dense, dense.shape[1])


def collapse(matrix: Any, labels: Array, n_clusters: int) -> Array:
    """Return the columns of a matrix summed within clusters."""
    kernel = _kernel() if matrix.is_cuda else None
    if kernel is None:
        return matrix @ shares(labels, n_clusters, matrix.dtype)
    return kernel(matrix, labels, n_clusters)


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
    return vector.repeat_interleave(matrix.crow_indices().diff(), output_size=n_stored(matrix))


def row_numbers(matrix: Any) -> Array:
    """Return the row of every entry."""
    columns = matrix.col_indices()
    return by_row(matrix, columns.new_ones(matrix.shape[0]).cumsum(0, dtype=columns.dtype) - 1)


def row_sums(matrix: Any) -> Array:
    """Return the sum of every row."""
    return multiply(matrix, matrix.values().new_ones((matrix.shape[1], 1)))[:, 0]


def transposed(matrix: Any) -> Any:
    """Return a matrix kept by its columns."""
    columns, n_columns = matrix.col_indices(), matrix.shape[1]
    order = columns.argsort(stable=True)
    counts = columns.bincount(minlength=n_columns)
    starts = columns.new_zeros(n_columns + 1)
    starts[1:] = counts.cumsum(0)
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
    return (tensor(rows).T @ multiply(matrix, tensor(columns))).cpu().numpy()
