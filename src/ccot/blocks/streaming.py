"""Blocks of matrices that are read row by row and never held in memory.

Blocks are searched in a sample of the rows. Then the whole matrix is swept in passes: each part of
the rows is assigned where it is read, the sums of parts are added in a tree, and the columns and
blocks are updated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import add
from types import SimpleNamespace
from typing import Any

import numpy as np

from ccot.blocks import fit
from ccot.blocks.axes import AxisView, Profiles, n_entries, stack
from ccot.blocks.placement import BlockPlacement, place_side
from ccot.blocks.preparation import settle_family
from ccot.blocks.problem import BlockProblem, Blocks
from ccot.blocks.sweep import excess_share, log_marginal, soft_plan
from ccot.persistence.registry import stored
from ccot.runtime.backends import one_blas_thread
from ccot.runtime.run import Run
from ccot.runtime.types import Matrix
from ccot.sources import RowSource
from ccot.sources.executors import get_executor

# The sample has about so many entries, and at least so many rows.
POOL_ENTRIES, POOL_ROWS = 2**24, 2**12
# A limited number of passes ends earlier if at most this share of rows and columns moves.
_TOL = 2e-3


def pool_size(source: RowSource) -> int:
    """Return how many rows are used to find blocks: all if there are few entries."""
    first = source.read(source.parts[0])
    wanted = POOL_ENTRIES * first.shape[0] // max(n_entries(first), 1)
    return min(source.shape[0], max(POOL_ROWS, wanted))


def fit_block_source(
    source: RowSource, family: str, settings: fit.BlockSettings, run: Run
) -> fit.BlockCoclustering:
    """Return the co-clustering of all rows of a source, starting from the blocks of some rows."""
    n_rows, n_pool = source.shape[0], pool_size(source)
    if n_pool == n_rows:
        return fit.fit_blocks(source.rows(np.arange(n_rows)), family, settings, run)
    if settings.balanced:
        raise ValueError(
            "clusters of equal size need all rows at once: read X into memory, or leave "
            "balanced=False"
        )
    given = settings.n_row_clusters
    if given is not None and given > n_pool:
        raise ValueError(
            f"n_row_clusters={given} is more than the {n_pool} rows that are used to find blocks: "
            f"pass at most {n_pool}, or read X into memory"
        )
    chosen = np.sort(run.rng.choice(n_rows, n_pool, replace=False))
    run.progress(f"{n_pool} of {n_rows} rows are used to find blocks")
    sample = get_executor(source, run).gather(chosen)
    name, reason = settle_family(sample, family, settings.scale, settings.center)
    found = fit.search_blocks(sample, name, settings, run)
    # Rows and columns may share a view. The finest clusters are swept, too, so that the hierarchy
    # contains all rows.
    views = found.views[:1] if found.views[1] is found.views[0] else found.views
    one_pass = partial(_sweep, source, found, run)
    full, most = settings.max_passes is None, settings.max_passes or settings.max_iter
    for swept in run.checkpoint.loop("pass", Sweep((*views, found.finest)), one_pass):
        share = swept.share_moved
        run.progress(f"pass {swept.n_passes} over {source.shape[0]} rows: {share:.2%} moved")
        if swept.n_passes == most or share <= (settings.tol if full else _TOL):
            break
    return replace(_collect(found, swept), family_reason=reason)


@stored()
@dataclass(frozen=True)
class Sweep:
    """The result of a pass: views of all rows and columns, with sums over the rows."""

    # The first has the row clusters of the answer; the last but one, perhaps the same, has the
    # column clusters; the last has the finest clusters of the hierarchy.
    views: tuple[Blocks, ...]
    rows: Rows | None = None  # None: not read yet
    column_confidence: tuple[np.ndarray, ...] = ()
    share_moved: float = 1.0  # of rows and columns; the largest of all views but the finest
    n_passes: int = 0

    def problem(self, sample: BlockProblem) -> BlockProblem:
        """Return the problem of the rows that were read; before the first pass, the sample's."""
        return sample if self.rows is None else _whole_problem(sample, self.rows)


