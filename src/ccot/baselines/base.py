"""What the baselines share: the loop over starts and the attributes of the kept one."""

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import cycle
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from ccot.baselines.partitions import Method
from ccot.baselines.starts import KINDS, FirstPartitions, Start, run_all, run_start
from ccot.coclustering import block_means
from ccot.estimators.base import BaseCoclustering
from ccot.runtime.run import RandomState, as_generator
from ccot.runtime.types import Matrix, is_sparse

_COUNT = [Interval(Integral, 1, None, closed="left")]


@dataclass(eq=False, repr=False)
class BaseBaseline(BaseCoclustering):
    """Base of the baselines, which step from each start through :func:`run_start`."""

    _larger_is_better: ClassVar[bool] = False
    _non_negative: ClassVar[bool] = False
    _accept_sparse: ClassVar[Any] = "csr"
    _nan_advice: ClassVar[str] = "use ResidualBayesianCoclustering, which leaves them out"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_row_clusters": _COUNT,
        "n_column_clusters": _COUNT,
        "init": [StrOptions({"mixed", *KINDS})],
        "n_init": _COUNT,
        "max_iter": _COUNT,
        "tol": [Interval(Real, 0, None, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": "no_validation",
    }

    n_row_clusters: int = 2
    n_column_clusters: int = 2
    _: KW_ONLY
    init: str = "mixed"
    n_init: int = 10
    max_iter: int = 300
    tol: float = 1e-6
    n_jobs: int | None = None
    random_state: RandomState = None

    @property
    def _shape(self) -> tuple[int, int]:
        return self.n_row_clusters, self.n_column_clusters

    def __sklearn_tags__(self):
        """Tell scikit-learn which matrices are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = self._non_negative
        return tags

    def fit(self, X: Any, y: Any = None):
        """Co-cluster a matrix.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_columns), both at least two
        y : None, ignored; here for the sake of pipelines

        Returns
        -------
        self : the fitted estimator
        """
        self._begin()
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

    def _method(self, matrix: Matrix) -> Method:
        """Return the method bound to a matrix."""
        raise NotImplementedError

    def _first_partitions(self, matrix: Matrix) -> FirstPartitions:
        """Return where the starts of a matrix come from."""
        return FirstPartitions.of(matrix, self._shape)

    def _best_start(self, matrix: Matrix, seeds: Sequence[int]) -> Start:
        """Run all starts and keep the best."""
        method, first = self._method(matrix), self._first_partitions(matrix)

        def run(task: tuple[str, int]) -> Start:
            return run_start(method, method.start_from(*first.draw(*task)), self.max_iter, self.tol)

        return self._best(run_all(run, self._tasks(seeds), self.n_jobs))

    def _tasks(self, seeds: Sequence[int]) -> list[Any]:
        """Return the starts: the kind of partitions each begins with, and its seed."""
        return list(zip(cycle(KINDS if self.init == "mixed" else [self.init]), seeds, strict=False))

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
        self.n_iter_, self.converged_ = best.n_iter, best.converged
