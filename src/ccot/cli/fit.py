"""``ccot fit``: from a file to a folder of results."""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp
import typer
from threadpoolctl import threadpool_limits

from ccot import CCOT, CCOTGW, TransportCoclustering, estimate_resources
from ccot.cli.errors import one_line
from ccot.cli.inputs import (
    NUMBER_KINDS,
    count_missing,
    doubts,
    fitted_values,
    parse_kinds,
    preparation_line,
    split,
)
from ccot.cli.progress import ConsoleProgress
from ccot.cli.reading import Reading, Source, reads
from ccot.cli.record import record
from ccot.cli.results import (
    FILES,
    checkpoint_beside,
    result_folder,
    write_blocks,
    write_json,
    write_labels,
)
from ccot.io import InputError, NamedMatrix, Table
from ccot.io.mixed import refuse_table
from ccot.sources import RowSource

# Of more, the page would be too large for a browser.
MAX_MEMBERS = 1_000_000
_METHOD_NAMES = {"CCOT": "ccot", "CCOTGW": "ccot-gw", "TransportCoclustering": "transport"}
# Parameters of the estimators that an estimate takes into account.
_ESTIMATED = ("n_samplings", "n_support", "kernel_rank", "exact_refinement", "n_jobs")


class Method(StrEnum):
    """Estimators by their names on the command line."""

    auto = "auto"
    ccot = "ccot"
    ccot_gw = "ccot-gw"
    transport = "transport"


class Family(StrEnum):
    """Laws of the entries of a block."""

    auto = "auto"
    gaussian = "gaussian"
    poisson = "poisson"
    bernoulli = "bernoulli"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("fit")(fit)


@reads
def fit(
    source: Source,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the results. [default: INPUT-ccot, here]"),
    ] = None,
    method: Annotated[Method, typer.Option(help="Which estimator.")] = Method.auto,
    n_row_clusters: Annotated[
        int | None, typer.Option(min=1, help="Number of row clusters. [default: found]")
    ] = None,
    n_column_clusters: Annotated[
        int | None, typer.Option(min=1, help="Number of column clusters. [default: found]")
    ] = None,
    rows: Annotated[int | None, typer.Option(min=1, hidden=True)] = None,
    columns: Annotated[int | None, typer.Option(min=1, hidden=True)] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same result.")] = 0,
    reg: Annotated[
        str | None,
        typer.Option(help="Weight of the entropy, or `cv` to choose it (ccot, ccot-gw)."),
    ] = None,
    family: Annotated[
        Family | None, typer.Option(help="Law of the values (transport). [default: auto]")
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=KIND",
            help="What a column holds: number, count, yes/no, category, ordered, date, share, "
            "money, identifier or text; can be repeated (transport). [default: recognised]",
        ),
    ] = None,
    scale: Annotated[
        str | None,
        typer.Option(
            metavar="auto|none|standard|robust|log",
            help="What is done to the scale of columns (transport). [default: auto]",
        ),
    ] = None,
    center: Annotated[
        str | None,
        typer.Option(
            metavar="auto|none|columns|rows|both",
            help="Whose means are removed first (transport). [default: auto]",
        ),
    ] = None,
    annotate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Column to keep out of the fit and write beside the clusters of rows; can be "
            "repeated.",
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            min=-1,
            max=os.cpu_count() or 1,
            clamp=True,
            help="Threads, at most one for each core; -1: as many. [default: 1]",
        ),
    ] = None,
    raw_names: Annotated[
        bool,
        typer.Option(
            "--raw-names",
            help="Write names as they are, also those that a spreadsheet would run as a formula.",
        ),
    ] = False,
    report: Annotated[bool, typer.Option(help="Write report.html.")] = True,
    resume: Annotated[
        bool | None,
        typer.Option(
            "--resume/--no-resume", help="Go on with a fit that was interrupted, or begin anew."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Read, say what would be done, and stop.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print run.json instead of words.")
    ] = False,
    *,
    read: Reading,
) -> None:
    """Co-cluster the rows and columns of a table.

    Writes row_labels.csv and column_labels.csv (name, cluster, confidence), blocks.csv, model.ccot,
    report.html and run.json to a folder.

    For example:

    - `ccot fit genes.csv`
    - `ccot fit penguins.xlsx --annotate species --kind year=category`
    - `ccot fit counts.parquet --n-row-clusters 5 --n-column-clusters 8 --out blocks`
    - `ccot fit ratings.tsv --long-columns user,movie,rating --unlisted missing`
    - `zcat words.csv.gz | ccot fit - --method ccot --json`
    """
    say = (lambda text: None) if quiet or as_json else typer.echo
    progress = ConsoleProgress(quiet)
    started = time.perf_counter()
    n_rows = _renamed(rows, n_row_clusters, "rows")
    n_columns = _renamed(columns, n_column_clusters, "columns")
    kinds = parse_kinds(kind or ())
    prepared = {"column_kinds": kinds or None, "scale": scale, "center": center}
    model, reason = choose(method, n_rows, n_columns, seed, reg, family, jobs, prepared)
    if isinstance(model, CCOTGW):
        read = read.as_whole("--by-row is for --method transport and ccot")
    if kinds or annotate:
        read = read.as_whole("--by-row reads matrices: leave it out with --kind and --annotate")
    words = [column for column, kind in kinds.items() if kind not in NUMBER_KINDS]
    table = read.read(
        source, progress, as_words=[*words, *(annotate or ())], known=[*kinds, *(annotate or ())]
    )
    table, annotations = split(table, annotate or (), as_table_of=kinds)
    if isinstance(table.values, Table) and not isinstance(model, TransportCoclustering):
        refuse_table(table.values)
    times = {"read": time.perf_counter() - started}
    out = out or default_folder(source)
    name = type(model).__name__
    n_missing = count_missing(table.values)
    gaps = f", {n_missing} values missing" if n_missing else ""
    shown = "standard input" if source == "-" else source
    say(f"{shown}: {table.shape[0]} x {table.shape[1]}{gaps}; {table.how}")
    for note in [] if quiet else table.notes:
        typer.echo(f"note: {note}", err=True)
    say(f"{name}: {reason}")
    _check(table)
    if dry_run:
        say(f"would write {', '.join(FILES)} to {out}")
        for line in outlook(model, table):
            say(line)
        return
    # The folder comes before the fit: better to hear at once that it cannot be written.
    with checkpoint_beside(out, resume, say) as kept, result_folder(out) as folder:
        model.set_params(checkpoint=kept)
        seen = fit_model(model, table, progress, jobs) + doubts(model, table)
        times["fit"] = time.perf_counter() - started - times["read"]
        write_tables(folder, model, table, annotations, raw_names)
        if report:
            with progress.step("writing the report"):
                seen += write_page(folder, model, table, default_title(source), seen)
        times["write"] = time.perf_counter() - started - sum(times.values())
        written = [name for name in FILES if (folder / name).exists()] + ["run.json"]
        run = record(model, reason, source, table, seen, times)
        write_json(folder / "run.json", run)
    say(model.summary())
    if preparation_line(model) not in model.summary():
        say(preparation_line(model))
    for warning in [] if quiet else seen:
        typer.echo(f"warning: {warning}", err=True)
    say(f"wrote {', '.join(written)} to {out}")
    if as_json:
        typer.echo(json.dumps({**run, "folder": str(out)}))


