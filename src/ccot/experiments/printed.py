"""The vote of Algorithm 1 as it is printed: by the number of the step, in every draw alike."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np

from ccot.runtime.backends import one_blas_thread
from ccot.scalings.ccot import CCOTSettings
from ccot.scalings.draws import DrawSolver
from ccot.scalings.sampling import draw_indices


class PrintedVote:
    """CCOT whose draws vote by step number, whatever number of steps each of them found.

    :class:`ccot.CCOT` first votes on the number and matches the clusters of the draws. There are
    as many clusters here as labels that win somewhere. A row that no draw has is in cluster 0.
    The matrix has at least as many rows as columns.
    """

    def __init__(
        self, n_samplings: int = 1000, *, detector: str = "multiscale", random_state: int = 0
    ) -> None:
        self.n_samplings = n_samplings
        self.detector = detector
        self.random_state = random_state

    def fit(self, matrix: np.ndarray) -> PrintedVote:
        """Draw, solve, read the steps, and take the most frequent step of each row and column."""
        n_rows, n_columns = matrix.shape
        rng = np.random.default_rng(self.random_state)
        draws = draw_indices(n_rows, n_columns, "uniform", rng)
        members = np.array(list(islice(draws, self.n_samplings)))
        usual = CCOTSettings()
        options: dict[str, Any] = {
            name: getattr(usual, name)
            for name in ("reg", "scale_cost", "device", "max_iter", "tol")
        }
        with one_blas_thread():
            solver = DrawSolver.prepare(
                matrix, members, detector=self.detector, n_jobs=None, **options
            )
            found = solver.partitions(members, None, None)
        every_column = np.broadcast_to(np.arange(n_columns), found.column.labels.shape)
        self.row_labels_ = _mode(members, found.row.labels, n_rows)
        self.column_labels_ = _mode(every_column, found.column.labels, n_columns)
        self.n_row_clusters_ = len(np.unique(self.row_labels_))
        self.n_column_clusters_ = len(np.unique(self.column_labels_))
        return self


def _mode(members: np.ndarray, labels: np.ndarray, n_points: int) -> np.ndarray:
    """Return the most frequent label of each point, the smallest one in a tie."""
    n_labels = int(labels.max()) + 1
    counts = np.bincount((members * n_labels + labels).ravel(), minlength=n_points * n_labels)
    return counts.reshape(n_points, n_labels).argmax(axis=1)
