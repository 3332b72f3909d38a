"""Table 2 and what belongs to it, ours under the paper's: errors, tests, numbers found, times."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from ccot.experiments.protocol import NON_NEGATIVE, RIVALS, base_of
from ccot.experiments.published import FIGURE2C, TABLE2, PaperError
from ccot.experiments.summary import FEWEST, SIGNIFICANT, Cell, Score
from ccot.experiments.tables import Table, Text

# What is not the paper's choice but ours; every table of errors says so.
SETTINGS = (
    "CCOT: independent draws without replacement, reg .2 times the median cost. CCOT-GW: squared "
    "loss, reg 1, weights (.5, .5), Gaussian kernels whose bandwidth is the mean distance, exact "
    "refinement. Both: multiscale detector. A name behind the comma says what is different."
)


def make_table2(cells: Sequence[Cell]) -> Table:
    """Return the errors of all trials, under the paper's."""
    caption = "Table 2: co-clustering error over all sets, mean ± standard deviation"
    notes = [
        "All trials count, whatever numbers of clusters they ended with. The rivals are given the "
        "numbers and may still leave clusters empty; CCOT, CCOT-GW and TransportCoclustering find "
        "them.",
        *_notes(cells),
    ]
    return _grid(cells, "table2", caption, lambda c: _entry(c, c.every), _paper_error, notes)


def make_table_of_right_numbers(cells: Sequence[Cell]) -> Table:
    """Return the errors of the trials that ended with the true numbers, under the paper's."""

    def show(cell: Cell) -> Text:
        few = "" if cell.right.n_trials == cell.n_trials else f" ({cell.right.n_trials})"
        return _entry(cell, cell.right, few) if cell.found else Text(f"–{few}")

    caption = "The same over the trials with the right numbers only, as in the authors' program"
    notes = [
        "Only trials that ended with the true numbers of clusters; in brackets how many, where not "
        "all did. A dash: fewer than half.",
        *_notes(cells),
    ]
    return _grid(cells, "table2_right_numbers", caption, show, _paper_error, notes)


def make_table_of_p_values(cells: Sequence[Cell]) -> Table:
    """Return the p-values behind the bold print of Table 2."""
    caption = (
        "P-values of Wilcoxon's signed-rank test against the best method, paired by matrix, over "
        "all sets"
    )
    return _grid(cells, "table2_p_values", caption, _p_value)


def make_table_of_seconds(cells: Sequence[Cell]) -> Table:
    """Return the median processor time of a trial."""
    caption = "Median processor time of a trial, in seconds"
    return _grid(cells, "table2_seconds", caption, lambda cell: f"{cell.seconds:.2g}")


def make_counts(cells: Sequence[Cell]) -> Table:
    """Return how often each method that finds its numbers found the true ones, and the paper's."""

    def show(cell: Cell) -> str:
        shares = (100 * n / cell.n_trials for n in (cell.rows_right, cell.columns_right))
        return " / ".join(f"{share:.0f}" for share in shares)

    def paper(method: str, data_set: str) -> str:
        printed = FIGURE2C.get(base_of(method))
        return " / ".join(map(str, printed[data_set.split()[0]])) if printed else ""

    finders = [cell for cell in cells if base_of(cell.method) not in RIVALS]
    caption = "Figure 2c: true number of row / column clusters found, in per cent of the trials"
    return _grid(finders, "figure2_counts", caption, show, paper, [SETTINGS])


def cells_csv(cells: Sequence[Cell]) -> str:
    """Return everything known of every cell, one a line, the paper's numbers with it."""
    rows = []
    for cell in cells:
        paper = _printed(cell.method, cell.data_set)
        # Time is not a result: two runs of one protocol write the same file.
        row: dict[str, Any] = asdict(cell) | {"seconds": None}
        for kind in ("every", "right"):
            row |= {f"{kind}_{name}": value for name, value in row.pop(kind).items()}
        rows.append(row | {"paper_mean": paper and paper.mean, "paper_sd": paper and paper.sd})
    file = io.StringIO()
    writer = csv.DictWriter(file, rows[0] if rows else (), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def _grid(
    cells: Sequence[Cell],
    name: str,
    caption: str,
    show: Callable[[Cell], Text | str],
    paper: Callable[[str, str], Text | str] | None = None,
    notes: Sequence[str] = (),
) -> Table:
    """Return a table of methods by sets and overlaps; what the paper has stands above each set."""
    by_place = {(cell.data_set, cell.overlap, cell.method): cell for cell in cells}
    overlaps, methods = _unique(cells, "overlap"), _unique(cells, "method")
    rows: list[list[Text | str]] = []
    for data_set in _unique(cells, "data_set"):
        if paper:
            rows.append([f"{data_set}, paper", *(paper(m, data_set) for m in methods)])
        for overlap in overlaps:
            seen = (by_place.get((data_set, overlap, method)) for method in methods)
            rows.append([f"{data_set}, {overlap}", *(show(c) if c else Text("") for c in seen)])
    heads = ("data set, overlap", *methods)
    return Table(name, caption, heads, rows, notes, len(overlaps) + bool(paper))


def _unique(cells: Sequence[Cell], name: str) -> list[str]:
    return list(dict.fromkeys(getattr(cell, name) for cell in cells))


def _printed(method: str, data_set: str) -> PaperError | None:
    return TABLE2.get(base_of(method), {}).get(data_set.split()[0])


def _paper_error(method: str, data_set: str) -> Text:
    if base_of(method) not in TABLE2:
        return Text("")
    entry = _printed(method, data_set)
    return Text("–") if entry is None else Text(_error(entry), bold=entry.bold)


def _entry(cell: Cell, score: Score, behind: str = "") -> Text:
    paper, remark = _printed(cell.method, cell.data_set), ""
    if paper is not None and score.mean is not None:
        remark = f"{score.mean - paper.mean:+.3f}".replace("0.", ".", 1)
    return Text(f"{_error(score)}{behind}", bold=score.bold, remark=remark)


def _error(entry: PaperError | Score) -> str:
    return f"{short(entry.mean)} ± {short(entry.sd)}"


def short(number: float | None) -> str:
    """Return a number below one with three digits and without its zero."""
    return "" if number is None else f"{number:.3f}".removeprefix("0")


def _p_value(cell: Cell) -> str:
    p_value = cell.every.p_value
    if p_value is None:
        return "best" if cell.every.bold else ""
    return f"{p_value:.0e}" if p_value < 0.001 else short(p_value)


def _notes(cells: Sequence[Cell]) -> list[str]:
    notes = [
        "Bold: the lowest mean, and errors that do not differ from it significantly (Wilcoxon's "
        f"signed-rank test on the same matrices, level {SIGNIFICANT:g}).",
        SETTINGS,
    ]
    if max(cell.n_trials for cell in cells) < FEWEST:
        notes.append(f"With fewer than {FEWEST} matrices no difference can be significant.")
    shifted = _unique([cell for cell in cells if cell.shifted], "method")
    if shifted:
        notes.append(
            f"{', '.join(shifted)} take no negative entries: where a matrix has some, its smallest "
            "entry was subtracted from all of them first."
        )
    elif NON_NEGATIVE & {cell.method for cell in cells}:
        notes.append("No matrix had to be shifted for the methods that take no negative entries.")
    stopped = [
        f"{cell.method} on {cell.data_set} ({cell.overlap}) {cell.n_trials - cell.converged}"
        for cell in cells
        if cell.converged < cell.n_trials and base_of(cell.method) in RIVALS
    ]
    if stopped:
        notes.append(f"Trials that stopped at their iteration limit: {', '.join(stopped)}.")
    return notes
