"""Text tables, wide and long, read in one pass, in little more memory than the matrix takes."""

from array import array
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice
from typing import NoReturn

import numpy as np

from ccot.io.layout import (
    DECIMAL_COMMA,
    Cells,
    Layout,
    ReadOptions,
    append_numbers,
    find_layout,
    guess_decimal,
    guess_delimiter,
    is_number,
    long_places,
    parse,
)
from ccot.io.long import Cell, collect_long
from ccot.io.matrix import Found, InputError, Table, check_held, most_repeated, named_matrix
from ccot.io.mixed import GrowingColumn, as_table, finish, gather, settle

# What is looked at to find a table's layout: so many lines; fewer of long ones, but two.
_HEAD, _HEAD_CHARACTERS = 50, 1 << 20
# Cells between checks of memory, and of a part of a table.
_CELLS_BETWEEN_CHECKS, _PART_CELLS = 2**9, 2**18
# A name as Python keeps it while a table is read, however short; and a column that may hold words,
# its title and the cell at hand.
_NAME_BYTES, _COLUMN_BYTES = 90, 500
_EMPTY = "the input is empty: pass a table with at least two rows and columns"


def read_text(lines: Iterator[str], options: ReadOptions) -> Found:
    """Read a table from lines of text."""
    return _read_cells(*_open(lines, options))


