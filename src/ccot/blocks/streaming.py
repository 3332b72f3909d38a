"""Blocks of matrices that are read row by row and never held.

A sample of the rows is searched for blocks as a matrix in memory is. Then all rows are read past
them, part by part: every row goes to its best cluster and leaves its values in the profiles of the
columns, the columns move, and the blocks are estimated anew. That is a sweep like any other, but
for the rows, which are read again each time; memory grows with rows and columns, not with entries.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from operator import add
from typing import Any

import numpy as np

from ccot.blocks.fit import (
    BlockCoclustering,
    BlockSettings,
    Search,
    collect,
    fit_blocks,
    search_blocks,
)
from ccot.blocks.placement import BlockPlacement, place_side
from ccot.blocks.preparation import settle_family
from ccot.blocks.problem import AxisView, BlockProblem, Blocks, Profiles, stack
from ccot.blocks.sweep import excess_share, gains, log_marginal, soft_plan
from ccot.persistence.registry import stored
from ccot.runtime.backends import one_blas_thread
from ccot.runtime.run import Run
from ccot.runtime.types import Matrix, is_sparse
from ccot.sources import RowSource
from ccot.sources.executors import get_executor

# The sample has about so many entries, and so many rows at least.
POOL_ENTRIES, POOL_ROWS = 2**24, 2**12
# Passes over the matrix, and the share of rows and columns that may still move.
_MAX_PASSES, _TOL = 4, 2e-3


def pool_size(source: RowSource) -> int:
    """Return how many rows are searched for blocks: all where there are few entries."""
    first = source.read(source.parts[0])
    n_entries = first.nnz if is_sparse(first) else first.size
    wanted = POOL_ENTRIES * first.shape[0] // max(n_entries, 1)
    return min(source.shape[0], max(POOL_ROWS, wanted))


def fit_block_source(
    source: RowSource, family: str, settings: BlockSettings, run: Run
) -> BlockCoclustering:
    """Co-cluster all rows of a source, beginning with the blocks of some of them.

    Parameters
    ----------
    source : RowSource
        The matrix.
    family : str
        Name of the family, or ``"auto"``.
    settings : BlockSettings
        Parameters.
    run : Run
        Random numbers, progress, checkpoint, workers.

    Returns
    -------
    BlockCoclustering
        Partitions of all rows and columns, and block means.
    """
    n_rows, n_pool = source.shape[0], pool_size(source)
    if n_pool == n_rows:
        matrix = source.rows(np.arange(n_rows))
        return fit_blocks(matrix, family, settings, run)
    if settings.balanced:
        raise ValueError(
            "clusters of equal size need all rows at once: read X into memory, or leave "
            "balanced=False"
        )
    sample = source.rows(np.sort(run.rng.choice(n_rows, n_pool, replace=False)))
    run.progress(f"{n_pool} of {n_rows} rows are searched for blocks")
    name, reason = settle_family(sample, family)
    found = search_blocks(sample, name, settings, run)
    # The finest clusters are swept along, so that the hierarchy holds all rows.
    asked = (*found.views, found.finest)
    views = list({id(view): view for view in asked}.values())
    places = [[view is one for view in views].index(True) for one in asked]
    one_pass = partial(_sweep, source, found, run)
    for swept in run.checkpoint.loop("pass", Sweep(tuple(views)), one_pass):
        share = swept.share_moved
        run.progress(f"pass {swept.n_passes} over {source.shape[0]} rows: {share:.1%} moved")
        if share <= _TOL or swept.n_passes == _MAX_PASSES:
            break
    return replace(_collect(found, swept, places), family_reason=reason)


@stored()
@dataclass(frozen=True)
class Sweep:
    """Where a sweep ended: views of all rows and columns, with what was seen on the way.

    Attributes
    ----------
    views : tuple of Blocks
        The co-clusterings.
    rows : Rows or None
        What is kept of the rows; None: they were not read yet.
    column_confidence : tuple of arrays
        Of each view.
    share_moved : float
        Largest share of rows and columns that moved; the finest may go on moving.
    n_passes : int
        Passes over the matrix so far.
    """

    views: tuple[Blocks, ...]
    rows: Rows | None = None
    column_confidence: tuple[np.ndarray, ...] = ()
    share_moved: float = 1.0
    n_passes: int = 0

    def problem(self, sample: BlockProblem) -> BlockProblem:
        """Return the problem of the rows that were read, or that of the sample before."""
        return sample if self.rows is None else _whole_problem(sample, self.rows)


def _sweep(source: RowSource, found: Search, run: Run, before: Sweep) -> Sweep:
    """Read all rows past the blocks, then move the columns."""
    problem = before.problem(found.problem)
    placements = tuple(place_side(problem, found.preparation, view, 0) for view in before.views)
    executor = get_executor(source, replace(run, n_jobs=None))
    with one_blas_thread():
        parts = executor.each_part(_Reader(placements).read, [None] * len(source.parts))
        rows = _without_empty(_join(parts))
    problem = _whole_problem(found.problem, rows)
    moved = [_move_columns(problem, view, rows, place) for place, view in enumerate(before.views)]
    views = tuple(blocks for blocks, _ in moved)
    share = 1.0 if before.rows is None else _share_moved(before.views, views)
    return Sweep(views, rows, tuple(sure for _, sure in moved), share, before.n_passes + 1)


def _share_moved(before: tuple[Blocks, ...], after: tuple[Blocks, ...]) -> float:
    return max(
        sum(np.count_nonzero(a != b) for a, b in zip(new.labels, old.labels, strict=True))
        / sum(map(len, new.labels))
        for new, old in zip(after[:-1] or after, before, strict=False)
    )


@stored()
@dataclass(frozen=True)
class Rows:
    """What is kept of rows that were read.

    Attributes
    ----------
    labels : tuple of int arrays of shape (n_rows,)
        Clusters in each view.
    confidence : array of shape (n_rows,)
        Of the first view.
    degree : array of shape (n_rows,)
        Sums of the prepared values.
    effect : array of shape (n_rows,) or None
        Additive effects taken out.
    sums : tuple of arrays
        What is added up over the parts: for each view the columns' sums of prepared values within
        clusters, (n_clusters, n_columns); for each view the number of missing ones, likewise, or
        0; the weighted sum of squares; the columns' sums of raw values in the first view.
    """

    labels: tuple[np.ndarray, ...]
    confidence: np.ndarray
    degree: np.ndarray
    effect: np.ndarray | None
    sums: tuple[Any, ...]

    @property
    def n_views(self) -> int:
        """Number of views."""
        return len(self.labels)

    def total(self, place: int) -> np.ndarray:
        """Return the columns' sums of prepared values in a view."""
        return self.sums[place]

    def missing(self, place: int) -> np.ndarray | float:
        """Return the columns' numbers of missing entries in a view."""
        return self.sums[self.n_views + place]

    def sizes(self, place: int) -> np.ndarray:
        """Return the numbers of rows of the clusters of a view."""
        return np.bincount(self.labels[place], minlength=len(self.total(place)))


