"""Similarities of rows or of columns: of all pairs, or, in linear time, to a few landmarks."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import euclidean_distances, pairwise_kernels

from ccot.persistence.registry import stored
from ccot.runtime.backends import Backend
from ccot.runtime.memory import free_bytes
from ccot.runtime.types import Matrix, is_sparse
from ccot.scalings.steps import StepPlacement
from ccot.transport.low_rank import LowRankKernel
from ccot.transport.sinkhorn import extend_scaling

KernelSpec = str | Callable[..., Any]
_BY_LOGARITHMS = 'loss="kl" takes logarithms of similarities'

# Eigenvalues of the landmark similarities below this times the largest are rounding errors.
_WEAKEST = 1e-10
# Points are centred if their distance from the origin is more than this many times their spread.
_FAR_FROM_ORIGIN = 1e3
# kernel_rank="auto": given a support, matrices with more rows or columns than AUTO_FULL get
# AUTO_RANK landmarks.
AUTO_FULL, AUTO_RANK = 4096, 256


def mean_distance(points: Any) -> float:
    """Return the mean of all entries of the distance matrix: the paper's bandwidth."""
    return float(np.mean(np.sqrt(squared_distances(points, points))))


def squared_distances(points: Any, anchors: Any) -> np.ndarray:
    """Return the squared Euclidean distances of all pairs, accurate also far from the origin."""
    own = anchors is points
    points, anchors = near_origin(points, anchors)
    return euclidean_distances(points, None if own else anchors, squared=True)


def near_origin(points: Any, anchors: Any) -> tuple[Any, Any]:
    """Return points and anchors, centred if dense and too far from the origin for squared norms."""
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


def own_similarity(
    points: Any, kernel: KernelSpec, anchors: Any = None
) -> tuple[np.ndarray, float]:
    """Return similarities to all points or some, and the bandwidth, 0 if not Gaussian."""
    anchors = points if anchors is None else anchors
    if kernel != "rbf":
        return similarity(points, anchors, kernel, 0.0), 0.0
    squares = squared_distances(points, anchors)
    bandwidth = float(np.mean(np.sqrt(squares)))
    if bandwidth == 0:
        return np.ones_like(squares), 0.0
    squares *= -1 / (2 * bandwidth**2)
    return np.exp(squares, out=squares), bandwidth


@dataclass(frozen=True)
class LogGaussian:
    r"""The matrix :math:`-\|x_i - x_j\|^2 / (2 \sigma^2)`, which is only used in products."""

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


@stored()
@dataclass(frozen=True)
class Similarities:
    """Similarities of all pairs of points; ``points`` is None if the similarities were given."""

    matrix: np.ndarray
    points: Matrix | None = None
    kernel: KernelSpec = "precomputed"
    bandwidth: float = 0.0

    def check_logarithm(self) -> None:
        """Raise an error if a similarity has no logarithm."""
        if self.matrix.min() < 0:
            remedy = 'use loss="square" or a non-negative kernel'
            raise ValueError(f"{_BY_LOGARITHMS}, but some are negative: {remedy}")

    def operator(self, backend: Backend, loss: str) -> Any:
        """Return the similarities as a matrix on the device, to be used in products."""
        return backend.send(self.matrix)

    def degrees(self) -> np.ndarray:
        """Return the mean similarity of every point."""
        return self.matrix.mean(axis=1)

    def among(self, chosen: np.ndarray | None) -> np.ndarray:
        """Return the similarities of some of the points, or of all, to one another."""
        return self.matrix if chosen is None else self.matrix[np.ix_(chosen, chosen)]

    def to(self, points: Matrix) -> np.ndarray:
        """Return the similarities of new points to these: the input itself if they were given."""
        if self.points is None:
            return points
        return similarity(points, self.points, self.kernel, self.bandwidth)

    def largest(self, similar: np.ndarray) -> np.ndarray:
        """Return the largest absolute similarity to each of the points."""
        return np.abs(similar).max(axis=0)

    def place(self, potential: tuple[np.ndarray, ...], **solved: Any) -> "KernelPlacement":
        """Return the placement of new points, given the factors of the potential."""
        width = (self.matrix if self.points is None else self.points).shape[1]
        solved |= {"n_points": len(self.matrix), "width": width}
        return KernelPlacement(similarities=self, potential=potential, **solved)

    @property
    def features(self) -> np.ndarray:
        """What :meth:`to` returns for the fitted points."""
        return self.matrix


@stored()
@dataclass(frozen=True)
class Landmarks:
    """Features of points: similarities to a few points, the landmarks, times weights."""

    points: Matrix
    weights: np.ndarray
    kernel: KernelSpec
    bandwidth: float

    def to(self, points: Matrix) -> np.ndarray:
        """Return the features of points."""
        return similarity(points, self.points, self.kernel, self.bandwidth) @ self.weights

    def largest(self, features: np.ndarray) -> np.ndarray:
        """Return, for each feature, a bound on the sum of the absolute values of its terms."""
        own = similarity(self.points, self.points, self.kernel, self.bandwidth)
        return np.abs(own).max() * np.abs(self.weights).sum(axis=0)