def choose(
    method: Method,
    rows: int | None,
    columns: int | None,
    seed: int,
    reg: str | None,
    family: Family | None,
    jobs: int | None,
    prepared: Mapping[str, Any] | None = None,
) -> tuple[Any, str]:
    """Return an estimator and the reason for it."""
    transport = method in (Method.auto, Method.transport)
    asked = {name: value for name, value in (prepared or {}).items() if value is not None}
    if not transport and asked:
        raise typer.BadParameter("--kind, --scale and --center are for --method transport")
    if transport and reg is not None:
        raise typer.BadParameter("--reg is for --method ccot and ccot-gw")
    if not transport and family is not None:
        raise typer.BadParameter("--family is for --method transport")
    if transport:
        reason = "asked for"
        if method is Method.auto:
            reason = (
                "chosen because it bears noise, takes every kind of values and finds the numbers "
                "(--method ccot tests for crisp blocks)"
            )
        chosen = TransportCoclustering(
            rows,
            columns,
            family=(family or Family.auto).value,
            random_state=seed,
            n_jobs=jobs,
            **asked,
        )
        return chosen, reason
    given: dict[str, Any] = {"random_state": seed}
    if reg is not None:
        given["reg"] = _number_or_cv(reg)
    if method is Method.ccot:
        return CCOT(rows, columns, n_jobs=jobs, **given), "asked for"
    return CCOTGW(rows, columns, **given), "asked for"


def _renamed(old: int | None, new: int | None, name: str) -> int | None:
    """Return a number of clusters; its option had another name before."""
    if old is not None:
        typer.echo(
            f"FutureWarning: --{name} is called --n-{name[:-1]}-clusters now, and goes with the "
            "next release",
            err=True,
        )
    return old if new is None else new


