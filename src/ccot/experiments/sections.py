"""Table 1, figures 1 and 2, and what each part of the paper consists of, numbered as there."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ccot.estimators.ccot import CCOT
from ccot.experiments import table2
from ccot.experiments.page import Section, write_sections
from ccot.experiments.protocol import DATA_SETS, OVERLAPS, Protocol, Trial, load_matrix
from ccot.experiments.published import TABLE1
from ccot.experiments.summary import Cell, summarise
from ccot.experiments.tables import TEXTS, Table, worded_table
from ccot.persistence.atomic import write_file
from ccot.plotting import new_figure, plot_scalings
from ccot.plotting._shared import Figure

PARTS = ("table1", "table2", "figure1", "figure2")
# Parts that rest on trials; the others need nothing but the matrices.
WITH_TRIALS = frozenset({"table2", "figure2", "figure3"})
_OLD_NAMES = {"figure3": "figure2"}


def write_part(name: str, protocol: Protocol, trials: Sequence[Trial], folder: Path) -> Path:
    """Write one part of the paper, or ``"all"``, and return the page."""
    name, cells = _OLD_NAMES.get(name, name), summarise(trials)
    sections = [_section(part, protocol, cells) for part in (PARTS if name == "all" else (name,))]
    if name in ("all", "table2"):
        write_file(folder / "table2_cells.csv", table2.cells_csv(cells))
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
        return Section("The blocks", pictures={"figure1": draw_blocks(protocol)})
    tables = [table2.make_counts(cells)] if cells else []
    return Section("Numbers of clusters", tables, {"figure2": draw_scalings(protocol)})


def _settings(protocol: Protocol, trials: Sequence[Trial]) -> list[str]:
    """Say in a few lines how the numbers came about."""
    lines = [TEXTS["notes"]["protocol"].format(**vars(protocol))]
    lines += [f"Versions: {versions}." for versions in dict.fromkeys(t.versions for t in trials)]
    commits = sorted({trial.commit or "not recorded" for trial in trials})
    return [*lines, f"Commits: {', '.join(commits)}."] if commits else lines


def make_table1() -> Table:
    """Return the data sets, the paper's words beside the parameters used here."""
    rows = []
    for name in DATA_SETS:
        paper = TABLE1[name]
        printed = paper.overlapping, paper.proportions, paper.proportions
        rows.append((f"{name}, paper", _product(paper.size), _product(paper.blocks), *printed))
        first, *_ = sets = [load_matrix(name, overlap, 0) for overlap in OVERLAPS]
        sigma = "σ " + " / ".join(f"{blocks.sigma:g}" for blocks in sets)
        shares = _shares(first.row_proportions), _shares(first.column_proportions)
        sizes = _product(first.data.shape), _product(first.block_means.shape)
        rows.append((f"{name}, here", *sizes, sigma, *shares))
    return worded_table("table1", rows, groups=2, overlaps=" / ".join(OVERLAPS))


def _product(numbers: Sequence[int]) -> str:
    return " × ".join(map(str, numbers))


def _shares(proportions: np.ndarray) -> str:
    if np.ptp(proportions) < 1e-12:
        return "equal"
    return " ".join(f"{share:g}".removeprefix("0") for share in proportions)


def draw_blocks(protocol: Protocol) -> Figure:
    """Draw matrices in the order of the true partitions, a row of panels for each overlap."""
    names, n_overlaps = ("D2", "D3", "D4"), len(protocol.overlaps)
    size = (9, 3.2 * n_overlaps)
    figure, axes = new_figure(n_overlaps, len(names), size=size, squeeze=False)
    for row, overlap in zip(axes, protocol.overlaps, strict=True):
        for panel, name in zip(row, names, strict=True):
            truth = load_matrix(name, overlap, protocol.seed)
            rows, columns = np.argsort(truth.row_labels), np.argsort(truth.column_labels)
            panel.imshow(truth.data[rows][:, columns], aspect="auto", interpolation="nearest")
            panel.set_title(f"{name}, σ = {truth.sigma:g}")
            panel.set(xticks=[], yticks=[])
        row[0].set_ylabel(overlap)
    return figure


def draw_scalings(protocol: Protocol) -> Figure:
    """Draw the sorted scalings of rows and columns of D3, a row of panels for each overlap."""
    n_overlaps, seed = len(protocol.overlaps), protocol.seed
    figure, axes = new_figure(n_overlaps, 2, size=(9, 3.4 * n_overlaps), squeeze=False)
    for row, overlap in zip(axes, protocol.overlaps, strict=True):
        model = CCOT(n_samplings=protocol.n_samplings, sampling="uniform", random_state=seed)
        plot_scalings(model.fit(load_matrix("D3", overlap, seed).data), row)
        for panel, name in zip(row, "αβ", strict=True):
            panel.set_title(f"{name}, {overlap}: {panel.get_title().split(': ')[-1]}")
    return figure
