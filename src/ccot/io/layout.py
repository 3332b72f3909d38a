"""How text tables are laid out: delimiter, decimal point, header and row names, found or told."""

from __future__ import annotations

import csv
import re
from array import array
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from textwrap import shorten

import numpy as np

from ccot.io.cells import MISSING_NUMBER as MISSING
from ccot.io.cells import find_formats, hold_code
from ccot.io.matrix import InputError, column_title

Column = str | int
Header = tuple[str, ...] | None

# Names that head a column of row names, not of measurements.
_INDEX_NAMES = frozenset({"", "id", "index", "name", "names", "rownames", "unnamed: 0"})
# So many columns are named one by one; more are counted.
FEW = 5
# Cells that are looked through at once.
_JOINED = 4096
_DELIMITERS = ("\t", ";", "|", ",", " ")
# Wider tables are better stored in other ways: a row of cells takes many times its text.
MOST_CELLS = 2**20
# So many numbers that go up in a row are no accident.
_MANY = 5
_WHOLE, _YEAR = re.compile(r"\d{1,9}"), re.compile(r"(1[5-9]|20)\d\d")
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+")
DECIMAL_COMMA, _DECIMAL_POINT = (re.compile(rf"[-+]?\d*{mark}\d+") for mark in (",", r"\."))


@dataclass(frozen=True)
class ReadOptions:
    """What the user says about an input, see :func:`ccot.io.read_matrix`; None: find out."""

    delimiter: str | None = None
    header: bool | None = None
    index_col: Column | bool | None = None
    decimal: str | None = None
    drop: Sequence[Column] = ()
    encoding: str = "utf-8-sig"
    long: bool | Sequence[Column] = False
    unlisted: str = "zero"
    aggregate: str | None = None
    layer: str | None = None
    sheet: str | None = None
    table: str | None = None
    as_words: Collection[str] = ()
    known: Collection[str] = ()  # columns of a model, which name no rows
    index_before: str | None = None  # column that named the rows of a model, if it is there
    tables: bool = False  # whether columns of words are welcome
    source: str = ""  # what the table is if it is no text
    notes: tuple[str, ...] = ()  # what was doubtful before


@dataclass(frozen=True)
class Layout:
    """How a table is laid out: places of columns, and the options with what was found out."""

    options: ReadOptions
    header: Header
    index: int | None
    width: int
    dropped: frozenset[int] = frozenset()
    holds_words: bool = False

    @property
    def kept(self) -> list[int]:
        """Places of the columns that hold values."""
        removed = {self.index, *self.dropped}
        return [place for place in range(self.width) if place not in removed]

    @property
    def column_names(self) -> Header:
        """Names of the columns that hold values."""
        return None if self.header is None else tuple(self.header[place] for place in self.kept)

    @property
    def titles(self) -> list[str]:
        """What options call the columns that hold values."""
        return [self.title(place) for place in self.kept]

    def describe(self) -> str:
        """Say in words how the table is read."""
        options, names = self.options, {"\t": "tab", " ": "space"}
        heading = ", with a header" if self.header else ", without a header"
        index = "no row names"
        if self.index is not None:
            index = f"row names from column {self._shown(self.index)}"
        cells = f"text, delimiter {names.get(options.delimiter or '', repr(options.delimiter))}"
        if options.decimal != ".":
            cells += f", decimal {options.decimal!r}"
        if options.source:
            cells, heading = options.source, "" if self.header else heading
        left_out = ""
        if len(self.dropped) > FEW:
            left_out = f", {len(self.dropped)} columns left out"
        elif self.dropped:
            left_out = f", without {', '.join(map(self._shown, sorted(self.dropped)))}"
        return f"{cells}{heading}, {index}{left_out}"

    def title(self, place: int) -> str:
        """Return what options call a column: its name, or its position from 0."""
        return column_title(self.header or ("",) * self.width, place)

    def _shown(self, place: int) -> str:
        return repr(self.header[place]) if self.header and self.header[place] else str(place)


