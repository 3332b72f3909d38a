"""Matrices with more rows than can vote.

Squares are drawn from a pool of rows, which vote as the rows of a small matrix do; everyone else is
placed on the steps of the reference draw in closed form, part by part. The matrix is read twice
and never held, and what a fit costs beyond these two passes does not depend on its height.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from ccot.arrays import one_blas_thread
from ccot.checkpoint import NOWHERE, Checkpoint
from ccot.coclustering import StepCoclustering, StepPlacement, StepSide, block_means
from ccot.crew import Crew, find_crew
from ccot.draws import DrawPlacement
from ccot.ledger import Ledger
from ccot.partition import StepLaw, place
from ccot.pipeline import CCOTSettings, fit_ccot
from ccot.regularisation import RegPath
from ccot.sources import RowSource

Matrix = Any

# Rows that vote: at most so many, of at most so many numbers together, but at least so many draws.
POOL_ROWS, POOL_CELLS, POOL_DRAWS = 2**16, 2**25, 4
_VALUES_FOR_LAW = 2**20
# Placed rows are kept in runs of at most about so many.
_RUN_ROWS = 2**21


def pool_size(shape: tuple[int, int], n_samplings: int | str = "auto") -> int:
    """Return how many of the rows of a tall matrix vote.

    Parameters
    ----------
    shape : tuple of int
        Numbers of rows and columns, not more columns than rows.
    n_samplings : int or "auto"
        Draws asked for.

    Returns
    -------
    int
        All rows where they are few.

    Examples
    --------
    >>> pool_size((600, 300)), pool_size((10**8, 100)), pool_size((10**8, 100), n_samplings=5)
    (600, 65536, 500)
    """
    n_rows, size = shape
    most = max(POOL_DRAWS * size, min(POOL_ROWS, POOL_CELLS // size))
    if n_rows <= most:
        return n_rows
    return most if n_samplings == "auto" else min(most, int(n_samplings) * size)


@dataclass(frozen=True)
class Tall:
    """A co-clustering of all rows and columns, and the means of its blocks.

    Attributes
    ----------
    found : StepCoclustering
        The co-clustering.
    block_means : array of shape (n_row_clusters, n_column_clusters)
        Means of the matrix over the blocks.
    reg : float
        The regularisation used.
    reg_path : RegPath or None
        What it was chosen from.
    """

    found: StepCoclustering
    block_means: np.ndarray
    reg: float
    reg_path: RegPath | None = None

    def transposed(self) -> Tall:
        """Return the same of the transposed matrix."""
        return replace(self, found=self.found.transposed(), block_means=self.block_means.T)


def fit_source(
    source: RowSource,
    settings: CCOTSettings,
    rng: np.random.Generator,
    choose: Callable[[Matrix], RegPath] | None = None,
) -> Tall:
    """Co-cluster a matrix by its source.

    Parameters
    ----------
    source : RowSource
        The matrix. If it is wider than tall, columns are drawn.
    settings : CCOTSettings
        Parameters.
    rng : numpy.random.Generator
        Source of the pool and the draws.
    choose : callable, optional
        Chooses the regularisation by looking at the rows that vote.

    Returns
    -------
    Tall
        Partitions of all rows and columns.
    """
    if source.shape[0] < source.shape[1]:
        numbers = settings.n_column_clusters, settings.n_row_clusters
        turned = replace(settings, n_row_clusters=numbers[0], n_column_clusters=numbers[1])
        choose_turned = choose and (lambda matrix: choose(matrix.T))
        return fit_source(source.transposed(), turned, rng, choose_turned).transposed()
    crew = find_crew(source, settings.n_jobs, settings.report)
    n_rows, n_pool = source.shape[0], pool_size(source.shape, settings.n_samplings)
    whole = n_pool == n_rows
    pool = np.arange(n_rows) if whole else np.sort(rng.choice(n_rows, n_pool, replace=False))
    matrix = crew.gather(pool)
    reg_path = choose and choose(matrix)
    if reg_path is not None:
        settings = replace(settings, reg=reg_path.best)
    voted = fit_ccot(matrix, settings, rng, crew.prepare)
    if whole:
        with one_blas_thread():
            means = block_means(matrix, voted.row, voted.column)
        return Tall(voted, means, settings.reg, reg_path)
    settings.report(f"{n_pool} of {n_rows} rows voted, the others are placed")
    del matrix
    with one_blas_thread():
        row, means = _place_everyone(source, crew, voted, pool, settings.checkpoint)
    return Tall(_of_all(voted, row, pool), means, settings.reg, reg_path)


def _of_all(voted: StepCoclustering, row: StepSide, pool: np.ndarray) -> StepCoclustering:
    """Let the columns' placement count rows in the whole matrix instead of the pool."""
    placement = voted.column.placement
    assert isinstance(placement, DrawPlacement)
    assert placement.members is not None
    placement = replace(placement, members=pool[placement.members], width=len(row.labels))
    return replace(voted, row=row, column=replace(voted.column, placement=placement))


