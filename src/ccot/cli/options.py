"""Options that several commands share; no library that commands need is loaded here."""

import os
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, get_type_hints

import typer
from typer import Argument, Option

# A fit holds its matrix up to this often; one of which so many do not fit is read row by row.
COPIES = 4
# What an option may be that tells how many cores to use.
CORES = {"min": -1, "max": os.cpu_count() or 1, "clamp": True}


def option(text: str, *flags: str, default: Any = None, **settings: Any) -> Any:
    """Return an option with its default, for a parameter of a command or a field of options."""
    return Option(default, *flags, help=text, **settings)


Source = Annotated[
    str,
    Argument(
        metavar="INPUT",
        help="CSV, TSV, Excel, JSON, Parquet, Feather, SQLite, .npy, .npz, Matrix Market or .h5ad "
        "file, or a Zarr array; `-` is the standard input.",
        show_default=False,
    ),
]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Print errors only.")]
RawNames = Annotated[
    bool,
    Option(
        "--raw-names",
        help="Write names unchanged, even if a spreadsheet would run them as formulas.",
    ),
]
_about = partial(option, rich_help_panel="Reading the input")


@dataclass(frozen=True)
class Reading:
    """What the user said about the input: every attribute is an option of the command line."""

    index_col: str | None = _about(
        "Column of row names: name, position from 0, or `none`. [default: detected]"
    )
    # The call returns no list but the description of an option, which is never changed.
    drop: list[str] | None = _about(  # noqa: RUF009
        "Column to leave out, by name or position from 0; can be repeated."
    )
    delimiter: str | None = _about("Character between cells; `tab` is a tab. [default: detected]")
    header: bool | None = _about(
        "Whether the first line names the columns. [default: detected]", "--header/--no-header"
    )
    decimal: str | None = _about("Decimal point. [default: detected]")
    encoding: str = _about("Encoding of a text file.", default="utf-8-sig")
    long: bool = _about(
        "The input is a long table of row, column and value, or of pairs, which are counted.",
        "--long",
        default=False,
    )
    long_columns: str | None = _about(
        "As --long, with these columns. [default: the first three]", metavar="ROW,COLUMN[,VALUE]"
    )
    unlisted: str = _about(
        "Value of cells that a long table does not list.", default="zero", metavar="zero|missing"
    )
    aggregate: str | None = _about(
        "How to combine the values of a cell that a long table lists more than once. [default: sum "
        "of whole numbers, mean of others and of ratings (--unlisted missing)]",
        metavar="sum|mean|count|last",
    )
    sheet: str | None = _about("Sheet of an Excel file. [default: the first]")
    table: str | None = _about("Table of an SQLite database. [default: the only one]")
    layer: str | None = _about("Layer of an .h5ad file. [default: X]")
    by_row: bool | None = _about(
        "Read a .npy, Parquet, Zarr or text file row by row, or as a whole. [default: a matrix "
        f"row by row if {COPIES} copies of it do not fit into the free memory]",
        "--by-row/--in-memory",
    )

    @property
    def name_column(self) -> str | bool | None:
        """Column of row names; False: there is none, None: find out."""
        return False if self.index_col == "none" else self.index_col

    def told(self, *, is_said: bool = True) -> dict[str, Any]:
        """Return what was said (or not) of the file that may hold of others: a model keeps it."""
        usual = {one.name: getattr(one.default, "default", None) for one in fields(self)}
        # Nobody looks in new rows for columns that were left out.
        given = {name: getattr(self, name) for name in usual if name not in ("drop", "by_row")}
        return {name: given[name] for name in given if (given[name] != usual[name]) == is_said}

    def as_before(self, fitted: Any) -> "Reading":
        """Return the same and, where nothing is said, what was said of the file of a model."""
        before = getattr(fitted, "_file_options", {})
        silent = self.told(is_said=False).keys() - {"index_col"}
        kept = {name: before[name] for name in silent & before.keys()}
        return replace(self, **{n: v for n, v in kept.items() if isinstance(v, str | bool)})

    def as_whole(self, refusal: str) -> "Reading":
        """Return the same, but never row by row; that is refused if it was asked for."""
        if self.by_row:
            raise typer.BadParameter(refusal)
        return replace(self, by_row=False)


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Replace a command's parameters that are dataclasses by an option for each of their fields."""
    parameters: list[Parameter] = []
    groups: dict[str, Any] = {}
    for one in signature(command, eval_str=True).parameters.values():
        if not is_dataclass(one.annotation):
            parameters.append(one)
            continue
        groups[one.name] = one.annotation
        hints = get_type_hints(one.annotation, include_extras=True)
        parameters += [
            Parameter(f.name, Parameter.KEYWORD_ONLY, default=f.default, annotation=hints[f.name])
            for f in fields(one.annotation)
        ]

    @wraps(command)
    def run(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{one.name: given.pop(one.name) for one in fields(group)})
        command(**given)

    # typer reads the options off the signature, which types of functions do not have.
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run
