"""Clusters of unseen rows and columns, and their likelihood."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln, xlogy

from ccot.blocks.axes import AxisView, Profiles
from ccot.blocks.preparation import Preparation
from ccot.blocks.problem import BlockProblem, Blocks, scale_columns
from ccot.blocks.sweep import excess_share, log_marginal, soft_plan
from ccot.coclustering import Placement
from ccot.persistence.registry import stored
from ccot.runtime.backends import to_numpy
from ccot.runtime.types import Matrix, is_sparse

# A plan is stored as labels if all its shares are this close to 0 or 1.
_UNSURE = 1e-9


@stored()
@dataclass(frozen=True, kw_only=True)
class BlockPlacement(Placement):
    """Transports unseen points of one side onto fitted blocks."""

    axis: int
    preparation: Preparation
    family: str
    partner: np.ndarray  # labels of the other side, or its shares if its plan is soft
    partner_exposure: np.ndarray
    scale: float  # divides the degrees of unseen points (poisson)
    natural: np.ndarray
    cumulant: np.ndarray
    noise: float
    marginal: np.ndarray  # log shares of the clusters

    def labels(self, points: Matrix) -> np.ndarray:
        """Return the clusters of points."""
        return self.gains(self.profiles(self.axis_view(points))).argmax(axis=1)

    def confidence(self, points: Matrix) -> np.ndarray:
        """Return the confidence of the points' clusters."""
        axis_view = self.axis_view(points)
        gain = self.gains(self.profiles(axis_view))
        return excess_share(soft_plan(gain), gain.argmax(axis=1), axis_view.is_empty())

    def shares(self, points: Matrix) -> np.ndarray:
        """Return the shares of each point in the clusters."""
        return soft_plan(self.gains(self.profiles(self.axis_view(points))))

    def log_likelihood(self, points: Matrix) -> np.ndarray:
        """Return each point's log-likelihood per observed prepared entry, in its own cluster."""
        axis_view = self.axis_view(points)
        profiles = self.profiles(axis_view)
        best = self.gains(profiles).argmax(axis=1)
        gain = profiles.gain(self.natural, self.cumulant)[np.arange(len(best)), best]
        counted = np.full(len(axis_view), float(self.width))
        if axis_view.observed is not None:
            counted = np.maximum((axis_view.observed > 0).sum(axis=1), 1).astype(np.float64)
        if self.family == "gaussian":
            gain = (gain - self._half_squares(axis_view)) / self.noise
            return gain / counted - 0.5 * np.log(2 * np.pi * self.noise)
        if self.family == "poisson":
            gain = gain + self._base_measure(axis_view)
        return gain / counted

    def axis_view(self, points: Matrix) -> AxisView:
        """Return the view of points that are prepared like the fitted matrix."""
        prepare = self.preparation.rows if self.axis == 0 else self.preparation.columns
        values = prepare(sp.csr_array(points) if is_sparse(points) else points)
        if self.family == "poisson":
            return AxisView(values, values.sum(axis=1) / self.scale, self.partner_exposure)
        exposure, weights = np.ones(values.shape[0]), self.partner_exposure
        if is_sparse(values) or (observed := np.isfinite(values)).all():
            return AxisView(scale_columns(values, weights), exposure, weights)
        filled = np.where(observed, values, 0.0)
        return AxisView(filled * weights, exposure, weights, observed * weights)

    def profiles(self, axis_view: AxisView) -> Profiles:
        """Return the totals of points over the clusters of the other side."""
        return axis_view.profiles(self.partner, self.natural.shape[1])

    def gains(self, profiles: Profiles) -> np.ndarray:
        """Return the gain of each point in each cluster, in nats, including the cluster's share."""
        return profiles.gain(self.natural / self.noise, self.cumulant / self.noise, self.marginal)

    def _half_squares(self, axis_view: AxisView) -> np.ndarray:
        weighted = np.maximum(self.partner_exposure, 1e-300)
        if is_sparse(axis_view.values):
            squares = axis_view.values.multiply(axis_view.values) @ sp.diags_array(1 / weighted)
            return 0.5 * np.asarray(squares.sum(axis=1)).ravel()
        return 0.5 * (axis_view.values**2 / weighted).sum(axis=1)

    def _base_measure(self, axis_view: AxisView) -> np.ndarray:
        """Return the part of poisson log-likelihoods that is the same in all clusters."""
        entries = sp.coo_array(axis_view.values)
        rows, columns = entries.coords
        expected = axis_view.exposure[rows] * np.maximum(axis_view.partner_exposure[columns], 1e-12)
        terms = xlogy(entries.data, expected) - gammaln(entries.data + 1)
        return np.bincount(rows, weights=terms, minlength=len(axis_view))


def place_side(
    problem: BlockProblem, preparation: Preparation, blocks: Blocks, axis: int
) -> BlockPlacement:
    """Return the placement of one side by fitted blocks."""
    axis_view, shape = problem.axes[axis], blocks.shape
    own, partner = blocks.assignments[axis], blocks.assignments[1 - axis]
    table = blocks.table(axis)
    if own.ndim == 2:
        table = axis_view.profiles(partner, shape[1 - axis]).blocks(own, shape[axis])
    natural, cumulant = problem.terms(*table)
    partner = to_numpy(partner)
    if partner.ndim == 2 and partner.max(axis=1).min() > 1 - _UNSURE:
        partner = partner.argmax(axis=1)
    return BlockPlacement(
        width=len(axis_view.partner_exposure),
        axis=axis,
        preparation=preparation,
        family=problem.family,
        partner=partner,
        partner_exposure=axis_view.partner_exposure,
        scale=float(max(axis_view.exposure.sum(), 1e-300)),
        natural=natural,
        cumulant=cumulant,
        noise=problem.noise(*table),
        marginal=to_numpy(log_marginal(own, shape[axis], problem.backend)),
    )
