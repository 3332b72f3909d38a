"""Residual Bayesian co-clustering: mixed memberships, and residuals of rows and columns."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import digamma, entr, gammaln, softmax
from sklearn.utils.validation import check_is_fitted

from ccot.baselines.base import BaseBaseline, FirstPartitions, Start
from ccot.baselines.latent_block import VARIANCE_FLOOR, Moments
from ccot.baselines.partitions import TwoWay, indicator
from ccot.estimators.base import POSITIVE
from ccot.persistence.registry import stored
from ccot.runtime.types import Matrix

# Weight, in a first membership, of the cluster from the first partition.
_TRUST = 0.9
# First variance of the residuals, as a share of the variance of the matrix.
_FIRST_SPREAD = 0.1
# Updates of memberships and Dirichlet parameters in one sweep: reading the matrix takes longer.
_INNER_STEPS = 3
# If a smaller share of the entries is not missing, only these are stored.
_SPARSE_BELOW = 0.3


@dataclass(kw_only=True, eq=False, repr=False)
class ResidualBayesianCoclustering(BaseBaseline):
    r"""Residual Bayesian co-clustering, fitted by variational inference.

    The model is that of [1]_.
    Every row :math:`u` has a Dirichlet distribution :math:`\pi_u` over the row clusters, every
    column :math:`v` one over the column clusters. Every entry draws a row cluster :math:`k` and
    a column cluster :math:`l` from them, and

    .. math:: x_{uv} \sim N(\mu_{kl} + b_u + c_v, \sigma^2_{kl})

    with residuals :math:`b_u \sim N(0, \tau_b)` of the row and :math:`c_v \sim N(0, \tau_c)` of
    the column. Memberships :math:`\phi_u` and :math:`\phi_v`, shared by all entries of a row
    (column), Dirichlet parameters :math:`\gamma = \alpha + n\, \phi` and normal residuals maximise
    a lower bound of the log-likelihood, in turn with :math:`\mu`, :math:`\sigma^2` and
    :math:`\tau`. Missing entries (NaN) are left out.

    Parameters
    ----------
    n_row_clusters, n_column_clusters : int, default=2
        Numbers of clusters.
    concentration : float, default=0.1
        Parameter :math:`\alpha` of the Dirichlet priors. Below 1, rows and columns tend to
        belong to one cluster; at 1 or above, weak clusters blend into one another.
    init : {"mixed", "double_kmeans", "k-means++", "kmeans", "random"}, default="mixed"
        Partitions to start from, missing entries filled in; "mixed": the other four in turn. The
        CCOT paper uses "kmeans".
    n_init, max_iter, tol : int, default=10; int, default=300; float, default=1e-6
        Number of starts, of which the one with the largest bound is kept; a start ends after
        `max_iter` sweeps, or when the bound changes by a share of `tol`.
    n_jobs, random_state : int or None, default=None
        Number of threads (-1: all), on which labels do not depend; seed, or a generator.

    Attributes
    ----------
    row_labels_, column_labels_, n_row_clusters_, n_column_clusters_, block_means_
        Most probable clusters, their numbers (inference may leave some empty), and the mean of each
        block over its entries that are not missing.
    criterion_, criterion_path_ : float, ndarray of shape (``n_iter_ + 1``,)
        The lower bound; the same before and after each sweep, never falling.
    n_iter_, converged_, rows_, columns_, biclusters_, n_features_in_, feature_names_in_
        Sweeps of the best start; whether it reached `tol`; the others as in scikit-learn.

    Notes
    -----
    The paper has free residuals; the normal priors here shrink those of rows and columns with few
    entries. The paper estimates the Dirichlet priors; here they are given. In each sweep, a row may
    move to a single cluster if that raises the bound, because small steps change hardly anything.

    References
    ----------
    .. [1] Shan and Banerjee (2010). Residual Bayesian co-clustering for matrix approximation. SDM.

    Examples
    --------
    >>> import numpy as np
    >>> from ccot.baselines import ResidualBayesianCoclustering
    >>> from ccot.datasets import make_latent_blocks
    >>> blocks = make_latent_blocks([[1, 5], [5, 1]], 40, 30, sigma=0.1, random_state=0)
    >>> X = blocks.data.copy()
    >>> X[::3, ::3] = np.nan
    >>> model = ResidualBayesianCoclustering(2, 2, random_state=0).fit(X)
    >>> bool(np.abs(model.predict_entries([0, 3], [0, 3]) - blocks.data[[0, 3], [0, 3]]).max() < 1)
    True
    """

    concentration: float = 0.1

    _larger_is_better = True
    _accept_sparse = False
    _allow_nan = True
    _parameter_constraints = BaseBaseline._parameter_constraints | {"concentration": [POSITIVE]}

    def predict_entries(self, rows: Any, columns: Any) -> np.ndarray:
        """Return the expected values of entries of the fitted matrix, missing or not.

        Parameters
        ----------
        rows, columns : array-like of int, of one shape

        Returns
        -------
        ndarray of that shape
        """
        check_is_fitted(self)
        rows, columns = np.asarray(rows), np.asarray(columns)
        row, column = self._beliefs.row, self._beliefs.column
        expected = ((row.share[rows] @ self._beliefs.means) * column.share[columns]).sum(axis=-1)
        return self._offset + expected + row.residual[rows] + column.residual[columns]

    def _method(self, matrix: Matrix) -> "Inference":
        centred = matrix - np.nanmean(matrix)
        by_row = Entries.of(centred)
        by_column = Entries(*(TwoWay.of(power).by_column for power in by_row))
        scale = max(float(np.nanmean(centred**2)), 1e-150)
        return Inference(by_row, by_column, self._shape, self.concentration, scale)

    def _first_partitions(self, matrix: Matrix) -> FirstPartitions:
        return FirstPartitions.of(fill_in(matrix), self._shape)

    def _keep(self, best: Start, matrix: Matrix) -> None:
        self._beliefs: Beliefs = best.state
        self._offset = float(np.nanmean(matrix))
        super()._keep(best, matrix)


@stored()
@dataclass(frozen=True)
class BeliefSide:
    """Variational distributions of the n rows, or of the columns."""

    counts: np.ndarray  # entries that are not missing, shape (n,)
    membership: np.ndarray  # probability of each cluster in an entry, shape (n, n_clusters)
    concentration: float
    residual: np.ndarray  # means of the residuals, shape (n,)
    uncertainty: np.ndarray  # variances of the residuals, shape (n,)
    spread: float  # variance of the residuals' prior

    @property
    def dirichlet(self) -> np.ndarray:
        """Best parameters of the Dirichlet distributions, given the memberships."""
        return self.concentration + self.counts[:, None] * self.membership

    @property
    def share(self) -> np.ndarray:
        """Expected distributions over the clusters."""
        return self.dirichlet / self.dirichlet.sum(axis=1, keepdims=True)

    @property
    def mixing(self) -> np.ndarray:
        """What the memberships of each row add to the lower bound."""
        prior = np.full(self.membership.shape[1], self.concentration)
        entropy = self.counts * entr(self.membership).sum(axis=1)
        return _log_beta(self.dirichlet) - _log_beta(prior) + entropy

    @property
    def bound(self) -> float:
        """What this side adds to the lower bound, apart from the entries' log-likelihood."""
        ratio = self.uncertainty / self.spread
        residual = (np.log(ratio) + 1 - ratio - self.residual**2 / self.spread) / 2
        return float((self.mixing + residual).sum())


