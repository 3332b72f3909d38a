"""Non-negative matrix factorisation, once for the rows and once for the columns."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

from ccot.baselines.base import SideStart, TwoSidedBaseline
from ccot.baselines.partitions import TwoWay, indicator, times
from ccot.baselines.starts import FirstPartitions
from ccot.runtime.run import RandomState
from ccot.runtime.types import Matrix

# Added to the indicators of the first partitions, so that no weight begins at zero.
_OFFSET = 0.2


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
        Partitions to start from: of double K-means, around well-spread points, of K-means, random
        factors in their place (as the CCOT paper has it), or these four in turn.
    n_init : int, default=10
        Number of starts on each side; each side keeps its best.
    max_iter, tol : int, default=5000; float, default=1e-4
        When a start ends, as in :class:`sklearn.decomposition.NMF`.
    n_jobs, random_state : int or None, default=None
        Number of threads (-1: all), on which labels do not depend; seed, or a generator.

    Attributes
    ----------
    row_labels_, column_labels_, n_row_clusters_, n_column_clusters_
        Cluster of each row and column, and their numbers: a component that weighs most nowhere has
        no members.
    block_means_ : ndarray of shape (n_row_clusters_, n_column_clusters_)
        Mean of each block.
    criterion_, criterion_path_ : float, ndarray of shape (1,)
        Squared error of the factorisation for the rows plus that for the columns, at the end.
    n_iter_, converged_ : int, bool
        Iterations of the slower side, and whether both ended before `max_iter`.
    rows_, columns_, biclusters_, n_features_in_, feature_names_in_
        As in scikit-learn.

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

    def __init__(
        self,
        n_row_clusters: int = 2,
        n_column_clusters: int = 2,
        *,
        init: str = "mixed",
        n_init: int = 10,
        max_iter: int = 5000,
        tol: float = 1e-4,
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self._set((n_row_clusters, n_column_clusters), init, n_init, max_iter, tol)
        self.n_jobs, self.random_state = n_jobs, random_state

    def _run(self, sides: TwoWay, task: tuple[str, int]) -> tuple[SideStart, SideStart]:
        first = FirstPartitions.of(sides.by_row, self._shape)
        partitions = (None, None) if task[0] == "random" else first.draw(*task)
        rows, columns = (
            self._run_side(points, n_clusters, labels, task[1])
            for points, n_clusters, labels in zip(
                (sides.by_row, sides.by_column), self._shape, partitions, strict=True
            )
        )
        return rows, columns

    def _run_side(
        self, points: Matrix, n_clusters: int, labels: np.ndarray | None, seed: int
    ) -> SideStart:
        nmf = NMF(
            n_clusters,
            init="random" if labels is None else "custom",
            max_iter=self.max_iter,
            tol=self.tol,
            random_state=seed,
        )
        factors = {} if labels is None else _first_factors(points, n_clusters, labels)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the kept start warns
            weights = nmf.fit_transform(points, **factors)
        labels = (weights * np.linalg.norm(nmf.components_, axis=1)).argmax(axis=1)
        converged = nmf.n_iter_ < self.max_iter
        return SideStart(labels, float(nmf.reconstruction_err_) ** 2, nmf.n_iter_, converged)


def _first_factors(points: Matrix, n_clusters: int, labels: np.ndarray) -> dict[str, np.ndarray]:
    """Return blurred indicators of a partition, and the means of its clusters."""
    clusters = indicator(labels, n_clusters)
    means = times(points.T, clusters / clusters.sum(axis=0)).T
    # NMF takes no matrix of zeros.
    return {"W": clusters + _OFFSET, "H": np.maximum(means, np.finfo(float).tiny, order="C")}
