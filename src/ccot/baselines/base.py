"""What the baselines share: the loop over starts and the attributes of the kept one."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval

from ccot.baselines.starts import Method, Start, run_all, run_start
from ccot.coclustering import block_means
from ccot.estimators.base import BaseCoclustering
from ccot.runtime.run import RandomState, as_generator
from ccot.runtime.types import Matrix, is_sparse

_COUNT = [Interval(Integral, 1, None, closed="left")]


class BaseBaseline(BaseCoclustering):
    """Base of the baselines; see the subclasses for parameters."""

    _larger_is_better: ClassVar[bool] = False
    _non_negative: ClassVar[bool] = False
    _accept_sparse: ClassVar[Any] = "csr"
    _nan_advice: ClassVar[str] = "use ResidualBayesianCoclustering, which leaves them out"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_row_clusters": _COUNT,
        "n_column_clusters": _COUNT,
        "n_init": _COUNT,
        "max_iter": _COUNT,
        "tol": [Interval(Real, 0, None, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": "no_validation",
    }

    n_row_clusters: int
    n_column_clusters: int

    def __init__(
        self,
        n_row_clusters: int = 2,
        n_column_clusters: int = 2,
        *,
        n_init: int = 10,
        max_iter: int = 300,
        tol: float = 1e-6,
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self._set(n_row_clusters, n_column_clusters, n_init, max_iter, tol, n_jobs, random_state)

    def _set(
        self,
        n_row_clusters: int,
        n_column_clusters: int,
        n_init: int,
        max_iter: int,
        tol: float,
        n_jobs: int | None,
        random_state: RandomState,
    ) -> None:
        """Set the parameters that all baselines have; their defaults differ."""
        self.n_row_clusters, self.n_column_clusters = n_row_clusters, n_column_clusters
        self.n_init, self.max_iter, self.tol = n_init, max_iter, tol
        self.n_jobs, self.random_state = n_jobs, random_state

    def __sklearn_tags__(self):
        """Tell scikit-learn which matrices are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._allow_nan
        tags.input_tags.positive_only = self._non_negative
        return tags

    def fit(self, X: Any, y: Any = None):
        """Co-cluster a matrix.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_columns)
            The matrix, at least two rows and two columns.
        y : None
            Ignored; here for the sake of pipelines.

        Returns
        -------
        object
            The fitted estimator.
        """
        self._validate_params()
        self._forget()
        matrix = self._check_matrix(X)
        self._check_sign(matrix.data if is_sparse(matrix) else matrix)
        seeds = as_generator(self.random_state).integers(2**31, size=self.n_init)
        best = self._best_start(matrix, seeds.tolist())
        if not best.converged:
            warnings.warn(
                f"{type(self).__name__}: the kept start stopped at max_iter={self.max_iter}: "
                "raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=2,
            )
        self._keep(best, matrix)
        return self

    def _best_start(self, matrix: Matrix, seeds: Sequence[int]) -> Start:
        """Run all starts and keep the best."""
        raise NotImplementedError

    def _best(self, starts: Sequence[Any]) -> Any:
        """Return the start with the best criterion, the first of equals."""
        sign = -1 if self._larger_is_better else 1
        return min(starts, key=lambda start: sign * start.criterion)

    def _check_sign(self, values: np.ndarray) -> None:
        """Refuse values that the baseline has no meaning for."""
        if values.size and np.isnan(values).all():
            raise ValueError("Input X contains NaN only: pass at least one entry to learn from")
        if self._non_negative and (values < 0).any():
            raise ValueError(
                f"Negative values in data passed to {type(self).__name__}: shift the data, "
                "e.g. X - X.min()"
            )

    def _keep(self, best: Start, matrix: Matrix) -> None:
        """Put the kept start on the attributes."""
        # Clusters that ended empty are not counted, and the others numbered without gaps.
        used_rows, self.row_labels_ = np.unique(best.row_labels, return_inverse=True)
        used_columns, self.column_labels_ = np.unique(best.column_labels, return_inverse=True)
        self.n_row_clusters_, self.n_column_clusters_ = len(used_rows), len(used_columns)
        self.block_means_ = block_means(matrix, self._partition("row"), self._partition("column"))
        self.criterion_, self.criterion_path_ = best.criterion, best.path
        self.n_iter_ = best.n_iter


class IterativeBaseline(BaseBaseline):
    """Base of the baselines that step through :func:`run_start`."""

    def _method(self, matrix: Matrix) -> Method:
        """Return the method bound to a matrix."""
        raise NotImplementedError

    def _best_start(self, matrix: Matrix, seeds: Sequence[int]) -> Start:
        method = self._method(matrix)

        def run(seed: int) -> Start:
            state = method.start(np.random.default_rng(seed))
            return run_start(method, state, self.max_iter, self.tol)

        return self._best(run_all(run, seeds, self.n_jobs))


@dataclass(frozen=True)
class SideStart:
    """The result of one start on one side of the matrix; the smaller its criterion, the better."""

    labels: np.ndarray
    criterion: float
    n_iter: int
    converged: bool


class TwoSidedBaseline(BaseBaseline):
    """Base of the baselines that cluster rows and columns separately."""

    def __init__(
        self,
        n_row_clusters: int = 2,
        n_column_clusters: int = 2,
        *,
        n_init: int = 10,
        max_iter: int = 300,
        tol: float = 1e-4,
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self._set(n_row_clusters, n_column_clusters, n_init, max_iter, tol, n_jobs, random_state)

    _starts_per_task: ClassVar[int] = 1

    def _run_side(self, points: Matrix, n_clusters: int, seed: int, n_init: int) -> SideStart:
        """Cluster the rows of a matrix, and return the best of a few starts."""
        raise NotImplementedError

    def _best_start(self, matrix: Matrix, seeds: Sequence[int]) -> Start:
        transposed = matrix.T.tocsr() if is_sparse(matrix) else np.ascontiguousarray(matrix.T)

        def run(task: Sequence[int]) -> tuple[SideStart, SideStart]:
            seed, n_init = task[0], len(task)
            return (
                self._run_side(matrix, self.n_row_clusters, seed, n_init),
                self._run_side(transposed, self.n_column_clusters, seed, n_init),
            )

        size = self._starts_per_task
        tasks = [seeds[first : first + size] for first in range(0, len(seeds), size)]
        # The sides are independent, so each keeps its own best start.
        rows, columns = map(self._best, zip(*run_all(run, tasks, self.n_jobs), strict=True))
        criterion = rows.criterion + columns.criterion
        return Start(
            row_labels=rows.labels,
            column_labels=columns.labels,
            criterion=criterion,
            path=np.array([criterion]),
            n_iter=max(rows.n_iter, columns.n_iter),
            converged=rows.converged and columns.converged,
        )
