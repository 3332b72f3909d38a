"""Algorithm 2 of the paper, CCOT-GW."""

from dataclasses import dataclass, field, replace

import numpy as np

from ccot.coclustering import block_means
from ccot.runtime.backends import Backend, choose_backend
from ccot.runtime.run import Run
from ccot.runtime.types import Matrix
from ccot.scalings.kernels import AnySimilarities, KernelSpec, Similarities, compare_points
from ccot.scalings.regularisation import choose_reg
from ccot.scalings.steps import StepCoclustering, StepSide, read_steps
from ccot.transport.gromov import Alignment, Limits, gromov_barycentre
from ccot.transport.sinkhorn import Status

REG_GRID = (10.0, 1.0, 0.1, 0.01)


@dataclass(frozen=True)
class CCOTGWSettings:
    """Parameters of :func:`fit_ccot_gw`; :class:`ccot.CCOTGW` explains them."""

    n_row_clusters: int | None = None
    n_column_clusters: int | None = None
    reg: float | str = 1.0
    weights: tuple[float, float] = (0.5, 0.5)
    kernel: KernelSpec = "rbf"
    loss: str = "square"
    n_support: int | None = None
    kernel_rank: int | None = None
    exact_refinement: bool = True
    detector: str = "multiscale"
    limits: Limits = field(default_factory=Limits)
    device: str | None = None


def fit_ccot_gw(matrix: Matrix, settings: CCOTGWSettings, run: Run) -> StepCoclustering:
    """Return the co-clustering by the barycentre of row and column similarities (Algorithm 2)."""
    if settings.reg == "cv":

        def fit(part: Matrix, reg: float) -> StepCoclustering:
            n_support = settings.n_support and min(settings.n_support, part.shape[0])
            return fit_ccot_gw(part, replace(settings, reg=reg, n_support=n_support), run.quiet())

        path = choose_reg(fit, matrix, run, REG_GRID)
        return replace(fit_ccot_gw(matrix, replace(settings, reg=path.best), run), reg_path=path)
    rows, columns = (
        compare_points(points, settings.kernel, settings.kernel_rank, run.rng)
        for points in (matrix, matrix.T)
    )
    found = fit_similarities(rows, columns, settings, run)
    return replace(found, block_means=block_means(matrix, found.row, found.column))


def fit_similarities(
    rows: AnySimilarities, columns: AnySimilarities, settings: CCOTGWSettings, run: Run
) -> StepCoclustering:
    """Return the co-clustering by given similarities."""
    if settings.loss == "kl":
        rows.check_logarithm()
        columns.check_logarithm()
    backend = choose_backend(settings.device)
    all_pairs = all(isinstance(side, Similarities) for side in (rows, columns))
    answer = gromov_barycentre(
        [side.operator(backend, settings.loss) for side in (rows, columns)],
        settings.weights,
        backend.send(_start_support(rows, settings.n_support)),
        reg=float(settings.reg),
        loss=settings.loss,
        # Exact transport takes more than linear time; landmarks are used to avoid that.
        exact_refinement=settings.exact_refinement and all_pairs,
        limits=settings.limits,
        run=run,
    )
    numbers = settings.n_row_clusters, settings.n_column_clusters
    sides = zip(answer.alignments, (rows, columns), numbers, strict=True)
    row, column = (_align_side(backend, *side, settings) for side in sides)
    n_iter, found = len(answer.objective), f"{row.n_clusters} x {column.n_clusters} clusters"
    run.progress(f"barycentre after {n_iter} updates: {found}")
    return StepCoclustering(
        row=row,
        column=column,
        n_iter=n_iter,
        n_draws=1,
        share_converged=float(answer.status is Status.CONVERGED),
        status=answer.status,
        reg=float(settings.reg),
    )


def _start_support(rows: AnySimilarities, n_support: int | None) -> np.ndarray:
    """Return the similarities of all rows, or of some, evenly spaced by rank of mean similarity."""
    if n_support is None:
        return rows.among(None)
    by_degree = np.argsort(rows.degrees(), kind="stable")
    places = np.linspace(0, len(by_degree) - 1, n_support).round().astype(np.int64)
    return rows.among(by_degree[places])


def _align_side(
    backend: Backend,
    alignment: Alignment,
    similarities: AnySimilarities,
    n_clusters: int | None,
    settings: CCOTGWSettings,
) -> StepSide:
    placement = similarities.place(
        tuple(map(backend.fetch, alignment.potential_factors)),
        shift=alignment.shift,
        log_support_scaling=backend.fetch(alignment.log_column),
        reg=float(settings.reg),
    )
    # One more half step of Sinkhorn, as for new points.
    features = similarities.features
    log_scaling, resolution = placement.scale(features), placement.rounding(features)
    return read_steps(log_scaling, settings.detector, n_clusters, placement, resolution)
