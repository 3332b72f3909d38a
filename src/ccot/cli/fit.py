"""``ccot fit``: from a file to a folder of results."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from typer import Option

from ccot.cli.options import Quiet, RawNames, Reading, Source, with_options

Method = StrEnum(
    "Method", {"auto": "auto", "ccot": "ccot", "ccot_gw": "ccot-gw", "transport": "transport"}
)
Family = StrEnum("Family", ["auto", "gaussian", "poisson", "bernoulli"])


@dataclass(frozen=True)
class FitOptions:
    """What the user asked for: every attribute is an option of the command line."""

    out: Annotated[
        Path | None, Option(help="Folder of the results. [default: INPUT-ccot, here]")
    ] = None
    method: Annotated[Method, Option(help="Which estimator.")] = Method.auto
    n_row_clusters: Annotated[
        int | None, Option(min=1, help="Number of row clusters. [default: found]")
    ] = None
    n_column_clusters: Annotated[
        int | None, Option(min=1, help="Number of column clusters. [default: found]")
    ] = None
    rows: Annotated[int | None, Option(min=1, hidden=True)] = None
    columns: Annotated[int | None, Option(min=1, hidden=True)] = None
    seed: Annotated[int, Option(min=0, help="The same seed gives the same result.")] = 0
    reg: Annotated[
        str | None, Option(help="Weight of the entropy, or `cv` to choose it (ccot, ccot-gw).")
    ] = None
    family: Annotated[
        Family | None, Option(help="Law of the values (transport). [default: auto]")
    ] = None
    kind: Annotated[
        list[str] | None,
        Option(
            metavar="COLUMN=KIND",
            help="What a column holds: number, count, yes/no, category, ordered, date, share, "
            "money, identifier or text; can be repeated (transport). [default: recognised]",
        ),
    ] = None
    scale: Annotated[
        str | None,
        Option(
            metavar="auto|none|standard|robust|log",
            help="What is done to the scale of columns (transport). [default: auto]",
        ),
    ] = None
    center: Annotated[
        str | None,
        Option(
            metavar="auto|none|columns|rows|both",
            help="Whose means are removed first (transport). [default: auto]",
        ),
    ] = None
    annotate: Annotated[
        list[str] | None,
        Option(
            metavar="COLUMN",
            help="Column to keep out of the fit and write beside the clusters of rows; can be "
            "repeated.",
        ),
    ] = None
    jobs: Annotated[
        int | None,
        Option(
            min=-1,
            max=os.cpu_count() or 1,
            clamp=True,
            help="Threads, at most one for each core; -1: as many. [default: 1]",
        ),
    ] = None
    raw_names: RawNames = False
    report: Annotated[bool, Option(help="Write report.html.")] = True
    resume: Annotated[
        bool | None,
        Option(
            "--resume/--no-resume", help="Go on with a fit that was interrupted, or begin anew."
        ),
    ] = None
    dry_run: Annotated[
        bool, Option("--dry-run", help="Read, say what would be done, and stop.")
    ] = False
    quiet: Quiet = False
    as_json: Annotated[bool, Option("--json", help="Print run.json instead of words.")] = False


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
