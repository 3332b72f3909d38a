"""``ccot predict``: clusters of new rows or columns by a saved model."""

from __future__ import annotations

import json
import sys
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ccot.cli import reading
from ccot.cli.progress import Progress
from ccot.cli.results import write_rows
from ccot.estimators.persist import load_model
from ccot.io import InputError, NamedMatrix
from ccot.io.atomic import write_atomically
from ccot.io.matrix import align

Model = Annotated[
    Path, typer.Argument(help="Model file of `ccot fit` or save().", show_default=False)
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("predict")(predict)


def predict(
    model: Model,
    source: reading.Source,
    out: Annotated[
        Path | None, typer.Option(help="CSV file to write. [default: standard output]")
    ] = None,
    columns: Annotated[
        bool,
        typer.Option(
            "--columns",
            help="The input holds new columns, with a value for every row of the fitted matrix.",
        ),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON instead of CSV.")] = False,
    index_col: reading.IndexCol = None,
    delimiter: reading.Delimiter = None,
    header: reading.Header = None,
    decimal: reading.Decimal = None,
    encoding: reading.Encoding = "utf-8-sig",
    long: reading.Long = False,
    long_columns: reading.LongColumns = None,
    unlisted: reading.Unlisted = "zero",
    layer: reading.Layer = None,
) -> None:
    """Place new rows (or columns) into the clusters of a fitted model.

    Columns are matched by name where model and input have names, by position otherwise.

    For example:

    - `ccot predict genes-ccot/model.ccot new.csv`
    - `ccot predict model.ccot samples.csv --columns --out samples.labels.csv`
    """
    fitted = load_model(model)
    if not hasattr(fitted, "predict"):
        raise InputError(
            f"{type(fitted).__name__} cannot place new points: fit ccot, ccot-gw or transport"
        )
    read = reading.Reading(
        index_col, delimiter, header, decimal, encoding, long, long_columns, unlisted, layer
    )
    table = read.read(source, Progress(quiet))
    values, left_out = _aligned(fitted, table, columns)
    if left_out and not quiet:
        what = "rows" if columns else "columns"
        typer.echo(
            f"note: {len(left_out)} {what} that the model does not know are left out (the first: "
            f"{left_out[0]!r})",
            err=True,
        )
    with warnings.catch_warnings():
        # Names were matched here.
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        labels = fitted.predict_columns(values) if columns else fitted.predict(values)
    names = table.column_names if columns else table.row_names
    pairs = list(zip(names or range(len(labels)), labels.tolist(), strict=True))
    with write_atomically(out, "w") if out is not None else nullcontext(sys.stdout) as file:
        if as_json:
            file.write(json.dumps([{"name": n, "cluster": c} for n, c in pairs]) + "\n")
        else:
            write_rows(file, ("name", "cluster"), pairs)
    if out is not None and not quiet:
        typer.echo(f"wrote {out}")


def _aligned(fitted: Any, table: NamedMatrix, columns: bool) -> tuple[Any, list[str]]:
    """Return the new points as rows, in the order of the fitted matrix, and what was left out."""
    values = table.values.T if columns else table.values
    names = table.row_names if columns else table.column_names
    known = getattr(fitted, "row_names_in_" if columns else "feature_names_in_", None)
    if names is None or known is None:
        return values, []
    places, left_out = align(names, list(known), "rows" if columns else "columns")
    if np.array_equal(places, np.arange(values.shape[1])):
        return values, []
    return (values.tocsc() if hasattr(values, "tocsc") else values)[:, places], left_out
