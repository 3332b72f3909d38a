"""Splits and merges of clusters, while a criterion improves or until a number is reached."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ccot.blocks.axes import Profiles, bring, compact, mass, set_apart
from ccot.blocks.criteria import Numbers, ranked
from ccot.blocks.hierarchy import pair_costs
from ccot.blocks.problem import BlockProblem, Blocks, information, make_blocks
from ccot.persistence.registry import stored
from ccot.runtime.backends import to_numpy
from ccot.runtime.run import NO_CHECKPOINT, Checkpoint, in_threads
from ccot.runtime.types import Array

_MAX_MOVES = 30
# Moves that are swept: those with the best scores before the sweeps.
_N_TRIED = 4
# Most splits that are also tried together, if each improves the score before the sweeps.
_N_JOINT = 16
_SPLIT_SWEEPS = 10


@stored()
@dataclass(frozen=True)
class Moved:
    """Blocks after some moves, their score, and whether no further move follows."""

    blocks: Blocks
    score: float
    n_moves: int = 0
    is_last: bool = False


def refine(
    problem: BlockProblem,
    blocks: Blocks,
    criterion: Callable[[Blocks], float],
    settle: Callable[..., Blocks],
    free: tuple[bool, bool],
    checkpoint: Checkpoint = NO_CHECKPOINT,
    known: Sequence[Blocks] = (),
) -> Blocks:
    """Return blocks after the best splits and merges, until none improves or they are known."""

    def move(last: Moved) -> Moved:
        if any(same_partitions(last.blocks, other) for other in known):
            return replace(last, is_last=True)
        labels, shape = last.blocks.labels, last.blocks.shape
        seen = [problem.axes[axis].profiles(labels[1 - axis], shape[1 - axis]) for axis in (0, 1)]
        found = list(_moves(problem, last.blocks, free, seen))
        scores = {id(one): criterion(one) for one in found}
        proposals = ranked(found, lambda one: scores[id(one)])
        better = [one for one in proposals[:_N_JOINT] if scores[id(one)] > last.score]
        tried = [*_jointly(problem, last.blocks, better), *proposals[:_N_TRIED]]
        settled = in_threads(partial(settle, seen=seen), tried, problem.backend.n_jobs)
        settled = ranked(settled, criterion)
        best = settled[0] if settled else last.blocks
        score = criterion(best)
        if not score > last.score + 1e-9 * abs(last.score):
            return replace(last, is_last=True)
        return Moved(best, score, last.n_moves + 1, is_last=last.n_moves + 1 == _MAX_MOVES)

    states = checkpoint.loop("move", Moved(blocks, criterion(blocks)), move)
    return next(state.blocks for state in states if state.is_last)


def same_partitions(one: Blocks, other: Blocks) -> bool:
    """Return True if two co-clusterings are equal, except for the numbering of clusters."""
    sides = zip(one.labels, other.labels, one.shape, strict=True)
    return one.shape == other.shape and all(
        np.count_nonzero(np.bincount(own * size + names)) == size for own, names, size in sides
    )


def match_counts(problem: BlockProblem, blocks: Blocks, numbers: Numbers) -> Blocks:
    """Return blocks, split or merged until they have exactly each given number of clusters."""
    for axis, target in enumerate(numbers):
        while target is not None and blocks.shape[axis] > target:
            blocks = _merge(problem, blocks, axis)
        while target is not None and blocks.shape[axis] < target:
            other = 1 - axis
            profiles = problem.axes[axis].profiles(blocks.labels[other], blocks.shape[other])
            splits = _splits(problem, blocks, axis, profiles)
            if splits := ranked(splits, partial(information, problem)):
                blocks = splits[0]
                continue
            # Equal points cannot be split by their values.
            labels = set_apart(blocks.labels[axis], blocks.shape[axis] + 1)
            blocks = make_blocks(problem, *blocks.relabelled(axis, labels))
    return blocks


def _moves(
    problem: BlockProblem, blocks: Blocks, free: tuple[bool, bool], seen: Sequence[Profiles]
) -> Iterator[Blocks]:
    for axis in (0, 1):
        if free[axis]:
            if blocks.shape[axis] > 1:
                yield _merge(problem, blocks, axis)
            yield from _splits(problem, blocks, axis, seen[axis])


def _jointly(problem: BlockProblem, blocks: Blocks, moves: list[Blocks]) -> list[Blocks]:
    """Return one move that makes all splits among ``moves``; none if they are fewer than two."""
    labels, shape = [own.copy() for own in blocks.labels], list(blocks.shape)
    for moved in moves:
        for axis, (size, own) in enumerate(zip(blocks.shape, moved.labels, strict=True)):
            if moved.shape[axis] > size:
                labels[axis][own == size] = shape[axis]
                shape[axis] += 1
    several = sum(shape) > sum(blocks.shape) + 1
    return [make_blocks(problem, labels[0], labels[1])] if several else []


def _merge(problem: BlockProblem, blocks: Blocks, axis: int) -> Blocks:
    """Return blocks in which the cheapest pair of clusters of one side is merged."""
    costs = pair_costs(problem, *blocks.table(axis))
    pair = np.unravel_index(np.argmin(costs), costs.shape)
    coarse = [np.arange(size) for size in blocks.shape]
    coarse[axis][pair[1]] = pair[0]
    coarse[axis] = compact(coarse[axis])
    return blocks.merged(coarse[0], coarse[1])


def _splits(
    problem: BlockProblem, blocks: Blocks, axis: int, profiles: Profiles
) -> Iterator[Blocks]:
    """Yield, for each cluster of one side, blocks in which it is split in two."""
    own, n_clusters = blocks.labels[axis], blocks.shape[axis]
    half = _halve(problem, profiles, own, n_clusters)
    names = 2 * own + half
    halves = profiles.blocks(names, 2 * n_clusters)
    sizes = np.bincount(names, minlength=2 * n_clusters)
    for cluster in np.flatnonzero((sizes[::2] > 0) & (sizes[1::2] > 0)).tolist():
        labels = np.where(names == 2 * cluster + 1, n_clusters, own)
        total, exposure = (_with_split(table, cluster) for table in halves)
        table = (total.T, exposure.T) if axis else (total, exposure)
        yield Blocks(blocks.relabelled(axis, labels), *table)


def _with_split(halves: np.ndarray, cluster: int) -> np.ndarray:
    """Return a table of clusters with one of them split; its second half comes last."""
    table = np.vstack([halves[::2] + halves[1::2], halves[2 * cluster + 1]])
    table[cluster] = halves[2 * cluster]
    return table


def _halve(
    problem: BlockProblem, profiles: Profiles, labels: np.ndarray, n_clusters: int
) -> np.ndarray:
    """Return the half of its cluster, 0 or 1, that each point is in, by the family's likelihood."""
    backend, xp = profiles.backend, profiles.backend.xp
    own, whole = backend.send(labels), backend.send(np.zeros(n_clusters, bool))
    half = _leading_half(problem, profiles, own, n_clusters)
    for _ in range(_SPLIT_SWEEPS):
        names = bring(backend, 2 * own + half, 2 * n_clusters)
        sizes = mass(names, 2 * n_clusters, backend)
        # A cluster with an empty half stays whole.
        whole = whole | (sizes[::2] == 0) | (sizes[1::2] == 0)
        terms = problem.terms(*profiles.sums(names, 2 * n_clusters))
        natural, cumulant = (term[1::2] - term[::2] for term in terms)
        own_gain = partial(Profiles.own_gain, natural=natural, cumulant=cumulant)
        gain = profiles.by_rows(own_gain, n_clusters, own)
        moved = xp.where(whole[own], 0, xp.astype(gain > 0, half.dtype))
        if not bool(xp.any(moved != half)):
            break
        half = moved
    return to_numpy(half)


