"""Column clusters of a table, found after the rows: columns that separate the same row clusters.

Every column becomes one score per row, in units of its noise; its sign may be reversed.
"""

from dataclasses import dataclass

import numpy as np

from ccot.blocks.axes import compact, set_apart, stack
from ccot.blocks.criteria import jump_scores, log_partition
from ccot.blocks.families import FAMILIES, Terms
from ccot.blocks.hierarchy import Hierarchy, Merge
from ccot.blocks.problem import Blocks
from ccot.blocks.reproducibility import Halves
from ccot.blocks.start import draw_seed, segment
from ccot.blocks.sweep import excess_share, soft_plan
from ccot.blocks.table_problem import TableProblem
from ccot.coclustering import Placement
from ccot.persistence.registry import stored
from ccot.runtime.types import Matrix

# More columns than this are first divided into fine clusters, which are then merged.
_MOST_COLUMNS = 64
# The best score is trusted if its number is at most this share of the finest clusters.
TRUSTED_SHARE = 0.25

_information = FAMILIES["gaussian"].information


@dataclass(frozen=True)
class ColumnClusters:
    """Clusters of the used columns; signs are 1 or -1."""

    finest: np.ndarray
    merges: tuple[Merge, ...]
    signs: np.ndarray
    labels: np.ndarray
    confidence: np.ndarray


def score_weights(problem: TableProblem, blocks: Blocks) -> np.ndarray:
    """Return the weight of every cell in the score of its column."""
    first = problem.n_real + problem.n_counts
    counts, weights = slice(problem.n_real, first), np.empty(len(problem.owner))
    weights[: problem.n_real] = 1 / np.sqrt(problem.noise(blocks.total, blocks.exposure))
    # The exposure of an observed count is the mean of its column.
    mean = problem.rows.exposure[:, counts].max(axis=0)
    weights[counts] = 1 / np.sqrt(np.maximum(mean * problem.dispersion[counts], 1e-300))
    starts = first + np.flatnonzero(np.diff(problem.owner[first:], prepend=-1))
    for cells in map(slice, starts, [*starts[1:], None]):
        expected = np.maximum(blocks.exposure[:, cells], 1e-300)
        residual = (blocks.total[:, cells] - blocks.exposure[:, cells]) / np.sqrt(expected)
        contrast = np.linalg.svd(residual, full_matrices=False)[2][0]
        # The sign of a contrast is arbitrary: the most frequent level counts as low.
        contrast = contrast * (-1 if contrast[problem.unit[cells].argmax()] > 0 else 1)
        weights[cells] = contrast / np.sqrt(problem.unit[cells])
    return weights


def score_table(problem: TableProblem, blocks: Blocks, weights: np.ndarray) -> Terms:
    """Return the scores of columns, summed over row clusters, and the numbers of observed rows."""
    total, exposure = blocks.total.copy(), blocks.exposure.copy()
    total[:, problem.n_real :] -= exposure[:, problem.n_real :]
    counts = slice(problem.n_real, problem.n_real + problem.n_counts)
    exposure[:, counts] /= np.maximum(problem.rows.exposure[:, counts].max(axis=0), 1e-300)
    n_used = int(problem.owner[-1]) + 1
    scores, observed = (stack(t.T, problem.owner, n_used).T for t in (total * weights, exposure))
    return scores, observed


def cluster_columns(
    problem: TableProblem, table: Terms, wanted: int | None, rng: np.random.Generator
) -> ColumnClusters:
    """Return clusters of the used columns by their scores over the row clusters."""
    total, exposure = table
    n_used = total.shape[1]
    groups = np.digitize(np.arange(n_used), [problem.n_real, problem.n_real + problem.n_counts])
    finest, signs = _finest(total, exposure, groups, rng)
    n_finest = int(finest.max()) + 1
    group_of = np.zeros(n_finest, dtype=np.int64)
    group_of[finest] = groups
    sums, weights = (stack(table.T, finest, n_finest) for table in (total * signs, exposure))
    hierarchy, turns = _merge(sums, weights, group_of)
    signs = signs * turns[finest]
    scores = _scores(total * signs, exposure, finest, hierarchy)
    found = choose_number(hierarchy.costs(1), scores, n_finest, least=len(np.unique(groups)))
    # With one row cluster, scores cannot separate columns.
    n_clusters = wanted or (found.number if len(total) > 1 else 1)
    labels = set_apart(hierarchy.cut(1, n_clusters)[finest], n_clusters)
    confidence = _confidence(total * signs, exposure, labels)
    return ColumnClusters(finest, hierarchy.merges, signs, labels, confidence)


@stored()
@dataclass(frozen=True)
class Choice:
    """A number of clusters, the scores of all numbers considered, and their criterion."""

    number: int
    scores: dict[int, float]
    criterion: str  # "icl", "jump" or "reproducibility"


def choose_number(
    costs: np.ndarray,
    evidence: dict[int, float],
    n_finest: int,
    halves: Halves | None = None,
    least: int = 1,
) -> Choice:
    """Return a number, chosen by the evidence if it is small, else by halves and merge costs."""
    best = max(evidence, key=lambda k: evidence[k])
    jumps = {k: jump for k, jump in jump_scores(costs, best).items() if k >= least}
    if best <= max(TRUSTED_SHARE * n_finest, 2) or not jumps:
        return Choice(max(best, least), evidence, "icl")
    scores, criterion = halves and halves.scores(jumps), "reproducibility"
    if not scores:
        scores, criterion = jumps, "jump"
    return Choice(max(scores, key=lambda k: scores[k]), scores, criterion)


