"""The two algorithms of the paper, each on one screen.

Matrix in, :class:`~ccot.coclustering.Coclustering` out. The stages do the work and are introduced
to one another here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np

from ccot.arrays import Backend, choose_backend, one_blas_thread
from ccot.coclustering import StepCoclustering, StepPlacement, StepSide
from ccot.consensus import number_shares, vote, winning_number
from ccot.draws import Ballots, DrawSolver, join_ballots
from ccot.jumps import find_scaling_jumps
from ccot.kernel import KernelSpec, mean_distance, similarity
from ccot.partition import Steps, label_steps, step_posterior, thresholds
from ccot.sampling import draw_indices
from ccot.transport.extend import extend_scaling
from ccot.transport.gromov import Alignment, Limits, gromov_barycentre
from ccot.transport.sinkhorn import Status

Matrix = Any

# n_samplings="auto": everyone is drawn about this often at least, and at most.
AUTO_FLOOR, AUTO_CEILING = 16, 128


# Algorithm 1: CCOT ---------------------------------------------------------------------------


@dataclass(frozen=True)
class CCOTSettings:
    """What :func:`fit_ccot` needs to know; :class:`ccot.CCOT` explains it."""

    n_row_clusters: int | None = None
    n_column_clusters: int | None = None
    reg: float = 0.2
    scale_cost: str | None = "median"
    n_samplings: int | str = "auto"
    sampling: str = "cover"
    detector: str = "multiscale"
    max_iter: int = 1000
    tol: float = 1e-6
    n_jobs: int | None = None
    device: str | None = None
    report: Callable[[str], None] = lambda message: None


def fit_ccot(matrix: Matrix, settings: CCOTSettings, rng: np.random.Generator) -> StepCoclustering:
    """Co-cluster by transport between rows and columns (Algorithm 1 of the paper).

    Parameters
    ----------
    matrix : ndarray or sparse matrix of shape (n_rows, n_columns)
        Finite numbers. A matrix that is wider than tall has its columns drawn.
    settings : CCOTSettings
        Parameters.
    rng : numpy.random.Generator
        Source of the draws.

    Returns
    -------
    StepCoclustering
        Partitions, confidence and placement of unseen points.
    """
    if matrix.shape[0] < matrix.shape[1]:
        numbers = settings.n_column_clusters, settings.n_row_clusters
        turned = replace(settings, n_row_clusters=numbers[0], n_column_clusters=numbers[1])
        return fit_ccot(matrix.T, turned, rng).transposed()
    with one_blas_thread():
        return _fit_tall(matrix, settings, rng)


def _fit_tall(matrix: Matrix, settings: CCOTSettings, rng: np.random.Generator) -> StepCoclustering:
    n_rows, n_columns = matrix.shape
    indices = draw_indices(n_rows, n_columns, settings.sampling, rng)
    rounds = _rounds(n_rows, n_columns, settings.n_samplings)
    draws = np.array(list(islice(indices, next(rounds))))
    solver = _draw_solver(matrix, draws, settings)
    ballots = [solver.ballots(draws, settings.n_row_clusters, settings.n_column_clusters)]
    found = decide(matrix, solver, join_ballots(ballots))
    for n_draws in rounds:
        settings.report(_progress(found))
        draws = np.array(list(islice(indices, n_draws)))
        ballots.append(solver.ballots(draws, settings.n_row_clusters, settings.n_column_clusters))
        previous, found = found, decide(matrix, solver, join_ballots(ballots))
        if _agree(previous.row, found.row) and _agree(previous.column, found.column):
            break
    settings.report(_progress(found))
    return found


def _rounds(n_rows: int, n_columns: int, n_samplings: int | str) -> Iterator[int]:
    """Yield how many more draws to make before looking at the vote (again)."""
    if n_samplings != "auto":
        yield int(n_samplings)
        return
    per_pass = math.ceil(n_rows / n_columns)
    done = 0
    while done < AUTO_CEILING:
        passes = max(done, AUTO_FLOOR // 2)
        yield passes * per_pass
        done += passes


def _draw_solver(matrix: Matrix, draws: np.ndarray, settings: CCOTSettings) -> DrawSolver:
    return DrawSolver.prepare(
        matrix,
        draws,
        reg=settings.reg,
        scale_cost=settings.scale_cost,
        device=settings.device,
        detector=settings.detector,
        max_iter=settings.max_iter,
        tol=settings.tol,
        n_jobs=settings.n_jobs,
    )


def decide(matrix: Matrix, solver: DrawSolver, ballots: Ballots) -> StepCoclustering:
    """Let the draws vote: first on the numbers of clusters, then on everyone's label."""
    row_agrees = ballots.row.n_clusters == winning_number(ballots.row.n_clusters)
    column_agrees = ballots.column.n_clusters == winning_number(ballots.column.n_clusters)
    # Prefer a draw that found both numbers, and of these the one with the clearest steps.
    clarity = np.minimum(ballots.row.weakest, ballots.column.weakest)
    both = row_agrees & column_agrees
    row_draw = np.lexsort((clarity, both, row_agrees))[-1]
    column_draw = np.lexsort((clarity, both, column_agrees))[-1]
    row_placement, _ = solver.placements(ballots.members[row_draw])
    _, column_placement = solver.placements(ballots.members[column_draw])
    everyone = np.broadcast_to(np.arange(matrix.shape[1]), ballots.members.shape)
    return StepCoclustering(
        row=_elect(
            matrix, row_placement, ballots.members, ballots.row, row_agrees, solver.detector
        ),
        column=_elect(
            matrix.T, column_placement, everyone, ballots.column, column_agrees, solver.detector
        ),
        n_draws=len(ballots.members),
        n_iter=int(ballots.n_iter.max()),
        share_converged=float(ballots.converged.mean()),
        status=Status.CONVERGED if ballots.converged.all() else Status.MAX_ITER,
    )


