"""Square draws of one matrix: solved in chunks, divided into steps, used to label new points."""

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace
from array_api_compat import device as array_device
from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend
from sklearn.utils import gen_batches
from sklearn.utils.extmath import safe_sparse_dot

from ccot.persistence.registry import stored
from ccot.runtime.backends import Backend, choose_backend, in_parts_that_fit, one_blas_thread
from ccot.runtime.types import Matrix, is_sparse
from ccot.scalings.costs import CrossedCosts, SquareCosts, square_costs, typical_cost
from ccot.scalings.jumps import find_scaling_jumps
from ccot.scalings.sampling import CROSSINGS, are_crossings
from ccot.scalings.steps import StepPlacement, Steps, join, label_steps
from ccot.transport.sinkhorn import Scalings, extend_scaling, sinkhorn

# float32 is used up to this range of the log kernel, in nats, and down to this tolerance.
_FLOAT32_RANGE, _FLOAT32_TOL = 40.0, 5e-7
# Chunks that one task solves before their steps are read together.
_CHUNKS_A_TASK = 16
# Sizes for which shared products pay: smaller squares are multiplied as fast as products are
# looked up, and the products of larger ones take much memory.
_CROSSED_SIZES = range(96, 513)
# Sinkhorn iterations between two checks of the errors on a device other than the CPU.
_CHECK_EVERY = 8
# About this many rows of a draw are used to estimate the typical cost.
_ROWS_TO_LOOK_AT = 64
# New points are compared with the anchors in parts of at most this many costs.
_CELLS_AT_ONCE = 2**19


@dataclass(frozen=True)
class CCOTSettings:
    """Parameters of a fit; :class:`ccot.CCOT` explains them."""

    n_row_clusters: int | None = None
    n_column_clusters: int | None = None
    reg: float | str = 0.2
    scale_cost: str | None = "median"
    n_samplings: int | str = "auto"
    sampling: str = "cover"
    detector: str = "multiscale"
    max_iter: int = 1000
    tol: float = 1e-6
    device: str | None = None

    def transposed(self) -> "CCOTSettings":
        """Return the same settings for the transposed matrix."""
        n_rows, n_columns = self.n_row_clusters, self.n_column_clusters
        return replace(self, n_row_clusters=n_columns, n_column_clusters=n_rows)


@stored("Ballots")
@dataclass(frozen=True)
class DrawPartitions:
    """The partitions of the drawn rows, ``members``, and of all columns, one for each draw."""

    members: np.ndarray
    row: Steps
    column: Steps
    n_iter: np.ndarray
    converged: np.ndarray


