"""How many clusters: integrated completed likelihood, evidence, and jumps of the merge costs.

ICL penalises the entropy of soft assignments and every block mean in full; evidence does neither.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln, xlogy

from ccot.blocks.families import Terms
from ccot.blocks.hierarchy import Hierarchy
from ccot.blocks.problem import BlockProblem, Blocks
from ccot.blocks.tap import TapCorrection, reacts, tap_correction
from ccot.persistence.registry import stored
from ccot.runtime.backends import namespace, to_numpy
from ccot.runtime.types import Array

Numbers = tuple[int | None, int | None]

# Merge costs averaged on each side of a jump.
_WINDOW = 3
# Best cuts that are returned: more than there are cuts with a single cluster on one side.
_N_CUTS = 256
# Variances of the block means that are tried.
_N_PRIORS = 60
# Smallest eigenvalue of overlaps that counts: clusters that overlap more hardly differ.
_LEAST_KNOWN = 0.5
# Relative difference of scores that may be rounding.
_ROUNDING = 1e-9


@stored()
@dataclass(frozen=True)
class Candidate:
    """A pair of numbers of clusters, and its score: larger is better within one criterion."""

    n_row_clusters: int
    n_column_clusters: int
    score: float
    criterion: str  # "icl", "jump" or "reproducibility"

    @property
    def numbers(self) -> tuple[int, int]:
        """Numbers of row and column clusters."""
        return self.n_row_clusters, self.n_column_clusters


def icl(problem: BlockProblem, blocks: Blocks) -> float:
    """Return the integrated completed likelihood of a co-clustering, up to a constant."""
    sizes = map(np.bincount, blocks.labels)
    partitions = sum(float(xlogy(n, n / n.sum()).sum()) for n in sizes)
    likelihood = log_likelihood(problem, problem.information(blocks.total, blocks.exposure).sum())
    return float(likelihood + partitions - _price(blocks.shape, problem, labels=True))


def bic(problem: BlockProblem, blocks: Blocks) -> float:
    """Return the Bayesian information criterion given the labels; larger is better."""
    likelihood = log_likelihood(problem, problem.information(blocks.total, blocks.exposure).sum())
    return float(likelihood - _price(blocks.shape, problem, labels=False))


def evidence(problem: BlockProblem, blocks: Blocks) -> float:
    """Return the log integrated likelihood of a gaussian co-clustering; ICL of other families."""
    # Hard labels give a lower bound; soft plans do, too, except for the reaction.
    if problem.family != "gaussian":
        return icl(problem, blocks)
    row_sizes, column_sizes = (np.bincount(labels) for labels in blocks.labels)
    hard = _bound(problem, (blocks.total, blocks.exposure), (row_sizes, column_sizes))
    if blocks.plans is None:
        return hard
    rows, columns = blocks.plans
    table = problem.table(rows, columns, (rows.shape[1], columns.shape[1]))
    masses = to_numpy(rows.sum(axis=0)), to_numpy(columns.sum(axis=0))
    soft = _bound(problem, table, masses) + _entropy(rows) + _entropy(columns)
    if reacts(problem, blocks):
        soft += _gain_by_reaction(problem, table, tap_correction(problem, blocks.plans))
    return max(hard, soft)


def _gain_by_reaction(problem: BlockProblem, table: Terms, reaction: TapCorrection) -> float:
    """Return what the evidence of soft plans gains by the reaction of rows and columns."""
    total, exposure = table
    information = float(problem.information(total, exposure).sum())
    gain = log_likelihood(problem, 0.5 * reaction.explained) - log_likelihood(problem, information)
    means = _log_prior_of_means(problem, reaction.means * exposure, exposure)
    gain += means - _log_prior_of_means(problem, total, exposure)
    # Sizes overstate how well the shares of overlapping clusters are known: less is subtracted.
    for overlap in reaction.overlaps:
        scale = 1 / np.sqrt(overlap.sum(axis=1))
        known = np.linalg.eigvalsh(scale[:, None] * overlap * scale)
        gain -= 0.5 * float(np.log(np.maximum(known, _LEAST_KNOWN)).sum())
    return gain


def _entropy(plan: Array) -> float:
    xp = namespace(plan)
    return -float(xp.sum(plan * xp.log(xp.clip(plan, 1e-300, None))))


def _bound(problem: BlockProblem, table: Terms, masses: tuple[np.ndarray, np.ndarray]) -> float:
    """Return the evidence of assignments with these block statistics, without their entropy."""
    likelihood = log_likelihood(problem, problem.information(*table).sum())
    partitions = sum(map(log_partition, masses))
    return float(likelihood + partitions + _log_prior_of_means(problem, *table))


def log_partition(mass: np.ndarray) -> float:
    """Return the log-likelihood of cluster sizes, in any order, integrated over all shares."""
    held = mass[mass > 0.5]
    n_points, n_clusters = held.sum(), len(held)
    shares = gammaln(n_clusters) + gammaln(held + 1).sum() - gammaln(n_points + n_clusters)
    # Clusters have no order: each order of the labels is the same partition.
    return float(shares + gammaln(n_clusters + 1))


def _log_prior_of_means(problem: BlockProblem, total: np.ndarray, exposure: np.ndarray) -> float:
    """Return the change from integrating over block means, at the likeliest prior variance."""
    held = exposure > 1e-9 * exposure.sum()
    if np.count_nonzero(held) < 2:
        return 0.0
    variance = problem.noise(total, exposure) / exposure[held]
    deviation = (total[held] / exposure[held] - total.sum() / exposure.sum()) ** 2
    largest = max(float(deviation.max()), float(variance.min()))
    prior = np.geomspace(1e-3 * float(variance.min()), largest, _N_PRIORS)[:, None]
    log_prior = -0.5 * (np.log1p(prior / variance) + deviation / (prior + variance)).sum(axis=1)
    return float(log_prior.max() - 0.5 * np.log(variance.size))


def ranked(found: Iterable[Blocks], score: Callable[[Blocks], float]) -> list[Blocks]:
    """Return co-clusterings sorted by a score, highest first."""
    # Scores that differ by rounding keep their order, so that labels do not depend on the machine.
    found = list(found)
    scores = [score(blocks) for blocks in found]
    order: list[int] = []
    equal: list[int] = []
    for index in sorted(range(len(found)), key=lambda index: -scores[index]):
        if equal and scores[equal[0]] - scores[index] > _ROUNDING * abs(scores[equal[0]]):
            order, equal = order + sorted(equal), []
        equal.append(index)
    return [found[index] for index in order + sorted(equal)]


def is_saturated(problem: BlockProblem, shape: tuple[int, int]) -> bool:
    """Return True if blocks have fewer than two entries on average, too few for a criterion."""
    n_blocks = shape[0] * shape[1]
    return n_blocks > 1 and 2 * n_blocks > problem.n_observed


def log_likelihood(problem: BlockProblem, information):
    """Return maximised log-likelihoods, up to a constant of the data."""
    if problem.family != "gaussian":
        return information / problem.dispersion
    return -0.5 * problem.n_observed * np.log(problem.noise_left(2.0 * information))


def best_cuts(
    problem: BlockProblem, blocks: Blocks, hierarchy: Hierarchy, given: Numbers = (None, None)
) -> list[Candidate]:
    """Return the pairs of cuts of a hierarchy with the highest ICL, best first."""
    (rows, row_parts), (columns, column_parts) = (hierarchy.nodes(axis) for axis in (0, 1))
    table = (rows @ part @ columns.T for part in (blocks.total, blocks.exposure))
    held = _by_level(_by_level(problem.information(*table), row_parts).T, column_parts)
    row_shares, column_shares = (
        _by_level(xlogy(sizes, sizes / len(labels)), parts)
        for labels, sizes, parts in (
            (blocks.labels[0], rows @ np.bincount(blocks.labels[0]), row_parts),
            (blocks.labels[1], columns @ np.bincount(blocks.labels[1]), column_parts),
        )
    )
    # Numbers of row clusters along the second axis, of column clusters along the first.
    g, m = np.arange(1, len(row_shares) + 1), np.arange(1, len(column_shares) + 1)[:, None]
    scores = log_likelihood(problem, held) + row_shares + column_shares[:, None]
    scores = scores - _price((g, m), problem, labels=True)
    allowed = (g * m == 1) | (2 * g * m <= problem.n_observed) | (given != (None, None))
    for number, wanted in zip((g, m), given, strict=True):
        allowed = allowed & (wanted is None or number == min(wanted, number.size))
    order = np.argsort(-scores, axis=None, kind="stable")
    order = order[allowed.ravel()[order]][:_N_CUTS]
    pairs = zip(*np.unravel_index(order, scores.shape), strict=True)
    return [Candidate(int(i) + 1, int(j) + 1, float(scores[j, i]), "icl") for j, i in pairs]


def jump_scores(costs: np.ndarray, limit: int) -> dict[int, float]:
    """Return how far merge costs drop at each number of clusters, beyond their usual decay.

    Entry k - 2 of the costs is that of going from k to k - 1 clusters; without structure it falls
    about like 1 / (k - 1). The score of k is the drop of the logarithm of cost times (k - 1), from
    the first three merges that a cut at k does not make to the last three that it makes.

    Examples
    --------
    >>> import numpy as np
    >>> scores = jump_scores(np.array([9.0, 5.0, 0.1, 0.08, 0.05, 0.04, 0.03]), limit=7)
    >>> max(scores, key=scores.get)
    3
    """
    if not len(costs):
        return {}
    order = np.arange(1, len(costs) + 1)
    level = np.log(np.maximum(costs, 1e-12 * costs.max() + 1e-300)) + np.log(order)
    # Merges in the lower half of the tree only undo the over-segmentation.
    last = min(limit, (len(costs) + 1) // 2)
    return {
        k + 1: float(level[max(k - _WINDOW, 0) : k].mean() - level[k : k + _WINDOW].mean())
        for k in range(1, last)
    }


def mean_costs(hierarchies: Sequence[Hierarchy], axis: int) -> np.ndarray:
    """Return the geometric mean of the merge costs of several starts."""
    every = [hierarchy.costs(axis) for hierarchy in hierarchies]
    length = min(len(costs) for costs in every)
    if not length:
        return np.empty(0)
    floor = 1e-12 * max(costs.max() for costs in every) + 1e-300
    return np.exp(np.mean([np.log(np.maximum(c[:length], floor)) for c in every], axis=0))


def _price(shape: tuple[Any, Any], problem: BlockProblem, labels: bool) -> Any:
    """Return the penalty for free parameters by Laplace's approximation; numbers or arrays."""
    n_parameters = shape[0] * shape[1] + problem.n_effects
    price = n_parameters * np.log(max(problem.n_observed, 1))
    if labels:
        price = price + sum((k - 1) * np.log(n) for k, n in zip(shape, problem.shape, strict=True))
    return 0.5 * price


def _by_level(node_values: np.ndarray, parts: Sequence[tuple[int, int]]) -> np.ndarray:
    """Return the sums of node values over the clusters of every cut; entry g - 1: g clusters."""
    n_leaves = len(node_values) - len(parts)
    finest = node_values[:n_leaves].sum(axis=0, keepdims=True)
    first, second = np.array(parts, dtype=np.intp).reshape(-1, 2).T
    change = node_values[n_leaves:] - node_values[first] - node_values[second]
    return np.concatenate([finest, finest + np.cumsum(change, axis=0)])[::-1]
