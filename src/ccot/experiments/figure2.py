"""Figure 2: D2, D3 and D4 with their rows and columns in the order of the true partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ccot.datasets import load_simulated
from ccot.experiments.protocol import OVERLAPS
from ccot.plotting import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN = ("D2", "D3", "D4")


def draw_figure2(overlaps: Sequence[str] = OVERLAPS, seed: int = 0) -> Figure:
    """Draw the reordered matrices, a row of panels for each overlap.

    Examples
    --------
    >>> from ccot.experiments.figure2 import draw_figure2
    >>> [panel.get_title() for panel in draw_figure2(["published"]).axes]
    ['D2, σ = 0.015', 'D3, σ = 0.02', 'D4, σ = 0.015']
    """
    figure, axes = new_figure(
        len(overlaps), len(SHOWN), size=(9, 3.2 * len(overlaps)), squeeze=False
    )
    for row, overlap in zip(axes, overlaps, strict=True):
        for panel, name in zip(row, SHOWN, strict=True):
            truth = load_simulated(name, random_state=seed, overlap=overlap)  # type: ignore[arg-type]
            rows, columns = np.argsort(truth.row_labels), np.argsort(truth.column_labels)
            panel.imshow(truth.data[rows][:, columns], aspect="auto", interpolation="nearest")
            panel.set_title(f"{name}, σ = {truth.sigma:g}")
            panel.set(xticks=[], yticks=[])
        row[0].set_ylabel(overlap)
    return figure
