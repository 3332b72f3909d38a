"""The two algorithms of the paper, each on one screen.

Matrix in, :class:`~ccot.coclustering.Coclustering` out. The stages do the work and are introduced
to one another here.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np
from joblib import effective_n_jobs, parallel_config

from ccot.arrays import Backend, choose_backend, one_blas_thread
from ccot.checkpoint import NOWHERE, Checkpoint
from ccot.coclustering import StepCoclustering, StepPlacement, StepSide
from ccot.consensus import number_shares, vote, winning_number
from ccot.draws import Ballots, DrawSolver, join_ballots
from ccot.jumps import find_scaling_jumps
from ccot.kernel import KernelSpec
from ccot.partition import Steps, label_steps, step_posterior, thresholds
from ccot.progress import Report, silent
from ccot.sampling import draw_indices
from ccot.similarities import AnySimilarities, Similarities
from ccot.transport.gromov import Alignment, Limits, gromov_barycentre
from ccot.transport.sinkhorn import Status

Matrix = Any

_SECONDS_BETWEEN_NEWS = 1.0
# n_samplings="auto": everyone is drawn about this often at least, and at most.
AUTO_FLOOR, AUTO_CEILING = 16, 128
# Where everyone is drawn more often than this, draws are crossings.
CROSSED_FROM = 64


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
    report: Report = silent
    checkpoint: Checkpoint = NOWHERE


def fit_ccot(
    matrix: Matrix,
    settings: CCOTSettings,
    rng: np.random.Generator,
    prepare: Callable[..., DrawSolver] = DrawSolver.prepare,
) -> StepCoclustering:
    """Co-cluster by transport between rows and columns (Algorithm 1 of the paper).

    Parameters
    ----------
    matrix : ndarray or sparse matrix of shape (n_rows, n_columns)
        Finite numbers. A matrix that is wider than tall has its columns drawn.
    settings : CCOTSettings
        Parameters.
    rng : numpy.random.Generator
        Source of the draws.
    prepare : callable, optional
        Makes the solver of draws; by default one that works in this process.

    Returns
    -------
    StepCoclustering
        Partitions, confidence and placement of unseen points.
    """
    if matrix.shape[0] < matrix.shape[1]:
        numbers = settings.n_column_clusters, settings.n_row_clusters
        turned = replace(settings, n_row_clusters=numbers[0], n_column_clusters=numbers[1])
        return fit_ccot(matrix.T, turned, rng, prepare).transposed()
    with one_blas_thread():
        return _fit_tall(matrix, settings, rng, prepare)


def _fit_tall(
    matrix: Matrix,
    settings: CCOTSettings,
    rng: np.random.Generator,
    prepare: Callable[..., DrawSolver],
) -> StepCoclustering:
    n_rows, n_columns = matrix.shape
    indices = draw_indices(
        n_rows, n_columns, settings.sampling, rng, _worth_crossing(n_rows, n_columns, settings)
    )
    rounds = _rounds(n_rows, n_columns, settings.n_samplings)
    draws = np.array(list(islice(indices, next(rounds))))
    solver = prepare(
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
    # "auto" looks at the vote halfway, and makes as many draws again at least.
    expected = len(draws) * (2 if settings.n_samplings == "auto" else 1)
    ballots = [_cast(solver, draws, settings, 0, expected)]
    found = decide(matrix, solver, join_ballots(ballots))
    for n_draws in rounds:
        settings.report(_progress(found))
        draws = np.array(list(islice(indices, n_draws)))
        ballots.append(_cast(solver, draws, settings, found.n_draws, found.n_draws + n_draws))
        previous, found = found, decide(matrix, solver, join_ballots(ballots))
        if _agree(previous.row, found.row) and _agree(previous.column, found.column):
            break
    settings.report(_progress(found))
    return found


def _cast(
    solver: DrawSolver, draws: np.ndarray, settings: CCOTSettings, n_done: int, expected: int
) -> Ballots:
    """Have draws solved and their steps read; those that were solved before are kept."""

    def rest(n_kept: int) -> Iterator[Ballots]:
        return _cast_in_batches(solver, draws[n_kept:], settings)

    batches = settings.checkpoint.series("draws", len(draws), rest, lambda one: len(one.members))
    settings.report("draws", n_done, expected)
    ballots = []
    for batch in batches:
        ballots.append(batch)
        n_done += len(batch.members)
        settings.report("draws", n_done, expected)
    return join_ballots(ballots)


def _cast_in_batches(
    solver: DrawSolver, draws: np.ndarray, settings: CCOTSettings
) -> Iterator[Ballots]:
    """Solve draws in batches that take about as long as nobody minds to lose, or to wait for news.

    A batch ends where a chunk does, so that nothing depends on how draws are batched.
    """
    listening = settings.report is not silent
    patience = min(settings.checkpoint.patience, _SECONDS_BETWEEN_NEWS if listening else math.inf)
    size = len(draws)
    if patience < math.inf and size:
        size = effective_n_jobs(settings.n_jobs) * sum(map(len, solver.tasks(draws, 1)[0]))
    while len(draws):
        begun = time.monotonic()
        yield _cast_somewhere(solver, draws[:size], settings)
        draws = draws[size:]
        if time.monotonic() - begun < patience / 2:
            size *= 2


def _cast_somewhere(solver: DrawSolver, draws: np.ndarray, settings: CCOTSettings) -> Ballots:
    """Solve draws by whoever does so; by threads of this process if others are lost."""
    numbers = settings.n_row_clusters, settings.n_column_clusters
    n_jobs = effective_n_jobs(settings.n_jobs)
    try:
        return solver.ballots(draws, *numbers)
    except BrokenProcessPool:
        warnings.warn(
            "a worker process was lost, perhaps for lack of memory: its draws are solved by "
            "threads of this process",
            RuntimeWarning,
            stacklevel=2,
        )
    with parallel_config("threading", n_jobs=n_jobs):
        return solver.ballots(draws, *numbers)


def _worth_crossing(n_rows: int, n_columns: int, settings: CCOTSettings) -> bool:
    """Tell whether so many draws are asked for that sharing products costs no variety."""
    if settings.sampling != "cover" or settings.n_samplings == "auto":
        return False
    return int(settings.n_samplings) * n_columns >= CROSSED_FROM * n_rows


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


def decide(matrix: Matrix, solver: DrawSolver, ballots: Ballots) -> StepCoclustering:
    """Let the draws vote: first on the numbers of clusters, then on everyone's label."""
    row_agrees = ballots.row.n_clusters == winning_number(ballots.row.n_clusters)
    column_agrees = ballots.column.n_clusters == winning_number(ballots.column.n_clusters)
    # Prefer a draw that found both numbers, and of these the one with the clearest steps.
    clarity = np.minimum(ballots.row.weakest, ballots.column.weakest)
    both = row_agrees & column_agrees
    row_draw = np.lexsort((clarity, both, row_agrees))[-1]
    column_draw = np.lexsort((clarity, both, column_agrees))[-1]
    row_placement, column_placement = solver.placements(ballots.members[row_draw])
    if column_draw != row_draw:
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
    report: Report = silent
    checkpoint: Checkpoint = NOWHERE


