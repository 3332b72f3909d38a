"""Clusters of a mixed table: rows by all columns, then columns by the row clusters."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ccot.blocks import table_columns, table_problem
from ccot.blocks.axes import set_apart, stack
from ccot.blocks.columns import some_rows
from ccot.blocks.criteria import Candidate, mean_costs, ranked
from ccot.blocks.families import Terms
from ccot.blocks.fit import BlockCoclustering, BlockSettings
from ccot.blocks.hierarchy import Hierarchy, Start, build_hierarchy
from ccot.blocks.problem import Blocks, information
from ccot.blocks.reproducibility import BothSides, Halves, compare_halves, describe
from ccot.blocks.select import N_CANDIDATES
from ccot.blocks.start import draw_seed, segment
from ccot.blocks.sweep import log_marginal
from ccot.blocks.table_columns import Choice, ColumnClusters, ScorePlacement
from ccot.blocks.table_problem import PlacedRows, TableProblem, make_table_blocks, table_evidence
from ccot.blocks.tables import TablePreparation
from ccot.coclustering import Side
from ccot.io.matrix import Table
from ccot.persistence.registry import stored
from ccot.runtime.backends import choose_backend
from ccot.runtime.run import Run, counted
from ccot.sources.tables import TableParts

# If a table has more rows, clusters are searched in a sample; then all rows are read in parts.
_LARGE_ROWS, _SAMPLE_ROWS = 50_000, 20_000
_FINE_SWEEPS, _SWEEPS, _TOL = 6, 30, 1e-3
# Numbers of row clusters that are tried, and cuts that are swept for each.
_MOST_CLUSTERS, _N_CUTS = 20, 3
# If a table has more cells than this, one cut is swept.
_LARGE_CELLS = 2**20
# Fewest and most splits of rows into halves, most cells of all splits together, fewest rows that
# are split, and most rows of a half that are used.
_FEWEST_SPLITS, _MOST_SPLITS, _HALVED_CELLS, _FEW_ROWS, _ENOUGH_ROWS = 2, 8, 2**21, 32, 5000


@stored()
@dataclass(frozen=True, kw_only=True)
class TableCoclustering(BlockCoclustering):
    """A co-clustering of a table; labels of columns that are left out are -1.

    ``blocks`` and ``finest`` hold scores of the used columns, in units of their noise.
    """

    preparation: TablePreparation
    column_signs: np.ndarray  # 1 or -1: direction of a column in its cluster; 0: left out


def fit_table(
    table: Table | TableParts, preparation: TablePreparation, settings: BlockSettings, run: Run
) -> TableCoclustering:
    """Return the co-clustering of a table: rows by all columns, then columns."""
    held = table.sample if isinstance(table, TableParts) else table
    sample = some_rows(held.shape[0], _LARGE_ROWS, _SAMPLE_ROWS, run.rng)
    backend, cells = choose_backend(settings.device, "float64"), preparation.cells(held, sample)
    if len(cells.total) < table.shape[0]:
        some = f"clusters found in {len(cells.total)} of {table.shape[0]} rows, then all assigned"
        preparation = replace(preparation, sentence=f"{preparation.sentence}; {some}")
    run.progress(preparation.sentence)
    problem = table_problem.make_table_problem(preparation, cells, backend)
    found = search_rows(problem, settings, run)
    if isinstance(sample, slice) and held is table:
        # The last step is the same as for new rows, unless it would change given sizes or numbers.
        placement = table_problem.place_side(found.problem, preparation, found.blocks)
        (rows,) = table_problem.read_through([problem.rows], [placement])
        if settings.balanced or len(np.unique(rows.blocks.labels[0])) < found.blocks.shape[0]:
            rows = replace(rows, blocks=found.blocks)
    else:
        found, rows = _place_many(found, preparation, table)
    weights = table_columns.score_weights(found.problem, rows.blocks)
    scores = table_columns.score_table(found.problem, rows.blocks, weights)
    columns = table_columns.cluster_columns(
        found.problem, scores, settings.n_column_clusters, run.rng
    )
    run.progress(f"{rows.blocks.shape[0]} x {columns.labels.max() + 1} clusters")
    finest = table_columns.score_table(found.problem, found.finest, weights)
    return _collect(found, rows, columns, scores, finest)


@dataclass(frozen=True)
class RowSearch:
    """The result of a search for row clusters."""

    problem: TableProblem
    blocks: Blocks
    finest: Blocks  # the over-segmentation under the hierarchy
    hierarchy: Hierarchy
    evidence: float
    choice: Choice
    halves: Halves | None = None


def search_rows(problem: TableProblem, settings: BlockSettings, run: Run) -> RowSearch:
    """Return the number of row clusters and the clusters that are found."""
    problem, starts = _starts(problem, settings, run)
    run.progress(f"{len(starts)} starts, finest clusters {starts[0].fine.shape[0]}")
    # Halves of the rows are fitted on request or by default, if possible.
    asked = settings.criterion == "reproducibility"
    usual = settings.criterion == "auto" and settings.n_row_clusters is None
    halves = None
    if (asked or usual) and not settings.balanced and len(problem.rows.total) >= _FEW_ROWS:
        halves = _fit_halves(problem, starts[0].fine.shape[0], run)
    choose = partial(_choose_number, problem, starts, settings.n_row_clusters, halves)
    choice = run.checkpoint.piece("numbers", choose)
    make = partial(_fit_at, problem, starts, choice.number, len(starts), settings.balanced)
    found = run.checkpoint.piece("cut", make)
    blocks = make_table_blocks(problem, set_apart(found.labels[0], choice.number), found.n_sweeps)
    evidence, best = table_evidence(problem, blocks), starts[0]
    return RowSearch(problem, blocks, best.fine, best.hierarchy, evidence, choice, halves)


def _fit_halves(problem: TableProblem, n_finest: int, run: Run) -> Halves | None:
    """Return clusters of all rows by random halves of the rows; None if no number is reached."""
    n_splits = np.clip(_HALVED_CELLS // problem.rows.total.size, _FEWEST_SPLITS, _MOST_SPLITS)
    numbers = np.arange(2, min(_MOST_CLUSTERS, n_finest) + 1)
    cluster = partial(_cluster_by_half, problem, numbers)
    halves = compare_halves(cluster, numbers, len(problem.rows.total), int(n_splits), run)
    return halves if len(halves.numbers) else None


def _cluster_by_half(
    problem: TableProblem, numbers: np.ndarray, task: tuple[np.ndarray, int]
) -> np.ndarray:
    """Return labels of all rows by the clusters of one half, a row for every number."""
    members, seed = task
    half = table_problem.some_rows_of(problem, members[:: -(-len(members) // _ENOUGH_ROWS)])
    half, starts = _starts(half, BlockSettings(n_init=2), Run(np.random.default_rng(seed)))
    found = []
    for blocks in (_fit_at(half, starts, int(k), 1) for k in numbers):
        gain = problem.rows.gain(*half.terms(blocks.total, blocks.exposure))
        found.append((gain + log_marginal(blocks.labels[0], blocks.shape[0])).argmax(axis=1))
    return np.stack(found).astype(np.uint8)


def _starts(
    problem: TableProblem, settings: BlockSettings, run: Run
) -> tuple[TableProblem, list[Start]]:
    """Return the problem with its dispersion, and starts of fine row clusters, the best first."""
    scores = _scores(problem)
    n_init = settings.n_init or int(np.clip(1.6e6 / max(scores.size, 1), 3, 8))

    def start() -> Blocks:
        cut = make_table_blocks(problem, segment(scores, draw_seed(scores, run.rng)))
        return table_problem.move_rows(problem, cut, _FINE_SWEEPS, _TOL)

    rounds = counted(range(n_init), "starts", run.progress)
    fine = [run.checkpoint.piece("start", start) for _ in rounds]
    fine = ranked(fine, partial(information, problem))
    problem = table_problem.with_dispersion(problem, fine[0].labels[0])
    return problem, [Start(blocks, build_hierarchy(problem, blocks, (0,))) for blocks in fine]


def _scores(problem: TableProblem) -> np.ndarray:
    """Return cells as coordinates for K-means; the cells of each column have total variance one."""
    rows, first = problem.rows, problem.n_real
    scores = rows.total.copy()
    scores[:, first:] -= rows.exposure[:, first:]
    spread = np.sqrt(np.bincount(problem.owner, (scores**2).sum(axis=0)) / len(scores))
    spread[:first] = 1.0
    return scores / np.where(spread > 0, spread, 1.0)[problem.owner]


def _choose_number(
    problem: TableProblem, starts: list[Start], given: int | None, halves: Halves | None
) -> Choice:
    """Return a number of clusters, chosen by fits at every number, merge costs and halves."""
    n_finest = starts[0].fine.shape[0]
    n_cuts = _N_CUTS if problem.rows.total.size < _LARGE_CELLS else 1
    evidence = {1: table_evidence(problem, starts[0].cut((1, None)))}
    if given is not None:
        return Choice(given, evidence, "icl")
    for k in range(2, min(_MOST_CLUSTERS, n_finest) + 1):
        blocks = _fit_at(problem, starts, k, n_cuts)
        if blocks.shape[0] == k:
            evidence[k] = table_evidence(problem, blocks)
    costs = mean_costs([start.hierarchy for start in starts], 0)
    return table_columns.choose_number(costs, evidence, n_finest, halves)


def _fit_at(
    problem: TableProblem, starts: list[Start], k: int, n_cuts: int, balanced: bool = False
) -> Blocks:
    """Return the likeliest swept cut that still has k clusters; if there is none, the best cut."""
    cuts = ranked((start.cut((k, None)) for start in starts), partial(information, problem))
    moved = [
        table_problem.move_rows(problem, cut, _SWEEPS, _TOL, balanced) for cut in cuts[:n_cuts]
    ]
    moved = ranked(moved, partial(table_evidence, problem))
    return next((blocks for blocks in moved if blocks.shape[0] == k), cuts[0])


def _place_many(
    found: RowSearch, preparation: TablePreparation, table: Table | TableParts
) -> tuple[RowSearch, PlacedRows]:
    """Return all rows of a large table, placed by clusters of a sample, then of all rows."""
    problem = found.problem
    growth = table.shape[0] / len(problem.rows.total)
    whole = replace(problem, sum_squares=problem.sum_squares * growth)
    place, parts = table_problem.place_side, partial(table_problem.table_parts, table, preparation)
    sampled = [place(problem, preparation, blocks) for blocks in (found.finest, found.blocks)]
    finest, first = table_problem.read_through(parts(), sampled)
    (rows,) = table_problem.read_through(parts(), [place(whole, preparation, first.blocks)])
    return replace(found, problem=whole, finest=finest.blocks), rows


def _collect(
    found: RowSearch, rows: PlacedRows, columns: ColumnClusters, scores: Terms, finest: Terms
) -> TableCoclustering:
    """Return the co-clustering from the results of both sides."""
    preparation, problem = rows.placement.preparation, found.problem
    labels, n_columns = rows.blocks.labels[0], int(columns.labels.max()) + 1
    n_finest = int(columns.finest.max()) + 1
    # Most columns of a cluster have the sign 1.
    balance = np.bincount(columns.labels, columns.signs)
    signs = columns.signs * np.where(balance < 0, -1.0, 1.0)[columns.labels]
    blocks = _score_blocks(labels, columns.labels, n_columns, signs, scores)
    fine = _score_blocks(found.finest.labels[0], columns.finest, n_finest, columns.signs, finest)
    means = np.divide(blocks.total, blocks.exposure, out=np.full(blocks.shape, np.nan),
                      where=blocks.exposure > 0)  # fmt: skip
    noise = problem.noise(rows.blocks.total, rows.blocks.exposure)
    column_placement = ScorePlacement(
        width=len(labels), rows=labels, means=np.nan_to_num(means.T), noise=noise
    )
    families = _families(preparation)
    merges = (*found.hierarchy.side(0), *columns.merges)
    again = None
    if found.halves is not None and found.blocks.shape[0] > 1:
        leaves = found.finest.labels[0], found.hierarchy.nodes(0)[0]
        again = describe(found.halves, labels, *leaves)
    return TableCoclustering(
        row=Side(
            labels=labels,
            n_clusters=rows.blocks.shape[0],
            confidence=rows.confidence * (again.points if again else 1.0),
            placement=rows.placement,
        ),
        column=Side(
            labels=preparation.on_all_columns(columns.labels, -1),
            n_clusters=n_columns,
            confidence=preparation.on_all_columns(columns.confidence, 0.0),
            placement=column_placement,
        ),
        n_iter=max(1, found.blocks.n_sweeps),
        block_means=means,
        family=families[0],
        family_reason=families[1],
        blocks=blocks,
        finest=fine,
        hierarchy=Hierarchy((found.finest.shape[0], n_finest), merges),
        candidates=_candidates(found, n_columns),
        icl=found.evidence,
        bic=_bic(problem, found.blocks),
        reproducibility=BothSides(row=again),
        preparation=preparation,
        column_signs=preparation.on_all_columns(signs, 0.0),
    )


def _score_blocks(
    rows: np.ndarray, columns: np.ndarray, n_columns: int, signs: np.ndarray, scores: Terms
) -> Blocks:
    table = scores[0] * signs, scores[1]
    total, exposure = (stack(part.T, columns, n_columns).T for part in table)
    return Blocks((rows, columns), total, exposure)


def _families(preparation: TablePreparation) -> tuple[str, str]:
    """Return the family of all columns ("mixed" if there are several), and counts of columns."""
    names = {"gaussian": "numbers", "poisson": "counts", "multinomial": "categories"}
    families = [column.family for column in preparation.columns]
    used = [key for key in names if key in families]
    counts = ", ".join(
        f"{(n := families.count(key))} column{'s' * (n > 1)} of {names[key]} ({key})"
        for key in used
    )
    return used[0] if len(used) == 1 else "mixed", counts


def _candidates(found: RowSearch, n_columns: int) -> tuple[Candidate, ...]:
    """Return the numbers that were considered: the chosen one, then the others by score."""
    choice = found.choice
    others = sorted(choice.scores, key=lambda k: -choice.scores[k])
    return tuple(
        Candidate(k, n_columns, choice.scores.get(k, found.evidence), choice.criterion)
        for k in dict.fromkeys((found.blocks.shape[0], *others))
    )[:N_CANDIDATES]


def _bic(problem: TableProblem, blocks: Blocks) -> float:
    """Return the Bayesian information criterion given the labels."""
    noise = problem.noise(blocks.total, blocks.exposure)
    n_observed = blocks.exposure[:, : problem.n_real].sum()
    held = problem.information(blocks.total, blocks.exposure)[:, problem.n_real :].sum()
    # The shares of a category sum to one.
    n_categories = problem.owner[-1] + 1 - problem.n_real - problem.n_counts
    n_free = blocks.shape[0] * (len(problem.owner) - n_categories)
    price = 0.5 * n_free * np.log(len(problem.rows.total))
    return float(held - 0.5 * n_observed * np.log(noise) - price)
