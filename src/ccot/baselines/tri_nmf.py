"""Orthogonal non-negative tri-factorisation of a matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ccot.baselines.base import IterativeBaseline
from ccot.baselines.partitions import TwoWay, indicator, kmeans_labels, times
from ccot.runtime.run import RandomState
from ccot.runtime.types import Matrix, is_sparse

_TINY = 1e-300
# Added to the indicators of the first partitions: a zero would stay zero for ever.
_OFFSET = 0.2
# Halvings of a multiplicative step that would raise the error, before it is left out.
_HALVINGS = 4


class TriNMF(IterativeBaseline):
    r"""Orthogonal non-negative matrix tri-factorisation [1]_.

    .. math:: \min_{F, S, G \ge 0} \|X - F S G^\top\|^2
              \quad \text{with} \quad F^\top F = I,\; G^\top G = I

    by the multiplicative rules

    .. math:: G \leftarrow G \sqrt{\frac{X^\top F S}{G G^\top X^\top F S}}, \quad
              F \leftarrow F \sqrt{\frac{X G S^\top}{F F^\top X G S^\top}}, \quad
              S \leftarrow S \sqrt{\frac{F^\top X G}{F^\top F S G^\top G}}.

    The largest entry in its row of :math:`F` (:math:`G`) is the cluster of a row (column).

    Parameters
    ----------
    n_row_clusters, n_column_clusters : int, default=2
        Numbers of clusters.
    n_init : int, default=10
        Number of starts; the one with the smallest error is kept. A start adds 0.2 to the
        indicators of a K-means partition of the rows and of one of the columns, as the paper
        recommends.
    max_iter : int, default=500
        Limit on the iterations of each start.
    tol : float, default=1e-5
        Relative change of the error at which a start ends.
    n_jobs, random_state : int or None, default=None
        Number of threads (-1: all), on which labels do not depend; seed, or a generator.

    Attributes
    ----------
    row_labels_, column_labels_ : ndarray of int
        Cluster of each row and column.
    n_row_clusters_, n_column_clusters_ : int
        Numbers of clusters that have members: a factor that is largest nowhere has none.
    block_means_ : ndarray of shape (n_row_clusters, n_column_clusters)
        Mean of each block.
    criterion_ : float
        Squared error :math:`\|X - F S G^\top\|^2`.
    criterion_path_ : ndarray of shape (n_iter_ + 1,)
        The same before the first iteration of the kept start and after each; never rises.
    rows_, columns_, biclusters_, n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    The rules for :math:`F` and :math:`G` are proved to lower a Lagrangian whose multipliers stay
    as they are. The error itself may rise a little while the factors are straightened out. Here
    a rule that would raise it is applied with half the exponent, a quarter and so on, and left
    out if that does not help.

    References
    ----------
    .. [1] Ding, C., Li, T., Peng, W. and Park, H. (2006). Orthogonal nonnegative matrix
       tri-factorizations for clustering. KDD.

    Examples
    --------
    >>> from ccot.baselines import TriNMF
    >>> from ccot.datasets import make_latent_blocks
    >>> blocks = make_latent_blocks([[9, 1, 4], [1, 9, 2]], 40, 30, sigma=0.1, random_state=0)
    >>> model = TriNMF(2, 3, random_state=0).fit(blocks.data)
    >>> sorted(model.block_means_.round().ravel().tolist())
    [1.0, 1.0, 2.0, 4.0, 9.0, 9.0]
    """

    _non_negative = True

    def __init__(
        self,
        n_row_clusters: int = 2,
        n_column_clusters: int = 2,
        *,
        n_init: int = 10,
        max_iter: int = 500,
        tol: float = 1e-5,
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self._set(n_row_clusters, n_column_clusters, n_init, max_iter, tol, n_jobs, random_state)

    def _method(self, matrix: Matrix) -> _Multiplication:
        return _Multiplication.of(matrix, (self.n_row_clusters, self.n_column_clusters))


@dataclass(frozen=True)
class _Factors:
    """The three factors and their squared error."""

    rows: np.ndarray
    table: np.ndarray
    columns: np.ndarray
    criterion: float


@dataclass(frozen=True)
class _Multiplication:
    """The three multiplicative rules in turn."""

    matrix: TwoWay
    sum_of_squares: float
    shape: tuple[int, int]

    @classmethod
    def of(cls, matrix: Matrix, shape: tuple[int, int]) -> _Multiplication:
        values = matrix.data if is_sparse(matrix) else matrix
        return cls(TwoWay.of(matrix), float(np.square(values).sum()), shape)

    def start(self, rng: np.random.Generator) -> _Factors:
        rows = _blurred(kmeans_labels(self.matrix.by_row, self.shape[0], rng), self.shape[0])
        columns = _blurred(kmeans_labels(self.matrix.by_column, self.shape[1], rng), self.shape[1])
        table = rows.T @ times(self.matrix.by_row, columns)
        return self._factors(rows, table, columns, table)

    def step(self, state: _Factors) -> _Factors:
        rows, table, columns = state.rows, state.table, state.columns
        columns = straighten(columns, times(self.matrix.by_column, rows) @ table, rows @ table)
        profiles = times(self.matrix.by_row, columns)
        rows = straighten(rows, profiles @ table.T, columns @ table.T)
        target = rows.T @ profiles
        fitted = (rows.T @ rows) @ table @ (columns.T @ columns)
        table = table * np.sqrt(target / np.maximum(fitted, _TINY))
        return self._factors(rows, table, columns, target)

    def labels(self, state: _Factors) -> tuple[np.ndarray, np.ndarray]:
        return state.rows.argmax(axis=1), state.columns.argmax(axis=1)

    def _factors(
        self, rows: np.ndarray, table: np.ndarray, columns: np.ndarray, target: np.ndarray
    ) -> _Factors:
        fitted = (rows.T @ rows) @ table @ (columns.T @ columns)
        error = self.sum_of_squares + float((table * (fitted - 2 * target)).sum())
        return _Factors(rows, table, columns, max(error, 0.0))


def straighten(factor: np.ndarray, target: np.ndarray, basis: np.ndarray) -> np.ndarray:
    r"""Return an outer factor after as much of its rule as does not raise the error."""
    gram = basis.T @ basis

    def error(candidate: np.ndarray) -> float:
        return float((candidate * (candidate @ gram - 2 * target)).sum())

    ratio = np.sqrt(target / np.maximum(factor @ (factor.T @ target), _TINY))
    limit = error(factor)
    for _ in range(_HALVINGS + 1):
        candidate = factor * ratio
        if error(candidate) <= limit:
            return candidate
        ratio = np.sqrt(ratio)
    return factor


def _blurred(labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return a positive factor with columns of unit norm that points at a partition."""
    factor = indicator(labels, n_clusters) + _OFFSET
    return factor / np.linalg.norm(factor, axis=0)
