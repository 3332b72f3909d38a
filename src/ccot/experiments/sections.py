"""Which tables and figures each part of the paper consists of."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ccot.experiments.figure2 import draw_figure2
from ccot.experiments.figure3 import draw_figure3, make_figure3_counts
from ccot.experiments.page import Picture, Section, write_sections
from ccot.experiments.protocol import RIVALS, Protocol, Trial
from ccot.experiments.summary import Cell, summarise
from ccot.experiments.table1 import make_table1
from ccot.experiments.table2 import (
    cells_csv,
    make_table2,
    make_table_of_all,
    make_table_of_p_values,
    make_table_of_seconds,
)
from ccot.persistence.atomic import write_atomically

PARTS = ("table1", "table2", "figure2", "figure3")
# Parts that rest on trials; the others need nothing but the matrices.
WITH_TRIALS = frozenset({"table2", "figure3"})


def write_part(name: str, protocol: Protocol, trials: Sequence[Trial], folder: Path) -> Path:
    """Write one part of the paper, or ``"all"``, and return the page.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from ccot.experiments.protocol import Protocol
    >>> from ccot.experiments.sections import write_part
    >>> with TemporaryDirectory() as folder:
    ...     page = write_part("table1", Protocol(), [], Path(folder))
    ...     sorted(file.name for file in page.parent.iterdir())
    ['table1.csv', 'table1.html', 'table1.md', 'table1.tex']
    """
    cells = summarise(trials)
    make = {
        "table1": lambda: _table1(),
        "table2": lambda: _table2(cells),
        "figure2": lambda: _figure2(protocol),
        "figure3": lambda: _figure3(protocol, cells),
    }
    sections = [make[part]() for part in (PARTS if name == "all" else (name,))]
    if name in ("all", "table2"):
        with write_atomically(folder / "table2_cells.csv", "w") as file:
            file.write(cells_csv(cells))
    stem = "paper" if name == "all" else name
    return write_sections(folder, stem, sections, _settings(protocol, trials))


def _table1() -> Section:
    return Section("The data", tables=[make_table1()])


def _table2(cells: Sequence[Cell]) -> Section:
    return Section(
        "Errors",
        tables=[
            make_table2(cells),
            make_table_of_all(cells),
            make_table_of_p_values(cells),
            make_table_of_seconds(cells),
        ],
    )


def _figure2(protocol: Protocol) -> Section:
    caption = "Figure 2: D2, D3 and D4, rows and columns in the order of the true partitions."
    figure = draw_figure2(protocol.overlaps, protocol.seed)
    return Section("The blocks", pictures=[Picture("figure2", caption, figure)])


def _figure3(protocol: Protocol, cells: Sequence[Cell]) -> Section:
    caption = (
        "Figure 3: sorted scalings of the rows (a) and columns (b) of D3 by CCOT, as logarithms."
    )
    figure = draw_figure3(protocol.overlaps, protocol.seed, protocol.n_samplings)
    return Section(
        "Numbers of clusters",
        tables=[make_figure3_counts(cells)] if cells else [],
        pictures=[Picture("figure3", caption, figure)],
    )


def _settings(protocol: Protocol, trials: Sequence[Trial]) -> list[str]:
    """Say in a few lines how the numbers came about."""
    lines = [
        f"{protocol.n_trials} matrices of each set and overlap, seeds from {protocol.seed}; "
        f"{protocol.n_init} starts of each rival, the best by its own criterion is kept; "
        f"{protocol.n_samplings} draws of CCOT, none on D4, which is square."
    ]
    if any(trial.method in RIVALS and not trial.converged for trial in trials):
        stopped = sum(trial.method in RIVALS and not trial.converged for trial in trials)
        rivals = sum(trial.method in RIVALS for trial in trials)
        lines.append(f"{stopped} of {rivals} trials of rivals stopped at their iteration limit.")
    lines += [f"Versions: {versions}." for versions in dict.fromkeys(t.versions for t in trials)]
    return lines
