"""Parquet tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ccot.io.isolated.client import FilledArray, IsolatedReader
from ccot.io.layout import Column, Layout, TextOptions, check_drop, find_column
from ccot.io.long import collect_long
from ccot.io.matrix import (
    BoundedTexts,
    InputError,
    NamedMatrix,
    check_held,
    check_unfolded,
    named_matrix,
    unique_names,
)
from ccot.io.mixed import refuse_types, settle
from ccot.io.table import Table

# Bytes of a short text in a table, and of a name until it is in a tuple.
_TEXT_BYTES, _NAME_BYTES = 16, 240
# Bytes that Arrow may take for pages, and about as many as a column takes.
_ARROW_BYTES, _PAGE_BYTES, _BUFFER_BYTES = 48 << 20, 4 << 20, 96 << 10
# Bytes of memory for every byte of a file, most of which may describe very many columns.
_DESCRIBED = 5
# Bytes of a cell of a long table: two places and a value.
_LONG_BYTES = 24


class ParquetTable:
    """A Parquet file, read by another process.

    Parameters
    ----------
    path : pathlib.Path
        The file.
    reader : IsolatedReader, optional
        The process, where there is one already.

    Attributes
    ----------
    names : list of str
        The columns.
    n_rows : int
        How many rows there are.
    group_rows : list of int
        How many there are in each row group.
    """

    def __init__(self, path: Path, reader: IsolatedReader | None = None) -> None:
        self.path, self.reader = path, reader or parquet_reader()
        self._described = _DESCRIBED * path.stat().st_size
        about = self.reader.open(path, self._described)
        check_unfolded(about["unfolded"], path)
        self.names: list[str] = about["names"]
        self.n_rows: int = about["n_rows"]
        self.group_rows: list[int] = about["group_rows"]
        if min([self.n_rows, *self.group_rows]) < 0 or sum(self.group_rows) != self.n_rows:
            raise InputError(f"{path} is no readable Parquet file (its numbers of rows contradict "
                             "each other): write or download it again")  # fmt: skip
        self.types = dict(zip(self.names, about["types"], strict=True))
        self._kinds = dict(zip(self.names, about["kinds"], strict=True))
        self._kept_index = about["index"]

    def is_numeric(self, name: str) -> bool:
        """Tell whether a column holds numbers."""
        return self._kinds[name] == "number"

    def matrix_columns(
        self, index_col: Column | bool | None = None, drop: Sequence[Column] = ()
    ) -> tuple[list[str], str | None]:
        """Return the columns that make up the matrix, and that of row names."""
        unique_names(self.names, "columns")
        index = self.index_column(index_col)
        places = (find_column(one, self.names, len(self.names), "--drop") for one in drop)
        dropped = {self.names[place] for place in places}
        index = None if index in dropped else index
        columns = [name for name in self.names if name != index and name not in dropped]
        for name in columns:
            if not self.is_numeric(name):
                raise InputError(
                    f"column {name[:40]!r} is of type {self.types[name]}, not a number: leave it "
                    "out by --drop, or name it by --index-col"
                )
        return columns, index

    def index_column(self, asked: Column | bool | None) -> str | None:
        """Return the one asked for, that of pandas, or a first one of text."""
        if asked is False:
            return None
        if asked is not None:
            return self.names[find_column(asked, self.names, len(self.names), "--index-col")]
        kept = self._kept_index
        if len(kept) == 1 and isinstance(kept[0], str):
            return kept[0]
        return None if not self.names or self.is_numeric(self.names[0]) else self.names[0]

    def read(self, columns: Sequence[str], group: int | None = None) -> np.ndarray:
        """Return numeric columns, of one row group or of all."""
        n_rows = self.n_rows if group is None else self.group_rows[group]
        groups = None if group is None else [group]
        n_bytes = 8 * n_rows * len(columns)
        check_unfolded(n_bytes, self.path)
        values = np.empty((n_rows, len(columns)))
        step = self._columns_at_once()
        for first in range(0, len(columns), step):
            part = FilledArray(values[:, first : first + step])
            names = list(columns[first : first + step])
            for _, (block,) in self._ask(n_bytes, numbers=names, groups=groups):
                part.put(block)
            part.whole()
        return values

    def _columns_at_once(self) -> int:
        """Return how many columns Arrow may read together: it holds pages of all of them."""
        return _ARROW_BYTES // (_BUFFER_BYTES + min(_PAGE_BYTES, 24 * max(self.group_rows)))

    def words(self, name: str) -> np.ndarray:
        """Return a column of texts, None where there is none."""
        n_bytes = self.n_rows * _TEXT_BYTES
        check_unfolded(n_bytes, self.path)
        texts = BoundedTexts(max(n_bytes, self.path.stat().st_size))
        parts = [np.empty(0, dtype=object)]
        for message, (_, codes) in self._ask(n_bytes, texts=[name]):
            known = np.array(list(texts.shared(message["texts"][0])), dtype=object)
            known[known == "None"] = None
            parts.append(known[codes])
        return np.concatenate(parts)

    def holds_cells(self, name: str) -> bool:
        """Return True if a column holds numbers, texts or dates."""
        return self._kinds[name] != "other"

    def row_names(self, index: str, n_columns: int) -> list[str]:
        """Return the row names, of a table with so many columns beside them."""
        n_bytes = self.n_rows * (8 * n_columns + _TEXT_BYTES)
        check_unfolded(n_bytes, self.path)
        size = max(n_bytes, self.path.stat().st_size)
        held = self.n_rows * (8 * n_columns + _NAME_BYTES)
        check_held(
            held,
            size,
            f"a table of {self.n_rows} row names",
            "leave the names out by --drop",
        )
        self._check_text(index)
        texts, names = BoundedTexts(size), []
        for message, (_, codes) in self._ask(held, texts=[index]):
            known = texts.shared(message["texts"][0])
            names += [known[code] for code in codes.tolist()]
        return list(unique_names(names, "rows") or ())

    def triples(self, columns: Sequence[str], n_bytes: int) -> Iterator[tuple[str, str, float]]:
        """Yield the cells of a long table: row, column and value, which is 1 if it is not there."""
        named, value = list(columns[:2]), list(columns[2:])
        for name in named:
            self._check_text(name)
        texts = BoundedTexts(max(n_bytes, self.path.stat().st_size))
        for message, (values, *codes) in self._ask(4 * n_bytes, numbers=value, texts=named):
            known = map(texts.shared, message["texts"])
            cells = (map(one.__getitem__, code.tolist())
                     for one, code in zip(known, codes, strict=True))  # fmt: skip
            counts = values[:, 0] if value else np.ones(len(values))
            yield from zip(*cells, counts.tolist(), strict=True)

    def _ask(self, n_bytes: int, **question: Any) -> Iterator[tuple[dict[str, Any], list]]:
        return self.reader.read(self.path, n_bytes + self._described, **question)

    def _check_text(self, name: str) -> None:
        if self._kinds[name] == "other":
            raise InputError(
                f"column {name[:40]!r} is of type {self.types[name]}, neither text nor numbers: "
                "leave it out by --drop, or name another --index-col"
            )


def parquet_reader() -> IsolatedReader:
    """Return a process that reads Parquet files, or say what is not installed."""
    if find_spec("pyarrow") is None:
        raise ImportError(
            "Parquet files need pyarrow, which is not installed: pip install 'ccot[io]', or pass "
            "a CSV file"
        )
    return IsolatedReader("parquet", "Parquet file")


def read_parquet(
    path: Path,
    *,
    index_col: Column | bool | None = None,
    drop: Sequence[Column] = (),
    long: bool | Sequence[Column] = False,
    unlisted: str = "zero",
    aggregate: str | None = None,
) -> NamedMatrix:
    """Read a Parquet table."""
    table = ParquetTable(path)
    if long is not False:
        check_drop(drop, "a long table")
        return _read_long(table, _long_columns(table, long), unlisted, aggregate)
    columns, index = table.matrix_columns(index_col, drop)
    if not table.n_rows * len(columns):
        raise InputError(f"the matrix is empty ({table.n_rows} x {len(columns)}): pass data")
    names = None if index is None else table.row_names(index, len(columns))
    values = table.read(columns)
    how = "no row names" if index is None else f"row names from column {index!r}"
    return named_matrix(values, names, columns, f"Parquet, {how}")


def _long_columns(table: ParquetTable, asked: bool | Sequence[Column]) -> list[str]:
    """Return the columns of rows, columns and, where there is one, values."""
    header = table.names
    wanted = list(range(min(len(header), 3))) if isinstance(asked, bool) else list(asked)
    places = [find_column(column, header, len(header), "--long-columns") for column in wanted]
    if len(places) not in (2, 3):
        raise InputError(
            "a long table has a row, a column and a value: pass --long-columns row,column,value"
        )
    names = [header[place] for place in places]
    if len(names) == 3 and not table.is_numeric(names[2]):
        raise InputError(f"column {names[2]!r} is no number: pass --long-columns row,column,value")
    return names


def _read_long(
    table: ParquetTable, columns: list[str], unlisted: str, aggregate: str | None
) -> NamedMatrix:
    n_bytes = _LONG_BYTES * table.n_rows
    check_unfolded(n_bytes, table.path)
    size = max(table.path.stat().st_size, n_bytes)
    triples = table.triples(columns, n_bytes)
    return collect_long(
        triples,
        counted=len(columns) == 2,
        unlisted=unlisted,
        aggregate=aggregate,
        size=lambda: size,
    )


def _cells(table: ParquetTable, name: str) -> np.ndarray:
    """Return a column of texts, or of dates where the file says so."""
    words = table.words(name)
    if not table.types[name].startswith(("timestamp", "date")):
        return words
    return np.array(["NaT" if word is None else word[:26] for word in words], "datetime64[us]")


def read_parquet_table(path: Path, options: TextOptions) -> NamedMatrix | Table:
    """Return a Parquet file as a matrix if all columns hold numbers, else as a table."""
    table = ParquetTable(path)
    names = list(unique_names(table.names, "columns") or ())
    dropped = frozenset(find_column(one, names, len(names), "--drop") for one in options.drop)
    index = table.index_column(options.index_col)
    # A column that a model knows holds values.
    known = options.index_col is None and index in options.known
    place = None if index is None or known else names.index(index)
    place = None if place in dropped else place
    asked = options.index_col is not None
    layout = Layout("", ".", tuple(names), place, len(names), dropped, asked, source="Parquet")
    kept = [name for number, name in enumerate(names) if number not in layout.removed]
    refuse_types({name: table.types[name] for name in kept if not table.holds_cells(name)})
    numbers = [name for name in kept if table.is_numeric(name)]
    matrix = table.read(numbers) if numbers else np.empty((table.n_rows, 0))
    columns = dict(zip(numbers, matrix.T, strict=True))
    values = {name: columns[name] if name in columns else _cells(table, name) for name in kept}
    row_names = None if place is None else list(map(str, table.words(names[place])))
    found = settle(values, row_names, layout, options, ())
    if isinstance(found, NamedMatrix):
        return found
    kinds = {name: "yes/no" for name in numbers if table.types[name] == "bool"}
    return replace(found, kinds=kinds)
