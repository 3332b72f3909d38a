"""Entropic optimal transport by Sinkhorn's iteration, for batches of full kernels.

If a factor might overflow, one iteration is done in logarithms and the kernel absorbs its result.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from ccot.persistence.registry import stored
from ccot.runtime.types import Array

# In a kernel of at most this range, in nats, no entry and no factor underflows or overflows.
_NARROW = {"float32": 40.0, "float64": 300.0}
_LOWEST_LOG = -1.0e30


@stored()
class Status(Enum):
    """How an iterative solver ended, with advice."""

    CONVERGED = "converged"
    MAX_ITER = "stopped at max_iter before reaching tol: raise max_iter, reg or tol"


@dataclass(frozen=True)
class Scalings:
    """The result of :func:`sinkhorn`; leading axes are those of the kernel's batch."""

    log_row: Array
    log_column: Array
    n_iter: Array
    error: Array  # the larger L1 error of the marginals, each just before its correction
    status: Status


class _Kernel:
    """A Gibbs kernel with potentials absorbed, ``exp(log_kernel + log_row + log_column)``."""

    def __init__(self, log_kernel: Array, overwrite: bool, reach: float) -> None:
        self.xp = array_namespace(log_kernel)
        self._log_kernel = log_kernel
        range_limit = _NARROW["float32" if log_kernel.dtype == self.xp.float32 else "float64"]
        # In a wider kernel, entries that underflowed are negligible while factors are below this.
        self._highest = math.exp(range_limit / 2)
        # Entries with logarithms up to this have finite sums, even times the largest factors.
        self._top = math.log(float(self.xp.finfo(log_kernel.dtype).max)) - 20 - range_limit / 2
        self.log_row = self._wide(self.xp.zeros_like(log_kernel[..., :, 0]))
        self.log_column = self._wide(self.xp.zeros_like(log_kernel[..., 0, :]))
        self.never_drifts = 2 * reach <= range_limit
        if not self.never_drifts:
            log_kernel = self._from_the_top(log_kernel, overwrite, range_limit)
        in_place = {"out": log_kernel} if overwrite and self.never_drifts else {}
        self._kernel = self.xp.exp(log_kernel, **in_place)

    def _from_the_top(self, log_kernel: Array, overwrite: bool, range_limit: float) -> Array:
        """Return the log kernel after absorbing its largest entry, or each row's if it is wide."""
        xp = self.xp
        top = xp.max(log_kernel, axis=(-2, -1))[..., None]
        bottom = xp.min(log_kernel, axis=(-2, -1))[..., None]
        is_narrow = top - bottom <= range_limit
        self.never_drifts = bool(xp.all(is_narrow))
        if not self.never_drifts:
            top = xp.where(is_narrow, top, xp.max(log_kernel, axis=-1))
        self.log_row = self.log_row - self._wide(top)
        if not (overwrite and self.never_drifts):
            return log_kernel - top[..., None]
        log_kernel -= top[..., None]
        return log_kernel

    def _wide(self, vector: Array) -> Array:
        return self.xp.astype(vector, self.xp.float64)

    def narrow(self, vector: Array) -> Array:
        """Return a vector in the precision of the kernel."""
        return self.xp.astype(vector, self._log_kernel.dtype)

    def is_close(self, factor: Array) -> bool:
        """Return True if all factors are small enough not to be absorbed."""
        return bool(self.xp.max(factor) <= self._highest)

    def row_sums(self, column: Array) -> Array:
        """Return the row sums of the kernel after multiplying its columns by these factors."""
        return self.xp.matmul(self._kernel, column[..., :, None])[..., :, 0]

    def column_sums(self, row: Array) -> Array:
        """Return the column sums of the kernel after multiplying its rows by these factors."""
        return self.xp.matmul(row[..., None, :], self._kernel)[..., 0, :]

    def absorb(self, log_row: Array, log_column: Array) -> None:
        """Replace the absorbed potentials by these."""
        self.log_row, self.log_column = log_row, log_column
        self.never_drifts = False
        shifted = self._log_kernel + self.narrow(log_row)[..., :, None]
        shifted += self.narrow(log_column)[..., None, :]
        # Potentials rounded to single precision may leave entries that would overflow.
        self._kernel = self.xp.exp(self.xp.clip(shifted, None, self._top))

    def log_sums(self, log_factor: Array, axis: int) -> Array:
        """Return ``log sum exp(log_kernel + log_factor)`` of the rows (-1) or columns (-2)."""
        xp = self.xp
        terms = self._log_kernel + self.narrow(log_factor)
        top = xp.max(terms, axis=axis, keepdims=True)
        sums = xp.sum(xp.exp(terms - top), axis=axis)
        return xp.log(self._wide(sums)) + self._wide(xp.squeeze(top, axis=axis))

    def keep(self, row: Array, column: Array) -> tuple[Array, Array]:
        """Return the logarithms of the scalings, which do not depend on what is absorbed later."""
        return self.log_scaling(row, self.log_row), self.log_scaling(column, self.log_column)

    def log_scaling(self, factor: Array, absorbed: Array) -> Array:
        """Return the logarithm of a scaling; finite where a factor is zero."""
        log_factor = self.xp.log(self._wide(factor))
        return absorbed + self.xp.where(factor > 0, log_factor, _LOWEST_LOG)


