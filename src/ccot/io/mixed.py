"""Columns of words and numbers, gathered in one pass, part by part."""

import re
import shlex
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from ccot.io.cells import are_codes, is_code
from ccot.io.layout import DECIMAL_COMMA, MISSING, Layout, append_numbers, is_number, parse
from ccot.io.matrix import (
    Found,
    InputError,
    NamedMatrix,
    Repeated,
    Table,
    check_held,
    check_values,
    column_title,
    most_repeated,
    named_matrix,
    unique_names,
)

# Rows and cells that are taken in at once.
_PART, _PART_CELLS = 1024, 1 << 20
# A distinct word as Python keeps it, and a cell: its code, and at the end its place in an array.
_WORD_BYTES, _CELL_BYTES = 240, 12
# Among so many numbers, so small a share of other words is taken for gaps.
_MIN_NUMBERS, _STRAY = 20, 0.05
# Numbers with marks around or between their digits: not plain, but no words either.
_FORMATTED = re.compile(r"[-+(]?\s?\D{0,4}?\d[\d.,'’\s]*\s?(%|[^\w\s]|[A-Za-z]{1,3})?\)?")
_SEVERAL_CELLS = re.compile(r"[-+\d.]+([;|\t][-+\d.]+)+")
_DECIMAL_COMMA = re.compile(r"[-+]?\d*,(\d{1,2}|\d{4,})")
_DECIMAL_POINT = re.compile(r"[-+]?\d*\.\d+")

Columns = dict[str, np.ndarray]


class _Codes(dict[str, int]):
    """Numbers the words it is asked for; -1 is an empty cell."""

    def __init__(self, decimal: str) -> None:
        self.words: dict[str, int] = {}
        self._decimal, self.rewrites = decimal, False

    def __missing__(self, cell: str) -> int:
        word = cell.strip()
        if self.rewrites and word and not is_code(word) and is_number(word, self._decimal):
            word = as_text(parse(word, self._decimal)) or word
        code = self.words.setdefault(word, len(self.words)) if word else -1
        self[cell] = code
        return code


def as_text(number: float) -> str:
    """Return a number as people write it; nothing where it is missing."""
    if number != number:
        return ""
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)