def _leading_half(problem: BlockProblem, profiles: Profiles, own: Array, n_clusters: int) -> Array:
    """Return 1 for points above the middle of their cluster in its leading direction, else 0."""
    xp, send, fetch = profiles.backend.xp, profiles.backend.send, profiles.backend.fetch
    order = xp.argsort(own, stable=True)
    brought = bring(profiles.backend, own, n_clusters)
    ends = np.cumsum(fetch(mass(brought, n_clusters, profiles.backend))).astype(np.intp)
    parts = [slice(*pair) for pair in zip(np.append(0, ends[:-1]), ends, strict=True)]
    total, exposure = profiles.sums(brought, n_clusters)
    means = total / xp.clip(exposure, 1e-300, None)
    profiles, own = profiles.take(order), own[order]
    exposure = profiles.full_exposure()
    residual = profiles.total - exposure * means[own]
    residual /= xp.sqrt(xp.clip(exposure, 1e-300, None))
    if problem.family == "poisson":
        residual /= xp.sqrt(xp.clip(xp.abs(means), 1e-12, None))[own]
    products = []
    for part in parts:
        residual[part] -= xp.mean(residual[part], axis=0)
        products.append(residual[part].T @ residual[part])
    # The leading left singular vectors are computed from the right ones, which are short.
    leading = np.linalg.eigh(fetch(xp.stack(products)))[1][:, :, -1]
    scores = xp.sum(residual * send(leading)[own], axis=1)
    known = fetch(scores)
    limits = np.array([_middle(known[part]) for part in parts])
    half = xp.empty_like(own)
    half[order] = xp.astype(scores > send(limits)[own], own.dtype)
    return half


def _middle(scores: np.ndarray) -> float:
    """Return the median; if it is the highest score, the next lower one."""
    median = np.median(scores)
    if median < scores.max():
        return median
    lower = scores[scores < median]
    return lower.max() if len(lower) else median
