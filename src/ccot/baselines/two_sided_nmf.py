"""Non-negative matrix factorisation, once for the rows and once for the columns."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

from ccot.baselines.base import SideStart, TwoSidedBaseline
from ccot.runtime.types import Matrix


class TwoSidedNMF(TwoSidedBaseline):
    r"""Clusters from non-negative factorisations by :class:`sklearn.decomposition.NMF`.

    The rows come from :math:`\min_{W, H \ge 0} \|X - W H\|^2` with one component for each row
    cluster: the component that weighs most in a row, once the rows of :math:`H` have unit norm,
    is its cluster. The columns come from a second factorisation, of the transpose.

    Parameters
    ----------
    n_row_clusters, n_column_clusters : int, default=2
        Numbers of clusters.
    n_init : int, default=10
        Number of random starts on each side; each side keeps its best.
    max_iter : int, default=300
        Limit on the iterations of each start.
    tol : float, default=1e-4
        As in :class:`sklearn.decomposition.NMF`.
    n_jobs, random_state : int or None, default=None
        Number of threads (-1: all), on which labels do not depend; seed, or a generator.

    Attributes
    ----------
    row_labels_, column_labels_ : ndarray of int
        Cluster of each row and column.
    n_row_clusters_, n_column_clusters_ : int
        Numbers of clusters that have members: a component that weighs most nowhere has none.
    block_means_ : ndarray of shape (n_row_clusters, n_column_clusters)
        Mean of each block.
    criterion_ : float
        Squared error of the factorisation for the rows plus that for the columns.
    criterion_path_ : ndarray of shape (1,)
        The same; scikit-learn does not tell the way there.
    n_iter_ : int
        Iterations of the slower side.
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

    def _run_side(self, points: Matrix, n_clusters: int, seed: int, n_init: int) -> SideStart:
        nmf = NMF(
            n_clusters, init="random", max_iter=self.max_iter, tol=self.tol, random_state=seed
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the kept start warns
            weights = nmf.fit_transform(points)
        labels = (weights * np.linalg.norm(nmf.components_, axis=1)).argmax(axis=1)
        converged = nmf.n_iter_ < self.max_iter
        return SideStart(labels, float(nmf.reconstruction_err_) ** 2, nmf.n_iter_, converged)
