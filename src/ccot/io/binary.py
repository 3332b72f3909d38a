"""Arrays, sparse matrices and Parquet tables from files."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ccot.io.bounded_gzip import unfolded
from ccot.io.layout import Column, check_drop, find_column
from ccot.io.long import collect_long
from ccot.io.market import parse_market
from ccot.io.matrix import (
    InputError,
    NamedMatrix,
    check_held,
    check_unfolded,
    named_matrix,
    unique_names,
)
from ccot.io.npy import map_array, read_header
from ccot.io.parquet_pages import check_pages, read_footer

# Bytes that a value takes on its way from any sparse format to float64 in rows.
_SPARSE_BYTES = 24
# Bytes of a short text in a table, and of a name until it is in a tuple.
_TEXT_BYTES, _NAME_BYTES = 16, 240
# Bytes of a cell of a long table: two places and a value.
_LONG_BYTES = 24


@contextmanager
def damage_explained(path: Path, kind: str) -> Iterator[None]:
    """Turn what a damaged file causes in its reader into one message."""
    try:
        yield
    except (InputError, MemoryError, ImportError):
        raise
    except Exception as error:  # readers of damaged files raise whatever they stumble over
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        raise InputError(
            f"{path} is no readable {kind} file ({reason}): write or download it again"
        ) from error


def read_npy(path: Path) -> NamedMatrix:
    """Read an array of NumPy.

    Parameters
    ----------
    path : pathlib.Path
        The file.

    Returns
    -------
    NamedMatrix
        The matrix, without names.
    """
    with damage_explained(path, "NumPy"):
        return named_matrix(map_array(path), None, None, "NumPy array")


def read_npz(path: Path) -> NamedMatrix:
    """Read a sparse matrix of SciPy, or the only array of an archive of NumPy.

    Parameters
    ----------
    path : pathlib.Path
        The file.

    Returns
    -------
    NamedMatrix
        The matrix, without names.
    """
    with damage_explained(path, "NPZ"):
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if sum(member.compress_size for member in archive.infolist()) > path.stat().st_size:
                raise InputError(f"{path} announces more than it holds: download it again")
            size = sum(member.file_size for member in archive.infolist())
            check_unfolded(size, path)
            for member in archive.infolist():
                with archive.open(member) as stream:
                    read_header(stream, member.file_size)
        if "format.npy" in names:
            found = sp.load_npz(path)
            check_unfolded(8 * found.shape[0], path)
            check_held(
                _SPARSE_BYTES * found.data.size, size, f"a sparse matrix of format {found.format}",
                "save it in the format csr",
            )  # fmt: skip
            return named_matrix(found, None, None, "SciPy sparse matrix")
        if len(names) != 1:
            raise InputError(
                f"{path} holds {len(names)} arrays ({', '.join(names)[:60]}): save the matrix "
                "alone, by numpy.save or scipy.sparse.save_npz"
            )
        with np.load(path, allow_pickle=False) as arrays:
            return named_matrix(arrays[arrays.files[0]], None, None, "NumPy array")


def read_matrix_market(path: Path) -> NamedMatrix:
    """Read a Matrix Market file.

    Parameters
    ----------
    path : pathlib.Path
        The file.

    Returns
    -------
    NamedMatrix
        The matrix, without names.
    """
    with damage_explained(path, "Matrix Market"):
        text = unfolded(path).read() if path.suffix == ".gz" else path.read_bytes()
        return named_matrix(parse_market(text, path), None, None, "Matrix Market")


def read_parquet(
    path: Path,
    *,
    index_col: Column | bool | None = None,
    drop: Sequence[Column] = (),
    long: bool | Sequence[Column] = False,
    unlisted: str = "zero",
    aggregate: str | None = None,
) -> NamedMatrix:
    """Read a Parquet table, part by part.

    Parameters
    ----------
    path : pathlib.Path
        The file.
    index_col, drop, long, unlisted, aggregate
        As in :func:`ccot.io.read_matrix`.

    Returns
    -------
    NamedMatrix
        The matrix.
    """
    with open_parquet(path) as file:
        schema = file.schema_arrow
        if long is not False:
            check_drop(drop, "a long table")
            unfolded = _LONG_BYTES * file.metadata.num_rows
            check_unfolded(unfolded, path)
            size = max(path.stat().st_size, unfolded)
            names = _long_columns(schema, long)
            check_pages(file, path, names)
            return _read_long(file, names, unlisted, aggregate, size)
        columns, index = numeric_columns(schema, index_col, drop)
        check_wide(path, file.metadata.num_rows, len(columns), named=index is not None)
        check_pages(file, path, [*columns, *([] if index is None else [index])])
        return _read_wide(file, columns, index)


@contextmanager
def open_parquet(path: Path) -> Iterator[Any]:
    """Open a Parquet file, or say what is not installed; damage is explained until it is closed."""
    try:
        import pyarrow.parquet as pq
    except ImportError as missing:
        raise ImportError(
            "Parquet files need pyarrow, which is not installed: pip install 'ccot[io]', or pass "
            "a CSV file"
        ) from missing
    with damage_explained(path, "Parquet"):
        read_footer(path)  # refuses what would take Arrow too much memory
        about = pq.read_metadata(path)
        groups = (about.row_group(number) for number in range(about.num_row_groups))
        check_unfolded(sum(group.total_byte_size for group in groups), path)
        columns = map(about.schema.column, range(about.num_columns))
        # Texts that a file holds once and refers to many times stay so.
        texts = [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]
        with pq.ParquetFile(path, metadata=about, read_dictionary=texts) as file:
            yield file


def check_wide(path: Path, n_rows: int, n_columns: int, *, named: bool) -> None:
    """Refuse a Parquet table that would unfold to too much, or hardly holds more than names."""
    unfolded = n_rows * (8 * n_columns + (_TEXT_BYTES if named else 0))
    check_unfolded(unfolded, path)
    if named:
        held = n_rows * (8 * n_columns + _NAME_BYTES)
        size = max(unfolded, path.stat().st_size)
        check_held(held, size, f"a table of {n_rows} row names", "leave the names out by --drop")


def row_names_of(file: Any, index: str) -> list[str]:
    """Return the row names of a Parquet table, and refuse the first that is there twice.

    Parameters
    ----------
    file : pyarrow.parquet.ParquetFile
        The table.
    index : str
        Column of row names.

    Returns
    -------
    list of str
        The names.
    """
    names: dict[str, None] = {}
    for batch in file.iter_batches(columns=[index]):
        texts, n_before = _texts(batch.column(0)), len(names)
        names.update(dict.fromkeys(texts))
        if len(names) < n_before + len(texts):
            unique_names([*islice(names, n_before), *texts], "rows")
    return list(names)


def numeric_columns(
    schema: Any, index_col: Column | bool | None = None, drop: Sequence[Column] = ()
) -> tuple[list[str], str | None]:
    """Return the columns of a Parquet table that make up the matrix, and that of row names.

    Parameters
    ----------
    schema : pyarrow.Schema
        The table's.
    index_col, drop
        As in :func:`ccot.io.read_matrix`.

    Returns
    -------
    columns : list of str
        All other columns that are not left out, every one of them numeric.
    index : str or None
        Column of row names.
    """
    index = _parquet_index(schema, index_col)
    places = (find_column(one, schema.names, len(schema.names), "--drop") for one in drop)
    dropped = {schema.names[place] for place in places}
    index = None if index in dropped else index
    columns = [name for name in schema.names if name != index and name not in dropped]
    for name in columns:
        kind = schema.field(name).type
        if not _is_numeric(kind):
            raise InputError(
                f"column {name[:40]!r} is of type {_plain(kind)}, not a number: leave it out by "
                "--drop, or name it by --index-col"
            )
    return columns, index


def _plain(kind: Any) -> Any:
    """Return the type of the texts where a column holds references to them."""
    import pyarrow.types as types

    return kind.value_type if types.is_dictionary(kind) else kind


def _texts(column: Any) -> list[str]:
    """Return a column as text; what is referred to many times is one object."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        return list(map(str, column.to_pylist()))
    codes = column.indices.cast("int64").fill_null(-1).to_numpy()
    used, places = np.unique(codes, return_inverse=True)
    known = column.dictionary.take(pa.array(used[used >= 0])).to_pylist()
    texts = [*(["None"] if -1 in used else []), *map(str, known)]
    return [texts[place] for place in places.tolist()]


