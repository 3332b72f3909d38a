"""Arrays, sparse matrices and Parquet tables from files."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ccot.io.layout import Column, check_drop, find_column
from ccot.io.long import collect_long
from ccot.io.market import parse_market
from ccot.io.matrix import InputError, NamedMatrix, check_unfolded, named_matrix
from ccot.io.npy import map_array, read_header
from ccot.io.unfold import unfolded


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
            check_unfolded(sum(member.file_size for member in archive.infolist()), path)
            for member in archive.infolist():
                with archive.open(member) as stream:
                    read_header(stream, member.file_size)
        if "format.npy" in names:
            found = sp.load_npz(path)
            check_unfolded(8 * found.shape[0], path)
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
) -> NamedMatrix:
    """Read a Parquet table, part by part.

    Parameters
    ----------
    path : pathlib.Path
        The file.
    index_col, drop, long, unlisted
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
            return _read_long(file, schema.names, long, unlisted)
        columns, index = numeric_columns(schema, index_col, drop)
        check_unfolded(8 * file.metadata.num_rows * len(columns), path)
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
    with damage_explained(path, "Parquet"), pq.ParquetFile(path) as file:
        yield file


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
                f"column {name[:40]!r} is of type {kind}, not a number: leave it out by "
                "--drop, or name it by --index-col"
            )
    return columns, index


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
    names: list[Any] = []
    first = 0
    for batch in file.iter_batches(batch_size=4096):
        for place, name in enumerate(columns):
            cells = batch.column(name).cast("float64", safe=False)
            values[first : first + len(batch), place] = cells.to_numpy(zero_copy_only=False)
        if index is not None:
            names += batch.column(index).to_pylist()
        first += len(batch)
    if first != len(values):
        raise InputError(f"{first} rows were found where {len(values)} are announced")
    how = "Parquet, " + ("no row names" if index is None else f"row names from column {index!r}")
    return named_matrix(values, None if index is None else names, columns, how)


def _read_long(
    file: Any, header: Sequence[str], asked: bool | Sequence[Column], unlisted: str
) -> NamedMatrix:
    wanted = list(range(min(len(header), 3))) if isinstance(asked, bool) else list(asked)
    places = [find_column(column, header, len(header), "--long-columns") for column in wanted]
    if len(places) not in (2, 3):
        raise InputError(
            "a long table has a row, a column and a value: pass --long-columns row,column,value"
        )
    names = [header[place] for place in places]
    if len(names) == 3 and not _is_numeric(file.schema_arrow.field(names[2]).type):
        raise InputError(f"column {names[2]!r} is no number: pass --long-columns row,column,value")

    def triples() -> Iterator[tuple[str, str, float]]:
        for batch in file.iter_batches(columns=names):
            rows, columns = (map(str, batch.column(name).to_pylist()) for name in names[:2])
            values = np.ones(len(batch))
            if len(names) == 3:
                cells = batch.column(names[2]).cast("float64", safe=False)
                values = cells.to_numpy(zero_copy_only=False)
            yield from zip(rows, columns, values.tolist(), strict=True)

    return collect_long(triples(), counted=len(names) == 2, unlisted=unlisted)
