"""Matrices and tables of every format, told by the content of the file."""

import io
import os
import re
import shutil
import sys
import tempfile
import tomllib
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

from ccot.io.binary import read_h5ad, read_matrix_market, read_npy, read_npz, unfolded
from ccot.io.layout import Column, ReadOptions, check_drop
from ccot.io.matrix import Found, InputError, NamedMatrix, Table, check_regular
from ccot.io.mixed import as_table
from ccot.io.parquet import parquet_parts, read_arrow
from ccot.io.rowwise import json_rows, sheet_rows, sqlite_rows
from ccot.io.text import read_rows, read_text, text_parts

_FORMATS = tomllib.loads((resources.files("ccot.io") / "formats.toml").read_text(encoding="utf-8"))
_MAGIC, _NAMES, _OTHERS = _FORMATS["magic"], _FORMATS["names"], _FORMATS["others"]
_JSON_NAMES = (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz")
_JSON_STARTS = re.compile(rb'(\xef\xbb\xbf)?\s*(\[\s*)?\{\s*"')
_START = 64
_LINES_BETWEEN_REPORTS = 500
Tell = Callable[[float], None]


def read_matrix(
    source: str | os.PathLike[str],
    *,
    index_col: Column | bool | None = None,
    drop: Sequence[Column] = (),
    delimiter: str | None = None,
    header: bool | None = None,
    decimal: str | None = None,
    encoding: str = "utf-8-sig",
    long: bool | Sequence[Column] = False,
    unlisted: str = "zero",
    aggregate: str | None = None,
    layer: str | None = None,
    sheet: str | None = None,
    table: str | None = None,
    progress: Callable[[float], None] | None = None,
) -> NamedMatrix:
    r"""Read a matrix from a file of any known format.

    The content tells the format: text (CSV, TSV, also gzipped), Parquet, Feather, ``.xlsx``, JSON
    records, SQLite, ``.npy``, ``.npz`` (SciPy sparse, or one array), Matrix Market, ``.h5ad``.

    Parameters
    ----------
    source : path-like, or "-" for the standard input
    index_col : str, int, False or None, default=None
        Column of row names, by name or position from 0; False: none; None: detected.
    drop : sequence of str or int, optional, columns to leave out, by name or position from 0
    delimiter, decimal : str or None, default=None
        Character between cells, and decimal point, of a text table; None: detected.
    header : bool or None, default=None
        Whether a text table begins with the names of its columns; None: detected.
    encoding : str, default="utf-8-sig", of a text table
    long : bool or sequence of str or int, default=False
        The input is a long table, whose first three columns, or those named, are row, column and
        value. With two columns, pairs are counted.
    unlisted : {"zero", "missing"}, default="zero", cells that a long table does not list
    aggregate : {"sum", "mean", "count", "last"}, optional
        What to do with cells that a long table lists more than once. None: non-negative whole
        numbers are summed if unlisted cells are zero; other values are averaged.
    layer, sheet, table : str, optional
        Layer of an ``.h5ad`` file; sheet of an Excel file (the first one if none is named); table
        of an SQLite database, if there are several.
    progress : callable, optional, called with the share of a text file that was read

    Returns
    -------
    NamedMatrix, with a description of how the file was read, and notes on doubtful points

    Raises
    ------
    InputError
        If the input is not a matrix; the message says where and what to do.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from ccot.io import read_matrix
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "genes.csv")
    ...     _ = path.write_text("gene,s1,s2\nABC,1.5,2\nXYZ,0,4\n")
    ...     table = read_matrix(path)
    >>> table.shape, table.row_names, table.column_names
    ((2, 2), ('ABC', 'XYZ'), ('s1', 's2'))
    >>> table.how
    "text, delimiter ',', with a header, row names from column 'gene'"
    """
    options = ReadOptions(
        delimiter, header, index_col, decimal, drop, encoding, long, unlisted, aggregate, layer,
        sheet, table,
    )  # fmt: skip
    found = read_any(source, options, progress)
    assert isinstance(found, NamedMatrix)
    return found


def read_table(
    source: str | os.PathLike[str],
    *,
    index_col: Column | bool | None = None,
    drop: Sequence[Column] = (),
    as_words: Collection[str] = (),
    delimiter: str | None = None,
    header: bool | None = None,
    decimal: str | None = None,
    encoding: str = "utf-8-sig",
    sheet: str | None = None,
    table: str | None = None,
    progress: Callable[[float], None] | None = None,
) -> Table:
    r"""Read a table whose columns may hold numbers, words or dates.

    A column is read as numbers if all its cells are plain numbers or missing, and as text
    otherwise. The estimator recognises the kinds of columns of text.

    Parameters
    ----------
    source, index_col, drop, delimiter, header, decimal, encoding, sheet, table, progress
        As in :func:`read_matrix`. Words that occur twice are not used as row names.
    as_words : collection of str
        Columns to keep as text although nearly all of their cells are numbers. In other columns, a
        few words among many numbers become missing values, and a note says so.

    Returns
    -------
    Table, whose first note says how the file was read

    Raises
    ------
    InputError
        If the input is not a table; the message says where and what to do.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from ccot.io import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "penguins.csv")
    ...     _ = path.write_text("sex,mass,price\nmale,3750,$5\nfemale,,$7\nmale,3800,$6\n")
    ...     table = read_table(path)
    >>> table.columns["mass"], table.columns["price"]
    (array([3750.,   nan, 3800.]), array(['$5', '$7', '$6'], dtype=object))
    >>> table.notes[1]
    "column 'sex' cannot name the rows: 2 cells are 'male'; it is used as a column, and ..."
    """
    options = ReadOptions(
        delimiter, header, index_col, decimal, drop, encoding, sheet=sheet, table=table,
        as_words=as_words, tables=True,
    )  # fmt: skip
    return as_table(read_any(source, options, progress))


def read_any(
    source: str | os.PathLike[str], options: ReadOptions, progress: Tell | None = None
) -> Found:
    """Read a matrix, or a table where ``options`` welcome words; see :func:`read_matrix`."""
    tell = progress or (lambda share: None)
    if str(source) != "-":
        return _read_file(Path(source), str(source), options, tell)
    if sys.stdin is None:
        raise InputError("the standard input is closed: pipe the data into it, or pass a file")
    stream = io.BufferedReader(sys.stdin.buffer)  # type: ignore[arg-type]
    if _kind(stream.peek(_START)[:_START]) is None:
        return _read_lines(stream, "-", options, lambda: None)
    # The size of other formats must be known: they go through a file.
    with tempfile.TemporaryDirectory(prefix="ccot-") as folder:
        path = Path(folder, "stdin")
        with path.open("wb") as file:
            shutil.copyfileobj(stream, file)
        return _read_file(path, "-", options, tell)


def _read_file(path: Path, name: str, options: ReadOptions, tell: Tell) -> Found:
    if path.is_dir():
        raise InputError(f"{path} is a folder: pass one of its files")
    if not path.exists():
        raise InputError(f"there is no file {path}: check the path")
    check_regular(path)
    with path.open("rb") as file:
        kind = _kind(file.read(_START), path)
        file.seek(0)
        _check_name(path, kind)
        if kind is None or kind == "gz":
            size = path.stat().st_size or 1
            with _decoded(name, options.encoding):
                raw = file if kind is None else unfolded(path, file)
            return _read_lines(raw, name, options, lambda: tell(min(file.tell() / size, 1.0)))
    if kind in ("xlsx", "json", "sqlite"):
        return _read_rows(kind, path, name, options)
    if kind in ("parquet", "feather"):
        return read_arrow(path, options, kind.capitalize())
    check_drop(options.drop, f"a {kind} file")
    if options.long is not False:
        raise InputError(f"a {kind} file holds a matrix, not a long table: omit --long")
    if kind == "h5ad":
        return read_h5ad(path, options.layer)
    return {"npy": read_npy, "npz": read_npz, "mtx": read_matrix_market}[kind](path)


def read_parts(path: Path, options: ReadOptions) -> Iterator[Table]:
    """Yield a text table, or one of a Parquet file, some rows at a time; others as a whole."""
    check_regular(path)
    with path.open("rb") as file:
        kind = _kind(file.read(_START), path)
    if kind == "parquet":
        yield from parquet_parts(path, options)
    elif kind in (None, "gz"):
        with _decoded(str(path), options.encoding), _open_text(path, options.encoding) as lines:
            yield from text_parts(lines, options)
    else:
        yield as_table(read_any(path, options))


def _read_lines(raw: Any, name: str, options: ReadOptions, tell: Callable[[], None]) -> Found:
    def reported() -> Iterator[str]:
        for number, line in enumerate(lines):
            if number % _LINES_BETWEEN_REPORTS == 0:
                tell()
            yield line

    with _decoded(name, options.encoding):
        lines = io.TextIOWrapper(raw, encoding=options.encoding, newline="")
        try:
            return read_text(reported(), options)
        finally:
            lines.detach()


def _read_rows(kind: str, path: Path, name: str, options: ReadOptions) -> Found:
    """Read what comes in rows of cells."""
    size = path.stat().st_size
    if kind == "xlsx":
        rows, size, options = sheet_rows(path, options)
    elif kind == "sqlite":
        rows = sqlite_rows(path, options)
        options = replace(options, source="SQLite", header=True)
    else:
        rows = json_rows(partial(_open_text, path, options.encoding), options.drop, name, size)
        options = replace(options, source="JSON records", header=True)
    with _decoded(name, options.encoding):
        return read_rows(rows, size, options)


def _open_text(path: Path, encoding: str) -> io.TextIOWrapper:
    with path.open("rb") as file:
        is_gzipped = file.read(2) == b"\x1f\x8b"
    raw: Any = unfolded(path) if is_gzipped else path.open("rb")
    return io.TextIOWrapper(raw, encoding=encoding)


@contextmanager
def _decoded(name: str, encoding: str) -> Iterator[None]:
    """Explain what is no text in the encoding."""
    try:
        yield
    except (IndexError, KeyError):
        raise  # a mistake of ours; an encoding that is not known raises their base class
    except (UnicodeError, EOFError, OSError, LookupError, zlib.error) as error:
        reason = " ".join(str(error).split())[:100]
        remedy = "pass --encoding (latin-1, utf-16), or a file of a known format"
        problem = f"{name} is not text in the encoding {encoding} ({reason})"
        raise InputError(f"{problem}: {remedy}") from error


def _check_name(path: Path, kind: str | None) -> None:
    suffix = path.suffix.lower()
    if suffix in (".xls", ".ods"):
        raise InputError(f"{path} is a spreadsheet in another format: save it as .xlsx or CSV")
    if _NAMES.get(suffix, kind) != kind:
        problem = f"{path} is named {suffix} but is not such a file (truncated, or another format)"
        raise InputError(f"{problem}: write or download it again")


def _kind(start: bytes, path: Path | None = None) -> str | None:
    """Return what a file is by its first bytes; None: text, in rows or not."""
    text, small = (one.decode("latin-1") for one in (start, start.lower()))
    for beginning, other in _OTHERS.items():
        if small.startswith(beginning):
            raise InputError(f"{path or 'the input'} is {other}")
    if start[8:12] == b"DUCK":
        remedy = "write the table as Parquet (COPY t TO 't.parquet')"
        raise InputError(f"{path or 'the input'} is a DuckDB database: {remedy}")
    kind = next((kind for magic, kind in _MAGIC.items() if text.startswith(magic)), None)
    if kind == "npz" and path is not None and _is_workbook(path):
        return "xlsx"
    name = "" if path is None else path.name.lower()
    if kind == "gz" and name.endswith(".mtx.gz"):
        return "mtx"
    is_json = name.endswith(_JSON_NAMES) or (kind is None and _JSON_STARTS.match(start))
    return "json" if kind in (None, "gz") and is_json else kind


def _is_workbook(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return "[Content_Types].xml" in archive.namelist()
    except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError):
        return path.suffix.lower() in (".xlsx", ".xlsm")
