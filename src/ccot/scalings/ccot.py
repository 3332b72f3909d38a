"""Algorithm 1 of the paper, CCOT, for a matrix in memory: a vote of many square draws."""

import math
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from itertools import islice

import numpy as np
from joblib import effective_n_jobs, parallel_config

from ccot.coclustering import block_means
from ccot.runtime.backends import one_blas_thread
from ccot.runtime.run import Run, no_progress
from ccot.runtime.types import Matrix
from ccot.scalings.consensus import number_shares, vote, winning_number
from ccot.scalings.draws import CCOTSettings, DrawPartitions, DrawPlacement, DrawSolver
from ccot.scalings.regularisation import choose_reg
from ccot.scalings.sampling import CROSSED_FROM, draw_indices
from ccot.scalings.steps import StepCoclustering, Steps, StepSide, join, read_steps
from ccot.transport.sinkhorn import Status

# Draws are solved in batches of at most about this many seconds if progress is reported.
_SECONDS_BETWEEN_REPORTS = 1.0
# n_samplings="auto": the smallest and largest number of draws of every row.
AUTO_FLOOR, AUTO_CEILING = 16, 128
REG_GRID = (1.0, 0.5, 0.2, 0.1, 0.05)
# reg="cv" makes about 24 fits, each on half of the data; few draws are enough to compare them.
_CV_PASSES = 8


def fit_ccot(
    matrix: Matrix,
    settings: CCOTSettings,
    run: Run,
    prepare: Callable[..., DrawSolver] = DrawSolver.prepare,
) -> StepCoclustering:
    """Return the co-clustering by transport between rows and columns (Algorithm 1)."""
    if settings.reg == "cv":
        seed = int(run.rng.integers(2**31))

        def short_fit(part: Matrix, reg: float) -> StepCoclustering:
            # The same draws for every value of reg, and few of them.
            n_draws = _CV_PASSES * math.ceil(max(part.shape) / min(part.shape))
            short = replace(settings, reg=reg, n_samplings=n_draws)
            return fit_ccot(part, short, run.quiet(np.random.default_rng(seed)))

        path = choose_reg(short_fit, matrix, run, REG_GRID)
        found = fit_ccot(matrix, replace(settings, reg=path.best), run, prepare)
        return replace(found, reg_path=path)
    if matrix.shape[0] < matrix.shape[1]:
        return fit_ccot(matrix.T, settings.transposed(), run, prepare).transposed()
    with one_blas_thread():
        draws = _draw_squares(matrix.shape, settings, run.rng)
        first = next(draws)
        solver = prepare(matrix, first, settings, run.n_jobs)
        found = _vote_until_stable(matrix, solver, first, draws, run)
        return replace(found, block_means=block_means(matrix, found.row, found.column))


