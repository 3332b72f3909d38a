"""``ccot bench``: our estimators beside their rivals, on this machine."""

from __future__ import annotations

import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from ccot.cli.options import Quiet

if TYPE_CHECKING:
    from ccot.experiments.bench.summary import Cell

# Tables that go into a file or a pipe are not squeezed.
_WIDE = 240

Profiles = StrEnum("Profiles", ["smoke", "standard", "large"])


def bench(
    profile: Annotated[
        Profiles, Option(help="How much: seconds, ten minutes, or hours and 16 GB of memory.")
    ] = Profiles.standard,
    out: Annotated[Path, Option(help="JSON file to write.")] = Path("bench.json"),
    rivals: Annotated[
        list[str] | None,
        Option("--rival", help="This one only; can be repeated. [default: all installed]"),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Measure time, memory and error of our estimators and their rivals, in turns.

    Every fit runs in a process of its own, on one core. Compare times within one run only.

    For example:

    - `ccot bench --profile smoke`
    - `ccot bench --rival CCOT --rival "POT, plain loop"`
    """
    from ccot.cli.progress import ConsoleProgress
    from ccot.experiments.bench.suite import profiles, run_suite
    from ccot.experiments.bench.summary import summarise

    command = shlex.join(["ccot", *sys.argv[1:]])
    chosen = profiles()[profile]
    with ConsoleProgress(quiet).step("measuring") as step:
        try:
            result = run_suite(chosen, out, only=rivals or (), command=command, progress=step)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"what was measured before is in {out}") from None
    if not quiet:
        _show(result, summarise(result))
        typer.echo(f"wrote {out}")


def _show(result: dict[str, Any], cells: list[Cell]) -> None:
    """Print seconds of all cases, axis by axis, with exponents and errors where they tell."""
    from rich.console import Console
    from rich.table import Table

    from ccot.experiments.bench.summary import growth

    console = Console()
    if not console.is_terminal:
        console.width = _WIDE
    for axis in dict.fromkeys(cell.axis for cell in cells):
        here = {(cell.rival, cell.case): cell for cell in cells if cell.axis == axis}
        cases = list(dict.fromkeys(case for _, case in here))
        grows = len(cases) > 1 and axis != "paper"
        table = Table(title=f"{axis}: seconds; error")
        table.add_column("rival", overflow="fold")
        for head in (*cases, *(["exponent of time"] if grows else [])):
            table.add_column(head, justify="right")
        for rival in dict.fromkeys(rival for rival, _ in here):
            entries = [_entry(here.get((rival, case))) for case in cases]
            exponent = growth(cells, rival, axis, "seconds").exponent if grows else None
            table.add_row(rival, *entries, *([] if exponent is None else [f"{exponent:.2f}"]))
        console.print(table)
    absent = [rival["name"] for rival in result["rivals"] if rival["version"] is None]
    if absent:
        console.print(f"not installed: {', '.join(absent)} (pip install 'ccot[rivals]')")


def _entry(cell: Cell | None) -> str:
    if cell is None:
        return ""
    if cell.seconds is None:
        return cell.status.split(":")[0]
    return f"{cell.seconds:.3f}" + ("" if cell.error is None else f"; {cell.error:.3f}")
