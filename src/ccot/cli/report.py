"""``ccot report``: one HTML page of a saved model, or of several side by side."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from ccot.cli.progress import ConsoleProgress
from ccot.cli.reading import Reading, reads
from ccot.estimators.models import load_model
from ccot.io import InputError, Table


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("report")(report)


@reads
def report(
    models: Annotated[
        list[Path],
        typer.Argument(metavar="MODEL", help="One model file or several.", show_default=False),
    ],
    data: Annotated[
        str | None,
        typer.Option(help="The matrix that was fitted, to be shown. [default: block means only]"),
    ] = None,
    out: Annotated[Path, typer.Option(help="Page to write.")] = Path("report.html"),
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    names: Annotated[
        Path | None, typer.Option(help="Names of the clusters: a JSON file that a page saved.")
    ] = None,
    annotate: Annotated[
        Path | None,
        typer.Option(
            help="CSV file with a header and one line a row: facts that were not used for fitting, "
            "such as known classes, to be shown beside the matrix."
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")] = False,
    *,
    read: Reading,
) -> None:
    """Write a self-contained page of fitted models, for a browser without a network.

    For example:

    - `ccot report genes-ccot/model.ccot --data genes.csv`
    - `ccot report a/model.ccot b/model.ccot --data genes.csv --out both.html`
    """
    from ccot.report import write_report

    fitted = {_title(path, models): load_model(path) for path in models}
    progress = ConsoleProgress(quiet)
    first = next(iter(fitted.values()))
    row_names = _names(first, "row_names_in_")
    column_names = _names(first, "feature_names_in_")
    matrix = None
    if data is not None:
        table = read.read(data, progress)
        for name, model in fitted.items():
            shape = len(model.row_labels_), len(model.column_labels_)
            if shape != table.shape and not isinstance(table.values, Table):
                raise InputError(
                    f"{name} was fitted to {shape[0]} x {shape[1]} values, {data} has "
                    f"{table.shape[0]} x {table.shape[1]}: pass the matrix that was fitted"
                )
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


def _columns(path: Path) -> dict[str, list[str | None]]:
    """Return the columns of a small CSV file; what is empty is missing."""
    with path.open(encoding="utf-8", newline="") as file:
        head, *lines = csv.reader(file)
    return {name: [line[i] or None for line in lines] for i, name in enumerate(head)}


def _title(path: Path, paths: list[Path]) -> str:
    """Name a model by its folder where all files are called alike."""
    alike = len({other.name for other in paths}) < len(paths)
    return str(path.parent if alike else path.stem)


def _names(model: object, attribute: str) -> tuple[str, ...] | None:
    names = getattr(model, attribute, None)
    return None if names is None else tuple(np.asarray(names, dtype=str).tolist())
