"""The Gaussian latent block model, by block EM."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import entr, softmax
from sklearn.utils._param_validation import StrOptions

from ccot.baselines.base import BaseBaseline
from ccot.baselines.partitions import Method, TwoWay, indicator
from ccot.runtime.types import Matrix, is_sparse

_TINY = 1e-300
# Variances are kept above this share of the variance of the matrix.
VARIANCE_FLOOR = 1e-8


@dataclass(kw_only=True, eq=False, repr=False)
class GaussianLatentBlockModel(BaseBaseline):
    r"""Gaussian latent block model, fitted by block EM or block classification EM.

    Block EM is that of [1]_, classification EM of [2]_.
    Rows belong to clusters with probabilities :math:`\pi`, columns with :math:`\rho`, and
    :math:`x_{ij} \sim N(\mu_{kl}, \sigma^2_{kl})` in block :math:`kl`. With soft memberships
    :math:`s_{ik}` and :math:`t_{jl}`, block EM maximises the variational bound of the
    log-likelihood

    .. math:: \sum_{ik} s_{ik} \log \pi_k + \sum_{jl} t_{jl} \log \rho_l
              + \sum_{ijkl} s_{ik} t_{jl} \log N(x_{ij}; \mu_{kl}, \sigma^2_{kl})
              + H(s) + H(t)

    over rows, parameters, columns and parameters in turn. With hard memberships both entropies
    vanish and this is the classification log-likelihood.

    Parameters
    ----------
    n_row_clusters, n_column_clusters : int, default=2
        Numbers of clusters.
    assignment, variance : {"soft", "hard"}, default="soft"; {"shared", "block"}, default="shared"
        Block EM, or block classification EM; one variance for the matrix, or one for each block.
    init : {"mixed", "double_kmeans", "k-means++", "kmeans", "random"}, default="mixed"
        Partitions to start from; "mixed": the other four in turn. The CCOT paper uses "random".
    n_init, max_iter, tol : int, default=10; int, default=300; float, default=1e-8
        Number of starts, of which the one with the largest bound is kept; a start ends after
        `max_iter` sweeps, or when the bound changes by a share of `tol`.
    n_jobs, random_state : int or None, default=None
        Number of threads (-1: all), on which labels do not depend; seed, or a generator.

    Attributes
    ----------
    row_labels_, column_labels_, n_row_clusters_, n_column_clusters_, block_means_
        Most probable clusters, their numbers (EM may leave some empty) and the mean of each block.
    criterion_, criterion_path_ : float, ndarray of shape (``n_iter_ + 1``,)
        Bound or classification log-likelihood; the same before and after each sweep, never falling.
    n_iter_, converged_, rows_, columns_, biclusters_, n_features_in_, feature_names_in_
        Sweeps of the best start; whether it reached `tol`; the others as in scikit-learn.

    References
    ----------
    .. [1] Govaert, G. and Nadif, M. (2005). An EM algorithm for the block mixture model. IEEE
       Transactions on Pattern Analysis and Machine Intelligence 27(4).
    .. [2] Govaert, G. and Nadif, M. (2013). Co-Clustering. Wiley.

    Examples
    --------
    >>> from ccot.baselines import GaussianLatentBlockModel
    >>> from ccot.datasets import make_latent_blocks
    >>> blocks = make_latent_blocks([[1, 5, 3], [5, 1, 2]], 40, 30, sigma=0.1, random_state=0)
    >>> model = GaussianLatentBlockModel(2, 3, random_state=0).fit(blocks.data)
    >>> sorted(model.block_means_.round().ravel().tolist())
    [1.0, 1.0, 2.0, 3.0, 5.0, 5.0]
    """

    assignment: str = "soft"
    variance: str = "shared"
    tol: float = 1e-8

    _larger_is_better = True
    _parameter_constraints = BaseBaseline._parameter_constraints | {
        "assignment": [StrOptions({"soft", "hard"})],
        "variance": [StrOptions({"shared", "block"})],
    }

    def _method(self, matrix: Matrix) -> "BlockEM":
        # Subtracting the mean only shifts the means of the blocks, and squares lose fewer digits.
        if not is_sparse(matrix):
            matrix = matrix - matrix.mean()
        squares = matrix.multiply(matrix).tocsr() if is_sparse(matrix) else matrix**2
        floor = max(VARIANCE_FLOOR * float(squares.mean()), _TINY)
        hard, shared = self.assignment == "hard", self.variance == "shared"
        return BlockEM(TwoWay.of(matrix), TwoWay.of(squares), self._shape, hard, shared, floor)


@dataclass(frozen=True)
class Memberships:
    """Memberships of rows and columns, means and variances of the blocks, and the bound."""

    rows: np.ndarray  # shape (n, n_clusters), each row sums to one
    columns: np.ndarray
    means: np.ndarray
    variances: np.ndarray
    criterion: float


@dataclass(frozen=True)
class BlockEM(Method):
    """Block EM bound to a matrix, with hard or soft memberships and one or many variances."""

    matrix: TwoWay
    squares: TwoWay
    shape: tuple[int, int]
    hard: bool
    shared: bool
    floor: float  # smallest variance allowed

    def start_from(self, row_labels: np.ndarray, column_labels: np.ndarray) -> Memberships:
        """Return the memberships of given partitions."""
        rows, columns = map(indicator, (row_labels, column_labels), self.shape)
        sums, squares = (both.by_row.dot(columns) for both in (self.matrix, self.squares))
        return self._maximise(rows, columns, rows.T @ sums, rows.T @ squares)

    def step(self, state: Memberships) -> Memberships:
        """Return the state after updates of rows, parameters, columns and parameters."""
        sums, squares = (both.by_row.dot(state.columns) for both in (self.matrix, self.squares))
        moments = Moments(state.columns.sum(axis=0), sums, squares)
        scores = moments.log_likelihood(state.means, state.variances)
        rows = self._assign(scores, state.rows)
        state = self._maximise(rows, state.columns, rows.T @ sums, rows.T @ squares)
        sums, squares = (both.by_column.dot(rows) for both in (self.matrix, self.squares))
        moments = Moments(rows.sum(axis=0), sums, squares)
        scores = moments.log_likelihood(state.means.T, state.variances.T)
        columns = self._assign(scores, state.columns)
        return self._maximise(rows, columns, sums.T @ columns, squares.T @ columns)

    def _assign(self, scores: np.ndarray, own: np.ndarray) -> np.ndarray:
        """Return memberships, given log-likelihoods and the memberships so far."""
        logits = _log(own.mean(axis=0)) + scores
        if self.hard:
            return indicator(logits.argmax(axis=1), logits.shape[1])
        return softmax(logits, axis=1)

    def _maximise(
        self, rows: np.ndarray, columns: np.ndarray, sums: np.ndarray, squares: np.ndarray
    ) -> Memberships:
        """Return the memberships with the best parameters for them, and the bound."""
        heights, widths = rows.sum(axis=0), columns.sum(axis=0)
        blocks = Moments(np.outer(heights, widths), sums, squares)
        means, variances, fit = blocks.fit(self.floor, self.shared)
        shares = heights @ _log(heights / len(rows)) + widths @ _log(widths / len(columns))
        criterion = fit + float(shares + entr(rows).sum() + entr(columns).sum())
        return Memberships(rows, columns, means, variances, criterion)


class Moments(NamedTuple):
    """Sums of powers 0, 1, 2 of entries: of each row in each column cluster, or of each block."""

    counts: np.ndarray
    sums: np.ndarray
    squares: np.ndarray

    def less(self, residual: np.ndarray, uncertainty: np.ndarray) -> "Moments":
        """Return the expected moments after residuals of the rows are subtracted."""
        mean, square = residual[:, None], (residual**2 + uncertainty)[:, None]
        squares = self.squares - 2 * mean * self.sums + square * self.counts
        return Moments(self.counts, self.sums - mean * self.counts, squares)

    def fit(self, floor: float, shared: bool = False) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the best means and variances of blocks, and the entries' log-likelihood."""
        sizes = self.counts
        means = self.sums / np.maximum(sizes, _TINY)
        within = np.maximum(self.squares - means * self.sums, 0.0)
        spread = within.sum() / sizes.sum() if shared else within / np.maximum(sizes, _TINY)
        variances = np.broadcast_to(np.maximum(spread, floor), sizes.shape)
        fit = -(sizes * np.log(2 * np.pi * variances) + within / variances).sum() / 2
        return means, variances, float(fit)

    def log_likelihood(self, means: np.ndarray, variances: np.ndarray) -> np.ndarray:
        """Return the log-likelihood of each row's entries in each cluster, up to a constant."""
        return -0.5 * (
            self.counts @ (np.log(variances) + means**2 / variances).T
            + self.squares @ (1 / variances).T
            - 2 * self.sums @ (means / variances).T
        )


def _log(shares: np.ndarray) -> np.ndarray:
    return np.log(np.maximum(shares, _TINY))
