"""The matrix, its rows and columns ordered by cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from ccot.plotting._shared import (
    SIDES,
    colour_of,
    new_axes,
    sizes_of,
    spans,
    whole_ticks,
    without_frame,
)

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
    :class:`~ccot.TransportCoclustering`, go from the surest to the least sure. Lines are the
    borders of blocks, coloured bars name the clusters, numbers in brackets are their sizes.

    Parameters
    ----------
    estimator : CCOT, CCOTGW or TransportCoclustering
        A fitted estimator.
    X : array-like or sparse matrix of shape (n_rows, n_columns)
        The matrix it was fitted to. NaN stays blank.
    before : bool, default=False
        Show the matrix in the order it came in instead.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.
    cmap : str, default="viridis"
        Colour map of the entries. It spans the central 99 % of what is shown.
    max_pixels : int, default=1000
        A matrix with more rows or columns is averaged down to this many; a sparse one is never
        made dense at more than that.
    colorbar : bool, default=True
        Add a colour bar.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn into.

    Examples
    --------
    >>> from ccot import CCOT
    >>> from ccot.datasets import load_simulated
    >>> from ccot.plotting import new_figure, plot_blocks
    >>> matrix = load_simulated("D3", random_state=0).data
    >>> model = CCOT(random_state=0).fit(matrix)
    >>> figure, (left, right) = new_figure(1, 2, size=(9, 4))
    >>> plot_blocks(model, matrix, before=True, ax=left).get_title()
    'as given'
    >>> plot_blocks(model, matrix, ax=right).get_title()
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
    if ax is None:
        ax = new_axes(1, (6.4, 5.6))
    sides = zip(SIDES, shape, strict=True)
    orders = [np.arange(size) if before else _order(estimator, side) for side, size in sides]
    image = _shrink(matrix, orders[0], orders[1], max_pixels)
    low, high = _limits(image)
    shown = ax.imshow(
        image,
        cmap=cmap,
        vmin=low,
        vmax=high,
        aspect="auto",
        interpolation="nearest",
        extent=(0, len(orders[1]), len(orders[0]), 0),
    )
    if before:
        ax.set_title("as given")
        ax.set(xlabel=f"{shape[1]} columns", ylabel=f"{shape[0]} rows")
        whole_ticks(ax.xaxis)
        whole_ticks(ax.yaxis)
        without_frame(ax)
    else:
        _draw_borders(ax, estimator)
        ax.set_title(f"{estimator.n_row_clusters_} x {estimator.n_column_clusters_} blocks")
    if colorbar:
        clipped = bool(np.nanmin(image) < low or np.nanmax(image) > high)
        bar = ax.figure.colorbar(shown, ax=ax, extend="both" if clipped else "neither", aspect=30)
        # Typed as a patch or a method by the stubs; it is the frame around the colour bar.
        bar.outline.set_visible(False)  # type: ignore[operator]
    return ax


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
    if not sp.issparse(matrix) and np.isnan(matrix).any():
        return _shrink_observed(matrix, row_order, column_order, max_pixels)
    averages = [_averages(order, max_pixels) for order in (row_order, column_order)]
    if all(average is None for average in averages) and not sp.issparse(matrix):
        return np.asarray(matrix, dtype=np.float64)[np.ix_(row_order, column_order)]
    by_row, by_column = (
        sp.eye_array(len(order), format="csr")[order] if average is None else average
        for order, average in zip((row_order, column_order), averages, strict=True)
    )
    image = by_row @ matrix @ by_column.T
    return image.toarray() if sp.issparse(image) else np.asarray(image)


def _shrink_observed(
    matrix: np.ndarray, row_order: np.ndarray, column_order: np.ndarray, max_pixels: int
) -> np.ndarray:
    """Average what is observed; a pixel without anything observed is NaN."""
    observed = np.isfinite(matrix)
    filled = _shrink(np.where(observed, matrix, 0.0), row_order, column_order, max_pixels)
    share = _shrink(observed.astype(np.float64), row_order, column_order, max_pixels)
    return np.divide(filled, share, out=np.full_like(filled, np.nan), where=share > 0)


def _averages(order: np.ndarray, max_pixels: int) -> Any:
    """Return the matrix that averages ordered points into pixels, None where there is room."""
    n_points = len(order)
    if n_points <= max_pixels:
        return None
    pixel = np.arange(n_points) * max_pixels // n_points
    weight = 1 / np.bincount(pixel)[pixel]
    return sp.csr_array((weight, (pixel, order)), shape=(max_pixels, n_points))


def _limits(image: np.ndarray) -> tuple[float, float]:
    """Return the central 99 % of the values; all of them where that is a single one."""
    low, high = np.nanquantile(image, (0.005, 0.995))
    return (float(low), float(high)) if low < high else (np.nanmin(image), np.nanmax(image))


def _draw_borders(ax: Axes, estimator: BaseCoclustering) -> None:
    rows, columns = sizes_of(estimator, "row"), sizes_of(estimator, "column")
    # White on a dark rim: seen on every colour of the map.
    for colour, width in (("black", 2.4), ("white", 1.2)):
        for border in np.cumsum(rows)[:-1]:
            ax.axhline(border, color=colour, linewidth=width)
        for border in np.cumsum(columns)[:-1]:
            ax.axvline(border, color=colour, linewidth=width)
    for k, (start, end) in enumerate(spans(rows)):
        ax.axhspan(start, end, xmin=-0.022, xmax=-0.007, color=colour_of(k), clip_on=False, lw=0)
    for k, (start, end) in enumerate(spans(columns)):
        ax.axvspan(start, end, ymin=-0.026, ymax=-0.008, color=colour_of(k), clip_on=False, lw=0)
    for axis, sizes in ((ax.yaxis, rows), (ax.xaxis, columns)):
        named = [
            (k, (start + end) / 2)
            for k, (start, end) in enumerate(spans(sizes))
            if end - start >= _LABELLED * sizes.sum()
        ]
        axis.set_ticks([middle for _, middle in named], [f"{k} ({sizes[k]})" for k, _ in named])
    ax.set(
        xlim=(0, columns.sum()),
        ylim=(rows.sum(), 0),
        xlabel="column cluster (size)",
        ylabel="row cluster (size)",
    )
    without_frame(ax)
    ax.tick_params(pad=9)
