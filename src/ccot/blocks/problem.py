"""A matrix prepared for one family, and its co-clusterings: totals and exposures of blocks."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
import scipy.sparse as sp

from ccot.blocks.axes import AxisView, Profiles, both_views, compact, degrees, n_entries, stack
from ccot.blocks.families import FAMILIES, Terms
from ccot.persistence.registry import stored
from ccot.runtime.backends import NUMPY, Backend, is_device_csr, to_numpy
from ccot.runtime.device_csr import row_sums, transposed
from ccot.runtime.types import Array, Matrix, is_sparse

# For matrices with more entries, sums of blocks are updated from the last profiles.
_MANY_ENTRIES = 2**20


@dataclass(frozen=True)
class BlockProblem:
    """A matrix prepared for one family, with views by rows and by columns."""

    family: str
    axes: tuple[AxisView, AxisView]
    overall: float  # mean over all exposure
    n_observed: int
    sum_squares: float = 0.0  # weighted; of the gaussian family only
    dispersion: float = 1.0  # variance relative to the family's own
    n_effects: int = 0  # free parameters besides those of the blocks
    unit: float = 1.0  # unit of small amounts, in which means are smoothed

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return len(self.axes[0]), len(self.axes[1])

    @property
    def backend(self) -> Backend:
        """The backend that computes profiles."""
        return self.axes[0].on_device.backend

    def on_host(self) -> Self:
        """Return the problem without copies on a device."""
        rows, columns = (replace(axis_view, copy=None) for axis_view in self.axes)
        return replace(self, axes=(rows, columns))

    def terms(self, total: Array, exposure: Array) -> Terms:
        """Return natural parameters and cumulants of blocks."""
        return FAMILIES[self.family].terms(total / self.unit, exposure / self.unit, self.overall)

    def terms_in_nats(self, total: Array, exposure: Array) -> Terms:
        """Return natural parameters and cumulants of blocks, divided by the dispersion."""
        natural, cumulant = self.terms(total, exposure)
        noise = self.noise(total, exposure)
        return natural / noise, cumulant / noise

    def information(self, total: Array, exposure: Array) -> Array:
        """Return the maximised log-likelihood of blocks, without constants."""
        return FAMILIES[self.family].information(total, exposure)

    def table(self, row_labels: np.ndarray, column_labels: np.ndarray, shape: tuple[int, int]):
        """Return totals and exposures of the blocks of a co-clustering, hard or soft."""
        return self.axes[0].profiles(column_labels, shape[1]).blocks(row_labels, shape[0])

    def with_dispersion(self, dispersion: float) -> Self:
        """Return the same problem with another dispersion."""
        return replace(self, dispersion=float(dispersion))

    def noise(self, total: Array, exposure: Array) -> float:
        """Return the dispersion around blocks: the residual variance for the gaussian family."""
        if self.family != "gaussian":
            return self.dispersion
        return float(self.noise_left(2.0 * float(self.information(total, exposure).sum())))

    def noise_left(self, explained: Any) -> Any:
        """Return the residual variance of real values, given explained squares: one or many."""
        floor = 1e-12 * max(self.sum_squares, 1e-300)
        return np.maximum(self.sum_squares - explained, floor) / max(self.n_observed, 1)


def make_problem(
    values: Matrix, family: str, precision: np.ndarray | None = None, backend: Backend = NUMPY
) -> BlockProblem:
    """Return the problem of a prepared matrix; NaN is missing, ``precision`` is that of columns."""
    n_rows, n_columns = values.shape
    if is_device_csr(values):
        return _device_problem(values, backend)
    if family == "poisson":
        row_degree, column_degree = degrees(values, backend)
        scale = np.sqrt(max(row_degree.sum(), 1e-300))
        axis_view = AxisView(values, row_degree / scale, column_degree / scale)
        overall = 1.0 if row_degree.any() else 0.0
        # Frequencies are counts in a smaller unit: if all are below 1, the largest of them.
        unit = min(1.0, max(float(values.max()), 1e-300)) if overall else 1.0
        axes = both_views(axis_view, backend)
        return BlockProblem(family, axes, overall, n_rows * n_columns, dispersion=unit, unit=unit)
    weights = np.ones(n_columns) if precision is None else precision
    n_observed, exposure, seen = n_rows * n_columns, n_rows * float(weights.sum()), None
    if not is_sparse(values) and not (observed := np.isfinite(values)).all():
        values, seen = np.where(observed, values, 0.0), observed * weights
        n_observed, exposure = int(observed.sum()), float(seen.sum())
    weighted = values if (weights == 1).all() else scale_columns(values, weights)
    return BlockProblem(
        family,
        both_views(AxisView(weighted, np.ones(n_rows), weights, seen), backend),
        float(weighted.sum()) / max(exposure, 1e-300),
        n_observed,
        float(_sum_squares(values) @ weights) if family == "gaussian" else 0.0,
    )


def _device_problem(values: Any, backend: Backend) -> BlockProblem:
    """Return the problem of counts that stay on a device; only their sums are copied back."""
    sides = values, transposed(values)
    sums = [to_numpy(row_sums(side)) for side in sides]
    exposures = [degree / np.sqrt(max(sums[0].sum(), 1e-300)) for degree in sums]
    views = [AxisView(sides[i], exposures[i], exposures[1 - i]) for i in (0, 1)]
    rows, columns = (replace(view, copy=view.sent(backend)) for view in views)
    unit = float(min(1.0, max(float(values.values().max()), 1e-300)))
    n_cells = values.shape[0] * values.shape[1]
    return BlockProblem("poisson", (rows, columns), 1.0, n_cells, dispersion=unit, unit=unit)


@stored()
@dataclass(frozen=True)
class Blocks:
    """A co-clustering of a problem: labels of both sides, and totals and exposures of blocks."""

    labels: tuple[np.ndarray, np.ndarray]
    total: np.ndarray
    exposure: np.ndarray
    n_sweeps: int = 0
    plans: tuple[np.ndarray, np.ndarray] | None = None  # after soft sweeps

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of row and column clusters."""
        return self.total.shape[0], self.total.shape[1]

    @property
    def assignments(self) -> tuple[np.ndarray, np.ndarray]:
        """The plans, if there are any and each cluster is some point's best; else the labels."""
        if self.plans is None or (self.plans[0].shape[1], self.plans[1].shape[1]) != self.shape:
            return self.labels
        return self.plans

    def table(self, axis: int) -> Terms:
        """Return totals and exposures with the clusters of a side as rows."""
        return (self.total.T, self.exposure.T) if axis else (self.total, self.exposure)

    def merged(self, rows: np.ndarray, columns: np.ndarray) -> "Blocks":
        """Return coarser blocks, given the coarse cluster of every cluster of both sides."""
        shape = int(rows.max()) + 1, int(columns.max()) + 1
        total, exposure = (
            stack(stack(table, rows, shape[0]).T, columns, shape[1]).T
            for table in (self.total, self.exposure)
        )
        return Blocks((rows[self.labels[0]], columns[self.labels[1]]), total, exposure)

    def relabelled(self, axis: int, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the labels of both sides, those of one side replaced."""
        return (self.labels[0], labels) if axis else (labels, self.labels[1])


def make_blocks(
    problem: BlockProblem,
    row_labels: np.ndarray,
    column_labels: np.ndarray,
    n_sweeps: int = 0,
    seen: Sequence[Profiles | None] = (None, None),
) -> Blocks:
    """Return the blocks of a co-clustering; unused cluster numbers are left out."""
    # ``seen``: profiles of rows and of columns over similar clusters; those of columns are newer.
    labels = compact(row_labels), compact(column_labels)
    shape = int(labels[0].max()) + 1, int(labels[1].max()) + 1
    axis = int(seen[1] is not None and n_entries(problem.axes[1].values) > _MANY_ENTRIES)
    profiles = problem.axes[axis].profiles(labels[1 - axis], shape[1 - axis], seen[axis])
    total, exposure = profiles.blocks(labels[axis], shape[axis])
    if axis:
        total, exposure = total.T, exposure.T
    if problem.family != "gaussian":
        # If points have moved, rounding may leave totals below zero.
        total = np.maximum(total, 0.0)
    return Blocks(labels, total, exposure, n_sweeps)


class Informed(Protocol):
    """An object that computes the information of blocks."""

    def information(self, total: np.ndarray, exposure: np.ndarray) -> np.ndarray:
        """Return the maximised log-likelihood of blocks, without constants."""
        ...


def information(problem: Informed, blocks: Blocks) -> float:
    """Return the information of all blocks: their log-likelihood up to a constant of the data."""
    return float(problem.information(blocks.total, blocks.exposure).sum())


def pearson_dispersion(problem: BlockProblem, blocks: Blocks | None = None) -> float:
    """Return Pearson's dispersion around blocks, or degrees alone; 1 unless poisson."""
    if problem.family != "poisson":
        return 1.0
    axis_view = problem.axes[0]
    used = np.count_nonzero(axis_view.exposure), np.count_nonzero(axis_view.partner_exposure)
    n_free = (used[0] - 1) * (used[1] - 1) - (0 if blocks is None else blocks.total.size)
    if blocks is None:
        rows, columns = (np.zeros(n, np.int64) for n in problem.shape)
        squares = axis_view.squares(rows, columns, (1, 1))
    else:
        mean = blocks.total / np.maximum(blocks.exposure, 1e-300)
        squares = axis_view.squares(*blocks.labels, blocks.shape)
        squares = np.divide(squares, mean, out=np.zeros_like(mean), where=mean > 0)
    # sum (x - e)^2 / e = sum x^2 / e - 2 sum x + sum e: zeros need no work.
    count = float(axis_view.exposure.sum() * axis_view.partner_exposure.sum())
    excess = max(float(squares.sum()) - count, 1e-12 * float(np.clip(count, 1e-288, 1.0)))
    return excess / max(n_free, 1)


def _sum_squares(values: Matrix) -> np.ndarray:
    """Return the sums of squares of the columns, without a squared copy of a dense matrix."""
    if is_sparse(values):
        return degrees(values * values)[1]
    return np.einsum("ij,ij->j", values, values)


def scale_columns(values: Matrix, weights: np.ndarray) -> Matrix:
    """Return a matrix with its columns multiplied by weights."""
    return sp.csr_array(values @ sp.diags_array(weights)) if is_sparse(values) else values * weights