def _finest(
    total: np.ndarray, exposure: np.ndarray, groups: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return the finest clusters of columns and the signs within them."""
    n_used = total.shape[1]
    if n_used <= _MOST_COLUMNS:
        return np.arange(n_used), np.ones(n_used)
    profiles = (total / np.sqrt(np.maximum(exposure, 1e-300))).T
    largest = np.abs(profiles).argmax(axis=1)
    signs = np.where(profiles[np.arange(n_used), largest] < 0, -1.0, 1.0)
    labels = np.zeros(n_used, dtype=np.int64)
    for group in np.unique(groups):
        members = groups == group
        scores = profiles[members] * signs[members, None]
        labels[members] = segment(scores, draw_seed(scores, rng)) + labels.max() + 1
    return compact(labels), signs


def _merge(
    total: np.ndarray, exposure: np.ndarray, group: np.ndarray
) -> tuple[Hierarchy, np.ndarray]:
    """Return merges of the cheapest pairs, with one sign reversed if cheaper, and the signs."""
    n_finest, n_rows = total.shape
    total, exposure, merges = total.copy(), exposure.copy(), []
    alive, owner, signs = np.arange(n_finest), np.arange(n_finest), np.ones(n_finest)
    while len(alive) > 1:
        own = _information(total, exposure).sum(axis=1)
        joint = exposure[:, None, :] + exposure[None, :, :]
        same_way = _information(total[:, None, :] + total[None, :, :], joint).sum(axis=2)
        turned = _information(total[:, None, :] - total[None, :, :], joint).sum(axis=2)
        costs = own[:, None] + own - np.maximum(same_way, turned)
        # Columns of the same kind are merged first.
        same = group[:, None] == group
        np.fill_diagonal(same, val=False)
        allowed = same if same.any() else ~np.eye(len(alive), dtype=bool)
        pair = np.unravel_index(np.argmin(np.where(allowed, costs, np.inf)), costs.shape)
        first, second = int(min(pair)), int(max(pair))
        sign = -1.0 if turned[first, second] > same_way[first, second] else 1.0
        cost = max(float(costs[first, second]), 0.0)
        merges.append(Merge(1, int(alive[first]), int(alive[second]), cost))
        members = owner == alive[second]
        signs[members] *= sign
        owner[members] = alive[first]
        total[first] += sign * total[second]
        exposure[first] += exposure[second]
        keep = np.arange(len(alive)) != second
        total, exposure, group, alive = total[keep], exposure[keep], group[keep], alive[keep]
    return Hierarchy((n_rows, n_finest), tuple(merges)), signs


def _scores(
    total: np.ndarray, exposure: np.ndarray, finest: np.ndarray, hierarchy: Hierarchy
) -> dict[int, float]:
    """Return the score of every number of clusters: likelihood, penalty for means, partition."""
    n_rows, n_columns = total.shape
    n_finest = hierarchy.shape[1]
    held = float(_information(total, exposure).sum())
    lost = np.cumsum([0.0, *(merge.cost for merge in hierarchy.merges)])
    return {
        k: held - lost[n_finest - k] - 0.5 * k * n_rows * np.log(max(n_columns, 2))
        + log_partition(np.bincount(hierarchy.cut(1, k)[finest]))
        for k in range(1, n_finest + 1)
    }  # fmt: skip


def _confidence(total: np.ndarray, exposure: np.ndarray, labels: np.ndarray) -> np.ndarray:
    n_clusters = int(labels.max()) + 1
    sums, weight = stack(total.T, labels, n_clusters), stack(exposure.T, labels, n_clusters)
    mean = sums / np.maximum(weight, 1e-300)
    gain = np.abs(total.T @ mean.T) - 0.5 * exposure.T @ (mean**2).T
    share = np.log(np.bincount(labels) / len(labels))
    return excess_share(soft_plan(gain + share), labels, (total == 0).all(axis=0))


@stored()
@dataclass(frozen=True, kw_only=True)
class ScorePlacement(Placement):
    """Places unseen columns of numbers by their scores over the row clusters."""

    rows: np.ndarray  # their labels
    means: np.ndarray  # scores, of shape (n_clusters, n_row_clusters)
    noise: float  # variance of scaled numbers around row clusters

    def labels(self, points: Matrix) -> np.ndarray:
        """Return the clusters of new columns, the rows of ``points``; NaN is missing."""
        values = points if isinstance(points, np.ndarray) else points.toarray()
        observed = np.isfinite(values)
        n_observed = np.maximum(observed.sum(axis=1, keepdims=True), 1)
        centred = np.where(observed, values, 0.0)
        centred -= np.where(observed, centred.sum(axis=1, keepdims=True) / n_observed, 0.0)
        spread = np.sqrt((centred**2).sum(axis=1, keepdims=True) / n_observed * self.noise)
        indicator = np.eye(self.means.shape[1])[self.rows]
        total = centred / np.where(spread > 0, spread, 1.0) @ indicator
        gain = np.abs(total @ self.means.T) - 0.5 * observed @ indicator @ (self.means**2).T
        return gain.argmax(axis=1)
