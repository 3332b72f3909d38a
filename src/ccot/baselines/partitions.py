"""Arithmetic of partitions: sums over clusters, first partitions, clusters that became empty."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans, kmeans_plusplus
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances_argmin

from ccot.runtime.types import Matrix, is_sparse


def indicator(labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return the 0/1 matrix of shape (n, n_clusters) of a partition."""
    return np.eye(n_clusters)[labels]


def times(matrix: Matrix, table: np.ndarray) -> np.ndarray:
    """Return the product of a large matrix, dense or sparse, and a narrow one."""
    # Unlike the operator @, dot lets other threads run while it multiplies.
    return matrix.dot(table)


def cluster_sums(values: np.ndarray, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return the sum of the rows of ``values`` over each cluster."""
    return times(indicator(labels, n_clusters).T, values)


def cluster_sizes(labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return the numbers of members, as floats."""
    return np.bincount(labels, minlength=n_clusters).astype(float)


def sum_columns(matrix: Matrix, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return every row of a matrix summed over clusters of its columns."""
    if not is_sparse(matrix):
        return times(matrix, indicator(labels, n_clusters))
    # Entries of one row that now share a column add up on the way to a dense array: O(nnz).
    parts = (matrix.data, labels[matrix.indices], matrix.indptr)
    return sp.csr_array(parts, shape=(matrix.shape[0], n_clusters)).toarray()


@dataclass(frozen=True)
class TwoWay:
    """A matrix and its transpose, dense or CSR: both quick to read row by row."""

    by_row: Matrix
    by_column: Matrix

    @classmethod
    def of(cls, matrix: Matrix) -> TwoWay:
        """Return both views of a matrix."""
        return cls(matrix, matrix.T.tocsr() if is_sparse(matrix) else matrix.T)


def fill_empty(labels: np.ndarray, costs: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return labels where every empty cluster got the costliest point of a cluster with several."""
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


def first_labels(
    kind: str, points: Matrix, n_clusters: int, rng: np.random.Generator
) -> np.ndarray:
    """Return a first partition of the rows; ``"k-means++"``: by the nearest of well-spread ones."""
    seed = int(rng.integers(2**31))
    if kind == "random":
        labels = rng.integers(n_clusters, size=points.shape[0])
    elif kind == "kmeans":
        with warnings.catch_warnings():
            # Fewer distinct points than clusters: a start is good enough all the same.
            warnings.simplefilter("ignore", ConvergenceWarning)
            labels = KMeans(n_clusters, n_init=1, random_state=seed).fit_predict(points)
    else:
        spread, _ = kmeans_plusplus(points, n_clusters, random_state=seed)
        labels = pairwise_distances_argmin(points, spread)
    return fill_empty(labels.astype(np.intp), rng.random(len(labels)), n_clusters)
