"""``ccot paper``: the paper's tables and figures, computed again."""

from __future__ import annotations

import os
import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ccot.cli.errors import Commands
from ccot.cli.progress import ConsoleProgress

if TYPE_CHECKING:
    from ccot.experiments.protocol import Protocol

app = typer.Typer(
    cls=Commands,
    help="The paper's tables and figures, computed again, beside the paper's own numbers.\n\n"
    "For example: `ccot paper all --quick`. Stopped, the same command goes on where it was.",
    no_args_is_help=True,
)


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
Jobs = Annotated[
    int,
    typer.Option(
        min=-1,
        max=os.cpu_count() or 1,
        clamp=True,
        help="Processes, at most one for each core; -1: as many.",
    ),
]
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
_command("figure1", "Figure 1: D2, D3 and D4, reordered. Up to version 0.1 it was figure2.")
_command("figure2", "Figure 2: scalings of D3, and how often the numbers of clusters are found.")
_command("figure3", "The same as figure2, under its old name.")
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
    with ConsoleProgress().step("fitting") as news:
        page = run(folder, data_home=data_home, seed=seed, quick=quick, progress=news)
    typer.echo(f"{page}")


def _make(name: str, protocol: Protocol, out: Path, jobs: int) -> None:
    """Run what is missing, write the part, say where it is."""
    from ccot.experiments.runner import run_protocol
    from ccot.experiments.sections import WITH_TRIALS, write_part

    trials = []
    if name == "all" or name in WITH_TRIALS:
        try:
            with ConsoleProgress().step("running") as news:
                trials = run_protocol(protocol, out, n_jobs=jobs, progress=news)
        except KeyboardInterrupt:
            kept = f"finished trials are kept in {out}; to go on: {_again()}"
            raise KeyboardInterrupt(kept) from None
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
