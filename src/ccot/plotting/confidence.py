"""How sure the cluster of every row and column is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ccot.plotting._shared import attributes, colour_of, count, draw_sides, sizes_of, spans

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ccot.estimators.base import BaseCoclustering


def plot_confidence(
    estimator: BaseCoclustering, ax: Sequence[Axes] | np.ndarray | None = None
) -> np.ndarray:
    """Show how sure the cluster of every row and column is.

    Clusters stand side by side in the order of the other figures, their members from the surest
    to the least sure: a full bar is a cluster without doubt, a falling edge are members in doubt.
    The title tells how many draws found that number of clusters, where draws voted.

    Parameters
    ----------
    estimator : CCOT, CCOTGW or TransportCoclustering
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
    >>> from ccot.plotting import new_figure, plot_confidence
    >>> model = CCOT(random_state=0).fit(load_simulated("D3", random_state=0).data)
    >>> figure, axes = new_figure(1, 2, size=(9, 3))
    >>> plot_confidence(model, axes)[0].get_ylabel()
    'confidence'
    """
    return draw_sides(_draw_confidence, estimator, ax, 3.0, "confidence")


def _draw_confidence(ax: Axes, estimator: BaseCoclustering, side: str) -> None:
    confidence, labels = attributes(estimator, side, "confidence", "labels")
    sizes = sizes_of(estimator, side)
    for k, (start, end) in enumerate(spans(sizes)):
        falling = np.sort(confidence[labels == k])[::-1]
        ax.stairs(falling, np.arange(start, end + 1), fill=True, color=colour_of(k))
    votes = getattr(estimator, f"{side}_cluster_votes_", {})
    ranked = sorted(votes.items(), key=lambda item: -item[1])[:3]
    shares = ", ".join(f"{number} in {share:.0%}" for number, share in ranked)
    ax.set(xlim=(0, len(labels)), ylim=(0, 1.02), xlabel=f"{side}s by cluster")
    voted = f" ({shares} of the draws)" if len(votes) > 1 else ""
    ax.set_title(f"{side}s: {count(len(sizes), 'cluster')}{voted}")
