"""Reproducibility of clusters: halves of the data are fitted separately and compared.

Rows are clustered by random halves of the columns and vice versa; both should find a cluster.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Self

import numpy as np
import scipy.sparse as sp
from scipy.special import entr, softmax

from ccot.blocks.axes import stack
from ccot.blocks.hierarchy import Start, build_hierarchy
from ccot.blocks.preparation import observed_mean
from ccot.blocks.problem import BlockProblem, make_problem, pearson_dispersion, scale_columns
from ccot.blocks.start import over_segment
from ccot.blocks.sweep import log_marginal
from ccot.persistence.registry import stored
from ccot.runtime.backends import is_device_csr, one_blas_thread, to_numpy
from ccot.runtime.device_csr import take_rows, transposed
from ccot.runtime.run import Run
from ccot.runtime.types import Matrix, is_sparse

# Fewest splits for rows and for columns, most splits, and most cells of all splits together.
_FEWEST_SPLITS, _MOST_SPLITS, _CELLS = (3, 2), 8, 2**23
# Smaller matrices are not halved.
_LEAST_COLUMNS, _LEAST_ROWS = 8, 16
# Weights of finer clusters and of jumps of merge costs, relative to the agreement; factor of scores
# in the plausibility of numbers.
WEIGHTS, SHARPNESS = (0.6, 1.5), 4.0
_LEAST_AGREEMENT = 1e-3
# Most points that are used to compare partitions, and to compare nodes of trees.
_COMPARED, _LOOKED_AT = 2**11, 2**15
# Sweeps of the finest clusters of a half: more would fit its noise.
_SWEEPS = 1
# Least agreement of halves for a number to be chosen, relative to the highest agreement.
_LEAST_SUPPORT = 0.5
# Agreement is clear if it exceeds that of noise by this; noise matrices, and splits of each.
CLEAR, _N_NULLS, _NULL_SPLITS = 0.1, 3, 2
# A cluster is dissolved if it overlaps less than this with its best match (Hennig, 2007).
DISSOLVED = 0.5


@stored()
@dataclass(frozen=True)
class Halves:
    """Clusters of one side by halves of the data, and their agreement."""

    numbers: np.ndarray  # of clusters, increasing
    agreement: np.ndarray  # adjusted Rand index of the halves, of shape (n_splits, n_numbers)
    labels: np.ndarray  # of shape (2 * n_splits, n_numbers, n_points)
    expected: float = np.nan  # largest agreement of noise with the same margins, if computed
    plausibility: np.ndarray | float = 1.0  # of every number, in the choice between fits

    @property
    def mean(self) -> np.ndarray:
        """Mean agreement of every number."""
        return self.agreement.mean(axis=0)

    def highest(self) -> float:
        """Return the highest mean agreement."""
        return float(self.mean.max(initial=0.0))

    @property
    def is_clear(self) -> bool:
        """True if halves agree clearly better than noise at some number of clusters."""
        return self.highest() > CLEAR + np.nan_to_num(self.expected)

    @property
    def supported(self) -> np.ndarray:
        """True for numbers whose mean agreement is at least half of the highest one."""
        return self.mean >= _LEAST_SUPPORT * self.highest()

    def scores(
        self, jumps: Mapping[int, float], weights: tuple[float, float] = WEIGHTS
    ) -> dict[int, float]:
        """Return log R(k) + 0.6 log log k + 1.5 J(k) for numbers k with a jump J of merge costs."""
        # R: the mean agreement less its standard deviation.
        reliable = self.mean - self.agreement.std(axis=0)
        agreement = np.log(np.maximum(reliable, _LEAST_AGREEMENT))
        return {
            int(k): float(level + weights[0] * np.log(np.log(k)) + weights[1] * jumps[int(k)])
            for k, level in zip(self.numbers, agreement, strict=True)
            if int(k) in jumps
        }

    def weighed(self, scores: Mapping[int, float]) -> Self:
        """Return the same with the plausibility of every number, which grows with its score."""
        logits = [SHARPNESS * scores.get(int(k), -np.inf) for k in self.numbers]
        return replace(self, plausibility=softmax(logits))

    def distance(self, labels: np.ndarray) -> float:
        """Return the mean of :meth:`distances`, weighted by plausibility."""
        return float((self.distances(labels) * self.plausibility).sum())

    def distances(self, labels: np.ndarray) -> np.ndarray:
        """Return the mean variation of information between a partition and halves, by number."""
        step = -(-len(labels) // _COMPARED)
        own, others = labels[::step].astype(np.int64), self.labels[..., ::step]
        n_own, n_others = int(own.max()) + 1, int(others.max()) + 1
        shape = (*others.shape[:2], n_own, n_others)
        first = np.arange(others[..., 0].size).reshape(*shape[:2], 1) * n_own * n_others
        cells = (first + own * n_others + others).ravel()
        joint = np.bincount(cells, minlength=np.prod(shape)).reshape(shape) / len(own)
        both, fitted, half = (
            entr(joint.sum(axis=margin, keepdims=True)).sum(axis=(2, 3)) for margin in ((), 3, 2)
        )
        return np.maximum(2 * both - fitted - half, 0.0).mean(axis=0)  # rounding may go below 0


@stored()
@dataclass(frozen=True)
class Reproducibility:
    """How well the clusters of one side are found again in other data."""

    numbers: np.ndarray  # of clusters that were compared
    mean: np.ndarray  # agreement of the halves for each number, adjusted for chance
    spread: np.ndarray  # its standard deviation over the splits
    n_clusters: int  # fitted
    clusters: np.ndarray  # Jaccard index of each cluster with its best match, averaged over halves
    points: np.ndarray  # share of halves in which each row or column is with its cluster
    expected: float = np.nan  # largest agreement of noise with the same margins, if computed
    nodes: np.ndarray = field(default_factory=lambda: np.empty(0))  # the same of leaves and merges

    @property
    def agreement(self) -> float:
        """Mean agreement at the fitted number, or at the nearest one that was compared."""
        return float(self.mean[self._nearest])

    @property
    def plausible(self) -> tuple[int, int]:
        """Lowest and highest number around the fitted one that agree as well, up to the spread."""
        nearest = self._nearest
        worse = np.flatnonzero(self.mean < self.mean[nearest] - self.spread[nearest])
        low = worse[worse < nearest].max(initial=-1) + 1
        high = worse[worse > nearest].min(initial=len(self.mean)) - 1
        return int(self.numbers[low]), int(self.numbers[high])

    @property
    def dissolved(self) -> np.ndarray:
        """Clusters whose mean Jaccard index with their best match is below one half."""
        return np.flatnonzero(self.clusters < DISSOLVED)

    @property
    def comes_back(self) -> bool:
        """True if the agreement is clearly above that of noise, or above 0 if that is unknown."""
        return self.agreement > CLEAR + np.nan_to_num(self.expected)

    @property
    def _nearest(self) -> int:
        return int(np.argmin(np.abs(self.numbers - self.n_clusters)))


@stored()
@dataclass(frozen=True)
class BothSides:
    """The reproducibility of rows and of columns; None if it was not computed."""

    row: Reproducibility | None = None
    column: Reproducibility | None = None


def can_be_halved(problem: BlockProblem) -> bool:
    """Return True if halves of a matrix are large enough to be clustered."""
    return problem.shape[0] >= _LEAST_ROWS and problem.shape[1] >= _LEAST_COLUMNS


def fit_halves(
    problem: BlockProblem, axis: int, numbers: Sequence[int], run: Run, n_splits: int | None = None
) -> Halves:
    """Return clusters of one side by halves of the other, for the numbers that all halves reach."""
    if n_splits is None:
        n_cells = problem.shape[0] * problem.shape[1]
        n_splits = int(np.clip(_CELLS // n_cells, _FEWEST_SPLITS[axis], _MOST_SPLITS))
    asked = np.unique(numbers)
    cluster = partial(_cluster_by_half, problem, axis, asked)
    return compare_halves(cluster, asked, problem.shape[1 - axis], n_splits, run)


def compare_halves(
    cluster: Callable[[tuple[np.ndarray, int]], np.ndarray],
    asked: np.ndarray,
    n_evidence: int,
    n_splits: int,
    run: Run,
) -> Halves:
    """Return clusters by random halves of the data, and the agreement of the halves of each split.

    ``cluster`` takes the members of a half and a seed, and returns a row of labels for each number.
    """
    splits, middle = [run.rng.permutation(n_evidence) for _ in range(n_splits)], n_evidence // 2
    halves = [np.sort(part) for order in splits for part in (order[:middle], order[middle:])]
    tasks = list(zip(halves, run.rng.integers(2**31, size=len(halves)), strict=True))
    # One thread each, so that the arithmetic is the same for any number of workers.
    with one_blas_thread(), warnings.catch_warnings():
        labels = np.stack(list(run.each("half", cluster, tasks)))
    reached = labels.max(axis=2).min(axis=0) + 1 >= asked
    asked, labels = asked[reached], labels[:, reached]
    agreement = [
        [adjusted_rand(*pair) for pair in zip(labels[i], labels[i + 1], strict=True)]
        for i in range(0, len(labels), 2)
    ]
    return Halves(asked, np.array(agreement), labels)


def with_noise(problem: BlockProblem, axis: int, halves: Halves, run: Run) -> Halves:
    """Return halves with the agreement of noise with the same margins; 0 if theirs is too low."""
    if halves.highest() <= CLEAR:
        return replace(halves, expected=0.0)
    numbers = halves.numbers.tolist()
    noise = (noise_like(problem, run.rng) for _ in range(_N_NULLS))
    nulls = [fit_halves(one, axis, numbers, run, _NULL_SPLITS).highest() for one in noise]
    return replace(halves, expected=max(0.0, *nulls))


def describe(
    halves: Halves, labels: np.ndarray, finest: np.ndarray, members: np.ndarray
) -> Reproducibility | None:
    """Return how well halves find clusters and nodes; None if the halves are of a sample."""
    if halves.labels.shape[-1] != len(labels):
        return None
    found, nodes, stays, step = [], [], np.zeros(len(labels)), -(-len(labels) // _LOOKED_AT)
    nearest = int(np.argmin(np.abs(halves.numbers - int(labels.max()) - 1)))
    for every in halves.labels:
        shared = _overlap(contingency(labels, every[nearest]))
        found.append(shared.max(axis=1))
        stays += shared.argmax(axis=1)[labels] == every[nearest]
        tables = (contingency(finest[::step], half) for half in every[:, ::step])
        nodes.append(np.max([_overlap(t, members).max(axis=1) for t in tables], axis=0))
    return Reproducibility(
        numbers=halves.numbers,
        mean=halves.mean,
        spread=halves.agreement.std(axis=0),
        n_clusters=int(labels.max()) + 1,
        clusters=np.mean(found, axis=0),
        points=stays / len(found),
        expected=halves.expected,
        nodes=np.mean(nodes, axis=0),
    )


def _overlap(table: np.ndarray, members: np.ndarray | None = None) -> np.ndarray:
    """Return Jaccard indices of clusters, or of unions of clusters, with the clusters of a half."""
    sizes, table = table.sum(axis=0), table if members is None else members @ table
    return table / np.maximum(table.sum(axis=1, keepdims=True) + sizes - table, 1)


def contingency(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the number of points in every pair of clusters."""
    width = int(second.max()) + 1
    cells = first.astype(np.int64) * width + second
    return np.bincount(cells, minlength=(int(first.max()) + 1) * width).reshape(-1, width)