@stored()
@dataclass(frozen=True)
class Beliefs:
    """The state of the inference: both sides, the blocks, the bound."""

    row: BeliefSide
    column: BeliefSide
    means: np.ndarray
    variances: np.ndarray
    criterion: float


class Entries(NamedTuple):
    """Powers 0, 1, 2 of the entries, with zeros where they are missing; dense or CSR."""

    seen: Matrix
    values: Matrix
    squares: Matrix

    @classmethod
    def of(cls, matrix: np.ndarray) -> "Entries":
        """Return the powers of a matrix with NaN where entries are missing."""
        seen = ~np.isnan(matrix)
        values = np.where(seen, matrix, 0.0)
        powers = seen.astype(float), values, values**2
        return cls(*(map(sp.csr_array, powers) if seen.mean() < _SPARSE_BELOW else powers))

    def moments(self, other: BeliefSide) -> Moments:
        """Return sums over the clusters of the other side, whose residuals are subtracted."""
        own = other.membership
        shifted = other.residual[:, None] * own
        square = (other.residual**2 + other.uncertainty)[:, None] * own
        counts, shifts, spreads = np.hsplit(self.seen.dot(np.hstack([own, shifted, square])), 3)
        sums, products = np.hsplit(self.values.dot(np.hstack([own, shifted])), 2)
        return Moments(counts, sums - shifts, self.squares.dot(own) - 2 * products + spreads)


