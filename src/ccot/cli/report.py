"""``ccot report``: one HTML page of a saved model, or of several side by side."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument

from ccot.cli.options import Quiet, Reading, opt, with_options


@with_options
def report(
    models: Annotated[
        list[Path], Argument(metavar="MODEL", help="One model file or several.", show_default=False)
    ],
    data: Annotated[
        str | None, opt("The matrix that was fitted, to be shown. [default: block means only]")
    ] = None,
    out: Annotated[Path, opt("Page to write.")] = Path("report.html"),
    title: Annotated[str | None, opt("Title of the page.")] = None,
    names: Annotated[
        Path | None, opt("Names of the clusters: a JSON file that a page saved.")
    ] = None,
    annotate: Annotated[
        Path | None,
        opt(
            "CSV file with a header and one line a row: facts that were not used for fitting, "
            "such as known classes, to be shown beside the matrix."
        ),
    ] = None,
    quiet: Quiet = False,
    *,
    read: Reading,
) -> None:
    """Write a self-contained page of fitted models, for a browser without a network.

    For example:

    - `ccot report genes-ccot/model.ccot --data genes.csv`
    - `ccot report a/model.ccot b/model.ccot --data genes.csv --out both.html`
    """
    from ccot.cli.inputs import read_input
    from ccot.cli.progress import ConsoleProgress
    from ccot.estimators.models import load_model
    from ccot.report import write_report

    fitted = {_title(path, models): load_model(path) for path in models}
    progress = ConsoleProgress(quiet)
    first, matrix = next(iter(fitted.values())), None
    row_names, column_names = (getattr(first, f"{a}_names_in_", None) for a in ("row", "feature"))
    if data is not None:
        table = read_input(read, data, progress)
        _check_shapes(fitted, table, data)
        matrix = table.values
        row_names = table.row_names or row_names
        column_names = table.column_names or column_names
    with progress.step("writing the report"):
        path = write_report(
            out,
            first if len(fitted) == 1 else fitted,
            matrix=matrix,
            row_names=row_names,
            column_names=column_names,
            title=title,
            cluster_names=names,
            annotations=None if annotate is None else _columns(annotate),
        )
    if not quiet:
        typer.echo(f"wrote {path}")


def _check_shapes(fitted: dict[str, Any], table: Any, data: str) -> None:
    from ccot.io import InputError, Table

    for name, model in fitted.items():
        shape = len(model.row_labels_), len(model.column_labels_)
        if shape != table.shape and not isinstance(table.values, Table):
            raise InputError(
                f"{name} was fitted to {shape[0]} x {shape[1]} values, {data} has "
                f"{table.shape[0]} x {table.shape[1]}: pass the matrix that was fitted"
            )


def _columns(path: Path) -> dict[str, list[str | None]]:
    """Return the columns of a small CSV file; what is empty is missing."""
    with path.open(encoding="utf-8", newline="") as file:
        head, *lines = csv.reader(file)
    return {name: [line[i] or None for line in lines] for i, name in enumerate(head)}


def _title(path: Path, paths: list[Path]) -> str:
    """Name a model by its folder where all files are called alike."""
    alike = len({other.name for other in paths}) < len(paths)
    return str(path.parent if alike else path.stem)
