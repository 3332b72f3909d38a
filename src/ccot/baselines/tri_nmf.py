"""Orthogonal non-negative tri-factorisation of a matrix."""

from dataclasses import dataclass

import numpy as np
from sklearn.utils._param_validation import StrOptions

from ccot.baselines.base import BaseBaseline
from ccot.baselines.partitions import Method, TwoWay, fill_empty, indicator
from ccot.runtime.types import Matrix, is_sparse

_TINY = 1e-300
# Weight of a row of zeros in its cluster.
_NO_WEIGHT = 1e-100


@dataclass(kw_only=True, eq=False, repr=False)
class TriNMF(BaseBaseline):
    r"""Orthogonal non-negative matrix tri-factorisation.

    .. math:: \min_{F, S, G \ge 0} \|X - F S G^\top\|^2
              \quad \text{with} \quad F^\top F = I,\; G^\top G = I

    Every row of such an :math:`F` has at most one positive entry: the cluster of a row of
    :math:`X`, and its weight in it. So has :math:`G` for columns.

    Parameters
    ----------
    n_row_clusters, n_column_clusters : int, default=2
        Numbers of clusters.
    rules : {"exact", "multiplicative"}, default="exact"
        "exact" minimises over :math:`F`, :math:`S`, :math:`G` and :math:`S` in turn, as [2]_ does
        with two factors. "multiplicative" are the rules of [1]_; see the notes.
    init : {"mixed", "double_kmeans", "k-means++", "kmeans", "random"}, default="mixed"
        Partitions to start from; "mixed": the other four in turn. [1]_ recommends "kmeans".
    n_init, max_iter, tol : int, default=10; int, default=500; float, default=1e-6
        Number of starts, of which the one with the smallest error is kept; a start ends after
        `max_iter` iterations, or when the error changes by a share of `tol`.
    n_jobs, random_state : int or None, default=None
        Number of threads (-1: all), on which labels do not depend; seed, or a generator.

    Attributes
    ----------
    row_labels_, column_labels_, n_row_clusters_, n_column_clusters_, block_means_
        Cluster of each row and column; numbers of clusters (with multiplicative rules a factor that
        is largest nowhere has no members); mean of each block.
    criterion_, criterion_path_ : float, ndarray of shape (``n_iter_ + 1``,)
        Squared error; the same before and after each iteration. Exact iterations never raise it.
    n_iter_, converged_, rows_, columns_, biclusters_, n_features_in_, feature_names_in_
        Iterations of the best start; whether it reached `tol`; the others as in scikit-learn.

    Notes
    -----
    The multiplicative rules, from indicators of the first partitions plus 0.2, are

    .. math:: G \leftarrow G \sqrt{\frac{X^\top F S}{G G^\top X^\top F S}}, \quad
              F \leftarrow F \sqrt{\frac{X G S^\top}{F F^\top X G S^\top}}, \quad
              S \leftarrow S \sqrt{\frac{F^\top X G}{F^\top F S G^\top G}}.

    On noisy data they take tens of thousands of iterations and end where :math:`F^\top F` is not
    :math:`I`, with an error up to 1 % below the smallest found with orthogonal factors. The exact
    rules end after some tens, with orthogonal factors.

    References
    ----------
    .. [1] Ding et al. (2006). Orthogonal nonnegative matrix tri-factorizations for clustering. KDD.
    .. [2] Pompili et al. (2014). Two algorithms for orthogonal nonnegative matrix factorization
       with application to clustering. Neurocomputing 141.

    Examples
    --------
    >>> from ccot.baselines import TriNMF
    >>> from ccot.datasets import make_latent_blocks
    >>> blocks = make_latent_blocks([[9, 1, 4], [1, 9, 2]], 40, 30, sigma=0.1, random_state=0)
    >>> model = TriNMF(2, 3, random_state=0).fit(blocks.data)
    >>> sorted(model.block_means_.round().ravel().tolist())
    [1.0, 1.0, 2.0, 4.0, 9.0, 9.0]
    """

    rules: str = "exact"
    max_iter: int = 500

    _non_negative = True
    _parameter_constraints = BaseBaseline._parameter_constraints | {
        "rules": [StrOptions({"exact", "multiplicative"})],
    }

    def _method(self, matrix: Matrix) -> "_Alternation":
        method = _Alternation if self.rules == "exact" else _Multiplication
        values = matrix.data if is_sparse(matrix) else matrix
        return method(TwoWay.of(matrix), float(np.square(values).sum()), self._shape)


