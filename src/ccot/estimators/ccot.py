"""CCOT: co-clustering by transport between rows and columns."""

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import _is_fitted

from ccot.estimators.base import COUNT, N_JOBS, BaseStepCoclustering, is_read_by_row
from ccot.io.frames import row_names
from ccot.runtime.run import Run
from ccot.scalings.ccot import CCOTSettings, fit_ccot
from ccot.scalings.large import add_rows, fit_large
from ccot.scalings.sampling import SAMPLINGS, pool_size
from ccot.scalings.steps import StepCoclustering
from ccot.sources import RowSource, as_source

# Share of new rows on none of the steps above which a warning says so.
_OUTSIDE_SHARE = 0.01


@dataclass(kw_only=True, eq=False, repr=False)
class CCOT(BaseStepCoclustering):
    r"""Co-clustering through optimal transport, Algorithm 1 of the paper.

    As in [1]_, rows and columns are two clouds of points, and entropic transport between them,

    .. math:: \gamma^* = \arg\min_{\gamma \in \Pi} \langle M, \gamma \rangle
              - \frac{1}{\lambda} E(\gamma), \qquad M_{ij} = \|x_i - y_j\|^2,

    is solved by a coupling :math:`\mathrm{diag}(\alpha)\, e^{-\lambda M}\, \mathrm{diag}(\beta)`.
    The sorted scalings :math:`\alpha` and :math:`\beta` have steps; the rows on one step form a
    cluster, and so do the columns. Rows and columns can be compared only if the matrix is square.
    So random square submatrices (*draws*) are clustered, and the labels are decided by vote.

    Parameters
    ----------
    n_row_clusters, n_column_clusters : int or None, default=None
        Numbers of clusters, divided at the strongest jumps; None: chosen from the data.
    reg, scale_cost : float or "cv", default=0.2; "median" or None, default="median"
        Weight of the entropy, the paper's :math:`1 / \lambda`, in units of the median cost (None:
        of the costs). Smaller values separate more clusters and need more iterations. ``"cv"``
        chooses from 1, .5, .2, .1 and .05 by the mutual information of partitions of two halves.
    n_samplings : int or "auto", default="auto"
        Number of draws. ``"auto"`` draws each row about 16 times, then doubles the number of draws
        until the vote no longer changes, up to 128 times. If there are more than 65,536 rows (fewer
        for wide matrices), draws come from a random pool of that many rows; see the notes.
    sampling : {"cover", "uniform", "replacement"}, default="cover"
        ``"cover"`` draws every row equally often and needs the fewest draws. ``"uniform"`` makes
        independent draws without replacement. ``"replacement"`` is the default of the paper's
        ``datasample``: a row that is in a draw k times has k times the mass and k votes (the
        detector ``"multiscale"`` uses it once, because equal values look like a step). Of a square
        matrix, the first draw is the matrix itself; later ones pair rows and columns differently.
    detector : {"multiscale", "authors", "paper"}, default="multiscale"
        How jumps are found, see :func:`ccot.detect_jumps`.
    max_iter, tol : int, default=1000; float, default=1e-6
        Maximum number of Sinkhorn iterations of a draw; error of the marginals at which they stop.
    n_jobs : int or None, default=None
        Number of threads, or of workers of joblib's active backend; None: one, -1: all.
    device : str or None, default=None
        None computes with NumPy; otherwise a device of PyTorch, ``"cuda"`` for a GPU.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the draws.
    checkpoint : path-like or None, default=None
        Folder of finished pieces, from which an interrupted fit continues: :doc:`/checkpoints`.
    verbose : int or callable, default=0
        Print progress if positive; a callable gets ``(message)`` or ``(stage, done, total)``.

    Attributes
    ----------
    row_labels_, column_labels_, n_row_clusters_, n_column_clusters_ : ndarray of int, int
        Cluster of each row and column, numbered from the lowest step; numbers of clusters.
    row_confidence_, column_confidence_ : ndarray of float
        Share of a row's (column's) draws that found the final number and put it into its cluster;
        outside the pool, share of draws with that number times the probability of the step.
    row_cluster_votes_, column_cluster_votes_ : dict of int to float
        Share of draws that found each number of clusters.
    row_log_scaling_, column_log_scaling_ : ndarray of float
        Log scalings in the draw with the clearest steps; computed in closed form for other rows.
    row_jumps_, column_jumps_, row_jump_strength_, column_jump_strength_ : ndarray
        Number of sorted scalings before each jump, and the strength of the jump.
    block_means_ : ndarray of shape (n_row_clusters, n_column_clusters)
        Mean of the matrix over each block.
    rows_, columns_, biclusters_, n_features_in_, feature_names_in_
        As in scikit-learn.
    n_samplings_, n_iter_ : int
        Number of draws made, and iterations of the slowest one.
    reg_, reg_path_ : float, RegPath
        The regularisation used and, with ``reg="cv"`` only, the scores of cross-validation.

    See Also
    --------
    CCOTGW : The kernelised version; no draws.

    Notes
    -----
    Each draw reduces a row to one number, which contains the noise of the row. So steps disappear
    at noise levels at which other methods still find the clusters, and two clusters with the same
    scaling cannot be separated. One draw costs :math:`O(k^3)` for a square of size k.

    Rows outside the pool are assigned in closed form, as in ``predict``. Time is then linear in the
    number of rows, which are read twice, and memory does not depend on it: long results (labels as
    int32, confidence and scalings as float32) are memory-mapped temporary files.

    References
    ----------
    .. [1] Laclau, C., Redko, I., Matei, B., Bennani, Y. and Brault, V. (2017). Co-clustering
       through optimal transport. ICML.

    Examples
    --------
    >>> from ccot import CCOT
    >>> from ccot.datasets import load_simulated
    >>> matrix = load_simulated("D1", random_state=0).data
    >>> model = CCOT(random_state=0).fit(matrix)
    >>> model.n_row_clusters_, model.n_column_clusters_
    (3, 3)
    """

    reg: float | str = 0.2
    scale_cost: str | None = "median"
    n_samplings: int | str = "auto"
    sampling: str = "cover"
    detector: str = "multiscale"
    max_iter: int = 1000
    tol: float = 1e-6
    n_jobs: int | None = None

    _parameter_constraints = BaseStepCoclustering._parameter_constraints | {
        "scale_cost": [StrOptions({"median"}), None],
        "n_samplings": [COUNT, StrOptions({"auto"})],
        "sampling": [StrOptions(set(SAMPLINGS))],
        "n_jobs": N_JOBS,
    }

    def fit(self, X: Any, y: Any = None) -> "CCOT":
        """Co-cluster a matrix.

        Parameters
        ----------
        X : array-like, sparse matrix, or a matrix that is read row by row
            Finite numbers, at least two rows and two columns. Memory-mapped arrays, Dask and Zarr
            arrays, paths of ``.npy``, Parquet and Zarr, and :class:`ccot.sources.FunctionSource`
            are read row by row and need not fit into memory.
        y : ignored

        Returns
        -------
        self : CCOT
        """
        self._begin()
        rows = self._check_source(X) if is_read_by_row(X) else self._check_matrix(X)
        # A draw has as many rows as columns, so neither can have more clusters than the fewer.
        self._check_numbers(min(rows.shape), min(rows.shape), "in each square draw")
        run = self._start(rows)
        found = run.checkpoint.fit(lambda: self._fit(rows, run))
        self.n_samplings_ = found.n_draws
        return self._adopt(found)._keep_portraits(rows)

    def _fit(self, rows: Any, run: Run) -> StepCoclustering:
        """Fit a matrix that is small enough for all its rows to vote, or a large one."""
        settings, (n_columns, n_rows) = self._given(CCOTSettings), sorted(rows.shape)
        in_memory = not isinstance(rows, RowSource)
        if in_memory and pool_size((n_rows, n_columns), self.n_samplings) == n_rows:
            return fit_ccot(rows, settings, run)
        return fit_large(as_source(rows) if in_memory else rows, settings, run)

    def partial_fit(self, X: Any, y: Any = None) -> "CCOT":
        """Add rows that arrive later.

        The first call is :meth:`fit`. Later calls assign new rows to the fitted clusters and add
        them to the attributes. Earlier labels and numbers of clusters do not change; block means
        include the new rows. Every call copies the labels, so pass rows in batches.

        Parameters
        ----------
        X : array-like, sparse matrix, or a matrix that is read row by row
            New rows, with the columns of the first ones.
        y : ignored

        Returns
        -------
        self : CCOT

        Examples
        --------
        >>> from ccot import CCOT
        >>> from ccot.datasets import load_simulated
        >>> matrix = load_simulated("D1", random_state=0).data
        >>> model = CCOT(random_state=0).partial_fit(matrix[:400]).partial_fit(matrix[400:])
        >>> model.row_labels_.shape
        (600,)
        """
        if not _is_fitted(self):
            return self.fit(X)
        found = self._coclustering
        assert isinstance(found, StepCoclustering)
        run = Run(n_jobs=self.n_jobs, progress=self._progress)
        # Models of earlier versions have their means on the attribute alone.
        found = replace(found, block_means=self.block_means_)
        found, share_outside = add_rows(found, self._check_new_source(X), run)
        # Names of rows are kept while every batch brings them.
        known, new = self.__dict__.pop("row_names_in_", None), row_names(X)
        if known is not None and new is not None:
            self.row_names_in_ = np.concatenate([known, new])
        if share_outside > _OUTSIDE_SHARE:
            warnings.warn(
                f"{share_outside:.0%} of the new rows are far from all clusters: they may "
                "form a new one, so fit again on old and new rows",
                UserWarning,
                stacklevel=2,
            )
        return self._adopt(found)
