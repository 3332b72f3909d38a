"""One door for matrices of every format."""

from __future__ import annotations

import io
import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from ccot.io.binary import read_matrix_market, read_npy, read_npz
from ccot.io.bounded_gzip import unfolded
from ccot.io.h5ad import read_h5ad
from ccot.io.layout import Column, TextOptions, check_drop
from ccot.io.matrix import InputError, NamedMatrix, check_regular
from ccot.io.parquet import read_parquet
from ccot.io.text import read_text

_MAGIC = {
    b"\x93NUMPY": "npy",
    b"PK\x03\x04": "npz",
    b"PAR1": "parquet",
    b"%%Matr": "mtx",
    b"%%matr": "mtx",
    b"\x89HDF": "h5ad",
    b"\x1f\x8b": "gz",
}
_NAMES = {
    ".npy": "npy",
    ".npz": "npz",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".mtx": "mtx",
    ".h5ad": "h5ad",
}
_SHEETS = (".xlsx", ".xls", ".ods", ".xlsm")


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
    layer: str | None = None,
    progress: Callable[[float], None] | None = None,
) -> NamedMatrix:
    r"""Read a matrix from a file of any known format.

    The format is told by the content: text (CSV, TSV, also gzipped), Parquet, ``.npy``, ``.npz``
    (SciPy sparse, or one array), Matrix Market, ``.h5ad``.

    Parameters
    ----------
    source : path-like, or "-"
        The file; ``"-"`` is the standard input.
    index_col : str, int, False or None, default=None
        Column of row names, by name or position from 0; False: there is none; None: find out.
    drop : sequence of str or int, optional
        Columns of a table to leave out, by name or position from 0.
    delimiter : str or None, default=None
        Between the cells of a text table; None: find out.
    header : bool or None, default=None
        Whether a text table begins with the names of its columns; None: find out.
    decimal : str or None, default=None
        Decimal point of a text table; None: find out.
    encoding : str, default="utf-8-sig"
        Encoding of a text table.
    long : bool or sequence of str or int, default=False
        The table lists cells: row, column and value are its first three columns, or those named.
        With two columns, pairs are counted.
    unlisted : {"zero", "missing"}, default="zero"
        What the cells are that a long table does not list.
    layer : str, optional
        Layer of an ``.h5ad`` file.
    progress : callable, optional
        Told the share of a text file that is read.

    Returns
    -------
    NamedMatrix
        ``values`` (float64, dense or CSR), ``row_names``, ``column_names``, and ``how`` the file
        was understood.

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
    options = TextOptions(delimiter, header, index_col, decimal, drop)
    reader = _Reader(str(source), options, encoding, long, unlisted, layer, progress)
    return reader.stream(sys.stdin.buffer) if str(source) == "-" else reader.file(Path(source))


@dataclass(frozen=True)
class _Reader:
    """What :func:`read_matrix` was told, and one method a kind of source."""

    name: str
    options: TextOptions
    encoding: str
    long: bool | Sequence[Column]
    unlisted: str
    layer: str | None
    progress: Callable[[float], None] | None

    def file(self, path: Path) -> NamedMatrix:
        with _existing(path).open("rb") as file:
            kind = _kind(file.read(8))
            file.seek(0)
            _check_name(path, kind)
            if kind == "gz" and path.name.lower().endswith(".mtx.gz"):
                return self.binary("mtx", path)
            tell = _share_teller(file, path.stat().st_size, self.progress)
            if kind == "gz":
                return self.text(unfolded(path, file), tell)
            return self.text(file, tell) if kind is None else self.binary(kind, path)

    def stream(self, stream: Any) -> NamedMatrix:
        """Read text as it comes; other formats, whose size must be known, go through a file."""
        buffered = io.BufferedReader(stream)
        kind = _kind(buffered.peek(8)[:8])
        if kind is None:
            return self.text(buffered, lambda: None)
        with tempfile.TemporaryDirectory(prefix="ccot-") as folder:
            path = Path(folder, f"stdin.{kind}")
            with path.open("wb") as file:
                shutil.copyfileobj(buffered, file)
            return self.file(path)

    def text(self, raw: Any, tell: Callable[[], None]) -> NamedMatrix:
        try:
            lines = io.TextIOWrapper(raw, encoding=self.encoding, newline="")
            try:
                return read_text(
                    iter(lines), self.options, long=self.long, unlisted=self.unlisted, progress=tell
                )
            finally:
                lines.detach()
        except (UnicodeError, EOFError, OSError, LookupError, zlib.error) as error:
            raise InputError(
                f"{self.name} is no text in the encoding {self.encoding} "
                f"({' '.join(str(error).split())[:100]}): pass --encoding (latin-1, utf-16), or a "
                "file of a known format"
            ) from error

    def binary(self, kind: str, path: Path) -> NamedMatrix:
        if kind == "parquet":
            return read_parquet(
                path,
                index_col=self.options.index_col,
                drop=self.options.drop,
                long=self.long,
                unlisted=self.unlisted,
            )
        check_drop(self.options.drop, f"a {kind} file")
        if self.long is not False:
            raise InputError(f"a {kind} file is a matrix, no long table: leave out --long")
        if kind == "h5ad":
            return read_h5ad(path, self.layer)
        return {"npy": read_npy, "npz": read_npz, "mtx": read_matrix_market}[kind](path)


def _check_name(path: Path, kind: str | None) -> None:
    suffix = path.suffix.lower()
    if suffix in _SHEETS:
        raise InputError(f"{path} is a spreadsheet: save the sheet as CSV")
    if _NAMES.get(suffix, kind) != kind:
        raise InputError(
            f"{path} is named {suffix} but is none (truncated, or another format): write or "
            "download it again"
        )


def _existing(path: Path) -> Path:
    if path.is_dir():
        raise InputError(f"{path} is a folder: pass a file in it")
    if not path.exists():
        raise InputError(f"there is no file {path}: check the path")
    check_regular(path)
    return path


def _kind(start: bytes) -> str | None:
    return next((kind for magic, kind in _MAGIC.items() if start.startswith(magic)), None)


def _share_teller(
    raw: BinaryIO, size: int | None, progress: Callable[[float], None] | None
) -> Callable[[], None]:
    if progress is None or not size:
        return lambda: None
    return lambda: progress(min(raw.tell() / size, 1.0))
