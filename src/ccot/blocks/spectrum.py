"""Leading singular vectors, and the shrinkage of singular values against noise."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial

import numpy as np
import scipy.sparse as sp

from ccot.blocks.axes import multiply, multiply_transposed
from ccot.runtime.backends import NUMPY, Backend, namespace, to_numpy
from ccot.runtime.types import Array, Matrix

Product = Callable[[Array], Array]

MAX_RANK = 20
# Dense matrices up to this size are decomposed in full.
_FULL_SIZE = 400
# Additional vectors of the randomised search, and its rounds.
_SPARE, _ROUNDS = 10, 4
# From this many rows, factors by products in parts are faster. The condition number of R, which
# products square, times this power of the rounding error must be below 1.
_MANY_ROWS, _INDEPENDENT = 2**13, 0.4
# Noise below this share of the largest singular value is rounding.
_ROUNDING = 1e-13


def leading_vectors(
    matrix: Matrix,
    rank: int,
    rng: np.random.Generator,
    backend: Backend = NUMPY,
    transposed: Matrix | None = None,
) -> tuple[Array, np.ndarray, Array]:
    """Return left vectors, singular values and right vectors (as columns), largest first."""
    # Vectors are on the backend; a sparse matrix on a device must be passed transposed, too.
    rank = min(rank, min(matrix.shape))
    if not sp.issparse(matrix) and transposed is None and min(matrix.shape) <= _FULL_SIZE:
        left, values, right = thin_svd(matrix, backend)
        return left[:, :rank], values[:rank], right[:rank].T
    seed = int(rng.integers(2**31))
    drawn = np.random.RandomState(seed).normal(size=(min(matrix.shape), rank + _SPARE))
    start = backend.xp.asarray(backend.send(drawn), dtype=matrix.dtype)
    forth = partial(multiply, matrix, backend=backend)
    back = partial(multiply_transposed, matrix, backend=backend)
    if transposed is not None:
        back = partial(multiply, transposed)
    if matrix.shape[0] >= matrix.shape[1]:
        return _search(forth, back, start, rank, backend)
    right, values, left = _search(back, forth, start, rank, backend)
    return left, values, right


def thin_svd(matrix: Array, backend: Backend = NUMPY) -> tuple[Array, np.ndarray, Array]:
    """Return the thin SVD of a dense matrix: vectors on its backend, singular values of NumPy."""
    if backend.device is None:
        return np.linalg.svd(matrix, full_matrices=False)
    if max(matrix.shape) < 2 * min(matrix.shape):
        left, values, right = np.linalg.svd(to_numpy(matrix), full_matrices=False)
        return backend.send(left), values, backend.send(right)
    # LAPACK also starts with QR for long matrices, so signs are the same as NumPy's.
    is_wide = matrix.shape[0] < matrix.shape[1]
    basis, triangle = backend.xp.linalg.qr(matrix.T if is_wide else matrix)
    core = to_numpy(triangle.T if is_wide else triangle)
    left, values, right = np.linalg.svd(core, full_matrices=False)
    left, right = backend.send(left), backend.send(right)
    return (left, values, right @ basis.T) if is_wide else (basis @ left, values, right)


def _search(
    forth: Product, back: Product, basis: Array, rank: int, backend: Backend
) -> tuple[Array, np.ndarray, Array]:
    """Return the SVD of a long matrix by random products (Halko et al., 2011, SIAM Rev. 53(2))."""
    # Only the shorter vectors are made orthogonal in every round; the span is the same.
    for _ in range(_ROUNDS):
        basis = _factors(back(forth(basis)), backend)[0]
    long = _factors(forth(basis), backend)[0]
    short, triangle = _factors(back(long), backend)
    # ``short @ triangle`` is the transposed matrix times ``long``; ``triangle`` is small.
    left, values, right = thin_svd(triangle, backend)
    left_vectors = backend.by_rows(lambda part: part @ right[:rank].T, long)
    return left_vectors, values[:rank], short @ left[:, :rank]


def _factors(matrix: Array, backend: Backend) -> tuple[Array, Array]:
    """Return Q and R; for many rows, by products in parts if these are as exact."""
    if backend.device is None and matrix.shape[0] >= _MANY_ROWS:
        with suppress(np.linalg.LinAlgError):
            basis, first = _factors_by_products(matrix, backend)
            # A second round corrects the rounding errors of the first.
            basis, second = _factors_by_products(basis, backend)
            return basis, second @ first
    return namespace(matrix).linalg.qr(matrix)


def _factors_by_products(matrix: np.ndarray, backend: Backend) -> tuple[np.ndarray, np.ndarray]:
    """Return Q and R by Cholesky's factors (Yamamoto et al., 2015, ETNA 44)."""
    width, least = matrix.shape[1], np.finfo(matrix.dtype).eps ** _INDEPENDENT

    def squares(part: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused below
            return part.T @ part

    products = backend.sum_by_rows(squares, matrix, width=width)
    triangle = np.linalg.cholesky(products).T
    if not least * np.linalg.cond(triangle) < 1:
        raise np.linalg.LinAlgError("columns hardly differ")
    inverse = np.linalg.inv(triangle)
    return backend.by_rows(lambda part: part @ inverse, matrix), triangle


def rank_to_look_at(shape: tuple[int, ...]) -> int:
    """Return how many singular values to compute: all if that is cheap, else twice those kept."""
    return min(shape) if min(shape) <= _FULL_SIZE else 2 * MAX_RANK


def shrink(singular: np.ndarray, shape: tuple[int, int], noise: float) -> np.ndarray:
    """Return singular values, shrunk optimally for squared loss (Gavish and Donoho, 2017)."""
    long, short = max(shape), min(shape)
    # If the noise is only rounding, nothing is shrunk; ratios to it may have infinite squares.
    if noise * np.sqrt(long) <= _ROUNDING * singular.max():
        return singular
    beta = short / long
    scaled = singular / (noise * np.sqrt(long))
    inner = (scaled**2 - beta - 1) ** 2 - 4 * beta
    shrunk = np.sqrt(np.maximum(inner, 0.0)) / np.maximum(scaled, 1e-12)
    return noise * np.sqrt(long) * np.where(scaled > 1 + np.sqrt(beta), shrunk, 0.0)


def noise_level(values: Array, singular: np.ndarray) -> float:
    """Return the noise level by the median of all singular values, or by the residual of some."""
    long, short = max(values.shape), min(values.shape)
    if len(singular) < short:
        rest = _sum_squares(values) - float(np.sum(singular**2))
        return float(np.sqrt(max(rest, 0.0) / (long * (short - len(singular)))))
    return float(np.median(singular) / np.sqrt(long * _median_marchenko_pastur(short / long)))


def _sum_squares(values: Array) -> float:
    """Return the sum of squares of a dense matrix, without a squared copy."""
    if isinstance(values, np.ndarray):
        return float(np.vdot(values, values))
    return float(namespace(values).linalg.vector_norm(values)) ** 2


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
