"""Choice of the numbers of clusters: by ICL if it can be trusted, else by reproducibility."""

from dataclasses import dataclass, replace

import numpy as np

from ccot.blocks.axes import n_entries
from ccot.blocks.criteria import Candidate, Numbers, best_cuts, evidence, jump_scores, mean_costs
from ccot.blocks.hierarchy import Start
from ccot.blocks.problem import BlockProblem, Blocks, make_blocks, pearson_dispersion
from ccot.blocks.reproducibility import Halves, can_be_halved, cut_once, fit_halves, with_noise
from ccot.blocks.start import n_segments
from ccot.blocks.sweep import settle
from ccot.persistence.registry import stored
from ccot.runtime.backends import is_device_csr
from ccot.runtime.run import Run

# ICL is trusted if its number of clusters is at most this share of the finest clusters.
_TRUSTED_SHARE = 0.25
N_CANDIDATES = 10
# Most numbers of row clusters that are fitted, most matrix entries over all these fits, and the
# largest distance of their cuts from the halves, relative to the smallest.
_MOST_FINALISTS, _FINALIST_ENTRIES, _FINALIST_DISTANCE = 6, 2**22, 1.2
# Nats by which a swept cut must beat a single block, if no cut does before the sweeps.
_CLEAR = 5.0
# Starts whose cuts are swept for this.
_N_FAINT = 3


@stored()
@dataclass(frozen=True)
class Selection:
    """The numbers of clusters to fit, and what they were chosen by."""

    # Of each side, best first; empty if a search by likelihood chooses the numbers.
    finalists: tuple[tuple[int, ...], tuple[int, ...]]
    candidates: tuple[Candidate, ...]
    halves: tuple[Halves | None, Halves | None] = (None, None)


@dataclass(frozen=True)
class _Side:
    """The best numbers of one side, the scores they were chosen by, and the halves."""

    finalists: tuple[int, ...]
    scores: dict[int, float]
    halves: Halves | None = None


def select_numbers(
    problem: BlockProblem, starts: list[Start], given: Numbers, criterion: str, run: Run
) -> Selection:
    """Return the numbers of clusters to fit.

    If ICL chooses too many of the finest clusters, its number is only an upper bound. Then the
    number is chosen at which halves of the data find the same clusters, and merge costs jump.
    """
    if not (_has_structure(problem, starts) or _has_faint_structure(problem, starts)):
        return _select_without_structure(problem, starts, given, criterion, run)
    limit, trusted = trust_icl(problem, starts)
    if criterion == "icl" or (all(trusted) and criterion != "reproducibility"):
        cuts = [best_cuts(problem, s.fine, s.hierarchy, given) for s in starts]
        return Selection(((), ()), _best_of(cuts))
    sides = []
    for axis, number in enumerate(given):
        if trusted[axis] and criterion != "reproducibility":
            chosen = limit[axis] if number is None else number
            sides.append(_Side((chosen,), {limit[axis]: 0.0}))
            continue
        most = starts[0].fine.shape[axis] if trusted[axis] else limit[axis]
        sides.append(_select_side(problem, starts, axis, number, most, criterion, run))
    is_halved = any(side.halves is not None for side in sides)
    return _join(sides, "reproducibility" if is_halved else "jump")