@dataclass(frozen=True)
class _Reader:
    """Sends rows to the best clusters of several views; travels to where the rows are."""

    placements: tuple[BlockPlacement, ...]

    def read(self, rows: Matrix, _: Any = None) -> Rows:
        """Return what is kept of some rows."""
        first = self.placements[0]
        face = first.face(rows)
        every = [placement.gains(placement.profiles(face)) for placement in self.placements]
        labels = tuple(gain.argmax(axis=1).astype(np.int32) for gain in every)
        own = [(label, gain.shape[1]) for label, gain in zip(labels, every, strict=True)]
        missing = None if face.observed is None else (face.observed == 0).astype(np.float64)
        squares = (face.values * face.values).sum(axis=0)
        values = rows if missing is None else np.nan_to_num(rows)
        return Rows(
            labels=labels,
            confidence=excess_share(soft_plan(every[0]), labels[0], face.is_empty()),
            degree=np.asarray(face.values.sum(axis=1), dtype=np.float64).ravel(),
            effect=first.preparation.effects_of(rows),
            sums=(
                *(stack(face.values, *one) for one in own),
                *(0.0 if missing is None else stack(missing, *one) for one in own),
                float(squares @ (1 / np.maximum(first.partner_exposure, 1e-300))),
                stack(values, *own[0]),
            ),
        )


def _join(parts: Iterable[Rows]) -> Rows:
    """Put what was kept of the parts together."""
    kept, sums = [], None
    for part in parts:
        kept.append(replace(part, sums=()))
        sums = part.sums if sums is None else tuple(map(add, sums, part.sums))
    assert sums is not None, "a source has rows"
    effects = [part.effect for part in kept if part.effect is not None]
    return Rows(
        labels=tuple(map(np.concatenate, zip(*(part.labels for part in kept), strict=True))),
        confidence=np.concatenate([part.confidence for part in kept]),
        degree=np.concatenate([part.degree for part in kept]),
        effect=np.concatenate(effects) if effects else None,
        sums=sums,
    )


