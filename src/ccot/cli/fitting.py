"""What ``ccot fit`` does: choose an estimator, read, fit, write, and say all of it."""

import json
import platform
import sys
import time
import warnings
from contextlib import nullcontext
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import typer
from threadpoolctl import threadpool_limits

from ccot import CCOT, CCOTGW, TransportCoclustering, __version__, estimate_resources
from ccot.blocks.columns import NUMBER_KINDS
from ccot.cli import inputs, results
from ccot.cli.errors import one_line
from ccot.cli.fit import Family, FitOptions, Method
from ccot.cli.options import Reading
from ccot.cli.progress import ConsoleProgress
from ccot.cli.results import FILES, result_folder
from ccot.io import InputError, NamedMatrix, Table
from ccot.io.mixed import refuse_table
from ccot.sources import RowSource, TableParts

# Of more, the page would be too large for a browser.
MAX_MEMBERS = 1_000_000
# Parameters of the estimators that an estimate takes into account.
_ESTIMATED = ("n_samplings", "n_support", "kernel_rank", "exact_refinement", "n_jobs")
_WHY_TRANSPORT = (
    "the default, which works with noisy data of every kind and chooses the numbers of "
    "clusters (--method ccot tests every boundary between clusters)"
)


def fit_file(source: str, asked: FitOptions, read: Reading) -> None:
    """Co-cluster a file, write a folder of results, and say what was done."""
    say = (lambda text: None) if asked.quiet or asked.as_json else typer.echo
    progress = ConsoleProgress(asked.quiet)
    started = time.perf_counter()
    model = _estimator(asked)
    table, annotations = _read(source, asked, read, model, progress)
    times = {"read": time.perf_counter() - started}
    out = asked.out or Path(f"{_title(source)}-ccot")
    reason = _WHY_TRANSPORT if asked.method is Method.auto else "given by --method"
    n_missing = inputs.count_missing(table.values)
    gaps = f", {n_missing} value{'s' * (n_missing != 1)} missing" if n_missing else ""
    shown = "standard input" if source == "-" else source
    say(f"{shown}: {table.shape[0]} x {table.shape[1]}{gaps}; {table.how}")
    _warn(asked, "note", table.notes)
    say(f"{type(model).__name__}: {reason}")
    if min(table.shape) < 2:
        raise InputError(
            f"the matrix has {table.shape[0]} rows and {table.shape[1]} columns: co-clustering "
            "needs at least two of each; check --delimiter, --header and --index-col"
        )
    if asked.dry_run:
        say(f"would write {', '.join(FILES)} to {out}")
        say(_outlook(model, table, "transport" if asked.method is Method.auto else asked.method))
        return
    # The folder comes before the fit: better to hear at once that it cannot be written.
    with results.checkpoint_beside(out, asked.resume, say) as kept, result_folder(out) as folder:
        model.set_params(checkpoint=kept)
        seen = _fit(model, table, progress, asked.jobs)
        if isinstance(table.values, RowSource) and inputs.is_of_table(model):  # so few rows
            table = replace(table, values=table.values.rows(np.arange(table.shape[0])))
        seen += inputs.doubts(model, table)
        times["fit"] = time.perf_counter() - started - times["read"]
        model._file_options = read.told()
        _write_tables(folder, model, table, annotations, asked.raw_names)
        if asked.report:
            with progress.step("writing the report"):
                given = {"title": _title(source), "notes": seen, "raw_names": asked.raw_names}
                seen += _write_page(folder, model, table, annotations, given)
        times["write"] = time.perf_counter() - started - sum(times.values())
        written = [name for name in FILES if (folder / name).exists()] + ["run.json"]
        run = _record(model, reason, source, table, seen, times)
        text = json.dumps(run, indent=2, allow_nan=False) + "\n"
        (folder / "run.json").write_text(text, encoding="utf-8")
    try:
        say(model.summary())
        _warn(asked, "warning", seen)
        say(f"wrote {', '.join(written)} to {out}")
        if asked.as_json:
            typer.echo(json.dumps({**run, "folder": str(out)}))
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"the results in {out} are complete") from None


