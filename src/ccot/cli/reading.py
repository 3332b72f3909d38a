"""Options of all commands that read a matrix, and how it is read."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, fields, replace
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import numpy as np
import typer

from ccot.cli.progress import ConsoleProgress, StepProgress
from ccot.io import InputError, NamedMatrix, Table
from ccot.io.binary import damage_explained
from ccot.io.layout import ReadOptions, check_drop
from ccot.io.matrix import named_matrix, unique_names
from ccot.io.mixed import as_matrix
from ccot.io.read import read_any
from ccot.runtime.memory import free_bytes
from ccot.sources import ParquetSource, RowSource, as_source

# A fit holds its matrix up to this often; one of which so many do not fit is read row by row.
COPIES = 4

Source = Annotated[
    str,
    typer.Argument(
        metavar="INPUT",
        help="CSV, TSV, Excel, JSON, Parquet, Feather, SQLite, .npy, .npz, Matrix Market or .h5ad "
        "file, or a Zarr array; `-` is the standard input.",
        show_default=False,
    ),
]


def _option(*flags: str, **how: Any) -> Any:
    return typer.Option(*flags, rich_help_panel="Reading the input", **how)


@dataclass(frozen=True)
class Reading:
    """What the user said about the input: every attribute is an option of the command line."""

    index_col: Annotated[
        str | None,
        _option(
            help="Column of row names, by name or position from 0; `none`: there is none. "
            "[default: found]"
        ),
    ] = None
    drop: Annotated[
        list[str] | None,
        _option(help="Column to leave out, by name or position from 0; can be repeated."),
    ] = None
    delimiter: Annotated[
        str | None, _option(help="Between cells; `tab` is a tab. [default: found]")
    ] = None
    header: Annotated[
        bool | None,
        _option(
            "--header/--no-header",
            help="Whether the first line names the columns. [default: found]",
        ),
    ] = None
    decimal: Annotated[str | None, _option(help="Decimal point. [default: found]")] = None
    encoding: Annotated[str, _option(help="Of a text file.")] = "utf-8-sig"
    long: Annotated[
        bool,
        _option(
            "--long",
            help="The table lists cells, one a line: row, column, value; or pairs, which are "
            "counted.",
        ),
    ] = False
    long_columns: Annotated[
        str | None,
        _option(
            metavar="ROW,COLUMN[,VALUE]",
            help="The same, with these columns. [default: the first three]",
        ),
    ] = None
    unlisted: Annotated[
        str,
        _option(metavar="zero|missing", help="What cells are that a long table does not list."),
    ] = "zero"
    aggregate: Annotated[
        str | None,
        _option(
            metavar="sum|mean|count|last",
            help="What is done with cells that a long table lists more than once. [default: sum of "
            "whole numbers, mean of others and of ratings (--unlisted missing)]",
        ),
    ] = None
    sheet: Annotated[str | None, _option(help="Sheet of an Excel file. [default: the first]")] = (
        None
    )
    table: Annotated[
        str | None, _option(help="Table of an SQLite database. [default: the only one]")
    ] = None
    layer: Annotated[str | None, _option(help="Layer of an .h5ad file. [default: X]")] = None
    by_row: Annotated[
        bool | None,
        _option(
            "--by-row/--in-memory",
            help="Read a .npy, Parquet or Zarr file row by row, or as a whole. [default: by row "
            f"where {COPIES} times the matrix is more than the free memory]",
        ),
    ] = None

    def as_whole(self, refusal: str) -> Reading:
        """Return the same without rows; who asked for them is told why not."""
        if self.by_row:
            raise typer.BadParameter(refusal)
        return replace(self, by_row=False)

    def read(
        self,
        source: str,
        progress: ConsoleProgress,
        *,
        as_words: Collection[str] = (),
        known: Collection[str] = (),
    ) -> NamedMatrix:
        """Read the input, showing how far it is; or open it, if it had better be read by rows."""
        stored = self._open(source)
        if stored is not None and self._wants_rows(stored):
            return NamedMatrix(
                stored,
                unique_names(stored.row_names(), "rows"),
                unique_names(stored.column_names, "columns"),
                "read row by row",
            )
        with progress.step(f"reading {source}") as news:
            if stored is not None and Path(source).is_dir():
                values = stored.rows(np.arange(stored.shape[0]), news)
                names = stored.row_names(), stored.column_names
                return named_matrix(values, *names, "a folder, read as a whole")
            found = self._read_whole(source, news, as_words, known)
            return as_matrix(found) if isinstance(found, Table) else found

    def _open(self, source: str) -> RowSource | None:
        """Return the rows of an input that is kept in a way to be read by rows."""
        path = Path(source)
        listed = self.long or self.long_columns is not None
        if listed or not _keeps_rows(path):
            if self.by_row:
                raise typer.BadParameter("--by-row is for .npy, Parquet and Zarr files")
            return None
        try:
            with damage_explained(path, "matrix"):
                if not _is_parquet(path):
                    check_drop(self.drop or (), str(path))
                    return as_source(path, allow_nan=True)
                stored = ParquetSource(path, self._index_col, self.drop or ())
                stored.allow_nan = True
                return stored
        except InputError:
            if self.by_row or path.is_dir():
                raise
            # Those who read files as a whole say better what is wrong.
            return None

    def _wants_rows(self, stored: RowSource) -> bool:
        if self.by_row is not None:
            return self.by_row
        n_bytes, free = 8 * stored.shape[0] * stored.shape[1], free_bytes()
        return free is not None and COPIES * n_bytes > free

    @property
    def _index_col(self) -> str | bool | None:
        return False if self.index_col == "none" else self.index_col

    def _read_whole(
        self, source: str, news: StepProgress, as_words: Collection[str], known: Collection[str]
    ) -> NamedMatrix | Table:
        long: Any = self.long
        if self.long_columns is not None:
            long = [name.strip() for name in self.long_columns.split(",")]
        options = ReadOptions(
            delimiter={"tab": "\t", "\\t": "\t"}.get(self.delimiter or "", self.delimiter),
            header=self.header,
            index_col=self._index_col,
            decimal=self.decimal,
            drop=self.drop or (),
            encoding=self.encoding,
            long=long,
            unlisted=self.unlisted,
            aggregate=self.aggregate,
            layer=self.layer,
            sheet=self.sheet,
            table=self.table,
            as_words=as_words,
            known=known,
            tables=True,
        )
        return read_any(source, options, news.share)


def _keeps_rows(path: Path) -> bool:
    """Tell whether a path is that of a file or folder that can be read by rows."""
    if not path.is_dir():
        return path.is_file() and (path.suffix == ".npy" or _is_parquet(path))
    zarr = any((path / name).is_file() for name in ("zarr.json", ".zarray"))
    return zarr or _is_parquet(path)


def _is_parquet(path: Path) -> bool:
    if path.is_dir():
        return next(path.glob("*.parquet"), None) is not None
    return path.suffix in (".parquet", ".pq")


def reads(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of :class:`Reading`, which it gets together as ``read``."""
    hints = get_type_hints(Reading, include_extras=True)
    own = [
        one for one in signature(command, eval_str=True).parameters.values() if one.name != "read"
    ]
    options = [
        Parameter(one.name, Parameter.KEYWORD_ONLY, default=one.default, annotation=hints[one.name])
        for one in fields(Reading)
    ]

    @wraps(command)
    def with_options(*given: Any, **named: Any) -> None:
        said = {one.name: named.pop(one.name) for one in fields(Reading) if one.name in named}
        command(*given, **named, read=Reading(**said))

    everything = [*own, *options]
    with_options.__signature__ = Signature(everything)  # type: ignore[attr-defined]
    with_options.__annotations__ = {one.name: one.annotation for one in everything}
    return with_options
