"""Table 2 and what belongs to it, ours under the paper's: errors, tests, numbers found, times."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from ccot.experiments.protocol import NON_NEGATIVE, RIVALS
from ccot.experiments.published import FIGURE2C, TABLE2
from ccot.experiments.summary import FEWEST, SIGNIFICANT, Cell, Score
from ccot.experiments.tables import TEXTS, Table, Text, csv_text, worded_table

SETTINGS: str = TEXTS["notes"]["settings"]


def make_table2(cells: Sequence[Cell]) -> Table:
    """Return the errors of all trials, under the paper's."""
    return _grid(cells, "table2", lambda c: _entry(c, c.every), _paper_error, *_notes(cells))


def make_table_of_right_numbers(cells: Sequence[Cell]) -> Table:
    """Return the errors of the trials that ended with the true numbers, under the paper's."""

    def show(cell: Cell) -> Text:
        few = "" if cell.right.n_trials == cell.n_trials else f" ({cell.right.n_trials})"
        return _entry(cell, cell.right, few) if cell.found else Text(f"–{few}")

    return _grid(cells, "table2_right_numbers", show, _paper_error, *_notes(cells))


def make_table_of_p_values(cells: Sequence[Cell]) -> Table:
    """Return the p-values behind the bold print of Table 2."""
    return _grid(cells, "table2_p_values", _p_value, None, SETTINGS)


def make_table_of_seconds(cells: Sequence[Cell]) -> Table:
    """Return the median processor time of a trial."""
    return _grid(cells, "table2_seconds", lambda cell: f"{cell.seconds:.2g}", None, SETTINGS)


def make_counts(cells: Sequence[Cell]) -> Table:
    """Return how often each method that finds its numbers found the true ones, and the paper's."""

    def show(cell: Cell) -> str:
        shares = (100 * n / cell.n_trials for n in (cell.rows_right, cell.columns_right))
        return " / ".join(f"{share:.0f}" for share in shares)

    def paper(method: str, data_set: str) -> str:
        return " / ".join(map(str, FIGURE2C[method][data_set])) if method in FIGURE2C else ""

    finders = [cell for cell in cells if cell.method not in RIVALS]
    return _grid(finders, "figure2_counts", show, paper, SETTINGS)


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
    return csv_text([list(rows[0]) if rows else [], *(row.values() for row in rows)])


def _grid(
    cells: Sequence[Cell],
    name: str,
    show: Callable[[Cell], Text | str],
    paper: Callable[[str, str], Text | str] | None = None,
    *notes: str,
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
    heads, groups = ("data set, overlap", *methods), len(overlaps) + bool(paper)
    return worded_table(name, rows, *notes, heads=heads, groups=groups)


def _unique(cells: Sequence[Cell], name: str) -> list[str]:
    return list(dict.fromkeys(getattr(cell, name) for cell in cells))


def _printed(method: str, data_set: str) -> Score | None:
    return TABLE2.get(method, {}).get(data_set)


def _paper_error(method: str, data_set: str) -> Text:
    if method not in TABLE2:
        return Text("")
    entry = _printed(method, data_set)
    return Text("–") if entry is None else Text(_error(entry), bold=entry.bold)


def _entry(cell: Cell, score: Score, behind: str = "") -> Text:
    paper, remark = _printed(cell.method, cell.data_set), ""
    if paper and paper.mean is not None and score.mean is not None:
        remark = f"{score.mean - paper.mean:+.3f}".replace("0.", ".", 1)
    return Text(f"{_error(score)}{behind}", bold=score.bold, remark=remark)


def _error(entry: Score) -> str:
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
    words: dict[str, str] = TEXTS["notes"]
    notes = [words["bold"].format(level=SIGNIFICANT), SETTINGS]
    if max(cell.n_trials for cell in cells) < FEWEST:
        notes.append(words["few"].format(fewest=FEWEST))
    shifted = _unique([cell for cell in cells if cell.shifted], "method")
    if shifted:
        notes.append(words["shifted"].format(methods=", ".join(shifted)))
    elif NON_NEGATIVE & {cell.method for cell in cells}:
        notes.append(words["not_shifted"])
    stopped = [
        f"{cell.method} on {cell.data_set} ({cell.overlap}) {cell.n_trials - cell.converged}"
        for cell in cells
        if cell.converged < cell.n_trials
    ]
    return [*notes, words["stopped"].format(trials=", ".join(stopped) or "none")]
