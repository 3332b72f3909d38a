"""What merging clusters costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ccot.plotting._shared import FAINT, INK, PALETTE, count, draw_sides, whole_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ccot.estimators.base import BaseCoclustering


def plot_merge_costs(
    estimator: BaseCoclustering, ax: Sequence[Axes] | np.ndarray | None = None
) -> np.ndarray:
    """Show what merging clusters costs, and where the merges stopped.

    A point at k is the information lost by merging k clusters into k - 1, on a logarithmic axis.
    Filled points are merges that the chosen number refuses, hollow ones those it grants, and the
    dashed line parts them. The dotted line falls like 1 / (k - 1) from the first merge granted, as
    costs do about where there is no structure: what stands above it on the left is the jump.

    The costs are those of the best start. Jumps are looked for in the mean over all starts, and
    the likelihood may have settled the number instead: ``candidates_`` tells by which criterion.

    Parameters
    ----------
    estimator : TransportCoclustering
        A fitted estimator.
    ax : sequence of two matplotlib.axes.Axes, optional
        Where to draw rows and columns; a new figure by default.

    Returns
    -------
    ndarray of two matplotlib.axes.Axes
        The axes drawn into.

    Examples
    --------
    >>> from ccot import TransportCoclustering
    >>> from ccot.datasets import load_simulated
    >>> from ccot.plotting import new_figure, plot_merge_costs
    >>> noisy = load_simulated("D3", random_state=0, sigma=2.0).data
    >>> model = TransportCoclustering(random_state=0).fit(noisy)
    >>> figure, axes = new_figure(1, 2, size=(9, 3.5))
    >>> [panel.get_title() for panel in plot_merge_costs(model, axes)]
    ['rows: 2 clusters', 'columns: 4 clusters']
    """
    check_is_fitted(estimator)
    if not hasattr(estimator, "row_merge_costs_"):
        raise ValueError(
            f"{type(estimator).__name__} merges nothing: merge costs are those of "
            "TransportCoclustering, plot_scalings shows the steps of the others"
        )
    return draw_sides(_draw_merge_costs, estimator, ax, 3.6, "information lost")


def _draw_merge_costs(ax: Axes, estimator: BaseCoclustering, side: str) -> None:
    costs = getattr(estimator, f"{side}_merge_costs_")
    number = getattr(estimator, f"n_{side}_clusters_")
    merged = np.arange(2, len(costs) + 2)
    shown = costs > 1e-12 * costs.max(initial=0.0)
    refused, granted = shown & (merged <= number), shown & (merged > number)
    if granted.any():
        first = np.argmax(granted)
        decay = costs[first] * (merged[first] - 1) / (merged - 1)
        ax.plot(merged, decay, ":", color=FAINT, linewidth=1)
    ax.plot(merged[refused], costs[refused], "o", color=PALETTE[0], markersize=6)
    ax.plot(merged[granted], costs[granted], "o", mfc="none", mec=FAINT, markersize=5)
    ax.axvline(number + 0.5, color=INK, linewidth=1, linestyle="--")
    if shown.any():
        ax.set_yscale("log")
    ax.set(xlabel=f"{side} clusters before the merge")
    ax.set_title(f"{side}s: {count(number, 'cluster')}")
    whole_ticks(ax.xaxis)
