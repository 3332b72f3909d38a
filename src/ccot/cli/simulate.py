"""``ccot simulate``: matrices whose blocks are known."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from ccot.cli.results import write_rows
from ccot.datasets import load_simulated
from ccot.persistence.atomic import write_atomically


class Dataset(StrEnum):
    """Simulated sets of the paper."""

    D1 = "D1"
    D2 = "D2"
    D3 = "D3"
    D4 = "D4"


class Overlap(StrEnum):
    """How noisy they are."""

    published = "published"
    calibrated = "calibrated"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("simulate")(simulate)


def simulate(
    name: Annotated[Dataset, typer.Argument(metavar="NAME", help="Which of the paper's sets.")] = (
        Dataset.D2
    ),
    out: Annotated[
        Path | None, typer.Option(help="CSV file to write. [default: NAME.csv, here]")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draw.")] = 0,
    overlap: Annotated[Overlap, typer.Option(help="How noisy.")] = Overlap.published,
    sigma: Annotated[
        float | None, typer.Option(min=0, help="Standard deviation of the noise instead.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")] = False,
) -> None:
    """Write a matrix with known blocks, and its true clusters beside it.

    For example:

    - `ccot simulate D2 --overlap calibrated && ccot fit D2.csv`
    """
    out = out or Path(f"{name}.csv")
    drawn = load_simulated(name, random_state=seed, overlap=overlap.value, sigma=sigma)
    row_names = [f"r{place}" for place in range(drawn.data.shape[0])]
    column_names = [f"c{place}" for place in range(drawn.data.shape[1])]
    files = {
        out: (("", *column_names), _lines(row_names, drawn.data)),
        _beside(out, "rows"): (
            ("name", "cluster"),
            zip(row_names, drawn.row_labels.tolist(), strict=True),
        ),
        _beside(out, "columns"): (
            ("name", "cluster"),
            zip(column_names, drawn.column_labels.tolist(), strict=True),
        ),
    }
    for path, (header, lines) in files.items():
        with write_atomically(path, "w") as file:
            write_rows(file, header, lines)
    if not quiet:
        typer.echo(f"wrote {', '.join(str(path) for path in files)}")


def _lines(names: list[str], data: np.ndarray):
    return ([name, *row.tolist()] for name, row in zip(names, data, strict=True))


def _beside(path: Path, what: str) -> Path:
    return path.with_name(f"{path.stem}.{what}.csv")
