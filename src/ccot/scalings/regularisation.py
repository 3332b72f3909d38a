"""Choice of the regularisation by how well halves reproduce each other's partitions.

The score is mutual information in nats, corrected for chance. Of equally reproducible partitions,
finer ones score higher.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from scipy.stats import entropy
from sklearn.metrics import adjusted_mutual_info_score

from ccot.runtime.run import Run, counted
from ccot.runtime.types import Matrix
from ccot.scalings.steps import RegPath, StepCoclustering

# A half needs at least two points to be partitioned.
_SMALLEST = 4

Fit = Callable[[Matrix, float], StepCoclustering]


def choose_reg(
    fit: Fit, matrix: Matrix, run: Run, grid: Sequence[float], n_splits: int = 2
) -> RegPath:
    """Return scores of regularisations, and the best one; each split halves rows and columns."""
    n_rows, n_columns = matrix.shape
    if min(n_rows, n_columns) < _SMALLEST:
        least = f"at least {_SMALLEST} rows and {_SMALLEST} columns, got {n_rows} x {n_columns}"
        problem = f'reg="cv" compares halves of the data and needs {least}'
        raise ValueError(f"{problem}: set reg to a number")
    splits = [(_halves(n_rows, run.rng), _halves(n_columns, run.rng)) for _ in range(n_splits)]
    ordered = sorted(grid, reverse=True)
    tries = [(reg, split) for reg in ordered for split in splits]
    seen = [
        run.checkpoint.piece("comparison", partial(_reproduced, fit, matrix, reg, *split))
        for reg, split in counted(tries, "comparisons for reg", run.progress)
    ]
    scores = np.reshape(seen, (len(ordered), -1))
    return RegPath(tuple(ordered), scores, ordered[int(np.argmax(scores.mean(axis=1).round(6)))])


def _halves(n_points: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    shuffled = rng.permutation(n_points)
    return np.sort(shuffled[: n_points // 2]), np.sort(shuffled[n_points // 2 :])


def _reproduced(
    fit: Fit, matrix: Matrix, reg: float, rows: Sequence[np.ndarray], columns: Sequence[np.ndarray]
) -> list[float]:
    """Return the scores of six comparisons: of halves by rows, and of halves by columns."""
    upper, lower = (fit(matrix[half], reg) for half in rows)
    left, right = (fit(matrix[:, half], reg) for half in columns)
    return [
        _shared(upper.row.placement.labels(matrix[rows[1]]), lower.row.labels),
        _shared(lower.row.placement.labels(matrix[rows[0]]), upper.row.labels),
        _shared(left.column.placement.labels(matrix[:, columns[1]].T), right.column.labels),
        _shared(right.column.placement.labels(matrix[:, columns[0]].T), left.column.labels),
        _shared(upper.column.labels, lower.column.labels),
        _shared(left.row.labels, right.row.labels),
    ]


def _shared(one: np.ndarray, other: np.ndarray) -> float:
    """Return the mutual information of two partitions in nats, corrected for chance."""
    mean_entropy = (entropy(np.bincount(one)) + entropy(np.bincount(other))) / 2
    return float(adjusted_mutual_info_score(one, other) * mean_entropy)
