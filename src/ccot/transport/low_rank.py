r"""Low-rank matrices, stored as products of two thin ones: couplings, costs and similarities.

With much regularisation, few terms matter in the entries of the Gibbs kernel,
:math:`e^{\sum_k x_k y_k} = \prod_k \sum_p x_k^p y_k^p / p!`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from array_api_compat import array_namespace

from ccot.persistence.registry import stored
from ccot.runtime.types import Array
from ccot.transport.sinkhorn import Status, scale

# Terms of the exponential below this are lost in rounding, since its first term is 1.
_NEGLIGIBLE = 1e-15
# If scalings start with a range of more than this many nats, full matrices are used instead.
_WIDEST = 300.0


@stored("Product")
@dataclass(frozen=True)
class LowRank:
    """The matrix ``left @ right.T``."""

    left: Array
    right: Array

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the matrix."""
        return self.left.shape[0], self.right.shape[0]

    def __matmul__(self, other: Array) -> Array:
        return self.left @ (self.right.T @ other)

    def dense(self) -> Array:
        """Return the full matrix."""
        return self.left @ self.right.T

    def inner(self, other: "LowRank") -> float:
        """Return the sum of the products of the entries of two matrices."""
        xp = array_namespace(self.left)
        return float(xp.sum((self.left.T @ other.left) * (self.right.T @ other.right)))


@dataclass(frozen=True)
class LowRankKernel(LowRank):
    """Similarities with two equal factors; for KL, ``logarithm`` multiplies by their logarithms."""

    logarithm: Any = None

    def mean(self) -> float:
        """Return the mean of the similarities."""
        xp = array_namespace(self.left)
        return float(xp.sum(xp.mean(self.left, axis=0) ** 2))

    def mean_square(self) -> float:
        """Return the mean of the squared similarities."""
        return self.inner(self) / self.shape[0] ** 2

    def mean_entropy(self) -> float:
        """Return the mean of the similarities times their logarithms."""
        xp = array_namespace(self.left)
        return float(xp.sum(self.left * (self.logarithm @ self.left))) / self.shape[0] ** 2


@dataclass(frozen=True)
class Plan:
    """The result of :func:`transport_product`; ``negative_entropy`` sums ``T (log T - 1)``."""

    log_row: Array
    log_column: Array
    coupling: LowRank
    negative_entropy: float
    status: Status


def transport_product(
    log_kernel: LowRank, log_row_start: Array, max_iter: int, tol: float
) -> Plan | None:
    """Return the entropic plan between uniform masses; None if the rank or a range is too large."""
    xp = array_namespace(log_kernel.left)
    row_part, column_part, centred = _centre(log_kernel)
    kernel = _exponential(centred, max_rank=min(log_kernel.shape) // 4)
    start = log_row_start + row_part
    if kernel is None or float(xp.max(start) - xp.min(start)) > _WIDEST:
        return None
    top = xp.max(start)
    narrow = _NarrowKernel(kernel.left, kernel.right)
    row, column, _, _, status = scale(narrow, xp.exp(start - top), max_iter, tol, check_every=1)
    coupling = LowRank(kernel.left * row[:, None], kernel.right * column[:, None])
    log_row, log_column = xp.log(row), xp.log(column)
    row_sums = coupling.left @ xp.sum(coupling.right, axis=0)
    column_sums = coupling.right @ xp.sum(coupling.left, axis=0)
    mean_log = xp.sum(row_sums * (log_row - 1)) + xp.sum(column_sums * log_column)
    return Plan(
        log_row + top - row_part,
        log_column - top - column_part,
        coupling,
        float(mean_log) + coupling.inner(centred),
        status,
    )


def join_low_rank(products: Sequence[LowRank]) -> LowRank:
    """Return the sum of matrices."""
    xp = array_namespace(products[0].left)
    factors = zip(*((product.left, product.right) for product in products), strict=True)
    return LowRank(*(xp.concat(factor, axis=1) for factor in factors))


def _centre(product: LowRank) -> tuple[Array, Array, LowRank]:
    """Return row terms, column terms and a rest of low rank, which add up to the given product."""
    xp = array_namespace(product.left)
    left_mean, right_mean = xp.mean(product.left, axis=0), xp.mean(product.right, axis=0)
    left, right = product.left - left_mean, product.right - right_mean
    row_part, column_part = product.left @ right_mean, right @ left_mean
    left, left_root = xp.linalg.qr(left, mode="reduced")
    right, right_root = xp.linalg.qr(right, mode="reduced")
    left_turn, values, right_turn = xp.linalg.svd(left_root @ right_root.T, full_matrices=False)
    root = xp.sqrt(values)
    left, right = left @ (left_turn * root), right @ (right_turn.T * root)
    used = int(xp.sum(xp.astype(_reach(LowRank(left, right)) > _NEGLIGIBLE, xp.int64)))
    return row_part, column_part, LowRank(left[:, :used], right[:, :used])


def _reach(product: LowRank) -> Array:
    """Return, for each term of a product, a bound on its entries."""
    xp = array_namespace(product.left)
    return xp.max(xp.abs(product.left), axis=0) * xp.max(xp.abs(product.right), axis=0)


def _exponential(product: LowRank, max_rank: int) -> LowRank | None:
    """Return the exponential of the entries; None if it needs more than ``max_rank`` terms."""
    xp = array_namespace(product.left)
    ones = (xp.sum(xp.zeros_like(side), axis=1) + 1 for side in (product.left, product.right))
    terms = [(1.0, *ones)]
    for term, reach in enumerate(_reach(product)):
        x, y, bound = product.left[:, term], product.right[:, term], float(reach)
        grown = []
        for size, left, right in terms:
            power = 1
            while size > _NEGLIGIBLE:
                grown.append((size, left, right))
                if len(grown) > max_rank:
                    return None
                size, left, right = size * bound / power, left * x, right * (y / power)
                power += 1
        terms = grown
    _, left, right = zip(*terms, strict=True)
    return LowRank(xp.stack(left, axis=1), xp.stack(right, axis=1))


class _NarrowKernel(LowRank):
    """A Gibbs kernel of low rank for :func:`scale`; its scalings need no logarithms."""

    never_drifts = True
    row_sums = LowRank.__matmul__

    @property
    def xp(self) -> Any:
        return array_namespace(self.left)

    def column_sums(self, row: Array) -> Array:
        return self.right @ (self.left.T @ row)

    def keep(self, row: Array, column: Array) -> tuple[Array, Array]:
        return row, column
