"""``ccot paper``: the paper's tables and figures, computed again."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ccot.experiments.protocol import Protocol

app = typer.Typer(
    help="The paper's tables and figures, computed again, beside the paper's own numbers.",
    no_args_is_help=True,
)
# Without a terminal to draw a bar in, a line now and then says how far it is.
_SECONDS_BETWEEN_LINES = 30.0


class Overlap(StrEnum):
    """How noisy the simulated matrices are."""

    published = "published"
    calibrated = "calibrated"


Out = Annotated[
    Path | None,
    typer.Option(help="Folder of trials, tables and figures. [default: results/paper[-quick]]"),
]
Trials = Annotated[
    int | None,
    typer.Option(min=1, help="Matrices of each set and overlap. [default: 100, quick: 10]"),
]
Samplings = Annotated[
    int | None, typer.Option(min=1, help="Draws of CCOT. [default: 1000, quick: 100]")
]
Starts = Annotated[
    int | None, typer.Option(min=1, help="Starts of each rival. [default: 50, quick: 5]")
]
Overlaps = Annotated[
    list[Overlap] | None, typer.Option("--overlap", help="One overlap only. [default: both]")
]
Methods = Annotated[
    str | None, typer.Option(help="Some methods only, with commas between. [default: all]")
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the first matrix.")]
Jobs = Annotated[int, typer.Option(help="Processes; -1: one for each core.")]
Quick = Annotated[bool, typer.Option("--quick", help="The same pages in minutes.")]


def _command(name: str, text: str) -> None:
    def command(
        out: Out = None,
        trials: Trials = None,
        samplings: Samplings = None,
        n_init: Starts = None,
        overlap: Overlaps = None,
        methods: Methods = None,
        seed: Seed = 0,
        jobs: Jobs = -1,
        quick: Quick = False,
    ) -> None:
        from ccot.experiments.protocol import OVERLAPS, Protocol

        usual = (10, 100, 5) if quick else (100, 1000, 50)
        protocol = Protocol(
            n_trials=trials or usual[0],
            n_samplings=samplings or usual[1],
            n_init=n_init or usual[2],
            overlaps=tuple(dict.fromkeys(overlap)) if overlap else OVERLAPS,
            methods=_check_methods(methods),
            seed=seed,
        )
        _make(
            name, protocol, out or Path("results/paper-quick" if quick else "results/paper"), jobs
        )

    app.command(name, help=text)(command)


_command("table1", "Table 1: the simulated data sets.")
_command("table2", "Table 2: co-clustering errors of all methods, with tests.")
_command("figure2", "Figure 2: D2, D3 and D4, reordered.")
_command("figure3", "Figure 3: scalings of D3, and how often the numbers of clusters are found.")
_command("all", "All tables and figures on one page.")


@app.command("movielens", help="Section 4.2: MovieLens-100K, and what its blocks mean.")
def _movielens(
    out: Out = None,
    data_home: Annotated[
        Path | None, typer.Option(help="Folder of the original files. [default: download them]")
    ] = None,
    seed: Seed = 0,
    quick: Quick = False,
) -> None:
    from ccot.experiments.movielens import run

    folder = out or Path("results/paper-quick" if quick else "results/paper")
    try:
        page = run(
            folder,
            data_home=data_home,
            seed=seed,
            quick=quick,
            report=lambda line: typer.echo(f"fitting {line}" if line != "page" else line, err=True),
        )
    except (ImportError, OSError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from None
    typer.echo(f"{page}")


def _make(name: str, protocol: Protocol, out: Path, jobs: int) -> None:
    """Run what is missing, write the part, say where it is."""
    from ccot.experiments.runner import run_protocol
    from ccot.experiments.sections import WITH_TRIALS, write_part

    trials = []
    if name == "all" or name in WITH_TRIALS:
        try:
            with _progress() as report:
                trials = run_protocol(protocol, out, n_jobs=jobs, report=report)
        except KeyboardInterrupt:
            typer.echo(f"\nstopped; finished trials are kept in {out}. To go on:\n  {_again()}")
            raise typer.Exit(130) from None
        except (ImportError, RuntimeError) as error:
            typer.echo(f"error: {error}", err=True)
            raise typer.Exit(1) from None
    page = write_part(name, protocol, trials, out)
    typer.echo(f"{page}")


def _check_methods(methods: str | None) -> tuple[str, ...]:
    """Return the methods named, in the paper's order and spelling."""
    from ccot.experiments.protocol import METHODS

    if methods is None:
        return METHODS
    wanted = {name.strip().lower() for name in methods.split(",")}
    unknown = wanted - {method.lower() for method in METHODS}
    if unknown:
        raise typer.BadParameter(
            f"no method is called {', '.join(sorted(unknown))}; there are {', '.join(METHODS)}",
            param_hint="--methods",
        )
    return tuple(method for method in METHODS if method.lower() in wanted)


def _again() -> str:
    """Return the command line that was given."""
    program = Path(sys.argv[0]).name
    start = ["ccot"] if program == "ccot" else [Path(sys.executable).name, "-m", "ccot.cli"]
    return shlex.join([*start, *sys.argv[1:]])


@contextmanager
def _progress() -> Iterator[Callable[[int, int, float | None], None]]:
    """Show trials done, left, and the time they will take."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines()
        return
    columns = (
        TextColumn("{task.completed} of {task.total} trials"),
        BarColumn(),
        TextColumn("{task.fields[left]}"),
    )
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("trials", total=None, left="")

        def report(done: int, total: int, left: float | None) -> None:
            text = f"{total - done} left, {_duration(left)}"
            progress.update(bar, completed=done, total=total, left=text)

        yield report


def _lines() -> Callable[[int, int, float | None], None]:
    last = 0.0

    def report(done: int, total: int, left: float | None) -> None:
        nonlocal last
        now = time.monotonic()
        if done == total or now - last > _SECONDS_BETWEEN_LINES:
            last = now
            typer.echo(
                f"{done} of {total} trials, {total - done} left, {_duration(left)}", err=True
            )

    return report


def _duration(seconds: float | None) -> str:
    """Return a time to go in words.

    Examples
    --------
    >>> _duration(None), _duration(75), _duration(7500)
    ('time to go not known yet', '1 min 15 s to go', '2 h 5 min to go')
    """
    if seconds is None:
        return "time to go not known yet"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min to go"
    return f"{minutes} min {rest} s to go" if minutes else f"{rest} s to go"