def adjusted_rand(first: np.ndarray, second: np.ndarray) -> float:
    """Return the adjusted Rand index of two partitions."""
    table = contingency(first, second).astype(np.float64)
    counts = table, table.sum(axis=1), table.sum(axis=0)
    together, rows, columns = (float((sizes * (sizes - 1)).sum()) for sizes in counts)
    expected = rows * columns / max(len(first) * (len(first) - 1.0), 1.0)
    highest = 0.5 * (rows + columns)
    return 1.0 if highest == expected else (together - expected) / (highest - expected)


def half_problem(problem: BlockProblem, axis: int, members: np.ndarray) -> BlockProblem:
    """Return the problem of all points of one side and some of the other, prepared as before."""
    rows = problem.axes[0]
    if is_device_csr(rows.values):
        half = take_rows(problem.axes[1 - axis].values, problem.backend.send(members))
        half = half if axis else transposed(half)
        return make_problem(half, problem.family, backend=problem.backend)
    weights = rows.partner_exposure if problem.family == "gaussian" else np.ones(problem.shape[1])
    values = problem.axes[1 - axis].values[members]
    if axis == 0:
        values, weights = values.T.tocsr() if is_sparse(values) else values.T, weights[members]
    if not is_sparse(values):
        values = values / weights
        if rows.observed is not None:
            seen = rows.observed[:, members] if axis == 0 else rows.observed[members]
            values = np.where(seen > 0, values, np.nan)
        values = _without_effects(values) if problem.n_effects else np.ascontiguousarray(values)
    elif (weights != 1).any():
        values = scale_columns(values, 1 / weights)
    return make_problem(values, problem.family, weights, problem.backend)