class GrowingColumn:
    """A column that holds numbers, first those read before, as long as no cell is a word.

    In tables a code is one: digits with leading zeros, or more than a number can hold.
    """

    # Shared until words come: very many columns of numbers need neither.
    codes, _known = array("i"), _Codes(".")

    def __init__(self, name: str, decimal: str, numbers: Iterable[float], tables: bool) -> None:
        self.name, self._decimal, self._tables = name, decimal, tables
        self.numbers, self.is_numeric = array("d", numbers), True
        self.first_word, self.is_rewritten = (0, ""), False

    def extend(self, cells: Sequence[str], lines: Sequence[int]) -> None:
        """Add cells, which stand in these lines."""
        numbers, decimal = self.numbers, self._decimal
        if self.is_numeric and not append_numbers(numbers, cells, decimal, self._tables):
            self._turn_to_words(cells, lines)
        if not self.is_numeric:
            self.codes.extend(map(self._known.__getitem__, cells))

    def _turn_to_words(self, cells: Sequence[str], lines: Sequence[int]) -> None:
        """Go over to words; numbers before them are written as people write numbers."""
        words = (not is_number(cell, self._decimal) or is_code(cell) for cell in cells)
        first = next(place for place, is_word in enumerate(words) if is_word)
        self.first_word = lines[first], cells[first].strip()
        self.is_numeric, self.is_rewritten = False, len(self.numbers) > 0
        self.codes, self._known = array("i"), _Codes(self._decimal)
        self._known.rewrites = self.is_rewritten
        self.codes.extend(self._known[as_text(number)] for number in self.numbers)
        self.numbers = array("d")

    @property
    def words(self) -> list[str]:
        """Distinct words, in the order in which they came."""
        return list(self._known.words)

    @property
    def n_bytes(self) -> int:
        """Bytes that are held now, or at the end."""
        cells = 8 * len(self.numbers) + _CELL_BYTES * len(self.codes)
        return cells + _WORD_BYTES * len(self._known)

    def values(self) -> np.ndarray:
        """Return the cells: numbers, or objects that are str or None."""
        if self.is_numeric:
            return np.frombuffer(self.numbers, np.float64)
        known = np.array([*self.words, None], dtype=object)
        return known[np.frombuffer(self.codes, np.int32)]

    def without_strays(self) -> tuple[np.ndarray, list[str]] | None:
        """Return numbers with gaps for the few words among them, and notes; None if not so."""
        words, codes = self.words, np.frombuffer(self.codes, np.int32)
        counts = np.bincount(codes + 1, minlength=len(words) + 1)[1:]
        stray = np.array([not is_number(word, self._decimal) for word in words])
        gaps = np.array([word.lower() in MISSING for word in words])
        n_stray, n_numbers = int(counts[stray].sum()), int(counts[~stray & ~gaps].sum())
        if n_numbers < _MIN_NUMBERS or n_stray > _STRAY * n_numbers or are_codes(words):
            return None
        if any(_FORMATTED.fullmatch(words[place]) for place in np.flatnonzero(stray)):
            return None
        known = np.full(len(words) + 1, np.nan)
        for place in np.flatnonzero(~stray):
            known[place] = parse(words[place], self._decimal)
        line, word = self.first_word
        share = f"{n_stray} of {n_stray + n_numbers} cells are not numbers"
        remedy = f"pass --kind {shlex.quote(self.name[:40])}=category to use them as words"
        gaps_are = f"({word[:40]!r} in line {line}) and count as missing values; {remedy}"
        return known[codes], [f"column {self.name[:40]!r}: {share} {gaps_are}"] * (n_stray > 0)

    def check_cells(self) -> None:
        """Refuse words that are several cells, or numbers of which some have a decimal comma."""
        line, word = self.first_word
        where = f"line {line}, column {self.name[:40]!r}: {word[:40]!r}"
        if self.words and all(map(_SEVERAL_CELLS.fullmatch, self.words)):
            raise InputError(f"{where} is not a number: for several cells, pass --delimiter")
        written = (_DECIMAL_COMMA.fullmatch, _DECIMAL_POINT.fullmatch)
        if all(any(map(matches, self.words)) for matches in written):
            remedy = "write all numbers in the same way (or pass --decimal ,)"
            raise InputError(f"{where}: decimal commas and decimal points: {remedy}")


