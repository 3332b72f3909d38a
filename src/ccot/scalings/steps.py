"""Clusters that are the steps of scaling vectors: labels, thresholds, and labels of new points."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, TypeVar

import numpy as np
from array_api_compat import array_namespace, device

from ccot.coclustering import Coclustering, Matrix, Placement, Side
from ccot.persistence.registry import stored
from ccot.runtime.types import Array
from ccot.scalings.jumps import find_scaling_jumps
from ccot.transport.sinkhorn import Status

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class StepPlacement(Placement):
    """Labels new points by the steps of a scaling; thresholds are in the middle of its jumps."""

    thresholds: np.ndarray = field(default_factory=lambda: np.empty(0))

    def scaling(self, points: Matrix) -> np.ndarray:
        """Return the logarithms of the points' scalings."""
        raise NotImplementedError

    def labels(self, points: Matrix) -> np.ndarray:
        """Return the steps of the points."""
        return np.searchsorted(self.thresholds, self.scaling(points))


@stored()
@dataclass(frozen=True, kw_only=True)
class StepSide(Side):
    """A side whose clusters are the steps of a scaling vector, numbered from the lowest."""

    number_votes: dict[int, float]  # shares of draws that found each number of clusters
    log_scaling: np.ndarray
    jumps: np.ndarray  # number of sorted scalings before each
    jump_strength: np.ndarray


@stored()
@dataclass(frozen=True)
class RegPath:
    """The scores of cross-validation: for each ``reg``, the information shared in comparisons."""

    reg: tuple[float, ...]
    scores: np.ndarray
    best: float  # has the highest mean score; in a tie, the largest


@stored()
@dataclass(frozen=True, kw_only=True)
class StepCoclustering(Coclustering):
    """A co-clustering by the steps of scaling vectors; ``n_draws`` is 1 if nothing is drawn."""

    row: StepSide
    column: StepSide
    n_draws: int
    share_converged: float
    status: Status
    reg: float = float("nan")
    reg_path: RegPath | None = None

    def transposed(self) -> "StepCoclustering":
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
    ranked, n_jumps = log_scaling[order], n_clusters and n_clusters - 1
    jumps = find_scaling_jumps(ranked, detector, n_jumps=n_jumps, resolution=resolution)
    labels = label_steps(order[None], jumps.mask[None], jumps.strength[None]).labels[0]
    positions = np.flatnonzero(jumps.mask) + 1
    n_found = len(positions) + 1
    return StepSide(
        labels=labels,
        n_clusters=n_found,
        confidence=StepLaw.of(log_scaling, labels, n_found).posterior(log_scaling, labels),
        number_votes={n_found: 1.0},
        log_scaling=log_scaling,
        jumps=positions,
        jump_strength=jumps.strength[jumps.mask],
        placement=replace(placement, thresholds=(ranked[positions] + ranked[positions - 1]) / 2),
    )


@stored()
@dataclass(frozen=True)
class Steps:
    """Partitions by a batch of scaling vectors; labels count the steps from the lowest."""

    labels: Array  # of shape (n_draws, n_points)
    n_clusters: Array
    weakest: Array  # strength of the weakest accepted jump, infinite if there is none

    def __getitem__(self, vectors: slice) -> "Steps":
        return Steps(self.labels[vectors], self.n_clusters[vectors], self.weakest[vectors])


def join(batches: Sequence[T]) -> T:
    """Return batches joined to one: dataclasses of arrays, statuses, and other such dataclasses."""

    def joined(parts: list[Any]) -> Any:
        if isinstance(parts[0], Status):
            return Status.MAX_ITER if Status.MAX_ITER in parts else Status.CONVERGED
        return join(parts) if is_dataclass(parts[0]) else array_namespace(*parts).concat(parts)

    first: Any = batches[0]
    names = [field.name for field in fields(first)]
    return replace(first, **{k: joined([getattr(one, k) for one in batches]) for k in names})


def label_steps(order: Array, mask: Array, strength: Array) -> Steps:
    """Return the steps of points, given the order of each vector and the jumps in this order."""
    xp = array_namespace(order)
    n_before = xp.cumulative_sum(xp.astype(mask, order.dtype), axis=1)
    sorted_labels = xp.concat([xp.zeros_like(order[:, :1]), n_before], axis=1)
    vector = xp.arange(order.shape[0], device=device(order))[:, None]
    labels = xp.empty_like(sorted_labels)
    labels[vector, order] = sorted_labels
    weakest = xp.full_like(sorted_labels[:, 0], xp.inf, dtype=xp.float64)
    if mask.shape[1]:
        weakest = xp.min(xp.where(mask, strength, xp.inf), axis=1)
    return Steps(labels, sorted_labels[:, -1] + 1, weakest)


@dataclass(frozen=True)
class StepLaw:
    """Normal distributions and ranges of the values of steps; a step may have no values."""

    size: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray, labels: np.ndarray, n_steps: int) -> "StepLaw":
        """Return the steps of labelled values."""
        size = np.bincount(labels, minlength=n_steps)
        some = np.maximum(size, 1)
        mean = np.bincount(labels, values, n_steps) / some
        variance = np.bincount(labels, (values - mean[labels]) ** 2, n_steps) / some
        # A step of one or of equal values has no variance: a small one is used instead.
        floor = (1e-6 * np.ptp(values)) ** 2 + np.finfo(np.float64).tiny
        variance = np.maximum(variance, np.maximum(floor, 1e-3 * variance.max()))
        lowest, highest = np.full(n_steps, np.inf), np.full(n_steps, -np.inf)
        np.minimum.at(lowest, labels, values)
        np.maximum.at(highest, labels, values)
        return cls(size, mean, variance, lowest, highest)

    def posterior(self, values: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the probability that each value belongs to its own step and not to another."""
        log_size = np.where(self.size > 0, np.log(np.maximum(self.size, 1)), -np.inf)
        log_density = log_size - np.log(self.variance) / 2
        log_density = log_density - (values[:, None] - self.mean) ** 2 / (2 * self.variance)
        log_density -= log_density.max(axis=1, keepdims=True)
        density = np.exp(log_density, out=log_density)
        return density[np.arange(len(values)), labels] / density.sum(axis=1)

    def stands_on_none(self, values: np.ndarray) -> np.ndarray:
        """Return which values are on no step; a step extends a quarter of the way to the next."""
        taken = self.size > 0
        lowest, highest = self.lowest[taken], self.highest[taken]
        # The outermost steps extend as far outwards as inwards; a single one, by its own width.
        reach = (lowest[1:] - highest[:-1]) / 4
        ends = reach if len(reach) else highest - lowest
        nearest_below = np.searchsorted(lowest - np.append(ends[:1], reach), values, "right") - 1
        top = (highest + np.append(reach, ends[-1:]))[np.maximum(nearest_below, 0)]
        return (nearest_below < 0) | (values > top)
