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
    n_init : int, default=10
        Number of starts; the one with the smallest sum of squares is kept. A start takes
        well-spread rows and columns (as K-means++ does) and gives the others to the nearest.
    max_iter : int, default=300
        Limit on the sweeps of each start.
    tol : float, default=1e-6
        Relative change of the sum of squares at which a start ends.
    n_jobs, random_state : int or None, default=None
        Number of threads (-1: all), on which labels do not depend; seed, or a generator.

    Attributes
    ----------
    row_labels_, column_labels_ : ndarray of int
        Cluster of each row and column.
    n_row_clusters_, n_column_clusters_ : int
        Numbers of clusters that have members; always those asked for.
    block_means_ : ndarray of shape (n_row_clusters, n_column_clusters)
        Mean of each block.
    criterion_ : float
        Sum of squares within blocks.
    criterion_path_ : ndarray of shape (n_iter_ + 1,)
        The same before the first sweep of the kept start and after each; never rises.
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