def _warn(asked: FitOptions, what: str, messages: Any) -> None:
    for message in [] if asked.quiet else messages:
        typer.echo(f"{what}: {message}", err=True)


def _estimator(asked: FitOptions) -> Any:
    """Return the estimator that was asked for, or TransportCoclustering."""
    kinds = inputs.parse_kinds(asked.kind or ()) or None
    prepared = {"column_kinds": kinds, "scale": asked.scale, "center": asked.center}
    given: dict[str, Any] = {
        "n_row_clusters": _renamed(asked.rows, asked.n_row_clusters, "row"),
        "n_column_clusters": _renamed(asked.columns, asked.n_column_clusters, "column"),
        "random_state": asked.seed,
        **{name: value for name, value in prepared.items() if value is not None},
    }
    if asked.method in (Method.auto, Method.transport):
        if asked.reg is not None:
            raise typer.BadParameter("--reg is for --method ccot and ccot-gw")
        family = str(asked.family or Family.auto)
        return TransportCoclustering(family=family, n_jobs=asked.jobs, **given)
    if not prepared.keys().isdisjoint(given):
        raise typer.BadParameter("--kind, --scale and --center are for --method transport")
    if asked.family is not None:
        raise typer.BadParameter("--family is for --method transport")
    if asked.reg is not None:
        try:
            given["reg"] = asked.reg if asked.reg == "cv" else float(asked.reg)
        except ValueError:
            raise typer.BadParameter(f"--reg {asked.reg} must be a number or cv") from None
    return CCOT(n_jobs=asked.jobs, **given) if asked.method is Method.ccot else CCOTGW(**given)


def _renamed(old: int | None, new: int | None, side: str) -> int | None:
    """Return a number of clusters; its option had another name before."""
    if old is not None:
        typer.echo(
            f"FutureWarning: --{side}s is now called --n-{side}-clusters; the next release removes "
            "the old name",
            err=True,
        )
    return old if new is None else new


def _read(
    source: str, asked: FitOptions, read: Reading, model: Any, progress: ConsoleProgress
) -> tuple[NamedMatrix, dict[str, np.ndarray]]:
    """Return the input, and the columns that only annotate it."""
    kinds, annotate = inputs.parse_kinds(asked.kind or ()), asked.annotate or ()
    if isinstance(model, CCOTGW):
        read = read.as_whole("--by-row is for --method transport and ccot")
    if annotate:
        read = read.as_whole("--by-row does not work with --annotate: pass one of them")
    words = [column for column, kind in kinds.items() if kind not in NUMBER_KINDS]
    named = {"as_words": [*words, *annotate], "known": [*kinds, *annotate]}
    found = inputs.read_input(read, source, progress, kinds, **named)
    if isinstance(found.values, TableParts):
        return found, {}
    table, annotations = inputs.split(found, annotate, as_table_of=kinds)
    if isinstance(table.values, Table) and not isinstance(model, TransportCoclustering):
        refuse_table(table.values)
    return table, annotations


def _title(source: str) -> str:
    """Return what an input is called: its file's name without endings."""
    return "stdin" if source == "-" else Path(source).name.split(".")[0] or "matrix"


def _outlook(model: Any, table: NamedMatrix, method: str) -> str:
    """Say what a fit will take, as far as it is known beforehand."""
    values = table.values
    by_row = isinstance(values, RowSource | TableParts)
    nnz, n_bytes = None, 8 * values.shape[0] * values.shape[1]
    if sp.issparse(values):
        nnz, n_bytes = values.nnz, values.data.nbytes + values.indices.nbytes
    options = model.get_params(deep=False)
    known = {name: options[name] for name in _ESTIMATED if name in options}
    expected = estimate_resources(values.shape, nnz, method, out_of_core=by_row, **known)
    stays = ", and is read part by part" if by_row else ""
    return f"the matrix takes {n_bytes / 1e6:.1f} MB{stays}\nthe fit will take {expected}"