def _elect(
    points: Matrix,
    placement: Any,
    members: np.ndarray,
    steps: Steps,
    agrees: np.ndarray,
    detector: str,
) -> StepSide:
    """Decide one side: the reference draw places all points, the agreeing draws vote."""
    n_clusters = winning_number(steps.n_clusters)
    side = _read_steps(placement.scaling(points), detector, n_clusters, placement)
    decision = vote(members, steps.labels, agrees, side.labels)
    return replace(
        side,
        labels=decision.labels,
        confidence=decision.confidence,
        number_votes=number_shares(steps.n_clusters),
    )


def _agree(one: StepSide, other: StepSide) -> bool:
    return np.array_equal(one.labels, other.labels)


def _progress(found: StepCoclustering) -> str:
    return (
        f"{found.n_draws} draws: {found.row.n_clusters} x {found.column.n_clusters} clusters, "
        f"mean confidence {found.row.confidence.mean():.2f} x {found.column.confidence.mean():.2f}"
    )


# Algorithm 2: CCOT-GW ------------------------------------------------------------------------


@dataclass(frozen=True)
class CCOTGWSettings:
    """What :func:`fit_ccot_gw` needs to know; :class:`ccot.CCOTGW` explains it."""

    n_row_clusters: int | None = None
    n_column_clusters: int | None = None
    reg: float = 1.0
    weights: tuple[float, float] = (0.5, 0.5)
    kernel: KernelSpec = "rbf"
    loss: str = "square"
    n_support: int | None = None
    exact_refinement: bool = True
    detector: str = "multiscale"
    limits: Limits = field(default_factory=Limits)
    device: str | None = None
    report: Callable[[str], None] = lambda message: None


@dataclass(frozen=True)
class Similarities:
    """Similarities of points to themselves, and how to get those of others to them.

    Attributes
    ----------
    matrix : array of shape (n, n)
        Similarities of all pairs.
    points : ndarray or sparse matrix of shape (n, k), or None
        The points; None where the similarities themselves were given.
    kernel, bandwidth
        As in :func:`ccot.kernel.similarity`.
    """

    matrix: np.ndarray
    points: Matrix | None
    kernel: KernelSpec
    bandwidth: float

    @classmethod
    def between(cls, points: Matrix, kernel: KernelSpec) -> Similarities:
        """Compute the similarities of points."""
        bandwidth = mean_distance(points) if kernel == "rbf" else 0.0
        return cls(similarity(points, points, kernel, bandwidth), points, kernel, bandwidth)

    @classmethod
    def given(cls, matrix: np.ndarray) -> Similarities:
        """Take similarities as they are."""
        return cls(matrix, None, "precomputed", 0.0)

    @property
    def width(self) -> int:
        """Number of values an unseen point comes with: coordinates, or similarities."""
        return (self.matrix if self.points is None else self.points).shape[1]

    def to(self, points: Matrix) -> np.ndarray:
        """Return the similarities of unseen points to these."""
        if self.points is None:
            return points
        return similarity(points, self.points, self.kernel, self.bandwidth)


@dataclass(frozen=True)
class KernelPlacement(StepPlacement):
    """Places unseen points by their similarities to the fitted ones."""

    similarities: Similarities
    potential: np.ndarray
    shift: float
    log_support_scaling: np.ndarray
    reg: float

    def scaling(self, points: Matrix) -> np.ndarray:
        """Return the logarithms of the points' scalings."""
        return self.scale(self.similarities.to(points))

    def scale(self, similar: np.ndarray) -> np.ndarray:
        """Return the logarithms of scalings of points with these similarities to the fitted."""
        log_kernel = (similar @ self.potential + self.shift) / self.reg
        return extend_scaling(log_kernel, self.log_support_scaling, 1 / len(self.potential))

    def rounding(self, similar: np.ndarray) -> float:
        """Bound the rounding of :meth:`scale`, whose products may cancel."""
        largest = np.abs(similar).sum(axis=1).max() * np.abs(self.potential).max() / self.reg
        return 16 * float(np.finfo(np.float64).eps * (1 + largest))


