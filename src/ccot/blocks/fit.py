"""Co-clustering by transport onto blocks: the steps of the whole method."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import scipy.sparse as sp

from ccot.blocks import criteria
from ccot.blocks import preparation as prepare
from ccot.blocks.axes import has_room, multiply, n_entries
from ccot.blocks.criteria import Candidate, Numbers, ranked
from ccot.blocks.hierarchy import Hierarchy, Start, build_hierarchy
from ccot.blocks.placement import place_side
from ccot.blocks.preparation import Preparation
from ccot.blocks.problem import (
    BlockProblem,
    Blocks,
    information,
    make_blocks,
    make_problem,
    pearson_dispersion,
)
from ccot.blocks.refine import match_counts, refine, same_partitions
from ccot.blocks.reproducibility import BothSides, Halves, describe
from ccot.blocks.select import Selection, crossed, led_by, select_numbers, trust_icl
from ccot.blocks.spectrum import low_rank
from ccot.blocks.start import HERE_ENTRIES, over_segment
from ccot.blocks.sweep import assign, sweep
from ccot.blocks.tap import soft_sweep
from ccot.coclustering import Coclustering, Side, block_means
from ccot.persistence.registry import stored
from ccot.runtime.backends import (
    NUMPY,
    Backend,
    choose_backend,
    is_device_csr,
    with_values,
)
from ccot.runtime.device_csr import to_scipy
from ccot.runtime.run import Run, counted
from ccot.runtime.types import Matrix, is_sparse

_CUT_SWEEPS, _CUT_TOL = 6, 2e-3
# Most candidates that are refined, and most matrix entries over all of them.
_MOST_REFINED, _REFINED_ENTRIES = 4, 2**24
# Sparse matrices with more cells are not made dense.
_LARGEST_WRITTEN = 2**27
# If one side has more points than this, with at most so many values each, blocks are searched in a
# sample of the given size: a search costs the same for every point, however few values it has.
MANY_POINTS, FEW_VALUES, SAMPLE = 2**17, 2**8, 2**13
_ALL_SWEEPS, _ALL_TOL = 4, 1e-3


@dataclass(frozen=True)
class BlockSettings:
    """Parameters of :func:`fit_blocks`; :class:`ccot.TransportCoclustering` explains them."""

    n_row_clusters: int | None = None
    n_column_clusters: int | None = None
    criterion: str = "auto"
    balanced: bool = False
    heteroscedastic: bool = False
    n_init: int | None = None
    max_iter: int = 200
    tol: float = 1e-6
    max_passes: int | None = 4
    device: str | None = None
    scale: str = "auto"
    center: str = "auto"

    @property
    def given(self) -> Numbers:
        """Numbers of row and column clusters; None if not given."""
        return self.n_row_clusters, self.n_column_clusters


@stored()
@dataclass(frozen=True, kw_only=True)
class BlockCoclustering(Coclustering):
    """A co-clustering by blocks, with the candidates that it was chosen from."""

    family: str
    blocks: Blocks
    finest: Blocks  # the over-segmentation under the hierarchy
    hierarchy: Hierarchy
    candidates: tuple[Candidate, ...]  # the chosen one first
    icl: float
    bic: float
    family_reason: str = ""
    reproducibility: BothSides = field(default_factory=BothSides)


@dataclass(frozen=True)
class Search:
    """The result of a search for blocks."""

    preparation: Preparation
    problem: BlockProblem
    views: tuple[Blocks, Blocks]  # the answer: row clusters of the first, column ones of the second
    finest: Blocks
    hierarchy: Hierarchy
    candidates: tuple[Candidate, ...]
    halves: tuple[Halves | None, Halves | None] = (None, None)


def fit_blocks(X: Matrix, family: str, settings: BlockSettings, run: Run) -> BlockCoclustering:
    """Return the co-clustering of a matrix by transport onto blocks."""
    name, reason = prepare.settle_family(X, family, settings.scale, settings.center)
    run.progress(f"family {name}: {reason}")
    return replace(finish(X, search_blocks(X, name, settings, run), settings), family_reason=reason)


def finish(X: Matrix, found: Search, settings: BlockSettings) -> BlockCoclustering:
    """Return the co-clustering of a search: all points are assigned to the blocks it found."""
    # The last step is the same as for unseen points, so that fitted and predicted labels agree.
    (rows, sure_rows), (columns, sure_columns) = (
        assign(found.problem, view, axis, settings.balanced)
        for axis, view in enumerate(found.views)
    )
    answer = collect(found, make_blocks(found.problem, rows, columns), (sure_rows, sure_columns))
    product = partial(multiply, backend=found.problem.backend)
    return replace(answer, block_means=block_means(X, answer.row, answer.column, product))


def collect(
    found: Search, blocks: Blocks, sure: tuple[np.ndarray, np.ndarray]
) -> BlockCoclustering:
    """Return the co-clustering of a search, given blocks and the confidence of rows and columns."""
    problem = found.problem
    nodes = (found.hierarchy.nodes(axis)[0] for axis in (0, 1))
    pairs = zip(found.halves, blocks.labels, found.finest.labels, nodes, strict=True)
    again = BothSides(*(half and describe(half, *of_side) for half, *of_side in pairs))
    row, column = (
        Side(
            labels=blocks.labels[axis],
            n_clusters=blocks.shape[axis],
            confidence=sure[axis] if half is None else sure[axis] * half.points,
            placement=place_side(problem, found.preparation, found.views[axis], axis),
        )
        for axis, half in enumerate((again.row, again.column))
    )
    return BlockCoclustering(
        row=row,
        column=column,
        n_iter=max(1, *(view.n_sweeps for view in found.views)),
        family=problem.family,
        blocks=blocks,
        finest=found.finest,
        hierarchy=found.hierarchy,
        candidates=found.candidates,
        icl=criteria.icl(problem, blocks),
        bic=criteria.bic(problem, blocks),
        reproducibility=again,
    )


def counts_on_device(X: Matrix, family: str, settings: BlockSettings) -> Matrix:
    """Return large sparse counts on the device that fits them; any other matrix, in memory."""
    given = is_device_csr(X)
    device = settings.device or (str(X.device) if given else None)
    if not (given or is_sparse(X)) or device is None:
        return X
    backend = choose_backend(device, "float64")
    as_counts = family in ("auto", "poisson") and settings.scale in ("auto", "none")
    as_counts = as_counts and settings.center == "auto"
    is_large = backend.device is not None and n_entries(X) > HERE_ENTRIES
    # Negative values are common, and a few entries show them before the matrix is sent.
    some = (X.values() if given else X.data)[:: n_entries(X) // 2**12 + 1]
    if as_counts and is_large and not bool((some < 0).any()) and has_room(X, backend):
        there = X.to(device) if given else backend.send(sp.csr_array(X))
        there = with_values(there, there.values().to(backend.xp.float64))
        if prepare.are_device_counts(there):
            return there
    return to_scipy(X) if given else X


def search_blocks(X: Matrix, family: str, settings: BlockSettings, run: Run) -> Search:
    """Return the numbers and blocks that are found; see :func:`fit_blocks`."""
    X = sp.csr_array(X) if is_sparse(X) else X
    preparation, problem, starts = _begin(X, family, settings, run)
    run.progress(f"{len(starts)} starts, finest blocks {starts[0].fine.shape}")
    problem = problem.with_dispersion(pearson_dispersion(problem, starts[0].fine))
    choose = partial(select_numbers, problem, starts, settings.given, settings.criterion, run)
    selected = run.checkpoint.piece("numbers", choose)
    candidates = selected.candidates
    if not all(selected.finalists):
        views = _fit_by_icl(problem, starts, settings, run)
        numbers = views[0].shape
        best = Candidate(*numbers, criteria.icl(problem, views[0]), "icl")
    else:
        views = _fit_by_cut(selected, partial(_fit_side, problem, starts, settings.balanced, run))
        numbers = views[0].shape[0], views[1].shape[1]
        best = next(found for found in candidates if found.numbers == numbers)
    run.progress(f"{numbers[0]} x {numbers[1]} clusters")
    fine, hierarchy, candidates = starts[0].fine, starts[0].hierarchy, led_by(best, candidates)
    return Search(preparation, problem, views, fine, hierarchy, candidates, selected.halves)


def _begin(
    X: Matrix, family: str, settings: BlockSettings, run: Run
) -> tuple[Preparation, BlockProblem, list[Start]]:
    """Return the preparation, the problem and its over-segmentations."""
    # Labels are the same as NumPy's only with its precision.
    device = str(X.device) if is_device_csr(X) else settings.device
    backend = choose_backend(device, "float64", run.n_jobs)

    def begin(preparation: Preparation) -> tuple[Preparation, BlockProblem, list[Start]]:
        problem = prepare_problem(X, preparation, settings.heteroscedastic, backend)
        make = partial(over_segment, problem, settings.n_init or _default_n_init(X), run)
        fine = ranked(run.checkpoint.piece("starts", make), partial(information, problem))
        return preparation, problem, [Start(one, build_hierarchy(problem, one)) for one in fine]

    plain = prepare.choose_preparation(X, family, settings.scale)
    # A sparse matrix becomes dense if effects are subtracted, and may then be too large for memory.
    too_large = is_sparse(X) and X.shape[0] * X.shape[1] > _LARGEST_WRITTEN
    if settings.center != "auto" and family == "gaussian":
        if too_large and settings.center != "none":
            raise ValueError('X is sparse and too large to subtract means: pass center="none"')
        return begin(prepare.with_effects(plain, X, settings.center, "chosen by the user"))
    begun = begin(prepare.with_sentence(plain, "none"))
    if family == "gaussian" and not too_large and not all(trust_icl(begun[1], begun[2])[1]):
        # Structure at every scale: subtract additive effects, as poisson accounts for degrees.
        preparation = prepare.with_effects(plain, X, *prepare.choose_effects(plain, X))
        # Frees memory, also on a device, before the next problem is made.
        del begun
        begun = begin(preparation)
    return begun


def prepare_problem(
    X: Matrix, preparation: Preparation, heteroscedastic: bool, backend: Backend = NUMPY
) -> BlockProblem:
    """Return the problem of a matrix, after preparing its values."""
    values = preparation.matrix(X, replace(NUMPY, n_jobs=backend.n_jobs))
    family, precision = preparation.family, None
    if heteroscedastic and family == "gaussian":
        dense = values if isinstance(values, np.ndarray) else values.toarray()
        observed = np.isfinite(dense)
        filled = np.where(observed, dense, np.nanmean(dense))
        squares = np.where(observed, (filled - low_rank(filled)) ** 2, 0.0)
        # A column without entries has the variance of the others.
        variance = squares.sum(axis=0) / np.maximum(observed.sum(axis=0), 1)
        variance = np.where(observed.any(axis=0), variance, squares.sum() / observed.sum())
        precision = 1 / np.maximum(variance, 1e-6 * variance.mean() + 1e-300)
        precision = precision / precision.mean()
    problem = make_problem(values, family, precision, backend)
    return replace(problem, n_effects=preparation.n_effects)


def _default_n_init(X: Matrix) -> int:
    """Return how many starts keep the work bounded: 24 on tiny matrices, 3 on large ones."""
    size = max(X.size if isinstance(X, np.ndarray) else 4 * n_entries(X), 1)
    return int(max(np.clip(1.6e6 / size, 3, 12), min(4e5 / size, 24)))


def _fit_by_icl(
    problem: BlockProblem, starts: list[Start], settings: BlockSettings, run: Run
) -> tuple[Blocks, Blocks]:
    """Return the blocks with the best score after splits and merges of every start's best cuts."""
    score = criteria.icl if settings.criterion == "icl" else criteria.evidence
    move = partial(soft_sweep, problem, balanced=settings.balanced)

    def criterion(blocks: Blocks) -> float:
        return -np.inf if criteria.is_saturated(problem, blocks.shape) else score(problem, blocks)

    given, keep = settings.given, run.checkpoint.piece
    leaders: dict[tuple[int, int], Blocks] = {}
    cuts: list[Blocks] = []
    for start in starts:
        best = criteria.best_cuts(problem, start.fine, start.hierarchy, given)
        best = best[:3] if problem.family != "gaussian" else best[:2] + crossed(best[2:])
        for cut in map(start.cut, (cut.numbers for cut in best)):
            if not any(same_partitions(cut, other) for other in cuts):
                cuts.append(cut)
    made = run.each("cut", move, cuts)
    for settled in counted(made, "cuts settled", run.progress, len(cuts)):
        rival = leaders.get(settled.shape)
        best_so_far = settled if rival is None else ranked((rival, settled), criterion)[0]
        leaders[settled.shape] = best_so_far
    n_refined = np.clip(_REFINED_ENTRIES // n_entries(problem.axes[0].values), 1, _MOST_REFINED)
    best_first = ranked(leaders.values(), criterion)[:n_refined]
    free = given[0] is None, given[1] is None
    options = criterion, move, free, run.checkpoint
    refined: list[Blocks] = []
    for blocks in counted(best_first, "candidates refined", run.progress):
        matched = match_counts(problem, blocks, given)
        refined.append(keep("refined", partial(refine, problem, matched, *options, refined)))
    best = match_counts(problem, ranked(refined, criterion)[0], given)
    # With enough iterations, the soft plan converges to the same point from different blocks.
    settled = keep("settled", partial(move, best, max_iter=settings.max_iter, tol=settings.tol))
    best = settled if settled.shape == best.shape else best
    return best, best


def _fit_by_cut(selected: Selection, fit: Callable[[int, int], Blocks]) -> tuple[Blocks, Blocks]:
    """Return the fit of each side; of several for the rows, the one nearest to the halves'."""
    halves = selected.halves[0]
    rows, columns = ([fit(axis, k) for k in selected.finalists[axis]] for axis in (0, 1))
    if len(rows) > 1 and halves is not None:
        rows.sort(key=lambda found: halves.distance(found.labels[0]))
    return rows[0], columns[0]


def _fit_side(
    problem: BlockProblem, starts: list[Start], balanced: bool, run: Run, axis: int, number: int
) -> Blocks:
    """Return blocks with one side cut, by the finest clusters of the other, and reassigned."""
    run.progress(f"cut into {number} {('row', 'column')[axis]} clusters")
    informed = partial(information, problem)
    move = partial(sweep, problem, max_iter=_CUT_SWEEPS, tol=_CUT_TOL, balanced=balanced)
    target = (number, None) if axis == 0 else (None, number)
    cuts = ranked((start.cut(target) for start in starts), informed)
    moved = run.each("cut", move, cuts[: max(2 - axis, len(cuts) // 2 - 1)])
    best = ranked(moved, informed)[0]
    reached = match_counts(problem, best, target)
    return move(reached) if balanced and reached is not best else reached


def fit_matrix(X: Matrix, family: str, settings: BlockSettings, run: Run) -> BlockCoclustering:
    """Return the co-clustering of a matrix, found in a sample of its longer side if enough."""
    if not is_lopsided(X, settings):
        return fit_blocks(X, family, settings, run)
    axis = int(np.argmax(X.shape))
    chosen = np.sort(run.rng.choice(X.shape[axis], SAMPLE, replace=False))
    run.progress(f"{SAMPLE} of {X.shape[axis]} {('rows', 'columns')[axis]} are used to find blocks")
    sample = np.take(X, chosen, axis=axis)
    name, reason = prepare.settle_family(sample, family, settings.scale, settings.center)
    found = search_blocks(sample, name, settings, run)
    whole = _bring_all(X, axis, chosen, found, settings)
    return replace(finish(X, whole, settings), family_reason=reason)


def is_lopsided(X: Matrix, settings: BlockSettings) -> bool:
    """Return True if a sample of the longer side is enough to find the blocks."""
    lopsided = max(X.shape) > MANY_POINTS and min(X.shape) <= FEW_VALUES
    given = settings.given[int(np.argmax(X.shape))]
    # No more clusters can be found than the sample has points.
    enough = not settings.balanced and (given is None or given <= SAMPLE)
    return isinstance(X, np.ndarray) and lopsided and enough


def _bring_all(
    X: np.ndarray, axis: int, chosen: np.ndarray, found: Search, settings: BlockSettings
) -> Search:
    """Return the sample's search, extended to all points of the longer side."""
    preparation = prepare.choose_preparation(X, found.problem.family, settings.scale)
    preparation = prepare.with_effects(preparation, X, found.preparation.center)
    preparation = replace(preparation, sentence=found.preparation.sentence)
    backend = choose_backend(settings.device, "float64", found.problem.backend.n_jobs)
    problem = prepare_problem(X, preparation, settings.heteroscedastic, backend)
    problem = problem.with_dispersion(found.problem.dispersion)

    def bring(blocks: Blocks) -> Blocks:
        """Return blocks with all points of the longer side; sampled ones keep their clusters."""
        placement = place_side(found.problem, found.preparation, blocks, axis)
        labels = placement.labels(X if axis == 0 else X.T)
        labels[chosen] = blocks.labels[axis]
        return make_blocks(problem, *blocks.relabelled(axis, labels))

    def settle(blocks: Blocks) -> Blocks:
        """Return blocks after a few sweeps, or unchanged ones if a cluster would become empty."""
        swept = sweep(problem, blocks, max_iter=_ALL_SWEEPS, tol=_ALL_TOL)
        return swept if swept.shape == blocks.shape else blocks

    first, second = found.views
    row = settle(bring(first))
    views = row, row if second is first else settle(bring(second))
    finest = bring(found.finest)
    return replace(found, preparation=preparation, problem=problem, views=views, finest=finest)