def noise_like(problem: BlockProblem, rng: np.random.Generator) -> BlockProblem:
    """Return a random problem with the same margins, whose rows and columns are independent."""
    if problem.family == "poisson":
        return make_problem(_noise_counts(problem, rng), problem.family)
    view = problem.axes[0]
    dense = view.values.toarray() if is_sparse(view.values) else view.values
    if problem.family == "bernoulli":
        shares = np.outer(dense.sum(axis=1), dense.sum(axis=0)) / max(dense.sum(), 1e-300)
        values = (rng.random(dense.shape) < shares).astype(np.float64)
    else:
        seen = np.ones(dense.shape, bool) if view.observed is None else view.observed > 0
        given = np.where(seen, dense / view.partner_exposure, np.nan)
        left = _without_effects(given)
        fitted = given - left
        left[seen] = rng.permutation(left[seen])
        values = fitted + left
    return replace(make_problem(values, problem.family), n_effects=problem.n_effects)


def _noise_counts(problem: BlockProblem, rng: np.random.Generator) -> Matrix:
    """Return random counts: sums of independent units that are as large as the dispersion."""
    view = problem.axes[0]
    size = max(pearson_dispersion(problem), 1e-300)
    shares = [side / side.sum() for side in (view.exposure, view.partner_exposure)]
    n_drawn = rng.poisson(float(view.exposure.sum() * view.partner_exposure.sum()) / size)
    drawn = tuple(rng.choice(len(side), n_drawn, p=side) for side in shares)
    counts = sp.csr_array(sp.coo_array((np.full(n_drawn, size), drawn), shape=problem.shape))
    return counts.toarray() if isinstance(view.values, np.ndarray) else counts


