"""Double K-means: one table of means for rows and columns at once."""

from __future__ import annotations

from ccot.baselines.alternation import NearestMeans
from ccot.baselines.base import IterativeBaseline
from ccot.runtime.types import Matrix


class DoubleKMeans(IterativeBaseline):
    r"""Double K-means [1]_: least squares by blocks that are constant.

    Partitions :math:`z` of the rows and :math:`w` of the columns and a table :math:`\mu` minimise

    .. math:: \sum_{ij} (x_{ij} - \mu_{z_i w_j})^2

    by turns: every row to its nearest row of the table, the table to the block means, every
    column to its nearest column of the table, the table again. A cluster that loses its last
    member gets the point that fits worst where it is, which lowers the sum as well.

    Parameters
    ----------
    n_row_clusters, n_column_clusters : int, default=2
        Numbers of clusters.
    init : {"mixed", "double_kmeans", "k-means++", "kmeans", "random"}, default="mixed"
        Partitions to start from: of double K-means, around well-spread points, of K-means, random
        ones (as the CCOT paper has it), or these four in turn.
    n_init : int, default=10
        Number of starts; the one with the smallest sum of squares is kept.
    max_iter, tol : int, default=300; float, default=1e-6
        A start ends after so many sweeps, or when the sum of squares changes by this share.
    n_jobs, random_state : int or None, default=None
        Number of threads (-1: all), on which labels do not depend; seed, or a generator.

    Attributes
    ----------
    row_labels_, column_labels_, n_row_clusters_, n_column_clusters_
        Cluster of each row and column, and their numbers, always those asked for.
    block_means_ : ndarray of shape (n_row_clusters_, n_column_clusters_)
        Mean of each block.
    criterion_, criterion_path_ : float, ndarray of shape (n_iter_ + 1,)
        Sum of squares within blocks; the same from the first sweep of the kept start to its last,
        never rising.
    n_iter_, converged_ : int, bool
        Sweeps of the kept start, and whether it ended by `tol`.
    rows_, columns_, biclusters_, n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    .. [1] Rocci, R. and Vichi, M. (2008). Two-mode multi-partitioning. Computational Statistics
       & Data Analysis 52(4).

    Examples
    --------
    >>> from ccot.baselines import DoubleKMeans
    >>> from ccot.datasets import make_latent_blocks
    >>> blocks = make_latent_blocks([[1, 5, 3], [5, 1, 2]], 40, 30, sigma=0.1, random_state=0)
    >>> model = DoubleKMeans(2, 3, random_state=0).fit(blocks.data)
    >>> model.block_means_.round()
    array([[5., 1., 2.],
           [1., 5., 3.]])
    """

    def _method(self, matrix: Matrix) -> NearestMeans:
        return NearestMeans.of(matrix, self._shape)