def text_parts(lines: Iterator[str], options: ReadOptions) -> Iterator[Table]:
    """Yield a table from lines of text, some rows at a time."""
    cells, sample, options = _open(lines, options)
    layout = find_layout(sample, replace(options, decimal=options.decimal or guess_decimal(sample)))
    rows = iter(cells)
    header = list(islice(rows, int(layout.header is not None)))
    while part := list(islice(rows, max(1, _PART_CELLS // layout.width))):
        line = cells.line - len(part) - len(header)
        found = as_table(
            _read_wide(RowCells(chain(header, part), cells.n_characters, line), layout)
        )
        yield replace(found, columns=dict(zip(layout.titles, found.columns.values(), strict=True)))


def _open(lines: Iterator[str], options: ReadOptions) -> tuple[Cells, list[list[str]], ReadOptions]:
    """Return the cells of a text, the first rows of them, and the options with the delimiter."""
    head, complete = _head(lines)
    if not any(line.strip() for line in head):
        raise InputError(_EMPTY)
    delimiter = options.delimiter or guess_delimiter(head)
    if len(delimiter) != 1:
        raise InputError(f"the delimiter {delimiter!r} must be a single character")
    sample = list(Cells(iter(head), delimiter, complete=complete))
    if not sample:
        problem = f"the first row does not end in line {len(head)}"
        raise InputError(f"{problem}: check the file and its quotes")
    return Cells(chain(head, lines), delimiter), sample, replace(options, delimiter=delimiter)


def read_rows(rows: Iterator[list[str]], n_characters: int, options: ReadOptions) -> Found:
    """Read a table from rows of text cells, which take so much where they come from."""
    sample = list(islice(rows, _HEAD))
    if not any(sample):
        raise InputError(_EMPTY)
    width = max(map(len, sample))
    padded = (row + [""] * (width - len(row)) for row in chain(sample, rows))
    sample = [row + [""] * (width - len(row)) for row in sample]
    return _read_cells(RowCells(padded, n_characters), sample, options)


class RowCells:
    """Rows of cells that come from elsewhere, with what :class:`Cells` says of text."""

    def __init__(self, rows: Iterator[list[str]], n_characters: int, line: int = 0) -> None:
        self._rows, self.n_characters, self.line = rows, n_characters, line

    def __iter__(self) -> Iterator[list[str]]:
        for row in self._rows:
            self.line += 1
            yield row


def _head(lines: Iterator[str]) -> tuple[list[str], bool]:
    """Take the first lines, and tell whether they are all."""
    head: list[str] = []
    for line in islice(lines, _HEAD):
        head.append(line)
        if len(head) > 1 and sum(map(len, head)) > _HEAD_CHARACTERS:
            return head, False
    return head, len(head) < _HEAD


def _read_cells(cells: Cells | RowCells, sample: list[list[str]], options: ReadOptions) -> Found:
    """Read all rows, of which the first are the sample; that is emptied."""
    options = replace(options, decimal=options.decimal or guess_decimal(sample))
    if options.long is not False:
        return _read_long(cells, sample, options)
    layout = find_layout(sample, options)
    sample.clear()  # where rows are few and long, it is most of the table
    return _read_wide(cells, layout)


def _read_wide(cells: Cells | RowCells, layout: Layout) -> Found:
    """Read numbers row by row; from the first word on, go on column by column."""
    values, names = array("d"), []
    rows = _rows(cells, layout, names)
    first: list[str] | None = None
    checked, decimal, tables = 0, layout.options.decimal or ".", layout.options.tables
    while not layout.holds_words and (first := next(rows, None)) is not None:
        if not append_numbers(values, first, decimal, tables):
            break
        if len(values) + len(names) > checked:
            n_bytes = 8 * len(values) + _NAME_BYTES * len(names)
            what = f"a table of {len(names)} short row names and few values"
            remedy = "leave out the names, or empty columns, with --drop"
            check_held(n_bytes, cells.n_characters, what, remedy)
            checked = len(values) + len(names) + _CELLS_BETWEEN_CHECKS
    matrix = np.frombuffer(values, dtype=np.float64).reshape(-1, len(layout.kept))
    row_names = names if layout.index is not None else None
    if not layout.holds_words and first is None:
        if row_names is not None and most_repeated(row_names):
            return settle(dict(zip(layout.titles, matrix.T, strict=True)), row_names, layout)
        how, notes = layout.describe(), layout.options.notes
        return named_matrix(matrix, row_names, layout.column_names, how, notes)
    what = f"a table of {matrix.shape[1]} columns with words"
    remedy = "leave out columns of words with --drop, or store the table transposed"
    check_held(_COLUMN_BYTES * matrix.shape[1], cells.n_characters, what, remedy)
    numbers = zip(layout.titles, matrix.T, strict=True)
    columns = [GrowingColumn(title, decimal, column, tables) for title, column in numbers]
    del matrix, values, numbers
    numbered = ((row, cells.line) for row in chain([first] if first else [], rows))
    gather(numbered, columns, lambda: cells.n_characters)
    return finish(columns, row_names, layout)


def _rows(cells: Cells | RowCells, layout: Layout, names: list[str]) -> Iterator[list[str]]:
    """Return rows of values; the names of rows, if there are any, are added to a list."""
    removed = sorted({layout.index, *layout.dropped} - {None}, reverse=True)
    for row in islice(cells, int(layout.header is not None), None):
        if len(row) != layout.width:
            _refuse_line(cells.line, len(row), f"{layout.width} are")
        if layout.index is not None:
            names.append(row[layout.index])
        for place in removed:
            del row[place]
        yield row


def _refuse_line(line: int, n_cells: int, expected: str) -> NoReturn:
    problem = f"line {line} has {n_cells} cells where {expected} expected"
    raise InputError(f"{problem}: complete the line, or pass --delimiter")


def _read_long(cells: Cells | RowCells, sample: list[list[str]], options: ReadOptions) -> Found:
    first, width, decimal = sample[0], max(len(row) for row in sample), options.decimal or "."
    has_header = _long_has_header(first, options, width)
    header = tuple(cell.strip() for cell in first) if has_header else None
    places = long_places(options, header, width, " in each line: pass --delimiter, or ")
    counted = len(places) == 2

    def triples() -> Iterator[Cell]:
        for row in islice(cells, int(has_header), None):
            if len(row) <= max(places):
                _refuse_line(cells.line, len(row), f"at least {max(places) + 1} are")
            value = 1.0 if counted else _value(row[places[2]], decimal, cells.line)
            yield row[places[0]], row[places[1]], value

    return collect_long(triples(), options, counted=counted, size=lambda: cells.n_characters)


def _long_has_header(first: list[str], options: ReadOptions, width: int) -> bool:
    """Columns asked for by name need a header; a value that is no number is one; so are pairs."""
    if options.header is not None:
        return options.header
    wanted = range(min(width, 3)) if isinstance(options.long, bool) else options.long
    if not all(str(column).isdecimal() for column in wanted) or len(wanted) < 3:
        return True
    value = int(wanted[2])
    return value < len(first) and not is_number(first[value], options.decimal or ".")


def _value(cell: str, decimal: str, line: int) -> float:
    try:
        return parse(cell, decimal)
    except ValueError:
        remedy = "pass --long-columns row,column,value"
        if DECIMAL_COMMA.fullmatch(cell.strip()):
            remedy = "pass --decimal , for decimal commas"
        elif len(cell) > 40 or any(mark in cell for mark in "\t;|,"):
            remedy = "pass --delimiter if these are several cells"
        raise InputError(f"line {line}: value {cell[:40]!r} is not a number: {remedy}") from None