def gather(
    rows: Iterator[tuple[list[str], int]], columns: list[GrowingColumn], size: Callable[[], int]
) -> None:
    """Add rows, each with the number of its line, to columns; ``size`` tells what was read."""
    n_rows = max(1, min(_PART, _PART_CELLS // len(columns)))
    while part := list(islice(rows, n_rows)):
        lines = [line for _, line in part]
        cells = zip(*(row for row, _ in part), strict=True)
        for column, texts in zip(columns, cells, strict=True):
            column.extend(texts, lines)
        n_bytes = sum(column.n_bytes for column in columns)
        what = f"a table of {len(columns)} columns of short words"
        check_held(n_bytes, size(), what, "leave some columns out with --drop")


def finish(columns: list[GrowingColumn], names: list[str] | None, layout: Layout) -> Found:
    """Return what was gathered: a matrix if all columns hold numbers, else a table."""
    options, notes = layout.options, []
    values: Columns = {}
    unique_names((column.name for column in columns), "columns")
    if not options.tables:
        _refuse_words([column for column in columns if not column.is_numeric], layout)
    for column in columns:
        values[column.name] = column.values()
        if column.is_numeric:
            continue
        column.check_cells()
        numbers = None if column.name in options.as_words else column.without_strays()
        if numbers is not None:
            values[column.name] = numbers[0]
            notes += numbers[1]
        elif column.is_rewritten and not is_code(column.first_word[1]):
            line, word = column.first_word
            holds = f"column {column.name[:40]!r} holds words from line {line} on ({word[:40]!r})"
            notes.append(f"{holds}; the numbers before it are used as words, too")
    return settle(values, names, layout, notes)


def settle(
    values: Columns, names: list[str] | None, layout: Layout, notes: Iterable[str] = ()
) -> Found:
    """Return columns and row names as a matrix or a table; names that repeat are a column."""
    notes = [*layout.options.notes, *notes]
    if names is not None and layout.index is not None and (again := most_repeated(names)):
        holds_words = any(column.dtype.kind != "f" for column in values.values())
        notes += _as_column(again, len(names), layout, holds_words)
        title, cells = layout.title(layout.index), (name.strip() or None for name in names)
        values, names = {title: np.array(list(cells), dtype=object), **values}, None
        layout = replace(layout, index=None)
    numbers = {name: one for name, one in values.items() if one.dtype.kind == "f"}
    for name, column in numbers.items():
        check_values(column, name)
    if len(numbers) < len(values):
        return Table(values, names, (layout.describe(), *notes))
    matrix = np.column_stack(list(numbers.values())) if values else np.empty((0, 0))
    return named_matrix(matrix, names, layout.column_names, layout.describe(), notes)


def _as_column(again: Repeated, n_rows: int, layout: Layout, holds_words: bool) -> list[str]:
    """Return what to say where a first column repeats itself, and so names no rows; or refuse."""
    title = layout.title(layout.index or 0)[:40]
    what = f"olumn {title!r} cannot name the rows: {again.times} cells are {again.name[:40]!r}"
    if layout.options.index_col is not None:
        raise InputError(f"C{what}. Use --index-col NAME, or omit it to number the rows.")
    # Names of a matrix that are nearly unique are names with a mistake, no categories.
    if not layout.options.tables or (not holds_words and 2 * again.n_distinct > n_rows):
        number = f"number the rows (and {drop_options([title])} to leave the column out)"
        raise InputError(f"C{what}. Use --index-col NAME, or --index-col none to {number}.")
    if 2 * again.n_distinct <= n_rows:
        return []
    return [f"c{what}; it is used as a column, and rows are numbered"]


def drop_options(names: Iterable[str]) -> str:
    """Return the options that leave columns out."""
    return " ".join(f"--drop {shlex.quote(name[:40])}" for name in names)


def _refuse_words(columns: Sequence[GrowingColumn], layout: Layout) -> None:
    """Name all columns of words at once, with the options that leave them out."""
    if not columns:
        return
    line, word = columns[0].first_word
    where = f"column {columns[0].name[:40]!r}"
    if not layout.header:
        where = f"value {layout.titles.index(columns[0].name) + 1}"
    for column in columns:
        column.check_cells()
    where = f"line {line}, {where}: {word[:40]!r}"
    if DECIMAL_COMMA.fullmatch(word):
        raise InputError(f"{where}: pass --decimal , for decimal commas")
    drop = f"column{'s' * (len(columns) > 1)} out with {drop_options(one.name for one in columns)}"
    other = "or empty the cell if unknown (--method transport works with words)"
    remedy = f"leave the {drop}, name the column of row names with --index-col, {other}"
    raise InputError(f"{where} is not a number: {remedy}")


def refuse_table(table: Table) -> None:
    """Name all columns of a table that hold no numbers, with the options that leave them out."""
    words, shown = table.words(), []
    for name in words[:8]:
        cells = (str(cell) for cell in table.columns[name] if cell is not None)
        shown.append(f"{name[:40]!r}: {next((c for c in cells if not is_number(c)), '')[:40]!r}")
    problem = f"{len(words)} of {len(table.columns)} columns hold words ({', '.join(shown)})"
    remedy = f"use --method transport, or leave them out with {drop_options(words)}"
    raise InputError(f"{problem}: {remedy}")


def as_matrix(table: Table) -> NamedMatrix:
    """Return a table of numbers as a matrix; one with words stays a table, with the same names."""
    named = as_named(table)
    if not table.columns or table.words():
        return named
    values = np.column_stack(list(table.columns.values()))
    return named_matrix(values, table.row_names, table.columns, named.how, named.notes)


def as_named(table: Table) -> NamedMatrix:
    """Return a table as the values of what has names and is described."""
    how, *notes = table.notes or ("a table",)
    rows = None if table.row_names is None else tuple(table.row_names)
    return NamedMatrix(table, rows, tuple(table.columns), how, tuple(notes))


def as_table(found: Found) -> Table:
    """Return a matrix as a table whose columns are those of the matrix; a table as it is."""
    if isinstance(found, Table):
        return found
    if not isinstance(found.values, np.ndarray):
        raise InputError("a matrix that is sparse or read part by part is not a table")
    names = found.column_names or ("",) * found.shape[1]
    titles = [column_title(names, place) for place in range(len(names))]
    columns = dict(zip(titles, found.values.T, strict=True))
    rows = None if found.row_names is None else list(found.row_names)
    return Table(columns, rows, (found.how, *found.notes))
