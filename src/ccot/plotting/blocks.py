"""The matrix, its rows and columns ordered by cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from ccot.plotting import _shared as shared
from ccot.plotting._shared import SIDES, colour_of, sizes_of, spans

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ccot.estimators.base import BaseCoclustering

# Clusters narrower than this share of an axis get no label: it would run into the next one.
_LABELLED = 0.035


def plot_blocks(
    estimator: BaseCoclustering,
    X: Any,
    *,
    before: bool = False,
    ax: Axes | None = None,
    cmap: str = "viridis",
    max_pixels: int = 1000,
    colorbar: bool = True,
) -> Axes:
    """Show a matrix with its rows and columns ordered by cluster.

    Within a cluster, rows and columns follow their scalings or, of a
    :class:`~ccot.TransportCoclustering`, go from the surest to the least sure. Numbers in brackets
    are sizes of clusters.

    Parameters
    ----------
    estimator : CCOT, CCOTGW or TransportCoclustering, fitted
    X : array-like or sparse matrix of shape (n_rows, n_columns)
        The matrix it was fitted to. NaN stays blank.
    before : bool, default=False
        Show the matrix in the order it came in instead.
    ax : matplotlib.axes.Axes, default: a new figure
    cmap, colorbar : str, default="viridis"; bool, default=True
        Colour map of the entries, which spans the central 99 %, and whether to add its bar.
    max_pixels : int, default=1000
        More rows or columns are averaged down to this many; sparse matrices are not made dense.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> from ccot import CCOT, datasets
    >>> from ccot.plotting import new_figure, plot_blocks
    >>> matrix = datasets.load_simulated("D3", random_state=0).data
    >>> model = CCOT(random_state=0).fit(matrix)
    >>> figure, ax = new_figure()
    >>> plot_blocks(model, matrix, ax=ax).get_title()
    '2 x 4 blocks'
    """
    check_is_fitted(estimator)
    matrix = X if sp.issparse(X) else np.asarray(X)
    shape = (len(estimator.row_labels_), len(estimator.column_labels_))
    if matrix.shape != shape:
        raise ValueError(
            f"X has shape {matrix.shape}, but the estimator was fitted to a matrix of shape "
            f"{shape}: pass the matrix that was fitted"
        )
    panel: Axes = shared.new_axes(1, (6.4, 5.6)) if ax is None else ax
    sides = zip(SIDES, shape, strict=True)
    rows, columns = (np.arange(size) if before else _order(estimator, side) for side, size in sides)
    image = _shrink(matrix, rows, columns, max_pixels)
    low, high = _limits(image)
    extent = (0, len(columns), len(rows), 0)
    shown = panel.imshow(
        image, cmap, aspect="auto", interpolation="nearest", vmin=low, vmax=high, extent=extent
    )
    if before:
        panel.set_title("as given")
        panel.set(xlabel=f"{shape[1]} columns", ylabel=f"{shape[0]} rows")
        shared.whole_ticks(panel.xaxis)
        shared.whole_ticks(panel.yaxis)
        shared.without_frame(panel)
    else:
        _draw_borders(panel, estimator)
        panel.set_title(f"{estimator.n_row_clusters_} x {estimator.n_column_clusters_} blocks")
    if colorbar:
        extend = "both" if np.nanmin(image) < low or np.nanmax(image) > high else "neither"
        bar = panel.figure.colorbar(shown, ax=panel, extend=extend, aspect=30)
        # Typed as a patch or a method by the stubs; it is the frame around the colour bar.
        bar.outline.set_visible(False)  # type: ignore[operator]
    return panel


def _order(estimator: BaseCoclustering, side: str) -> np.ndarray:
    """Return the order by cluster and, within a cluster, by scaling or falling confidence."""
    scaling = getattr(estimator, f"{side}_log_scaling_", None)
    within = -getattr(estimator, f"{side}_confidence_") if scaling is None else scaling
    labels = getattr(estimator, f"{side}_labels_")
    order = np.lexsort((within, labels))
    # Columns that were left out of a table are in no block.
    return order[labels[order] >= 0]


def _shrink(
    matrix: Any, row_order: np.ndarray, column_order: np.ndarray, max_pixels: int
) -> np.ndarray:
    """Return the ordered matrix as a dense image, averaged where it has too many entries."""
    if max_pixels < 1:
        raise ValueError(f"max_pixels={max_pixels} must be positive")
    by_row, by_column = (
        _averages(order, size, max_pixels)
        for order, size in zip((row_order, column_order), matrix.shape, strict=True)
    )
    if sp.issparse(matrix):
        return (by_row @ matrix @ by_column.T).toarray()
    observed = np.isfinite(matrix)
    image = by_row @ np.where(observed, matrix, 0.0) @ by_column.T
    if observed.all():
        return image
    # A pixel is the mean of what is observed, NaN where nothing is.
    share = by_row @ observed.astype(np.float64) @ by_column.T
    return np.divide(image, share, out=np.full_like(image, np.nan), where=share > 0)


def _averages(order: np.ndarray, n_points: int, max_pixels: int) -> sp.csr_array:
    """Return the matrix that brings points into order and, where they are too many, averages."""
    n_pixels = min(len(order), max_pixels)
    pixel = np.arange(len(order)) * n_pixels // len(order)
    weight = 1 / np.bincount(pixel)[pixel]
    return sp.csr_array((weight, (pixel, order)), shape=(n_pixels, n_points))


def _limits(image: np.ndarray) -> tuple[float, float]:
    """Return the central 99 % of the values; all of them where that is a single one."""
    low, high = np.nanquantile(image, (0.005, 0.995))
    return (float(low), float(high)) if low < high else (np.nanmin(image), np.nanmax(image))


def _draw_borders(ax: Axes, estimator: BaseCoclustering) -> None:
    rows, columns = sizes_of(estimator, "row"), sizes_of(estimator, "column")
    # White on a dark rim: seen on every colour of the map.
    for colour, width in (("black", 2.4), ("white", 1.2)):
        for sizes, line in ((rows, ax.axhline), (columns, ax.axvline)):
            for border in np.cumsum(sizes)[:-1]:
                line(border, color=colour, linewidth=width)
    for sizes, axis, bar, ends in (
        (rows, ax.yaxis, ax.axhspan, (-0.022, -0.007)),
        (columns, ax.xaxis, ax.axvspan, (-0.026, -0.008)),
    ):
        for k, (start, end) in enumerate(spans(sizes)):
            bar(start, end, *ends, color=colour_of(k), clip_on=False, lw=0)
        named = np.flatnonzero(sizes >= _LABELLED * sizes.sum())
        middles = np.cumsum(sizes) - sizes / 2
        axis.set_ticks(middles[named], [f"{k} ({sizes[k]})" for k in named])
    ax.set(xlim=(0, columns.sum()), ylim=(rows.sum(), 0))
    ax.set(xlabel="column cluster (size)", ylabel="row cluster (size)")
    shared.without_frame(ax)
    ax.tick_params(pad=9)
