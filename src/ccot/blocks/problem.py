"""A matrix seen through one family: totals and exposures, collapsed over clusters.

Rows and columns are treated alike: each side of the matrix is a :class:`Face`, and everything that
is done to rows is done to columns through the other face. Sums over clusters cost O(nnz) for hard
labels, and exposures stay factored wherever they are products.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ccot.blocks.families import FAMILIES, Terms

Matrix = Any

# Entries looked at together where something is kept of each, and where it should stay in a cache.
_PART_ENTRIES, _CACHE_ENTRIES = 2**23, 2**18
_CACHE_BYTES = 2**22


@dataclass(frozen=True)
class Profiles:
    """Totals of the points of a face over the clusters of the other side.

    Attributes
    ----------
    total : array of shape (n, m)
        Totals.
    exposure : array of shape (n,) or (n, m)
        Exposures; the points' own factor where ``pooled`` holds the other one.
    pooled : array of shape (m,) or None
        The clusters' factor of the exposure.
    """

    total: np.ndarray
    exposure: np.ndarray
    pooled: np.ndarray | None

    def blocks(self, assignment: np.ndarray, n_clusters: int) -> Terms:
        """Return totals and exposures summed within clusters of the points."""
        total = stack(self.total, assignment, n_clusters)
        if self.pooled is None:
            return total, stack(self.exposure, assignment, n_clusters)
        return total, np.outer(_pool(self.exposure, assignment, n_clusters), self.pooled)

    def gain(self, natural: np.ndarray, cumulant: np.ndarray) -> np.ndarray:
        """Return the log-likelihood of every point under every cluster's parameters."""
        if self.pooled is None:
            return self.total @ natural.T - self.exposure @ cumulant.T
        return self.total @ natural.T - np.outer(self.exposure, cumulant @ self.pooled)

    def take(self, members: np.ndarray) -> Profiles:
        """Return the profiles of some of the points."""
        return Profiles(self.total[members], self.exposure[members], self.pooled)

    def full_exposure(self) -> np.ndarray:
        """Return the exposures as a matrix."""
        return self.exposure if self.pooled is None else np.outer(self.exposure, self.pooled)


@dataclass(frozen=True)
class Face:
    """The matrix seen from its rows or, transposed, from its columns.

    Attributes
    ----------
    values : ndarray or CSR array of shape (n, d)
        Values times precision.
    exposure : array of shape (n,)
        This side's factor of the exposure.
    partner_exposure : array of shape (d,)
        The other side's factor.
    observed : array of shape (n, d) or None
        Exposure of every entry where some are missing; it replaces the product.
    turned : CSR array of shape (d, n) or None
        The values of a sparse matrix once more, stored by the other side.
    """

    values: Matrix
    exposure: np.ndarray
    partner_exposure: np.ndarray
    observed: np.ndarray | None = None
    turned: Matrix | None = None

    def __len__(self) -> int:
        return self.values.shape[0]

    def profiles(self, partner: np.ndarray, n_partners: int) -> Profiles:
        """Collapse the other side to its clusters, given by labels or by soft assignments."""
        values = self.values
        if partner.ndim == 2 and self.turned is not None and partner.nbytes > _CACHE_BYTES:
            # Where plans do not fit into a cache, the shorter of both tables is the one to jump in.
            values = self.turned.T if len(partner) > len(self) else values
        total = _collapse(values, partner, n_partners)
        if self.observed is not None:
            return Profiles(total, _collapse(self.observed, partner, n_partners), None)
        return Profiles(total, self.exposure, _pool(self.partner_exposure, partner, n_partners))

    def transposed(self) -> Face:
        """Return the face of the other side."""
        values = self.values
        values = sp.csr_array(values.T) if sp.issparse(values) else np.ascontiguousarray(values.T)
        observed = None if self.observed is None else np.ascontiguousarray(self.observed.T)
        turned = self.values if sp.issparse(values) else None
        return Face(values, self.partner_exposure, self.exposure, observed, turned)

    def is_empty(self) -> np.ndarray:
        """Tell which points hold nothing to go by: nothing observed, or no exposure."""
        if self.observed is not None:
            return self.observed.sum(axis=1) == 0
        return self.exposure == 0


