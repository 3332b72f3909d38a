"""``ccot fit``: from a file to a folder of results."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from typer import Option

from ccot.cli.options import CORES, Quiet, RawNames, Reading, Source, opt, with_options

Method = StrEnum(
    "Method", {"auto": "auto", "ccot": "ccot", "ccot_gw": "ccot-gw", "transport": "transport"}
)
Family = StrEnum("Family", ["auto", "gaussian", "poisson", "bernoulli"])


@dataclass(frozen=True)
class FitOptions:
    """What the user asked for: every attribute is an option of the command line."""

    out: Annotated[Path | None, opt("Folder of the results. [default: INPUT-ccot, here]")] = None
    method: Annotated[Method, opt("Which estimator.")] = Method.auto
    n_row_clusters: Annotated[
        int | None, opt("Number of row clusters. [default: found]", min=1)
    ] = None
    n_column_clusters: Annotated[
        int | None, opt("Number of column clusters. [default: found]", min=1)
    ] = None
    rows: Annotated[int | None, Option(min=1, hidden=True)] = None
    columns: Annotated[int | None, Option(min=1, hidden=True)] = None
    seed: Annotated[int, opt("The same seed gives the same result.", min=0)] = 0
    reg: Annotated[
        str | None, opt("Weight of the entropy, or `cv` to choose it (ccot, ccot-gw).")
    ] = None
    family: Annotated[Family | None, opt("Law of the values (transport). [default: auto]")] = None
    kind: Annotated[
        list[str] | None,
        opt(
            "What a column holds: number, count, yes/no, category, ordered, date, share, "
            "money, identifier or text; can be repeated (transport). [default: recognised]",
            metavar="COLUMN=KIND",
        ),
    ] = None
    scale: Annotated[
        str | None,
        opt(
            "What is done to the scale of columns (transport). [default: auto]",
            metavar="auto|none|standard|robust|log",
        ),
    ] = None
    center: Annotated[
        str | None,
        opt(
            "Whose means are removed first (transport). [default: auto]",
            metavar="auto|none|columns|rows|both",
        ),
    ] = None
    annotate: Annotated[
        list[str] | None,
        opt(
            "Column to keep out of the fit and write beside the clusters of rows; can be repeated.",
            metavar="COLUMN",
        ),
    ] = None
    jobs: Annotated[
        int | None, opt("Threads, at most one for each core; -1: as many. [default: 1]", **CORES)
    ] = None
    raw_names: RawNames = False
    report: Annotated[bool, opt("Write report.html.")] = True
    resume: Annotated[
        bool | None,
        opt("Go on with a fit that was interrupted, or begin anew.", "--resume/--no-resume"),
    ] = None
    dry_run: Annotated[bool, opt("Read, say what would be done, and stop.", "--dry-run")] = False
    quiet: Quiet = False
    as_json: Annotated[bool, opt("Print run.json instead of words.", "--json")] = False


@with_options
def fit(source: Source, asked: FitOptions, read: Reading) -> None:
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
    from ccot.cli.fitting import fit_file

    fit_file(source, asked, read)
