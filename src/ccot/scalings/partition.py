"""From sorted values and their jumps to labels, thresholds and steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from array_api_compat import array_namespace, device

from ccot.persistence.registry import stored
from ccot.runtime.types import Array


@stored()
@dataclass(frozen=True)
class Steps:
    """Partitions read off a batch of scaling vectors; labels count the steps from the lowest.

    Attributes
    ----------
    labels : int array of shape (n_draws, n_points)
        The step every point stands on.
    n_clusters : int array of shape (n_draws,)
        Number of steps of each vector.
    weakest : array of shape (n_draws,)
        Strength of the weakest accepted jump, infinite where there is none.
    """

    labels: Array
    n_clusters: Array
    weakest: Array

    def __getitem__(self, vectors: slice) -> Steps:
        return Steps(self.labels[vectors], self.n_clusters[vectors], self.weakest[vectors])


def label_steps(order: Array, mask: Array, strength: Array) -> Steps:
    """Label points by their step.

    Examples
    --------
    >>> import numpy as np
    >>> order = np.argsort([[3.0, 0.1, 3.1, 0.0]], axis=1)
    >>> mask = np.array([[False, True, False]])
    >>> label_steps(order, mask, mask.astype(float)).labels
    array([[1, 0, 1, 0]])
    """
    xp = array_namespace(order)
    sorted_labels = xp.concat(
        [xp.zeros_like(order[:, :1]), xp.cumulative_sum(xp.astype(mask, order.dtype), axis=1)],
        axis=1,
    )
    vector = xp.arange(order.shape[0], device=device(order))[:, None]
    labels = xp.empty_like(sorted_labels)
    labels[vector, order] = sorted_labels
    if not mask.shape[1]:
        weakest = xp.full_like(sorted_labels[:, 0], xp.inf, dtype=xp.float64)
    else:
        weakest = xp.min(xp.where(mask, strength, xp.inf), axis=1)
    return Steps(labels=labels, n_clusters=sorted_labels[:, -1] + 1, weakest=weakest)


def join_steps(steps: Sequence[Steps]) -> Steps:
    """Return the partitions of several batches as one batch."""
    return Steps(
        labels=np.concatenate([step.labels for step in steps]),
        n_clusters=np.concatenate([step.n_clusters for step in steps]),
        weakest=np.concatenate([step.weakest for step in steps]),
    )


def thresholds(sorted_values: np.ndarray, jumps: np.ndarray) -> np.ndarray:
    """Return the values halfway up the jumps, given by how many values lie before each.

    Examples
    --------
    >>> import numpy as np
    >>> thresholds(np.array([0.0, 1.0, 5.0, 6.0]), np.array([2]))
    array([3.])
    """
    return (sorted_values[jumps] + sorted_values[jumps - 1]) / 2


def place(values: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Return the step on which each value falls.

    Examples
    --------
    >>> import numpy as np
    >>> place(np.array([0.2, 7.0, 2.5]), np.array([1.0, 5.0]))
    array([0, 2, 1])
    """
    return np.searchsorted(thresholds, values)


@dataclass(frozen=True)
class StepLaw:
    """Steps as normal distributions, and where they begin and end.

    Attributes
    ----------
    size, mean, variance, lowest, highest : arrays of shape (n_steps,)
        Of the values on each step; a step may have none.
    """

    size: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray, labels: np.ndarray, n_steps: int) -> StepLaw:
        """Return the steps of labelled values."""
        size = np.bincount(labels, minlength=n_steps)
        some = np.maximum(size, 1)
        mean = np.bincount(labels, values, n_steps) / some
        variance = np.bincount(labels, (values - mean[labels]) ** 2, n_steps) / some
        # A step of one value or of equal ones has no spread: a part of the overall spread is used.
        floor = (1e-6 * np.ptp(values)) ** 2 + np.finfo(np.float64).tiny
        variance = np.maximum(variance, np.maximum(floor, 1e-3 * variance.max()))
        lowest, highest = np.full(n_steps, np.inf), np.full(n_steps, -np.inf)
        np.minimum.at(lowest, labels, values)
        np.maximum.at(highest, labels, values)
        return cls(size, mean, variance, lowest, highest)

    def posterior(self, values: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the probability of each value's own step, given those of all."""
        log_size = np.where(self.size > 0, np.log(np.maximum(self.size, 1)), -np.inf)
        log_density = log_size - np.log(self.variance) / 2
        log_density = log_density - (values[:, None] - self.mean) ** 2 / (2 * self.variance)
        log_density -= log_density.max(axis=1, keepdims=True)
        density = np.exp(log_density, out=log_density)
        return density[np.arange(len(values)), labels] / density.sum(axis=1)

    def stands_on_none(self, values: np.ndarray) -> np.ndarray:
        """Return which values lie near the middle of a jump, or equally far outside of all steps.

        A step ends where a quarter of the jump beside it is climbed. The outermost steps reach as
        far outwards as inwards; a single one, as far as it is wide.

        Examples
        --------
        >>> import numpy as np
        >>> law = StepLaw.of(np.array([0.0, 1.0, 5.0, 6.0]), np.array([0, 0, 1, 1]), 2)
        >>> law.stands_on_none(np.array([-2.0, -0.9, 1.5, 3.0, 5.5, 7.5]))
        array([ True, False, False,  True, False,  True])
        """
        taken = self.size > 0
        lowest, highest = self.lowest[taken], self.highest[taken]
        reach = (lowest[1:] - highest[:-1]) / 4
        ends = reach if len(reach) else highest - lowest
        nearest_below = np.searchsorted(lowest - np.append(ends[:1], reach), values, "right") - 1
        top = (highest + np.append(reach, ends[-1:]))[np.maximum(nearest_below, 0)]
        return (nearest_below < 0) | (values > top)


def step_posterior(values: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the posterior probability of each value's step, if every step is normal.

    Examples
    --------
    >>> import numpy as np
    >>> step_posterior(np.array([0.0, 0.1, 9.0, 9.1]), np.array([0, 0, 1, 1])).round(3)
    array([1., 1., 1., 1.])
    """
    return StepLaw.of(values, labels, int(labels.max()) + 1).posterior(values, labels)
