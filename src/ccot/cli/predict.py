"""``ccot predict``: clusters of new rows or columns by a saved model."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ccot.cli.progress import ConsoleProgress
from ccot.cli.reading import Reading, Source, reads
from ccot.cli.results import write_rows
from ccot.estimators.models import load_model
from ccot.io import InputError, NamedMatrix
from ccot.io.matrix import align
from ccot.persistence.atomic import write_atomically
from ccot.runtime.progress import counted
from ccot.sources import RowSource

Model = Annotated[
    Path,
    typer.Argument(metavar="MODEL", help="Model file of `ccot fit` or save().", show_default=False),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("predict")(predict)


@reads
def predict(
    model: Model,
    source: Source,
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
    raw_names: Annotated[
        bool,
        typer.Option(
            "--raw-names",
            help="Write names as they are, also those that a spreadsheet would run as a formula.",
        ),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON instead of CSV.")] = False,
    *,
    read: Reading,
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
    if columns:
        read = read.as_whole("--by-row reads rows: leave it out with --columns")
    progress = ConsoleProgress(quiet)
    table = read.read(source, progress)
    places, left_out = _aligned(fitted, table, columns)
    if left_out and not quiet:
        what = "rows" if columns else "columns"
        typer.echo(
            f"note: {len(left_out)} {what} that the model does not know are left out (the first: "
            f"{left_out[0]!r})",
            err=True,
        )
    predict = fitted.predict_columns if columns else fitted.predict
    values = table.values.T if columns else table.values
    with progress.step("placing") as news, warnings.catch_warnings():
        # Names were matched here.
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        parts = counted(_parts(values), "parts", news)
        labels = np.concatenate([predict(_taken(read_part(), places)) for read_part in parts])
    names = table.column_names if columns else table.row_names
    pairs = list(zip(names or range(len(labels)), labels.tolist(), strict=True))
    with write_atomically(out, "w") if out is not None else nullcontext(sys.stdout) as file:
        if as_json:
            file.write(json.dumps([{"name": n, "cluster": c} for n, c in pairs]) + "\n")
        else:
            write_rows(file, ("name", "cluster"), pairs, raw_names=raw_names)
    if out is not None and not quiet:
        typer.echo(f"wrote {out}")


def _aligned(fitted: Any, table: NamedMatrix, columns: bool) -> tuple[np.ndarray | None, list[str]]:
    """Return where the values that the model knows are (None: in their places), and the others."""
    names = table.row_names if columns else table.column_names
    known = getattr(fitted, "row_names_in_" if columns else "feature_names_in_", None)
    if names is None or known is None:
        return None, []
    places, left_out = align(names, list(known), "rows" if columns else "columns")
    return (None if np.array_equal(places, np.arange(len(names))) else places), left_out


def _parts(values: Any) -> list[Callable[[], Any]]:
    """Return the new points as functions that return some of them."""
    if isinstance(values, RowSource):
        return [partial(values.read, part) for part in values.parts]
    return [lambda: values]


def _taken(values: Any, places: np.ndarray | None) -> Any:
    if places is None:
        return values
    return (values.tocsc() if hasattr(values, "tocsc") else values)[:, places]
