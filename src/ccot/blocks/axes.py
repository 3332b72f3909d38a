"""Views of the matrix by rows or by columns, with sums over the clusters of the other side.

If a view has a copy on a device, only block tables and labels are copied back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import matmul
from typing import Any

import numpy as np
import scipy.sparse as sp

from ccot.blocks.families import Terms
from ccot.runtime import device_csr, host_csr
from ccot.runtime.backends import NUMPY, Backend, fall_back, is_device_csr, with_values
from ccot.runtime.types import Array, Matrix, is_sparse

# Largest plans and largest totals that fit into a cache.
_CACHE_BYTES, _MOST_BYTES = 2**22, 2**24
# Moved entries are summed for this many clusters at a time: four times faster than for 32.
_CLUSTERS_AT_ONCE = 4
# Smaller changes of shares are ignored.
_UNMOVED = 1e-9
# Bytes per row or column on a device: profiles and plans over the finest clusters.
_POINT_BYTES = 2**11


@dataclass(frozen=True)
class Profiles:
    """Totals of the n points of a view in the m clusters of the other side, on the backend."""

    total: Array
    exposure: Array  # of shape (n, m), or (n,) if ``pooled`` has the factors of the m clusters
    pooled: Array | None
    backend: Backend = NUMPY
    partner: Array | None = None  # the assignment of the other side

    def blocks(self, assignment: Array, n_clusters: int) -> Terms:
        """Return totals and exposures summed within clusters of the points."""
        total, exposure = self.sums(bring(self.backend, assignment, n_clusters), n_clusters)
        return self.backend.fetch(total), self.backend.fetch(exposure)

    def sums(self, brought: Array, n_clusters: int) -> Terms:
        """Return the same as arrays of the backend; ``brought`` is a result of :func:`bring`."""
        add_up = partial(stack, n_clusters=n_clusters)
        add_up = partial(self.backend.sum_by_rows, add_up, width=n_clusters)
        total = add_up(self.total, brought)
        if self.pooled is None:
            return total, add_up(self.exposure, brought)
        pooled = mass(brought, n_clusters, self.backend, self.exposure)
        return total, pooled[:, None] * self.pooled

    def gain(self, natural: Array, cumulant: Array, marginal: Array | float = 0.0) -> Array:
        """Return the log-likelihood of every point under every cluster's parameters and share."""
        send, xp = self.backend.send, self.backend.xp
        gain = self.total @ send(natural.T)
        if self.pooled is None:
            gain -= self.exposure @ send(cumulant.T)
            return gain + send(marginal)
        # One product of two columns is faster than two sums over all points and clusters.
        factors = xp.stack([self.exposure, xp.ones_like(self.exposure)], axis=1)
        pooled = send(cumulant) @ self.pooled
        gain += factors @ xp.stack([-pooled, send(marginal) + xp.zeros_like(pooled)])
        return gain

    def own_gain(self, own: Array, natural: Array, cumulant: Array) -> Array:
        """Return the log-likelihood of every point under the parameters of its own cluster."""
        gain = (self.total * natural[own]).sum(axis=1)
        if self.pooled is None:
            return gain - (self.exposure * cumulant[own]).sum(axis=1)
        return gain - self.exposure * (cumulant @ self.pooled)[own]

    def take(self, members: np.ndarray) -> Profiles:
        """Return the profiles of some of the points."""
        members = self.backend.send(members)
        return replace(self, total=self.total[members], exposure=self.exposure[members])

    def by_rows(self, work: Callable[..., Array], width: int, *others: Array) -> Array:
        """Return the joined results of ``work``, ``width`` values per point, on parts of points."""

        def of_part(total: Array, exposure: Array, *rest: Array) -> Array:
            return work(replace(self, total=total, exposure=exposure), *rest)

        return self.backend.by_rows(of_part, self.total, self.exposure, *others, width=width)

    def full_exposure(self) -> Array:
        """Return the exposures as a matrix."""
        if self.pooled is None:
            return self.exposure
        return self.exposure[:, None] * self.pooled


