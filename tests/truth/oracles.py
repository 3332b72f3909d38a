"""The slow, obvious versions: nothing here knows how the library does it.

Entropic transport is computed twice. :func:`scale_exactly` is Sinkhorn's rule as it is printed,
in fifty decimal digits whose exponents have no limit; :func:`scale_in_logs` makes the same
iterations in float64, every sum in the log domain, where fifty digits would take too long.
"""

from dataclasses import dataclass

import mpmath
import numpy as np
from scipy.special import logsumexp

_DIGITS = 50


@dataclass(frozen=True)
class Scaled:
    """One problem after some iterations.

    ``error`` is the larger of the L1 errors of both marginals, each taken before it is set right.
    """

    log_row: np.ndarray
    log_column: np.ndarray
    error: float


def scale_exactly(log_kernel, log_start, n_iter) -> Scaled:
    """Sinkhorn's rule in fifty digits: columns, then rows, ``n_iter`` times."""
    n_rows, n_columns = log_kernel.shape
    with mpmath.workdps(_DIGITS):
        kernel = [[mpmath.exp(float(entry)) for entry in row] for row in log_kernel]
        turned = list(zip(*kernel, strict=True))
        row = [mpmath.exp(float(value)) for value in log_start]
        a, b = ([mpmath.mpf(1) / size] * size for size in (n_rows, n_columns))
        for _ in range(n_iter):
            column = [mass / mpmath.fdot(row, line) for mass, line in zip(b, turned, strict=True)]
            sums = [mpmath.fdot(column, line) for line in kernel]
            row_error = _distance([u * s for u, s in zip(row, sums, strict=True)], a)
            row = [mass / total for mass, total in zip(a, sums, strict=True)]
        sums = [v * mpmath.fdot(row, line) for v, line in zip(column, turned, strict=True)]
        error = float(max(row_error, _distance(sums, b)))
        return Scaled(_exact_logs(row), _exact_logs(column), error)


def scale_in_logs(log_kernel, log_start, n_iter) -> Scaled:
    """The same iterations in float64, every sum in the log domain."""
    log_a, log_b = -np.log(log_kernel.shape)
    log_kernel = np.asarray(log_kernel, dtype=np.float64)
    log_row = np.asarray(log_start, dtype=np.float64)
    for _ in range(n_iter):
        log_column = log_b - logsumexp(log_kernel + log_row[:, None], axis=0)
        log_sums = logsumexp(log_kernel + log_column, axis=1)
        row_error = np.abs(np.exp(log_row + log_sums) - np.exp(log_a)).sum()
        log_row = log_a - log_sums
    log_sums = log_column + logsumexp(log_kernel + log_row[:, None], axis=0)
    column_error = np.abs(np.exp(log_sums) - np.exp(log_b)).sum()
    return Scaled(log_row, log_column, float(max(row_error, column_error)))


def _exact_logs(values):
    return np.array([float(mpmath.log(value)) for value in values])


def _distance(sums, masses):
    return mpmath.fsum(abs(s - m) for s, m in zip(sums, masses, strict=True))
