"""Where rows of a table go: those that were fitted, and unseen ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from sklearn.utils import gen_batches

from ccot.blocks.axes import Profiles
from ccot.blocks.problem import Blocks
from ccot.blocks.sweep import excess_share, log_marginal, soft_plan
from ccot.blocks.table_problem import TableProblem
from ccot.blocks.tables import TablePreparation
from ccot.coclustering import Placement
from ccot.io.table import Table
from ccot.persistence.registry import stored

# Cells that are made at once.
_PART_CELLS = 2**22


def table_parts(table: Table | np.ndarray, preparation: TablePreparation) -> Iterator[Profiles]:
    """Yield the cells of rows, so many at a time that they take little memory."""
    if isinstance(table, np.ndarray):
        table = Table(dict(zip(preparation.names, table.T, strict=True)))
    n_cells = max(sum(column.n_cells for column in preparation.columns), 1)
    for part in gen_batches(table.shape[0], max(1, _PART_CELLS // n_cells)):
        yield preparation.cells(table, part)


@stored()
@dataclass(frozen=True, kw_only=True)
class TablePlacement(Placement):
    """Places unseen rows of a table.

    Attributes
    ----------
    preparation : TablePreparation
        How cells are made.
    natural, cumulant : arrays of shape (n_clusters, n_cells)
        Parameters of the clusters, over the dispersions.
    marginal : array of shape (n_clusters,)
        Log shares of the clusters.
    alone : array of shape (n_cells,)
        Cumulants where there are no clusters.
    """

    preparation: TablePreparation
    natural: np.ndarray
    cumulant: np.ndarray
    marginal: np.ndarray
    alone: np.ndarray

    def labels(self, points: Table) -> np.ndarray:  # type: ignore[override]
        """Return the clusters of rows; a row of gaps goes to the largest."""
        return np.concatenate(
            [self.gains(rows).argmax(axis=1) for rows in table_parts(points, self.preparation)]
        )

    def labels_and_confidence(self, points: Table) -> tuple[np.ndarray, np.ndarray]:
        """Return the clusters of rows and how sure they are; 0 for a row of gaps."""
        pairs = [self.assign(rows) for rows in table_parts(points, self.preparation)]
        labels, confidence = (np.concatenate(both) for both in zip(*pairs, strict=True))
        return labels, confidence

    def log_likelihood(self, points: Table) -> np.ndarray:
        """Return what each row gains in its cluster over no clusters, per observed cell."""
        gains = []
        for rows in table_parts(points, self.preparation):
            best = self.gains(rows).argmax(axis=1)
            gain = rows.gain(self.natural, self.cumulant)[np.arange(len(best)), best]
            gain = gain + rows.exposure @ self.alone
            gains.append(gain / np.maximum((rows.exposure > 0).sum(axis=1), 1))
        return np.concatenate(gains)

    def assign(self, rows: Profiles) -> tuple[np.ndarray, np.ndarray]:
        """Return the clusters of prepared rows and how sure they are."""
        gain = self.gains(rows)
        labels = gain.argmax(axis=1)
        return labels, excess_share(soft_plan(gain), labels, ~(rows.exposure > 0).any(axis=1))

    def gains(self, rows: Profiles) -> np.ndarray:
        """Return what each row gains by going to each cluster, in nats."""
        return rows.gain(self.natural, self.cumulant) + self.marginal


@dataclass(frozen=True)
class PlacedRows:
    """All rows in their clusters: as unseen rows would be placed.

    Attributes
    ----------
    placement : TablePlacement
        Where rows go.
    blocks : Blocks
        Clusters with their statistics by cell.
    confidence : array of shape (n_rows,)
        How sure they are.
    """

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


def place_rows(
    problem: TableProblem, preparation: TablePreparation, blocks: Blocks, balanced: bool
) -> PlacedRows:
    """Place the rows that were searched, as unseen rows would be."""
    (placed,) = read_through([problem.rows], [place_side(problem, preparation, blocks)])
    if balanced or len(np.unique(placed.blocks.labels[0])) < blocks.shape[0]:
        return replace(placed, blocks=blocks)
    return placed


def read_through(
    parts: Iterable[Profiles], placements: Sequence[TablePlacement]
) -> list[PlacedRows]:
    """Place rows part by part, by one or more placements, and sum their cells within clusters."""
    sums = [np.zeros((2, *placement.natural.shape)) for placement in placements]
    assigned: list[list[tuple[np.ndarray, np.ndarray]]] = [[] for _ in placements]
    for rows in parts:
        for placement, whole, answers in zip(placements, sums, assigned, strict=True):
            answers.append(placement.assign(rows))
            whole += rows.blocks(answers[-1][0], len(whole[0]))
    placed = []
    for placement, whole, answers in zip(placements, sums, assigned, strict=True):
        labels, confidence = (np.concatenate(both) for both in zip(*answers, strict=True))
        blocks = Blocks((labels, np.arange(whole[0].shape[1])), whole[0], whole[1])
        placed.append(PlacedRows(placement, blocks, confidence))
    return placed