def _place_everyone(
    source: RowSource,
    crew: Crew,
    voted: StepCoclustering,
    pool: np.ndarray,
    checkpoint: Checkpoint,
) -> tuple[StepSide, np.ndarray]:
    """Return the side of all rows, and the block means."""
    placer = RowPlacer.of(voted.row)
    nobody = replace(
        voted.row,
        labels=np.empty(0, np.int32),
        confidence=np.empty(0, np.float32),
        log_scaling=np.empty(0, np.float32),
        jumps=np.zeros_like(voted.row.jumps),
    )

    def rest(n_kept: int) -> Iterator[PlacedRows]:
        known = (_known(voted.row, pool, part) for part in source.parts[n_kept:])
        parts = crew.each_part(placer.place_part, known, n_kept)
        return parts if checkpoint is NOWHERE else _in_runs(parts, checkpoint.patience)

    runs = checkpoint.series("rows", len(source.parts), rest, lambda run: len(run.sums))
    row, added = _append(nobody, runs)
    return row, _means(added, voted.column)


def _in_runs(parts: Iterable[PlacedRows], patience: float) -> Iterator[PlacedRows]:
    """Join what is placed within a few seconds: a few long arrays are written faster than many."""
    run: list[PlacedRows] = []
    begun = time.monotonic()
    for part in parts:
        run.append(part)
        n_rows = sum(len(one.labels) for one in run)
        if n_rows >= _RUN_ROWS or time.monotonic() - begun >= patience:
            yield _join(run)
            run, begun = [], time.monotonic()
    if run:
        yield _join(run)


def _join(parts: Sequence[PlacedRows]) -> PlacedRows:
    return PlacedRows(
        labels=np.concatenate([part.labels for part in parts]),
        confidence=np.concatenate([part.confidence for part in parts]),
        log_scaling=np.concatenate([part.log_scaling for part in parts]),
        sums=np.concatenate([part.sums for part in parts]),
        below=np.sum([part.below for part in parts], axis=0),
        strangers=sum(part.strangers for part in parts),
    )


@dataclass(frozen=True)
class _Added:
    """What rows that were added to a side make together.

    Attributes
    ----------
    sizes : array of shape (n_clusters,)
        How many there are in each cluster.
    sums : array of shape (n_clusters, n_columns)
        Sums of these.
    strangers : int
        How many have a scaling on none of the steps.
    """

    sizes: np.ndarray
    sums: np.ndarray
    strangers: int


def _append(side: StepSide, parts: Iterable[PlacedRows]) -> tuple[StepSide, _Added]:
    """Add placed rows to a side."""
    columns = [Ledger(old.dtype) for old in (side.labels, side.confidence, side.log_scaling)]
    for ledger, old in zip(columns, (side.labels, side.confidence, side.log_scaling), strict=True):
        ledger.append(old)
    below, sizes, sums, strangers = side.jumps, np.zeros(1), np.zeros(1), 0
    for part in parts:
        news = (part.labels, part.confidence, part.log_scaling)
        for ledger, new in zip(columns, news, strict=True):
            ledger.append(new)
        # Counted as they come: a look back would bring the whole ledger into memory again.
        sizes = sizes + np.bincount(part.labels, minlength=side.n_clusters)
        below, strangers = below + part.below, strangers + part.strangers
        # In the order of the parts, however they were joined: sums are the same to the last bit.
        sums = reduce(add, part.sums, sums)
    labels, confidence, log_scaling = (ledger.close() for ledger in columns)
    side = replace(side, labels=labels, confidence=confidence, log_scaling=log_scaling, jumps=below)
    return side, _Added(sizes, sums, strangers)


def _means(added: _Added, column: StepSide) -> np.ndarray:
    by_column = np.eye(column.n_clusters)[column.labels]
    sums, cells = added.sums @ by_column, np.outer(added.sizes, by_column.sum(axis=0))
    return np.divide(sums, cells, out=np.full(cells.shape, np.nan), where=cells > 0)


