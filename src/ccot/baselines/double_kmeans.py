"""Double K-means: one table of means for rows and columns at once."""

from ccot.baselines.base import BaseBaseline
from ccot.baselines.partitions import NearestMeans
from ccot.runtime.types import Matrix


class DoubleKMeans(BaseBaseline):
    r"""Double K-means: least squares by blocks that are constant.

    Partitions :math:`z` of rows and :math:`w` of columns and a table :math:`\mu` minimise [1]_

    .. math:: \sum_{ij} (x_{ij} - \mu_{z_i w_j})^2

    in turn: every row is assigned to its nearest row of the table, the table to the block means,
    then the columns likewise. An empty cluster gets the point that fits worst in its own cluster.

    Parameters
    ----------
    n_row_clusters, n_column_clusters : int, default=2
        Numbers of clusters.
    init : {"mixed", "double_kmeans", "k-means++", "kmeans", "random"}, default="mixed"
        Partitions to start from; "mixed": the other four in turn. The CCOT paper uses "random".
    n_init, max_iter, tol : int, default=10; int, default=300; float, default=1e-6
        Number of starts, of which the one with the smallest sum of squares is kept; a start ends
        after `max_iter` sweeps, or when the sum changes by a share of `tol`.
    n_jobs, random_state : int or None, default=None
        Number of threads (-1: all), on which labels do not depend; seed, or a generator.

    Attributes
    ----------
    row_labels_, column_labels_, n_row_clusters_, n_column_clusters_, block_means_
        Cluster of each row and column; the given numbers of clusters; mean of each block.
    criterion_, criterion_path_ : float, ndarray of shape (``n_iter_ + 1``,)
        Sum of squares within blocks; the same before and after each sweep, never rising.
    n_iter_, converged_, rows_, columns_, biclusters_, n_features_in_, feature_names_in_
        Sweeps of the best start; whether it reached `tol`; the others as in scikit-learn.

    References
    ----------
    .. [1] Rocci and Vichi (2008). Two-mode multi-partitioning. Comput. Stat. Data Anal. 52(4).

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