def _select_side(
    problem: BlockProblem,
    starts: list[Start],
    axis: int,
    given: int | None,
    limit: int,
    criterion: str,
    run: Run,
) -> _Side:
    """Return the number of one side, by halves of the other or by jumps of merge costs only."""
    costs = mean_costs([start.hierarchy for start in starts], axis)
    scores = jump_scores(costs, limit) or {limit: 0.0}
    # A given number is checked only on request.
    wanted = criterion == "reproducibility" or (criterion == "auto" and given is None)
    numbers = [*(k for k in scores if k > 1), *([given] if (given or 1) > 1 else [])]
    halves = None
    if wanted and numbers and can_be_halved(problem):
        halves = fit_halves(problem, axis, numbers, run)
        scores = halves.scores(scores) or scores
        halves = halves if len(halves.numbers) else None
    if given is not None:
        return _Side((given,), scores, halves if given > 1 else None)
    # The partition of columns nearest to the halves' would be too coarse to separate rows.
    if axis or halves is None:
        return _Side((max(scores, key=lambda k: scores[k]),), scores, halves)
    halves, cuts = halves.weighed(scores), cut_once(problem, starts[0], axis, halves.numbers)
    # A coarse partition is near to any other, even if halves do not find it again.
    far = np.where(halves.supported, [halves.distance(cut) for cut in cuts], np.inf)
    near = [i for i in np.argsort(far, kind="stable") if far[i] <= _FINALIST_DISTANCE * far.min()]
    size = max(n_entries(problem.axes[0].values), 1)
    n_fits = np.clip(_FINALIST_ENTRIES // size, 1, _MOST_FINALISTS)
    return _Side(tuple(halves.numbers[near[:n_fits]].tolist()), scores, halves)


def _select_without_structure(
    problem: BlockProblem, starts: list[Start], given: Numbers, criterion: str, run: Run
) -> Selection:
    """Return a single block, unless halves of the data agree clearly better than noise."""
    flat = given[0] or 1, given[1] or 1
    single = Selection(((flat[0],), (flat[1],)), (Candidate(*flat, 0.0, "icl"),))
    if criterion not in ("auto", "reproducibility") or not can_be_halved(problem):
        return single
    finest = starts[0].fine.shape
    sides = [
        _select_side(problem, starts, axis, number, finest[axis], "reproducibility", run)
        for axis, number in enumerate(given)
    ]
    halves = [
        None if side.halves is None else with_noise(problem, axis, side.halves, run)
        for axis, side in enumerate(sides)
    ]
    if any(half is not None and half.is_clear for half in halves):
        sides = [replace(side, halves=half) for side, half in zip(sides, halves, strict=True)]
        return _join(sides, "reproducibility")
    asked = (half if number else None for half, number in zip(halves, given, strict=True))
    return replace(single, halves=tuple(asked))


def _join(sides: list[_Side], criterion: str) -> Selection:
    """Return all pairs of numbers of both sides; the chosen pair comes first."""
    rows, columns = sides
    chosen = rows.finalists[0], columns.finalists[0]
    pairs = [
        Candidate(g, m, rows.scores.get(g, 0.0) + columns.scores.get(m, 0.0), criterion)
        for g in set(rows.scores) | {chosen[0]}
        for m in set(columns.scores) | {chosen[1]}
    ]
    pairs.sort(key=lambda c: (c.numbers != chosen, -c.score))
    finalists, halves = (rows.finalists, columns.finalists), (rows.halves, columns.halves)
    return Selection(finalists, tuple(pairs), halves)


def _has_structure(problem: BlockProblem, starts: list[Start]) -> bool:
    """Return True if any cut beats a single block, with the dispersion without clusters."""
    # With the dispersion of the finest clusters, which fit some noise, noise looks like structure.
    cautious = problem.with_dispersion(pearson_dispersion(problem))
    best = (best_cuts(cautious, start.fine, start.hierarchy)[0] for start in starts)
    return any(cut.numbers != (1, 1) for cut in best)


def _has_faint_structure(problem: BlockProblem, starts: list[Start]) -> bool:
    """Return True if one of the best cuts beats a single block after sweeps."""
    if problem.family != "gaussian":
        return False
    rows, columns = (np.zeros(n_points, np.int64) for n_points in problem.shape)
    floor = evidence(problem, make_blocks(problem, rows, columns)) + _CLEAR
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
    """Return the numbers with the highest ICL, and whether each is far below the finest one."""
    fine = starts[0].fine
    limit = best_cuts(problem, fine, starts[0].hierarchy)[0].numbers
    rows, columns = (
        number <= max(_TRUSTED_SHARE * fine.shape[axis], 2) or _holds_equals(problem, fine, axis)
        for axis, number in enumerate(limit)
    )
    return limit, (rows, columns)


def _holds_equals(problem: BlockProblem, fine: Blocks, axis: int) -> bool:
    """Return True if there are no finer clusters, because the points of each cluster are equal."""
    values, labels = problem.axes[axis].values, fine.labels[axis]
    if fine.shape[axis] >= n_segments(len(labels)) or is_device_csr(values):
        return False
    apart = abs(values - values[np.unique(labels, return_index=True)[1]][labels])
    return bool(apart.max() <= 1e-9 * abs(values).max())


def _best_of(cuts: list[list[Candidate]]) -> tuple[Candidate, ...]:
    best: dict[tuple[int, int], Candidate] = {}
    for found in (candidate for start in cuts for candidate in start):
        if found.numbers not in best or best[found.numbers].score < found.score:
            best[found.numbers] = found
    return tuple(sorted(best.values(), key=lambda c: -c.score)[:N_CANDIDATES])


def led_by(found: Candidate, others: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
    """Return candidates with the result of the search first, even if a cut had a better score."""
    rest = tuple(other for other in others if other.numbers != found.numbers)
    return (found, *rest)[:N_CANDIDATES]
