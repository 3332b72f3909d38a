r"""Correction of soft sweeps, a mean-field method: rows and columns react to one another.

Plans of soft sweeps are too certain. The equations of Thouless, Anderson and Palmer (1977) correct
this, see docs/blocks.md: with :math:`S_r = \sum_j w_j r_j r_j^\top` of weights and plans, its row
sums :math:`D_r` and :math:`V_r = D_r - S_r`, :math:`D_q \mu D_r - V_q \mu V_r = q^\top x r`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ccot.blocks.axes import Profiles
from ccot.blocks.problem import BlockProblem, Blocks, make_blocks
from ccot.blocks.sweep import log_marginal, mass_moved, settle, soft_plan
from ccot.runtime.backends import to_numpy
from ccot.runtime.types import Array

Plans = tuple[Array, Array]
# Reactions of fewer nats are ignored.
_NOTICEABLE = 0.1
# With full steps, plans and reactions would oscillate.
_STEP = 0.5
# A cluster with less mass than half a point counts as empty.
_LEAST_MASS = 0.5
# Lower limit of denominators of means: they vanish if two row and two column clusters coincide.
_LEAST_LEFT = 1e-3


@dataclass(frozen=True)
class TapCorrection:
    """Blocks of soft plans with the reaction of rows and columns."""

    means: np.ndarray
    explained: float  # sum of squares that the means explain
    noise: float
    overlaps: tuple[np.ndarray, np.ndarray]  # S of rows and of columns

    @property
    def spreads(self) -> tuple[np.ndarray, np.ndarray]:
        """Sums of the covariances of row assignments and of column assignments (V)."""
        rows, columns = (np.diag(overlap.sum(axis=1)) - overlap for overlap in self.overlaps)
        return rows, columns

    @property
    def nats(self) -> float:
        """Log-likelihood that the reaction adds."""
        rows, columns = self.spreads
        return 0.5 * float(np.sum((rows @ self.means) * (self.means @ columns))) / self.noise


def soft_sweep(
    problem: BlockProblem,
    blocks: Blocks,
    max_iter: int = 30,
    tol: float = 1e-3,
    balanced: bool = False,
    seen: Sequence[Profiles | None] = (None, None),
) -> Blocks:
    """Return blocks after soft sweeps, then shorter steps with the reaction if it is noticeable."""
    settled = settle(problem, blocks, max_iter, tol, balanced=balanced, seen=seen)
    if balanced or not reacts(problem, settled):
        return settled
    plans = settled.plans
    assert plans is not None
    reaction = tap_correction(problem, plans)
    if reaction.nats < _NOTICEABLE:
        return settled
    n_sweeps = settled.n_sweeps
    for _ in range(3 * max_iter):
        before = plans
        for axis in (0, 1):
            plans, reaction = _move(problem, axis, plans, reaction)
        n_sweeps += 1
        if min(float(plan.sum(axis=0).min()) for plan in plans) < _LEAST_MASS:
            return settled
        moved = sum(mass_moved(b, a) for b, a in zip(before, plans, strict=True))
        if moved <= _STEP * tol * sum(problem.shape):
            break
    rows, columns = (to_numpy(plan.argmax(axis=1)) for plan in plans)
    return replace(make_blocks(problem, rows, columns, n_sweeps), plans=plans)


def reacts(problem: BlockProblem, blocks: Blocks) -> bool:
    """Return True if the reaction can be computed: real values, none missing, soft assignments."""
    complete = problem.axes[0].observed is None
    return problem.family == "gaussian" and complete and blocks.assignments is blocks.plans


def tap_correction(problem: BlockProblem, plans: Plans) -> TapCorrection:
    """Return the blocks of soft plans, estimated with the reaction."""
    shape = plans[0].shape[1], plans[1].shape[1]
    return _estimate(problem, plans, problem.table(*plans, shape)[0])


def _estimate(problem: BlockProblem, plans: Plans, total: np.ndarray) -> TapCorrection:
    send = problem.backend.send
    rows, columns = (
        to_numpy(plan.T @ (send(axis_view.exposure)[:, None] * plan))
        for plan, axis_view in zip(plans, problem.axes, strict=True)
    )
    means = _solve(rows, columns, total)
    explained = float(np.sum(means * total))
    return TapCorrection(means, explained, float(problem.noise_left(explained)), (rows, columns))


def _solve(rows: np.ndarray, columns: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Return the means: in the eigenvectors of both spreads, the equations are independent."""
    (row_size, spread_rows, turn_rows), (column_size, spread_columns, turn_columns) = (
        _spectrum(overlap) for overlap in (rows, columns)
    )
    held = np.outer(row_size, column_size)
    left = np.maximum(1 - np.outer(spread_rows, spread_columns), _LEAST_LEFT)
    transposed = turn_rows.T @ (total / held) @ turn_columns / left
    return turn_rows @ transposed @ turn_columns.T / held


def _spectrum(overlap: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return square roots of sizes, and the spectrum of the spread divided by these."""
    size = np.sqrt(overlap.sum(axis=1))
    values, vectors = np.linalg.eigh(np.eye(len(size)) - overlap / np.outer(size, size))
    return size, values, vectors


def _move(
    problem: BlockProblem, axis: int, plans: Plans, reaction: TapCorrection
) -> tuple[Plans, TapCorrection]:
    """Return plans with the points of one side moved half of the way, and the new reaction."""
    own, partner, axis_view = plans[axis], plans[1 - axis], problem.axes[axis]
    means = reaction.means.T if axis else reaction.means
    overlap, spread = reaction.overlaps[1 - axis], reaction.spreads[1 - axis]
    profiles = axis_view.profiles(partner, partner.shape[1])
    send = profiles.backend.send
    size = 0.5 * np.einsum("kl,lm,km->k", means, overlap, means)
    back = own @ send(means @ spread @ means.T)
    gain = profiles.total @ send(means.T) - send(axis_view.exposure)[:, None] * (send(size) + back)
    marginal = send(log_marginal(own, own.shape[1], profiles.backend))
    moved = _STEP * soft_plan(gain / reaction.noise + marginal) + (1 - _STEP) * own
    total, _ = profiles.blocks(moved, own.shape[1])
    plans = (plans[0], moved) if axis else (moved, plans[1])
    return plans, _estimate(problem, plans, total.T if axis else total)
