"""Tables of Parquet and Feather files, whose types say what columns hold."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import numpy as np

from ccot.io.binary import damage_explained, open_parquet
from ccot.io.layout import Layout, TextOptions, find_column
from ccot.io.matrix import InputError, NamedMatrix, check_unfolded, unique_names
from ccot.io.mixed import settle
from ccot.io.parquet_pages import check_pages
from ccot.io.table import Table

# Bytes of a short text in a table.
_TEXT_BYTES = 16


def read_parquet_table(path: Path, options: TextOptions) -> NamedMatrix | Table:
    """Read a Parquet file whose columns may hold words or dates.

    Parameters
    ----------
    path : pathlib.Path
        The file.
    options : TextOptions
        Columns of row names, to leave out, and known to a model.

    Returns
    -------
    NamedMatrix or Table
        The matrix, if all columns hold numbers; else the table.
    """
    with open_parquet(path) as file:
        check_unfolded(_TEXT_BYTES * file.metadata.num_rows * len(file.schema_arrow.names), path)
        check_pages(file, path, file.schema_arrow.names)
        return _as_table(file.read(), options, "Parquet")


def read_feather(path: Path, options: TextOptions) -> NamedMatrix | Table:
    """Read a Feather (Arrow) file; parameters as in :func:`read_parquet_table`."""
    try:
        import pyarrow as pa
    except ImportError as missing:
        raise ImportError(
            "Feather files need pyarrow, which is not installed: pip install 'ccot[io]', or pass "
            "a CSV file"
        ) from missing
    with damage_explained(path, "Feather"), pa.memory_map(str(path)) as mapped:
        reader = pa.ipc.open_file(mapped)
        table = reader.read_all()
        table.validate(full=True)
        check_unfolded(table.nbytes, path)
        return _as_table(table, options, "Feather")


def _as_table(table: Any, options: TextOptions, what: str) -> NamedMatrix | Table:
    names = list(unique_names(table.column_names, "columns") or ())
    layout = _layout(table.schema, names, options, what)
    kept = [name for place, name in enumerate(names) if place not in layout.removed]
    _refuse_types(table.schema, kept)
    values: dict[str, np.ndarray] = {}
    kinds: dict[str, str] = {}
    levels: dict[str, tuple[str, ...]] = {}
    for name in kept:
        values[name], kind, order = _column(table.column(name), what == "Feather")
        kinds |= {name: kind} if kind else {}
        levels |= {name: order} if order else {}
    row_names = None
    if layout.index is not None:
        row_names = list(map(str, _words(table.column(layout.index))))
    found = settle(values, row_names, layout, options, ())
    if isinstance(found, NamedMatrix):
        return found
    return Table(found.columns, found.row_names, found.notes, kinds, levels)


def _layout(schema: Any, names: list[str], options: TextOptions, what: str) -> Layout:
    width, asked = len(names), options.index_col
    dropped = frozenset(find_column(one, names, width, "--drop") for one in options.drop)
    index = None
    if asked is not None and asked is not False:
        index = find_column(asked, names, width, "--index-col")
    elif asked is None:
        kept = (schema.pandas_metadata or {}).get("index_columns", [])
        if len(kept) == 1 and kept[0] in names:
            index = names.index(kept[0])
        elif names and _is_text(schema.types[0]) and names[0] not in options.known:
            # Categories that a file declares name no rows; Parquet's texts are all read as such.
            index = 0 if what == "Parquet" or not hasattr(schema.types[0], "ordered") else None
    index = None if index in dropped else index
    asked_for = asked is not None
    return Layout("", ".", tuple(names), index, width, dropped, asked_for, source=what)


def _refuse_types(schema: Any, names: list[str]) -> None:
    """Name all columns at once that hold neither numbers, words nor dates."""
    wrong = [name for name in names if not _is_plain(schema.field(name).type)]
    if wrong:
        drop = " ".join(f"--drop {shlex.quote(name[:40])}" for name in wrong)
        raise InputError(
            f"column {wrong[0][:40]!r} is of type {str(schema.field(wrong[0]).type)[:40]}, which "
            f"is no cell of a table: leave {len(wrong)} out by {drop}"
        )


def _is_text(kind: Any) -> bool:
    import pyarrow.types as types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)


def _is_plain(kind: Any) -> bool:
    import pyarrow.types as types

    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal,
             types.is_temporal, types.is_null, _is_text)  # fmt: skip
    return any(test(kind) for test in tests)


def _column(column: Any, typed: bool) -> tuple[np.ndarray, str, tuple[str, ...]]:
    """Return a column's cells, the kind that its type tells, and its levels in order."""
    import pyarrow.types as types

    kind = column.type
    if _is_text(kind):
        if not typed or not types.is_dictionary(kind):
            return _words(column), "", ()
        if not kind.ordered:
            return _words(column), "category", ()
        levels = column.unify_dictionaries().chunk(0).dictionary.to_pylist()
        return _words(column), "ordered", tuple(levels)
    if types.is_timestamp(kind) or types.is_date(kind):
        return column.to_numpy().astype("datetime64[us]"), "date", ()
    if types.is_temporal(kind):
        return _words(column), "", ()
    numbers = column.cast("float64", safe=False).to_numpy(zero_copy_only=False)
    return np.array(numbers, np.float64), "yes/no" if types.is_boolean(kind) else "", ()


def _words(column: Any) -> np.ndarray:
    """Return texts, or None; one that a file holds once and refers to often is one object."""
    import pyarrow as pa

    parts = [np.empty(0, dtype=object)]
    for chunk in column.chunks:
        coded = chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode()
        codes = coded.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)
        used, places = np.unique(codes, return_inverse=True)
        known = np.empty(len(used), dtype=object)
        texts = coded.dictionary.take(pa.array(used[used >= 0])).to_pylist()
        known[used >= 0] = [text if text is None else str(text) for text in texts]
        parts.append(known[places])
    return np.concatenate(parts)
