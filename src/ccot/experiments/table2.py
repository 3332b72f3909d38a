"""Table 2: co-clustering errors, ours and the paper's, cell by cell."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields

from ccot.experiments.protocol import NON_NEGATIVE
from ccot.experiments.published import TABLE2, PaperError
from ccot.experiments.summary import FEWEST, SIGNIFICANT, Cell
from ccot.experiments.tables import Table, Text


def make_table2(cells: Sequence[Cell]) -> Table:
    """Return errors of the trials that count, under the paper's.

    Examples
    --------
    >>> from ccot.experiments.protocol import Task, run_task
    >>> from ccot.experiments.summary import summarise
    >>> from ccot.experiments.table2 import make_table2
    >>> cells = summarise([run_task(Task("D1", "published", 0, "K-means", 1, None))])
    >>> [row[1].plain for row in make_table2(cells).rows]
    ['.018 ± .003', '.000 ± .000']
    """
    grid, overlaps = _grid(cells), _unique(cells, "overlap")
    methods, rows = _unique(cells, "method"), []
    for data_set in _unique(cells, "data_set"):
        rows.append([f"{data_set}, paper", *(_paper(method, data_set) for method in methods)])
        for overlap in overlaps:
            seen = (grid.get((data_set, overlap, method)) for method in methods)
            rows.append([f"{data_set}, {overlap}", *map(_ours, seen)])
    return Table(
        name="table2",
        caption="Table 2: co-clustering error, mean ± standard deviation",
        heads=("data set, overlap", *methods),
        rows=rows,
        notes=_notes(cells),
        groups=1 + len(overlaps),
    )


def make_table_of_all(cells: Sequence[Cell]) -> Table:
    """Return the errors of all trials, also those with other numbers of clusters."""
    return _by_overlap(
        cells,
        "table2_all_trials",
        "The same, over all trials, whatever numbers of clusters they ended with",
        lambda cell: f"{_short(cell.mean_of_all)} ± {_short(cell.sd_of_all)}",
    )


def make_table_of_p_values(cells: Sequence[Cell]) -> Table:
    """Return the p-values behind the bold print."""
    return _by_overlap(
        cells,
        "table2_p_values",
        "P-values of Wilcoxon's signed-rank test against the best method",
        _p_value,
    )


def make_table_of_seconds(cells: Sequence[Cell]) -> Table:
    """Return the median processor time of a trial."""
    return _by_overlap(
        cells,
        "table2_seconds",
        "Median processor time of a trial, in seconds",
        lambda cell: f"{cell.seconds:.2g}",
    )


def cells_csv(cells: Sequence[Cell]) -> str:
    """Return everything known of every cell, one a line, the paper's numbers with it."""
    file = io.StringIO()
    heads = [field.name for field in fields(Cell)]
    writer = csv.DictWriter(file, [*heads, "paper_mean", "paper_sd"], lineterminator="\n")
    writer.writeheader()
    for cell in cells:
        paper = TABLE2.get(cell.method, {}).get(cell.data_set)
        writer.writerow(
            asdict(cell)
            | {"paper_mean": paper and paper.mean, "paper_sd": paper and paper.sd}
            # Time is not a result: two runs of one protocol write the same file.
            | {"seconds": None}
        )
    return file.getvalue()


def _by_overlap(
    cells: Sequence[Cell], name: str, caption: str, show: Callable[[Cell], str]
) -> Table:
    grid, overlaps, methods = _grid(cells), _unique(cells, "overlap"), _unique(cells, "method")
    rows = [
        [
            f"{data_set}, {overlap}",
            *(show(cell) if (cell := grid.get((data_set, overlap, m))) else "" for m in methods),
        ]
        for data_set in _unique(cells, "data_set")
        for overlap in overlaps
    ]
    return Table(name, caption, ("data set, overlap", *methods), rows, groups=len(overlaps))


def _grid(cells: Sequence[Cell]) -> dict[tuple[str, str, str], Cell]:
    return {(cell.data_set, cell.overlap, cell.method): cell for cell in cells}


def _unique(cells: Sequence[Cell], name: str) -> list[str]:
    return list(dict.fromkeys(getattr(cell, name) for cell in cells))


def _paper(method: str, data_set: str) -> Text:
    if method not in TABLE2:
        return Text("")
    entry = TABLE2[method][data_set]
    return Text("–") if entry is None else Text(_error(entry), bold=entry.bold)


def _ours(cell: Cell | None) -> Text:
    if cell is None:
        return Text("")
    counted = "" if cell.n_counted == cell.n_trials else f" ({cell.n_counted})"
    if not cell.found or cell.mean is None:
        return Text(f"–{counted}")
    paper = TABLE2.get(cell.method, {}).get(cell.data_set)
    remark = "" if paper is None else f"{cell.mean - paper.mean:+.3f}".replace("0.", ".", 1)
    return Text(f"{_error(cell)}{counted}", bold=cell.bold, remark=remark)


def _error(entry: PaperError | Cell) -> str:
    return f"{_short(entry.mean)} ± {_short(entry.sd)}"


def _short(number: float | None) -> str:
    return "" if number is None else f"{number:.3f}".removeprefix("0")


def _p_value(cell: Cell) -> str:
    if cell.p_value is None:
        return "best" if cell.bold else ""
    return "< .001" if cell.p_value < 0.001 else _short(cell.p_value)


def _notes(cells: Sequence[Cell]) -> list[str]:
    notes = [
        "Averaged are, as in the authors' program, the trials that ended with the true numbers of "
        "clusters; in brackets how many, where not all did. A dash: fewer than half. The rivals "
        "are given the numbers and may still leave clusters empty; CCOT, CCOT-GW and "
        "TransportCoclustering find them.",
        "Bold: the lowest mean, and errors that do not differ from it significantly (Wilcoxon's "
        f"signed-rank test on the same matrices, level {SIGNIFICANT:g}).",
    ]
    if max(cell.n_trials for cell in cells) < FEWEST:
        notes.append(f"With fewer than {FEWEST} matrices no difference can be significant.")
    shifted = _unique([c for c in cells if c.shifted], "method")
    if shifted:
        notes.append(
            f"{', '.join(shifted)} take no negative entries: where a matrix has some, its smallest "
            "entry was subtracted from all of them first."
        )
    elif NON_NEGATIVE & {cell.method for cell in cells}:
        notes.append("No matrix had to be shifted for the methods that take no negative entries.")
    return notes
