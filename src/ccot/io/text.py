"""Text tables: delimiter, header and row names found, cells read in one pass.

Cells go straight into one growing array of doubles, so that a table takes little more memory than
its matrix.
"""

from __future__ import annotations

import csv
import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice

import numpy as np

from ccot.io.long import collect_long
from ccot.io.matrix import InputError, NamedMatrix, named_matrix

Column = str | int

MISSING = frozenset({"", "na", "nan", "n/a", "null", "none", "-", "?", ".", "#n/a", "<na>"})
# Names that head a column of row names, not of measurements.
_INDEX_NAMES = frozenset({"", "id", "index", "name", "names", "rownames", "unnamed: 0"})
_DELIMITERS = ("\t", ";", "|", ",", " ")
_DECIMAL_COMMA, _DECIMAL_POINT = (re.compile(rf"[-+]?\d*{mark}\d+") for mark in (",", r"\."))
_HEAD = 50
_ROWS_BETWEEN_NEWS = 500


@dataclass(frozen=True)
class TextOptions:
    """What the user says about a text table; None: find out.

    Attributes
    ----------
    delimiter : str or None
        Between cells.
    header : bool or None
        Whether the first line holds the names of the columns.
    index_col : str, int, False or None
        Name or position (from 0) of the column of row names; False: there is none.
    decimal : str or None
        The decimal point.
    """

    delimiter: str | None = None
    header: bool | None = None
    index_col: Column | bool | None = None
    decimal: str | None = None


@dataclass(frozen=True)
class Layout:
    """How a text table is laid out."""

    delimiter: str
    decimal: str
    header: tuple[str, ...] | None
    index: int | None
    width: int

    @property
    def column_names(self) -> tuple[str, ...] | None:
        """Names of the columns that hold values."""
        if self.header is None:
            return None
        return tuple(name for place, name in enumerate(self.header) if place != self.index)

    def describe(self) -> str:
        """Say in words how the table is read."""
        names = {"\t": "tab", " ": "space"}
        heading = "with a header" if self.header else "without a header"
        index = "no row names"
        if self.index is not None:
            title = self.header[self.index] if self.header else ""
            index = f"row names from column {title!r}" if title else "row names from column 1"
        cells = f"delimiter {names.get(self.delimiter, repr(self.delimiter))}"
        if self.decimal != ".":
            cells += f", decimal {self.decimal!r}"
        return f"text, {cells}, {heading}, {index}"


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
    head = list(islice(lines, _HEAD))
    if not any(line.strip() for line in head):
        raise InputError("the input is empty: pass a table with at least two rows and columns")
    delimiter = options.delimiter or guess_delimiter(head)
    if len(delimiter) != 1:
        raise InputError(f"the delimiter {delimiter!r} must be a single character")
    sample = list(_Cells(iter(head), delimiter, complete=len(head) < _HEAD))
    decimal = options.decimal or guess_decimal(sample)
    options = replace(options, delimiter=delimiter, decimal=decimal)
    cells = _Cells(chain(head, lines), delimiter)
    if long is not False:
        return _read_long(cells, sample, long, unlisted, options, progress)
    return _read_wide(cells, find_layout(sample, options), progress)


class _Cells:
    """Rows of cells, blank lines left out, with the number of the line at hand."""

    def __init__(self, lines: Iterator[str], delimiter: str, complete: bool = True) -> None:
        self._complete = complete
        self._reader = csv.reader(
            lines, delimiter=delimiter, skipinitialspace=delimiter == " ", strict=True
        )

    def __iter__(self) -> Iterator[list[str]]:
        try:
            for row in self._reader:
                if row and row != [""]:
                    yield row
        except csv.Error as error:
            if not self._complete:  # a quoted cell goes on beyond the sample
                return
            raise InputError(
                f"line {self.line} is no text table ({error}): check the file and its quotes"
            ) from error

    @property
    def line(self) -> int:
        """Number of the line read last, from 1."""
        return self._reader.line_num


# Layout ---------------------------------------------------------------------------------------


def guess_delimiter(head: Sequence[str]) -> str:
    """Return the delimiter that cuts all lines into equally many cells, two at least.

    Examples
    --------
    >>> guess_delimiter(["a;b", "1,5;2,5"])
    ';'
    """
    widths = {
        delimiter: [len(row) for row in _Cells(iter(head), delimiter, complete=False)]
        for delimiter in _DELIMITERS
    }
    for delimiter, seen in widths.items():
        # R leaves the cell above the row names out.
        if (
            min(seen, default=0) > 1
            and len(set(seen[1:])) <= 1
            and seen[0] in (seen[-1], seen[-1] - 1)
        ):
            return delimiter
    usual = {d: Counter(seen).most_common(1)[0][0] for d, seen in widths.items() if seen}
    usual.pop(" ", None)
    return max((d for d in usual if usual[d] > 1), key=usual.__getitem__, default=",")


def guess_decimal(sample: Sequence[list[str]]) -> str:
    """Return a comma where cells are numbers with one, and a point otherwise.

    Examples
    --------
    >>> guess_decimal([["a", "b"], ["1,5", "2"]]), guess_decimal([["1.5", "2"]])
    (',', '.')
    """
    cells = [cell.strip() for row in sample for cell in row]
    commas = any(_DECIMAL_COMMA.fullmatch(cell) for cell in cells)
    return "," if commas and not any(_DECIMAL_POINT.fullmatch(cell) for cell in cells) else "."


