"""What a fit returns: two partitions, how sure they are, and the places of unseen points."""

from dataclasses import dataclass
from operator import matmul

import numpy as np
from sklearn.utils import gen_batches

from ccot.persistence.registry import stored
from ccot.runtime.backends import is_device_csr
from ccot.runtime.device_csr import sum_blocks
from ccot.runtime.types import Matrix


@dataclass(frozen=True, kw_only=True)
class Placement:
    """Places unseen points of one side, which have ``width`` values each."""

    width: int

    def labels(self, points: Matrix) -> np.ndarray:
        """Return the clusters of points, one a row."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Partition:
    """A partition of one side of the matrix, rows or columns; clusters are numbered from 0."""

    labels: np.ndarray
    n_clusters: int

    def sizes(self) -> np.ndarray:
        """Return the numbers of points in the clusters; those of none, labelled -1, left out."""
        # In parts: counting takes memory for labels of 64 bits, which long ones need not have.
        parts = gen_batches(len(self.labels), 2**20)
        return sum(
            (np.bincount(self.labels[part] + 1, minlength=self.n_clusters + 1) for part in parts),
            np.zeros(self.n_clusters + 1, dtype=np.int64),
        )[1:]


@stored()
@dataclass(frozen=True, kw_only=True)
class Side(Partition):
    """A partition, how sure it is (0 to 1 for each point), and where unseen points go."""

    confidence: np.ndarray
    placement: Placement


@dataclass(frozen=True, kw_only=True)
class Coclustering:
    """Two partitions and how they were found.

    ``n_iter`` counts iterations of the slowest transport problem (CCOT), updates of the barycentre
    (CCOT-GW) or sweeps (blocks). ``block_means`` is None where there was no matrix.
    """

    row: Side
    column: Side
    n_iter: int
    block_means: np.ndarray | None = None


def block_means(matrix: Matrix, row: Partition, column: Partition, multiply=matmul) -> np.ndarray:
    """Return the mean of the matrix over each block; missing entries are left out."""
    if not isinstance(matrix, np.ndarray) and is_device_csr(matrix):
        sums = sum_blocks(matrix, row.labels, column.labels, (row.n_clusters, column.n_clusters))
        return sums / np.outer(row.sizes(), column.sizes())
    by_row, by_column = np.eye(row.n_clusters)[row.labels], np.eye(column.n_clusters)[column.labels]
    sizes = np.outer(by_row.sum(axis=0), by_column.sum(axis=0))
    if isinstance(matrix, np.ndarray) and np.isnan(matrix.min()):
        observed = ~np.isnan(matrix)
        sizes = by_row.T @ (observed @ by_column)
        matrix = np.where(observed, matrix, 0.0)
    sums = by_row.T @ multiply(matrix, by_column)
    return np.divide(sums, sizes, out=np.full(sums.shape, np.nan), where=sizes > 0)
