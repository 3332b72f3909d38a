"""Base of the baselines: many starts, each improved step by step, of which the best is kept."""

import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import KW_ONLY, dataclass
from functools import cache
from itertools import cycle
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from threadpoolctl import ThreadpoolController

from ccot.baselines.partitions import Method, NearestMeans, TwoWay, first_labels
from ccot.coclustering import block_means
from ccot.estimators.base import COUNT, BaseCoclustering
from ccot.runtime.backends import one_blas_thread
from ccot.runtime.run import RandomState, as_generator
from ccot.runtime.types import Matrix, is_sparse

# Seconds of work from which it pays to start processes.
_WORTH_PROCESSES = 2.0
KINDS = ("double_kmeans", "k-means++", "kmeans", "random")


@dataclass(frozen=True)
class Start:
    """The result of one start: partitions, in which clusters may be empty, and the last state."""

    row_labels: np.ndarray
    column_labels: np.ndarray
    criterion: float
    path: np.ndarray  # the criterion before the first step and after each
    n_iter: int
    converged: bool
    state: Any = None


def run_start(method: Method, state: Any, max_iter: int, tol: float) -> Start:
    """Return the result of steps until the criterion changes by at most a share of ``tol``."""
    path, converged = [state.criterion], False
    while not converged and len(path) <= max_iter:
        state = method.step(state)
        path.append(state.criterion)
        converged = abs(path[-1] - path[-2]) <= tol * abs(path[-1])
    rows, columns = method.labels(state)
    return Start(rows, columns, path[-1], np.array(path), len(path) - 1, converged, state)


@dataclass(frozen=True)
class FirstPartitions:
    """Draws the partitions that starts begin with, as ``init`` says."""

    means: NearestMeans  # double K-means of the matrix
    points: TwoWay  # rows and columns that K-means and K-means++ cluster

    @classmethod
    def of(cls, matrix: Matrix, shape: tuple[int, int]) -> "FirstPartitions":
        """Return what draws partitions from the rows and columns of the matrix itself."""
        means = NearestMeans.of(matrix, shape)
        return cls(means, means.matrix)

    def draw(self, kind: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Return partitions of the rows and of the columns, no cluster empty."""
        rng = np.random.default_rng(seed)
        each = "k-means++" if kind == "double_kmeans" else kind
        rows = first_labels(each, self.points.by_row, self.means.shape[0], rng)
        columns = first_labels(each, self.points.by_column, self.means.shape[1], rng)
        if kind == "double_kmeans":
            end = run_start(self.means, self.means.start_from(rows, columns), 300, 1e-6)
            rows, columns = end.row_labels, end.column_labels
        return rows, columns


def run_all(run: Callable[[Any], Any], tasks: Sequence[Any], n_jobs: int | None) -> list[Any]:
    """Return the results of all tasks, by threads, or by processes if the first task takes long."""
    # BLAS and OpenMP get one thread each, so that sums are the same to the last bit.
    with one_blas_thread():
        start = time.perf_counter()
        first = _run_in_thread(run, tasks[0])
        expected = (time.perf_counter() - start) * (len(tasks) - 1)
        if effective_n_jobs(n_jobs) > 1 and expected > _WORTH_PROCESSES:
            try:
                work = (delayed(_run_in_process)(run, task) for task in tasks[1:])
                return [first, *Parallel(n_jobs=n_jobs, prefer="processes")(work)]
            except BrokenProcessPool:
                warnings.warn(
                    "a worker process died, perhaps for lack of memory: threads of this "
                    "process do its work",
                    RuntimeWarning,
                    stacklevel=2,
                )
        work = (delayed(_run_in_thread)(run, task) for task in tasks[1:])
        return [first, *Parallel(n_jobs=n_jobs, require="sharedmem")(work)]


def _run_in_thread(run: Callable[[Any], Any], task: Any) -> Any:
    # OpenMP has a separate limit in each thread, so it is set in each of them.
    with _libraries().limit(limits=1, user_api="openmp"):
        return run(task)


def _run_in_process(run: Callable[[Any], Any], task: Any) -> Any:
    with one_blas_thread():
        return _run_in_thread(run, task)


_libraries = cache(ThreadpoolController)


@dataclass(eq=False, repr=False)
class BaseBaseline(BaseCoclustering):
    """Base of the baselines, which step from each start through :func:`run_start`."""

    _larger_is_better: ClassVar[bool] = False
    _non_negative: ClassVar[bool] = False
    _accept_sparse: ClassVar[Any] = "csr"
    _nan_advice: ClassVar[str] = "use ResidualBayesianCoclustering, which leaves missing values out"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_row_clusters": [COUNT],
        "n_column_clusters": [COUNT],
        "init": [StrOptions({"mixed", *KINDS})],
        "n_init": [COUNT],
        "max_iter": [COUNT],
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
                f"{type(self).__name__}: the best start stopped at max_iter={self.max_iter}: "
                "raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=2,
            )
        self._keep(best, matrix)
        return self

    def _method(self, matrix: Matrix) -> Method:
        raise NotImplementedError

    def _first_partitions(self, matrix: Matrix) -> FirstPartitions:
        return FirstPartitions.of(matrix, self._shape)

    def _best_start(self, matrix: Matrix, seeds: Sequence[int]) -> Start:
        method, first = self._method(matrix), self._first_partitions(matrix)

        def run(task: tuple[str, int]) -> Start:
            return run_start(method, method.start_from(*first.draw(*task)), self.max_iter, self.tol)

        return self._best(run_all(run, self._tasks(seeds), self.n_jobs))

    def _tasks(self, seeds: Sequence[int]) -> list[Any]:
        """Return the starts: the kind of partitions each begins with, and its seed."""
        return list(zip(cycle(KINDS if self.init == "mixed" else [self.init]), seeds, strict=False))

    def _best(self, starts: Sequence[Any]) -> Any:
        """Return the start with the best criterion, in a tie the first."""
        sign = -1 if self._larger_is_better else 1
        return min(starts, key=lambda start: sign * start.criterion)

    def _check_sign(self, values: np.ndarray) -> None:
        """Raise an error if all values are missing, or if some are negative and must not be."""
        if values.size and np.isnan(values).all():
            raise ValueError("Input X contains NaN only: pass a matrix with values")
        if self._non_negative and (values < 0).any():
            raise ValueError(
                f"Negative values in data passed to {type(self).__name__}: shift the data, "
                "e.g. X - X.min()"
            )

    def _keep(self, best: Start, matrix: Matrix) -> None:
        """Set the fitted attributes from the best start."""
        # Empty clusters are not counted, and the others are numbered without gaps.
        used_rows, self.row_labels_ = np.unique(best.row_labels, return_inverse=True)
        used_columns, self.column_labels_ = np.unique(best.column_labels, return_inverse=True)
        self.n_row_clusters_, self.n_column_clusters_ = len(used_rows), len(used_columns)
        self.block_means_ = block_means(matrix, self._partition("row"), self._partition("column"))
        self.criterion_, self.criterion_path_ = best.criterion, best.path
        self.n_iter_, self.converged_ = best.n_iter, best.converged
