"""Partitions of rows and columns that move by turns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ccot.baselines.partitions import (
    TwoWay,
    cluster_sizes,
    cluster_sums,
    seeded_labels,
    sum_columns,
)


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
    points: TwoWay  # among which a start chooses well-spread ones
    shape: tuple[int, int]

    def start(self, rng: np.random.Generator) -> Partitions:
        """Return partitions around well-spread rows and columns."""
        rows = seeded_labels(self.points.by_row, self.shape[0], rng)
        columns = seeded_labels(self.points.by_column, self.shape[1], rng)
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
