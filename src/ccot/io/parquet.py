"""Tables of Parquet and Feather files, whose types say what columns hold."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ccot.io.binary import check_installed
from ccot.io.isolated.client import FilledArray, IsolatedReader
from ccot.io.isolated.worker import Answer
from ccot.io.layout import Layout, ReadOptions, long_places, place_columns
from ccot.io.long import collect_long
from ccot.io.matrix import (
    BoundedTexts,
    Found,
    InputError,
    NamedMatrix,
    Table,
    check_held,
    check_unfolded,
    named_matrix,
    unfolding_limit,
    unique_names,
)
from ccot.io.mixed import drop_options, refuse_table, settle

# Bytes of a short text in a table, and of a name until it is in a tuple.
_TEXT_BYTES, _NAME_BYTES = 16, 240
# Bytes that Arrow may take for pages, and about as many as a column takes.
_ARROW_BYTES, _PAGE_BYTES, _BUFFER_BYTES = 48 << 20, 4 << 20, 96 << 10
# Bytes of memory for every byte of a file, most of which may describe very many columns.
_DESCRIBED = 5
# Bytes of a cell of a long table: two places and a value.
_LONG_BYTES = 24


class ArrowTable:
    """A Parquet or Feather file, read by another process."""

    def __init__(self, path: Path, reader: IsolatedReader, *, feather: bool = False) -> None:
        self.path, self.reader = path, reader
        size = path.stat().st_size
        # The rows of a Feather file are only known when it is unpacked.
        self._described = unfolding_limit(size) if feather else _DESCRIBED * size
        about = self.reader.open(path, self._described)
        check_unfolded(about["unfolded"], path)
        self.names: list[str] = about["names"]
        self.n_rows: int = about["n_rows"]
        self.group_rows: list[int] = about["group_rows"]
        if min([self.n_rows, *self.group_rows]) < 0 or sum(self.group_rows) != self.n_rows:
            damaged = "not a readable Parquet file (its numbers of rows contradict each other)"
            raise InputError(f"{path} is {damaged}: write or download it again")
        self.types = dict(zip(self.names, about["types"], strict=True))
        # Number, text, date and other, in Feather also category and ordered.
        self.kinds = dict(zip(self.names, about["kinds"], strict=True))
        self.levels = {name: tuple(map(str, one)) for name, one in about["levels"].items()}
        self._index: str | None = about["index"]

    def matrix_columns(self, options: ReadOptions) -> tuple[list[str], str | None]:
        """Return the columns that make up the matrix, all numeric, and that of row names."""
        layout = self.layout(options)
        columns = list(layout.column_names or ())
        if wrong := [name for name in columns if self.kinds[name] != "number"]:
            remedy = "leave it out with --drop or --index-col, or use ccot.io.read_table(path)"
            raise InputError(f"{self.typed(wrong[0])}, not a number: {remedy}")
        return columns, None if layout.index is None else self.names[layout.index]

    def layout(self, options: ReadOptions) -> Layout:
        """Return which columns hold values, and which one row names: that of pandas, or text."""
        unique_names(self.names, "columns")
        name = self._index
        index = None if name is None or name in options.known else self.names.index(name)
        return place_columns(index, tuple(self.names), len(self.names), options)

    def read(self, columns: Sequence[str], group: int | None = None) -> np.ndarray:
        """Return numeric columns, of one row group or of all."""
        n_rows = self.n_rows if group is None else self.group_rows[group]
        groups = None if group is None else [group]
        n_bytes = 8 * n_rows * len(columns)
        check_unfolded(n_bytes, self.path)
        values = np.empty((n_rows, len(columns)))
        # Arrow holds pages of all columns that it reads together.
        pages = _BUFFER_BYTES + min(_PAGE_BYTES, 24 * max(self.group_rows, default=0))
        step = _ARROW_BYTES // pages
        for first in range(0, len(columns), step):
            part = FilledArray(values[:, first : first + step])
            names = list(columns[first : first + step])
            for _, (block,) in self.ask(n_bytes, numbers=names, groups=groups):
                part.put(block)
            part.whole()
        return values

    def cells(self, name: str) -> np.ndarray:
        """Return a column of dates, or of texts."""
        if self.kinds[name] != "date":
            return self.words(name)
        check_unfolded(8 * self.n_rows, self.path)
        moments = FilledArray(np.empty(self.n_rows, np.int64))
        for _, (_, part) in self.ask(8 * self.n_rows, dates=[name]):
            moments.put(part)
        return moments.whole().view("datetime64[us]")

    def words(self, name: str, size: int = 0, held: int = 0) -> np.ndarray:
        """Return a column as texts, None where there is none; see :meth:`row_names` for bytes."""
        n_bytes = self.n_rows * _TEXT_BYTES
        check_unfolded(n_bytes, self.path)
        texts = BoundedTexts(max(n_bytes, size, self.path.stat().st_size))
        parts = [np.empty(0, dtype=object)]
        for message, (_, codes) in self.ask(max(n_bytes, held), texts=[name]):
            known = texts.shared(message["texts"][0])
            parts.append(np.array(known, dtype=object)[codes])
        return np.concatenate(parts)

    def row_names(self, index: str, n_columns: int) -> list[str]:
        """Return the row names, of a table with so many columns beside them."""
        n_bytes = self.n_rows * (8 * n_columns + _TEXT_BYTES)
        check_unfolded(n_bytes, self.path)
        held = self.n_rows * (8 * n_columns + _NAME_BYTES)
        size, what = max(n_bytes, self.path.stat().st_size), f"a table of {self.n_rows} row names"
        check_held(held, size, what, "leave the names out with --drop")
        return list(unique_names(self.words(self.checked(index), n_bytes, held), "rows") or ())

    def ask(self, n_bytes: int, **question: Any) -> Iterator[Answer]:
        """Yield the answers to a question, a few rows each; all of them may take so much."""
        return self.reader.read(self.path, n_bytes + self._described, **question)

    def checked(self, name: str) -> str:
        """Return the name of a column, or refuse it if it holds neither text nor numbers."""
        if self.kinds[name] == "other":
            remedy = "leave it out with --drop, or name another --index-col"
            raise InputError(f"{self.typed(name)}, neither text nor numbers: {remedy}")
        return name

    def typed(self, name: str) -> str:
        """Return a column's name and type in words."""
        return f"column {name[:40]!r} is of type {self.types[name]}"