def _sweep(source: RowSource, found: fit.Search, run: Run, before: Sweep) -> Sweep:
    """Return the views after a pass that assigns all rows, then the columns."""
    problem = before.problem(found.problem)
    placements = tuple(place_side(problem, found.preparation, view, 0) for view in before.views)
    with one_blas_thread():
        kept, sums = get_executor(source, run).sum_parts(partial(_read, placements))
    joined = _join(kept, sums)
    rows = _without_empty(joined)
    problem = _whole_problem(found.problem, rows)
    moved = [_move_columns(problem, view, rows, index) for index, view in enumerate(before.views)]
    views = tuple(blocks for blocks, _ in moved)
    # Labels before empty clusters were removed and the others renumbered.
    labels = [(own, view.labels[1]) for own, view in zip(joined.labels, views, strict=True)]
    share = 1.0 if before.rows is None else _share_moved(before.views, labels)
    return Sweep(views, rows, tuple(sure for _, sure in moved), share, before.n_passes + 1)


def _share_moved(before: Sequence[Blocks], after: Sequence[tuple[np.ndarray, np.ndarray]]) -> float:
    return max(
        sum(np.count_nonzero(a != b) for a, b in zip(new, old.labels, strict=True))
        / sum(map(len, new))
        for new, old in zip(after[:-1] or after, before, strict=False)
    )


@stored()
@dataclass(frozen=True)
class RowSums:
    """Sums over rows that were read; arrays have the shape (n_row_clusters, n_columns)."""

    total: tuple[np.ndarray, ...]  # prepared values, for each view
    missing: tuple[np.ndarray | float, ...]  # numbers of missing entries, for each view
    squares: float  # weighted
    raw: np.ndarray  # raw values, within the row clusters of the first view

    def __add__(self, other: RowSums) -> RowSums:
        total = tuple(map(add, self.total, other.total))
        missing = tuple(a + b for a, b in zip(self.missing, other.missing, strict=True))
        return RowSums(total, missing, self.squares + other.squares, self.raw + other.raw)


