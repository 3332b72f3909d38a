"""What the rivals share: checking input, many starts, one loop, the kept start's attributes.

An iterative rival is a :class:`Method`: it makes a first state, improves a state, and reads two
partitions off it.  :func:`run_start` is the only loop; the estimators translate.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cache
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import BaseEstimator, BiclusterMixin
from sklearn.cluster import KMeans, kmeans_plusplus
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances_argmin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import ThreadpoolController

from ccot.persistence.pickles import VersionedPickle
from ccot.runtime.backends import one_blas_thread
from ccot.runtime.run import RandomState, as_generator
from ccot.runtime.types import Matrix, is_sparse

COUNT = [Interval(Integral, 1, None, closed="left")]
# Seconds of work from which it pays to start processes.
_WORTH_PROCESSES = 2.0


# Starts and the loop --------------------------------------------------------------------------


class State(Protocol):
    """Where an iterative rival stands."""

    @property
    def criterion(self) -> float:
        """Value of the rival's own criterion."""
        ...


class Method(Protocol):
    """An iterative rival bound to a matrix."""

    def start(self, rng: np.random.Generator) -> Any:
        """Return a random first state."""
        ...

    def step(self, state: Any) -> Any:
        """Return a state whose criterion is at least as good."""
        ...

    def labels(self, state: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the row and column clusters of a state."""
        ...


@dataclass(frozen=True)
class Start:
    """What one start came to.

    Attributes
    ----------
    row_labels, column_labels : int arrays
        The partitions; a cluster may be empty.
    criterion : float
        The rival's own criterion at the end.
    path : array of shape (n_iter + 1,)
        The criterion before the first step and after each.
    n_iter : int
        Steps made.
    converged : bool
        Whether the last step changed the criterion by no more than the tolerance.
    state : object
        The last state, for rivals that predict from it.
    """

    row_labels: np.ndarray
    column_labels: np.ndarray
    criterion: float
    path: np.ndarray
    n_iter: int
    converged: bool
    state: Any = None


def run_start(method: Method, state: State, max_iter: int, tol: float) -> Start:
    """Step from a first state until the criterion stands still.

    Parameters
    ----------
    method : Method
        The rival.
    state : State
        Where it starts.
    max_iter : int
        Limit on the number of steps.
    tol : float
        Change of the criterion, relative to its size, at which it stands still.

    Returns
    -------
    Start
        The end of the road.
    """
    path, converged = [state.criterion], False
    while not converged and len(path) <= max_iter:
        state = method.step(state)
        path.append(state.criterion)
        converged = abs(path[-1] - path[-2]) <= tol * abs(path[-1])
    rows, columns = method.labels(state)
    return Start(rows, columns, path[-1], np.array(path), len(path) - 1, converged, state)


def run_all(run: Callable[[Any], Any], tasks: Sequence[Any], n_jobs: int | None) -> list[Any]:
    """Run all tasks, one or a few starts each, side by side.

    The arithmetic libraries get one thread each, whatever ``n_jobs`` is: starts are the better
    thing to share out, and sums come out the same to the last bit. Where the first task says that
    the others will take long, they go to processes, which do not hold each other up as threads do;
    if one of these is lost, to threads again.
    """
    with one_blas_thread():
        begun = time.perf_counter()
        first = _run_in_thread(run, tasks[0])
        left = (time.perf_counter() - begun) * (len(tasks) - 1)
        if effective_n_jobs(n_jobs) > 1 and left > _WORTH_PROCESSES:
            try:
                others = Parallel(n_jobs=n_jobs, prefer="processes")(
                    delayed(_run_in_process)(run, task) for task in tasks[1:]
                )
                return [first, *others]
            except BrokenProcessPool:
                warnings.warn(
                    "a worker process was lost, perhaps for lack of memory: all starts are made by "
                    "threads of this process",
                    RuntimeWarning,
                    stacklevel=2,
                )
        others = Parallel(n_jobs=n_jobs, require="sharedmem")(
            delayed(_run_in_thread)(run, task) for task in tasks[1:]
        )
    return [first, *others]


def _run_in_thread(run: Callable[[Any], Any], task: Any) -> Any:
    # OpenMP counts its threads anew in every thread, so the limit is set in each of them.
    with _libraries().limit(limits=1, user_api="openmp"):
        return run(task)


def _run_in_process(run: Callable[[Any], Any], task: Any) -> Any:
    with one_blas_thread():
        return _run_in_thread(run, task)


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()


# Arithmetic of partitions ---------------------------------------------------------------------


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
    """Return every row of a matrix summed over clusters of its columns.

    Examples
    --------
    >>> sum_columns(np.array([[1.0, 2.0, 4.0]]), np.array([0, 1, 0]), 2)
    array([[5., 2.]])
    """
    if not is_sparse(matrix):
        return times(matrix, indicator(labels, n_clusters))
    # Entries of one row that now share a column add up on the way to a dense array: O(nnz).
    parts = (matrix.data, labels[matrix.indices], matrix.indptr)
    return sp.csr_array(parts, shape=(matrix.shape[0], n_clusters)).toarray()


@dataclass(frozen=True)
class TwoWay:
    """A matrix and its transpose, both quick to read row by row.

    Attributes
    ----------
    by_row, by_column : ndarray or CSR matrix
        The matrix and its transpose.
    """

    by_row: Matrix
    by_column: Matrix

    @classmethod
    def of(cls, matrix: Matrix) -> TwoWay:
        """Return both views of a matrix."""
        return cls(matrix, matrix.T.tocsr() if is_sparse(matrix) else matrix.T)


def fill_empty(labels: np.ndarray, costs: np.ndarray, n_clusters: int) -> np.ndarray:
    """Give every empty cluster the costliest point of a cluster that can spare one.

    Examples
    --------
    >>> fill_empty(np.array([0, 0, 0]), np.array([1.0, 3.0, 2.0]), 2)
    array([0, 1, 0])
    """
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


def seeded_labels(points: Matrix, n_clusters: int, rng: np.random.Generator) -> np.ndarray:
    """Return a random partition: well-spread points attract those nearest to them."""
    seeds, _ = kmeans_plusplus(points, n_clusters, random_state=int(rng.integers(2**31)))
    labels = pairwise_distances_argmin(points, seeds).astype(np.intp)
    return fill_empty(labels, rng.random(len(labels)), n_clusters)


def kmeans_labels(points: Matrix, n_clusters: int, rng: np.random.Generator) -> np.ndarray:
    """Return the partition that one run of K-means finds."""
    kmeans = KMeans(n_clusters, n_init=1, random_state=int(rng.integers(2**31)))
    with warnings.catch_warnings():
        # Fewer distinct points than clusters: a start is good enough all the same.
        warnings.simplefilter("ignore", ConvergenceWarning)
        labels = kmeans.fit_predict(points).astype(np.intp)
    return fill_empty(labels, rng.random(len(labels)), n_clusters)


def mean_blocks(matrix: Matrix, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return the mean of each block, over the entries that are not missing (NaN)."""
    shape = int(rows.max()) + 1, int(columns.max()) + 1
    sizes = np.outer(cluster_sizes(rows, shape[0]), cluster_sizes(columns, shape[1]))
    if not is_sparse(matrix) and np.isnan(matrix).any():
        seen = ~np.isnan(matrix)
        sizes = cluster_sums(sum_columns(seen, columns, shape[1]), rows, shape[0])
        matrix = np.where(seen, matrix, 0.0)
    sums = cluster_sums(sum_columns(matrix, columns, shape[1]), rows, shape[0])
    return np.divide(sums, sizes, out=np.full(shape, np.nan), where=sizes > 0)


# The estimators -------------------------------------------------------------------------------


class BaseRival(VersionedPickle, BiclusterMixin, BaseEstimator):
    """Base of the rivals; see the subclasses for parameters."""

    _larger_is_better: ClassVar[bool] = False
    _non_negative: ClassVar[bool] = False
    _takes_sparse: ClassVar[bool] = True
    _takes_missing: ClassVar[bool] = False

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_row_clusters": COUNT,
        "n_column_clusters": COUNT,
        "n_init": COUNT,
        "max_iter": COUNT,
        "tol": [Interval(Real, 0, None, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": "no_validation",
    }

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
        self.n_row_clusters = n_row_clusters
        self.n_column_clusters = n_column_clusters
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state

    def __sklearn_tags__(self):
        """Tell scikit-learn which matrices are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse
        tags.input_tags.allow_nan = self._takes_missing
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
        return self._fit(X)

    def fit_predict(self, X: Any, y: Any = None) -> np.ndarray:
        """Co-cluster ``X`` and return the labels of its rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_columns)
            The matrix.
        y : None
            Ignored; here for the sake of pipelines.

        Returns
        -------
        ndarray of shape (n_rows,)
            ``row_labels_``.
        """
        return self._fit(X).row_labels_

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the fitted estimator to a file that :func:`ccot.load_model` reads.

        Parameters
        ----------
        path : path-like
            The file, by custom ``*.ccot``; replaced if it is there, and only by a complete one.

        Returns
        -------
        pathlib.Path
            The file.
        """
        # The registry knows every estimator, so it cannot be known from here at import time.
        from ccot.estimators.models import save_model

        return save_model(self, path)

    @property
    def rows_(self) -> np.ndarray:
        """Boolean array (n_biclusters, n_rows): the rows of each block."""
        check_is_fitted(self)
        clusters = np.repeat(np.arange(self.n_row_clusters_), self.n_column_clusters_)
        return clusters[:, None] == self.row_labels_

    @property
    def columns_(self) -> np.ndarray:
        """Boolean array (n_biclusters, n_columns): the columns of each block."""
        check_is_fitted(self)
        clusters = np.tile(np.arange(self.n_column_clusters_), self.n_row_clusters_)
        return clusters[:, None] == self.column_labels_

    def _fit(self, X: Any):
        """Check, run the starts, keep the best, say so if it was stopped."""
        self._validate_params()
        matrix = self._check_matrix(X)
        seeds = as_generator(self.random_state).integers(2**31, size=self.n_init)
        best = self._best_start(matrix, seeds.tolist())
        if not best.converged:
            warnings.warn(
                f"{type(self).__name__}: the kept start stopped at max_iter={self.max_iter}: "
                "raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=3,
            )
        self._adopt(best, matrix)
        return self

    def _best_start(self, matrix: Matrix, seeds: Sequence[int]) -> Start:
        """Run all starts and keep the best."""
        raise NotImplementedError

    def _best(self, starts: Sequence[Any]) -> Any:
        """Return the start with the best criterion, the first of equals."""
        sign = -1 if self._larger_is_better else 1
        return min(starts, key=lambda start: sign * start.criterion)

    def _check_matrix(self, X: Any) -> Matrix:
        """Return ``X`` as float64, dense or CSR, or say what is wrong with it and what to do."""
        checked = validate_data(
            self,
            X,
            accept_sparse="csr" if self._takes_sparse else False,
            dtype=np.float64,
            ensure_all_finite=False,
            ensure_min_samples=2,
            ensure_min_features=2,
        )
        self._check_values(checked.data if is_sparse(checked) else checked)
        self._check_numbers(*checked.shape)
        return checked

    def _check_values(self, values: np.ndarray) -> None:
        """Refuse values that the rival has no meaning for."""
        name = type(self).__name__
        if np.isinf(values).any():
            raise ValueError("Input X contains infinity: replace it by a finite number")
        if not self._takes_missing and np.isnan(values).any():
            raise ValueError(
                f"Input X contains NaN, which {name} cannot leave out: fill the entries in (for "
                "example with sklearn.impute.SimpleImputer), or use ResidualBayesianCoclustering"
            )
        if values.size and np.isnan(values).all():
            raise ValueError("Input X contains NaN only: pass at least one entry to learn from")
        if self._non_negative and (values < 0).any():
            raise ValueError(
                f"Negative values in data passed to {name}: shift the data, e.g. X - X.min()"
            )

    def _check_numbers(self, n_rows: int, n_columns: int) -> None:
        """Refuse to make more clusters than there are points."""
        for name, asked, size, what in (
            ("n_row_clusters", self.n_row_clusters, n_rows, "rows"),
            ("n_column_clusters", self.n_column_clusters, n_columns, "columns"),
        ):
            if asked > size:
                raise ValueError(
                    f"{name}={asked} is more than the {size} {what} there are to cluster: "
                    f"ask for at most {size}"
                )

    def _adopt(self, best: Start, matrix: Matrix) -> None:
        """Put the kept start on the attributes."""
        # Clusters that ended empty are not counted, and the others numbered without gaps.
        used_rows, self.row_labels_ = np.unique(best.row_labels, return_inverse=True)
        used_columns, self.column_labels_ = np.unique(best.column_labels, return_inverse=True)
        self.n_row_clusters_, self.n_column_clusters_ = len(used_rows), len(used_columns)
        self.block_means_ = mean_blocks(matrix, self.row_labels_, self.column_labels_)
        self.criterion_, self.criterion_path_ = best.criterion, best.path
        self.n_iter_ = best.n_iter


class IterativeBaseline(BaseRival):
    """Base of the rivals that step through :func:`run_start`."""

    def _method(self, matrix: Matrix) -> Method:
        """Bind the rival to a matrix."""
        raise NotImplementedError

    def _best_start(self, matrix: Matrix, seeds: Sequence[int]) -> Start:
        method = self._method(matrix)

        def run(seed: int) -> Start:
            state = method.start(np.random.default_rng(seed))
            return run_start(method, state, self.max_iter, self.tol)

        return self._best(run_all(run, seeds, self.n_jobs))


@dataclass(frozen=True)
class SideStart:
    """What one start came to on one side of the matrix.

    Attributes
    ----------
    labels : int array
        The partition.
    criterion : float
        The smaller, the better.
    n_iter : int
        Iterations made.
    converged : bool
        Whether they were enough.
    """

    labels: np.ndarray
    criterion: float
    n_iter: int
    converged: bool


class TwoSidedBaseline(BaseRival):
    """Base of the rivals that know one side only and are run on rows and columns apart."""

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
        super().__init__(
            n_row_clusters,
            n_column_clusters,
            n_init=n_init,
            max_iter=max_iter,
            tol=tol,
            n_jobs=n_jobs,
            random_state=random_state,
        )

    _starts_per_task: ClassVar[int] = 1

    def _run_side(self, points: Matrix, n_clusters: int, seed: int, n_init: int) -> SideStart:
        """Cluster the rows of a matrix, and return the best of a few starts."""
        raise NotImplementedError

    def _best_start(self, matrix: Matrix, seeds: Sequence[int]) -> Start:
        both = TwoWay.of(matrix)
        transposed = both.by_column
        if not is_sparse(matrix):
            transposed = np.ascontiguousarray(transposed)

        def run(task: Sequence[int]) -> tuple[SideStart, SideStart]:
            seed, n_init = task[0], len(task)
            return (
                self._run_side(matrix, self.n_row_clusters, seed, n_init),
                self._run_side(transposed, self.n_column_clusters, seed, n_init),
            )

        size = self._starts_per_task
        tasks = [seeds[first : first + size] for first in range(0, len(seeds), size)]
        # The sides do not know each other, so each keeps its own best start.
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
