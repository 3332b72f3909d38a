"""Figures 1 and 2 of the paper: the simulated blocks, and the sorted scalings of CCOT on D3."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ccot.estimators.ccot import CCOT
from ccot.experiments.protocol import OVERLAPS, load_matrix
from ccot.plotting import new_figure, plot_scalings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN = ("D2", "D3", "D4")


def draw_blocks(overlaps: Sequence[str] = OVERLAPS, seed: int = 0) -> Figure:
    """Draw matrices in the order of the true partitions, a row of panels for each overlap."""
    size = (9, 3.2 * len(overlaps))
    figure, axes = new_figure(len(overlaps), len(SHOWN), size=size, squeeze=False)
    for row, overlap in zip(axes, overlaps, strict=True):
        for panel, name in zip(row, SHOWN, strict=True):
            truth = load_matrix(name, overlap, seed)
            rows, columns = np.argsort(truth.row_labels), np.argsort(truth.column_labels)
            panel.imshow(truth.data[rows][:, columns], aspect="auto", interpolation="nearest")
            panel.set_title(f"{name}, σ = {truth.sigma:g}")
            panel.set(xticks=[], yticks=[])
        row[0].set_ylabel(overlap)
    return figure


def draw_scalings(
    overlaps: Sequence[str] = OVERLAPS, seed: int = 0, n_samplings: int = 1000
) -> Figure:
    """Draw the sorted scalings of rows and columns of D3, a row of panels for each overlap."""
    figure, axes = new_figure(len(overlaps), 2, size=(9, 3.4 * len(overlaps)), squeeze=False)
    for row, overlap in zip(axes, overlaps, strict=True):
        model = CCOT(n_samplings=n_samplings, sampling="uniform", random_state=seed)
        plot_scalings(model.fit(load_matrix("D3", overlap, seed).data), row)
        for panel, name in zip(row, "αβ", strict=True):
            steps = panel.get_title().split(": ")[-1]
            panel.set_title(f"{name}, {overlap}: {steps}")
    return figure