class Cells:
    """Rows of cells, blank lines left out; ``line`` is at hand, ``n_characters`` were read."""

    def __init__(self, lines: Iterator[str], delimiter: str, complete: bool = True) -> None:
        self._complete, self._delimiter = complete, delimiter
        self.n_characters = self._row_began = 0
        self._reader = csv.reader(
            self._counted(lines), delimiter=delimiter, skipinitialspace=delimiter == " ",
            strict=True,
        )  # fmt: skip

    def _counted(self, lines: Iterator[str]) -> Iterator[str]:
        """Hand lines on while their row, of one line or of many, has not too many cells."""
        n_cells = 0
        for line in lines:
            if self.n_characters == self._row_began:
                n_cells = 0
            self.n_characters += len(line)
            if self.n_characters - self._row_began > MOST_CELLS:
                n_cells += line.count(self._delimiter)
                if n_cells > MOST_CELLS:
                    remedy = "store the table transposed, as .npy, or as a long table"
                    n_line = self.line + 1
                    raise InputError(f"line {n_line} has more than {MOST_CELLS} cells: {remedy}")
            yield line

    def __iter__(self) -> Iterator[list[str]]:
        try:
            for row in self._reader:
                self._row_began = self.n_characters
                if row and row != [""]:
                    yield row
        except csv.Error as error:
            if not self._complete:  # a quoted cell goes on beyond the sample
                return
            problem = f"line {self.line} cannot be read as a table ({error})"
            raise InputError(f"{problem}: check the file and its quotes") from error

    @property
    def line(self) -> int:
        """Number of the line read last, from 1."""
        return self._reader.line_num


def guess_delimiter(head: Sequence[str]) -> str:
    """Return the delimiter that cuts all lines into equally many cells, two at least."""
    widths = {d: [len(row) for row in Cells(iter(head), d, complete=False)] for d in _DELIMITERS}
    for delimiter, seen in widths.items():
        # R leaves the cell above the row names out.
        if min(seen, default=0) > 1 >= len(set(seen[1:])) and seen[-1] - seen[0] in (0, 1):
            return delimiter
    usual = {d: Counter(seen).most_common(1)[0][0] for d, seen in widths.items() if seen}
    usual.pop(" ", None)
    return max((d for d in usual if usual[d] > 1), key=usual.__getitem__, default=",")


def guess_decimal(sample: Sequence[list[str]]) -> str:
    """Return a comma where cells are numbers with one, and a point otherwise."""
    commas = points = False
    for cell in (cell.strip() for row in sample for cell in row):
        # 1,234 may be a thousand and more: it is no sign of decimal commas.
        commas |= bool(DECIMAL_COMMA.fullmatch(cell)) and not _THOUSANDS.fullmatch(cell)
        points |= bool(_DECIMAL_POINT.fullmatch(cell))
    return "," if commas and not points else "."


def find_layout(sample: Sequence[list[str]], options: ReadOptions) -> Layout:
    """Find header and row names by looking at the first rows; the decimal point must be known."""
    decimal = options.decimal or "."
    first, rest = sample[0], sample[1:]
    width = len(rest[0]) if rest else len(first)
    if width < 2:
        if options.source:
            remedy = "; ".join(options.notes) or "pass a table with at least two columns"
            raise InputError(f"{options.source} has only one column: {remedy}")
        other = guess_delimiter([row[0] for row in sample if row])
        fitting = f" {other!r}" if other in sample[-1][0] else ""
        if first[0].startswith("#"):
            fitting += ", remove the lines of '#' above the table"
        found = f"only one column was found with the delimiter {options.delimiter or ','!r}"
        raise InputError(f"{found}: pass --delimiter{fitting}, or --long for a long table")
    has_header = options.header
    if has_header is None:
        _check_title(sample, decimal)
        shorter = len(first) == width - 1
        # Columns without names are known by their positions, which may be values as well.
        names = set(options.known) - set(map(str, range(width)))
        known = not names.isdisjoint(cell.strip() for cell in first)
        has_header, doubt = (True, ()) if shorter or known else _heads(first, rest, decimal)
        options = replace(options, notes=options.notes + doubt)
    header = tuple(cell.strip() for cell in first) if has_header else None
    if header is not None and len(header) == width - 1:
        header = ("", *header)
    width = max(width, len(header or ()))
    body = rest if has_header else sample
    named = header is not None and header[0].lower() in _INDEX_NAMES
    index = 0 if named or not _are_numbers([row[0] for row in body], decimal) else None
    if header is not None and header[0] in options.known and header.count(header[0]) == 1:
        index = None
    layout = place_columns(index, header, width, options)
    _check_header(header, layout.dropped)
    left_out = {layout.index, *layout.dropped, *range(layout.width, max(map(len, body), default=0))}
    cells = (cell for row in body for place, cell in enumerate(row) if place not in left_out)
    return replace(layout, holds_words=not all(is_number(cell, decimal) for cell in cells))


