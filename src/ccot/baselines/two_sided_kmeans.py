"""K-means of the rows and K-means of the columns, each on its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from sklearn.cluster import KMeans
from sklearn.utils._param_validation import StrOptions

from ccot.baselines.base import SideStart, TwoSidedBaseline
from ccot.baselines.partitions import TwoWay
from ccot.runtime.run import RandomState
from ccot.runtime.types import Matrix


class TwoSidedKMeans(TwoSidedBaseline):
    r"""K-means of the rows, and K-means of the columns, by :class:`sklearn.cluster.KMeans`.

    The rows minimise :math:`\sum_i \|x_i - c_{z_i}\|^2` over labels and centres, and so do the
    columns; neither side knows of the other.

    Parameters
    ----------
    n_row_clusters, n_column_clusters : int, default=2
        Numbers of clusters.
    init : {"k-means++", "random"}, default="k-means++"
        Centres to start from, as in :class:`sklearn.cluster.KMeans`.
    n_init : int, default=10
        Number of starts on each side; each side keeps its best.
    max_iter, tol : int, default=300; float, default=1e-4
        When a start ends, as in :class:`sklearn.cluster.KMeans`.
    n_jobs, random_state : int or None, default=None
        Number of threads (-1: all), on which labels do not depend; seed, or a generator.

    Attributes
    ----------
    row_labels_, column_labels_, n_row_clusters_, n_column_clusters_
        Cluster of each row and column, and their numbers: fewer than asked for if points coincide.
    block_means_ : ndarray of shape (n_row_clusters_, n_column_clusters_)
        Mean of each block.
    criterion_, criterion_path_ : float, ndarray of shape (1,)
        Sum of squares within row clusters plus that within column clusters, at the end.
    n_iter_, converged_ : int, bool
        Iterations of the slower side, and whether both ended before `max_iter`.
    rows_, columns_, biclusters_, n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from ccot.baselines import TwoSidedKMeans
    >>> from ccot.datasets import make_latent_blocks
    >>> blocks = make_latent_blocks([[1, 5, 3], [5, 1, 2]], 40, 30, sigma=0.1, random_state=0)
    >>> model = TwoSidedKMeans(2, 3, random_state=0).fit(blocks.data)
    >>> sorted(model.block_means_.round().ravel().tolist())
    [1.0, 1.0, 2.0, 3.0, 5.0, 5.0]
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **TwoSidedBaseline._parameter_constraints,
        "init": [StrOptions({"k-means++", "random"})],
    }

    def __init__(
        self,
        n_row_clusters: int = 2,
        n_column_clusters: int = 2,
        *,
        init: str = "k-means++",
        n_init: int = 10,
        max_iter: int = 300,
        tol: float = 1e-4,
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self._set((n_row_clusters, n_column_clusters), init, n_init, max_iter, tol)
        self.n_jobs, self.random_state = n_jobs, random_state

    def _tasks(self, seeds: Sequence[int]) -> list[Any]:
        # Each call of KMeans prepares the matrix anew, which takes about as long as a start.
        return [seeds[first : first + 5] for first in range(0, len(seeds), 5)]

    def _run(self, sides: TwoWay, task: Sequence[int]) -> tuple[SideStart, SideStart]:
        return (
            self._run_side(sides.by_row, self.n_row_clusters, task),
            self._run_side(sides.by_column, self.n_column_clusters, task),
        )

    def _run_side(self, points: Matrix, n_clusters: int, seeds: Sequence[int]) -> SideStart:
        kmeans = KMeans(
            n_clusters,
            init=self.init,
            n_init=len(seeds),
            max_iter=self.max_iter,
            tol=self.tol,
            random_state=seeds[0],
        ).fit(points)
        converged = kmeans.n_iter_ < self.max_iter
        return SideStart(kmeans.labels_, float(kmeans.inertia_), kmeans.n_iter_, converged)
