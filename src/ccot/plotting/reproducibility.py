"""How well every number of clusters comes back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ccot.plotting._shared import FAINT, INK, PALETTE, count, draw_sides, whole_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ccot.estimators.base import BaseCoclustering


def plot_reproducibility(
    estimator: BaseCoclustering, ax: Sequence[Axes] | np.ndarray | None = None
) -> np.ndarray:
    """Show how well every number of clusters comes back.

    The line is the agreement of two halves of the data, adjusted for chance, and the bars are its
    spread over the splits. The dashed line is at the fitted number; the numbers that come back as
    well are shaded.

    Parameters
    ----------
    estimator : TransportCoclustering
        A fitted estimator with ``reproducibility_`` of at least one side.
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
    >>> from ccot.plotting import new_figure, plot_reproducibility
    >>> matrix = load_simulated("D1", random_state=0, overlap="calibrated").data
    >>> model = TransportCoclustering(criterion="reproducibility", random_state=0).fit(matrix)
    >>> figure, axes = new_figure(1, 2, size=(9, 3.5))
    >>> plot_reproducibility(model, axes)[0].get_ylabel()
    'agreement of halves'
    """
    check_is_fitted(estimator)
    both = getattr(estimator, "reproducibility_", None)
    if both is None or (both.row is None and both.column is None):
        raise ValueError(
            "reproducibility was not looked into: fit TransportCoclustering with "
            'criterion="reproducibility"'
        )
    return draw_sides(_draw_reproducibility, estimator, ax, 3.6, "agreement of halves")


def _draw_reproducibility(ax: Axes, estimator: Any, side: str) -> None:
    curve = getattr(estimator.reproducibility_, side)
    ax.set(xlabel=f"{side} clusters", ylim=(-0.05, 1.05))
    if curve is None:
        ax.set_title(f"{side}s: not looked into")
        return
    low, high = curve.plausible
    ax.axvspan(low - 0.5, high + 0.5, color=FAINT, alpha=0.2, linewidth=0)
    ax.errorbar(curve.numbers, curve.mean, curve.spread, color=PALETTE[0], marker="o", capsize=2)
    ax.axvline(curve.n_clusters, color=INK, linewidth=1, linestyle="--")
    ax.set_title(f"{side}s: {count(curve.n_clusters, 'cluster')}")
    whole_ticks(ax.xaxis)
