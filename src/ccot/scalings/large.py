"""CCOT of matrices with many rows, read twice: a pool of rows is fitted, the rest is labelled."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np

from ccot.persistence.registry import stored
from ccot.runtime.backends import one_blas_thread
from ccot.runtime.run import NO_CHECKPOINT, Checkpoint, Run
from ccot.runtime.spilled import SpilledArray
from ccot.runtime.types import Matrix
from ccot.scalings.ccot import CCOTSettings, fit_ccot
from ccot.scalings.draws import DrawPartitions, DrawSolver, solve_alone
from ccot.scalings.sampling import pool_size
from ccot.scalings.steps import StepCoclustering, StepLaw, StepPlacement, StepSide, join
from ccot.sources import RowSource
from ccot.sources.executors import DaskExecutor, Executor, ThreadExecutor, get_executor

_VALUES_FOR_LAW = 2**20
# Checkpoints store labelled rows in pieces of about this many at most.
_RUN_ROWS = 2**21
# Tasks for each thread of the cluster and round of draws: several, since workers differ in speed.
_TASKS_A_THREAD = 4


def fit_large(source: RowSource, settings: CCOTSettings, run: Run) -> StepCoclustering:
    """Return the co-clustering of a matrix with many rows, given its source."""
    if source.shape[0] < source.shape[1]:
        return fit_large(source.transposed(), settings.transposed(), run).transposed()
    executor = get_executor(source, run)
    n_rows, n_pool = source.shape[0], pool_size(source.shape, settings.n_samplings)
    whole = n_pool == n_rows
    pool = np.arange(n_rows) if whole else np.sort(run.rng.choice(n_rows, n_pool, replace=False))
    here = isinstance(executor, ThreadExecutor)
    prepare = DrawSolver.prepare if here else partial(_prepare_on_dask, executor)
    voted = fit_ccot(executor.gather(pool), settings, run, prepare)
    if whole:
        return voted
    run.progress(f"{n_pool} of {n_rows} rows voted, the other rows were assigned")
    with one_blas_thread():
        row, means = _place_all_rows(executor, voted, pool, run.checkpoint)
    # The placement of columns gets row numbers of the whole matrix, not of the pool.
    placement: Any = voted.column.placement
    placement = replace(placement, members=pool[placement.members], width=n_rows)
    column = replace(voted.column, placement=placement)
    return replace(voted, row=row, column=column, block_means=means)


def _place_all_rows(
    executor: Executor, voted: StepCoclustering, pool: np.ndarray, checkpoint: Checkpoint
) -> tuple[StepSide, np.ndarray]:
    """Return the side of all rows, and the block means."""
    placer, source = RowPlacer.of(voted.row), executor.source
    nothing = dict.fromkeys(("confidence", "log_scaling"), np.empty(0, np.float32))
    nothing |= {"labels": np.empty(0, np.int32), "jumps": np.zeros_like(voted.row.jumps)}

    def rest(n_kept: int) -> Iterator[PlacedRows]:
        known = (_known(voted.row, pool, part) for part in source.parts[n_kept:])
        parts = executor.each_part(placer.place_part, known, n_kept)
        return parts if checkpoint is NO_CHECKPOINT else _in_runs(parts, checkpoint.patience)

    runs = checkpoint.series("rows", len(source.parts), rest, lambda run: len(run.sums))
    row, sizes, sums, _ = _append(replace(voted.row, **nothing), runs)
    return row, _means(sizes, sums, voted.column)


def _in_runs(parts: Iterable[PlacedRows], patience: float) -> Iterator[PlacedRows]:
    """Yield the results of a few seconds joined: long arrays are written faster than short ones."""
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
    names = "labels", "confidence", "log_scaling", "sums"
    joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    below = np.sum([part.below for part in parts], axis=0)
    return PlacedRows(**joined, below=below, n_outside=sum(part.n_outside for part in parts))


def _append(
    side: StepSide, parts: Iterable[PlacedRows]
) -> tuple[StepSide, np.ndarray, np.ndarray, int]:
    """Return a side with new rows, their numbers and sums by cluster, and the number on no step."""
    names = "labels", "confidence", "log_scaling"
    columns = {name: SpilledArray(getattr(side, name).dtype) for name in names}
    for name, array in columns.items():
        array.append(getattr(side, name))
    below, sizes, sums, n_outside = side.jumps, np.zeros(1), np.zeros(1), 0
    for part in parts:
        for name, array in columns.items():
            array.append(getattr(part, name))
        # Counted here, because reading the array again would bring all of it into memory.
        sizes = sizes + np.bincount(part.labels, minlength=side.n_clusters)
        below, n_outside = below + part.below, n_outside + part.n_outside
        # In the order of the parts, so that sums do not depend on how parts were joined.
        sums = reduce(add, part.sums, sums)
    values = {name: array.close() for name, array in columns.items()}
    return replace(side, **values, jumps=below), sizes, sums, n_outside


def _means(sizes: np.ndarray, sums: np.ndarray, column: StepSide) -> np.ndarray:
    by_column = np.eye(column.n_clusters)[column.labels]
    sums, cells = sums @ by_column, np.outer(sizes, by_column.sum(axis=0))
    return np.divide(sums, cells, out=np.full(cells.shape, np.nan), where=cells > 0)


def add_rows(
    found: StepCoclustering, source: RowSource, run: Run
) -> tuple[StepCoclustering, float]:
    """Return the co-clustering with new rows added, and the share of these that is on no step."""
    assert found.block_means is not None
    executor, placer = get_executor(source, run), RowPlacer.of(found.row)
    with one_blas_thread():
        parts = executor.each_part(placer.place_part, [None] * len(source.parts))
        row, sizes, sums, n_outside = _append(found.row, parts)
    new_means = np.nan_to_num(_means(sizes, sums, found.column))
    weight = (sizes / np.maximum(found.row.sizes() + sizes, 1))[:, None]
    means = np.where(weight == 1, new_means, (1 - weight) * found.block_means + weight * new_means)
    column = found.column
    column = replace(column, placement=replace(column.placement, width=len(row.labels)))
    return replace(found, row=row, column=column, block_means=means), n_outside / source.shape[0]


def _known(voted: StepSide, pool: np.ndarray, part: slice) -> list[np.ndarray]:
    """Return the positions, labels and confidences of the rows of a part that are in the pool."""
    inside = slice(*np.searchsorted(pool, (part.start, part.stop)))
    # Rows in no agreeing draw have no votes: they are labelled like rows outside the pool.
    some = voted.confidence[inside] > 0
    values = pool[inside] - part.start, voted.labels[inside], voted.confidence[inside]
    return [value[some] for value in values]


def _plain_names(fields: dict[str, Any]) -> dict[str, Any]:
    return {"n_outside" if name == "strangers" else name: part for name, part in fields.items()}


@stored(upgrade=_plain_names)
@dataclass(frozen=True)
class PlacedRows:
    """Labels of rows by the steps of a reference draw."""

    labels: np.ndarray
    confidence: np.ndarray
    log_scaling: np.ndarray
    sums: np.ndarray  # of the rows of each cluster, for each part in which rows were read
    below: np.ndarray  # numbers of scalings at or below each threshold
    n_outside: int  # number of rows on no step


@dataclass(frozen=True)
class RowPlacer:
    """Labels rows in no draw; ``agreement``: share of draws that found the number of clusters."""

    placement: StepPlacement
    law: StepLaw
    agreement: float

    @classmethod
    def of(cls, side: StepSide) -> RowPlacer:
        """Return the placer of a fitted side."""
        placement = side.placement
        assert isinstance(placement, StepPlacement)
        # For very many values a sample is enough.
        values = side.log_scaling[:: -(-len(side.log_scaling) // _VALUES_FOR_LAW)].astype(float)
        law = StepLaw.of(values, np.searchsorted(placement.thresholds, values), side.n_clusters)
        return cls(placement, law, side.number_votes[side.n_clusters])

    def place_part(self, rows: Matrix, known: list[np.ndarray] | None) -> PlacedRows:
        """Return the labels of the rows of a part; those in the pool keep their vote."""
        scaling = self.placement.scaling(rows)
        labels = np.searchsorted(self.placement.thresholds, scaling)
        confidence = self.agreement * self.law.posterior(scaling, labels)
        if known is not None:
            positions, voted, share = known
            labels[positions], confidence[positions] = voted, share
        return PlacedRows(
            labels=labels.astype(np.int32),
            confidence=confidence.astype(np.float32),
            log_scaling=scaling.astype(np.float32),
            sums=(np.eye(len(self.law.size))[:, labels] @ rows)[None],
            below=(scaling[:, None] <= self.placement.thresholds).sum(axis=0),
            n_outside=int(self.law.stands_on_none(scaling).sum()),
        )


def _prepare_on_dask(
    executor: DaskExecutor, matrix: Matrix, draws: np.ndarray, *options: Any
) -> DaskDrawSolver:
    """Return a solver of draws of the rows that the executor gathered last."""
    local = DrawSolver.prepare(matrix, draws, *options)
    # Computed again on the cluster from the rows held there: the same numbers, no transfer.
    again = DrawSolver.prepare, executor.gathered(), draws[:4], *options
    remote = executor.client.submit(*again, pure=False)
    return DaskDrawSolver(**vars(local), client=executor.client, remote=remote)


@dataclass(frozen=True)
class DaskDrawSolver(DrawSolver):
    """A solver whose batches are solved by the workers, which hold the same solver, ``remote``."""

    client: Any
    remote: Any

    def partitions(self, draws: np.ndarray) -> DrawPartitions:
        """Return the partitions of draws, solved on the cluster."""
        n_workers = _TASKS_A_THREAD * max(1, sum(self.client.nthreads().values()))
        submit = partial(self.client.submit, solve_alone, self.remote, pure=False)
        return join(self.client.gather([submit(task) for task in self.tasks(draws, n_workers)]))
