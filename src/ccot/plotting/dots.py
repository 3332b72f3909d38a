"""Clusters and the columns that set them apart, as dots."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ccot.blocks.tables import TablePreparation
from ccot.describe.statistics import MAX_ROWS, Statistics, every, row_statistics
from ccot.describe.words import BY_SPREAD, with_names
from ccot.estimators.base import BaseCoclustering, as_numbers
from ccot.estimators.tables import as_fitted_table, described_cells
from ccot.plotting._shared import FAINT, Axes, count, matplotlib_module, new_axes, without_frame
from ccot.plotting.margins import add_legend, name_places, shortened, sized_label, text_width

_LARGEST = 11.0  # points across, where all members agree


def plot_dots(
    estimator: BaseCoclustering,
    X: Any,
    *,
    n_columns: int = 3,
    ax: Axes | None = None,
    cmap: str = "RdBu_r",
    names: bool = True,
) -> Axes:
    """Show the columns that distinguish each row cluster, with their means in all clusters.

    The colour of a dot is the mean of the cluster, in standard deviations from the mean of all
    rows. Its area is a share of the members: for numbers, of those on the same side of the overall
    mean as the cluster; for categories, ones and amounts, of those that have it.

    Parameters
    ----------
    estimator : CCOT, CCOTGW or TransportCoclustering, fitted
    X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
        The fitted matrix.
    n_columns : int, default=3
        Number of columns for each cluster, the most distinctive first.
    ax : matplotlib.axes.Axes, default: a new figure
    cmap : str, default="RdBu_r"
    names : bool, default=True
        Call clusters by their suggested names rather than by numbers.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import numpy as np
    >>> from ccot import TransportCoclustering, datasets, plotting
    >>> zoo = datasets.load_zoo()
    >>> model = TransportCoclustering(4, 4, random_state=0).fit(zoo.data)
    >>> plotting.plot_dots(model, zoo.data, ax=plotting.new_figure()[1]).get_title()
    'what distinguishes 4 clusters'
    """
    check_is_fitted(estimator)
    sums = _statistics(estimator, X)
    groups = range(len(sums.sizes))
    tops = [trait.index for k in groups for trait in sums.traits([k], n_columns)]
    columns = np.array([*dict.fromkeys(tops)] or [0])
    observed = np.maximum(sums.observed[:, columns], 1)
    spread = np.where(sums.deviation > 0, sums.deviation, 1.0)[columns]
    means = (sums.totals[:, columns] / observed - sums.mean[columns]) / spread
    above = sums.above[:, columns] / observed
    share = np.where((means > 0) | ~np.isin(sums.kinds[columns], BY_SPREAD), above, 1 - above)
    called = [one.name for one in with_names(sums.portraits())] if names else groups
    labels = [*map(sized_label, called, sums.sizes)]
    titles = [shortened(sums.feature(int(j)).title) for j in columns]
    width = 2.4 + text_width(labels) + 0.24 * len(columns)
    size = width, max(1.2 + 0.26 * len(groups), 2.6) + text_width(titles)
    panel: Axes = new_axes(1, size) if ax is None else ax
    most = max(float(np.abs(means).max()), 1e-9)
    across, down = np.meshgrid(np.arange(len(columns)), groups)
    dots = panel.scatter(
        across, down, _LARGEST**2 * share, means, cmap=cmap, vmin=-most, vmax=most,
        edgecolors=FAINT, linewidths=0.4,
    )  # fmt: skip
    panel.set(xlim=(-0.6, len(columns) - 0.4), ylim=(len(groups) - 0.4, -0.6))
    name_places(panel.xaxis, np.arange(len(columns)), titles)
    name_places(panel.yaxis, np.arange(len(groups)), labels, sums.sizes)
    panel.set_title(f"what distinguishes {count(len(groups), 'cluster')}")
    without_frame(panel)
    bar = panel.figure.colorbar(dots, ax=panel, aspect=20)
    bar.set_label("mean, in standard deviations", fontsize="small")
    line, faint = matplotlib_module("lines").Line2D, {"color": FAINT, "ls": "none"}
    entries = [
        line([], [], marker="o", markersize=_LARGEST * part**0.5, label=f"{part:.0%}", **faint)
        for part in (0.1, 0.5, 1.0)
    ]
    add_legend(panel, entries, title="members", title_fontsize="small")
    return panel


def _statistics(estimator: Any, X: Any) -> Statistics:
    """Return sums over the row clusters, for the columns as people know them."""
    preparation, labels = getattr(estimator, "preparation_", None), estimator.row_labels_
    if isinstance(preparation, TablePreparation):
        matrix, columns, _ = described_cells(as_fitted_table(X, preparation, len(labels)))
    else:
        matrix = as_numbers(X)
        columns = estimator._column_titles()
        if matrix.shape != (shape := (len(labels), len(columns))):
            raise ValueError(f"X has shape {matrix.shape}, but the fitted matrix had {shape}")
    some = every(len(labels), MAX_ROWS)
    return row_statistics(matrix[some], labels[some], columns)
