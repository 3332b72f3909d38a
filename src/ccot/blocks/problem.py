"""A matrix seen through one family: totals and exposures, collapsed over clusters.

Rows and columns are treated alike: each side of the matrix is an :class:`AxisView`, and everything
that is done to rows is done to columns through the other view. Sums over clusters cost O(nnz) for
hard labels, and exposures stay factored wherever they are products. A view may have a copy of its
arrays on a device: profiles are then made and kept there, and only tables of blocks and labels come
back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from ccot.blocks.families import FAMILIES, Terms
from ccot.persistence.registry import stored
from ccot.runtime.backends import NUMPY, Backend, fall_back
from ccot.runtime.types import Array, Matrix, is_sparse

# Entries looked at together where something is kept of each, and where it should stay in a cache.
_PART_ENTRIES, _CACHE_ENTRIES = 2**23, 2**18
_CACHE_BYTES = 2**22
# What a device keeps of a row or column: profiles and plans over the finest clusters.
_POINT_BYTES = 2**11


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
    backend : Backend
        Where totals and exposures are. What is small, ``pooled`` and tables of blocks, is in NumPy.
    """

    total: Array
    exposure: Array
    pooled: np.ndarray | None
    backend: Backend = NUMPY

    def blocks(self, assignment: Array, n_clusters: int) -> Terms:
        """Return totals and exposures summed within clusters of the points."""
        assignment = _bring(self.backend, assignment, n_clusters)
        fetch = self.backend.fetch
        total = fetch(stack(self.total, assignment, n_clusters))
        if self.pooled is None:
            return total, fetch(stack(self.exposure, assignment, n_clusters))
        return total, np.outer(fetch(_pool(self.exposure, assignment, n_clusters)), self.pooled)

    def gain(self, natural: np.ndarray, cumulant: np.ndarray) -> Array:
        """Return the log-likelihood of every point under every cluster's parameters."""
        send = self.backend.send
        gain = self.total @ send(natural.T)
        if self.pooled is None:
            return gain - self.exposure @ send(cumulant.T)
        return gain - self.exposure[:, None] * send(cumulant @ self.pooled)

    def take(self, members: np.ndarray | slice) -> Profiles:
        """Return the profiles of some of the points."""
        members = members if isinstance(members, slice) else self.backend.send(members)
        return replace(self, total=self.total[members], exposure=self.exposure[members])

    def parts(self, n_clusters: int) -> list[Profiles]:
        """Cut the points into parts whose gains over so many clusters fit a device at once."""
        n_points = self.total.shape[0]
        step = max(1, self.backend.chunk_bytes // (8 * n_clusters))
        if self.backend.device is None or n_points <= step:
            return [self]
        return [self.take(slice(first, first + step)) for first in range(0, n_points, step)]

    def full_exposure(self) -> Array:
        """Return the exposures as a matrix."""
        if self.pooled is None:
            return self.exposure
        return self.exposure[:, None] * self.backend.send(self.pooled)


@dataclass(frozen=True)
class AxisView:
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
    backend : Backend
        Where these arrays are.
    copy : AxisView or None
        The same on a device, where profiles are to be made.
    """

    values: Matrix
    exposure: Array
    partner_exposure: Array
    observed: Array | None = None
    turned: Matrix | None = None
    backend: Backend = NUMPY
    copy: AxisView | None = None

    def __len__(self) -> int:
        return self.values.shape[0]

    @property
    def there(self) -> AxisView:
        """Where profiles are made: the copy on a device, if there is one."""
        return self if self.copy is None else self.copy

    def profiles(self, partner: Array, n_partners: int) -> Profiles:
        """Collapse the other side to its clusters, given by labels or by soft assignments."""
        if self.copy is not None:
            return self.copy.profiles(partner, n_partners)
        partner = _bring(self.backend, partner, n_partners)
        values = self.values
        if partner.ndim == 2 and self.turned is not None and partner.nbytes > _CACHE_BYTES:
            # Where plans do not fit into a cache, the shorter of both tables is the one to jump in.
            values = self.turned.T if len(partner) > len(self) else values
        total = _collapse(values, partner, n_partners)
        if self.observed is not None:
            seen = _collapse(self.observed, partner, n_partners)
            return Profiles(total, seen, None, self.backend)
        pooled = self.backend.fetch(_pool(self.partner_exposure, partner, n_partners))
        return Profiles(total, self.exposure, pooled, self.backend)

    def transposed(self) -> AxisView:
        """Return the face of the other side; dense arrays are shared with it."""
        sparse = is_sparse(self.values)
        return replace(
            self,
            values=sp.csr_array(self.values.T) if sparse else self.values.T,
            exposure=self.partner_exposure,
            partner_exposure=self.exposure,
            observed=None if self.observed is None else self.observed.T,
            turned=self.values if sparse else None,
        )

    def sent(self, backend: Backend) -> AxisView:
        """Return a copy of the arrays on a device."""
        return AxisView(
            values=backend.send(self.values),
            exposure=backend.send(self.exposure),
            partner_exposure=backend.send(self.partner_exposure),
            observed=None if self.observed is None else backend.send(self.observed),
            backend=backend,
        )

    def squares(self, own: np.ndarray, partner: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
        """Return the squares of the values over their exposures, summed within blocks."""
        if self.copy is not None:
            return self.copy.squares(own, partner, shape)
        whole = [slice(0, len(self))]
        parts = _parts(self.values, _PART_ENTRIES) if self.backend is NUMPY else whole
        backend, table = self.backend, np.zeros(shape)
        columns = _shares(backend, partner, shape[1]) * self._inverse(self.partner_exposure)
        for part in parts:
            values = self.values if len(parts) == 1 else self.values[part]
            rows = _shares(backend, own[part], shape[0]) * self._inverse(self.exposure[part])
            table += backend.fetch(rows.T @ (backend.squared(values) @ columns))
        return table

    def _inverse(self, exposure: Array) -> Array:
        """Return one over exposures as a column; 0 for those of points that hold nothing."""
        xp = self.backend.xp
        return xp.where(exposure > 0, 1 / xp.where(exposure > 0, exposure, 1.0), 0.0)[:, None]

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
    faces : tuple of AxisView
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
    faces: tuple[AxisView, AxisView]
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

    @property
    def backend(self) -> Backend:
        """Where profiles are made."""
        return self.faces[0].there.backend

    def here(self) -> BlockProblem:
        """Return the problem without copies on a device."""
        rows, columns = (replace(face, copy=None) for face in self.faces)
        return replace(self, faces=(rows, columns))

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
        return self.noise_left(2.0 * float(self.information(total, exposure).sum()))

    def noise_left(self, explained: float) -> float:
        """Return the variance that is left of real values, given the squares explained."""
        floor = 1e-12 * max(self.sum_squares, 1e-300)
        return max(self.sum_squares - explained, floor) / max(self.n_observed, 1)


def make_problem(
    values: Matrix,
    family: str,
    precision: np.ndarray | None = None,
    backend: Backend = NUMPY,
) -> BlockProblem:
    """Build the problem of a prepared matrix.

    Parameters
    ----------
    values : ndarray or CSR array of shape (n_rows, n_columns)
        Prepared values; NaN is missing (gaussian only).
    family : str
        Name of the family.
    precision : array of shape (n_columns,), optional
        Inverse noise variance of the columns (gaussian only).
    backend : Backend, optional
        Where profiles are to be made.

    Returns
    -------
    BlockProblem
        The problem, with the dispersion of counts in its unit.
    """
    n_rows, n_columns = values.shape
    if family == "poisson":
        row_degree, column_degree = _sums(values, 1), _sums(values, 0)
        scale = np.sqrt(max(row_degree.sum(), 1e-300))
        face = AxisView(values, row_degree / scale, column_degree / scale)
        overall = 1.0 if row_degree.any() else 0.0
        # Frequencies are counts in a smaller unit: no entry is taken for less than one of it.
        unit = min(1.0, max(float(values.max()), 1e-300)) if overall else 1.0
        faces = _both(face, backend)
        return BlockProblem(family, faces, overall, n_rows * n_columns, dispersion=unit, unit=unit)
    weights = np.ones(n_columns) if precision is None else precision
    observed = None if is_sparse(values) else np.isfinite(values)
    if observed is None or observed.all():
        face = AxisView(_weigh(values, weights), np.ones(n_rows), weights)
        n_observed, exposure = n_rows * n_columns, n_rows * float(weights.sum())
    else:
        values = np.where(observed, values, 0.0)
        face = AxisView(_weigh(values, weights), np.ones(n_rows), weights, observed * weights)
        n_observed, exposure = int(observed.sum()), float((observed * weights).sum())
    return BlockProblem(
        family,
        _both(face, backend),
        float(face.values.sum()) / max(exposure, 1e-300),
        n_observed,
        float(_sum_squares(values) @ weights) if family == "gaussian" else 0.0,
    )


def _both(face: AxisView, backend: Backend) -> tuple[AxisView, AxisView]:
    """Return the faces of rows and columns; of a sparse matrix each knows how the other is kept."""
    other = face.transposed()
    sparse = is_sparse(face.values)
    if sparse:
        face = replace(face, turned=other.values)
    backend = _with_room(face, backend)
    if backend.device is None:
        return face, other
    copy = face.sent(backend)
    turned = other.sent(backend) if sparse else copy.transposed()
    return replace(face, copy=copy), replace(other, copy=turned)


def _with_room(face: AxisView, backend: Backend) -> Backend:
    """Return the backend, or NumPy where a matrix and what is made of it would not fit."""
    free, values = backend.free_bytes(), face.values
    arrays = (values.data, values.indices, values.indptr) if is_sparse(values) else (values,)
    # Both sides of a sparse matrix, or the gaps of a dense one, and as much again to work with.
    needed = 4 * sum(array.nbytes for array in arrays) + _POINT_BYTES * sum(values.shape)
    if free is None or needed <= free:
        return backend
    return fall_back(
        f"the fit needs about {needed / 1e9:.1f} GB on device={backend.device!r}, where "
        f"{free / 1e9:.1f} GB are free"
    )


@stored()
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

    @property
    def assignments(self) -> tuple[np.ndarray, np.ndarray]:
        """The plans where there are any and every cluster is somebody's best; else the labels."""
        if self.plans is None or (self.plans[0].shape[1], self.plans[1].shape[1]) != self.shape:
            return self.labels
        return self.plans

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
    if blocks is None:
        rows, columns = (np.zeros(n, np.int64) for n in problem.shape)
        squares = face.squares(rows, columns, (1, 1))
    else:
        mean = blocks.total / np.maximum(blocks.exposure, 1e-300)
        squares = face.squares(*blocks.labels, blocks.shape)
        squares = np.divide(squares, mean, out=np.zeros_like(mean), where=mean > 0)
    count = float(face.values.sum())
    excess = max(float(squares.sum()) - count, 1e-12 * float(np.clip(count, 1e-288, 1.0)))
    return excess / max(n_free, 1)


def _parts(matrix: Matrix, size: int) -> list[slice]:
    """Cut the rows of a matrix into parts of about so many entries."""
    n_rows = matrix.shape[0]
    step = max(1, n_rows * size // max(n_entries(matrix), 1))
    return [slice(first, min(first + step, n_rows)) for first in range(0, n_rows, step)]


def n_entries(matrix: Matrix) -> int:
    """Return how many entries a matrix in NumPy stores."""
    return matrix.nnz if is_sparse(matrix) else matrix.size


def _compact(labels: np.ndarray) -> np.ndarray:
    return np.unique(labels, return_inverse=True)[1].reshape(-1)


def _sums(values: Matrix, axis: int) -> np.ndarray:
    return np.asarray(values.sum(axis=axis), dtype=np.float64).ravel()


def _sum_squares(values: Matrix) -> np.ndarray:
    """Return the sums of squares of the columns, without a squared copy of a dense matrix."""
    if is_sparse(values):
        return _sums(values * values, 0)
    return np.einsum("ij,ij->j", values, values)


def _weigh(values: Matrix, weights: np.ndarray) -> Matrix:
    if (weights == 1).all():
        return values
    if is_sparse(values):
        return sp.csr_array(values @ sp.diags_array(weights))
    return values * weights


def _shares(backend: Backend, labels: Array, n_clusters: int) -> Array:
    """Return labels as shares of zero and one."""
    return backend.send(np.eye(n_clusters))[backend.send(labels)]


def _bring(backend: Backend, assignment: Array, n_clusters: int) -> Array:
    """Bring labels or shares to where they are summed with; a device sums with shares only."""
    if backend.device is None:
        return assignment
    if assignment.ndim == 1:
        return _shares(backend, assignment, n_clusters)
    return backend.send(assignment)


def _pool(vector: Array, assignment: Array, n_clusters: int) -> Array:
    if assignment.ndim == 2:
        return vector @ assignment
    return np.bincount(assignment, weights=vector, minlength=n_clusters)


def stack(matrix: Matrix, assignment: Array, n_clusters: int) -> Array:
    """Sum the rows of a matrix within clusters."""
    if assignment.ndim == 2:
        return assignment.T @ matrix
    stacked = _indicator(assignment, n_clusters).T @ matrix
    return stacked.toarray() if is_sparse(stacked) else np.asarray(stacked)


def _collapse(matrix: Matrix, assignment: Array, n_clusters: int) -> Array:
    """Sum the columns of a matrix within clusters."""
    if isinstance(matrix, np.ndarray):
        shares = assignment if assignment.ndim == 2 else np.eye(n_clusters)[assignment]
        if matrix.flags.c_contiguous:
            return matrix @ shares
        # A view of what is kept by the other side: multiplied as it lies, no slower than a copy.
        return np.ascontiguousarray((shares.T @ matrix.T).T)
    if assignment.ndim == 2:
        return matrix @ assignment
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