def parquet_reader(what: str = "Parquet") -> IsolatedReader:
    """Return a process that reads Parquet or Feather files, or say what is not installed."""
    check_installed("pyarrow", f"{what} files", "io", ", or pass a CSV file")
    return IsolatedReader("parquet", f"{what} file")


def read_arrow(path: Path, options: ReadOptions, what: str) -> Found:
    """Read a Parquet or Feather file: a long table, a matrix, or a table if words are welcome."""
    table = ArrowTable(path, parquet_reader(what), feather=what == "Feather")
    if options.long is not False:
        return _read_long(table, options)
    if options.tables or what == "Feather":
        found = _as_table(table, replace(options, source=what))
        if isinstance(found, Table) and not options.tables:
            refuse_table(found)
        return found
    columns, index = table.matrix_columns(options)
    names = None
    if index is not None and table.n_rows * len(columns):
        names = table.row_names(index, len(columns))
    how = "no row names" if index is None else f"row names from column {index!r}"
    return named_matrix(table.read(columns), names, columns, f"{what}, {how}")


def parquet_parts(path: Path, options: ReadOptions) -> Iterator[Table]:
    """Yield a table of a Parquet file, some rows at a time."""
    table = ArrowTable(path, parquet_reader())
    kept = [table.checked(name) for name in table.layout(options).column_names or ()]
    asked = {f"{k}s": [n for n in kept if table.kinds[n] == k] for k in ("number", "text", "date")}
    names, n_texts = [name for one in asked.values() for name in one], len(asked["texts"])
    n_bytes = max(table.group_rows, default=0) * _TEXT_BYTES * len(kept)
    check_unfolded(n_bytes, path)
    for message, (matrix, *others) in table.ask(n_bytes, **asked):
        codes, moments = others[:n_texts], [one.view("datetime64[us]") for one in others[n_texts:]]
        known = (np.array(texts, dtype=object) for texts in message["texts"])
        words = [texts[code] for texts, code in zip(known, codes, strict=True)]
        columns = dict(zip(names, [*matrix.T, *words, *moments], strict=True))
        yield Table({name: columns[name] for name in kept})


def _read_long(table: ArrowTable, options: ReadOptions) -> Found:
    header = tuple(table.names)
    places = long_places(options, header, len(header), ": pass ")
    named = [header[place] for place in places[:2]]
    value = header[places[2]] if len(places) == 3 else None
    if value is not None and table.kinds[value] != "number":
        raise InputError(f"column {value!r} is not numeric: pass --long-columns row,column,value")
    n_bytes = _LONG_BYTES * table.n_rows
    check_unfolded(n_bytes, table.path)
    size = max(table.path.stat().st_size, n_bytes)
    rows, columns = (map(str, table.words(table.checked(name), n_bytes)) for name in named)
    values = np.ones(table.n_rows) if value is None else table.read([value])[:, 0]
    cells = zip(rows, columns, values.tolist(), strict=True)
    return collect_long(cells, options, counted=value is None, size=lambda: size)


def _as_table(table: ArrowTable, options: ReadOptions) -> Found:
    """Return a matrix if all columns hold numbers, else a table."""
    layout = table.layout(options)
    kept = layout.column_names or ()
    if others := [name for name in kept if table.kinds[name] == "other"]:
        remedy = f"leave {len(others)} out with {drop_options(others)}"
        raise InputError(f"{table.typed(others[0])}, which a table cannot hold: {remedy}")
    numbers = [name for name in kept if table.kinds[name] == "number"]
    columns = dict(zip(numbers, table.read(numbers).T, strict=True))
    values = {name: columns[name] if name in columns else table.cells(name) for name in kept}
    index = layout.index
    names = None if index is None else list(map(str, table.words(table.names[index])))
    found = settle(values, names, layout)
    if isinstance(found, NamedMatrix):
        return found
    # What only Feather declares; dates of Parquet are told by their dtype.
    declared = ("date", "category", "ordered") if options.source == "Feather" else ()
    kinds = {name: table.kinds[name] for name in kept if table.kinds[name] in declared}
    kinds |= {name: "yes/no" for name in numbers if table.types[name] == "bool"}
    levels = {name: table.levels[name] for name in kept if name in table.levels}
    return replace(found, kinds=kinds, levels=levels)