@dataclass(frozen=True)
class Inference:
    """Variational inference bound to a matrix less its mean; ``shape``: numbers of clusters."""

    by_row: Entries
    by_column: Entries
    shape: tuple[int, int]
    concentration: float
    scale: float  # variance of the entries

    def start_from(self, rows: np.ndarray, columns: np.ndarray) -> Beliefs:
        """Return the first state, given partitions."""
        row, column = self._side(self.by_row, rows, 0), self._side(self.by_column, columns, 1)
        means, variances, fit = self._blocks(row, self.by_row.moments(column))
        return Beliefs(row, column, means, variances, fit + row.bound + column.bound)

    def step(self, state: Beliefs) -> Beliefs:
        """Return the state after updates of rows, blocks, columns and blocks."""
        moments = self.by_row.moments(state.column)
        row = self._improve(state.row, moments, state.means, state.variances)
        means, variances, _ = self._blocks(row, moments)
        moments = self.by_column.moments(row)
        column = self._improve(state.column, moments, means.T, variances.T)
        means, variances, fit = self._blocks(column, moments)
        return Beliefs(row, column, means.T, variances.T, fit + row.bound + column.bound)

    def labels(self, state: Beliefs) -> tuple[np.ndarray, np.ndarray]:
        """Return the most probable clusters."""
        return state.row.membership.argmax(axis=1), state.column.membership.argmax(axis=1)

    def _side(self, entries: Entries, labels: np.ndarray, axis: int) -> BeliefSide:
        n_clusters = self.shape[axis]
        membership = _TRUST * indicator(labels, n_clusters) + (1 - _TRUST) / n_clusters
        counts = np.asarray(entries.seen.sum(axis=1), dtype=float).ravel()
        spread = _FIRST_SPREAD * self.scale
        nothing, unsure = np.zeros(len(labels)), np.full(len(labels), spread)
        return BeliefSide(counts, membership, self.concentration, nothing, unsure, spread)

    def _improve(
        self, side: BeliefSide, moments: Moments, means: np.ndarray, variances: np.ndarray
    ) -> BeliefSide:
        """Return one side with better memberships and residuals; the rest of the state is fixed."""
        cleared = moments.less(side.residual, side.uncertainty)
        scores = cleared.log_likelihood(means, variances)
        side = replace(side, membership=improve_membership(side, scores))
        weights = side.membership @ (1 / variances)
        pull = weights * moments.sums - side.membership @ (means / variances) * moments.counts
        uncertainty = 1 / ((weights * moments.counts).sum(axis=1) + 1 / side.spread)
        residual = centre_residuals(pull.sum(axis=1) * uncertainty, side.membership)
        spread = max(float((residual**2 + uncertainty).mean()), VARIANCE_FLOOR * self.scale)
        return replace(side, residual=residual, uncertainty=uncertainty, spread=spread)

    def _blocks(self, side: BeliefSide, moments: Moments) -> tuple[np.ndarray, np.ndarray, float]:
        cleared = moments.less(side.residual, side.uncertainty)
        blocks = Moments(*(side.membership.T @ power for power in cleared))
        return blocks.fit(VARIANCE_FLOOR * self.scale)


def centre_residuals(residual: np.ndarray, membership: np.ndarray) -> np.ndarray:
    """Return residuals less their cluster means, which the means of the blocks then contain."""
    # If every row belongs to one cluster, this changes no expected value and saves many sweeps.
    if (membership.max(axis=1) < 1).any():
        return residual
    sizes = np.maximum(membership.sum(axis=0), 1.0)
    return residual - membership @ (membership.T @ residual / sizes)


def improve_membership(side: BeliefSide, scores: np.ndarray) -> np.ndarray:
    """Return memberships with a larger bound, given the log-likelihoods in each cluster."""
    # Updates hardly change a nearly pure membership, so each row may also jump to a pure one.
    mixed = side
    for _ in range(_INNER_STEPS):
        # The expected log shares, up to a constant of the row.
        logits = scores / np.maximum(side.counts, 1.0)[:, None] + digamma(mixed.dirichlet)
        mixed = replace(mixed, membership=softmax(logits, axis=1))
    pure = replace(side, membership=indicator(scores.argmax(axis=1), scores.shape[1]))
    gain = pure.mixing - mixed.mixing + ((pure.membership - mixed.membership) * scores).sum(axis=1)
    return np.where(gain[:, None] > 0, pure.membership, mixed.membership)


def fill_in(matrix: np.ndarray) -> np.ndarray:
    """Return a matrix less its mean, missing entries replaced by row mean plus column mean."""
    seen = ~np.isnan(matrix)
    values = np.where(seen, matrix - np.nanmean(matrix), 0.0)
    row_means = values.sum(axis=1) / np.maximum(seen.sum(axis=1), 1)
    column_means = values.sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
    return np.where(seen, values, row_means[:, None] + column_means)


def _log_beta(parameters: np.ndarray) -> np.ndarray:
    return gammaln(parameters).sum(axis=-1) - gammaln(parameters.sum(axis=-1))
