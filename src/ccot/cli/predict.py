"""``ccot predict``: clusters of new rows or columns by a saved model."""

from __future__ import annotations

import json
import math
import sys
import warnings
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from ccot.cli.errors import one_line
from ccot.cli.options import Quiet, RawNames, Reading, Source, with_options

if TYPE_CHECKING:
    import numpy as np

    from ccot.cli.progress import ConsoleProgress
    from ccot.io import NamedMatrix


@with_options
def predict(
    model: Annotated[
        Path,
        Argument(metavar="MODEL", help="Model file of `ccot fit` or save().", show_default=False),
    ],
    source: Source,
    out: Annotated[
        Path | None, Option(help="CSV file to write. [default: standard output]")
    ] = None,
    columns: Annotated[
        bool,
        Option(
            "--columns",
            help="The input holds new columns, with a value for every row of the fitted matrix.",
        ),
    ] = False,
    raw_names: RawNames = False,
    quiet: Quiet = False,
    as_json: Annotated[bool, Option("--json", help="Write JSON instead of CSV.")] = False,
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
    from ccot.cli.inputs import read_input
    from ccot.cli.progress import ConsoleProgress
    from ccot.cli.results import write_rows
    from ccot.estimators.models import load_model
    from ccot.io import InputError
    from ccot.persistence.atomic import write_atomically

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
    table = read_input(read, source, progress, known=() if columns or known is None else known)
    warn = (lambda line: None) if quiet else partial(typer.echo, err=True)
    for note in table.notes:
        warn(f"note: {note}")
    table, places, left_out = _aligned(fitted, table, known, columns)
    if left_out:
        what = "rows" if columns else "columns"
        unknown = f"{len(left_out)} {what} that the model does not know are left out"
        warn(f"note: {unknown} (the first: {left_out[0]!r})")
    labels, confidence, warned = _predicted(fitted, table, places, columns, progress)
    for message in warned:
        warn(f"warning: {message}")
    names = table.column_names if columns else table.row_names
    lines = list(zip(names or range(len(labels)), labels, confidence, strict=True))
    with write_atomically(out, "w") if out is not None else nullcontext(sys.stdout) as file:
        if as_json:
            file.write(json.dumps([_entry(*line) for line in lines]) + "\n")
        else:
            shown = ((n, c, "" if math.isnan(p) else f"{p:.4f}") for n, c, p in lines)
            write_rows(file, ("name", "cluster", "confidence"), shown, raw_names=raw_names)
    if out is not None and not quiet:
        typer.echo(f"wrote {out}")


def _entry(name: Any, cluster: int, confidence: float) -> dict[str, Any]:
    known = None if math.isnan(confidence) else round(confidence, 4)
    return {"name": name, "cluster": cluster, "confidence": known}


def _aligned(
    fitted: Any, table: NamedMatrix, known: list[str] | None, columns: bool
) -> tuple[NamedMatrix, np.ndarray | None, list[str]]:
    """Return the input, where the names that the model knows are in it, and all other names.

    Where they are is None if they are all there is, in the same order.
    """
    import numpy as np

    from ccot.cli.inputs import is_of_table
    from ccot.io import Table
    from ccot.io.matrix import align
    from ccot.io.mixed import as_matrix, as_named, as_table, refuse_table

    takes_table = is_of_table(fitted) and not columns
    if takes_table and not isinstance(table.values, Table):
        table = as_named(as_table(table))
    left_out = []
    if isinstance(table.values, Table) and not columns and known is not None:
        left_out = [name for name in table.values.columns if name not in set(known)]
        kept = {name: c for name, c in table.values.columns.items() if name not in left_out}
        if takes_table:
            return as_named(replace(table.values, columns=kept)), None, left_out
        align(list(kept), known, "columns")
        table = as_matrix(replace(table.values, columns={name: kept[name] for name in known}))
    if isinstance(table.values, Table):
        refuse_table(table.values)
    names = table.row_names if columns else table.column_names
    if left_out or names is None or known is None:
        return table, None, left_out
    places, left_out = align(names, known, "rows" if columns else "columns")
    in_place = np.array_equal(places, np.arange(len(names)))
    return table, (None if in_place else places), left_out


def _predicted(
    fitted: Any,
    table: NamedMatrix,
    places: np.ndarray | None,
    columns: bool,
    progress: ConsoleProgress,
) -> tuple[list[int], list[float], list[str]]:
    """Return clusters, confidences (NaN where the estimator has none), and warnings."""
    import numpy as np

    from ccot.runtime.progress import counted
    from ccot.sources import RowSource

    values: Any = table.values.T if columns else table.values
    parts = values.parts if isinstance(values, RowSource) else [None]
    with progress.step("placing") as step, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # Names were matched before.
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        found = []
        for part in counted(parts, "parts", step):
            points: Any = values if part is None else values.read(part)
            if places is not None:
                points = (points.tocsc() if hasattr(points, "tocsc") else points)[:, places]
            found.append(_placed(fitted, points, columns))
    labels, confidence = (np.concatenate(both).tolist() for both in zip(*found, strict=True))
    return labels, confidence, list(dict.fromkeys(one_line(one.message) for one in caught))


def _placed(fitted: Any, points: Any, columns: bool) -> tuple[np.ndarray, np.ndarray]:
    import numpy as np

    labels = (fitted.predict_columns if columns else fitted.predict)(points)
    if not columns and hasattr(fitted, "predict_confidence"):
        return labels, fitted.predict_confidence(points)
    if not columns and hasattr(fitted, "predict_proba"):
        return labels, np.asarray(fitted.predict_proba(points)).max(axis=1)
    return labels, np.full(len(labels), np.nan)
