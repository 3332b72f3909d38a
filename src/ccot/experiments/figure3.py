"""Figure 3: the sorted scalings of CCOT on D3, and how often the numbers of clusters are found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ccot.datasets import load_simulated
from ccot.estimators.ccot import CCOT
from ccot.experiments.protocol import OVERLAPS, RIVALS
from ccot.experiments.published import FIGURE3
from ccot.experiments.summary import Cell
from ccot.experiments.tables import Table
from ccot.plotting import new_figure, plot_scalings

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_figure3(
    overlaps: Sequence[str] = OVERLAPS, seed: int = 0, n_samplings: int = 1000
) -> Figure:
    """Draw the sorted scalings of rows and columns of D3, a row of panels for each overlap.

    Examples
    --------
    >>> from ccot.experiments.figure3 import draw_figure3
    >>> [panel.get_title() for panel in draw_figure3(["published"], n_samplings=8).axes]
    ['α, published: 2 steps', 'β, published: 4 steps']
    """
    figure, axes = new_figure(len(overlaps), 2, size=(9, 3.4 * len(overlaps)), squeeze=False)
    for row, overlap in zip(axes, overlaps, strict=True):
        truth = load_simulated("D3", random_state=seed, overlap=overlap)  # type: ignore[arg-type]
        model = CCOT(n_samplings=n_samplings, sampling="uniform", random_state=seed)
        plot_scalings(model.fit(truth.data), row)
        for panel, name in zip(row, "αβ", strict=True):
            steps = panel.get_title().split(": ")[-1]
            panel.set_title(f"{name}, {overlap}: {steps}")
    return figure


def make_figure3_counts(cells: Sequence[Cell]) -> Table:
    """Return how often each method that finds its numbers found the true ones, and the paper's."""
    finders = [cell for cell in cells if cell.method not in RIVALS]
    methods = list(dict.fromkeys(cell.method for cell in finders))
    overlaps = list(dict.fromkeys(cell.overlap for cell in finders))
    seen = {(c.data_set, c.overlap, c.method): c for c in finders}
    rows = []
    for data_set in dict.fromkeys(cell.data_set for cell in finders):
        counts = [FIGURE3[method][data_set] if method in FIGURE3 else None for method in methods]
        rows.append([f"{data_set}, paper", *(f"{c[0]} / {c[1]}" if c else "" for c in counts)])
        for overlap in overlaps:
            measured = [seen[data_set, overlap, method] for method in methods]
            shares = [(_percent(c.rows_right, c), _percent(c.columns_right, c)) for c in measured]
            rows.append([f"{data_set}, {overlap}", *(f"{g} / {m}" for g, m in shares)])
    return Table(
        name="figure3_counts",
        caption="Figure 3c: true number of row / column clusters found, in per cent of the trials",
        heads=("data set, overlap", *methods),
        rows=rows,
        groups=1 + len(overlaps),
    )


def _percent(count: int, cell: Cell) -> str:
    return f"{100 * count / cell.n_trials:.0f}"