def _without_empty(rows: Rows) -> Rows:
    """Drop clusters of the sample that no row goes to; the finest, in a hierarchy, stay."""
    labels, sums = list(rows.labels), list(rows.sums)
    for place in range(rows.n_views - 1):
        used = rows.sizes(place) > 0
        if used.all():
            continue
        labels[place] = (np.cumsum(used) - 1)[labels[place]].astype(np.int32)
        for index in (place, rows.n_views + place, *([-1] if place == 0 else [])):
            sums[index] = sums[index][used] if np.ndim(sums[index]) else sums[index]
    return replace(rows, labels=tuple(labels), sums=tuple(sums))


@dataclass(frozen=True)
class _Shape:
    """A matrix of which nothing but the shape is kept."""

    shape: tuple[int, int]


def _whole_problem(problem: BlockProblem, rows: Rows) -> BlockProblem:
    """Return the problem of all rows that were read; the matrix itself is not in it."""
    total = rows.total(0)
    n_rows, n_columns = len(rows.degree), total.shape[1]
    missing = rows.missing(0)
    if problem.family == "poisson":
        scale = np.sqrt(max(rows.degree.sum(), 1e-300))
        row, column = rows.degree / scale, total.sum(axis=0) / scale
        exposure = rows.degree.sum()
    else:
        row, column = np.ones(n_rows), problem.faces[0].partner_exposure
        exposure = n_rows * column.sum() - float(np.sum(missing * column))
    return replace(
        problem,
        faces=(
            AxisView(_Shape((n_rows, n_columns)), row, column),
            AxisView(_Shape((n_columns, n_rows)), column, row),
        ),
        overall=float(total.sum() / max(exposure, 1e-300)),
        n_observed=n_rows * n_columns - int(np.sum(missing)),
        sum_squares=rows.sums[-2] if problem.family == "gaussian" else 0.0,
    )


def _column_profiles(problem: BlockProblem, rows: Rows, place: int) -> Profiles:
    """Return totals and exposures of the columns over the row clusters of a view."""
    total, missing = rows.total(place), rows.missing(place)
    column, row = problem.faces[1].exposure, problem.faces[0].exposure
    if np.any(missing):
        observed = rows.sizes(place)[:, None] - missing
        return Profiles(total.T, (observed * column).T, None)
    pooled = np.bincount(rows.labels[place], weights=row, minlength=len(total))
    return Profiles(total.T, column, pooled)


def _move_columns(
    problem: BlockProblem, view: Blocks, rows: Rows, place: int
) -> tuple[Blocks, np.ndarray]:
    """Send the columns to their best clusters; return the blocks and the columns' confidence."""
    profiles = _column_profiles(problem, rows, place)
    own, n_clusters = view.labels[1], view.shape[1]
    marginal = log_marginal(own, n_clusters)
    gain = gains(problem, profiles, profiles.blocks(own, n_clusters), marginal)
    best = gain.argmax(axis=1)
    # A cluster of columns that all rows together would leave empty stays as the sample had it.
    labels = best if len(np.unique(best)) == n_clusters else own
    total, exposure = profiles.blocks(labels, n_clusters)
    empty = profiles.full_exposure().sum(axis=1) == 0
    blocks = Blocks((rows.labels[place], labels), total.T, exposure.T, view.n_sweeps + 1)
    return blocks, excess_share(soft_plan(gain), labels, empty)


def _collect(found: Search, swept: Sweep, places: list[int]) -> BlockCoclustering:
    rows, problem = swept.rows, swept.problem(found.problem)
    assert rows is not None, "there was at least one pass"
    row, column, finest = (swept.views[place] for place in places)
    preparation = found.preparation
    if rows.effect is not None:
        preparation = replace(preparation, row_effect=rows.effect)
    whole = replace(
        found, preparation=preparation, problem=problem, views=(row, column), finest=finest
    )
    by_column = column.labels[1], column.shape[1]
    total, exposure = _column_profiles(problem, rows, 0).blocks(*by_column)
    blocks = Blocks((row.labels[0], column.labels[1]), total.T, exposure.T)
    counts = rows.sizes(0)[:, None] - np.broadcast_to(rows.missing(0), rows.total(0).shape)
    sums, counts = stack(rows.sums[-1].T, *by_column).T, stack(counts.T, *by_column).T
    means = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
    sure = rows.confidence, swept.column_confidence[places[1]]
    return replace(collect(whole, blocks, sure), block_means=means)
