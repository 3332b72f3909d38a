"""Which tables and figures each part of the paper consists of, numbered as in its source."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ccot.experiments import table2
from ccot.experiments.figures import draw_blocks, draw_scalings
from ccot.experiments.page import Section, write_sections
from ccot.experiments.protocol import Protocol, Trial
from ccot.experiments.summary import Cell, summarise
from ccot.experiments.table1 import make_table1
from ccot.experiments.tables import TEXTS
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
        blocks = draw_blocks(protocol.overlaps, protocol.seed)
        return Section("The blocks", pictures={"figure1": blocks})
    figure = draw_scalings(protocol.overlaps, protocol.seed, protocol.n_samplings)
    tables = [table2.make_counts(cells)] if cells else []
    return Section("Numbers of clusters", tables, {"figure2": figure})


def _settings(protocol: Protocol, trials: Sequence[Trial]) -> list[str]:
    """Say in a few lines how the numbers came about."""
    lines = [TEXTS["notes"]["protocol"].format(**vars(protocol))]
    lines += [f"Versions: {versions}." for versions in dict.fromkeys(t.versions for t in trials)]
    commits = sorted({trial.commit or "not recorded" for trial in trials})
    return [*lines, f"Commits: {', '.join(commits)}."] if commits else lines
