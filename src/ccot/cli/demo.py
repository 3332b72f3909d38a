"""``ccot demo``: what the library does, on matrices that need no download."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo")(demo)


def demo(
    out: Annotated[Path, typer.Option(help="Folder of the reports.")] = Path("demo-output"),
    seed: Annotated[int, typer.Option(min=0, help="Seed of matrices and draws.")] = 0,
) -> None:
    """Co-cluster four matrices, say what was found, write a report of each.

    Needs no data and no network. index.html in the folder leads to the reports.

    For example:

    - `ccot demo --out look`
    """
    from ccot.experiments.demo import main

    main(["--out", str(out), "--seed", str(seed)])
