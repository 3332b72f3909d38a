"""From sorted values and their jumps to labels, thresholds and steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device
from scipy.special import logsumexp

Array = Any


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
    """Label points by the step they stand on.

    Parameters
    ----------
    order : int array of shape (n_draws, n_points)
        The order that sorts each vector.
    mask, strength : arrays of shape (n_draws, n_points - 1)
        Where the jumps are in sorted order, and how strong.

    Returns
    -------
    Steps
        Labels, numbers of clusters and weakest jumps.

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
    """Put the partitions of several batches together."""
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


def step_posterior(values: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return how sure each value's step is, were every step a normal law of its own.

    Parameters
    ----------
    values : array of shape (n_points,)
        Logarithms of scalings.
    labels : int array of shape (n_points,)
        The step each value stands on.

    Returns
    -------
    array of shape (n_points,)
        Posterior probability of the value's own step, given means, spreads and sizes of all.

    Examples
    --------
    >>> import numpy as np
    >>> step_posterior(np.array([0.0, 0.1, 9.0, 9.1]), np.array([0, 0, 1, 1])).round(3)
    array([1., 1., 1., 1.])
    """
    size = np.bincount(labels)
    mean = np.bincount(labels, weights=values) / size
    variance = np.bincount(labels, weights=(values - mean[labels]) ** 2) / size
    # A step of one value or of equal ones has no spread of its own: borrow a little of the whole.
    floor = (1e-6 * np.ptp(values)) ** 2 + np.finfo(np.float64).tiny
    variance = np.maximum(variance, np.maximum(floor, 1e-3 * variance.max()))
    log_density = (
        np.log(size) - np.log(variance) / 2 - (values[:, None] - mean) ** 2 / (2 * variance)
    )
    return np.exp(log_density[np.arange(len(values)), labels] - logsumexp(log_density, axis=1))
