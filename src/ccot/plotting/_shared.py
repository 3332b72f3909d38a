"""Palette, axes and the small pieces that several figures use; the only import of matplotlib."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ccot.coclustering import Partition
from ccot.estimators.base import BaseCoclustering
from ccot.estimators.described import count as count
from ccot.io.binary import check_installed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    # Two axes, for rows and for columns.
    Panels = Sequence[Axes] | np.ndarray
else:
    Axes = Figure = Panels = Any  # matplotlib is optional

# Of Okabe and Ito, for people with any kind of colour vision; the ninth cluster begins it again.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#666666", "#F0E442")
INK, FAINT = "#222222", "#8a8a8a"
SIDES = ("row", "column")


def new_figure(
    n_rows: int = 1, n_columns: int = 1, *, size: tuple[float, float] = (6.4, 4.8), **subplots: Any
) -> tuple[Figure, Any]:
    """Make a figure that no window manager knows about, for files rather than screens.

    Parameters
    ----------
    n_rows, n_columns, size : int, default=1; tuple of two floats, default=(6.4, 4.8)
        Grid of axes; width and height in inches.
    **subplots
        Passed to :meth:`matplotlib.figure.Figure.subplots`.

    Returns
    -------
    figure, axes : matplotlib.figure.Figure; matplotlib.axes.Axes or ndarray of Axes
        Save the figure with ``figure.savefig``.

    Examples
    --------
    >>> from ccot.plotting import new_figure
    >>> figure, (left, right) = new_figure(1, 2)
    """
    figure = matplotlib_module("figure").Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(n_rows, n_columns, **subplots)


def matplotlib_module(module: str) -> Any:
    """Return a module of matplotlib, or say how to install it."""
    check_installed("matplotlib", "figures", "report")
    return importlib.import_module(f"matplotlib.{module}")


def new_axes(n_columns: int, size: tuple[float, float]) -> Any:
    """Return axes of a figure that notebooks and interactive shells will show."""
    return matplotlib_module("pyplot").subplots(1, n_columns, figsize=size, layout="constrained")[1]


def draw_sides(
    draw: Callable[..., None], estimator: Any, ax: Panels | None, height: float, ylabel: str
) -> np.ndarray:
    """Return two axes, of a new figure where none are given, with rows and columns drawn."""
    ax = new_axes(2, (9.0, height)) if ax is None else ax
    panels = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
    if len(panels) != 2:
        raise ValueError(f"ax must hold two axes, for rows and for columns, not {len(panels)}")
    for panel, side in zip(panels, SIDES, strict=True):
        draw(panel, estimator, side)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel(ylabel)
    return panels


def sizes_of(estimator: BaseCoclustering, side: str) -> np.ndarray:
    """Return the sizes of the clusters of one side; columns left out (-1) are in none."""
    labels, number = (getattr(estimator, f"{a}_") for a in (f"{side}_labels", f"n_{side}_clusters"))
    return Partition(labels=labels, n_clusters=number).sizes()


def spans(sizes: np.ndarray) -> list[tuple[int, int]]:
    """Return where each cluster begins and ends once points are ordered by cluster."""
    return list(pairwise([0, *np.cumsum(sizes).tolist()]))


def colour_of(cluster: int) -> str:
    """Return the colour of a cluster."""
    return PALETTE[cluster % len(PALETTE)]


def without_frame(ax: Axes) -> None:
    """Remove frame and tick marks; labels stay."""
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
