"""The model of a mixed table: one partition of the rows, a distribution for every cell.

Scaled numbers share one noise variance, each column of counts has a dispersion, levels have none.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import gammaln
from sklearn.utils import gen_batches

from ccot.blocks.axes import Profiles, compact
from ccot.blocks.criteria import log_partition
from ccot.blocks.families import FAMILIES, Terms, ratio
from ccot.blocks.problem import Blocks
from ccot.blocks.sweep import balanced_plan, excess_share, log_marginal, share_out, soft_plan
from ccot.blocks.tables import TablePreparation
from ccot.coclustering import Placement
from ccot.io.matrix import Table
from ccot.persistence.registry import stored
from ccot.runtime.backends import NUMPY, Backend, to_numpy
from ccot.sources.tables import TableParts

# Smallest dispersion of a column of counts.
_LEAST_DISPERSION = 0.05
# Number of strengths that are tried for the priors of means, shares and rates.
_N_PRIORS = 40
# Cells that are prepared at once.
_PART_CELLS = 2**22


@dataclass(frozen=True)
class TableProblem:
    """The cells of a table: gaussian ones come first, then those of counts, then levels."""

    rows: Profiles
    owner: np.ndarray  # for each cell, which of the used columns it belongs to
    n_real: int
    n_counts: int
    unit: np.ndarray  # for each cell, twice the exposure that smooths its means
    sum_squares: float  # of the gaussian totals
    dispersion: np.ndarray  # for each cell, variance relative to its family's own
    moved: Profiles  # the rows on the backend that moves them

    def information(self, total: np.ndarray, exposure: np.ndarray) -> np.ndarray:
        """Return the maximised log-likelihood of clusters by cell, without constants."""
        parts = [
            FAMILIES[family].information(total[..., cells], exposure[..., cells])
            for family, cells in self._parts()
        ]
        return np.concatenate(parts, axis=-1) / self.dispersion

    def terms(self, total: np.ndarray, exposure: np.ndarray) -> Terms:
        """Return natural parameters and cumulants of clusters by cell, in nats."""
        parts = [
            FAMILIES[family].terms(
                total[:, cells] / self.unit[cells], exposure[:, cells] / self.unit[cells], 1.0
            )
            for family, cells in self._parts()
        ]
        natural, cumulant = (np.concatenate(both, axis=1) for both in zip(*parts, strict=True))
        dispersion = self.dispersion.copy()
        dispersion[: self.n_real] = self.noise(total, exposure)
        return natural / dispersion, cumulant / dispersion

    def noise(self, total: np.ndarray, exposure: np.ndarray) -> float:
        """Return the variance of scaled numbers around clusters."""
        cells = slice(0, self.n_real)
        explained = 2 * FAMILIES["gaussian"].information(total[:, cells], exposure[:, cells]).sum()
        floor = 1e-3 * max(self.sum_squares, 1e-300)
        return max(self.sum_squares - explained, floor) / max(exposure[:, cells].sum(), 1.0)

    def _parts(self) -> tuple[tuple[str, slice], tuple[str, slice]]:
        return ("gaussian", slice(0, self.n_real)), ("poisson", slice(self.n_real, None))


def make_table_problem(
    preparation: TablePreparation, rows: Profiles, backend: Backend = NUMPY
) -> TableProblem:
    """Return the problem of prepared rows, without clusters yet."""
    used = [preparation.columns[position] for position in preparation.used]
    owner = np.repeat(np.arange(len(used)), [column.n_cells for column in used])
    n_real, n_counts = (
        sum(column.family == name for column in used) for name in ("gaussian", "poisson")
    )
    unit = np.ones(len(owner))
    levels = [column.shares for column in used if column.shares is not None]
    unit[n_real + n_counts :] = np.concatenate(levels) if levels else []
    sum_squares = float((rows.total[:, :n_real] ** 2).sum())
    moved = Profiles(backend.send(rows.total), backend.send(rows.exposure), None, backend)
    flat = TableProblem(rows, owner, n_real, n_counts, unit, sum_squares, unit**0, moved)
    return with_dispersion(flat, np.zeros(len(rows.total), dtype=np.int64))


def some_rows_of(problem: TableProblem, members: np.ndarray) -> TableProblem:
    """Return the problem of some of the rows."""
    rows = problem.rows.take(members)
    sum_squares = float((rows.total[:, : problem.n_real] ** 2).sum())
    return replace(problem, rows=rows, moved=problem.moved.take(members), sum_squares=sum_squares)


def with_dispersion(problem: TableProblem, labels: np.ndarray) -> TableProblem:
    """Return the problem with dispersions around clusters: for all numbers, and for each count."""
    n_clusters = int(labels.max()) + 1
    total, exposure = problem.rows.blocks(labels, n_clusters)
    dispersion = np.ones(len(problem.owner))
    dispersion[: problem.n_real] = problem.noise(total, exposure)
    counts = slice(problem.n_real, problem.n_real + problem.n_counts)
    mean = total[:, counts] / np.maximum(exposure[:, counts], 1e-300)
    expected = mean[labels] * problem.rows.exposure[:, counts]
    residual = ratio((problem.rows.total[:, counts] - expected) ** 2, expected)
    n_free = np.maximum((problem.rows.exposure[:, counts] > 0).sum(axis=0) - n_clusters, 1)
    dispersion[counts] = np.maximum(residual.sum(axis=0) / n_free, _LEAST_DISPERSION)
    return replace(problem, dispersion=dispersion)


def make_table_blocks(problem: TableProblem, labels: np.ndarray, n_sweeps: int = 0) -> Blocks:
    """Return clusters of rows with their statistics by cell; unused numbers are left out."""
    labels = compact(labels)
    total, exposure = problem.moved.blocks(labels, int(labels.max()) + 1)
    return Blocks((labels, np.arange(total.shape[1])), total, exposure, n_sweeps)


def row_gains(problem: TableProblem, blocks: Blocks, balanced: bool = False) -> np.ndarray:
    """Return the gain of each row in each cluster, in nats."""
    gain = to_numpy(problem.moved.gain(*problem.terms(blocks.total, blocks.exposure)))
    return gain if balanced else gain + log_marginal(blocks.labels[0], blocks.shape[0])


def move_rows(
    problem: TableProblem, blocks: Blocks, max_iter: int, tol: float, balanced: bool = False
) -> Blocks:
    """Return blocks after moving rows to their best clusters, until few still move."""
    for _ in range(max_iter):
        gain = row_gains(problem, blocks, balanced)
        labels = share_out(balanced_plan(gain)) if balanced else gain.argmax(axis=1)
        n_moved = np.count_nonzero(labels != blocks.labels[0])
        blocks = make_table_blocks(problem, labels, blocks.n_sweeps + 1)
        if n_moved <= tol * len(labels):
            break
    return blocks


def table_evidence(problem: TableProblem, blocks: Blocks) -> float:
    """Return the log-likelihood of clusters, integrated over their means, rates and shares."""
    # Each column takes the likeliest strength of its prior.
    total, exposure, first = blocks.total, blocks.exposure, problem.n_real
    counts = slice(first, first + problem.n_counts)
    levels = slice(first + problem.n_counts, None)
    scores = [
        _normal_evidence(problem, total[:, :first], exposure[:, :first]),
        _gamma_evidence(total[:, counts], exposure[:, counts], problem.dispersion[counts]),
        _dirichlet_evidence(problem, total[:, levels]),
    ]
    price = 0.5 * np.log(blocks.shape[0]) * (problem.owner[-1] + 1)
    return float(sum(scores) + log_partition(np.bincount(blocks.labels[0])) - price)


def _normal_evidence(problem: TableProblem, total: np.ndarray, exposure: np.ndarray) -> float:
    noise, n_observed = problem.noise(total, exposure), exposure.sum()
    score = -0.5 * n_observed * (np.log(noise) + 1)
    if len(total) < 2:
        return score
    held = exposure > 0
    variance = noise / np.where(held, exposure, 1.0)
    mean = total.sum(axis=0) / np.maximum(exposure.sum(axis=0), 1)
    deviation = np.where(held, (total / np.where(held, exposure, 1.0) - mean) ** 2, 0.0)
    lowest = np.where(held, variance, np.inf).min(axis=0)
    strength = np.linspace(0, 1, _N_PRIORS)[:, None]
    prior = 1e-3 * lowest * (1e3 * np.maximum(deviation.max(axis=0) / lowest, 1)) ** strength
    prior = prior[:, None, :]
    terms = np.where(held, np.log1p(prior / variance) + deviation / (prior + variance), 0.0)
    return score - 0.5 * float(terms.sum(axis=1).min(axis=0).sum())


def _gamma_evidence(total: np.ndarray, exposure: np.ndarray, dispersion: np.ndarray) -> float:
    """Return the evidence of counts; rates have mean 1, because exposures contain column means."""
    total, exposure = total / dispersion, exposure / dispersion
    shape = np.geomspace(0.1, 1e4, _N_PRIORS)[:, None, None]
    rates = gammaln(total + shape) - gammaln(shape) + shape * np.log(shape)
    rates = rates - (total + shape) * np.log(exposure + shape)
    return float(rates.sum(axis=1).max(axis=0).sum())


def _dirichlet_evidence(problem: TableProblem, total: np.ndarray) -> float:
    if not total.size:
        return 0.0
    shares = problem.unit[-total.shape[1] :]
    starts = np.flatnonzero(np.diff(problem.owner[-total.shape[1] :], prepend=-1))
    strength = np.geomspace(0.5, 1e4, _N_PRIORS)[:, None, None]
    n_rows = np.add.reduceat(total, starts, axis=1)
    whole = gammaln(strength) - gammaln(n_rows + strength)
    prior = strength * shares
    parts = np.add.reduceat(gammaln(total + prior) - gammaln(prior), starts, axis=2)
    return float((whole + parts).sum(axis=1).max(axis=0).sum())


def table_parts(
    table: Table | TableParts | np.ndarray, preparation: TablePreparation
) -> Iterator[Profiles]:
    """Yield the cells of parts of the rows, which take little memory."""
    if isinstance(table, np.ndarray):
        table = Table(dict(zip(preparation.names, table.T, strict=True)))
    n_cells = max(sum(column.n_cells for column in preparation.columns), 1)
    for some in table.counted(preparation.unread) if isinstance(table, TableParts) else [table]:
        for part in gen_batches(some.shape[0], max(1, _PART_CELLS // n_cells)):
            yield preparation.cells(some, part)


@stored()
@dataclass(frozen=True, kw_only=True)
class TablePlacement(Placement):
    """Places unseen rows of a table."""

    preparation: TablePreparation
    natural: np.ndarray  # of shape (n_clusters, n_cells), divided by dispersions
    cumulant: np.ndarray
    marginal: np.ndarray  # log shares of the clusters
    alone: np.ndarray  # cumulants without clusters

    # Rows of a table are a Table, those of a matrix a Matrix.
    def labels(self, points: Table) -> np.ndarray:  # type: ignore[override]
        """Return the clusters of rows; the largest for a row without values."""
        return self.labels_and_confidence(points)[0]

    def labels_and_confidence(self, points: Table) -> tuple[np.ndarray, np.ndarray]:
        """Return the clusters of rows and their confidence; 0 for a row without values."""
        pairs = [self.assign(rows) for rows in table_parts(points, self.preparation)]
        labels, confidence = (np.concatenate(both) for both in zip(*pairs, strict=True))
        return labels, confidence

    def confidence(self, points: Table) -> np.ndarray:
        """Return the confidence of the rows' clusters."""
        return self.labels_and_confidence(points)[1]

    def shares(self, points: Table) -> np.ndarray:
        """Return the shares of each row in the clusters."""
        parts = table_parts(points, self.preparation)
        return np.concatenate([soft_plan(self.gains(rows)) for rows in parts])

    def log_likelihood(self, points: Table) -> np.ndarray:
        """Return what each row's cluster adds to its log-likelihood, per observed cell."""
        gains = []
        for rows in table_parts(points, self.preparation):
            best = self.gains(rows).argmax(axis=1)
            gain = rows.gain(self.natural, self.cumulant)[np.arange(len(best)), best]
            gain = gain + rows.exposure @ self.alone
            gains.append(gain / np.maximum((rows.exposure > 0).sum(axis=1), 1))
        return np.concatenate(gains)

    def assign(self, rows: Profiles) -> tuple[np.ndarray, np.ndarray]:
        """Return the clusters of prepared rows and their confidence."""
        gain = self.gains(rows)
        labels = gain.argmax(axis=1)
        return labels, excess_share(soft_plan(gain), labels, ~(rows.exposure > 0).any(axis=1))

    def gains(self, rows: Profiles) -> np.ndarray:
        """Return the gain of each row in each cluster, in nats."""
        return rows.gain(self.natural, self.cumulant, self.marginal)