@dataclass(frozen=True)
class Grown:
    """A co-clustering with more rows than it was fitted to.

    Attributes
    ----------
    found : StepCoclustering
        The co-clustering; numbers of clusters and labels of earlier rows are as they were.
    block_means : array of shape (n_row_clusters, n_column_clusters)
        Means over all rows so far.
    share_strange : float
        Share of the new rows whose scaling is on none of the steps.
    """

    found: StepCoclustering
    block_means: np.ndarray
    share_strange: float


def add_rows(
    found: StepCoclustering, block_means: np.ndarray, source: RowSource, n_jobs: int | None
) -> Grown:
    """Place new rows in a co-clustering and count them in.

    Parameters
    ----------
    found : StepCoclustering
        What was found so far.
    block_means : array of shape (n_row_clusters, n_column_clusters)
        Its means.
    source : RowSource
        The new rows.
    n_jobs : int or None
        Threads.

    Returns
    -------
    Grown
        The co-clustering of old and new rows.
    """
    crew = find_crew(source, n_jobs)
    old_sizes = found.row.sizes()
    placer = RowPlacer.of(found.row)
    with one_blas_thread():
        parts = crew.each_part(placer.place_part, [Known.none()] * len(source.parts))
        row, added = _append(found.row, parts)
    new_means = np.nan_to_num(_means(added, found.column))
    weight = (added.sizes / np.maximum(old_sizes + added.sizes, 1))[:, None]
    means = np.where(weight == 1, new_means, (1 - weight) * block_means + weight * new_means)
    column = found.column
    column = replace(column, placement=replace(column.placement, width=len(row.labels)))
    grown = replace(found, row=row, column=column)
    return Grown(grown, means, added.strangers / source.shape[0])


@dataclass(frozen=True)
class Known:
    """Rows of a part whose cluster was voted on: where they are in it, and what was decided."""

    places: np.ndarray
    labels: np.ndarray
    confidence: np.ndarray

    @classmethod
    def none(cls) -> Known:
        """Return that nothing is known."""
        return cls(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))


def _known(voted: StepSide, pool: np.ndarray, part: slice) -> Known:
    inside = slice(*np.searchsorted(pool, (part.start, part.stop)))
    # Those in no agreeing draw have no vote to go by: they are placed like everyone else.
    heard = voted.confidence[inside] > 0
    return Known(
        pool[inside][heard] - part.start,
        voted.labels[inside][heard],
        voted.confidence[inside][heard],
    )


@dataclass(frozen=True)
class PlacedRows:
    """Rows on the steps of a reference draw.

    Attributes
    ----------
    labels, confidence, log_scaling : arrays of shape (n_rows,)
        As in :class:`~ccot.coclustering.StepSide`.
    sums : array of shape (n_parts, n_clusters, n_columns)
        Sums of the rows of each cluster, in each of the parts they were read in.
    below : int array of shape (n_clusters - 1,)
        How many scalings lie below each threshold.
    strangers : int
        How many scalings are on none of the steps.
    """

    labels: np.ndarray
    confidence: np.ndarray
    log_scaling: np.ndarray
    sums: np.ndarray
    below: np.ndarray
    strangers: int


@dataclass(frozen=True)
class RowPlacer:
    """Places rows that no draw has seen, and says how sure that is.

    Attributes
    ----------
    placement : StepPlacement
        The reference draw.
    law : StepLaw
        Its steps.
    agreement : float
        Share of the draws that found this number of clusters.
    """

    placement: StepPlacement
    law: StepLaw
    agreement: float

    @classmethod
    def of(cls, side: StepSide) -> RowPlacer:
        """Place rows as a fitted side does."""
        placement = side.placement
        assert isinstance(placement, StepPlacement)
        # Of very many values a part tells as much.
        values = side.log_scaling[:: -(-len(side.log_scaling) // _VALUES_FOR_LAW)].astype(float)
        labels = place(values, placement.thresholds)
        law = StepLaw.of(values, labels, side.n_clusters)
        return cls(placement, law, side.number_votes[side.n_clusters])

    def place_part(self, rows: Matrix, known: Known) -> PlacedRows:
        """Place rows, those that are known excepted, whose confidence is in their votes."""
        scaling = self.placement.scaling(rows)
        labels = place(scaling, self.placement.thresholds)
        confidence = self.agreement * self.law.posterior(scaling, labels)
        below = (scaling[:, None] <= self.placement.thresholds).sum(axis=0)
        labels[known.places], confidence[known.places] = known.labels, known.confidence
        return PlacedRows(
            labels=labels.astype(np.int32),
            confidence=confidence.astype(np.float32),
            log_scaling=scaling.astype(np.float32),
            sums=(np.eye(len(self.law.size))[:, labels] @ rows)[None],
            below=below,
            strangers=int(self.law.stands_on_none(scaling).sum()),
        )
