"""``ccot predict`` and ``ccot report``: new rows or columns, and a page, of saved models."""

from __future__ import annotations

import csv
import json
import math
import sys
import warnings
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument

from ccot.cli.errors import one_line
from ccot.cli.options import Quiet, RawNames, Reading, Source, option, with_options

if TYPE_CHECKING:
    from ccot.cli.progress import ConsoleProgress
    from ccot.io import NamedMatrix

_model = partial(Argument, metavar="MODEL", show_default=False)


@with_options
def predict(
    model: Annotated[Path, _model(help="Model file of `ccot fit` or save().")],
    source: Source,
    out: Path | None = option("CSV file to write. [default: standard output]"),
    columns: bool = option(
        "Predict new columns: the input has a value for every row of the fitted matrix.",
        "--columns",
        default=False,
    ),
    raw_names: RawNames = False,
    quiet: Quiet = False,
    as_json: bool = option("Write JSON instead of CSV.", "--json", default=False),
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
    from ccot.cli.inputs import aligned, names_of, read_input
    from ccot.cli.progress import ConsoleProgress
    from ccot.cli.results import write_rows
    from ccot.io import InputError
    from ccot.persistence.atomic import write_atomically

    fitted = _load(model)
    if hasattr(fitted, "user_ids_"):
        raise InputError(f"{model} is of `ccot fit-ratings`: pass it to `ccot recommend`")
    if not hasattr(fitted, "predict"):
        name = type(fitted).__name__
        raise InputError(f"{name} cannot predict new rows: fit ccot, ccot-gw or transport")
    if columns:
        read = read.as_whole("--by-row does not work with --columns: pass one of them")
    progress = ConsoleProgress(quiet)
    known = getattr(fitted, "row_names_in_" if columns else "feature_names_in_", None)
    known = None if known is None else [str(name) for name in known]
    taken = {"known": () if columns or known is None else known, "index_before": names_of(fitted)}
    as_before = read.as_before(fitted)
    table = read_input(as_before, source, progress, **taken)
    warn = (lambda line: None) if quiet else partial(typer.echo, err=True)
    said = {name: value for name, value in as_before.told().items() if name not in read.told()}
    again = ", ".join(f"{name.replace('_', '-')} {value}" for name, value in said.items())
    for note in (*table.notes, *([f"read as the fitted file: {again}"] if again else [])):
        warn(f"note: {note}")
    table, places, left_out = aligned(fitted, table, known, columns)
    if left_out:
        unknown = f"{len(left_out)} {'rows' if columns else 'columns'} that are not in the model"
        warn(f"note: {unknown} are left out (the first: {left_out[0]!r})")
    labels, confidence, warned = _predicted(fitted, table, places, columns, progress)
    for message in warned:
        warn(f"warning: {message}")
    names = table.column_names if columns else table.row_names
    shown = (None if math.isnan(share) else f"{share:.4f}" for share in confidence)
    lines = zip(names or range(len(labels)), labels, shown, strict=True)
    with write_atomically(out, "w") if out is not None else nullcontext(sys.stdout) as file:
        if as_json:
            entries = [{"name": n, "cluster": c, "confidence": p and float(p)} for n, c, p in lines]
            file.write(json.dumps(entries) + "\n")
        else:
            write_rows(file, ("name", "cluster", "confidence"), lines, raw_names=raw_names)
    if out is not None and not quiet:
        typer.echo(f"wrote {out}")


def _predicted(
    fitted: Any, table: NamedMatrix, places: Any, columns: bool, progress: ConsoleProgress
) -> tuple[list[int], list[float], list[str]]:
    """Return clusters, confidences (NaN where the estimator has none), and warnings."""
    import numpy as np

    from ccot.runtime.run import counted
    from ccot.sources import RowSource

    values: Any = table.values.T if columns else table.values
    parts = values.parts if isinstance(values, RowSource) else [None]
    found = []
    with progress.step("predicting") as step, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # Names were matched before.
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        for part in counted(parts, "parts", step):
            points: Any = values if part is None else values.read(part)
            if places is not None:
                points = (points.tocsc() if hasattr(points, "tocsc") else points)[:, places]
            labels = (fitted.predict_columns if columns else fitted.predict)(points)
            confidence = np.full(len(labels), np.nan)
            if not columns and hasattr(fitted, "predict_confidence"):
                confidence = fitted.predict_confidence(points)
            found.append((labels, confidence))
    labels, confidence = (np.concatenate(both).tolist() for both in zip(*found, strict=True))
    return labels, confidence, list(dict.fromkeys(one_line(one.message) for one in caught))


@with_options
def report(
    models: Annotated[list[Path], _model(help="One model file or several.")],
    data: str | None = option(
        "The fitted matrix, to show its entries. [default: block means only]"
    ),
    out: Path = option("Page to write.", default=Path("report.html")),
    title: str | None = option("Title of the page."),
    names: Path | None = option("Names of the clusters: a JSON file saved from a report."),
    annotate: Path | None = option(
        "CSV file with a header and one line a row: facts that were not used for fitting, "
        "such as known classes, to be shown beside the matrix."
    ),
    users: Path | None = option("For a recommender: table of the users, shown as --annotate is."),
    items: Path | None = option("For a recommender: table of the items, shown in the same way."),
    raw_names: RawNames = False,
    quiet: Quiet = False,
    *,
    read: Reading,
) -> None:
    """Write a self-contained page of fitted models, for a browser without a network.

    A model of `ccot fit-ratings` has its ratings with it.

    For example:

    - `ccot report genes-ccot/model.ccot --data genes.csv`
    - `ccot report a/model.ccot b/model.ccot --data genes.csv --out both.html`
    - `ccot report films.ccot --users users.csv --out films.html`
    """
    from ccot.cli.inputs import names_of, read_input
    from ccot.cli.progress import ConsoleProgress
    from ccot.cli.ratings import read_facts
    from ccot.report import write_report

    # Models are named by their folders where all files are called alike.
    alike = len({path.name for path in models}) < len(models)
    fitted = {str(path.parent if alike else path.stem): _load(path) for path in models}
    progress = ConsoleProgress(quiet)
    first, matrix = next(iter(fitted.values())), None
    row_names, column_names = (getattr(first, f"{a}_names_in_", None) for a in ("row", "feature"))
    if data is not None:
        table = read_input(read.as_before(first), data, progress, index_before=names_of(first))
        matrix = table.values
        row_names = table.row_names or row_names
        column_names = table.column_names or column_names
    given = {"title": title, "matrix": matrix, "row_names": row_names, "column_names": column_names}
    if annotate is not None:
        given["annotations"] = _shown(_columns(annotate, read.encoding))
    for side, path, key in (("user", users, "annotations"), ("item", items, "column_annotations")):
        if path is not None:
            if not hasattr(first, f"{side}_ids_"):
                hint = "pass --annotate instead"
                raise ValueError(f"--{side}s is for models of `ccot fit-ratings`: {hint}")
            ids = getattr(first, f"{side}_ids_")
            given[key] = _shown(read_facts(path, ids, side, read.encoding))
    with progress.step("writing the report"):
        shown = first if len(fitted) == 1 else fitted
        path = write_report(out, shown, cluster_names=names, raw_names=raw_names, **given)
    if not quiet:
        typer.echo(f"wrote {path}")


def _load(path: Path) -> Any:
    """Return an estimator, or a recommender."""
    from ccot.estimators.models import load_model
    from ccot.io import ModelFileError
    from ccot.recommend import load_recommender

    try:
        return load_model(path)
    except ModelFileError:
        with suppress(ModelFileError):
            return load_recommender(path)
        raise


def _shown(facts: Any) -> dict[str, Any]:
    """Return the facts that the page can show; say which it cannot."""
    from ccot.report.content import colourable

    shown, left_out = colourable(facts)
    for note in left_out:
        typer.echo(f"note: {note}", err=True)
    return shown


def _columns(path: Path, encoding: str) -> dict[str, list[str | None]]:
    """Return the columns of a small CSV file; what is empty is missing."""
    try:
        with path.open(encoding=encoding, newline="") as file:
            lines = list(csv.DictReader(file))
    except (csv.Error, LookupError, UnicodeError) as error:
        raise ValueError(f"{path} is not a CSV file in the encoding {encoding}: {error}") from None
    if any(None in line for line in lines):
        raise ValueError(f"lines of {path} have more cells than its header")
    return {name: [line[name] or None for line in lines] for name in lines[0]} if lines else {}
