"""Options of all commands that read a matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from ccot.cli.progress import Progress
from ccot.io import NamedMatrix, read_matrix

_PANEL = "Reading the input"

Source = Annotated[
    str,
    typer.Argument(
        metavar="INPUT",
        help="CSV, TSV, Parquet, .npy, .npz, Matrix Market or .h5ad file; `-` is the standard "
        "input.",
        show_default=False,
    ),
]
IndexCol = Annotated[
    str | None,
    typer.Option(
        help="Column of row names, by name or position from 0; `none`: there is none. "
        "[default: found]",
        rich_help_panel=_PANEL,
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(help="Between cells; `tab` is a tab. [default: found]", rich_help_panel=_PANEL),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first line names the columns. [default: found]",
        rich_help_panel=_PANEL,
    ),
]
Decimal = Annotated[
    str | None, typer.Option(help="Decimal point. [default: found]", rich_help_panel=_PANEL)
]
Encoding = Annotated[str, typer.Option(help="Of a text file.", rich_help_panel=_PANEL)]
Long = Annotated[
    bool,
    typer.Option(
        "--long",
        help="The table lists cells, one a line: row, column, value; or pairs, which are counted.",
        rich_help_panel=_PANEL,
    ),
]
LongColumns = Annotated[
    str | None,
    typer.Option(
        metavar="ROW,COLUMN[,VALUE]",
        help="The same, with these columns. [default: the first three]",
        rich_help_panel=_PANEL,
    ),
]
Unlisted = Annotated[
    str,
    typer.Option(
        metavar="zero|missing",
        help="What cells are that a long table does not list.",
        rich_help_panel=_PANEL,
    ),
]
Layer = Annotated[
    str | None, typer.Option(help="Layer of an .h5ad file. [default: X]", rich_help_panel=_PANEL)
]


@dataclass(frozen=True)
class Reading:
    """What the user said about the input.

    Attributes
    ----------
    index_col, delimiter, header, decimal, encoding, long, long_columns, unlisted, layer
        As on the command line.
    """

    index_col: str | None = None
    delimiter: str | None = None
    header: bool | None = None
    decimal: str | None = None
    encoding: str = "utf-8-sig"
    long: bool = False
    long_columns: str | None = None
    unlisted: str = "zero"
    layer: str | None = None

    def read(self, source: str, progress: Progress) -> NamedMatrix:
        """Read the input, showing how far it is."""
        long: Any = self.long
        if self.long_columns is not None:
            long = [name.strip() for name in self.long_columns.split(",")]
        with progress.step(f"reading {source}") as news:
            return read_matrix(
                source,
                index_col=False if self.index_col == "none" else self.index_col,
                delimiter={"tab": "\t", "\\t": "\t"}.get(self.delimiter or "", self.delimiter),
                header=self.header,
                decimal=self.decimal,
                encoding=self.encoding,
                long=long,
                unlisted=self.unlisted,
                layer=self.layer,
                progress=news.share,
            )
