"""Splits and merges of clusters: kept while a criterion improves, or until a number is met."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ccot.blocks.axes import Profiles, compact, set_apart
from ccot.blocks.criteria import Numbers, ranked
from ccot.blocks.hierarchy import pair_costs
from ccot.blocks.problem import BlockProblem, Blocks, information, make_blocks, relabel_side
from ccot.blocks.reproducibility import adjusted_rand
from ccot.blocks.spectrum import thin_svd
from ccot.persistence.registry import stored
from ccot.runtime.backends import to_numpy
from ccot.runtime.run import NO_CHECKPOINT, Checkpoint, in_threads
from ccot.runtime.types import Array

_MAX_MOVES = 30
# Moves worth a sweep: the best as they stand.
_N_TRIED = 4
_SPLIT_SWEEPS = 10


@stored()
@dataclass(frozen=True)
class Moved:
    """Blocks after some moves, their score, and whether these were the last."""

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
    """Accept the best split or merge while the criterion improves.

    It stops at partitions that are known to have no better one beside them.
    """

    def move(last: Moved) -> Moved:
        if any(_same_partitions(last.blocks, other) for other in known):
            return replace(last, is_last=True)
        labels, shape = last.blocks.labels, last.blocks.shape
        seen = [problem.axes[axis].profiles(labels[1 - axis], shape[1 - axis]) for axis in (0, 1)]
        proposals = ranked(_moves(problem, last.blocks, free, seen), criterion)
        settled = in_threads(
            partial(settle, seen=seen), proposals[:_N_TRIED], problem.backend.n_jobs
        )
        settled = ranked(settled, criterion)
        best = settled[0] if settled else last.blocks
        score = criterion(best)
        if not score > last.score + 1e-9 * abs(last.score):
            return replace(last, is_last=True)
        return Moved(best, score, last.n_moves + 1, is_last=last.n_moves + 1 == _MAX_MOVES)

    states = checkpoint.loop("move", Moved(blocks, criterion(blocks)), move)
    return next(state.blocks for state in states if state.is_last)


def _same_partitions(one: Blocks, other: Blocks) -> bool:
    """Tell whether two co-clusterings differ in the names of their clusters only."""
    pairs = zip(one.labels, other.labels, strict=True)
    return one.shape == other.shape and all(adjusted_rand(*pair) == 1.0 for pair in pairs)


def match_counts(problem: BlockProblem, blocks: Blocks, numbers: Numbers) -> Blocks:
    """Split or merge until each given number of clusters is met exactly."""
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
            # Equal points cannot be split by what they hold.
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


def _merge(problem: BlockProblem, blocks: Blocks, axis: int) -> Blocks:
    """Merge the cheapest pair of clusters of one side."""
    costs = pair_costs(problem, *blocks.table(axis))
    pair = np.unravel_index(np.argmin(costs), costs.shape)
    coarse = [np.arange(size) for size in blocks.shape]
    coarse[axis][pair[1]] = pair[0]
    coarse[axis] = compact(coarse[axis])
    return blocks.merged(coarse[0], coarse[1])


def _splits(
    problem: BlockProblem, blocks: Blocks, axis: int, profiles: Profiles
) -> Iterator[Blocks]:
    """Split each cluster in two along the leading direction of its members' block profiles."""
    own = blocks.labels[axis]
    for cluster in range(blocks.shape[axis]):
        members = np.flatnonzero(own == cluster)
        half = _two_way(problem, profiles.take(members)) if len(members) > 1 else None
        if half is not None:
            labels = own.copy()
            labels[members[half]] = blocks.shape[axis]
            yield relabel_side(blocks, profiles, axis, labels)


def _two_way(problem: BlockProblem, profiles: Profiles) -> np.ndarray | None:
    """Split points in two by the family's own likelihood; None where one half stays empty."""
    xp = profiles.backend.xp
    half = _leading_half(problem, profiles)
    for _ in range(_SPLIT_SWEEPS):
        if half.min() == half.max():
            return None
        gain = profiles.gain(*problem.terms(*profiles.blocks(half, 2)))
        moved = xp.argmax(gain, axis=1)
        if not xp.any(moved != half):
            break
        half = moved
    return None if half.min() == half.max() else to_numpy(half).astype(bool)


def _leading_half(problem: BlockProblem, profiles: Profiles) -> Array:
    xp, send = profiles.backend.xp, profiles.backend.send
    total, exposure = profiles.total, profiles.full_exposure()
    pooled = xp.sum(total, axis=0) / xp.clip(xp.sum(exposure, axis=0), 1e-300, None)
    residual = (total - exposure * pooled) / xp.sqrt(xp.clip(exposure, 1e-300, None))
    if problem.family == "poisson":
        residual /= xp.sqrt(xp.clip(xp.abs(pooled), 1e-12, None))
    leading = to_numpy(thin_svd(residual - xp.mean(residual, axis=0), profiles.backend)[0][:, 0])
    return send((leading > np.median(leading)).astype(np.int64))
