"""Text tables, wide and long, read in one pass.

Cells go straight into one growing array of doubles, so that a table takes little more memory than
its matrix.
"""

from __future__ import annotations

import shlex
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice

import numpy as np

from ccot.io.layout import (
    DECIMAL_COMMA,
    FEW,
    Cells,
    Column,
    Layout,
    TextOptions,
    check_drop,
    find_column,
    find_layout,
    guess_decimal,
    guess_delimiter,
    number_test,
    parse,
)
from ccot.io.long import collect_long
from ccot.io.matrix import InputError, NamedMatrix, check_held, named_matrix

# What is looked at to find a table's layout: so many lines; fewer of long ones, but two.
_HEAD, _HEAD_CHARACTERS = 50, 1 << 20
_ROWS_BETWEEN_NEWS = 500
# A name as Python keeps it while a table is read, however short.
_NAME_BYTES = 90
# Cells that are looked through at once.
_JOINED = 4096


def read_text(
    lines: Iterator[str],
    options: TextOptions,
    *,
    long: bool | Sequence[Column] = False,
    unlisted: str = "zero",
    progress: Callable[[], None] = lambda: None,
) -> NamedMatrix:
    """Read a table from lines of text.

    Parameters
    ----------
    lines : iterator of str
        The lines.
    options : TextOptions
        What is known about the table.
    long : bool or sequence of str or int, default=False
        A long table: one line a cell, with its row, column and value in the first three columns,
        or in those named.
    unlisted : {"zero", "missing"}, default="zero"
        What cells are that a long table does not list.
    progress : callable, optional
        Called every few hundred lines.

    Returns
    -------
    NamedMatrix
        The matrix.

    Examples
    --------
    >>> table = read_text(iter(["gene,a,b", "x,1,2", "y,3,"]), TextOptions())
    >>> table.values
    array([[ 1.,  2.],
           [ 3., nan]])
    >>> table.row_names, table.column_names
    (('x', 'y'), ('a', 'b'))
    """
    head, complete = _head(lines)
    if not any(line.strip() for line in head):
        raise InputError("the input is empty: pass a table with at least two rows and columns")
    delimiter = options.delimiter or guess_delimiter(head)
    if len(delimiter) != 1:
        raise InputError(f"the delimiter {delimiter!r} must be a single character")
    sample = list(Cells(iter(head), delimiter, complete=complete))
    if not sample:
        raise InputError(
            f"the first row does not end in line {len(head)}: check the file and its quotes"
        )
    decimal = options.decimal or guess_decimal(sample)
    options = replace(options, delimiter=delimiter, decimal=decimal)
    cells = Cells(chain(head, lines), delimiter)
    if long is not False:
        check_drop(options.drop, "a long table")
        return _read_long(cells, sample, long, unlisted, options, progress)
    layout = find_layout(sample, options)
    del sample  # where rows are few and long, it is most of the table
    return _read_wide(cells, layout, progress)


def _head(lines: Iterator[str]) -> tuple[list[str], bool]:
    """Take the first lines, and tell whether they are all."""
    head: list[str] = []
    n_characters = 0
    for line in islice(lines, _HEAD):
        head.append(line)
        n_characters += len(line)
        if n_characters > _HEAD_CHARACTERS and len(head) > 1:
            return head, False
    return head, len(head) < _HEAD


def _read_wide(cells: Cells, layout: Layout, progress: Callable[[], None]) -> NamedMatrix:
    values, names, removed = array("d"), [], layout.removed
    rows = iter(cells)
    if layout.header is not None:
        next(rows)
    for number, row in enumerate(rows):
        if len(row) != layout.width:
            raise InputError(
                f"line {cells.line} has {len(row)} cells where {layout.width} are expected: "
                "complete the line, or pass --delimiter"
            )
        if layout.index is not None:
            names.append(row[layout.index])
        for place in removed:
            del row[place]
        _append(values, row, layout, cells.line)
        if number % _ROWS_BETWEEN_NEWS == 0:
            progress()
            _check_names(values, names, cells)
    matrix = np.frombuffer(values, dtype=np.float64).reshape(-1, layout.width - len(removed))
    return named_matrix(
        matrix,
        names if layout.index is not None else None,
        layout.column_names,
        layout.describe(),
    )