def sinkhorn(
    log_kernel: Array,
    *,
    log_row_start: Array | None = None,
    max_iter: int = 1000,
    tol: float = 1e-6,
    check_every: int = 1,
    overwrite: bool = False,
    reach: float = math.inf,
) -> Scalings:
    """Return the scalings of Gibbs kernels, shape (..., n, m), to uniform marginals (Cuturi, 2013).

    Products and factors have the precision of the kernel; log scalings are in float64. In narrow
    kernels, errors are checked every ``check_every`` iterations: on a GPU a check takes longer than
    an iteration. ``overwrite`` allows the memory of the kernel to be overwritten; ``reach`` is a
    bound on the absolute values of its logarithms.
    """
    kernel = _Kernel(log_kernel, overwrite and log_row_start is None, reach)
    # If a factor is infinite or undefined, the iteration is repeated in logarithms.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        row = _start(kernel, log_row_start)
        log_row, log_column, n_iter, error, status = scale(kernel, row, max_iter, tol, check_every)
    return Scalings(log_row, log_column, n_iter, kernel.xp.astype(error, kernel.xp.float64), status)


def scale(
    kernel: Any, row: Array, max_iter: int, tol: float, check_every: int
) -> tuple[Array, Array, Array, Array, Status]:
    """Return row and column scalings, numbers of iterations, errors and the status.

    Columns and rows are scaled in turn until both marginals hold, separately for each problem.
    """
    xp, kept, running = kernel.xp, None, True
    column_sums = kernel.column_sums(row)
    row_mass, column_mass = 1 / row.shape[-1], 1 / column_sums.shape[-1]
    for iteration in range(1, max_iter + 1):
        column = column_mass / column_sums
        row_sums = kernel.row_sums(column)
        next_row = row_mass / row_sums
        last = iteration == max_iter
        if kernel.never_drifts and iteration % check_every and not last:
            row = next_row
            column_sums = kernel.column_sums(row)
            continue
        if kernel.never_drifts or (kernel.is_close(column) and kernel.is_close(next_row)):
            error = xp.sum(xp.abs(row * row_sums - row_mass), axis=-1)
        else:
            before = kernel.log_scaling(row, kernel.log_row)
            log_row_sums = _iterate_in_logs(kernel, before)
            column, next_row = xp.ones_like(column), xp.ones_like(row)
            error = xp.sum(xp.abs(xp.exp(before + log_row_sums) - row_mass), axis=-1)
        row = next_row
        column_sums = kernel.column_sums(row)
        if bool(xp.min(error) > tol) and not last:
            continue
        column_error = xp.sum(xp.abs(column * column_sums - column_mass), axis=-1)
        error = xp.maximum(error, column_error)
        converged = error <= tol
        if last or bool(xp.any(running & converged)):
            # Each problem keeps the result of its last iteration, as if it were solved alone.
            n_iter = xp.zeros_like(error, dtype=xp.int64) + iteration
            now = (*kernel.keep(row, column), n_iter, error)
            kept = now if kept is None else _choose(running, now, kept)
            running = running & ~converged
            if last or not bool(xp.any(running)):
                break
    assert kept is not None, "max_iter is at least 1"
    return *kept, Status.MAX_ITER if bool(xp.any(running)) else Status.CONVERGED


def extend_scaling(log_kernel: np.ndarray, log_anchor_scaling: np.ndarray, mass: float):
    """Return log scalings of new points (rows) of this mass, given those of anchors (columns)."""
    terms = log_kernel + log_anchor_scaling
    top = terms.max(axis=-1, keepdims=True)
    terms -= top
    return math.log(mass) - top[..., 0] - np.log(np.exp(terms, out=terms).sum(axis=-1))


def _choose(running: Array, now: Sequence[Array], earlier: Sequence[Array]) -> tuple[Array, ...]:
    """Return the current results of problems still running, and the kept results of others."""
    xp = array_namespace(running)
    return tuple(
        xp.where(running if new.ndim == running.ndim else running[..., None], new, old)
        for new, old in zip(now, earlier, strict=True)
    )


def _start(kernel: _Kernel, log_row: Array | None) -> Array:
    """Return the factors to start with; if they are too large or small, the kernel absorbs them."""
    xp = kernel.xp
    if log_row is None:
        return xp.ones_like(kernel.narrow(kernel.log_row))
    start: Array = log_row + xp.zeros_like(kernel.log_row)
    row = kernel.narrow(xp.exp(start - kernel.log_row))
    if kernel.is_close(row) and kernel.is_close(1 / row):
        return row
    kernel.absorb(start, -kernel.log_sums(start[..., :, None], axis=-2))
    return xp.ones_like(row)


def _iterate_in_logs(kernel: _Kernel, log_row: Array) -> Array:
    """Return the log row sums in one iteration in logarithms; the kernel absorbs its result."""
    log_column_sums = kernel.log_sums(log_row[..., :, None], axis=-2)
    log_column = -math.log(log_column_sums.shape[-1]) - log_column_sums
    log_row_sums = kernel.log_sums(log_column[..., None, :], axis=-1)
    kernel.absorb(-math.log(log_row_sums.shape[-1]) - log_row_sums, log_column)
    return log_row_sums