def _are_numbers(cells: Sequence[str], decimal: str) -> bool:
    """Tell whether cells are numbers, shares or amounts of money."""
    if all(is_number(cell, decimal) for cell in cells):
        return True
    formats = find_formats([cell.strip() for cell in cells])
    return bool(formats) and formats[0] in ("percent", "money", "thousands", "decimal comma")


def names_rows(name: str, values: np.ndarray) -> bool:
    """Tell whether a first column names rows: no numbers, or called like names, once each."""
    is_named = name.lower() in _INDEX_NAMES or values.dtype.kind == "M"
    if values.dtype.kind == "O":
        is_named |= not _are_numbers([cell or "" for cell in values[:50]], ".")
    return is_named and len(set(values.tolist())) == len(values)


def place_columns(index: int | None, header: Header, width: int, options: ReadOptions) -> Layout:
    """Return a layout; the index is that of row names if the options ask for none."""
    asked, before = options.index_col, options.index_before
    if asked is None and before is not None and _names_rows(before, header, width, options.known):
        asked = False if before == "none" else before
    if asked is not None:
        index = None if asked is False else find_column(asked, header, width, "--index-col")
    dropped = frozenset(find_column(one, header, width, "--drop") for one in options.drop)
    return Layout(options, header, None if index in dropped else index, width, dropped)


def _names_rows(column: str, header: Header, width: int, known: Collection[str]) -> bool:
    """Tell whether the column that named the rows of another table is there to name these."""
    if column == "none" or (header is not None and column in header):
        return True
    is_place = column.isdecimal() and int(column) < width
    return is_place and (header is None or header[int(column)] not in known)


def _check_title(sample: Sequence[list[str]], decimal: str) -> None:
    """Refuse a first line of few cells, or of one word beside empty ones: a title is no header."""
    if len(sample) > 1 and len(sample[0]) < len(sample[1]) - 1:
        cells = f"{len(sample[0])} cells where {len(sample[1])} are expected"
        remedy = "remove lines above the table, or pass --delimiter"
        raise InputError(f"the first line has {cells}: {remedy}")
    filled = [[cell for cell in row if cell.strip()] for row in sample[:2]]
    alone = len(sample[0]) > 2 and len(filled[0]) == 1 < len(filled[-1])
    if alone and not is_number(filled[0][0], decimal):
        remedy = "remove lines above the table, or pass --no-header if it is a row of data"
        raise InputError(f"the first line holds only {filled[0][0][:40]!r}: {remedy}")


def _check_header(header: Header, dropped: Collection[int]) -> None:
    """Refuse a header that leaves out several names, as a title above a table does."""
    blank = (place for place, name in enumerate(header or ()) if place and not name)
    unnamed = [place for place in blank if place not in dropped]
    if len(unnamed) > 1:
        drop = " ".join(f"--drop {place}" for place in unnamed[:FEW])
        remedy = f"name the columns, leave them out with {drop}, or pass --no-header"
        problem = f"the first line has no name for {len(unnamed)} columns"
        raise InputError(f"{problem}: remove lines above the table, {remedy}")


def _heads(
    first: list[str], rest: Sequence[list[str]], decimal: str
) -> tuple[bool, tuple[str, ...]]:
    """Tell whether the first line is a header, and what to say if that is in doubt."""
    words = [place for place, cell in enumerate(first) if not is_number(cell, decimal)]
    if not rest:
        return any(place > 0 for place in words), ()
    below = {place: {row[place].strip() for row in rest if place < len(row)} for place in words}
    above_numbers = any(all(is_number(cell, decimal) for cell in below[place]) for place in words)
    if above_numbers or first[0].strip().lower() in _INDEX_NAMES:
        return True, ()
    if any(first[place].strip() in below[place] for place in words):
        return False, ()
    above = [cell.strip() for place, cell in enumerate(first) if place not in words]
    shown = f"the first line ({shorten(', '.join(first), 44, placeholder=' ...')}) is read as"
    as_row = (f"{shown} a row: pass --header if it names the columns",)
    if not words and not _numbers_columns(above, rest):
        years = _are_years(above) and not any(_are_years([*map(str.strip, row)]) for row in rest)
        return False, as_row if years else ()
    if not words or not above or _heads_numbers(above, rest, decimal):
        return True, (f"{shown} a header: pass --no-header if it is a row",)
    return False, as_row