def _named_sums(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of Rows with named sums; an earlier version wrote them as one tuple."""
    sums, n_views = fields["sums"], len(fields["labels"])
    if isinstance(sums, tuple):
        sums = RowSums(sums[:n_views], sums[n_views : 2 * n_views], sums[-2], sums[-1])
    return {**fields, "sums": sums}


@stored(upgrade=_named_sums)
@dataclass(frozen=True)
class Rows:
    """Labels, other values per row, and sums of rows that were read."""

    labels: tuple[np.ndarray, ...]  # for each view
    confidence: np.ndarray  # of the first view
    degree: np.ndarray  # sums of the prepared values
    effect: np.ndarray | None  # additive effects that were subtracted
    sums: RowSums

    def sizes(self, index: int) -> np.ndarray:
        """Return the numbers of rows of the clusters of a view."""
        return np.bincount(self.labels[index], minlength=len(self.sums.total[index]))


def _read(
    placements: Sequence[BlockPlacement], rows: Matrix, _: Any = None
) -> tuple[tuple[Any, ...], RowSums]:
    """Return rows' labels in several views, their confidence, degrees and effects, and the sums."""
    first = placements[0]
    axis_view = first.axis_view(rows)
    values, observed = axis_view.values, axis_view.observed
    every = [placement.gains(placement.profiles(axis_view)) for placement in placements]
    labels = tuple(gain.argmax(axis=1).astype(np.int32) for gain in every)
    own = [(label, gain.shape[1]) for label, gain in zip(labels, every, strict=True)]
    missing = None if observed is None else (observed == 0).astype(np.float64)
    squares = (values * values).sum(axis=0)
    confidence = excess_share(soft_plan(every[0]), labels[0], axis_view.is_empty())
    degree = np.asarray(values.sum(axis=1), dtype=np.float64).ravel()
    sums = RowSums(
        total=tuple(stack(values, *one) for one in own),
        missing=tuple(0.0 if missing is None else stack(missing, *one) for one in own),
        squares=float(squares @ (1 / np.maximum(first.partner_exposure, 1e-300))),
        raw=stack(rows if missing is None else np.nan_to_num(rows), *own[0]),
    )
    return (labels, confidence, degree, first.preparation.effects_of(rows)), sums


def _join(kept: Iterable[tuple[Any, ...]], sums: RowSums) -> Rows:
    """Return the joined results of all parts."""
    labels, confidence, degree, effect = zip(*kept, strict=True)
    return Rows(
        labels=tuple(map(np.concatenate, zip(*labels, strict=True))),
        confidence=np.concatenate(confidence),
        degree=np.concatenate(degree),
        effect=None if effect[0] is None else np.concatenate(effect),
        sums=sums,
    )


def _without_empty(rows: Rows) -> Rows:
    """Return rows without empty clusters; the finest clusters stay, for the hierarchy."""
    labels, total, missing = list(rows.labels), list(rows.sums.total), list(rows.sums.missing)
    raw = rows.sums.raw
    for index in range(len(labels) - 1):
        used = rows.sizes(index) > 0
        if not used.all():
            labels[index] = (np.cumsum(used) - 1)[labels[index]].astype(np.int32)
            total[index] = total[index][used]
            gaps = missing[index]
            missing[index] = gaps[used] if isinstance(gaps, np.ndarray) else gaps
            raw = raw[used] if index == 0 else raw
    sums = RowSums(tuple(total), tuple(missing), rows.sums.squares, raw)
    return replace(rows, labels=tuple(labels), sums=sums)


def _whole_problem(problem: BlockProblem, rows: Rows) -> BlockProblem:
    """Return the problem of all rows that were read, without the matrix itself."""
    total, missing = rows.sums.total[0], rows.sums.missing[0]
    n_rows, n_columns = len(rows.degree), total.shape[1]
    if problem.family == "poisson":
        scale = np.sqrt(max(rows.degree.sum(), 1e-300))
        row, column = rows.degree / scale, total.sum(axis=0) / scale
        exposure = rows.degree.sum()
    else:
        row, column = np.ones(n_rows), problem.axes[0].partner_exposure
        exposure = n_rows * column.sum() - float(np.sum(missing * column))
    return replace(
        problem,
        axes=(
            AxisView(SimpleNamespace(shape=(n_rows, n_columns)), row, column),
            AxisView(SimpleNamespace(shape=(n_columns, n_rows)), column, row),
        ),
        overall=float(total.sum() / max(exposure, 1e-300)),
        n_observed=n_rows * n_columns - int(np.sum(missing)),
        sum_squares=rows.sums.squares if problem.family == "gaussian" else 0.0,
    )


def _column_profiles(problem: BlockProblem, rows: Rows, index: int) -> Profiles:
    """Return totals and exposures of the columns over the row clusters of a view."""
    total, missing = rows.sums.total[index], rows.sums.missing[index]
    column, row = problem.axes[1].exposure, problem.axes[0].exposure
    if np.any(missing):
        observed = rows.sizes(index)[:, None] - missing
        return Profiles(total.T, (observed * column).T, None)
    pooled = np.bincount(rows.labels[index], weights=row, minlength=len(total))
    return Profiles(total.T, column, pooled)


def _move_columns(
    problem: BlockProblem, view: Blocks, rows: Rows, index: int
) -> tuple[Blocks, np.ndarray]:
    """Return blocks with the columns in their best clusters, and the columns' confidence."""
    profiles = _column_profiles(problem, rows, index)
    own, n_clusters = view.labels[1], view.shape[1]
    terms = problem.terms_in_nats(*profiles.blocks(own, n_clusters))
    gain = profiles.gain(*terms, log_marginal(own, n_clusters))
    best = gain.argmax(axis=1)
    # No column moves if a column cluster would become empty.
    labels = best if len(np.unique(best)) == n_clusters else own
    total, exposure = profiles.blocks(labels, n_clusters)
    empty = profiles.full_exposure().sum(axis=1) == 0
    blocks = Blocks((rows.labels[index], labels), total.T, exposure.T, view.n_sweeps + 1)
    return blocks, excess_share(soft_plan(gain), labels, empty)


def _collect(found: fit.Search, swept: Sweep) -> fit.BlockCoclustering:
    rows, problem = swept.rows, swept.problem(found.problem)
    assert rows is not None, "there was at least one pass"
    row, column, finest = swept.views[0], swept.views[-2], swept.views[-1]
    preparation = found.preparation
    if rows.effect is not None:
        preparation = replace(preparation, row_effect=rows.effect)
    whole = replace(
        found, preparation=preparation, problem=problem, views=(row, column), finest=finest
    )
    by_column = column.labels[1], column.shape[1]
    total, exposure = _column_profiles(problem, rows, 0).blocks(*by_column)
    blocks = Blocks((row.labels[0], column.labels[1]), total.T, exposure.T)
    seen = rows.sizes(0)[:, None] - rows.sums.missing[0]
    counts = np.broadcast_to(seen, rows.sums.raw.shape)
    sums, counts = stack(rows.sums.raw.T, *by_column).T, stack(counts.T, *by_column).T
    means = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
    sure = rows.confidence, swept.column_confidence[-2]
    return replace(fit.collect(whole, blocks, sure), block_means=means)
