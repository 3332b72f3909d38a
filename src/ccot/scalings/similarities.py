"""Similarities of one side of a matrix: of all pairs, or to a few landmarks.

All pairs of n points take memory of n^2. If that is too much, the features of a point are its
similarities to some of the points, the landmarks, weighted so that inner products of features
approximate similarities (Nyström's method), and everything is linear in n.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ccot.persistence.registry import stored
from ccot.runtime.backends import Backend
from ccot.runtime.memory import free_bytes
from ccot.runtime.types import Matrix, is_sparse
from ccot.scalings.kernels import (
    KernelSpec,
    LogGaussian,
    near_origin,
    nystrom,
    own_similarity,
    similarity,
)
from ccot.scalings.steps import StepPlacement
from ccot.transport.low_rank import LowRankKernel
from ccot.transport.sinkhorn import extend_scaling

# kernel_rank="auto": sides of at most this many points keep all their similarities, and larger
# ones get this many landmarks.
AUTO_FULL, AUTO_RANK = 4096, 256


@stored()
@dataclass(frozen=True)
class Similarities:
    """Similarities of all pairs of points; ``points`` is None if the similarities were given."""

    matrix: np.ndarray
    points: Matrix | None
    kernel: KernelSpec
    bandwidth: float

    @classmethod
    def between(cls, points: Matrix, kernel: KernelSpec) -> Similarities:
        """Compute the similarities of points."""
        matrix, bandwidth = own_similarity(points, kernel)
        return cls(matrix, points, kernel, bandwidth)

    @classmethod
    def given(cls, matrix: np.ndarray) -> Similarities:
        """Return given similarities in this form."""
        return cls(matrix, None, "precomputed", 0.0)

    def check_logarithm(self) -> None:
        """Refuse similarities that have no logarithm."""
        if self.matrix.min() < 0:
            raise ValueError(
                'loss="kl" compares similarities by their logarithms, but some are negative: '
                'use loss="square" or a non-negative kernel'
            )

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
        """Return the similarities of new points to these."""
        if self.points is None:
            return points
        return similarity(points, self.points, self.kernel, self.bandwidth)

    def largest(self, similar: np.ndarray) -> np.ndarray:
        """Return a bound on the similarities to each of the points."""
        return np.abs(similar).max(axis=0)

    def place(self, potential: tuple[np.ndarray, ...], **solved: Any) -> KernelPlacement:
        """Return the placement of unseen points, given the factors of the potential."""
        return KernelPlacement(
            similarities=self,
            potential=potential,
            n_points=len(self.matrix),
            width=(self.matrix if self.points is None else self.points).shape[1],
            **solved,
        )

    def features(self) -> np.ndarray:
        """Return what :meth:`to` gives for the points themselves."""
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
        """Return a bound on the terms that are summed to each of the features."""
        own = similarity(self.points, self.points, self.kernel, self.bandwidth)
        return np.abs(own).max() * np.abs(self.weights).sum(axis=0)


@dataclass(frozen=True)
class LowRankSimilarities:
    """Similarities of many points, as inner products of their features, ``factor``."""

    points: Matrix
    landmarks: Landmarks
    factor: np.ndarray

    @classmethod
    def between(
        cls, points: Matrix, kernel: KernelSpec, rank: int, rng: np.random.Generator
    ) -> LowRankSimilarities:
        """Choose landmarks among the points, all equally likely, and compute the features."""
        chosen = np.sort(rng.choice(points.shape[0], rank, replace=False))
        weights, bandwidth, factor = nystrom(points, chosen, kernel)
        return cls(points, Landmarks(points[chosen], weights, kernel, bandwidth), factor)

    def check_logarithm(self) -> None:
        """Refuse similarities whose logarithms are not known."""
        if self.landmarks.kernel != "rbf":
            raise ValueError(
                'loss="kl" compares similarities by their logarithms, which landmarks give for '
                'kernel="rbf" only: use that, loss="square" or kernel_rank=None'
            )

    def operator(self, backend: Backend, loss: str) -> LowRankKernel:
        """Return the similarities as a matrix on the device, to be used in products."""
        logarithm = None
        if loss == "kl":
            points, _ = near_origin(self.points, self.landmarks.points)
            logarithm = LogGaussian(send_points(points, backend), self.landmarks.bandwidth)
        return LowRankKernel(backend.send(self.factor), logarithm)

    def degrees(self) -> np.ndarray:
        """Return the mean similarity of every point."""
        return self.factor @ self.factor.mean(axis=0)

    def among(self, chosen: np.ndarray | None) -> np.ndarray:
        """Return the similarities of some of the points, or of all, to one another."""
        few = self.points if chosen is None else self.points[chosen]
        return similarity(few, few, self.landmarks.kernel, self.landmarks.bandwidth)

    def place(self, potential: tuple[np.ndarray, ...], **solved: Any) -> KernelPlacement:
        """Return the placement of new points, which needs the landmarks alone."""
        return KernelPlacement(
            similarities=self.landmarks,
            potential=(self.factor.T @ potential[0], *potential[1:]),
            n_points=len(self.factor),
            width=self.points.shape[1],
            **solved,
        )

    def features(self) -> np.ndarray:
        """Return the features of the fitted points."""
        return self.factor


AnySimilarities = Similarities | LowRankSimilarities


@stored()
@dataclass(frozen=True, kw_only=True)
class KernelPlacement(StepPlacement):
    """Labels new points by their similarities to the fitted ones, or by features.

    Their product with the matrices of ``potential`` is the potential of the points; ``shift`` and
    ``reg`` are those of the alignment.
    """

    similarities: Similarities | Landmarks
    potential: tuple[np.ndarray, ...]
    n_points: int
    shift: float
    log_support_scaling: np.ndarray
    reg: float

    def scaling(self, points: Matrix) -> np.ndarray:
        """Return the logarithms of the points' scalings."""
        return self.scale(self.similarities.to(points))

    def scale(self, similar: np.ndarray) -> np.ndarray:
        """Return the logarithms of scalings of points with these similarities to the fitted."""
        for factor in self.potential:
            similar = similar @ factor
        log_kernel = (similar + self.shift) / self.reg
        return extend_scaling(log_kernel, self.log_support_scaling, 1 / self.n_points)

    def rounding(self, similar: np.ndarray) -> float:
        """Return a bound on the rounding errors of :meth:`scale`, whose products may cancel."""
        largest = self.similarities.largest(similar)
        for factor in self.potential:
            largest = largest @ np.abs(factor)
        return 16 * float(np.finfo(np.float64).eps * (1 + largest.max() / self.reg))


