r"""What mean field leaves out: rows and columns react to one another.

A soft sweep is surer than it should be. The equations of Thouless, Anderson and Palmer (1977) put
it right, see docs/blocks.md: with :math:`S_r = \sum_j w_j r_j r_j^\top` of weights and plans, its
row sums :math:`D_r` and :math:`V_r = D_r - S_r`, :math:`D_q \mu D_r - V_q \mu V_r = q^\top x r`.
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
# A reaction of fewer nats changes nothing.
_NOTICEABLE = 0.1
# At full length plans and reactions would swing.
_STEP = 0.5
# A cluster with less than half a point is gone.
_LEAST_MASS = 0.5
# Where two clusters of rows and two of columns are all the same, nothing is left to tell means by.
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
        """Covariances of the assignments of rows and of columns, summed up (V)."""
        rows, columns = (np.diag(overlap.sum(axis=1)) - overlap for overlap in self.overlaps)
        return rows, columns

    @property
    def nats(self) -> float:
        """What the reaction adds to the log-likelihood."""
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
    """Sweep softly until little moves; then in shorter steps with the reaction, if noticeable."""
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
    """Tell whether the reaction is known: real values, none missing, assignments soft."""
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
    """Solve for the means: in the eigenvectors of both spreads every one stands alone."""
    (row_size, spread_rows, turn_rows), (column_size, spread_columns, turn_columns) = (
        _spectrum(overlap) for overlap in (rows, columns)
    )
    held = np.outer(row_size, column_size)
    left = np.maximum(1 - np.outer(spread_rows, spread_columns), _LEAST_LEFT)
    transposed = turn_rows.T @ (total / held) @ turn_columns / left
    return turn_rows @ transposed @ turn_columns.T / held


def _spectrum(overlap: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return roots of sizes, and the spectrum of the spread in units of these."""
    size = np.sqrt(overlap.sum(axis=1))
    values, vectors = np.linalg.eigh(np.eye(len(size)) - overlap / np.outer(size, size))
    return size, values, vectors


def _move(
    problem: BlockProblem, axis: int, plans: Plans, reaction: TapCorrection
) -> tuple[Plans, TapCorrection]:
    """Move the points of one side half of the way to where they gain most."""
    own, partner, axis_view = plans[axis], plans[1 - axis], problem.axes[axis]
    means = reaction.means.T if axis else reaction.means
    overlap, spread = reaction.overlaps[1 - axis], reaction.spreads[1 - axis]
    profiles = axis_view.profiles(partner, partner.shape[1])
    send = profiles.backend.send
    size = 0.5 * np.einsum("kl,lm,km->k", means, overlap, means)
    back = own @ send(means @ spread @ means.T)
    gain = profiles.total @ send(means.T) - send(axis_view.exposure)[:, None] * (send(size) + back)
    marginal = send(log_marginal(own, own.shape[1]))
    moved = _STEP * soft_plan(gain / reaction.noise + marginal) + (1 - _STEP) * own
    total, _ = profiles.blocks(moved, own.shape[1])
    plans = (plans[0], moved) if axis else (moved, plans[1])
    return plans, _estimate(problem, plans, total.T if axis else total)
