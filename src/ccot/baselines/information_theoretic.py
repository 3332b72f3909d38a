"""Information-theoretic co-clustering: clusters that keep the mutual information."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.special import entr

from ccot.baselines.base import BaseBaseline, FirstPartitions
from ccot.baselines.partitions import Alternation, NearestMeans, TwoWay, cluster_sums, fill_empty
from ccot.runtime.types import Matrix, is_sparse

# Stands for log 0 where it may be multiplied by 0.
_LOG_ZERO = -1e200


class InformationTheoreticCoclustering(BaseBaseline):
    r"""Information-theoretic co-clustering of counts or other non-negative values.

    As in [1]_, the matrix, scaled to sum to one, is a joint distribution of row and column.
    Partitions minimise the mutual information lost by replacing rows and columns by clusters,

    .. math:: I(X; Y) - I(\hat X; \hat Y) = KL(p \,\|\, q), \qquad
              q(x, y) = p(\hat x, \hat y)\, p(x \mid \hat x)\, p(y \mid \hat y),

    in turn: every row is assigned to the cluster with the smallest :math:`KL(p(Y|x) \,\|\, q(Y|\hat
    x))`, then every column. An empty cluster gets the point that fits worst in its own cluster.

    Parameters
    ----------
    n_row_clusters, n_column_clusters : int, default=2
        Numbers of clusters. On text, more clusters of words than of documents help.
    init : {"mixed", "double_kmeans", "k-means++", "kmeans", "random"}, default="mixed"
        Partitions to start from; "mixed": the other four in turn. The CCOT paper uses "random".
        Distances are of square roots of profiles; double K-means takes the values if dense.
    n_init, max_iter, tol : int, default=10; int, default=300; float, default=1e-6
        Number of starts, of which the one that loses least is kept; a start ends after `max_iter`
        sweeps, which visit all entries twice, or when the loss changes by a share of `tol`.
    n_jobs, random_state : int or None, default=None
        Number of threads (-1: all), on which labels do not depend; seed, or a generator.

    Attributes
    ----------
    row_labels_, column_labels_, n_row_clusters_, n_column_clusters_, block_means_
        Cluster of each row and column; the given numbers of clusters; mean of each block.
    criterion_, criterion_path_ : float, ndarray of shape (``n_iter_ + 1``,)
        Mutual information lost, in nats; the same before and after each sweep, never rising.
    n_iter_, converged_, rows_, columns_, biclusters_, n_features_in_, feature_names_in_
        Sweeps of the best start; whether it reached `tol`; the others as in scikit-learn.

    References
    ----------
    .. [1] Dhillon, Mallela and Modha (2003). Information-theoretic co-clustering. KDD.

    Examples
    --------
    >>> import numpy as np
    >>> from ccot.baselines import InformationTheoreticCoclustering
    >>> counts = np.kron([[9, 1, 1], [1, 9, 1]], np.ones((4, 2), dtype=int))
    >>> model = InformationTheoreticCoclustering(2, 3, random_state=0).fit(counts)
    >>> abs(round(model.criterion_, 12))
    0.0
    """

    _non_negative = True

    def _method(self, matrix: Matrix) -> "_SimilarProfiles":
        joint = matrix / (matrix.sum() or 1.0)
        return _SimilarProfiles(TwoWay.of(joint), self._shape, mutual_information(joint))

    def _first_partitions(self, matrix: Matrix) -> FirstPartitions:
        roots = TwoWay(*map(_root_profiles, TwoWay.of(matrix)))
        # Sparse matrices are mostly counts of words: their squares would separate texts by length.
        counts = roots.by_row if is_sparse(matrix) else matrix
        return FirstPartitions(NearestMeans.of(counts, self._shape), roots)


@dataclass(frozen=True)
class _SimilarProfiles(Alternation):
    """Rows and columns move in turn to the cluster with the most similar profile."""

    information: float

    def _move(
        self, profiles: np.ndarray, labels: np.ndarray, n_clusters: int, widths: np.ndarray
    ) -> np.ndarray:
        """Return the labels of the clusters with the smallest divergence, no cluster empty."""
        gains = profiles @ _log_profiles(cluster_sums(profiles, labels, n_clusters)).T
        points = np.arange(len(labels))
        best = gains.argmax(axis=1)
        # Points that gain nothing stay: empty rows would otherwise all gather in one cluster.
        best = np.where(gains[points, best] > gains[points, labels], best, labels)
        own = entr(profiles.sum(axis=1)) - entr(profiles).sum(axis=1)
        return fill_empty(best, own - gains[points, best], n_clusters)

    def _criterion(self, totals: np.ndarray, sizes: np.ndarray) -> float:
        return max(self.information - mutual_information(totals), 0.0)


def mutual_information(joint: Matrix) -> float:
    """Return the mutual information, in nats, of a joint distribution."""
    rows, columns = np.asarray(joint.sum(axis=1)).ravel(), np.asarray(joint.sum(axis=0)).ravel()
    values = joint.data if is_sparse(joint) else joint
    return float(entr(rows).sum() + entr(columns).sum() - entr(values).sum())


def _root_profiles(joint: Matrix) -> Matrix:
    """Return square roots of the conditional distributions p(y|x), one a row."""
    totals = np.asarray(joint.sum(axis=1)).ravel()
    scale = 1 / np.where(totals > 0, totals, 1.0)
    if is_sparse(joint):
        return sp.csr_matrix(sp.diags_array(scale) @ joint).sqrt()
    return np.sqrt(joint * scale[:, None])


def _log_profiles(table: np.ndarray) -> np.ndarray:
    """Return log p(l|k), finite where the table is zero."""
    profiles = table / np.maximum(table.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    return np.log(profiles, out=np.full_like(profiles, _LOG_ZERO), where=table > 0)