def _is_numeric(kind: Any) -> bool:
    import pyarrow.types as types

    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    return any(test(kind) for test in tests)


def _parquet_index(schema: Any, asked: Column | bool | None) -> str | None:
    """Return the column of row names: the one asked for, that of pandas, or a first one of text."""
    if asked is False:
        return None
    if asked is not None:
        return schema.names[find_column(asked, schema.names, len(schema.names), "--index-col")]
    kept = (schema.pandas_metadata or {}).get("index_columns", [])
    if len(kept) == 1 and isinstance(kept[0], str):
        return kept[0]
    return None if not schema.names or _is_numeric(schema.types[0]) else schema.names[0]


def _read_wide(file: Any, columns: list[str], index: str | None) -> NamedMatrix:
    values = np.empty((file.metadata.num_rows, len(columns)))
    if not values.size:
        raise InputError(f"the matrix is empty ({len(values)} x {len(columns)}): pass data")
    first = 0
    for batch in file.iter_batches(batch_size=4096, columns=columns):
        for place, name in enumerate(columns):
            cells = batch.column(name).cast("float64", safe=False)
            values[first : first + len(batch), place] = cells.to_numpy(zero_copy_only=False)
        first += len(batch)
    if first != len(values):
        raise InputError(f"{first} rows were found where {len(values)} are announced")
    how = "Parquet, " + ("no row names" if index is None else f"row names from column {index!r}")
    names = None if index is None else row_names_of(file, index)
    return named_matrix(values, names, columns, how)


def _long_columns(schema: Any, asked: bool | Sequence[Column]) -> list[str]:
    """Return the columns of rows, columns and, where there is one, values."""
    header = schema.names
    wanted = list(range(min(len(header), 3))) if isinstance(asked, bool) else list(asked)
    places = [find_column(column, header, len(header), "--long-columns") for column in wanted]
    if len(places) not in (2, 3):
        raise InputError(
            "a long table has a row, a column and a value: pass --long-columns row,column,value"
        )
    names = [header[place] for place in places]
    if len(names) == 3 and not _is_numeric(schema.field(names[2]).type):
        raise InputError(f"column {names[2]!r} is no number: pass --long-columns row,column,value")
    return names


def _read_long(
    file: Any, names: list[str], unlisted: str, aggregate: str | None, size: int
) -> NamedMatrix:
    def triples() -> Iterator[tuple[str, str, float]]:
        for batch in file.iter_batches(columns=names):
            rows, columns = (_texts(batch.column(name)) for name in names[:2])
            values = np.ones(len(batch))
            if len(names) == 3:
                cells = batch.column(names[2]).cast("float64", safe=False)
                values = cells.to_numpy(zero_copy_only=False)
            yield from zip(rows, columns, values.tolist(), strict=True)

    return collect_long(
        triples(),
        counted=len(names) == 2,
        unlisted=unlisted,
        aggregate=aggregate,
        size=lambda: size,
    )
