"""Partitions of rows and columns that move by turns, and double K-means as the simplest of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ccot.baselines.partitions import TwoWay, cluster_sizes, cluster_sums, fill_empty, sum_columns
from ccot.runtime.types import Matrix, is_sparse


@dataclass(frozen=True)
class Partitions:
    """Both partitions and their criterion."""

    rows: np.ndarray
    columns: np.ndarray
    criterion: float


@dataclass(frozen=True)
class Alternation:
    """Rows move to the best of the clusters, then columns; a subclass says which is the best."""

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
        widths = cluster_sizes(state.columns, n_columns)
        rows = self._move(profiles, state.rows, n_rows, widths)
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
    """Double K-means bound to a matrix: rows and columns move by turns to the nearest means."""

    sum_of_squares: float  # of the entries of the matrix, less its mean if it is dense

    @classmethod
    def of(cls, matrix: Matrix, shape: tuple[int, int]) -> NearestMeans:
        """Return the method bound to a matrix."""
        # Without its mean the matrix loses fewer digits in the differences of squares.
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
        """Return the sum of squares within blocks."""
        return max(self.sum_of_squares - float((totals**2 / sizes).sum()), 0.0)