@dataclass(frozen=True)
class AxisView:
    """The matrix seen from its n rows or, transposed, from its columns."""

    values: Matrix  # times precision
    exposure: Array  # an entry's exposure is the product of both sides', or in ``observed``
    partner_exposure: Array
    observed: Array | None = None  # exposure of every entry, if some are missing
    transposed_values: Matrix | None = None  # of a sparse matrix: CSR of the other side
    backend: Backend = NUMPY
    copy: AxisView | None = None  # the same on a device, if profiles are computed there

    def __len__(self) -> int:
        return self.values.shape[0]

    @property
    def on_device(self) -> AxisView:
        """The view that computes profiles: the copy on a device, if there is one."""
        return self if self.copy is None else self.copy

    def profiles(self, partner: Array, n_partners: int, last: Profiles | None = None) -> Profiles:
        """Return sums over the other side's clusters, updated from the last if few points moved."""
        if self.copy is not None:
            return self.copy.profiles(partner, n_partners)
        partner = self.backend.send(partner)
        total = None if last is None else self._updated(last, partner, n_partners)
        if total is None:
            total = self._total(partner, n_partners)
        if self.observed is not None:
            seen = _collapse(self.observed, partner, n_partners, self.backend)
            return Profiles(total, seen, None, self.backend)
        shares = bring(self.backend, partner, n_partners)
        pooled = mass(shares, n_partners, self.backend, self.partner_exposure)
        return Profiles(total, self.exposure, pooled, self.backend, partner)

    def _total(self, partner: Array, n_partners: int) -> Array:
        is_wide = partner.ndim == 2 and partner.nbytes > _CACHE_BYTES
        if self.transposed_values is not None and is_wide and len(partner) > len(self):
            # If the plan does not fit into a cache, random access to the shorter table is faster.
            return multiply_transposed(self.transposed_values, partner, self.backend)
        return _collapse(self.values, partner, n_partners, self.backend)

    def _updated(self, last: Profiles, partner: Array, n_partners: int) -> Array | None:
        """Return the last totals plus the changes of moved entries; None if too many moved."""
        other, n_before = self.transposed_values, last.total.shape[1]
        if not is_sparse(other) or last.partner is None:
            return None
        if other.nnz <= host_csr.CACHE_ENTRIES or n_before > n_partners:
            return None
        moved, change = _moves(last.partner, partner, n_partners)
        starts = other.indptr
        n_moved = int((starts[moved + 1] - starts[moved]).sum())
        # A moved entry costs several times as much as a summed one: it has to be looked up, and so
        # do its sums if they do not fit into a cache.
        worth = 12 if partner.ndim == 2 else 8 if last.total.nbytes <= _MOST_BYTES else 1
        if n_moved * (n_partners + 40) > other.nnz * worth:
            return None
        total = last.total
        if n_partners > n_before:
            total = np.pad(total, ((0, 0), (0, n_partners - n_before)))
        # Moved entries are summed for a few clusters at a time, so that the sums stay in a cache.
        n_parts = -(-n_partners // _CLUSTERS_AT_ONCE)
        entries, parts = other[moved].T, np.array_split(change, n_parts, axis=1)
        changes = self.backend.map(lambda part: entries @ part, parts)
        return self.backend.by_rows(lambda old, *new: old + np.concatenate(new, 1), total, *changes)

    def transposed(self, backend: Backend = NUMPY) -> AxisView:
        """Return the view of the other side; dense arrays are shared with it."""
        sparse = is_sparse(self.values)
        return replace(
            self,
            values=host_csr.transposed(self.values, backend) if sparse else self.values.T,
            exposure=self.partner_exposure,
            partner_exposure=self.exposure,
            observed=None if self.observed is None else self.observed.T,
            transposed_values=self.values if sparse else None,
        )

    def sent(self, backend: Backend) -> AxisView:
        """Return a copy of the arrays on a device."""
        arrays = self.values, self.exposure, self.partner_exposure, self.observed
        return AxisView(*(a if a is None else backend.send(a) for a in arrays), backend=backend)

    def squares(self, own: np.ndarray, partner: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
        """Return the sums within blocks of squared values divided by their exposures."""
        if self.copy is not None:
            return self.copy.squares(own, partner, shape)
        backend, xp = self.backend, self.backend.xp
        # Points without exposure have no values: dividing by 1 changes nothing.
        own_scale, partner_scale = (
            1 / xp.where(side > 0, side, 1.0) for side in (self.exposure, self.partner_exposure)
        )
        if backend.device is not None:
            columns = bring(backend, partner, shape[1]) * partner_scale[:, None]
            rows = bring(backend, own, shape[0]) * own_scale[:, None]
            held: Any = self.values
            squares = with_values(held, held.values() ** 2) if is_device_csr(held) else held**2
            return backend.fetch(rows.T @ multiply(squares, columns))

        def sum_up(part: slice) -> np.ndarray:
            if is_sparse(self.values):
                values = host_csr.rows_of(self.values, part)
                values.data = values.data**2 * partner_scale.take(values.indices)
            else:
                values = self.values[part] ** 2 * partner_scale
            total = _collapse(values, partner, shape[1], NUMPY) * own_scale[part, None]
            return stack(total, own[part], shape[0])

        return reduce(np.add, backend.map(sum_up, host_csr.summed_parts(self.values)))

    def is_empty(self) -> np.ndarray:
        """Return which points have no data: no observed entries, or no exposure."""
        if self.observed is not None:
            return self.observed.sum(axis=1) == 0
        return self.exposure == 0


def both_views(axis_view: AxisView, backend: Backend) -> tuple[AxisView, AxisView]:
    """Return the views of rows and columns; views of a sparse matrix have both layouts."""
    other = axis_view.transposed(backend)
    sparse = is_sparse(axis_view.values)
    if sparse:
        axis_view = replace(axis_view, transposed_values=other.values)
    if backend.device is not None and not has_room(axis_view.values, backend):
        backend = NUMPY
    if backend.device is None:
        return replace(axis_view, backend=backend), replace(other, backend=backend)
    copy = axis_view.sent(backend)
    other_copy = other.sent(backend) if sparse else copy.transposed()
    return replace(axis_view, copy=copy), replace(other, copy=other_copy)


def has_room(values: Matrix, backend: Backend) -> bool:
    """Return True if a matrix and what is computed from it fit on a device; warn if not."""
    free, held = backend.free_bytes(), 8 * n_entries(values)
    if is_device_csr(values):
        held += values.col_indices().nbytes + values.crow_indices().nbytes
    elif is_sparse(values):
        held += values.indices.nbytes + values.indptr.nbytes
    # Both sides of a sparse matrix, or the mask of a dense one, and as much again to work with.
    needed = 4 * held + _POINT_BYTES * sum(values.shape)
    if free is None or needed <= free:
        return True
    fall_back(
        f"the fit needs about {needed / 1e9:.1f} GB on device={backend.device!r}, where "
        f"{free / 1e9:.1f} GB are free"
    )
    return False


def bring(backend: Backend, assignment: Array, n_clusters: int) -> Array:
    """Return labels or shares on the backend; on a device, labels become shares."""
    assignment = backend.send(assignment)
    if backend.device is None or assignment.ndim == 2:
        return assignment
    return device_csr.shares(assignment, n_clusters, backend.xp.float64)


def _moves(before: Array, after: Array, n_clusters: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the points whose clusters or shares differ, and by how much."""
    if before.ndim == after.ndim == 1:
        moved = np.flatnonzero(before != after)
        eye = np.eye(n_clusters)
        return moved, eye[after[moved]] - eye[before[moved]]
    change = np.eye(n_clusters)[after] if after.ndim == 1 else after.copy()
    if before.ndim == 1:
        change[np.arange(len(before)), before] -= 1
    else:
        change[:, : before.shape[1]] -= before
    # Much faster than the largest change of every row.
    moved = np.flatnonzero(np.abs(change) > _UNMOVED) // n_clusters
    moved = moved[np.diff(moved, prepend=-1) > 0]
    return moved, change[moved]


def mass(
    brought: Array, n_clusters: int, backend: Backend = NUMPY, weights: Array | None = None
) -> Array:
    """Return the number of points in every cluster, or the sum of their shares or weights."""
    if brought.ndim == 1:
        return np.bincount(brought, weights, n_clusters)
    if weights is None:
        return backend.sum_by_rows(lambda part: part.sum(axis=0), brought, width=n_clusters)
    # NumPy's ``@`` does not release the interpreter lock for so short a result.
    add_up = np.dot if backend.device is None else matmul
    return backend.sum_by_rows(add_up, weights, brought, width=n_clusters)


def stack(matrix: Matrix, assignment: Array, n_clusters: int) -> Array:
    """Return the rows of a matrix, summed within clusters."""
    if assignment.ndim == 2:
        return assignment.T @ matrix
    ones, ends = np.ones(len(assignment)), np.arange(len(assignment) + 1)
    indicator = sp.csr_array((ones, assignment, ends), shape=(len(assignment), n_clusters))
    stacked = indicator.T @ matrix
    return stacked.toarray() if is_sparse(stacked) else np.asarray(stacked)


def _collapse(matrix: Matrix, assignment: Array, n_clusters: int, backend: Backend) -> Array:
    """Return the columns of a matrix, summed within clusters."""
    if is_device_csr(matrix) and assignment.ndim == 1:
        return device_csr.multiply(matrix, assignment, n_clusters)
    if backend.device is not None:
        return multiply(matrix, bring(backend, assignment, n_clusters))
    if isinstance(matrix, np.ndarray):
        shares = assignment if assignment.ndim == 2 else np.eye(n_clusters)[assignment]
        return multiply(matrix, shares, backend)
    if assignment.ndim == 2:
        return multiply(matrix, assignment, backend)
    return host_csr.collapse(matrix, assignment, n_clusters, backend)


def compact(labels: np.ndarray) -> np.ndarray:
    """Return labels without unused numbers, in the same order."""
    labels = labels.astype(np.intp, copy=False)
    held = np.bincount(labels) > 0
    return labels if held.all() else (np.cumsum(held) - 1)[labels]


def set_apart(labels: np.ndarray, wanted: int) -> np.ndarray:
    """Return labels with ``wanted`` clusters: single points of the largest ones become clusters."""
    labels = labels.copy()
    for cluster in range(int(labels.max()) + 1, wanted):
        labels[np.flatnonzero(labels == np.bincount(labels).argmax())[-1]] = cluster
    return labels


def multiply(matrix: Matrix, dense: np.ndarray, backend: Backend = NUMPY) -> np.ndarray:
    """Return the product of a matrix and a dense one."""
    if is_device_csr(matrix):
        return device_csr.multiply(matrix, dense, dense.shape[1])
    if is_sparse(matrix) and matrix.format == "csr" and backend.n_jobs > 1:
        return host_csr.multiply(matrix, dense, backend)
    if not isinstance(matrix, np.ndarray) or backend.device is not None:
        return matrix @ dense
    # A transposed array is multiplied in its own memory order.
    by_columns = not matrix.flags.c_contiguous
    return backend.by_rows(lambda p: (dense.T @ p.T).T if by_columns else p @ dense, matrix)


def multiply_transposed(matrix: Matrix, dense: np.ndarray, backend: Backend = NUMPY) -> np.ndarray:
    """Return the product of a transposed matrix and a dense one."""
    if is_sparse(matrix):
        return host_csr.multiply_transposed(matrix, dense, backend)
    return multiply(matrix.T, dense, backend)


def degrees(matrix: Matrix, backend: Backend = NUMPY) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums of the rows and of the columns."""
    if not is_sparse(matrix):
        return matrix.sum(axis=1, dtype=np.float64), matrix.sum(axis=0, dtype=np.float64)
    rows = host_csr.row_sums(matrix, backend)
    return rows, multiply_transposed(matrix, np.ones(len(rows)), backend)


def n_entries(matrix: Matrix) -> int:
    """Return how many entries a matrix stores."""
    # The size of SciPy's sparse matrices is the number of stored entries.
    return matrix.values().shape[0] if is_device_csr(matrix) else matrix.size
