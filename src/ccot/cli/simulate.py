"""``ccot simulate``: matrices whose blocks are known."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from ccot.cli.options import Overlap, Quiet

Dataset = StrEnum("Dataset", {"D1": "D1", "D2": "D2", "D3": "D3", "D4": "D4"})


def simulate(
    name: Annotated[
        Dataset, Argument(metavar="NAME", help="Which of the paper's sets.")
    ] = Dataset.D2,
    out: Annotated[Path | None, Option(help="CSV file to write. [default: NAME.csv, here]")] = None,
    seed: Annotated[int, Option(min=0, help="Seed of the draw.")] = 0,
    overlap: Annotated[Overlap, Option(help="How noisy.")] = Overlap.published,
    sigma: Annotated[
        float | None, Option(min=0, help="Standard deviation of the noise instead.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Write a matrix with known blocks, and its true clusters beside it.

    For example:

    - `ccot simulate D2 --overlap calibrated && ccot fit D2.csv`
    """
    from ccot.cli.results import write_rows
    from ccot.datasets import load_simulated
    from ccot.persistence.atomic import write_atomically

    out = out or Path(f"{name}.csv")
    drawn = load_simulated(name, random_state=seed, overlap=overlap.value, sigma=sigma)
    rows = [f"r{i}" for i in range(drawn.data.shape[0])]
    columns = [f"c{i}" for i in range(drawn.data.shape[1])]
    lines = ([name, *row.tolist()] for name, row in zip(rows, drawn.data, strict=True))
    files: dict[Path, tuple[Any, Any]] = {out: (("", *columns), lines)}
    truth = (("rows", rows, drawn.row_labels), ("columns", columns, drawn.column_labels))
    for side, names, labels in truth:
        path = out.with_name(f"{out.stem}.{side}.csv")
        files[path] = (("name", "cluster"), zip(names, labels.tolist(), strict=True))
    for path, (header, lines) in files.items():
        with write_atomically(path, "w") as file:
            write_rows(file, header, lines)
    if not quiet:
        typer.echo(f"wrote {', '.join(str(path) for path in files)}")
