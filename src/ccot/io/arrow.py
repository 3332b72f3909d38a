"""Tables of Feather files, whose types say what columns hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ccot.io.binary import damage_explained
from ccot.io.layout import Layout, TextOptions, find_column
from ccot.io.matrix import NamedMatrix, check_unfolded, unique_names
from ccot.io.mixed import refuse_types, settle
from ccot.io.table import Table


def read_feather(path: Path, options: TextOptions) -> NamedMatrix | Table:
    """Return a Feather (Arrow) file as a matrix if all columns hold numbers, else as a table."""
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
        return _as_table(table, options)


def _as_table(table: Any, options: TextOptions) -> NamedMatrix | Table:
    names = list(unique_names(table.column_names, "columns") or ())
    layout = _layout(table.schema, names, options)
    kept = [name for place, name in enumerate(names) if place not in layout.removed]
    types = {name: table.schema.field(name).type for name in kept}
    refuse_types({name: str(kind) for name, kind in types.items() if not _is_plain(kind)})
    values: dict[str, np.ndarray] = {}
    kinds: dict[str, str] = {}
    levels: dict[str, tuple[str, ...]] = {}
    for name in kept:
        values[name], kind, order = _column(table.column(name))
        kinds |= {name: kind} if kind else {}
        levels |= {name: order} if order else {}
    row_names = None
    if layout.index is not None:
        row_names = list(map(str, _words(table.column(layout.index))))
    found = settle(values, row_names, layout, options, ())
    if isinstance(found, NamedMatrix):
        return found
    return Table(found.columns, found.row_names, found.notes, kinds, levels)


def _layout(schema: Any, names: list[str], options: TextOptions) -> Layout:
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
            # Categories that a file declares name no rows.
            index = None if hasattr(schema.types[0], "ordered") else 0
    index = None if index in dropped else index
    asked_for = asked is not None
    return Layout("", ".", tuple(names), index, width, dropped, asked_for, source="Feather")


def _is_text(kind: Any) -> bool:
    import pyarrow.types as types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)


def _is_plain(kind: Any) -> bool:
    import pyarrow.types as types

    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal,
             types.is_temporal, types.is_null, _is_text)  # fmt: skip
    return any(test(kind) for test in tests)


def _column(column: Any) -> tuple[np.ndarray, str, tuple[str, ...]]:
    """Return a column's cells, the kind that its type tells, and its levels in order."""
    import pyarrow.types as types

    kind = column.type
    if _is_text(kind):
        if not types.is_dictionary(kind):
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
