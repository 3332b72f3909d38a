"""The vote of Algorithm 1 as it is printed: by the number of the step, in every draw alike."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ccot.estimators.ccot import CCOT
from ccot.runtime.run import Run
from ccot.scalings.ccot import CCOTSettings, fit_ccot
from ccot.scalings.draws import DrawPartitions, DrawSolver
from ccot.scalings.steps import StepCoclustering


class PrintedVote(CCOT):
    """CCOT whose draws vote by step number, whatever number of steps each of them found.

    There are as many clusters as labels that win somewhere; a row that no draw has is in cluster 0.
    The matrix has at least as many rows as columns and is small enough to be in memory.
    """

    def fit(self, X: Any, y: Any = None) -> "PrintedVote":
        """Draw, solve, read the steps, and take the most frequent step of each row and column."""
        super().fit(X)
        [found] = self._found
        (n_rows, n_columns), columns = X.shape, found.column.labels
        every_column = np.broadcast_to(np.arange(n_columns), columns.shape)
        self.row_labels_ = _mode(found.members, found.row.labels, n_rows)
        self.column_labels_ = _mode(every_column, columns, n_columns)
        self.n_row_clusters_ = len(np.unique(self.row_labels_))
        self.n_column_clusters_ = len(np.unique(self.column_labels_))
        return self

    def _fit(self, rows: Any, run: Run) -> StepCoclustering:
        self._found: list[DrawPartitions] = []

        def prepare(*arguments: Any) -> _Recorded:
            return _Recorded(**vars(DrawSolver.prepare(*arguments)), found=self._found)

        return fit_ccot(rows, self._given(CCOTSettings), run, prepare)


@dataclass(frozen=True)
class _Recorded(DrawSolver):
    """A solver that keeps the partitions of its draws."""

    found: list[DrawPartitions]

    def partitions(self, draws: np.ndarray) -> DrawPartitions:
        """Solve draws, and keep what they found."""
        self.found.append(super().partitions(draws))
        return self.found[-1]


def _mode(members: np.ndarray, labels: np.ndarray, n_points: int) -> np.ndarray:
    """Return the most frequent label of each point, the smallest one in a tie."""
    n_labels = int(labels.max()) + 1
    counts = np.bincount((members * n_labels + labels).ravel(), minlength=n_points * n_labels)
    return counts.reshape(n_points, n_labels).argmax(axis=1)
