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
    """Draw matrices in the order of the true partitions, a row of panels for each overlap.

    Examples
    --------
    >>> from ccot.experiments.figures import draw_blocks
    >>> [panel.get_title() for panel in draw_blocks(["published"]).axes]
    ['D2, σ = 0.015', 'D3, σ = 0.02', 'D4, σ = 0.015']
    """
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
    """Draw the sorted scalings of rows and columns of D3, a row of panels for each overlap.

    Examples
    --------
    >>> from ccot.experiments.figures import draw_scalings
    >>> [panel.get_title() for panel in draw_scalings(["published"], n_samplings=8).axes]
    ['α, published: 2 steps', 'β, published: 4 steps']
    """
    figure, axes = new_figure(len(overlaps), 2, size=(9, 3.4 * len(overlaps)), squeeze=False)
    for row, overlap in zip(axes, overlaps, strict=True):
        model = CCOT(n_samplings=n_samplings, sampling="uniform", random_state=seed)
        plot_scalings(model.fit(load_matrix("D3", overlap, seed).data), row)
        for panel, name in zip(row, "αβ", strict=True):
            steps = panel.get_title().split(": ")[-1]
            panel.set_title(f"{name}, {overlap}: {steps}")
    return figure
