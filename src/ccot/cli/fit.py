"""``ccot fit``: from a file to a folder of results."""

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

    out: Path | None = option("Folder of the results. [default: INPUT-ccot, here]")
    method: Method = option("Which estimator.", default=Method.auto)
    n_row_clusters: int | None = option("Number of row clusters. [default: chosen]", min=1)
    n_column_clusters: int | None = option("Number of column clusters. [default: chosen]", min=1)
    rows: int | None = option("", min=1, hidden=True)
    columns: int | None = option("", min=1, hidden=True)
    seed: int = option("The same seed gives the same result.", default=0, min=0)
    reg: str | None = option("Weight of the entropy, or `cv` to choose it (ccot, ccot-gw).")
    family: Family | None = option("Distribution of the values (transport). [default: auto]")
    kind: list[str] | None = option(
        "Kind of a column: number, count, yes/no, category, ordered, date, share, money, "
        "identifier or text; can be repeated (transport). [default: recognised]",
        metavar="COLUMN=KIND",
    )
    scale: str | None = option(
        "How columns are scaled (transport). [default: auto]",
        metavar="auto|none|standard|robust|log",
    )
    center: str | None = option(
        "Which means are subtracted, of rows, columns or both (transport). [default: auto]",
        metavar="auto|none|columns|rows|both",
    )
    annotate: list[str] | None = option(
        "Column that is not fitted, but written beside the clusters of rows; can be repeated.",
        metavar="COLUMN",
    )
    jobs: int | None = option(
        "Threads, at most one for each core; -1: all cores. [default: 1]", **CORES
    )
    raw_names: RawNames = False
    report: bool = option("Write report.html.", default=True)
    resume: bool | None = option(
        "Continue an interrupted fit, or start again.", "--resume/--no-resume"
    )
    dry_run: bool = option(
        "Read the input, and say what a fit would do.", "--dry-run", default=False
    )
    quiet: Quiet = False
    as_json: bool = option("Print run.json instead of text.", "--json", default=False)


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
