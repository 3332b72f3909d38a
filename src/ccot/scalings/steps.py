"""Clusters that are the steps of a scaling vector, and the labels of new points."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from ccot.coclustering import Coclustering, Matrix, Placement, Side
from ccot.persistence.registry import stored
from ccot.scalings.jumps import find_scaling_jumps
from ccot.scalings.partition import label_steps, place, step_posterior, thresholds
from ccot.transport.sinkhorn import Status


@dataclass(frozen=True, kw_only=True)
class StepPlacement(Placement):
    """Labels new points by the steps of a fitted scaling.

    Attributes
    ----------
    thresholds : array of shape (n_clusters - 1,)
        Log scalings halfway up the jumps.
    """

    thresholds: np.ndarray = field(default_factory=lambda: np.empty(0))

    def scaling(self, points: Matrix) -> np.ndarray:
        """Return the logarithms of the points' scalings."""
        raise NotImplementedError

    def labels(self, points: Matrix) -> np.ndarray:
        """Return the steps of the points."""
        return place(self.scaling(points), self.thresholds)


@stored()
@dataclass(frozen=True, kw_only=True)
class StepSide(Side):
    """A side whose clusters are the steps of a scaling vector, numbered from the lowest.

    Attributes
    ----------
    number_votes : dict of int to float
        Share of draws that found each number of clusters.
    log_scaling : array of shape (n,)
        Logarithms of the scalings whose steps are the clusters.
    jumps, jump_strength : arrays of shape (n_clusters - 1,)
        How many sorted scalings lie before each jump, and how strong it is.
    """

    number_votes: dict[int, float]
    log_scaling: np.ndarray
    jumps: np.ndarray
    jump_strength: np.ndarray


@stored()
@dataclass(frozen=True)
class RegPath:
    """The scores of cross-validation.

    Attributes
    ----------
    reg : tuple of float
        The values tried.
    scores : array of shape (n_reg, n_comparisons)
        Information shared by the partitions of each comparison.
    best : float
        The value with the highest mean score; the largest one in a tie.
    """

    reg: tuple[float, ...]
    scores: np.ndarray
    best: float


@stored()
@dataclass(frozen=True, kw_only=True)
class StepCoclustering(Coclustering):
    """A co-clustering by the steps of scaling vectors.

    Attributes
    ----------
    n_draws : int
        Draws made; 1 where nothing is drawn.
    share_converged : float
        Share of the transport problems that converged.
    status : Status
        The same in words, with advice.
    reg : float
        The regularisation used.
    reg_path : RegPath or None
        What it was chosen from.
    """

    row: StepSide
    column: StepSide
    n_draws: int
    share_converged: float
    status: Status
    reg: float = float("nan")
    reg_path: RegPath | None = None

    def transposed(self) -> StepCoclustering:
        """Return the same co-clustering of the transposed matrix."""
        means = None if self.block_means is None else self.block_means.T
        return replace(self, row=self.column, column=self.row, block_means=means)


def read_steps(
    log_scaling: np.ndarray,
    detector: str,
    n_clusters: int | None,
    placement: StepPlacement,
    resolution: float | None = None,
) -> StepSide:
    """Return the side whose clusters are the steps of one scaling vector."""
    order = np.argsort(log_scaling, kind="stable")
    ranked = log_scaling[order]
    n_jumps = None if n_clusters is None else n_clusters - 1
    jumps = find_scaling_jumps(ranked, detector, n_jumps=n_jumps, resolution=resolution)
    labels = label_steps(order[None], jumps.mask[None], jumps.strength[None]).labels[0]
    positions = np.flatnonzero(jumps.mask) + 1
    return StepSide(
        labels=labels,
        n_clusters=len(positions) + 1,
        confidence=step_posterior(log_scaling, labels),
        number_votes={len(positions) + 1: 1.0},
        log_scaling=log_scaling,
        jumps=positions,
        jump_strength=jumps.strength[jumps.mask],
        placement=replace(placement, thresholds=thresholds(ranked, positions)),
    )
