"""``ccot predict``: clusters of new rows or columns by a saved model."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ccot.cli.errors import one_line
from ccot.cli.progress import ConsoleProgress
from ccot.cli.reading import Reading, Source, reads
from ccot.cli.results import write_rows
from ccot.estimators.models import load_model
from ccot.io import InputError, NamedMatrix, Table
from ccot.io.matrix import align
from ccot.io.mixed import as_matrix, as_named, as_table, refuse_table
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

    Columns are matched by name where model and input have names, by position otherwise; columns
    that the model does not know are left out. Writes name, cluster and confidence (0 to 1).

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
    known = getattr(fitted, "row_names_in_" if columns else "feature_names_in_", None)
    known = None if known is None else [str(name) for name in known]
    table = read.read(source, progress, known=() if columns or known is None else known)
    for note in [] if quiet else table.notes:
        typer.echo(f"note: {note}", err=True)
    table, places, left_out = _aligned(fitted, table, known, columns)
    if left_out and not quiet:
        what = "rows" if columns else "columns"
        typer.echo(
            f"note: {len(left_out)} {what} that the model does not know are left out (the first: "
            f"{left_out[0]!r})",
            err=True,
        )
    values = table.values.T if columns else table.values
    with progress.step("placing") as news, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # Names were matched here.
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        parts = counted(_parts(values), "parts", news)
        found = [_placed(fitted, _taken(read_part(), places), columns) for read_part in parts]
    for warning in [] if quiet else dict.fromkeys(one_line(one.message) for one in caught):  # type: ignore[arg-type]
        typer.echo(f"warning: {warning}", err=True)
    labels, sure = (np.concatenate(both).tolist() for both in zip(*found, strict=True))
    names = table.column_names if columns else table.row_names
    lines = list(zip(names or range(len(labels)), labels, sure, strict=True))
    with write_atomically(out, "w") if out is not None else nullcontext(sys.stdout) as file:
        if as_json:
            file.write(json.dumps([_entry(*line) for line in lines]) + "\n")
        else:
            shown = ((n, c, "" if np.isnan(p) else f"{p:.4f}") for n, c, p in lines)
            write_rows(file, ("name", "cluster", "confidence"), shown, raw_names=raw_names)
    if out is not None and not quiet:
        typer.echo(f"wrote {out}")


def _entry(name: Any, cluster: int, confidence: float) -> dict[str, Any]:
    sure = None if np.isnan(confidence) else round(confidence, 4)
    return {"name": name, "cluster": cluster, "confidence": sure}


def _placed(fitted: Any, points: Any, columns: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return clusters and how sure they are, 0 to 1; NaN where the estimator does not tell."""
    labels = (fitted.predict_columns if columns else fitted.predict)(points)
    if not columns and hasattr(fitted, "predict_confidence"):
        return labels, fitted.predict_confidence(points)
    if not columns and hasattr(fitted, "predict_proba"):
        return labels, np.asarray(fitted.predict_proba(points)).max(axis=1)
    return labels, np.full(len(labels), np.nan)


def _aligned(
    fitted: Any, table: NamedMatrix, known: list[str] | None, columns: bool
) -> tuple[NamedMatrix, np.ndarray | None, list[str]]:
    """Return the input, where what the model knows is in it (None: in its place), and the rest."""
    if not columns and wants_table(fitted) and not isinstance(table.values, Table):
        table = as_named(as_table(table))
    names = table.row_names if columns else table.column_names
    if isinstance(table.values, Table) and not columns and known is not None:
        left_out = [name for name in table.values.columns if name not in set(known)]
        kept = {name: c for name, c in table.values.columns.items() if name not in left_out}
        if wants_table(fitted):
            return as_named(replace(table.values, columns=kept)), None, left_out
        align(list(kept), known, "columns")
        table = as_matrix(replace(table.values, columns={name: kept[name] for name in known}))
        if isinstance(table.values, Table):
            refuse_table(table.values)
        return table, None, left_out
    if isinstance(table.values, Table):
        refuse_table(table.values)
    if names is None or known is None:
        return table, None, []
    places, left_out = align(names, known, "rows" if columns else "columns")
    in_place = np.array_equal(places, np.arange(len(names)))
    return table, (None if in_place else places), left_out


def wants_table(fitted: Any) -> bool:
    """Return True for a model of a table, whose columns have names and kinds."""
    return hasattr(getattr(fitted, "preparation_", None), "names")


def _parts(values: Any) -> list[Callable[[], Any]]:
    """Return the new points as functions that return some of them."""
    if isinstance(values, RowSource):
        return [partial(values.read, part) for part in values.parts]
    return [lambda: values]


def _taken(values: Any, places: np.ndarray | None) -> Any:
    if places is None:
        return values
    return (values.tocsc() if hasattr(values, "tocsc") else values)[:, places]