def _check_names(values: array[float], names: list[str], cells: Cells) -> None:
    check_held(
        8 * len(values) + _NAME_BYTES * len(names),
        cells.n_characters,
        f"a table of {len(names)} short row names and few values",
        "leave the names out by --drop 0",
    )


def _append(values: array[float], row: list[str], layout: Layout, line: int) -> None:
    before = len(values)
    # Python reads 1_000 as a thousand; tables do not.
    if layout.decimal == "." and not _holds(row, "_"):
        try:
            values.extend(map(float, row))
            return
        except ValueError:
            del values[before:]
    for place, cell in enumerate(row):
        try:
            values.append(parse(cell, layout.decimal))
        except ValueError:
            names = layout.column_names
            column = f"column {names[place][:40]!r}" if names else f"value {place + 1}"
            remedy = _remedy(cell) or _without_text(row, layout)
            raise InputError(
                f"line {line}, {column}: {cell[:40]!r} is no number: {remedy}"
            ) from None


def _holds(row: list[str], mark: str) -> bool:
    parts = (row[first : first + _JOINED] for first in range(0, len(row), _JOINED))
    return any(mark in "".join(part) for part in parts)


def _remedy(cell: str) -> str | None:
    """Say what may help where a cell is no number, unless it is plain text."""
    if DECIMAL_COMMA.fullmatch(cell.strip()):
        return "pass --decimal , for decimal commas"
    if len(cell) > 40 or any(mark in cell for mark in "\t;|,"):
        return "pass --delimiter if that is several cells"
    return None


def _without_text(row: list[str], layout: Layout) -> str:
    """Say how to leave all columns out that hold text in a row, whose values are left."""
    removed = set(layout.removed)
    places = (place for place in range(layout.width) if place not in removed)
    numbers = number_test(layout.decimal)
    text = [layout.title(p) for p, cell in zip(places, row, strict=True) if not numbers(cell)]
    columns, drop = "column", "--drop"
    if len(text) <= FEW:
        columns += "s" * (len(text) > 1)
        drop = " ".join(f"--drop {shlex.quote(title[:40])}" for title in text)
    return (
        f"leave the {columns} out by {drop}, name one of row names by --index-col, or empty the "
        "cell if unknown"
    )


def _long_has_header(
    first: list[str], wanted: Sequence[Column], numbers: Callable[[str], bool]
) -> bool:
    """Columns asked for by name need a header; a value that is no number is one; so are pairs."""
    if not all(str(column).isdecimal() for column in wanted) or len(wanted) < 3:
        return True
    value = int(wanted[2])
    return value < len(first) and not numbers(first[value])


def _read_long(
    cells: Cells,
    sample: Sequence[list[str]],
    asked: bool | Sequence[Column],
    unlisted: str,
    options: TextOptions,
    progress: Callable[[], None],
) -> NamedMatrix:
    first, width = sample[0], max(len(row) for row in sample)
    wanted = list(range(min(width, 3))) if isinstance(asked, bool) else list(asked)
    has_header = options.header
    if has_header is None:
        has_header = _long_has_header(first, wanted, number_test(options.decimal or "."))
    header = [cell.strip() for cell in first] if has_header else None
    places = [find_column(column, header, width, "--long-columns") for column in wanted]
    if len(places) not in (2, 3):
        raise InputError(
            "a long table has a row, a column and a value in each line: pass --delimiter, or "
            "--long-columns row,column,value"
        )

    def triples() -> Iterator[tuple[str, str, float]]:
        rows = iter(cells)
        if has_header:
            next(rows)
        for number, row in enumerate(rows):
            if len(row) <= max(places):
                raise InputError(
                    f"line {cells.line} has {len(row)} cells where at least {max(places) + 1} are "
                    "expected: complete the line, or pass --delimiter"
                )
            if number % _ROWS_BETWEEN_NEWS == 0:
                progress()
            yield row[places[0]], row[places[1]], value_of(row)

    def value_of(row: list[str]) -> float:
        if len(places) == 2:
            return 1.0
        cell = row[places[2]]
        try:
            return parse(cell, options.decimal or ".")
        except ValueError:
            remedy = _remedy(cell) or "pass --long-columns row,column,value"
            raise InputError(
                f"line {cells.line}: the value {cell[:40]!r} is no number: {remedy}"
            ) from None

    return collect_long(
        triples(), counted=len(places) == 2, unlisted=unlisted, size=lambda: cells.n_characters
    )
