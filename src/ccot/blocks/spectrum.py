"""Leading singular vectors, and what of them is signal."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.extmath import randomized_svd

Matrix = Any

MAX_RANK = 20
# Dense matrices up to this size are decomposed in full.
_FULL_SIZE = 400


def leading_vectors(
    matrix: Matrix, rank: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return left vectors, singular values and right vectors (as columns), largest first."""
    rank = min(rank, min(matrix.shape))
    if not sp.issparse(matrix) and min(matrix.shape) <= _FULL_SIZE:
        left, values, right = np.linalg.svd(matrix, full_matrices=False)
        return left[:, :rank], values[:rank], right[:rank].T
    seed = int(rng.integers(2**31))
    left, values, right = randomized_svd(matrix, rank, n_iter=4, random_state=seed)
    return left, values, right.T


def rank_to_look_at(shape: tuple[int, ...]) -> int:
    """All singular values where they come anyway, twice what is kept where they do not.

    The noise is read off their bulk: without it, the largest of the noise would pass for signal.
    """
    return min(shape) if min(shape) <= _FULL_SIZE else 2 * MAX_RANK


def shrink(singular: np.ndarray, shape: tuple[int, int], noise: float) -> np.ndarray:
    """Shrink singular values optimally for squared loss; 0 below the edge of the noise [1]_.

    Parameters
    ----------
    singular : array
        Singular values of signal plus noise.
    shape : tuple of int
        Shape of the matrix.
    noise : float
        Standard deviation of the noise.

    Returns
    -------
    array
        Singular values of the signal, estimated.

    References
    ----------
    .. [1] Gavish, M. and Donoho, D. L. (2017). Optimal shrinkage of singular values. IEEE
       Transactions on Information Theory 63(4).
    """
    if noise <= 0:
        return singular
    long, short = max(shape), min(shape)
    beta = short / long
    scaled = singular / (noise * np.sqrt(long))
    inner = (scaled**2 - beta - 1) ** 2 - 4 * beta
    shrunk = np.sqrt(np.maximum(inner, 0.0)) / np.maximum(scaled, 1e-12)
    return noise * np.sqrt(long) * np.where(scaled > 1 + np.sqrt(beta), shrunk, 0.0)


def noise_level(values: np.ndarray, singular: np.ndarray) -> float:
    """Estimate the noise from the bulk of the singular values: their median, or what is left."""
    long, short = max(values.shape), min(values.shape)
    if len(singular) < short:
        rest = float(np.vdot(values, values) - np.sum(singular**2))
        return float(np.sqrt(max(rest, 0.0) / (long * (short - len(singular)))))
    return float(np.median(singular) / np.sqrt(long * _median_marchenko_pastur(short / long)))


def low_rank(values: np.ndarray) -> np.ndarray:
    """Return the approximation of a dense matrix by its shrunk singular values."""
    rng = np.random.default_rng(0)
    left, singular, right = leading_vectors(values, rank_to_look_at(values.shape), rng)
    return (left * shrink(singular, values.shape, noise_level(values, singular))) @ right.T


def _median_marchenko_pastur(beta: float) -> float:
    low, high = (1 - np.sqrt(beta)) ** 2, (1 + np.sqrt(beta)) ** 2
    grid = np.linspace(low, high, 4001)[1:-1]
    cumulative = np.cumsum(np.sqrt((high - grid) * (grid - low)) / grid)
    return float(np.interp(0.5, cumulative / cumulative[-1], grid))