def _cluster_by_half(
    problem: BlockProblem, axis: int, numbers: np.ndarray, task: tuple[np.ndarray, int]
) -> np.ndarray:
    """Return the clusters of the points by one half, a row for every number of clusters."""
    members, seed = task
    half = half_problem(problem, axis, members)
    fine = over_segment(half, 1, Run(np.random.default_rng(seed)), _SWEEPS)[0]
    return cut_once(half, Start(fine, build_hierarchy(half, fine, (axis,))), axis, numbers)


def cut_once(problem: BlockProblem, start: Start, axis: int, numbers: np.ndarray) -> np.ndarray:
    """Return a row of labels for every number: the tree is cut, then every point moves once."""
    fine, found = start.fine, []
    profiles = problem.axes[axis].profiles(fine.labels[1 - axis], fine.shape[1 - axis])
    total, exposure = fine.table(axis)
    for number in numbers:
        cut = start.hierarchy.cut(axis, int(number))
        k, labels = int(cut.max()) + 1, cut[fine.labels[axis]]
        table = stack(total, cut, k), stack(exposure, cut, k)
        gain = profiles.gain(*problem.terms_in_nats(*table), log_marginal(labels, k))
        moved = to_numpy(gain.argmax(axis=1))
        # No point moves if a cluster would lose all of its points.
        found.append(moved if np.bincount(moved, minlength=k).min() else labels)
    return np.stack(found).astype(np.uint8)


def _without_effects(values: np.ndarray) -> np.ndarray:
    """Return values minus row means, then minus column means; missing entries stay missing."""
    seen = np.isfinite(values)
    for axis in (1, 0):
        values = values - np.expand_dims(observed_mean(values, seen, axis), axis)
    return values