@dataclass(frozen=True)
class _Factors:
    """The three factors and their squared error."""

    rows: np.ndarray
    table: np.ndarray
    columns: np.ndarray
    criterion: float


@dataclass(frozen=True)
class _Alternation(Method):
    """Best outer factors and tables in turn; each row of a factor has one positive entry."""

    matrix: TwoWay
    sum_of_squares: float
    shape: tuple[int, int]
    _offset = 0.0  # added to the indicators of the first partitions

    def start_from(self, rows: np.ndarray, columns: np.ndarray) -> _Factors:
        indicators = map(indicator, (rows, columns), self.shape)
        first, last = (_unit_columns(members + self._offset) for members in indicators)
        table = first.T @ self.matrix.by_row.dot(last)
        return self._factors(first, table, last, table)

    def step(self, state: _Factors) -> _Factors:
        profiles = self.matrix.by_row.dot(state.columns)
        rows = best_factor(profiles, state.table, state.rows)
        table = rows.T @ profiles
        profiles = self.matrix.by_column.dot(rows)
        columns = best_factor(profiles, table.T, state.columns)
        table = profiles.T @ columns
        return self._factors(rows, table, columns, table)

    def _factors(
        self, rows: np.ndarray, table: np.ndarray, columns: np.ndarray, target: np.ndarray
    ) -> _Factors:
        """Return the factors with their error, given :math:`F^T X G`."""
        fitted = (rows.T @ rows) @ table @ (columns.T @ columns)
        error = self.sum_of_squares + float((table * (fitted - 2 * target)).sum())
        return _Factors(rows, table, columns, max(error, 0.0))


class _Multiplication(_Alternation):
    """The three multiplicative rules in turn."""

    _offset = 0.2  # a zero would stay zero for ever

    def step(self, state: _Factors) -> _Factors:
        rows, table, columns = state.rows, state.table, state.columns
        columns = _multiplied(columns, self.matrix.by_column.dot(rows) @ table)
        profiles = self.matrix.by_row.dot(columns)
        rows = _multiplied(rows, profiles @ table.T)
        target = rows.T @ profiles
        fitted = (rows.T @ rows) @ table @ (columns.T @ columns)
        table = table * np.sqrt(target / np.maximum(fitted, _TINY))
        return self._factors(rows, table, columns, target)


def best_factor(profiles: np.ndarray, table: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """Return the outer factor with the smallest error, given the matrix times the other one."""
    # Each row goes to the row of the table with the smallest angle, weighted by its projection.
    scores = profiles @ table.T / np.maximum(np.linalg.norm(table, axis=1), _TINY)
    points, own, best = np.arange(len(scores)), factor.argmax(axis=1), scores.argmax(axis=1)
    # Rows that gain nothing stay: rows of zeros would otherwise all gather in one cluster.
    best = np.where(scores[points, best] > scores[points, own], best, own)
    weights = scores[points, best]
    labels = fill_empty(best, (profiles**2).sum(axis=1) - weights**2, len(table))
    return _unit_columns(indicator(labels, len(table)) * np.maximum(weights, _NO_WEIGHT)[:, None])


def _multiplied(factor: np.ndarray, target: np.ndarray) -> np.ndarray:
    return factor * np.sqrt(target / np.maximum(factor @ (factor.T @ target), _TINY))


def _unit_columns(factor: np.ndarray) -> np.ndarray:
    return factor / np.linalg.norm(factor, axis=0)
