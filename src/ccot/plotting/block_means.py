"""The mean of every block."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ccot.plotting._shared import new_axes, sizes_of, without_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ccot.estimators.base import BaseCoclustering


def plot_block_means(
    estimator: BaseCoclustering, ax: Axes | None = None, *, cmap: str = "viridis"
) -> Axes:
    """Show the mean of every block.

    Parameters
    ----------
    estimator : CCOT, CCOTGW or TransportCoclustering
        An estimator fitted to a matrix.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.
    cmap : str, default="viridis"
        Colour map.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn into.

    Examples
    --------
    >>> from ccot import CCOT
    >>> from ccot.datasets import load_simulated
    >>> from ccot.plotting import new_figure, plot_block_means
    >>> model = CCOT(random_state=0).fit(load_simulated("D3", random_state=0).data)
    >>> figure, ax = new_figure()
    >>> plot_block_means(model, ax).get_title()
    'means of 2 x 4 blocks'
    """
    check_is_fitted(estimator)
    if not hasattr(estimator, "block_means_"):
        raise ValueError(
            "the estimator has no block means: it was fitted to similarities, not to a matrix"
        )
    means = estimator.block_means_
    if ax is None:
        ax = new_axes((1.9 + 0.9 * means.shape[1], 1.3 + 0.6 * means.shape[0]))
    shown = ax.imshow(means, cmap=cmap, aspect="auto")
    for (row, column), mean in np.ndenumerate(means):
        if np.isfinite(mean):
            red, green, blue, _ = shown.to_rgba(np.array([mean]))[0]
            bright = 0.3 * red + 0.59 * green + 0.11 * blue > 0.55
            colour = "black" if bright else "white"
            ax.text(column, row, f"{mean:.3g}", ha="center", va="center", color=colour)
    for axis, side in ((ax.yaxis, "row"), (ax.xaxis, "column")):
        sizes = sizes_of(estimator, side)
        axis.set_ticks(np.arange(len(sizes)), [f"{k} ({size})" for k, size in enumerate(sizes)])
    ax.set(xlabel="column cluster (size)", ylabel="row cluster (size)")
    ax.set_title(f"means of {means.shape[0]} x {means.shape[1]} blocks")
    without_frame(ax)
    return ax
