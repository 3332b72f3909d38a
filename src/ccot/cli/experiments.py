"""``ccot simulate``, ``demo``, ``bench`` and ``paper``: matrices whose blocks are known."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument

from ccot.cli.errors import Commands
from ccot.cli.options import CORES, Quiet, option

if TYPE_CHECKING:
    from rich.table import Table

    from ccot.experiments.bench.summary import Cell
    from ccot.experiments.protocol import Protocol

# Tables that go into a file or a pipe are not squeezed.
_WIDE = 240

Dataset = StrEnum("Dataset", {"D1": "D1", "D2": "D2", "D3": "D3", "D4": "D4"})
Overlap = StrEnum("Overlap", {"published": "published", "calibrated": "calibrated"})
Profiles = StrEnum("Profiles", ["smoke", "standard", "large"])
Suites = StrEnum("Suites", ["speed", "automatic"])


def simulate(
    name: Annotated[
        Dataset, Argument(metavar="NAME", help="Which of the paper's simulated data sets.")
    ] = Dataset.D2,
    out: Path | None = option("CSV file to write. [default: NAME.csv]"),
    seed: int = option("Seed of the random numbers.", default=0, min=0),
    overlap: Overlap = option("Noise: published or calibrated.", default=Overlap.published),
    sigma: float | None = option("Standard deviation of the noise, instead of --overlap.", min=0),
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


def demo(
    out: Path = option("Folder of the reports.", default=Path("demo-output")),
    seed: int = option("Seed of the random numbers.", default=0, min=0),
) -> None:
    """Co-cluster seven matrices, print the results, and write a report of each.

    Needs no data and no network. Open index.html in the folder to see the reports.

    For example:

    - `ccot demo --out look`
    """
    from ccot.experiments.demo import run_demo

    run_demo(out, seed)


def bench(
    suite: Suites = option(
        "speed: time, memory and error. automatic: quality of the clusters of real matrices when "
        "each method chooses their number.",
        default=Suites.speed,
    ),
    profile: Profiles = option(
        "Size of the suite speed: seconds, ten minutes, or hours and 16 GB of memory.",
        default=Profiles.standard,
    ),
    data: Path | None = option(
        "Folder of KIND/NAME.npz with row_labels, for automatic. [default: two sets that ship]"
    ),
    out: Path = option("JSON file to write.", default=Path("bench.json")),
    rivals: list[str] | None = option(
        "Measure this method only; can be repeated. [default: all installed]", "--rival"
    ),
    quiet: Quiet = False,
) -> None:
    """Measure our estimators and other methods, in turns.

    Every fit runs in a process of its own, on one core. Compare times within one run only.

    For example:

    - `ccot bench --profile smoke`
    - `ccot bench --rival CCOT --rival "POT, plain loop"`
    - `ccot bench --suite automatic --data matrices`
    """
    from rich.console import Console

    from ccot.cli.progress import ConsoleProgress
    from ccot.experiments.bench.suite import automatic_profile, profiles, run_suite

    command = shlex.join(["ccot", *sys.argv[1:]])
    automatic = suite is Suites.automatic
    chosen = automatic_profile(data) if automatic else profiles()[profile]
    with ConsoleProgress(quiet).step("measuring") as step:
        try:
            result = run_suite(chosen, out, only=rivals or (), command=command, progress=step)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"the measurements made so far are in {out}") from None
    if quiet:
        return
    console = Console()
    if not console.is_terminal:
        console.width = _WIDE
    for table in (_score_tables if automatic else _speed_tables)(result):
        console.print(table)
    what, hint = ("package", "") if automatic else ("name", " (pip install 'ccot[rivals]')")
    absent = dict.fromkeys(one[what] for one in result["rivals"] if one["version"] is None)
    if absent:
        typer.echo(f"not installed: {', '.join(absent)}{hint}")
    typer.echo(f"wrote {out}")


def _score_tables(result: dict[str, Any]) -> Iterator[Table]:
    """Yield a table of the mean scores of every rival on every kind of data."""
    from rich.table import Table

    from ccot.experiments.bench.automatic import mean_scores

    kinds = list(dict.fromkeys(case["axis"] for case in result["cases"]))
    title = "NMI / AMI / ARI of row clusters (sets)"
    table = Table("number of clusters chosen by each method", *kinds, title=title)
    for rival, scores in mean_scores(result):
        table.add_row(rival, *(
            "" if s is None else f"{s['nmi']:.3f} / {s['ami']:.3f} / {s['ari']:.3f} ({s['sets']})"
            for s in map(scores.get, kinds)
        ))  # fmt: skip
    yield table


def _speed_tables(result: dict[str, Any]) -> Iterator[Table]:
    """Yield seconds of all cases, axis by axis, with exponents and errors where they tell."""
    from rich.table import Table

    from ccot.experiments.bench.summary import growth, summarise

    cells = summarise(result)
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
        yield table


def _entry(cell: Cell | None) -> str:
    if cell is None:
        return ""
    if cell.seconds is None:
        return cell.status.split(":")[0]
    return f"{cell.seconds:.3f}" + ("" if cell.error is None else f"; {cell.error:.3f}")


class PaperCommands(Commands):
    """Options without a command are those of ``all``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the command before its options."""
        if args and args[0].startswith("-") and args[0] not in ctx.help_option_names:
            args = ["all", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=PaperCommands,
    help="The paper's tables and figures, computed again, beside the paper's own numbers.\n\n"
    "For example: `ccot paper all --quick`. After an interruption, the same command continues.",
    no_args_is_help=True,
)
_OUT = option("Folder of trials, tables and figures. [default: results/paper[-quick]]")
_SEED = option("Seed of the first matrix.", default=0, min=0)
_QUICK = option("Fewer matrices and draws: the same pages in minutes.", "--quick", default=False)


def _command(name: str, text: str) -> None:
    def command(
        out: Path | None = _OUT,
        trials: int | None = option(
            "Matrices of each set and overlap. [default: 100, quick: 10]", min=1
        ),
        samplings: int | None = option("Draws of CCOT. [default: 1000, quick: 100]", min=1),
        n_init: int | None = option("Starts of the other methods. [default: 50, quick: 5]", min=1),
        overlap: list[Overlap] | None = option("One overlap only. [default: both]"),
        methods: str | None = option("Only these methods, separated by commas. [default: all]"),
        seed: int = _SEED,
        jobs: int = option(
            "Processes, at most one for each core; -1: all cores.", default=-1, **CORES
        ),
        quick: bool = _QUICK,
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
        _make(name, protocol, out or _folder(quick), jobs)

    app.command(name, help=text)(command)


_command("table1", "Table 1: the simulated data sets.")
_command("table2", "Table 2: co-clustering errors of all methods, with tests.")
_command("figure1", "Figure 1: D2, D3 and D4, reordered. Up to version 0.1 it was figure2.")
_command("figure2", "Figure 2: scalings of D3, and how often the numbers of clusters are found.")
_command("figure3", "The same as figure2, under its old name.")
_command("all", "All tables and figures on one page.")


@app.command("movielens", help="Section 4.2: MovieLens-100K and its blocks.")
def _movielens(
    out: Path | None = _OUT,
    data_home: Path | None = option("Folder of the original files. [default: download them]"),
    seed: int = _SEED,
    quick: bool = _QUICK,
) -> None:
    from ccot.cli.progress import ConsoleProgress
    from ccot.experiments.movielens import run

    with ConsoleProgress().step("fitting") as step:
        folder = out or _folder(quick)
        page = run(folder, data_home=data_home, seed=seed, quick=quick, progress=step)
    typer.echo(f"{page}")


def _folder(quick: bool) -> Path:
    return Path("results/paper-quick" if quick else "results/paper")


def _make(name: str, protocol: Protocol, out: Path, jobs: int) -> None:
    """Run what is missing, write the part, say where it is."""
    from ccot.cli.progress import ConsoleProgress
    from ccot.experiments.sections import WITH_TRIALS, write_part
    from ccot.experiments.store import run_protocol

    trials = []
    if name == "all" or name in WITH_TRIALS:
        try:
            with ConsoleProgress().step("running") as step:
                trials = run_protocol(protocol, out, n_jobs=jobs, progress=step)
        except KeyboardInterrupt:
            is_script = Path(sys.argv[0]).name == "ccot"
            start = ["ccot"] if is_script else [Path(sys.executable).name, "-m", "ccot"]
            again = shlex.join([*start, *sys.argv[1:]])
            kept = f"finished trials are kept in {out}; to continue: {again}"
            raise KeyboardInterrupt(kept) from None
    typer.echo(f"{write_part(name, protocol, trials, out)}")


def _check_methods(methods: str | None) -> tuple[str, ...]:
    """Return the methods named, in the paper's order and spelling."""
    from ccot.experiments.protocol import METHODS

    if methods is None:
        return METHODS
    wanted = {name.strip().lower() for name in methods.split(",")}
    unknown = wanted - {method.lower() for method in METHODS}
    if unknown:
        raise typer.BadParameter(
            f"unknown method {', '.join(sorted(unknown))}; choose from {', '.join(METHODS)}",
            param_hint="--methods",
        )
    return tuple(method for method in METHODS if method.lower() in wanted)
