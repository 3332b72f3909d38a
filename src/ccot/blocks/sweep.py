r"""Transport of rows, then of columns, onto a small summary of blocks.

A point pays minus its log-likelihood to go to a cluster, and the entropy of its plan is weighed by
a temperature :math:`\tau`:

.. math:: \min_{P} \; - \langle P, G \rangle - \tau E(P), \qquad P \mathbf{1} = \mathbf{1}.

The clusters' marginals are free and learned (semi-relaxed transport), so the plan of each point is
closed form; balanced, they are equal and Sinkhorn scalings share the points out. At temperature 0
the plan is hard.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ccot.blocks.problem import BlockProblem, Blocks, Profiles, make_blocks
from ccot.transport.sinkhorn import sinkhorn

# At temperature 1 overlapping clusters share their points as they should; the plan is lowered to
# hard assignment at the end.
_SOFT = (1.0,)


def sweep(
    problem: BlockProblem,
    blocks: Blocks,
    *,
    temperatures: Sequence[float] = (0.0,),
    max_iter: int = 30,
    tol: float = 0.0,
    balanced: bool = False,
) -> Blocks:
    """Alternate the two transports until nothing moves, at each temperature in turn.

    Parameters
    ----------
    problem : BlockProblem
        The prepared matrix.
    blocks : Blocks
        Where to start.
    temperatures : sequence of float
        Weights of the entropy, decreasing. What is soft at the end is read off hard.
    max_iter : int
        Sweeps at each temperature.
    tol : float
        Share of the mass of rows and columns that may still move.
    balanced : bool
        Share the points out equally.

    Returns
    -------
    Blocks
        Where the sweeps ended; clusters that lost all members are gone.
    """
    plans, shape = blocks.labels, blocks.shape
    n_sweeps = blocks.n_sweeps
    for temperature in temperatures:
        for _ in range(max_iter):
            before = plans
            rows = _transport(problem, 0, plans, shape, temperature, balanced)
            columns = _transport(problem, 1, (rows, plans[1]), shape, temperature, balanced)
            plans = rows, columns
            n_sweeps += 1
            moved = sum(_mass_moved(b, a) for b, a in zip(before, plans, strict=True))
            if moved <= tol * sum(problem.shape):
                break
    found = make_blocks(problem, _hard(plans[0], balanced), _hard(plans[1], balanced), n_sweeps)
    is_soft = plans[0].ndim == plans[1].ndim == 2
    return replace(found, plans=(plans[0], plans[1])) if is_soft else found


def settle(
    problem: BlockProblem,
    blocks: Blocks,
    max_iter: int = 30,
    tol: float = 1e-3,
    balanced: bool = False,
) -> Blocks:
    """Sweep softly until little moves."""
    return sweep(problem, blocks, temperatures=_SOFT, max_iter=max_iter, tol=tol, balanced=balanced)


def gains(problem: BlockProblem, profiles: Profiles, table, log_marginal) -> np.ndarray:
    """Return what each point gains by going to each cluster, in nats."""
    gain = profiles.gain(*problem.terms(*table))
    return gain / problem.noise(*table) + log_marginal


def log_marginal(assignment: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return the logarithm of each cluster's share of the points; finite where it has none."""
    if assignment.ndim == 2:
        mass = assignment.sum(axis=0)
    else:
        mass = np.bincount(assignment, minlength=n_clusters).astype(np.float64)
    return np.log(np.maximum(mass / mass.sum(), 1e-300))


def soft_plan(gain: np.ndarray, temperature: float = 1.0) -> np.ndarray:
    """Return the semi-relaxed plan: each point spreads over the clusters on its own."""
    scaled = gain / temperature
    # Gains may be large beside their differences: shares are made to sum to one at the end.
    plan = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    return plan / plan.sum(axis=1, keepdims=True)


def balanced_plan(gain: np.ndarray, temperature: float = 1.0) -> np.ndarray:
    """Return the plan whose clusters all receive the same mass."""
    log_kernel = gain / temperature
    answer = sinkhorn(log_kernel, max_iter=100)
    return soft_plan(log_kernel + answer.log_column)


def share_out(plan: np.ndarray) -> np.ndarray:
    """Return hard labels whose clusters differ in size by one at most; the surest points first."""
    n_points, n_clusters = plan.shape
    room = np.full(n_clusters, n_points // n_clusters)
    n_larger = n_points % n_clusters
    order = np.argsort(-plan.max(axis=1), kind="stable")
    labels = np.empty(n_points, dtype=np.int64)
    for point in order:
        # A full cluster may take one point more while there are points left over.
        open_ = room > 0 if n_larger == 0 else room >= 0
        labels[point] = best = int(np.argmax(np.where(open_, plan[point], -1.0)))
        n_larger -= room[best] == 0
        room[best] -= 1
    return labels


def confidence(problem: BlockProblem, blocks: Blocks, axis: int) -> np.ndarray:
    """Return how far the soft plan of each point exceeds chance (0..1); 0 for empty points."""
    plan = _transport(problem, axis, blocks.labels, blocks.shape, 1.0, balanced=False)
    return excess_share(plan, blocks.labels[axis], problem.faces[axis].is_empty())


def excess_share(plan: np.ndarray, own: np.ndarray, is_empty: np.ndarray) -> np.ndarray:
    """Return how far the share of a point's own cluster exceeds chance; 0 for empty points."""
    n_clusters = plan.shape[1]
    share = plan[np.arange(len(own)), own]
    if n_clusters > 1:
        share = np.clip((share - 1 / n_clusters) / (1 - 1 / n_clusters), 0.0, 1.0)
    return np.where(is_empty, 0.0, share)


def _transport(
    problem: BlockProblem,
    axis: int,
    plans: tuple[np.ndarray, np.ndarray],
    shape: tuple[int, int],
    temperature: float,
    balanced: bool,
) -> np.ndarray:
    """One half sweep: estimate the blocks anew, then move the points of one side."""
    own, partner = plans[axis], plans[1 - axis]
    profiles = problem.faces[axis].profiles(partner, shape[1 - axis])
    marginal = np.zeros(shape[axis]) if balanced else log_marginal(own, shape[axis])
    gain = gains(problem, profiles, profiles.blocks(own, shape[axis]), marginal)
    if balanced:
        plan = balanced_plan(gain, temperature or 1.0)
        return plan if temperature else share_out(plan)
    return soft_plan(gain, temperature) if temperature else gain.argmax(axis=1)


def _hard(plan: np.ndarray, balanced: bool) -> np.ndarray:
    if plan.ndim == 1:
        return plan
    return share_out(plan) if balanced else plan.argmax(axis=1)


def _mass_moved(before: np.ndarray, after: np.ndarray) -> float:
    """Return the mass that changed clusters between two plans of a kind."""
    if before.ndim != after.ndim:
        return np.inf
    if before.ndim == 1:
        return float(np.count_nonzero(before != after))
    return 0.5 * float(np.abs(before - after).sum())