def fit_ccot_gw(
    rows: AnySimilarities, columns: AnySimilarities, settings: CCOTGWSettings
) -> StepCoclustering:
    """Co-cluster by the barycentre of row and column similarities (Algorithm 2 of the paper).

    Parameters
    ----------
    rows, columns : Similarities or LowRankSimilarities
        Similarities of the rows and of the columns.
    settings : CCOTGWSettings
        Parameters.

    Returns
    -------
    StepCoclustering
        Partitions, confidence and placement of unseen points.
    """
    if settings.loss == "kl":
        rows.check_logarithm()
        columns.check_logarithm()
    backend = choose_backend(settings.device)
    all_pairs = all(isinstance(side, Similarities) for side in (rows, columns))
    answer = gromov_barycentre(
        [side.operator(backend, settings.loss) for side in (rows, columns)],
        settings.weights,
        backend.send(_start_support(rows, settings.n_support)),
        reg=settings.reg,
        loss=settings.loss,
        # Exact transport takes more than linear time, which landmarks are there to avoid.
        exact_refinement=settings.exact_refinement and all_pairs,
        limits=settings.limits,
        report=settings.report,
        checkpoint=settings.checkpoint,
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


def _start_support(rows: AnySimilarities, n_support: int | None) -> np.ndarray:
    """Return the row similarities, or those of evenly spaced rows by mean similarity."""
    if n_support is None:
        return rows.among(None)
    by_degree = np.argsort(rows.degrees(), kind="stable")
    chosen = by_degree[np.linspace(0, len(by_degree) - 1, n_support).round().astype(np.int64)]
    return rows.among(chosen)


def _align_side(
    backend: Backend,
    alignment: Alignment,
    similarities: AnySimilarities,
    n_clusters: int | None,
    settings: CCOTGWSettings,
) -> StepSide:
    placement = similarities.place(
        tuple(backend.fetch(factor) for factor in alignment.potential_factors),
        shift=alignment.shift,
        log_support_scaling=backend.fetch(alignment.log_column),
        reg=settings.reg,
    )
    # One more half step, the one that places unseen points.
    features = similarities.features()
    log_scaling, resolution = placement.scale(features), placement.rounding(features)
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