@dataclass(frozen=True)
class BlockProblem:
    """A matrix prepared for one family.

    Attributes
    ----------
    family : str
        Name of the family.
    faces : tuple of Face
        Rows and columns.
    overall : float
        Mean over all exposure.
    n_observed : int
        Number of observed entries.
    sum_squares : float
        Weighted sum of squares, of the gaussian family only.
    dispersion : float
        Variance in units of the family's own; log-likelihoods are divided by it.
    n_effects : int
        Free parameters besides those of the blocks.
    unit : float
        What counts as one where amounts are small; block means are smoothed in this unit.
    """

    family: str
    faces: tuple[Face, Face]
    overall: float
    n_observed: int
    sum_squares: float = 0.0
    dispersion: float = 1.0
    n_effects: int = 0
    unit: float = 1.0

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return len(self.faces[0]), len(self.faces[1])

    def terms(self, total: np.ndarray, exposure: np.ndarray) -> Terms:
        """Return natural parameters and cumulants of blocks."""
        return FAMILIES[self.family].terms(total / self.unit, exposure / self.unit, self.overall)

    def information(self, total: np.ndarray, exposure: np.ndarray) -> np.ndarray:
        """Return the maximised log-likelihood of blocks, without constants."""
        return FAMILIES[self.family].information(total, exposure)

    def table(self, row_labels: np.ndarray, column_labels: np.ndarray, shape: tuple[int, int]):
        """Return totals and exposures of the blocks of a co-clustering, hard or soft."""
        return self.faces[0].profiles(column_labels, shape[1]).blocks(row_labels, shape[0])

    def with_dispersion(self, dispersion: float) -> BlockProblem:
        """Return the same problem with another dispersion."""
        return replace(self, dispersion=float(dispersion))

    def noise(self, total: np.ndarray, exposure: np.ndarray) -> float:
        """Return the dispersion around blocks: that of the residuals for the gaussian family."""
        if self.family != "gaussian":
            return self.dispersion
        explained = 2.0 * float(self.information(total, exposure).sum())
        floor = 1e-12 * max(self.sum_squares, 1e-300)
        return max(self.sum_squares - explained, floor) / max(self.n_observed, 1)


def make_problem(values: Matrix, family: str, precision: np.ndarray | None = None) -> BlockProblem:
    """Build the problem of a prepared matrix.

    Parameters
    ----------
    values : ndarray or CSR array of shape (n_rows, n_columns)
        Prepared values; NaN is missing (gaussian only).
    family : str
        Name of the family.
    precision : array of shape (n_columns,), optional
        Inverse noise variance of the columns (gaussian only).

    Returns
    -------
    BlockProblem
        The problem, with the dispersion of counts in its unit.
    """
    n_rows, n_columns = values.shape
    if family == "poisson":
        row_degree, column_degree = _sums(values, 1), _sums(values, 0)
        scale = np.sqrt(max(row_degree.sum(), 1e-300))
        face = Face(values, row_degree / scale, column_degree / scale)
        overall = 1.0 if row_degree.any() else 0.0
        # Frequencies are counts in a smaller unit: no entry is taken for less than one of it.
        unit = min(1.0, max(float(values.max()), 1e-300)) if overall else 1.0
        faces = _both(face)
        return BlockProblem(family, faces, overall, n_rows * n_columns, dispersion=unit, unit=unit)
    weights = np.ones(n_columns) if precision is None else precision
    observed = None if sp.issparse(values) else np.isfinite(values)
    if observed is None or observed.all():
        face = Face(_weigh(values, weights), np.ones(n_rows), weights)
        n_observed, exposure = n_rows * n_columns, n_rows * float(weights.sum())
    else:
        values = np.where(observed, values, 0.0)
        face = Face(_weigh(values, weights), np.ones(n_rows), weights, observed * weights)
        n_observed, exposure = int(observed.sum()), float((observed * weights).sum())
    return BlockProblem(
        family,
        _both(face),
        float(face.values.sum()) / max(exposure, 1e-300),
        n_observed,
        float(_sum_squares(values) @ weights) if family == "gaussian" else 0.0,
    )


