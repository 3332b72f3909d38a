"""Which tables and figures each part of the paper consists of, numbered as in its source."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ccot.experiments import table2
from ccot.experiments.figures import draw_blocks, draw_scalings
from ccot.experiments.page import Picture, Section, write_sections
from ccot.experiments.protocol import Protocol, Trial
from ccot.experiments.summary import Cell, summarise
from ccot.experiments.table1 import make_table1
from ccot.persistence.atomic import write_atomically

PARTS = ("table1", "table2", "figure1", "figure2")
# Parts that rest on trials; the others need nothing but the matrices.
WITH_TRIALS = frozenset({"table2", "figure2", "figure3"})
_OLD_NAMES = {"figure3": "figure2"}


def write_part(name: str, protocol: Protocol, trials: Sequence[Trial], folder: Path) -> Path:
    """Write one part of the paper, or ``"all"``, and return the page."""
    name, cells = _OLD_NAMES.get(name, name), summarise(trials)
    sections = [_section(part, protocol, cells) for part in (PARTS if name == "all" else (name,))]
    if name in ("all", "table2"):
        with write_atomically(folder / "table2_cells.csv", "w") as file:
            file.write(table2.cells_csv(cells))
    stem = "paper" if name == "all" else name
    return write_sections(folder, stem, sections, _settings(protocol, trials))


def _section(part: str, protocol: Protocol, cells: Sequence[Cell]) -> Section:
    if part == "table1":
        return Section("The data", tables=[make_table1()])
    if part == "table2":
        tables = [table2.make_table2(cells), table2.make_table_of_p_values(cells)]
        tables += [table2.make_table_of_right_numbers(cells), table2.make_table_of_seconds(cells)]
        return Section("Errors", tables)
    if part == "figure1":
        caption = "Figure 1: D2, D3 and D4, rows and columns in the order of the true partitions."
        figure = draw_blocks(protocol.overlaps, protocol.seed)
        return Section("The blocks", pictures=[Picture("figure1", caption, figure)])
    caption = (
        "Figure 2: sorted scalings of the rows (a) and columns (b) of D3 by CCOT, as logarithms."
    )
    figure = draw_scalings(protocol.overlaps, protocol.seed, protocol.n_samplings)
    return Section(
        "Numbers of clusters",
        tables=[table2.make_counts(cells)] if cells else [],
        pictures=[Picture("figure2", caption, figure)],
    )


def _settings(protocol: Protocol, trials: Sequence[Trial]) -> list[str]:
    """Say in a few lines how the numbers came about."""
    lines = [
        f"{protocol.n_trials} matrices of each set and overlap, seeds from {protocol.seed}; "
        f"{protocol.n_init} starts of each rival, the best by its own criterion is kept; "
        f"{protocol.n_samplings} draws of CCOT, none on D4, which is square."
    ]
    lines += [f"Versions: {versions}." for versions in dict.fromkeys(t.versions for t in trials)]
    commits = sorted({trial.commit for trial in trials if trial.commit})
    return [*lines, f"Commits: {', '.join(commits)}."] if commits else lines
