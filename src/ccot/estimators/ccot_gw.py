"""CCOT-GW: co-clustering by the barycentre of row and column similarities."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS
from sklearn.utils import check_array
from sklearn.utils._param_validation import StrOptions

from ccot.estimators.base import COUNT, POSITIVE, BaseStepCoclustering
from ccot.scalings.ccot_gw import CCOTGWSettings, fit_ccot_gw, fit_similarities
from ccot.scalings.kernels import KernelSpec, Similarities, check_memory, rank_of
from ccot.transport.gromov import LOSSES, Limits


@dataclass(kw_only=True, eq=False, repr=False)
class CCOTGW(BaseStepCoclustering):
    r"""Co-clustering by Gromov-Wasserstein barycentres, Algorithm 2 of the paper.

    As in [1]_, similarities of the rows, :math:`K_r`, and of the columns, :math:`K_c`, are averaged
    by the entropic Gromov-Wasserstein barycentre

    .. math:: \min_{K, \gamma_r, \gamma_c} \sum_{i \in \{r, c\}}
              \varepsilon_i \Gamma_{K, K_i}(\gamma_i) - \lambda E(\gamma_i).

    The couplings of the barycentre with rows and columns have the form
    :math:`\mathrm{diag}(\alpha)\, \xi\, \mathrm{diag}(\beta)`; the steps of the sorted
    :math:`\beta_r` are the row clusters, those of :math:`\beta_c` the column clusters. Nothing is
    drawn, and any kernel may be used. With default parameters and ``detector="authors"`` the
    result is that of the implementation published by the paper's authors.

    Parameters
    ----------
    n_row_clusters, n_column_clusters : int or None, default=None
        Numbers of clusters, divided at the strongest jumps; None: chosen from the data.
    reg : float or "cv", default=1.0
        Weight of the entropy. ``"cv"`` chooses from 10, 1, .1 and .01 by the mutual information of
        partitions of two halves of the data.
    weights : tuple of two floats, default=(0.5, 0.5)
        Weights of rows and columns in the barycentre; they sum to one.
    kernel : str or callable, default="rbf"
        Similarity. ``"rbf"`` is the Gaussian kernel whose bandwidth is the mean of all pairwise
        distances; other names are those of :func:`sklearn.metrics.pairwise.pairwise_kernels`; a
        callable takes two rows. For precomputed similarities see :meth:`fit_kernels`.
    loss, n_support : {"square", "kl"}, default="square"; int or None, default=None
        How similarities are compared; number of points of the barycentre (None: as many as rows),
        to which time and memory are proportional.
    kernel_rank : int, "auto" or None, default="auto"
        Rank of the similarities. None: similarities of all pairs, with memory :math:`n^2 + d^2`. An
        integer: Nyström's method with that many landmarks among rows and columns, with time and
        memory linear in both. ``"auto"``: 256 if ``n_support`` is given and there are more than
        4096 rows or columns, otherwise None.
    exact_refinement : bool, default=True
        Refine couplings by exact transport before they update the barycentre, as the authors do.
        Not done with landmarks, because it takes more than linear time.
    detector : {"multiscale", "authors", "paper"}, default="multiscale"
        How jumps are found, see :func:`ccot.detect_jumps`.
    max_updates, max_gromov_iter, max_iter : int, default=10, 100 and 100
        Maximum numbers of updates of the barycentre, of linearisations of each alignment, and of
        Sinkhorn iterations of each linearisation.
    tol, sinkhorn_tol : float, default=1e-4 and 1e-6
        Relative gain below which updates and linearisations stop; error of the marginals at which
        Sinkhorn iterations stop.
    device : str or None, default=None
        None computes with NumPy; otherwise a device of PyTorch, ``"cuda"`` for a GPU.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the halves of ``reg="cv"`` and of the landmarks; nothing else is random.
    checkpoint : path-like or None, default=None
        Folder of finished pieces, from which an interrupted fit continues: :doc:`/checkpoints`.
    verbose : int or callable, default=0
        Print progress if positive; a callable gets ``(message)`` or ``(stage, done, total)``.

    Attributes
    ----------
    row_labels_, column_labels_, n_row_clusters_, n_column_clusters_ : ndarray of int, int
        Cluster of each row and column, numbered from the lowest step; numbers of clusters.
    row_confidence_, column_confidence_ : ndarray of float
        Posterior probability of the step, if the log scalings on each step are normal.
    row_cluster_votes_, column_cluster_votes_ : dict of int to float
        The number found, with share 1, because there is only one run.
    row_log_scaling_, column_log_scaling_ : ndarray of float
        Logarithms of the scalings.
    row_jumps_, column_jumps_, row_jump_strength_, column_jump_strength_ : ndarray
        Number of sorted scalings before each jump, and the strength of the jump.
    block_means_ : ndarray of shape (n_row_clusters, n_column_clusters)
        Mean of the matrix over each block; absent after :meth:`fit_kernels`.
    rows_, columns_, biclusters_, n_features_in_, feature_names_in_, n_iter_
        As in scikit-learn; iterations are updates of the barycentre.
    reg_, reg_path_ : float, RegPath
        The regularisation used and, with ``reg="cv"`` only, the scores of cross-validation.

    See Also
    --------
    CCOT : Transport between rows and columns themselves; linear in the number of rows.

    Notes
    -----
    With ``reg=1`` the logarithm of a row's scaling is, to first order, a linear function of its
    mean similarity to all rows. Clusters of equal mean similarity are not separated. Time grows
    with :math:`n^2 d + d^2 n`, memory with :math:`n^2 + d^2`; with ``n_support`` and landmarks with
    :math:`n d` and :math:`n + d`. A fit that does not fit into memory raises an error at once.

    References
    ----------
    .. [1] Laclau et al. (2017), as in :class:`CCOT`.

    Examples
    --------
    >>> from ccot import CCOTGW
    >>> from ccot.datasets import make_latent_blocks
    >>> blocks = make_latent_blocks([[4, 0, 2], [1, 5, 1]], 60, 80, sigma=0.05, random_state=0)
    >>> model = CCOTGW().fit(blocks.data)
    >>> model.n_row_clusters_, model.n_column_clusters_
    (2, 3)
    """

    reg: float | str = 1.0
    weights: tuple[float, float] = (0.5, 0.5)
    kernel: KernelSpec = "rbf"
    loss: str = "square"
    n_support: int | None = None
    kernel_rank: int | str | None = "auto"
    exact_refinement: bool = True
    detector: str = "multiscale"
    max_updates: int = 10
    max_gromov_iter: int = 100
    max_iter: int = 100
    tol: float = 1e-4
    sinkhorn_tol: float = 1e-6

    _parameter_constraints = BaseStepCoclustering._parameter_constraints | {
        "weights": ["array-like"],
        "kernel": [StrOptions(set(PAIRWISE_KERNEL_FUNCTIONS)), callable],
        "loss": [StrOptions(set(LOSSES))],
        "n_support": [COUNT, None],
        "kernel_rank": [COUNT, StrOptions({"auto"}), None],
        "exact_refinement": ["boolean"],
        "max_updates": [COUNT],
        "max_gromov_iter": [COUNT],
        "sinkhorn_tol": [POSITIVE],
    }

    def fit(self, X: Any, y: Any = None) -> "CCOTGW":
        """Co-cluster a matrix.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_columns)
            Finite numbers, at least two rows and two columns.
        y : ignored

        Returns
        -------
        self : CCOTGW
        """
        self._begin()
        matrix = self._check_matrix(X)
        rank = rank_of(self.kernel_rank, self.n_support, matrix.shape)
        settings = self._settings(matrix.shape[0], rank)
        check_memory(matrix.shape, self.n_support, rank)
        run = self._start(matrix)
        found = run.checkpoint.fit(lambda: fit_ccot_gw(matrix, settings, run))
        return self._adopt(found)._keep_portraits(matrix)

    def fit_kernels(self, row_kernel: Any, column_kernel: Any) -> "CCOTGW":
        """Co-cluster from similarities that are already there.

        Parameters
        ----------
        row_kernel, column_kernel : array-like of shape (n_rows, n_rows), (n_columns, n_columns)
            Similarities of the rows and of the columns.

        Returns
        -------
        self : CCOTGW
            Its ``predict`` takes the similarities of new rows to the fitted rows,
            ``predict_columns`` those of new columns to the fitted columns.
        """
        self._begin()
        if self.reg == "cv":
            raise ValueError('reg="cv" needs the matrix: call fit, or set reg to a number')
        row_kernel = _check_kernel("row_kernel", row_kernel)
        column_kernel = _check_kernel("column_kernel", column_kernel)
        self._check_numbers(len(row_kernel), len(column_kernel))
        settings, run = self._settings(len(row_kernel)), self._start(row_kernel, column_kernel)
        self.n_features_in_ = len(row_kernel)
        sides = Similarities(row_kernel), Similarities(column_kernel)
        return self._adopt(run.checkpoint.fit(lambda: fit_similarities(*sides, settings, run)))

    def _settings(self, n_rows: int, rank: int | None = None) -> CCOTGWSettings:
        weights = np.asarray(self.weights, dtype=np.float64)
        if weights.shape != (2,) or (weights < 0).any() or not np.isclose(weights.sum(), 1):
            remedy = "must be two numbers, not negative, that sum to one"
            raise ValueError(f"weights={self.weights!r} {remedy}")
        if self.n_support is not None and self.n_support > n_rows:
            raise ValueError(
                f"n_support={self.n_support} is more than the {n_rows} rows: pass at most "
                f"{n_rows}, or None for as many as rows"
            )
        # A third round without any gain is part of what the authors' program does.
        rounds = 3 if self.exact_refinement else 2
        stops = self.max_updates, self.max_gromov_iter, self.max_iter, self.tol, self.sinkhorn_tol
        limits = Limits(*stops, min_rounds=rounds)
        pair = tuple(weights.tolist())
        return self._given(CCOTGWSettings, weights=pair, kernel_rank=rank, limits=limits)


def _check_kernel(name: str, kernel: Any) -> np.ndarray:
    checked = check_array(kernel, dtype=np.float64, ensure_min_samples=2, input_name=name)
    if checked.shape[0] != checked.shape[1]:
        raise ValueError(f"{name} has shape {checked.shape}: pass a square matrix of similarities")
    if not np.allclose(checked, checked.T):
        raise ValueError(f"{name} is not symmetric: pass (K + K.T) / 2, for example")
    return checked