@dataclass(frozen=True)
class LowRankSimilarities:
    """Similarities of many points, as inner products of their features."""

    points: Matrix
    landmarks: Landmarks
    features: np.ndarray

    @classmethod
    def of(cls, points: Any, chosen: np.ndarray, kernel: KernelSpec) -> "LowRankSimilarities":
        """Return approximate similarities by those to chosen points (Williams and Seeger, 2000)."""
        similar, bandwidth = own_similarity(points, kernel, points[chosen])
        values, vectors = np.linalg.eigh((similar[chosen] + similar[chosen].T) / 2)
        kept = values > _WEAKEST * values.max()
        weights = vectors * np.where(kept, 1 / np.sqrt(np.where(kept, values, 1.0)), 0.0)
        return cls(points, Landmarks(points[chosen], weights, kernel, bandwidth), similar @ weights)

    def check_logarithm(self) -> None:
        """Raise an error if the logarithms of the similarities are not known."""
        if self.landmarks.kernel != "rbf":
            remedy = 'use that, loss="square" or kernel_rank=None'
            raise ValueError(
                f'{_BY_LOGARITHMS}, which with landmarks works for kernel="rbf" only: {remedy}'
            )

    def operator(self, backend: Backend, loss: str) -> LowRankKernel:
        """Return the similarities as a matrix on the device, to be used in products."""
        logarithm = None
        if loss == "kl":
            points, _ = near_origin(self.points, self.landmarks.points)
            if backend.device is not None and is_sparse(points):
                points = points.toarray()
            logarithm = LogGaussian(backend.send(points), self.landmarks.bandwidth)
        factor = backend.send(self.features)
        return LowRankKernel(factor, factor, logarithm)

    def degrees(self) -> np.ndarray:
        """Return the mean similarity of every point."""
        return self.features @ self.features.mean(axis=0)

    def among(self, chosen: np.ndarray | None) -> np.ndarray:
        """Return the similarities of some of the points, or of all, to one another."""
        few = self.points if chosen is None else self.points[chosen]
        return similarity(few, few, self.landmarks.kernel, self.landmarks.bandwidth)

    def place(self, potential: tuple[np.ndarray, ...], **solved: Any) -> "KernelPlacement":
        """Return the placement of new points, which needs only the landmarks."""
        potential = (self.features.T @ potential[0], *potential[1:])
        solved |= {"n_points": len(self.features), "width": self.points.shape[1]}
        return KernelPlacement(similarities=self.landmarks, potential=potential, **solved)


AnySimilarities = Similarities | LowRankSimilarities


@stored()
@dataclass(frozen=True, kw_only=True)
class KernelPlacement(StepPlacement):
    """Labels new points by their similarities to the fitted ones, or by features."""

    similarities: Similarities | Landmarks
    potential: tuple[np.ndarray, ...]  # factors; their product maps similarities to negative costs
    n_points: int
    shift: float
    log_support_scaling: np.ndarray
    reg: float

    def scaling(self, points: Matrix) -> np.ndarray:
        """Return the logarithms of the points' scalings."""
        return self.scale(self.similarities.to(points))

    def scale(self, similar: np.ndarray) -> np.ndarray:
        """Return the logarithms of the scalings of points with these similarities or features."""
        for factor in self.potential:
            similar = similar @ factor
        log_kernel = (similar + self.shift) / self.reg
        return extend_scaling(log_kernel, self.log_support_scaling, 1 / self.n_points)

    def rounding(self, similar: np.ndarray) -> float:
        """Return a bound on the rounding errors of :meth:`scale`, where large terms may cancel."""
        largest = self.similarities.largest(similar)
        for factor in self.potential:
            largest = largest @ np.abs(factor)
        return 16 * float(np.finfo(np.float64).eps * (1 + largest.max() / self.reg))


def rank_of(
    kernel_rank: int | str | None, n_support: int | None, shape: tuple[int, int]
) -> int | None:
    """Return the number of landmarks; ``"auto"``: None unless the support is given and X large."""
    if not isinstance(kernel_rank, str):
        return kernel_rank
    return AUTO_RANK if n_support is not None and max(shape) > AUTO_FULL else None


def check_memory(shape: tuple[int, int], n_support: int | None, rank: int | None) -> None:
    """Raise an error if the similarities will not fit into memory."""
    free, needed = free_bytes(), bytes_needed(shape, n_support, rank)
    if free is None or needed <= free:
        return
    way_out = 'kernel_rank="auto"' if n_support else "n_support=100"
    if n_support and rank:
        way_out = f"n_support below {n_support} or kernel_rank below {rank}"
    bytes_of = f"about {needed / 1e9:.1f} GB ({needed} bytes), and {free / 1e9:.1f} GB are free"
    remedy = f"pass {way_out}, which makes time and memory linear in rows and columns"
    raise MemoryError(
        f"CCOTGW on {shape[0]} rows and {shape[1]} columns needs {bytes_of}: {remedy}"
    )


def bytes_needed(shape: tuple[int, int], n_support: int | None, rank: int | None) -> int:
    """Return an estimate of the memory that similarities and couplings take."""
    support = shape[0] if n_support is None else n_support
    # Similarities, and the distances they are computed from.
    similar = sum(2 * size * min(size, rank or size) for size in shape)
    # A coupling, its logarithm, its cost and its potential.
    return 8 * (similar + 4 * sum(shape) * support + support**2)


def compare_points(
    points: Matrix, kernel: KernelSpec, rank: int | None, rng: np.random.Generator
) -> AnySimilarities:
    """Return the similarities of all pairs; by random landmarks if there are more than ``rank``."""
    if rank is None or points.shape[0] <= rank:
        matrix, bandwidth = own_similarity(points, kernel)
        return Similarities(matrix, points, kernel, bandwidth)
    chosen = np.sort(rng.choice(points.shape[0], rank, replace=False))
    return LowRankSimilarities.of(points, chosen, kernel)