def rank_of(
    kernel_rank: int | str | None, n_support: int | None, shape: tuple[int, int]
) -> int | None:
    """Return the number of landmarks of a side, or None for all similarities.

    ``"auto"`` takes landmarks only where a small support was asked for and a side is large.
    """
    if not isinstance(kernel_rank, str):
        return kernel_rank
    return AUTO_RANK if n_support is not None and max(shape) > AUTO_FULL else None


def check_memory(
    shape: tuple[int, int], n_support: int | None, rank: int | None, free: int | None = None
) -> None:
    """Raise an error if the similarities will not fit into memory."""
    free = free_bytes() if free is None else free
    needed = bytes_needed(shape, n_support, rank)
    if free is None or needed <= free:
        return
    way_out = "n_support=100"
    if n_support is not None:
        fewer = f"n_support below {n_support} or kernel_rank below {rank}"
        way_out = 'kernel_rank="auto"' if rank is None else fewer
    raise MemoryError(
        f"CCOTGW on {shape[0]} rows and {shape[1]} columns needs about {needed / 1e9:.1f} GB "
        f"({needed} bytes), and {free / 1e9:.1f} GB are free: pass {way_out}, which makes time "
        "and memory linear in rows and columns"
    )


def bytes_needed(shape: tuple[int, int], n_support: int | None, rank: int | None) -> int:
    """Return an estimate of the memory that similarities and couplings take."""
    support = shape[0] if n_support is None else n_support
    sides = [
        # Similarities, and the distances they are computed from.
        2 * size * (size if rank is None or size <= rank else rank)
        # A coupling, its logarithm, its cost and its potential.
        + 4 * size * support
        for size in shape
    ]
    return 8 * (sum(sides) + support**2)


def send_points(points: Matrix, backend: Backend) -> Any:
    """Return points on the device; sparse points become dense unless the device is NumPy."""
    if backend.device is not None and is_sparse(points):
        points = points.toarray()
    return backend.send(points)


def compare_points(
    points: Matrix, kernel: KernelSpec, rank: int | None, rng: np.random.Generator
) -> AnySimilarities:
    """Return the similarities of all pairs of points, or by landmarks where there are many."""
    if rank is None or points.shape[0] <= rank:
        return Similarities.between(points, kernel)
    return LowRankSimilarities.between(points, kernel, rank, rng)