def fit_ccot_gw(
    rows: Similarities, columns: Similarities, settings: CCOTGWSettings
) -> StepCoclustering:
    """Co-cluster by the barycentre of row and column similarities (Algorithm 2 of the paper).

    Parameters
    ----------
    rows, columns : Similarities
        Similarities of the rows and of the columns.
    settings : CCOTGWSettings
        Parameters.

    Returns
    -------
    StepCoclustering
        Partitions, confidence and placement of unseen points.
    """
    if settings.loss == "kl" and min(rows.matrix.min(), columns.matrix.min()) < 0:
        raise ValueError(
            'loss="kl" compares similarities by their logarithms, but some are negative: '
            'use loss="square" or a non-negative kernel'
        )
    backend = choose_backend(settings.device)
    precision = _gromov_precision(rows, columns, settings)
    start = _start_support(rows.matrix, settings.n_support)
    answer = gromov_barycentre(
        [backend.send(side.matrix.astype(precision)) for side in (rows, columns)],
        settings.weights,
        backend.send(start.astype(precision)),
        reg=settings.reg,
        loss=settings.loss,
        exact_refinement=settings.exact_refinement,
        limits=settings.limits,
    )
    row, column = (
        _align_side(backend, alignment, side, n_clusters, settings)
        for alignment, side, n_clusters in zip(
            answer.alignments,
            (rows, columns),
            (settings.n_row_clusters, settings.n_column_clusters),
            strict=True,
        )
    )
    settings.report(
        f"barycentre after {len(answer.objective)} updates: {row.n_clusters} x "
        f"{column.n_clusters} clusters"
    )
    converged = answer.status is Status.CONVERGED
    return StepCoclustering(
        row=row,
        column=column,
        n_iter=len(answer.objective),
        n_draws=1,
        share_converged=float(converged),
        status=answer.status,
    )


def _gromov_precision(rows: Similarities, columns: Similarities, settings: CCOTGWSettings) -> str:
    """Return float32 where its rounding cannot be seen in the scalings.

    The linear costs are at most the largest similarity, squared, and enter divided by ``reg``.
    """
    largest = max(np.abs(rows.matrix).max(), np.abs(columns.matrix).max())
    rounding = np.finfo(np.float32).eps * largest**2 / settings.reg
    fast = not settings.exact_refinement and settings.loss == "square" and rounding < 2e-7
    return "float32" if fast else "float64"


def _start_support(kernel: np.ndarray, n_support: int | None) -> np.ndarray:
    """Return the row similarities, or those of evenly spaced rows by mean similarity."""
    if n_support is None:
        return kernel
    by_degree = np.argsort(kernel.mean(axis=1), kind="stable")
    chosen = by_degree[np.linspace(0, len(kernel) - 1, n_support).round().astype(np.int64)]
    return kernel[np.ix_(chosen, chosen)]


def _align_side(
    backend: Backend,
    alignment: Alignment,
    similarities: Similarities,
    n_clusters: int | None,
    settings: CCOTGWSettings,
) -> StepSide:
    placement = KernelPlacement(
        similarities,
        backend.fetch(alignment.potential).astype(np.float64),
        alignment.shift,
        backend.fetch(alignment.log_column),
        settings.reg,
        width=similarities.width,
    )
    # One more half step, in float64 whatever the precision of the steps before it.
    log_scaling = placement.scale(similarities.matrix)
    resolution = placement.rounding(similarities.matrix)
    return _read_steps(log_scaling, settings.detector, n_clusters, placement, resolution)


# Both ----------------------------------------------------------------------------------------


def _read_steps(
    log_scaling: np.ndarray,
    detector: str,
    n_clusters: int | None,
    placement: StepPlacement,
    resolution: float | None = None,
) -> StepSide:
    """Read the partition off one scaling vector."""
    order = np.argsort(log_scaling, kind="stable")
    ranked = log_scaling[order]
    n_jumps = None if n_clusters is None else n_clusters - 1
    jumps = find_scaling_jumps(ranked, detector, n_jumps=n_jumps, resolution=resolution)
    labels = label_steps(order[None], jumps.mask[None], jumps.strength[None]).labels[0]
    positions = np.flatnonzero(jumps.mask) + 1
    return StepSide(
        labels=labels,
        n_clusters=len(positions) + 1,
        confidence=step_posterior(log_scaling, labels),
        number_votes={len(positions) + 1: 1.0},
        log_scaling=log_scaling,
        jumps=positions,
        jump_strength=jumps.strength[jumps.mask],
        placement=replace(placement, thresholds=thresholds(ranked, positions)),
    )
