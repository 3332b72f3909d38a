"""Partitions: sums over clusters, first partitions, and updates in turn (double K-means)."""

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.random import Generator
from sklearn.cluster import KMeans, kmeans_plusplus
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances_argmin

from ccot.runtime.types import Matrix, is_sparse


def indicator(labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return the 0/1 matrix of shape (n, n_clusters) of a partition."""
    return np.eye(n_clusters)[labels]


def cluster_sums(values: np.ndarray, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return the sum of the rows of ``values`` over each cluster."""
    return indicator(labels, n_clusters).T.dot(values)


def cluster_sizes(labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return the numbers of members, as floats."""
    return np.bincount(labels, minlength=n_clusters).astype(float)


def sum_columns(matrix: Matrix, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return every row of a matrix summed over clusters of its columns."""
    if not is_sparse(matrix):
        return matrix.dot(indicator(labels, n_clusters))
    # toarray adds up the entries of a row that are now in the same column: O(nnz).
    parts = (matrix.data, labels[matrix.indices], matrix.indptr)
    return sp.csr_array(parts, shape=(matrix.shape[0], n_clusters)).toarray()


class TwoWay(NamedTuple):
    """A matrix and its transpose, both dense or both CSR."""

    # Both are multiplied by dot: unlike the operator @, it lets other threads run at the same time.

    by_row: Matrix
    by_column: Matrix

    @classmethod
    def of(cls, matrix: Matrix) -> "TwoWay":
        """Return a matrix with its transpose."""
        return cls(matrix, matrix.T.tocsr() if is_sparse(matrix) else matrix.T)


def fill_empty(labels: np.ndarray, costs: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return labels after each empty cluster got the costliest point of clusters with several."""
    sizes = np.bincount(labels, minlength=n_clusters)
    empty = np.flatnonzero(sizes == 0)
    if len(empty) == 0:
        return labels
    labels = labels.copy()
    for cluster in empty:
        worst = int(np.argmax(np.where(sizes[labels] > 1, costs, -np.inf)))
        sizes[labels[worst]] -= 1
        sizes[cluster] += 1
        labels[worst] = cluster
    return labels


def first_labels(kind: str, points: Matrix, n_clusters: int, rng: Generator) -> np.ndarray:
    """Return a first partition of the rows; ``"k-means++"``: by the nearest of well-spread rows."""
    seed = int(rng.integers(2**31))
    if kind == "random":
        labels = rng.integers(n_clusters, size=points.shape[0])
    elif kind == "kmeans":
        with warnings.catch_warnings():
            # Fewer distinct points than clusters do no harm in a start.
            warnings.simplefilter("ignore", ConvergenceWarning)
            labels = KMeans(n_clusters, n_init=1, random_state=seed).fit_predict(points)
    else:
        spread, _ = kmeans_plusplus(points, n_clusters, random_state=seed)
        labels = pairwise_distances_argmin(points, spread)
    return fill_empty(labels.astype(np.intp), rng.random(len(labels)), n_clusters)


class Method(Protocol):
    """An iterative baseline bound to a matrix; its states have a ``criterion``."""

    def start_from(self, rows: np.ndarray, columns: np.ndarray) -> Any:
        """Return the first state, given partitions."""

    def step(self, state: Any) -> Any:
        """Return the next state."""

    def labels(self, state: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the row and column clusters of a state, given weights or probabilities."""
        return state.rows.argmax(axis=1), state.columns.argmax(axis=1)


@dataclass(frozen=True)
class Partitions:
    """Partitions of rows and of columns, and their criterion."""

    rows: np.ndarray
    columns: np.ndarray
    criterion: float


@dataclass(frozen=True)
class Alternation(Method):
    """Rows, then columns, move to the best cluster; a subclass says which is the best."""

    matrix: TwoWay
    shape: tuple[int, int]

    def start_from(self, rows: np.ndarray, columns: np.ndarray) -> Partitions:
        """Return given partitions, no cluster empty, with their criterion."""
        profiles = sum_columns(self.matrix.by_row, columns, self.shape[1])
        return self._partitions(rows, columns, cluster_sums(profiles, rows, self.shape[0]))

    def step(self, state: Partitions) -> Partitions:
        """Return partitions after the rows and then the columns moved."""
        n_rows, n_columns = self.shape
        profiles = sum_columns(self.matrix.by_row, state.columns, n_columns)
        rows = self._move(profiles, state.rows, n_rows, cluster_sizes(state.columns, n_columns))
        profiles = sum_columns(self.matrix.by_column, rows, n_rows)
        columns = self._move(profiles, state.columns, n_columns, cluster_sizes(rows, n_rows))
        return self._partitions(rows, columns, cluster_sums(profiles, columns, n_columns).T)

    def labels(self, state: Partitions) -> tuple[np.ndarray, np.ndarray]:
        """Return the partitions."""
        return state.rows, state.columns

    def _partitions(self, rows: np.ndarray, columns: np.ndarray, totals: np.ndarray) -> Partitions:
        heights, widths = map(cluster_sizes, (rows, columns), self.shape)
        return Partitions(rows, columns, self._criterion(totals, np.outer(heights, widths)))

    def _move(
        self, profiles: np.ndarray, labels: np.ndarray, n_clusters: int, widths: np.ndarray
    ) -> np.ndarray:
        """Return new labels, given sums over clusters of the other side and their sizes."""
        raise NotImplementedError

    def _criterion(self, totals: np.ndarray, sizes: np.ndarray) -> float:
        """Return the criterion, given the sums and the sizes of the blocks."""
        raise NotImplementedError


@dataclass(frozen=True)
class NearestMeans(Alternation):
    """Double K-means bound to a matrix: rows and columns move in turn to the nearest means."""

    sum_of_squares: float  # of the entries of the matrix, less its mean if it is dense

    @classmethod
    def of(cls, matrix: Matrix, shape: tuple[int, int]) -> "NearestMeans":
        """Return the method bound to a matrix."""
        # The mean is subtracted, so that differences of squares lose fewer digits.
        centred = matrix if is_sparse(matrix) else matrix - matrix.mean()
        values = centred.data if is_sparse(centred) else centred
        return cls(TwoWay.of(centred), shape, float(np.square(values).sum()))

    def _move(
        self, profiles: np.ndarray, labels: np.ndarray, n_clusters: int, widths: np.ndarray
    ) -> np.ndarray:
        """Return the labels of the nearest means, no cluster empty."""
        sizes = cluster_sizes(labels, n_clusters)
        means = cluster_sums(profiles, labels, n_clusters) / np.outer(sizes, widths)
        # Squared distances to the means, less what does not depend on the cluster.
        costs = means**2 @ widths - 2 * profiles @ means.T
        nearest = costs.argmin(axis=1)
        within = costs[np.arange(len(labels)), nearest] + profiles**2 @ (1 / widths)
        return fill_empty(nearest, within, n_clusters)

    def _criterion(self, totals: np.ndarray, sizes: np.ndarray) -> float:
        return max(self.sum_of_squares - float((totals**2 / sizes).sum()), 0.0)
