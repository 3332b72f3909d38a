"""Greedy merges on the table of block statistics, down to a single block."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ccot.blocks.axes import compact
from ccot.blocks.families import Family
from ccot.blocks.problem import Blocks, Informed
from ccot.persistence.registry import stored


@stored()
@dataclass(frozen=True)
class Merge:
    """One step: on one side, cluster ``second`` of the finest partition joins ``first``."""

    axis: int
    first: int
    second: int
    cost: float  # information lost


@stored()
@dataclass(frozen=True)
class Hierarchy:
    """The merges of both sides, each with the finest clusters of the other as features."""

    shape: tuple[int, int]  # before the first merge
    merges: tuple[Merge, ...]  # rows first, then columns, in the order they were made

    def side(self, axis: int) -> list[Merge]:
        """Return the merges of one side."""
        return [merge for merge in self.merges if merge.axis == axis]

    def costs(self, axis: int) -> np.ndarray:
        """Return merge costs of one side: entry k - 2 is that of going from k to k - 1."""
        return np.array([merge.cost for merge in self.side(axis)])[::-1]

    def cut(self, axis: int, n_clusters: int) -> np.ndarray:
        """Return the coarse cluster of every finest cluster of one side."""
        labels = np.arange(self.shape[axis])
        for merge in self.side(axis)[: max(self.shape[axis] - n_clusters, 0)]:
            labels[labels == merge.second] = merge.first
        return compact(labels)

    def nodes(self, axis: int) -> tuple[np.ndarray, list[tuple[int, int]]]:
        """Return the leaves under every node of one side's tree, and the nodes each merge joins."""
        n_leaves = self.shape[axis]
        current = list(range(n_leaves))
        members, parts = [*np.eye(n_leaves)], []
        for merge in self.side(axis):
            pair = current[merge.first], current[merge.second]
            parts.append(pair)
            current[merge.first] = len(members)
            members.append(members[pair[0]] + members[pair[1]])
        return np.array(members), parts


@dataclass(frozen=True)
class Start:
    """An over-segmentation and its hierarchy."""

    fine: Blocks
    hierarchy: Hierarchy

    def cut(self, numbers: tuple[int | None, int | None]) -> Blocks:
        """Return the blocks merged to the given numbers of clusters; None: side unchanged."""
        rows, columns = (
            self.hierarchy.cut(axis, self.fine.shape[axis] if number is None else number)
            for axis, number in enumerate(numbers)
        )
        return self.fine.merged(rows, columns)


def build_hierarchy(problem: Informed, blocks: Blocks, axes: Sequence[int] = (0, 1)) -> Hierarchy:
    """Return the hierarchy in which every merge joins the cheapest pair of clusters of a side."""
    merges = [merge for axis in axes for merge in merge_side(problem, blocks, axis)]
    return Hierarchy(blocks.shape, tuple(merges))


def pair_costs(problem: Informed, total: np.ndarray, exposure: np.ndarray) -> np.ndarray:
    """Return the information lost by merging each pair of rows; infinite on the diagonal."""
    own = problem.information(total, exposure).sum(axis=1)
    one, other = np.triu_indices(len(own), 1)
    joint = problem.information(total[one] + total[other], exposure[one] + exposure[other])
    costs = np.full((len(own), len(own)), np.inf)
    costs[one, other] = costs[other, one] = own[one] + own[other] - joint.sum(axis=1)
    return costs


def share_kept(problem: Informed | Family, finest: Blocks, coarse: Blocks) -> float:
    """Return the share of the finest blocks' information that coarser ones keep."""
    whole = np.atleast_2d(finest.total.sum()), np.atleast_2d(finest.exposure.sum())
    alone = problem.information(*whole).sum()
    held = problem.information(finest.total, finest.exposure)
    full = held.sum() - alone
    kept = problem.information(coarse.total, coarse.exposure).sum() - alone
    # If blocks have no more information than a single one, the difference is rounding.
    rounding = 1e-12 * np.abs(held).sum() + 1e-14 * np.abs(finest.total).sum()
    return float(np.clip(kept / full, 0.0, 1.0)) if full > rounding else 1.0


def merge_side(problem: Informed, blocks: Blocks, axis: int) -> list[Merge]:
    """Return the merges of one side, each of the cheapest pair of clusters."""
    total, exposure = (table.copy() for table in blocks.table(axis))
    costs, own = pair_costs(problem, total, exposure), problem.information(total, exposure)
    own, alive, merges = own.sum(axis=1), np.arange(len(total)), []
    while len(alive) > 1:
        first, second = sorted(divmod(int(np.argmin(costs)), len(own)))
        merges.append(Merge(axis, first, second, max(float(costs[first, second]), 0.0)))
        total[first] += total[second]
        exposure[first] += exposure[second]
        alive = alive[alive != second]
        joint = problem.information(total[alive] + total[first], exposure[alive] + exposure[first])
        own[first] = problem.information(total[[first]], exposure[[first]]).sum(axis=1)[0]
        costs[second, :] = costs[:, second] = np.inf
        costs[first, alive] = costs[alive, first] = own[alive] + own[first] - joint.sum(axis=1)
        costs[first, first] = np.inf
    return merges
