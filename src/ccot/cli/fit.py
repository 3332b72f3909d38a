"""``ccot fit``: from a file to a folder of results."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from ccot.cli.options import CORES, Quiet, RawNames, Reading, Source, option, with_options

Method = StrEnum(
    "Method", {"auto": "auto", "ccot": "ccot", "ccot_gw": "ccot-gw", "transport": "transport"}
)
Family = StrEnum("Family", ["auto", "gaussian", "poisson", "bernoulli"])


@dataclass(frozen=True)
class FitOptions:
    """What the user asked for: every attribute is an option of the command line."""

    out: Path | None = option("fit.out")
    method: Method = option("fit.method", default=Method.auto)
    n_row_clusters: int | None = option("fit.n_row_clusters", min=1)
    n_column_clusters: int | None = option("fit.n_column_clusters", min=1)
    rows: int | None = option("fit.rows", min=1, hidden=True)
    columns: int | None = option("fit.columns", min=1, hidden=True)
    seed: int = option("fit.seed", default=0, min=0)
    reg: str | None = option("fit.reg")
    family: Family | None = option("fit.family")
    kind: list[str] | None = option("fit.kind", metavar="COLUMN=KIND")
    scale: str | None = option("fit.scale", metavar="auto|none|standard|robust|log")
    center: str | None = option("fit.center", metavar="auto|none|columns|rows|both")
    annotate: list[str] | None = option("fit.annotate", metavar="COLUMN")
    jobs: int | None = option("fit.jobs", **CORES)
    raw_names: RawNames = False
    report: bool = option("fit.report", default=True)
    resume: bool | None = option("fit.resume", "--resume/--no-resume")
    dry_run: bool = option("fit.dry_run", "--dry-run", default=False)
    quiet: Quiet = False
    as_json: bool = option("fit.as_json", "--json", default=False)


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