def _draw_squares(
    shape: tuple[int, int], settings: CCOTSettings, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """Yield batches of draws; after each batch the vote is checked."""
    number, sampling = settings.n_samplings, settings.sampling
    n_fixed = 0 if number == "auto" else int(number)
    crossed = sampling == "cover" and n_fixed * shape[1] >= CROSSED_FROM * shape[0]
    indices = draw_indices(*shape, sampling, rng, crossed)
    for n_draws in _auto_rounds(*shape) if number == "auto" else [n_fixed]:
        yield np.array(list(islice(indices, n_draws)))


def _vote_until_stable(
    matrix: Matrix, solver: DrawSolver, first: np.ndarray, more: Iterator[np.ndarray], run: Run
) -> StepCoclustering:
    """Return the vote of the draws, with more draws until no label changes."""
    # "auto" makes at least two rounds of draws.
    expected = len(first) * (2 if solver.settings.n_samplings == "auto" else 1)
    partitions = [_solve_draws(solver, first, run, 0, expected)]
    found = decide(matrix, solver, partitions[0])
    for draws in more:
        run.progress(_in_words(found))
        n_done = found.n_draws
        partitions.append(_solve_draws(solver, draws, run, n_done, n_done + len(draws)))
        previous, found = found, decide(matrix, solver, join(partitions))
        sides = (previous.row, found.row), (previous.column, found.column)
        if all(np.array_equal(old.labels, new.labels) for old, new in sides):
            break
    run.progress(_in_words(found))
    return replace(found, reg=float(solver.settings.reg))


def _auto_rounds(n_rows: int, n_columns: int) -> Iterator[int]:
    """Yield the number of draws of each round."""
    done = 0
    while done < AUTO_CEILING:
        passes = max(done, AUTO_FLOOR // 2)
        yield passes * math.ceil(n_rows / n_columns)
        done += passes


def _solve_draws(
    solver: DrawSolver, draws: np.ndarray, run: Run, n_done: int, expected: int
) -> DrawPartitions:
    """Return the partitions of draws; those stored in a checkpoint are not computed again."""

    def rest(n_kept: int) -> Iterator[DrawPartitions]:
        return _solve_in_batches(solver, draws[n_kept:], run)

    run.progress("draws", n_done, expected)
    partitions = []
    for batch in run.checkpoint.series("draws", len(draws), rest, lambda one: len(one.members)):
        partitions.append(batch)
        n_done += len(batch.members)
        run.progress("draws", n_done, expected)
    return join(partitions)


def _solve_in_batches(solver: DrawSolver, draws: np.ndarray, run: Run) -> Iterator[DrawPartitions]:
    """Yield the partitions of draws in batches of whole chunks: batches do not change results."""
    followed = run.progress is not no_progress
    limit = min(run.checkpoint.patience, _SECONDS_BETWEEN_REPORTS if followed else math.inf)
    size = len(draws)
    if limit < math.inf and size:
        size = effective_n_jobs(run.n_jobs) * sum(map(len, solver.tasks(draws, 1)[0]))
    while len(draws):
        begun = time.monotonic()
        yield _solve_anywhere(solver, draws[:size], run.n_jobs)
        draws = draws[size:]
        if time.monotonic() - begun < limit / 2:
            size *= 2


def _solve_anywhere(solver: DrawSolver, draws: np.ndarray, n_jobs: int | None) -> DrawPartitions:
    """Return the partitions of draws, solved by threads of this process if a worker died."""
    try:
        return solver.partitions(draws)
    except BrokenProcessPool:
        lost = "a worker process died, perhaps for lack of memory"
        message = f"{lost}: threads of this process do its draws"
        warnings.warn(message, RuntimeWarning, stacklevel=2)
    with parallel_config("threading", n_jobs=effective_n_jobs(n_jobs)):
        return solver.partitions(draws)


def decide(matrix: Matrix, solver: DrawSolver, partitions: DrawPartitions) -> StepCoclustering:
    """Return the vote of the draws: on the numbers of clusters, then on the label of each point."""
    sides = partitions.row, partitions.column
    agrees = [steps.n_clusters == winning_number(steps.n_clusters) for steps in sides]
    # Prefer a draw that found both numbers, and of these the one with the clearest steps.
    clarity = np.minimum(*(steps.weakest for steps in sides))
    both = agrees[0] & agrees[1]
    row_draw, column_draw = (np.lexsort((clarity, both, one))[-1] for one in agrees)
    row_placement, column_placement = solver.placements(partitions.members[row_draw])
    if column_draw != row_draw:
        _, column_placement = solver.placements(partitions.members[column_draw])
    all_columns = np.broadcast_to(np.arange(matrix.shape[1]), partitions.members.shape)
    row = _vote_on_side(matrix, row_placement, solver, partitions.members, sides[0], agrees[0])
    column = _vote_on_side(matrix.T, column_placement, solver, all_columns, sides[1], agrees[1])
    return StepCoclustering(
        row=row,
        column=column,
        n_draws=len(partitions.members),
        n_iter=int(partitions.n_iter.max()),
        share_converged=float(partitions.converged.mean()),
        status=Status.CONVERGED if partitions.converged.all() else Status.MAX_ITER,
    )


def _vote_on_side(
    points: Matrix,
    placement: DrawPlacement,
    solver: DrawSolver,
    members: np.ndarray,
    steps: Steps,
    agrees: np.ndarray,
) -> StepSide:
    """Return the side of a reference draw with the labels that the agreeing draws vote for."""
    n_clusters, detector = winning_number(steps.n_clusters), solver.settings.detector
    reference = read_steps(placement.scaling(points), detector, n_clusters, placement)
    labels, confidence = vote(members, steps.labels, agrees, reference.labels)
    shares = number_shares(steps.n_clusters)
    return replace(reference, labels=labels, confidence=confidence, number_votes=shares)


def _in_words(found: StepCoclustering) -> str:
    return (
        f"{found.n_draws} draws: {found.row.n_clusters} x {found.column.n_clusters} clusters, "
        f"mean confidence {found.row.confidence.mean():.2f} x {found.column.confidence.mean():.2f}"
    )
