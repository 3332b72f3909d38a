r"""Entropic optimal transport: the only Sinkhorn loop in the house.

The problem is ``min <M, P> - (1 / lambda) E(P)`` over couplings ``P`` of two given marginals; its
answer is ``P = diag(alpha) exp(-lambda M) diag(beta)``. The loop knows nothing of costs: it takes
``log_kernel = -lambda M`` and scales it, so that whatever depends on one index only may be left
out of the kernel and added to the logarithm of the scaling afterwards.

Vectors live in float64 and as logarithms, so that scalings may differ by hundreds of orders of
magnitude. Products with the kernel are plain matrix products: the potentials reached so far are
absorbed into the kernel whenever it drifts towards under- or overflow, which keeps the speed of
plain scaling and the range of the log domain.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import Any

from array_api_compat import array_namespace

Array = Any

# A vector entry this many nats from the absorbed potential triggers a new absorption: the product
# of two such factors with a kernel entry still lies within the floating-point range.
_DRIFT = {"float32": 20.0, "float64": 150.0}
_LOWEST_LOG = -1.0e30


class Status(Enum):
    """How an iterative solver ended, in words that carry advice."""

    CONVERGED = "converged"
    MAX_ITER = "stopped at max_iter before reaching tol: raise max_iter, reg or tol"


@dataclass(frozen=True)
class Scalings:
    """The answer of :func:`sinkhorn`; leading axes are those of the kernel's batch.

    Attributes
    ----------
    log_row, log_column : arrays of shape (..., n) and (..., m)
        Logarithms of the scaling vectors.
    n_iter : array of shape (...)
        Iterations used by each problem of the batch.
    error : array of shape (...)
        The larger of the L1 errors of both marginals, each taken just before it is set right.
    status : Status
        Whether every problem of the batch converged.
    """

    log_row: Array
    log_column: Array
    n_iter: Array
    error: Array
    status: Status


class _Kernel:
    """A Gibbs kernel with potentials absorbed, ``exp(log_kernel + log_row + log_column)``."""

    def __init__(self, log_kernel: Array) -> None:
        self.xp = array_namespace(log_kernel)
        self._log_kernel = log_kernel
        self._drift = _DRIFT["float32" if log_kernel.dtype == self.xp.float32 else "float64"]
        top = self.xp.max(log_kernel, axis=-1)
        self._absorb(-self._wide(top), self.xp.zeros_like(self._wide(log_kernel[..., 0, :])))

    def _wide(self, vector: Array) -> Array:
        return self.xp.astype(vector, self.xp.float64)

    def _narrow(self, vector: Array) -> Array:
        return self.xp.astype(vector, self._log_kernel.dtype)

    def _absorb(self, log_row: Array, log_column: Array) -> None:
        self.log_row, self.log_column = log_row, log_column
        shifted = self._log_kernel + self._narrow(log_row)[..., :, None]
        shifted += self._narrow(log_column)[..., None, :]
        self._kernel = self.xp.exp(shifted)

    def log_row_sums(self, log_row: Array, log_column: Array) -> Array:
        """Return ``log sum_j exp(log_kernel_ij + log_column_j)``."""
        return self._log_sums(log_row, log_column, axis=-1)

    def log_column_sums(self, log_row: Array, log_column: Array) -> Array:
        """Return ``log sum_i exp(log_kernel_ij + log_row_i)``."""
        return self._log_sums(log_row, log_column, axis=-2)

    def _log_sums(self, log_row: Array, log_column: Array, axis: int) -> Array:
        xp = self.xp
        drift = log_column - self.log_column if axis == -1 else log_row - self.log_row
        if not bool(xp.any(xp.abs(drift) > self._drift)):
            factor = self._narrow(xp.exp(drift))
            if axis == -1:
                sums = xp.matmul(self._kernel, factor[..., :, None])[..., :, 0]
            else:
                sums = xp.matmul(factor[..., None, :], self._kernel)[..., 0, :]
            if bool(xp.all(sums > 0)):
                absorbed = self.log_row if axis == -1 else self.log_column
                return xp.log(self._wide(sums)) - absorbed
        return self._log_sums_exactly(log_row, log_column, axis)

    def _log_sums_exactly(self, log_row: Array, log_column: Array, axis: int) -> Array:
        """Log-domain sums; they also tell where the kernel should be centred from now on."""
        xp = self.xp
        given = log_column[..., None, :] if axis == -1 else log_row[..., :, None]
        terms = self._log_kernel + self._narrow(given)
        top = xp.max(terms, axis=axis, keepdims=True)
        sums = xp.sum(xp.exp(terms - top), axis=axis)
        log_sums = xp.log(self._wide(sums)) + self._wide(xp.squeeze(top, axis=axis))
        self._absorb(*((-log_sums, log_column) if axis == -1 else (log_row, -log_sums)))
        return log_sums


def sinkhorn(
    log_kernel: Array,
    *,
    log_row_mass: Array | None = None,
    log_column_mass: Array | None = None,
    log_row_start: Array | None = None,
    max_iter: int = 1000,
    tol: float = 1e-6,
) -> Scalings:
    r"""Scale a batch of Gibbs kernels to given marginals.

    Finds ``alpha, beta`` such that ``diag(alpha) exp(log_kernel) diag(beta)`` has the given row
    and column sums [1]_: each iteration sets the columns right, then the rows.

    Parameters
    ----------
    log_kernel : array of shape (..., n, m)
        Logarithms of the kernels, ``-lambda * cost``. Any array library with the array API; the
        kernel's precision is that of the matrix products, vectors are kept in float64.
    log_row_mass, log_column_mass : arrays broadcastable to (..., n) and (..., m), optional
        Logarithms of the marginals; uniform with total mass 1 by default.
    log_row_start : array of shape (..., n), optional
        Logarithm of the row scaling to start from; by default one over each row's largest entry.
    max_iter : int, default=1000
        Limit on the iterations of each problem.
    tol : float, default=1e-6
        A problem has converged when the L1 errors of both marginals are below this.

    Returns
    -------
    Scalings
        Logarithms of the scalings, iterations, error and status.

    References
    ----------
    .. [1] Cuturi, M. (2013). Sinkhorn distances: lightspeed computation of optimal transport.
       Advances in Neural Information Processing Systems 26.

    Examples
    --------
    >>> import numpy as np
    >>> cost = np.array([[0.0, 1.0], [2.0, 0.5]])
    >>> answer = sinkhorn(-cost, tol=1e-12)
    >>> coupling = np.exp(answer.log_row[:, None] - cost + answer.log_column)
    >>> coupling.sum(axis=0), coupling.sum(axis=1)
    (array([0.5, 0.5]), array([0.5, 0.5]))
    """
    xp = array_namespace(log_kernel)
    kernel = _Kernel(log_kernel)
    log_row, log_column = kernel.log_row, kernel.log_column
    log_row_mass = _masses(log_row_mass, log_row)
    log_column_mass = _masses(log_column_mass, log_column)
    if log_row_start is not None:
        log_row = log_row_start + xp.zeros_like(log_row)
    row_mass, column_mass = xp.exp(log_row_mass), xp.exp(log_column_mass)

    running = xp.isfinite(log_row[..., 0])
    n_iter = xp.zeros_like(xp.astype(running, xp.int64))
    error = xp.zeros_like(log_row[..., 0])
    log_column_sums = kernel.log_column_sums(log_row, log_column)
    for _ in range(max_iter):
        # Problems that have converged stay as they are: a batch gives what its members give.
        active = running[..., None]
        log_column = xp.where(active, log_column_mass - log_column_sums, log_column)
        log_row_sums = kernel.log_row_sums(log_row, log_column)
        row_error = _distance(log_row + log_row_sums, row_mass)
        log_row = xp.where(active, log_row_mass - log_row_sums, log_row)
        log_column_sums = kernel.log_column_sums(log_row, log_column)
        column_error = _distance(log_column + log_column_sums, column_mass)
        error = xp.where(running, xp.maximum(row_error, column_error), error)
        n_iter = n_iter + xp.astype(running, xp.int64)
        running = running & (error > tol)
        if not bool(xp.any(running)):
            break
    status = Status.MAX_ITER if bool(xp.any(running)) else Status.CONVERGED
    return Scalings(log_row, log_column, n_iter, error, status)


def _distance(log_sums: Array, mass: Array) -> Array:
    """L1 distance between the sums of a coupling and the masses they should be."""
    xp = array_namespace(mass)
    return xp.sum(xp.abs(xp.exp(log_sums) - mass), axis=-1)


def _masses(log_mass: Array | None, like: Array) -> Array:
    """Broadcast log masses to a batch; uniform where none are given."""
    xp = array_namespace(like)
    if log_mass is None:
        return xp.zeros_like(like) - math.log(like.shape[-1])
    # Points without mass keep a finite, vanishing scaling: no minus infinity enters the loop.
    return xp.zeros_like(like) + xp.where(log_mass > _LOWEST_LOG, log_mass, _LOWEST_LOG)