def _fit(model: Any, table: NamedMatrix, progress: ConsoleProgress, jobs: int | None) -> list[str]:
    """Fit, showing how far it is, and return the warnings."""
    limit = threadpool_limits(jobs) if jobs and jobs > 0 else nullcontext()
    with progress.step("fitting") as step, limit, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # What sets clusters apart is told by names: looked for once, when those are known.
        model._waits_for_names = True
        model.set_params(verbose=step).fit(inputs.fitted_values(model, table))
    del model._waits_for_names
    model.set_params(verbose=0, checkpoint=None)
    # A table without pandas has names all the same; the model keeps them as if it came from there.
    if table.column_names is not None and not hasattr(model, "feature_names_in_"):
        model.feature_names_in_ = np.array(table.column_names, dtype=object)
    if table.row_names is not None:
        model.row_names_in_ = np.array(table.row_names, dtype=object)
    own = [one for one in caught if issubclass(one.category, UserWarning)]
    return list(dict.fromkeys(one_line(one.message) for one in own))


def _write_tables(
    folder: Path, model: Any, table: NamedMatrix, annotations: dict[str, Any], raw_names: bool
) -> None:
    """Write labels, blocks and the model."""
    columns = table.column_names
    if columns is not None and len(columns) != len(model.column_labels_):
        columns = list(model.feature_names_in_)  # some were left out
    for side, names, more in (("row", table.row_names, annotations), ("column", columns, {})):
        found = getattr(model, f"{side}_labels_"), getattr(model, f"{side}_confidence_")
        results.write_labels(folder / f"{side}_labels.csv", names, found, more, raw_names)
    results.write_blocks(folder / "blocks.csv", model, inputs.fitted_values(model, table))
    model.save(folder / "model.ccot")


def _write_page(
    folder: Path, model: Any, table: NamedMatrix, annotations: Any, given: dict[str, Any]
) -> list[str]:
    """Write the report, or return why there is none."""
    if max(table.shape) > MAX_MEMBERS:
        side = "rows" if table.shape[0] > MAX_MEMBERS else "columns"
        return [
            f"no report.html: it can show at most {MAX_MEMBERS} {side}, and the matrix has "
            f"{max(table.shape)}. To get a report, fit some of them"
        ]
    from ccot.report import write_report
    from ccot.report.content import colourable

    names: dict[str, Any] = {"row_names": table.row_names, "column_names": table.column_names}
    names["annotations"], left_out = colourable(annotations)
    shown = None if isinstance(table.values, TableParts) else table.values
    write_report(folder / "report.html", model, matrix=shown, **given, **names)
    return left_out


def _record(
    model: Any, reason: str, source: str, table: NamedMatrix, seen: list[str], times: dict
) -> dict[str, Any]:
    """Return what run.json holds: how these results came about."""
    parameters = model.get_params()
    del parameters["checkpoint"], parameters["verbose"]
    return {
        "command": sys.argv,
        "input": {"source": source, "shape": table.shape, "how": table.how, "notes": table.notes},
        "preparation": getattr(getattr(model, "preparation_", None), "sentence", None) or None,
        "method": {"estimator": type(model).__name__, "reason": reason, "parameters": parameters},
        "seed": model.random_state,
        "result": {
            "row_clusters": model.n_row_clusters_,
            "column_clusters": model.n_column_clusters_,
            "summary": model.summary().splitlines(),
            "warnings": seen,
        },
        "seconds": {step: round(seconds, 3) for step, seconds in times.items()},
        "versions": {
            "ccot": __version__,
            "python": platform.python_version(),
            **{library: version(library) for library in ("numpy", "scipy", "scikit-learn")},
            "platform": platform.platform(),
        },
    }