def _both(face: Face) -> tuple[Face, Face]:
    """Return the faces of rows and columns; of a sparse matrix each knows how the other is kept."""
    other = face.transposed()
    return (replace(face, turned=other.values) if sp.issparse(other.values) else face), other


@dataclass(frozen=True)
class Blocks:
    """A co-clustering of a problem.

    Attributes
    ----------
    labels : tuple of int arrays
        Clusters of rows and of columns.
    total, exposure : arrays of shape (n_row_clusters, n_column_clusters)
        Block statistics.
    n_sweeps : int
        Sweeps that led here.
    plans : tuple of arrays, or None
        The soft assignments whose hard reading the labels are, where sweeps ended soft.
    """

    labels: tuple[np.ndarray, np.ndarray]
    total: np.ndarray
    exposure: np.ndarray
    n_sweeps: int = 0
    plans: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of row and column clusters."""
        return self.total.shape[0], self.total.shape[1]

    def table(self, axis: int) -> Terms:
        """Return totals and exposures with the clusters of a side as rows."""
        return (self.total.T, self.exposure.T) if axis else (self.total, self.exposure)

    def merged(self, rows: np.ndarray, columns: np.ndarray) -> Blocks:
        """Return coarser blocks, given the coarse cluster of every cluster of both sides.

        Statistics of blocks add up, so the matrix is not looked at again.
        """
        shape = int(rows.max()) + 1, int(columns.max()) + 1
        total, exposure = (
            stack(stack(table, rows, shape[0]).T, columns, shape[1]).T
            for table in (self.total, self.exposure)
        )
        return Blocks((rows[self.labels[0]], columns[self.labels[1]]), total, exposure)

    def relabelled(self, axis: int, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the labels of both sides, those of one side replaced."""
        return (self.labels[0], labels) if axis else (labels, self.labels[1])


def make_blocks(
    problem: BlockProblem, row_labels: np.ndarray, column_labels: np.ndarray, n_sweeps: int = 0
) -> Blocks:
    """Number the clusters without gaps, in the order they had, and collect the statistics."""
    labels = _compact(row_labels), _compact(column_labels)
    shape = int(labels[0].max()) + 1, int(labels[1].max()) + 1
    total, exposure = problem.table(*labels, shape)
    return Blocks(labels, total, exposure, n_sweeps)


def relabel_side(blocks: Blocks, profiles: Profiles, axis: int, labels: np.ndarray) -> Blocks:
    """Return blocks with other labels on one side, whose profiles over the other are known.

    The matrix is not looked at again.
    """
    labels = _compact(labels)
    total, exposure = profiles.blocks(labels, int(labels.max()) + 1)
    if axis:
        total, exposure = total.T, exposure.T
    return Blocks(blocks.relabelled(axis, labels), total, exposure)


def information(problem: BlockProblem, blocks: Blocks) -> float:
    """Return the information that blocks hold, up to a constant of the data."""
    return float(problem.information(blocks.total, blocks.exposure).sum())


def pearson_dispersion(problem: BlockProblem, blocks: Blocks | None = None) -> float:
    """Return Pearson's estimate of the dispersion; 1 unless poisson.

    Around blocks, or around the degrees alone. It uses
    ``sum (x - e)^2 / e = sum x^2 / e - 2 sum x + sum e``, so that zeros cost nothing.
    """
    if problem.family != "poisson":
        return 1.0
    face = problem.faces[0]
    used = np.count_nonzero(face.exposure), np.count_nonzero(face.partner_exposure)
    n_free = (used[0] - 1) * (used[1] - 1) - (0 if blocks is None else blocks.total.size)
    parts = _parts(face.values, _PART_ENTRIES)
    squares, count = np.sum([_pearson_sums(face, part, blocks) for part in parts], axis=0)
    return float(max(squares - count, 1e-12 * float(np.clip(count, 1e-288, 1.0))) / max(n_free, 1))