@dataclass(frozen=True)
class PlacedRows:
    """All rows in their clusters, placed like unseen rows."""

    placement: TablePlacement
    blocks: Blocks
    confidence: np.ndarray


def place_side(
    problem: TableProblem, preparation: TablePreparation, blocks: Blocks
) -> TablePlacement:
    """Return the placement of rows by clusters."""
    natural, cumulant = problem.terms(blocks.total, blocks.exposure)
    return TablePlacement(
        width=len(preparation.columns),
        preparation=preparation,
        natural=natural,
        cumulant=cumulant,
        marginal=log_marginal(blocks.labels[0], blocks.shape[0]),
        alone=np.where(np.arange(len(problem.owner)) < problem.n_real, 0, 1 / problem.dispersion),
    )


def read_through(
    parts: Iterable[Profiles], placements: Sequence[TablePlacement]
) -> list[PlacedRows]:
    """Return rows placed part by part, for each placement, with sums of cells within clusters."""
    kept = [(one, np.zeros((2, *one.natural.shape)), []) for one in placements]
    for rows in parts:
        for placement, sums, answers in kept:
            answers.append(placement.assign(rows))
            sums += rows.blocks(answers[-1][0], len(sums[0]))
    placed = []
    for placement, sums, answers in kept:
        labels, confidence = (np.concatenate(both) for both in zip(*answers, strict=True))
        blocks = Blocks((labels, np.arange(len(sums[0][0]))), sums[0], sums[1])
        placed.append(PlacedRows(placement, blocks, confidence))
    return placed
