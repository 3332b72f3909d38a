"""``ccot demo``: what the library does, on matrices that need no download."""

from pathlib import Path
from typing import Annotated

from typer import Option


def demo(
    out: Annotated[Path, Option(help="Folder of the reports.")] = Path("demo-output"),
    seed: Annotated[int, Option(min=0, help="Seed of matrices and draws.")] = 0,
) -> None:
    """Co-cluster four matrices, say what was found, write a report of each.

    Needs no data and no network. index.html in the folder leads to the reports.

    For example:

    - `ccot demo --out look`
    """
    from ccot.experiments.demo import main

    main(["--out", str(out), "--seed", str(seed)])
