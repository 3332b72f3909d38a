"""Sparse matrices on a device: CSR tensors of PyTorch, and operations on them."""

import importlib
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from ccot.runtime.backends import make_csr, with_values
from ccot.runtime.types import Array


def to_scipy(matrix: Any) -> sp.csr_array:
    """Return a matrix as SciPy's CSR array of float64."""
    parts = matrix.values(), matrix.col_indices(), matrix.crow_indices()
    values, columns, starts = (part.cpu().numpy() for part in parts)
    return sp.csr_array(
        (values.astype(np.float64, copy=False), columns, starts), shape=tuple(matrix.shape)
    )


def multiply(matrix: Any, other: Array, width: int) -> Array:
    """Return the product with a narrow dense matrix; for labels, columns summed within clusters."""
    kernel = _kernel() if matrix.is_cuda else None
    if kernel is not None:
        return kernel(matrix, other, width)
    return matrix @ (shares(other, width, matrix.dtype) if other.ndim == 1 else other)


def shares(labels: Array, n_clusters: int, dtype: Any) -> Array:
    """Return labels as shares of zero and one."""
    torch: Any = importlib.import_module("torch")
    return (labels[:, None] == torch.arange(n_clusters, device=labels.device)).to(dtype)


@cache
def _kernel() -> Callable[[Any, Array, int], Array] | None:
    """Return a product that is faster than PyTorch's; None if Triton is not installed."""
    try:
        return importlib.import_module("ccot.runtime.kernels").collapse
    except ImportError:
        return None


def by_row(matrix: Any, vector: Array) -> Array:
    """Return for every entry the value of its row in ``vector``."""
    counts = matrix.crow_indices().diff()
    return vector.repeat_interleave(counts, output_size=matrix.values().shape[0])


def row_sums(matrix: Any) -> Array:
    """Return the sum of every row."""
    return multiply(matrix, matrix.values().new_ones((matrix.shape[1], 1)), 1)[:, 0]


def transposed(matrix: Any) -> Any:
    """Return the transposed matrix, in CSR format."""
    columns, n_columns = matrix.col_indices(), matrix.shape[1]
    order = columns.argsort(stable=True)
    starts = columns.new_zeros(n_columns + 1)
    starts[1:] = columns.bincount(minlength=n_columns).cumsum(0)
    rows = columns.new_ones(matrix.shape[0]).cumsum(0, dtype=columns.dtype) - 1
    parts = by_row(matrix, rows)[order], matrix.values()[order]
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


def sum_blocks(matrix: Any, rows: Array, columns: Array, shape: tuple[int, int]) -> np.ndarray:
    """Return sums over blocks, given the labels of rows and columns."""
    torch: Any = importlib.import_module("torch")
    own, other = (torch.as_tensor(labels, device=matrix.device) for labels in (rows, columns))
    total = multiply(matrix, other, shape[1])
    return (shares(own, shape[0], total.dtype).T @ total).cpu().numpy()
