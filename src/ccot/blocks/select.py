"""Which numbers of clusters: what ICL says where it can be trusted, else where costs jump."""

from __future__ import annotations

import numpy as np

from ccot.blocks.criteria import (
    Candidate,
    Numbers,
    best_cuts,
    evidence,
    jump_scores,
    mean_costs,
)
from ccot.blocks.hierarchy import Start
from ccot.blocks.problem import BlockProblem, make_blocks, pearson_dispersion
from ccot.blocks.sweep import settle

# ICL is trusted to name the numbers where it stops at this share of the over-segmentation.
_TRUSTED_SHARE = 0.25
_N_CANDIDATES = 10
# Nats by which a co-clustering must beat a single block where no cut does before it is swept.
_CLEAR = 5.0
# Starts that are looked at for it.
_N_FAINT = 3


def select_numbers(
    problem: BlockProblem, starts: list[Start], given: Numbers, criterion: str
) -> tuple[Numbers, tuple[Candidate, ...]]:
    """Return numbers of clusters, or None on both sides where ICL is to settle them by search.

    ICL bounds the numbers from above. Where it stops well short of the over-segmentation, finer
    clusters are noise and it is right; where it takes nearly all it is offered, the matrix has
    structure at every scale, and the jump of the merge costs names the scale that stands out.
    """
    if not (_has_structure(problem, starts) or _has_faint_structure(problem, starts)):
        flat = given[0] or 1, given[1] or 1
        return flat, (Candidate(*flat, 0.0, "icl"),)
    limit, trusted = trust_icl(problem, starts)
    if criterion == "icl" or all(trusted):
        cuts = [best_cuts(problem, s.fine, s.hierarchy, given) for s in starts]
        return (None, None), _best_of(cuts)
    numbers, scores = [], []
    for axis, number in enumerate(given):
        side = {limit[axis]: 0.0}
        if not trusted[axis]:
            costs = mean_costs([start.hierarchy for start in starts], axis)
            side = jump_scores(costs, limit[axis]) or side
        numbers.append(max(side, key=lambda k: side[k]) if number is None else number)
        scores.append(side)
    chosen = numbers[0], numbers[1]
    return chosen, _pair_up(scores, chosen)


def _has_structure(problem: BlockProblem, starts: list[Start]) -> bool:
    """Tell whether any cut beats a single block, the dispersion being that of no clusters at all.

    The finest clusters have fitted some of the noise: their dispersion would make the rest look
    like structure.
    """
    cautious = problem.with_dispersion(pearson_dispersion(problem))
    best = (best_cuts(cautious, start.fine, start.hierarchy)[0] for start in starts)
    return any(cut.numbers != (1, 1) for cut in best)


def _has_faint_structure(problem: BlockProblem, starts: list[Start]) -> bool:
    """Tell whether the best cuts beat a single block once they have been swept.

    Under strong noise clusters emerge only when rows and columns have settled on one another.
    """
    if problem.family != "gaussian":
        return False
    n_rows, n_columns = problem.shape
    flat = make_blocks(problem, np.zeros(n_rows, np.int64), np.zeros(n_columns, np.int64))
    floor = evidence(problem, flat) + _CLEAR
    return any(
        evidence(problem, settle(problem, start.cut(cut.numbers))) > floor
        for start in starts[:_N_FAINT]
        for cut in crossed(best_cuts(problem, start.fine, start.hierarchy))
    )


def crossed(cuts: list[Candidate], n_best: int = 2) -> list[Candidate]:
    """Return the best cuts that split both sides."""
    return [cut for cut in cuts if min(cut.numbers) > 1][:n_best]


def trust_icl(
    problem: BlockProblem, starts: list[Start]
) -> tuple[tuple[int, int], tuple[bool, bool]]:
    """Return the numbers of highest ICL, and whether each is well short of the finest one."""
    limit = best_cuts(problem, starts[0].fine, starts[0].hierarchy)[0].numbers
    finest = starts[0].fine.shape
    rows, columns = (
        number <= max(_TRUSTED_SHARE * most, 2) for number, most in zip(limit, finest, strict=True)
    )
    return limit, (rows, columns)


def _best_of(cuts: list[list[Candidate]]) -> tuple[Candidate, ...]:
    best: dict[tuple[int, int], Candidate] = {}
    for found in (candidate for start in cuts for candidate in start):
        if found.numbers not in best or best[found.numbers].score < found.score:
            best[found.numbers] = found
    return tuple(sorted(best.values(), key=lambda c: -c.score)[:_N_CANDIDATES])


def led_by(found: Candidate, others: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
    """Put first what the search ended at, which need not be the best of the cuts it began with."""
    rest = tuple(other for other in others if other.numbers != found.numbers)
    return (found, *rest)[:_N_CANDIDATES]


def _pair_up(scores: list[dict[int, float]], chosen: tuple[int, int]) -> tuple[Candidate, ...]:
    pairs = [
        Candidate(g, m, scores[0].get(g, 0.0) + scores[1].get(m, 0.0), "jump")
        for g in set(scores[0]) | {chosen[0]}
        for m in set(scores[1]) | {chosen[1]}
    ]
    pairs.sort(key=lambda c: (c.numbers != chosen, -c.score))
    return tuple(pairs[:_N_CANDIDATES])