def _pearson_sums(face: Face, part: slice, blocks: Blocks | None) -> tuple[float, float]:
    """Return ``sum x^2 / e`` and ``sum x`` of some of the rows."""
    entries = sp.coo_array(face.values[part])
    rows, columns = entries.coords
    expected = face.exposure[part][rows] * face.partner_exposure[columns]
    if blocks is not None:
        mean = blocks.total / np.maximum(blocks.exposure, 1e-300)
        expected = expected * mean[blocks.labels[0][part][rows], blocks.labels[1][columns]]
    squares = np.divide(entries.data**2, expected, out=np.zeros_like(expected), where=expected > 0)
    return float(squares.sum()), float(entries.data.sum())


def _parts(matrix: Matrix, size: int) -> list[slice]:
    """Cut the rows of a matrix into parts of about so many entries."""
    n_rows, n_entries = matrix.shape[0], matrix.nnz if sp.issparse(matrix) else matrix.size
    step = max(1, n_rows * size // max(n_entries, 1))
    return [slice(first, min(first + step, n_rows)) for first in range(0, n_rows, step)]


def _compact(labels: np.ndarray) -> np.ndarray:
    return np.unique(labels, return_inverse=True)[1].reshape(-1)


def _sums(values: Matrix, axis: int) -> np.ndarray:
    return np.asarray(values.sum(axis=axis), dtype=np.float64).ravel()


def _sum_squares(values: Matrix) -> np.ndarray:
    """Return the sums of squares of the columns, without a squared copy of a dense matrix."""
    if sp.issparse(values):
        return _sums(values * values, 0)
    return np.einsum("ij,ij->j", values, values)


def _weigh(values: Matrix, weights: np.ndarray) -> Matrix:
    if (weights == 1).all():
        return values
    if sp.issparse(values):
        return sp.csr_array(values @ sp.diags_array(weights))
    return values * weights


def _pool(vector: np.ndarray, assignment: np.ndarray, n_clusters: int) -> np.ndarray:
    if assignment.ndim == 2:
        return vector @ assignment
    return np.bincount(assignment, weights=vector, minlength=n_clusters)


def stack(matrix: Matrix, assignment: np.ndarray, n_clusters: int) -> np.ndarray:
    """Sum the rows of a matrix within clusters."""
    if assignment.ndim == 2:
        return assignment.T @ matrix
    stacked = _indicator(assignment, n_clusters).T @ matrix
    return stacked.toarray() if sp.issparse(stacked) else np.asarray(stacked)


def _collapse(matrix: Matrix, assignment: np.ndarray, n_clusters: int) -> np.ndarray:
    """Sum the columns of a matrix within clusters."""
    if assignment.ndim == 2:
        return np.asarray(matrix @ assignment)
    if not sp.issparse(matrix):
        return matrix @ np.eye(n_clusters)[assignment]
    # Names as long as the indices are not looked through for shorter ones.
    names = assignment.astype(matrix.indices.dtype, copy=False)
    if matrix.nnz <= _CACHE_ENTRIES:
        return _rename(matrix, slice(0, matrix.shape[0]), names, n_clusters)
    total = np.empty((matrix.shape[0], n_clusters), dtype=matrix.dtype)
    for part in _parts(matrix, _CACHE_ENTRIES):
        total[part] = _rename(matrix, part, names, n_clusters)
    return total


def _rename(matrix: sp.csr_array, part: slice, names: np.ndarray, n_names: int) -> np.ndarray:
    """Return some rows with their columns renamed: entries of one name are summed."""
    starts = matrix.indptr[part.start : part.stop + 1]
    held = slice(starts[0], starts[-1])
    renamed = (matrix.data[held], names[matrix.indices[held]], starts - starts[0])
    return sp.csr_array(renamed, shape=(len(starts) - 1, n_names)).toarray()


def _indicator(labels: np.ndarray, n_clusters: int) -> sp.csr_array:
    ones, ends = np.ones(len(labels)), np.arange(len(labels) + 1)
    return sp.csr_array((ones, labels, ends), shape=(len(labels), n_clusters))
