"""Similarities between rows, and between columns, and their bandwidths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import euclidean_distances, pairwise_kernels

KernelSpec = str | Callable[..., Any]

# Eigenvalues of the landmark similarities below this times the largest are rounding errors.
_WEAKEST = 1e-10
# Points are centred if their distance from the origin is this many times their spread.
_FAR_FROM_ORIGIN = 1e3


def mean_distance(points: Any) -> float:
    """Return the mean of all pairwise Euclidean distances, the bandwidth of the paper's kernel.

    Distances of points to themselves are included.

    Examples
    --------
    >>> mean_distance([[0.0], [2.0]])
    1.0
    """
    return float(np.mean(np.sqrt(squared_distances(points, points))))


def squared_distances(points: Any, anchors: Any) -> np.ndarray:
    """Return the squared Euclidean distances of all pairs, wherever the points lie.

    Examples
    --------
    >>> squared_distances([[1e9], [1e9 + 2]], [[1e9 - 1]])
    array([[1.],
           [9.]])
    """
    own = anchors is points
    points, anchors = near_origin(points, anchors)
    return euclidean_distances(points, None if own else anchors, squared=True)


def near_origin(points: Any, anchors: Any) -> tuple[Any, Any]:
    """Shift points and anchors that lie far from the origin to it; sparse ones stay.

    Squared norms leave nothing of the distances far from the origin.
    """
    if sp.issparse(points) or sp.issparse(anchors):
        return points, anchors
    centre, spread = np.mean(anchors, axis=0), np.std(anchors, axis=0)
    if np.linalg.norm(centre) <= _FAR_FROM_ORIGIN * np.linalg.norm(spread):
        return points, anchors
    return np.asarray(points) - centre, np.asarray(anchors) - centre


def gaussian_kernel(points: Any, anchors: Any, bandwidth: float) -> np.ndarray:
    r"""Return :math:`e^{-\|x - y\|^2 / (2 \sigma^2)}` for all pairs; 1 if the bandwidth is zero."""
    if bandwidth == 0:
        return np.ones((points.shape[0], anchors.shape[0]))
    return np.exp(-squared_distances(points, anchors) / (2 * bandwidth**2))


def similarity(points: Any, anchors: Any, kernel: KernelSpec, bandwidth: float) -> np.ndarray:
    """Return the similarities of points to anchors by the named or given kernel."""
    if kernel == "rbf":
        return gaussian_kernel(points, anchors, bandwidth)
    return np.asarray(pairwise_kernels(points, anchors, metric=kernel), dtype=np.float64)


def own_similarity(points: Any, kernel: KernelSpec) -> tuple[np.ndarray, float]:
    """Return the similarities of points to one another, and the bandwidth; 0 if not Gaussian.

    Examples
    --------
    >>> own_similarity(np.array([[0.0], [2.0]]), "rbf")[1]
    1.0
    """
    if kernel != "rbf":
        return similarity(points, points, kernel, 0.0), 0.0
    return _gaussian(squared_distances(points, points))


def nystrom(
    points: Any, chosen: np.ndarray, kernel: KernelSpec
) -> tuple[np.ndarray, float, np.ndarray]:
    """Return features of points whose inner products are about their similarities [1]_.

    ``chosen`` are the landmarks among the points. Returns weights, which turn similarities to
    landmarks into features; the bandwidth, 0 if not Gaussian; and the features.

    References
    ----------
    .. [1] Williams, C. and Seeger, M. (2000). Using the Nyström method to speed up kernel
       machines. Advances in Neural Information Processing Systems 13.
    """
    if kernel == "rbf":
        similar, bandwidth = _gaussian(squared_distances(points, points[chosen]))
    else:
        similar, bandwidth = similarity(points, points[chosen], kernel, 0.0), 0.0
    values, vectors = np.linalg.eigh((similar[chosen] + similar[chosen].T) / 2)
    kept = values > _WEAKEST * values.max()
    weights = vectors * np.where(kept, 1 / np.sqrt(np.where(kept, values, 1.0)), 0.0)
    return weights, bandwidth, similar @ weights


@dataclass(frozen=True)
class LogGaussian:
    r"""The matrix :math:`-\|x_i - x_j\|^2 / (2 \sigma^2)`, never written out."""

    points: Any
    bandwidth: float

    def __matmul__(self, other: Any) -> Any:
        if self.bandwidth == 0:
            return 0 * other
        points = self.points
        squares = points.multiply(points) if hasattr(points, "multiply") else points * points
        norms = squares.sum(axis=1)
        inner = points @ (points.T @ other)
        both = norms[:, None] * other.sum(axis=0) + norms @ other
        return (inner - both / 2) / self.bandwidth**2


def _gaussian(squares: np.ndarray) -> tuple[np.ndarray, float]:
    """Turn squared distances into similarities, in place; the bandwidth is the mean distance."""
    bandwidth = float(np.mean(np.sqrt(squares)))
    if bandwidth == 0:
        return np.ones_like(squares), 0.0
    squares *= -1 / (2 * bandwidth**2)
    return np.exp(squares, out=squares), bandwidth