def _number_or_cv(reg: str) -> float | str:
    if reg == "cv":
        return reg
    try:
        return float(reg)
    except ValueError:
        raise typer.BadParameter(f"--reg {reg} is neither a number nor cv") from None


def default_folder(source: str) -> Path:
    """Return the folder of results of an input, in the working directory.

    Examples
    --------
    >>> str(default_folder("data/genes.csv.gz")), str(default_folder("-"))
    ('genes-ccot', 'stdin-ccot')
    """
    return Path(f"{default_title(source)}-ccot")


def default_title(source: str) -> str:
    """Return what an input is called: its file's name without endings."""
    return "stdin" if source == "-" else Path(source).name.split(".")[0] or "matrix"


def _check(table: NamedMatrix) -> None:
    if min(table.shape) < 2:
        raise InputError(
            f"the matrix has {table.shape[0]} rows and {table.shape[1]} columns: co-clustering "
            "needs two of each; check --delimiter, --header and --index-col"
        )


def outlook(model: Any, table: NamedMatrix) -> list[str]:
    """Say what a fit will take, as far as it is known beforehand."""
    values = table.values
    by_row = isinstance(values, RowSource)
    held = f"the matrix takes {_bytes_held(values) / 1e6:.1f} MB"
    method = _METHOD_NAMES[type(model).__name__]
    options = model.get_params(deep=False)
    known = {name: options[name] for name in _ESTIMATED if name in options}
    nnz = values.nnz if sp.issparse(values) else None
    expected = estimate_resources(values.shape, nnz, method, out_of_core=by_row, **known)
    return [held + (", and stays in its file" if by_row else ""), f"the fit will take {expected}"]


def _bytes_held(values: Any) -> int:
    if sp.issparse(values):
        return values.data.nbytes + values.indices.nbytes
    return 8 * values.shape[0] * values.shape[1]


def fit_model(
    model: Any, table: NamedMatrix, progress: ConsoleProgress, jobs: int | None = None
) -> list[str]:
    """Fit, with news of it, and return what was warned of."""
    limit = threadpool_limits(jobs) if jobs and jobs > 0 else nullcontext()
    with (
        progress.step("fitting") as news,
        limit,
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        values = fitted_values(model, table)
        model.set_params(verbose=news).fit(values)
    model.set_params(verbose=0, checkpoint=None)
    # A table without pandas has names all the same; the model keeps them as if it came from there.
    if table.column_names is not None and not hasattr(model, "feature_names_in_"):
        model.feature_names_in_ = np.array(table.column_names, dtype=object)
    if table.row_names is not None:
        model.row_names_in_ = np.array(table.row_names, dtype=object)
    if hasattr(model, "_kept_portraits") and not isinstance(values, Table):
        model._keep_portraits(values)
    own = [one for one in caught if issubclass(one.category, UserWarning)]
    return list(dict.fromkeys(one_line(one.message) for one in own))  # type: ignore[arg-type]


def write_tables(
    folder: Path,
    model: Any,
    table: NamedMatrix,
    annotations: Mapping[str, np.ndarray],
    raw_names: bool = False,
) -> None:
    """Write labels, blocks and the model."""
    write_labels(
        folder / "row_labels.csv",
        table.row_names,
        model.row_labels_,
        model.row_confidence_,
        annotations,
        raw_names=raw_names,
    )
    columns = table.column_names
    if columns is not None and len(columns) != len(model.column_labels_):
        columns = list(model.feature_names_in_)  # some were left out
    write_labels(
        folder / "column_labels.csv",
        columns,
        model.column_labels_,
        model.column_confidence_,
        raw_names=raw_names,
    )
    write_blocks(folder / "blocks.csv", model)
    model.save(folder / "model.ccot")


def write_page(
    folder: Path, model: Any, table: NamedMatrix, title: str, notes: Sequence[str]
) -> list[str]:
    """Write the report, or return why there is none."""
    if max(table.shape) > MAX_MEMBERS:
        side = "rows" if table.shape[0] > MAX_MEMBERS else "columns"
        return [
            f"no report.html: a page holds at most {MAX_MEMBERS} {side}, this matrix has "
            f"{max(table.shape)}; fit a part of them to see one"
        ]
    try:
        from ccot.report import write_report
    except ImportError as missing:
        return [f"no report.html ({one_line(missing)}): pip install 'ccot[report]'"]
    write_report(
        folder / "report.html",
        model,
        matrix=table.values,
        row_names=table.row_names,
        column_names=table.column_names,
        title=title,
        notes=notes,
    )
    return []