@stored()
@dataclass(frozen=True)
class DrawPlacement(StepPlacement):
    """Labels new points by their costs to the anchors: the other side of one solved draw."""

    anchors: Matrix
    log_anchor_scaling: np.ndarray
    members: np.ndarray | None  # coordinates of new points that are in the draw; None: all
    offset: float
    scale: float

    def scaling(self, points: Matrix) -> np.ndarray:
        """Return the logarithms of the points' scalings."""
        parts = gen_batches(points.shape[0], max(1, _CELLS_AT_ONCE // len(self.log_anchor_scaling)))
        return np.concatenate([self._scaling(points[part]) for part in parts])

    def _scaling(self, points: Matrix) -> np.ndarray:
        if self.members is not None:
            points = points[:, self.members]
        points = _shifted(points, self.offset, self.scale)
        log_kernel = safe_sparse_dot(points, self.anchors.T, dense_output=True)
        log_kernel -= _squared_norms(self.anchors) / 2
        mass = 1 / len(self.log_anchor_scaling)
        # The squared norm of a point is in all terms of its sum, so it is added to the scaling.
        scaling = extend_scaling(log_kernel, self.log_anchor_scaling, mass)
        return scaling + _squared_norms(points) / 2


@dataclass(frozen=True)
class DrawSolver:
    """Solves draws of one matrix; log scalings that differ by ``resolution`` count as equal."""

    matrix: Matrix
    # The matrix on the device, shifted if dense, which changes no partition, and scaled so that
    # the log kernel is the product of a draw with itself, apart from norms.
    products: Matrix
    offset: float
    scale: float
    precision: str
    resolution: float
    backend: Backend
    settings: CCOTSettings
    n_jobs: int | None

    @classmethod
    def prepare(
        cls, matrix: Matrix, draws: np.ndarray, settings: CCOTSettings, n_jobs: int | None = None
    ) -> "DrawSolver":
        """Return a solver, with the matrix scaled for ``reg`` and the costs of the first draws."""
        if is_sparse(matrix):
            matrix, offset = sp.csr_array(matrix), 0.0
            largest = float(np.abs(matrix.data).max(initial=0.0)) or 1.0
        else:
            offset = float(np.mean(matrix))
            largest = max(float(matrix.max()) - offset, offset - float(matrix.min())) or 1.0
        squares = [_shifted(matrix[draw], offset, largest) for draw in draws[:4]]
        typical, lowest, highest = np.array([_cost_range(square) for square in squares]).T
        unit = 1 / largest**2 if settings.scale_cost is None else float(np.median(typical))
        factor = 2 / (float(settings.reg) * unit)
        scale = largest / float(np.sqrt(factor))
        spread = factor * float(np.max(highest - lowest))
        extent = factor * float(np.abs([lowest, highest]).max())
        single = spread < _FLOAT32_RANGE and settings.tol >= _FLOAT32_TOL
        precision = "float32" if single else "float64"
        backend = choose_backend(settings.device)
        if is_sparse(matrix):
            products = matrix / scale
        else:
            products = backend.send(_shifted_in_parts(matrix, offset, scale, precision))
        resolution = 16 * float(np.finfo(precision).eps) * (1 + extent)
        numbers = offset, scale, precision, resolution
        return cls(matrix, products, *numbers, backend, settings, n_jobs)

    def partitions(self, draws: np.ndarray) -> DrawPartitions:
        """Return the partitions of draws, solved by joblib's active backend, by default threads."""
        tasks = self.tasks(draws, effective_n_jobs(self.n_jobs))
        # With a GPU, workers are always threads: they share the matrix in its memory.
        active, _ = get_active_backend(prefer="threads")
        if self.backend.device is not None or getattr(active, "supports_sharedmem", False):
            run = Parallel(n_jobs=self.n_jobs, require="sharedmem")
            return join(run(delayed(self.solve_task)(task) for task in tasks))
        run = Parallel(n_jobs=self.n_jobs)
        partitions = run(delayed(solve_alone)(*self._for_other_process(task)) for task in tasks)
        return replace(join(partitions), members=draws)

    def tasks(self, draws: np.ndarray, n_workers: int) -> list[list[np.ndarray]]:
        """Return tasks of about equal size; their chunks do not depend on ``n_workers``."""
        crossed = self._shares_products(draws[: len(CROSSINGS)])
        bytes_each = draws.shape[1] ** 2 * np.dtype(self.precision).itemsize
        chunk_size = len(CROSSINGS) if crossed else max(1, self.backend.chunk_bytes // bytes_each)
        chunks = [draws[part] for part in gen_batches(len(draws), chunk_size)]
        n_tasks = min(len(chunks), n_workers * -(-len(chunks) // (n_workers * _CHUNKS_A_TASK)))
        edges = np.linspace(0, len(chunks), n_tasks + 1).astype(int)
        return [chunks[start:stop] for start, stop in pairwise(edges)]

    def _shares_products(self, draws: np.ndarray) -> bool:
        """Return True if draws are crossings for which sharing products is faster."""
        dense_here = self.backend.device is None and not is_sparse(self.matrix)
        return dense_here and draws.shape[1] in _CROSSED_SIZES and are_crossings(draws)

    def _for_other_process(self, chunks: list[np.ndarray]) -> "tuple[DrawSolver, list[np.ndarray]]":
        """Return a solver with only the rows of these draws, and the draws as indices of them."""
        rows, places = np.unique(np.concatenate(chunks), return_inverse=True)
        some = self.products[rows]
        edges = np.cumsum([len(chunk) for chunk in chunks[:-1]])
        draws = np.split(places.reshape(-1, chunks[0].shape[1]), edges)
        return replace(self, matrix=some, products=some), draws

    def solve_task(self, chunks: list[np.ndarray]) -> DrawPartitions:
        """Return the partitions of the draws of one task."""
        answer = join(self._solve_chunks(chunks))
        members, fetch = np.concatenate(chunks), self.backend.fetch
        row, column = self._steps(answer, members)
        converged = fetch(answer.error) <= self.settings.tol
        return DrawPartitions(members, row, column, fetch(answer.n_iter), converged)

    def _solve_chunks(self, chunks: list[np.ndarray]) -> list[Scalings]:
        """Return the scalings of chunks, all computed in one memory: new memory takes much time."""
        if self.backend.device is not None or is_sparse(self.matrix):
            parts = [in_parts_that_fit(self.solve, draws) for draws in chunks]
            return [answer for some in parts for answer in some]
        size, dtype = chunks[0].shape[1], self.products.dtype
        shared: CrossedCosts | None = None
        room: np.ndarray | None = None
        answers = []
        for draws in chunks:
            if self._shares_products(draws):
                shared = shared or CrossedCosts(size, dtype)
                answers += [self._scale(costs) for costs in shared(self.products[draws[[0, -1]]])]
                continue
            room = np.empty((2, len(draws), size, size), dtype) if room is None else room
            squares, cross = room[:, : len(draws)]
            # "clip" avoids a buffer of NumPy; the indices are known to be valid.
            np.take(self.products, draws, axis=0, out=squares, mode="clip")
            answers.append(self._scale(square_costs(squares, out=cross)))
        return answers

    def solve(self, draws: np.ndarray, precision: str | None = None) -> Scalings:
        """Return the scalings of rows and columns of draws, on the device."""
        send = self.backend.send
        if is_sparse(self.matrix):
            dtype = precision or self.precision
            costs = join([square_costs(self.products[draw], dtype) for draw in draws])
            costs = SquareCosts(send(costs.row_norms), send(costs.column_norms), send(costs.cross))
        elif precision is None:
            costs = square_costs(self.products[send(draws.astype(np.int32))])
        else:
            squares = _shifted(self.matrix[draws], self.offset, self.scale)
            costs = square_costs(send(squares.astype(precision, copy=False)))
        return self._scale(costs)

    def _scale(self, costs: SquareCosts) -> Scalings:
        """Return the scalings of rows and columns; the memory of the products is overwritten."""
        xp = array_namespace(costs.row_norms)
        row_norms, column_norms = costs.row_norms, costs.column_norms
        # The inequality of Cauchy and Schwarz bounds the products.
        reach = math.sqrt(float(xp.max(row_norms)) * float(xp.max(column_norms)))
        limits = {"max_iter": self.settings.max_iter, "tol": self.settings.tol, "reach": reach}
        check_every = 1 if self.backend.device is None else _CHECK_EVERY
        answer = sinkhorn(costs.cross, check_every=check_every, overwrite=True, **limits)
        # The norms were left out of the kernel; they are added to the scalings.
        log_row, log_column = answer.log_row + row_norms / 2, answer.log_column + column_norms / 2
        return replace(answer, log_row=log_row, log_column=log_column)

    def _steps(self, answer: Scalings, members: np.ndarray) -> tuple[Steps, Steps]:
        """Return the steps of rows and of columns, computed on the device of the scalings."""
        tested = self.settings.detector == "multiscale"
        repeated = self.settings.sampling == "replacement"
        log_row, log_column = answer.log_row, answer.log_column
        if repeated or not tested:
            log_row, log_column = map(self.backend.fetch, (log_row, log_column))
        n_rows, n_columns = self.settings.n_row_clusters, self.settings.n_column_clusters
        if repeated and tested:
            row = [self._read_once(*draw) for draw in zip(log_row, members, strict=True)]
            return join(row), self._read(log_column, n_columns)
        if n_rows != n_columns:
            return self._read(log_row, n_rows), self._read(log_column, n_columns)
        both = self._read(array_namespace(log_row).concat([log_row, log_column]), n_rows)
        return both[: len(log_row)], both[len(log_row) :]

    def _read(self, log_scaling: Any, n_clusters: int | None) -> Steps:
        xp = array_namespace(log_scaling)
        order = xp.argsort(log_scaling, axis=1, stable=False)
        vector = xp.arange(order.shape[0], device=array_device(order))[:, None]
        ranked, n_jumps = log_scaling[vector, order], n_clusters and n_clusters - 1
        detector, resolution = self.settings.detector, self.resolution
        jumps = find_scaling_jumps(ranked, detector, n_jumps=n_jumps, resolution=resolution)
        steps = label_steps(order, jumps.mask, jumps.strength)
        if isinstance(order, np.ndarray):
            return steps
        fetch = self.backend.fetch
        # Labels are copied in a small integer type, since there are many.
        labels = fetch(xp.astype(steps.labels, xp.int16)).astype(np.intp)
        return Steps(labels, fetch(steps.n_clusters), fetch(steps.weakest))

    def _read_once(self, log_scaling: np.ndarray, members: np.ndarray) -> Steps:
        """Return the steps of a draw, repeated rows taken once: copies look like a step."""
        n_clusters = self.settings.n_row_clusters
        _, first, copy = np.unique(members, return_index=True, return_inverse=True)
        if len(first) < (n_clusters or 1):
            return self._read(log_scaling[None], n_clusters)
        steps = self._read(log_scaling[None, first], n_clusters)
        return replace(steps, labels=steps.labels[:, copy])

    def placements(self, draw: np.ndarray) -> tuple[DrawPlacement, DrawPlacement]:
        """Return the placements of rows and of columns by one draw, without thresholds."""
        answer = self.solve(draw[None], "float64")
        log_row, log_column = map(self.backend.fetch, (answer.log_row[0], answer.log_column[0]))
        common = self.offset, self.scale
        square = _shifted(self.matrix[draw], *common)
        return (
            DrawPlacement(square.T, log_column, None, *common, width=len(draw)),
            DrawPlacement(square, log_row, draw, *common, width=self.matrix.shape[0]),
        )


def solve_alone(solver: DrawSolver, chunks: list[np.ndarray]) -> DrawPartitions:
    """Return the partitions of the draws of one task, in another process."""
    with one_blas_thread():
        return solver.solve_task(chunks)


def _shifted(points: Matrix, offset: float, scale: float) -> Matrix:
    return (points - offset if offset else points) / scale


def _shifted_in_parts(matrix: np.ndarray, offset: float, scale: float, dtype: str) -> np.ndarray:
    """Return the shifted and scaled matrix without a second copy in double precision."""
    answer = np.empty_like(matrix, dtype=dtype)
    for part in gen_batches(len(matrix), max(1, _CELLS_AT_ONCE // matrix.shape[1])):
        answer[part] = _shifted(matrix[part], offset, scale)
    return answer


def _squared_norms(points: Matrix) -> np.ndarray:
    if is_sparse(points):
        return np.asarray(points.multiply(points).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", points, points)


def _cost_range(square: Matrix) -> tuple[float, float, float]:
    """Return a draw's typical cost and its smallest and largest product, from some of its rows."""
    some = square[:: max(1, square.shape[0] // _ROWS_TO_LOOK_AT)]
    cross = safe_sparse_dot(some, square, dense_output=True)
    norms = _squared_norms(some)[:, None] + _squared_norms(square.T)
    return typical_cost(norms - 2 * cross), float(cross.min()), float(cross.max())
