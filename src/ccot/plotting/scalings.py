"""The sorted scalings, with the jumps between steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ccot.plotting._shared import INK, attributes, colour_of, count, draw_sides, whole_ticks
from ccot.scalings.jumps import LEVEL

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ccot.estimators.base import BaseCoclustering

# Strength is minus the decimal logarithm of the bound on a false alarm.
_SIGNIFICANT = -math.log10(LEVEL)


def plot_scalings(
    estimator: BaseCoclustering, ax: Sequence[Axes] | np.ndarray | None = None
) -> np.ndarray:
    """Show the sorted log scalings of rows and of columns, with the jumps between steps.

    Every point is a row (column), in the colour of its cluster. A dashed line is a jump, with the
    bound on the probability that smooth data would show it anywhere; a dotted one is there only
    because that many clusters were asked for. Where points of two colours share a step, draws
    did not agree with the one whose scalings are shown.

    Parameters
    ----------
    estimator : CCOT or CCOTGW
        A fitted estimator.
    ax : sequence of two matplotlib.axes.Axes, optional
        Where to draw rows and columns; a new figure by default.

    Returns
    -------
    ndarray of two matplotlib.axes.Axes
        The axes drawn into.

    Examples
    --------
    >>> from ccot import CCOT
    >>> from ccot.datasets import load_simulated
    >>> from ccot.plotting import new_figure, plot_scalings
    >>> model = CCOT(random_state=0).fit(load_simulated("D3", random_state=0).data)
    >>> figure, axes = new_figure(1, 2, size=(9, 3.5))
    >>> [panel.get_title() for panel in plot_scalings(model, axes)]
    ['rows: 2 steps', 'columns: 4 steps']
    """
    check_is_fitted(estimator)
    if not hasattr(estimator, "row_log_scaling_"):
        raise ValueError(
            f"{type(estimator).__name__} has no scalings to show: plot_merge_costs shows how it "
            "found its numbers of clusters, plot_confidence how sure it is"
        )
    return draw_sides(_draw_scaling, estimator, ax, 3.6, "log scaling")


def _draw_scaling(ax: Axes, estimator: BaseCoclustering, side: str) -> None:
    log_scaling, labels, jumps, strengths = attributes(
        estimator, side, "log_scaling", "labels", "jumps", "jump_strength"
    )
    order = np.argsort(log_scaling, kind="stable")
    ranked = log_scaling[order]
    for k in range(getattr(estimator, f"n_{side}_clusters_")):
        members = np.flatnonzero(labels[order] == k)
        ax.plot(members, ranked[members], ".", color=colour_of(k), markersize=6)
    tested = getattr(estimator, "detector", "multiscale") == "multiscale"
    for jump, strength in zip(jumps.tolist(), strengths.tolist(), strict=True):
        sure = not tested or strength >= _SIGNIFICANT
        ax.axvline(jump - 0.5, color=INK, linewidth=1, linestyle="--" if sure else ":")
    ax.margins(x=0.02, y=0.08)
    if tested and len(jumps) <= 6:
        _name_jumps(ax, jumps, strengths)
    _describe_steps(ax, estimator, side, len(jumps))


def _name_jumps(ax: Axes, jumps: np.ndarray, strengths: np.ndarray) -> None:
    """Write the evidence for each jump where the sorted curve never is: low right, high left."""
    for jump, strength in zip(jumps.tolist(), strengths.tolist(), strict=True):
        exponent = int(min(strength, 999))
        text = rf"$p < 10^{{-{exponent}}}$" if strength >= _SIGNIFICANT else "not significant"
        right = jump - 0.5 < 0.75 * ax.get_xlim()[1]
        ax.annotate(
            text,
            (jump - 0.5, 0.03 if right else 0.93),
            xycoords=("data", "axes fraction"),
            xytext=(3 if right else -3, 0),
            textcoords="offset points",
            ha="left" if right else "right",
            fontsize="small",
            color=INK,
        )


def _describe_steps(ax: Axes, estimator: BaseCoclustering, side: str, n_jumps: int) -> None:
    ax.set_title(f"{side}s: {count(n_jumps + 1, 'step')}")
    ax.set_xlabel(f"{side}s, sorted")
    whole_ticks(ax.xaxis)
    if n_jumps or getattr(estimator, f"n_{side}_clusters") is not None:
        return
    share = getattr(estimator, f"{side}_cluster_votes_").get(1, 0.0)
    text = "no step is significant" + (f" in {share:.0%} of the draws" if share < 0.9 else "")
    ax.text(0.04, 0.92, text, transform=ax.transAxes, color=INK, fontsize="small", va="top")
