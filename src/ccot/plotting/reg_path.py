"""How the regularisation was chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ccot.plotting._shared import FAINT, PALETTE, new_axes, open_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ccot.estimators.base import BaseCoclustering


def plot_reg_path(estimator: BaseCoclustering, ax: Axes | None = None) -> Axes:
    """Show how ``reg="cv"`` chose the regularisation.

    Points are comparisons of two halves of the data, the line is their mean, the ring is the
    value chosen.

    Parameters
    ----------
    estimator : CCOT or CCOTGW
        An estimator fitted with ``reg="cv"``.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn into.

    Examples
    --------
    >>> from ccot import CCOT
    >>> from ccot.datasets import make_latent_blocks
    >>> from ccot.plotting import new_figure, plot_reg_path
    >>> blocks = make_latent_blocks([[4, 0, 2], [1, 5, 1]], 90, 60, sigma=0.05, random_state=0)
    >>> model = CCOT(reg="cv", random_state=0).fit(blocks.data)
    >>> figure, ax = new_figure()
    >>> plot_reg_path(model, ax).get_xlabel()
    'reg'
    """
    check_is_fitted(estimator)
    path = getattr(estimator, "reg_path_", None)
    if path is None:
        raise ValueError('there is no path to show: fit the estimator with reg="cv"')
    if ax is None:
        ax = new_axes((5.2, 3.4))
    regs, means = np.array(path.reg), path.scores.mean(axis=1)
    repeated = np.repeat(regs, path.scores.shape[1])
    ax.plot(repeated, path.scores.ravel(), "o", color=FAINT, alpha=0.5, markersize=4)
    ax.plot(regs, means, "o-", color=PALETTE[0], markersize=5, label="mean")
    best = means[path.reg.index(path.best)]
    ax.plot(
        path.best, best, "o", markersize=13, mfc="none", mec=PALETTE[5], mew=2,
        label=f"chosen: {path.best:g}",
    )  # fmt: skip
    ax.set_xscale("log")
    ax.set_xticks(regs, [f"{reg:g}" for reg in regs])
    ax.minorticks_off()
    ax.set(xlabel="reg", ylabel="information shared by halves (nats)")
    ax.set_title("reproducibility of the partition")
    ax.legend(frameon=False)
    open_frame(ax)
    return ax
