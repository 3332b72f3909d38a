"""Transport of rows, then of columns, onto blocks: see docs/blocks.md.

The marginals of clusters are free (semi-relaxed transport), so each plan has a closed form. If
balanced, they are equal, and plans need Sinkhorn scalings. At temperature 0, plans are hard.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from ccot.blocks.axes import Profiles, bring, mass
from ccot.blocks.problem import BlockProblem, Blocks, make_blocks
from ccot.runtime.backends import NUMPY, Backend, namespace, to_numpy
from ccot.runtime.types import Array
from ccot.transport.sinkhorn import sinkhorn


def sweep(
    problem: BlockProblem,
    blocks: Blocks,
    *,
    temperatures: Sequence[float] = (0.0,),
    max_iter: int = 30,
    tol: float = 0.0,
    balanced: bool = False,
    seen: Sequence[Profiles | None] = (None, None),
) -> Blocks:
    """Return blocks after transports of both sides until little moves, at each temperature."""
    # ``tol``: the share of the mass that may still move; ``seen``: profiles of similar blocks.
    send, shape = problem.backend.send, blocks.shape
    plans = send(blocks.labels[0]), send(blocks.labels[1])
    n_sweeps, seen = blocks.n_sweeps, list(seen)
    for temperature in temperatures:
        for _ in range(max_iter):
            before = plans
            for axis in (0, 1):
                view, partner = problem.axes[axis], plans[1 - axis]
                profiles = seen[axis] = view.profiles(partner, shape[1 - axis], seen[axis])
                own = _transport(problem, profiles, plans[axis], shape[axis], temperature, balanced)
                plans = (plans[0], own) if axis else (own, plans[1])
            n_sweeps += 1
            moved = sum(mass_moved(b, a) for b, a in zip(before, plans, strict=True))
            if moved <= tol * sum(problem.shape):
                break
    rows, columns = (_hard(plan, balanced, problem.backend) for plan in plans)
    found = make_blocks(problem, rows, columns, n_sweeps, seen)
    is_soft = plans[0].ndim == plans[1].ndim == 2
    return replace(found, plans=(plans[0], plans[1])) if is_soft else found


def settle(
    problem: BlockProblem, blocks: Blocks, max_iter: int = 30, tol: float = 1e-3, **options: Any
) -> Blocks:
    """Return blocks after sweeps at temperature 1, where overlapping clusters share points."""
    return sweep(problem, blocks, temperatures=(1,), max_iter=max_iter, tol=tol, **options)


def log_marginal(brought: Array, n_clusters: int, backend: Backend = NUMPY) -> Array:
    """Return the logarithm of each cluster's share of the points; finite for empty clusters."""
    held, xp = mass(brought, n_clusters, backend), namespace(brought)
    return xp.log(xp.clip(held / held.sum(), 1e-300, None))


def soft_plan(gain: Array, temperature: float = 1.0) -> Array:
    """Return the semi-relaxed plan: the shares of each point do not depend on other points."""
    xp = namespace(gain)
    # Gains may be much larger than their differences: shares are normalised at the end.
    # NumPy's maximum along a short axis is slow.
    best = reduce(np.maximum, gain.T)[:, None] if xp is np else xp.max(gain, axis=1, keepdims=True)
    plan = gain - best
    plan = xp.exp(plan if temperature == 1 else plan / temperature)
    plan /= xp.sum(plan, axis=1, keepdims=True)
    return plan


def balanced_plan(gain: Array, temperature: float = 1.0) -> Array:
    """Return the plan whose clusters all receive the same mass."""
    log_kernel = gain / temperature
    return soft_plan(log_kernel + sinkhorn(log_kernel, max_iter=100).log_column)


def share_out(plan: np.ndarray) -> np.ndarray:
    """Return labels of clusters whose sizes differ by at most one; the surest points come first."""
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


def assign(
    problem: BlockProblem, blocks: Blocks, axis: int, balanced: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return the best clusters of points, given the blocks, and their confidence."""
    held, own = blocks.assignments, blocks.labels[axis]
    profiles = problem.axes[axis].profiles(held[1 - axis], blocks.shape[1 - axis])
    plan = _transport(problem, profiles, held[axis], blocks.shape[axis], 1.0)
    labels = to_numpy(plan.argmax(axis=1))
    if balanced or not np.bincount(labels, minlength=blocks.shape[axis]).all():
        labels = own
    # A plan of soft sweeps has more information than one computed from its blocks only.
    plan = held[axis] if held[axis].ndim == 2 else plan
    return labels, excess_share(plan, labels, problem.axes[axis].is_empty())


def excess_share(plan: Array, own: np.ndarray, is_empty: np.ndarray) -> np.ndarray:
    """Return how far the share of a point's own cluster exceeds chance; 0 for empty points."""
    n_clusters = plan.shape[1]
    share = to_numpy(plan[np.arange(len(own)), own])
    if n_clusters > 1:
        share = np.clip((share - 1 / n_clusters) / (1 - 1 / n_clusters), 0.0, 1.0)
    return np.where(is_empty, 0.0, share)


def _transport(
    problem: BlockProblem,
    profiles: Profiles,
    own: Array,
    n_clusters: int,
    temperature: float,
    balanced: bool = False,
) -> Array:
    """Return the plan of one side after half a sweep: new blocks, then the points move."""
    # Tables of blocks stay on the device of the points, so that nothing waits for copies.
    own = bring(profiles.backend, own, n_clusters)
    terms = problem.terms_in_nats(*profiles.sums(own, n_clusters))
    if balanced:
        plan = balanced_plan(profiles.gain(*terms), temperature or 1.0)
        return plan if temperature else profiles.backend.send(share_out(to_numpy(plan)))
    xp, marginal = profiles.backend.xp, log_marginal(own, n_clusters, profiles.backend)

    def move(part: Profiles) -> Array:
        gain = part.gain(*terms, marginal)
        return soft_plan(gain, temperature) if temperature else xp.argmax(gain, axis=1)

    return profiles.by_rows(move, n_clusters)


def _hard(plan: Array, balanced: bool, backend: Backend) -> np.ndarray:
    if plan.ndim == 2 and balanced:
        return share_out(to_numpy(plan))
    if plan.ndim == 2:
        plan = backend.by_rows(lambda part: part.argmax(axis=1), plan)
    return to_numpy(plan)


def mass_moved(before: Array, after: Array) -> Array:
    """Return the mass that changed clusters between two plans; infinite if only one is soft."""
    if before.ndim != after.ndim:
        return np.inf
    xp = namespace(after)
    if before.ndim == 1:
        return xp.count_nonzero(before != after)
    return 0.5 * xp.sum(xp.abs(before - after))