def find_layout(sample: Sequence[list[str]], options: TextOptions) -> Layout:
    """Find header and row names by looking at the first rows.

    Parameters
    ----------
    sample : sequence of lists of str
        The first rows.
    options : TextOptions
        What is known; delimiter and decimal point must be.

    Returns
    -------
    Layout
        The layout.
    """
    delimiter, decimal = options.delimiter or ",", options.decimal or "."
    first, rest = sample[0], sample[1:]
    width = len(rest[0]) if rest else len(first)
    if width < 2:
        raise InputError(
            f"only one column was found with the delimiter {delimiter!r}: pass --delimiter, or "
            "--long for lists of cells"
        )
    numbers = _numbers(decimal)
    has_header = options.header
    if has_header is None:
        named = any(not numbers(cell) for cell in first[1:])
        id_column = bool(rest) and not numbers(first[0]) and all(numbers(row[0]) for row in rest)
        has_header = named or id_column or len(first) == width - 1 or first[0].strip() == ""
    header = tuple(cell.strip() for cell in first) if has_header else None
    if header is not None and len(header) == width - 1:
        header = ("", *header)
    body = rest if has_header else sample
    index = _find_index(header, body, width, options.index_col, numbers)
    return Layout(delimiter, decimal, header, index, width)


def _find_index(
    header: tuple[str, ...] | None,
    body: Sequence[list[str]],
    width: int,
    asked: Column | bool | None,
    numbers: Callable[[str], bool],
) -> int | None:
    if asked is False:
        return None
    if asked is not None:
        return find_column(asked, header, width, "--index-col")
    if header is not None and header[0].lower() in _INDEX_NAMES:
        return 0
    return 0 if any(not numbers(row[0]) for row in body) else None


def find_column(asked: Column, header: Sequence[str] | None, width: int, option: str) -> int:
    """Return the position of a column given by name or position.

    Examples
    --------
    >>> find_column("b", ["a", "b"], 2, "--index-col"), find_column("0", None, 2, "--index-col")
    (1, 0)
    """
    if header is not None and asked in header:
        return list(header).index(str(asked))
    place = int(asked) if str(asked).isdecimal() else -1
    if not 0 <= place < width:
        known = f"columns are {', '.join(header)[:80]}" if header else "there is no header"
        raise InputError(
            f"{option} {asked} is no column: {known}; positions go from 0 to {width - 1}"
        )
    return place


def _numbers(decimal: str) -> Callable[[str], bool]:
    """Return a test for cells that are numbers or missing."""

    def test(cell: str) -> bool:
        try:
            parse(cell, decimal)
        except ValueError:
            return False
        return True

    return test


def parse(cell: str, decimal: str) -> float:
    """Return the number in a cell, NaN where it is missing."""
    text = cell.strip()
    if text.lower() in MISSING:
        return np.nan
    if "_" in text:
        raise ValueError(cell)
    return float(text if decimal == "." else text.replace(decimal, "."))


# Cells ----------------------------------------------------------------------------------------


def _read_wide(cells: _Cells, layout: Layout, progress: Callable[[], None]) -> NamedMatrix:
    values, names = array("d"), []
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
            names.append(row.pop(layout.index))
        _append(values, row, layout, cells.line)
        if number % _ROWS_BETWEEN_NEWS == 0:
            progress()
    n_columns = layout.width - (layout.index is not None)
    matrix = np.frombuffer(values, dtype=np.float64).reshape(-1, n_columns)
    return named_matrix(
        matrix,
        names if layout.index is not None else None,
        layout.column_names,
        layout.describe(),
    )


def _append(values: array[float], row: list[str], layout: Layout, line: int) -> None:
    before = len(values)
    # Python reads 1_000 as a thousand; tables do not.
    if layout.decimal == "." and "_" not in "".join(row):
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
            raise InputError(
                f"line {line}, {column}: {cell[:40]!r} is no number: {_remedy(cell)}"
            ) from None


def _remedy(cell: str) -> str:
    if _DECIMAL_COMMA.fullmatch(cell.strip()):
        return "pass --decimal , for decimal commas"
    if len(cell) > 40 or any(mark in cell for mark in "\t;|,"):
        return "pass --delimiter if that is several cells"
    return "drop the column, name it by --index-col, or leave the cell empty if it is unknown"


def _long_has_header(
    first: list[str], wanted: Sequence[Column], numbers: Callable[[str], bool]
) -> bool:
    """Columns asked for by name need a header; a value that is no number is one; so are pairs."""
    if not all(str(column).isdecimal() for column in wanted) or len(wanted) < 3:
        return True
    value = int(wanted[2])
    return value < len(first) and not numbers(first[value])


def _read_long(
    cells: _Cells,
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
        has_header = _long_has_header(first, wanted, _numbers(options.decimal or "."))
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
            raise InputError(
                f"line {cells.line}: the value {cell[:40]!r} is no number: {_remedy(cell)}"
            ) from None

    return collect_long(triples(), counted=len(places) == 2, unlisted=unlisted)
