"""K-means, and non-negative matrix factorisation: once for the rows and once for the columns."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import StrOptions

from ccot.baselines.base import BaseBaseline, FirstPartitions, Start, run_all
from ccot.baselines.partitions import TwoWay, indicator
from ccot.runtime.types import Matrix, is_sparse

# Added to the indicators of the first partitions, so that no weight begins at zero.
_OFFSET = 0.2
# Each factorisation has this many iterations; then this many of the best on each side go on.
_SHORT, _KEPT = 200, 5


@dataclass(frozen=True)
class SideStart:
    """The result of one start on one side of the matrix; the smaller its criterion, the better."""

    labels: np.ndarray
    criterion: float
    n_iter: int
    converged: bool


@dataclass(kw_only=True, eq=False, repr=False)
class TwoSidedBaseline(BaseBaseline):
    """Base of the baselines that cluster rows and columns separately."""

    max_iter: int = 10_000
    tol: float = 1e-4

    def _run(self, sides: TwoWay, task: Any) -> list[SideStart]:
        """Return the results for rows and columns of the start, or starts, of one task."""
        raise NotImplementedError

    def _run_all(self, sides: TwoWay, tasks: Sequence[Any]) -> list[list[SideStart]]:
        return run_all(lambda task: self._run(sides, task), tasks, self.n_jobs)

    def _best_start(self, matrix: Matrix, seeds: Sequence[int]) -> Start:
        sides = TwoWay.of(matrix)
        if not is_sparse(matrix):
            sides = TwoWay(matrix, np.ascontiguousarray(sides.by_column))
        # The sides are independent, so each keeps its own best start.
        rows, columns = map(self._best, zip(*self._run_all(sides, self._tasks(seeds)), strict=True))
        criterion = rows.criterion + columns.criterion
        n_iter, converged = max(rows.n_iter, columns.n_iter), rows.converged and columns.converged
        path = np.array([criterion])
        return Start(rows.labels, columns.labels, criterion, path, n_iter, converged)


class TwoSidedKMeans(TwoSidedBaseline):
    r"""K-means of the rows, and K-means of the columns, by :class:`sklearn.cluster.KMeans`.

    The rows minimise :math:`\sum_i \|x_i - c_{z_i}\|^2` over labels and centres, and so do the
    columns, independently of each other.

    Parameters
    ----------
    n_row_clusters, n_column_clusters : int, default=2
        Numbers of clusters.
    init : {"mixed", "random"}, default="mixed"
        Centres to start from: well-spread points (K-means++), or random ones.
    n_init, max_iter, tol : int, default=10; int, default=10000; float, default=1e-4
        Starts on each side, which keeps its best; when they end, as in scikit-learn.
    n_jobs, random_state : int or None, default=None
        Number of threads (-1: all), on which labels do not depend; seed, or a generator.

    Attributes
    ----------
    row_labels_, column_labels_, n_row_clusters_, n_column_clusters_, block_means_
        Clusters, their numbers (fewer than given if points coincide), mean of each block.
    criterion_, criterion_path_ : float, ndarray of shape (1,)
        Sum of squares within row clusters plus that within column clusters, at the end.
    n_iter_, converged_, rows_, columns_, biclusters_, n_features_in_, feature_names_in_
        Iterations of the slower side, whether both ended before `max_iter`; as in scikit-learn.

    Examples
    --------
    >>> from ccot.baselines import TwoSidedKMeans
    >>> from ccot.datasets import make_latent_blocks
    >>> blocks = make_latent_blocks([[1, 5, 3], [5, 1, 2]], 40, 30, sigma=0.1, random_state=0)
    >>> model = TwoSidedKMeans(2, 3, random_state=0).fit(blocks.data)
    >>> sorted(model.block_means_.round().ravel().tolist())
    [1.0, 1.0, 2.0, 3.0, 5.0, 5.0]
    """

    _parameter_constraints = TwoSidedBaseline._parameter_constraints | {
        "init": [StrOptions({"mixed", "random"})],
    }

    def _tasks(self, seeds: Sequence[int]) -> list[Any]:
        # Five starts a call: KMeans prepares the matrix in each, which takes as long as a start.
        return [seeds[first : first + 5] for first in range(0, len(seeds), 5)]

    def _run(self, sides: TwoWay, task: Sequence[int]) -> list[SideStart]:
        return [self._run_side(*side, task) for side in zip(sides, self._shape, strict=True)]

    def _run_side(self, points: Matrix, n_clusters: int, seeds: Sequence[int]) -> SideStart:
        init, n_init = "random" if self.init == "random" else "k-means++", len(seeds)
        limits = {"max_iter": self.max_iter, "tol": self.tol}
        kmeans = KMeans(n_clusters, init=init, n_init=n_init, random_state=seeds[0], **limits)
        kmeans.fit(points)
        converged = kmeans.n_iter_ < self.max_iter
        return SideStart(kmeans.labels_, float(kmeans.inertia_), kmeans.n_iter_, converged)


class TwoSidedNMF(TwoSidedBaseline):
    r"""Clusters from non-negative factorisations by :class:`sklearn.decomposition.NMF`.

    The rows come from :math:`\min_{W, H \ge 0} \|X - W H\|^2` with one component for each row
    cluster: the component that weighs most in a row, once the rows of :math:`H` have unit norm,
    is its cluster. The columns come from a second factorisation, of the transpose.

    Parameters
    ----------
    n_row_clusters, n_column_clusters : int, default=2
        Numbers of clusters.
    init : {"mixed", "double_kmeans", "k-means++", "kmeans", "random"}, default="mixed"
        Partitions to start from; "mixed": the other four in turn. The CCOT paper uses
        "random": random factors.
    n_init, max_iter, tol : int, default=10; int, default=10000; float, default=1e-4
        Starts on each side: the five with the smallest errors after 200 iterations are run until
        they end, as in scikit-learn, and the best is kept.
    n_jobs, random_state : int or None, default=None
        Number of threads (-1: all), on which labels do not depend; seed, or a generator.

    Attributes
    ----------
    row_labels_, column_labels_, n_row_clusters_, n_column_clusters_, block_means_
        Clusters, their numbers (a component that weighs most nowhere has no members), block means.
    criterion_, criterion_path_ : float, ndarray of shape (1,)
        Squared error of the factorisation for the rows plus that for the columns, at the end.
    n_iter_, converged_, rows_, columns_, biclusters_, n_features_in_, feature_names_in_
        Iterations of the slower side, whether both ended before `max_iter`; as in scikit-learn.

    Examples
    --------
    >>> from ccot.baselines import TwoSidedNMF
    >>> from ccot.datasets import make_latent_blocks
    >>> blocks = make_latent_blocks([[1, 9, 1], [9, 1, 1]], 40, 30, sigma=0.1, random_state=0)
    >>> model = TwoSidedNMF(2, 2, random_state=0).fit(blocks.data)
    >>> model.n_row_clusters_, model.n_column_clusters_
    (2, 2)
    """

    _non_negative = True

    def _run_all(self, sides: TwoWay, tasks: Sequence[Any]) -> list[list[SideStart]]:
        pairs = [(task, task) for task in tasks]
        if len(pairs) > _KEPT:
            short = clone(self).set_params(max_iter=min(_SHORT, self.max_iter))
            ends = zip(*super(TwoSidedNMF, short)._run_all(sides, pairs), strict=True)
            orders = [np.argsort([end.criterion for end in side], kind="stable") for side in ends]
            pairs = [(tasks[i], tasks[j]) for i, j in zip(*orders, strict=True)][:_KEPT]
        return super()._run_all(sides, pairs)

    def _run(self, sides: TwoWay, task: Sequence[tuple[str, int]]) -> list[SideStart]:
        first = FirstPartitions.of(sides.by_row, self._shape)
        drawn = {each: first.draw(*each) for each in set(task) if each[0] != "random"}
        labels = [drawn.get(each, (None, None))[side] for side, each in enumerate(task)]
        return list(map(self._run_side, sides, self._shape, labels, [seed for _, seed in task]))

    def _run_side(
        self, points: Matrix, n_clusters: int, first: np.ndarray | None, seed: int
    ) -> SideStart:
        init = "random" if first is None else "custom"
        nmf = NMF(n_clusters, init=init, max_iter=self.max_iter, tol=self.tol, random_state=seed)
        factors = {} if first is None else _first_factors(points, n_clusters, first)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the best start warns
            weights = nmf.fit_transform(points, **factors)
        labels = (weights * np.linalg.norm(nmf.components_, axis=1)).argmax(axis=1)
        converged = nmf.n_iter_ < self.max_iter
        return SideStart(labels, float(nmf.reconstruction_err_) ** 2, nmf.n_iter_, converged)


def _first_factors(points: Matrix, n_clusters: int, labels: np.ndarray) -> dict[str, np.ndarray]:
    """Return the indicators of a partition plus an offset, and the means of its clusters."""
    clusters = indicator(labels, n_clusters)
    means = points.T.dot(clusters / clusters.sum(axis=0)).T
    # NMF refuses a matrix of zeros.
    return {"W": clusters + _OFFSET, "H": np.maximum(means, np.finfo(float).tiny, order="C")}
