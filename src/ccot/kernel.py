"""Similarities between rows, and between columns, and their bandwidths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances, pairwise_kernels

KernelSpec = str | Callable[..., Any]


def mean_distance(points: Any) -> float:
    """Return the mean of all pairwise Euclidean distances, those of points to themselves included.

    This is the bandwidth of the paper's Gaussian kernel.

    Examples
    --------
    >>> mean_distance([[0.0], [2.0]])
    1.0
    """
    return float(np.mean(euclidean_distances(points)))


def gaussian_kernel(points: Any, anchors: Any, bandwidth: float) -> np.ndarray:
    r"""Return :math:`e^{-\|x - y\|^2 / (2 \sigma^2)}` for all pairs.

    Parameters
    ----------
    points, anchors : array-like or sparse, of shapes (n_points, k) and (n_anchors, k)
        Points to compare.
    bandwidth : float
        The width; points are all alike where it is zero.

    Returns
    -------
    ndarray of shape (n_points, n_anchors)
        Similarities between 0 and 1.
    """
    if bandwidth == 0:
        return np.ones((points.shape[0], anchors.shape[0]))
    distances = euclidean_distances(points, anchors, squared=True)
    return np.exp(-distances / (2 * bandwidth**2))


def similarity(points: Any, anchors: Any, kernel: KernelSpec, bandwidth: float) -> np.ndarray:
    """Return the similarities of points to anchors by the named or given kernel.

    Parameters
    ----------
    points, anchors : array-like or sparse, of shapes (n_points, k) and (n_anchors, k)
        Points to compare.
    kernel : str or callable
        ``"rbf"``: Gaussian with the given bandwidth. Another name of
        :func:`sklearn.metrics.pairwise.pairwise_kernels`, or a callable that takes two points.
    bandwidth : float
        Width of the Gaussian kernel; not used by the others.

    Returns
    -------
    ndarray of shape (n_points, n_anchors)
        Similarities.
    """
    if kernel == "rbf":
        return gaussian_kernel(points, anchors, bandwidth)
    return np.asarray(pairwise_kernels(points, anchors, metric=kernel), dtype=np.float64)