def _heads_numbers(above: list[str], rest: Sequence[list[str]], decimal: str) -> bool:
    """Tell whether a line of words and numbers is a header: its numbers cannot be one more row."""
    if len(set(above)) < len(above) or any(cell.lower() in MISSING for cell in above):
        return False
    cells = ([cell.strip() for cell in row if is_number(cell, decimal)] for row in rest)
    rows = [[cell for cell in row if cell.lower() not in MISSING] for row in cells]
    if any(like(above) and not any(map(like, rows)) for like in (_counts_up, _are_years)):
        return True
    if _goes_up(above, decimal) and sum(_goes_up(row, decimal) for row in rows) < len(rows) / 2:
        return True
    heads = [parse(cell, decimal) for cell in above]
    body = [parse(cell, decimal) for row in rows for cell in row]
    largest = max((abs(number) for number in body), default=0.0)
    whole, whole_body = (all(map(float.is_integer, numbers)) for numbers in (heads, body))
    return max(map(abs, heads)) > largest or whole != whole_body


def _numbers_columns(above: list[str], rest: Sequence[list[str]]) -> bool:
    """Tell whether a line of numbers alone is a header: 0, 1, 2 and so on, or years that go up."""
    if len(above) < _MANY or not (_counts_up(above) or _are_years(above)):
        return False
    alike = _are_years if _are_years(above) else _counts_up
    starts = int(above[0]) in (0, 1) or (alike is _are_years and _goes_up(above, "."))
    return starts and not any(alike([cell.strip() for cell in row]) for row in rest)


def _are_years(cells: list[str]) -> bool:
    return all(map(_YEAR.fullmatch, cells))


def _counts_up(cells: list[str]) -> bool:
    """Tell whether cells are 1990, 1991, 1992 or the like."""
    if len(cells) < 3 or not all(map(_WHOLE.fullmatch, cells)):
        return False
    return all(int(after) == int(before) + 1 for before, after in pairwise(cells))


def _goes_up(cells: list[str], decimal: str) -> bool:
    numbers = [parse(cell, decimal) for cell in cells]
    return len(numbers) >= _MANY and all(before < after for before, after in pairwise(numbers))


def find_column(asked: Column, header: Sequence[str] | None, width: int, option: str) -> int:
    """Return the position of a column given by name or position."""
    if header is not None and asked in header:
        return list(header).index(str(asked))
    place = int(asked) if str(asked).isdecimal() else -1
    if not 0 <= place < width:
        known = f"the columns are {', '.join(header)[:80]}" if header else "there is no header"
        places = f"positions go from 0 to {width - 1}"
        raise InputError(f"{option} {asked} is not a column: {known}; {places}")
    return place


def long_places(options: ReadOptions, header: Header, width: int, advice: str) -> list[int]:
    """Return the places of row, column and, if there is one, value of a long table."""
    check_drop(options.drop, "a long table")
    wanted = range(min(width, 3)) if isinstance(options.long, bool) else options.long
    places = [find_column(column, header, width, "--long-columns") for column in wanted]
    if len(places) not in (2, 3):
        remedy = f"{advice}--long-columns row,column,value"
        raise InputError(f"a long table has columns for row, column and value{remedy}")
    return places


def check_drop(drop: Sequence[Column], what: str) -> None:
    """Refuse to leave out columns of what has none to leave out."""
    if drop:
        raise InputError(f"{what} has no columns to leave out: omit --drop")


def is_number(cell: str, decimal: str = ".") -> bool:
    """Return True for a cell that is a number or missing."""
    try:
        parse(cell, decimal)
    except ValueError:
        return False
    return True


def parse(cell: str, decimal: str) -> float:
    """Return the number in a cell, NaN where it is missing."""
    text = cell.strip()
    if text.lower() in MISSING:
        return np.nan
    if "_" in text:
        raise ValueError(cell)
    return float(text if decimal == "." else text.replace(decimal, "."))


def append_numbers(values: array[float], cells: Sequence[str], decimal: str, tables: bool) -> bool:
    """Add numbers to an array, or tell that some cell is none, or, in tables, may be a code."""
    before = len(values)
    parts = [cells[first : first + _JOINED] for first in range(0, len(cells), _JOINED)]
    if tables and any(map(hold_code, parts)):
        return False
    # Python reads 1_000 as a thousand; tables do not.
    if decimal == "." and not any("_" in "".join(part) for part in parts):
        try:
            values.extend(map(float, cells))
            return True
        except ValueError:
            del values[before:]
    try:
        values.extend([parse(cell, decimal) for cell in cells])
    except ValueError:
        return False
    return True
