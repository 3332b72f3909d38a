"""The matrix, its rows and columns ordered by cluster."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from ccot.blocks.hierarchy import Merge
from ccot.blocks.tables import TablePreparation
from ccot.estimators.base import BaseCoclustering, as_numbers
from ccot.estimators.tables import fitted_columns, numbers_shown
from ccot.io.frames import row_names
from ccot.io.matrix import Table
from ccot.plotting import margins
from ccot.plotting._shared import SIDES, Axes, colour_of, new_axes, sizes_of, spans, without_frame


def plot_blocks(
    estimator: BaseCoclustering,
    X: Any,
    *,
    before: bool = False,
    ax: Axes | None = None,
    cmap: str = "viridis",
    max_pixels: int = 1000,
    colorbar: bool = True,
    names: bool = False,
    row_colors: Any = None,
    column_colors: Any = None,
    dendrograms: bool = False,
    scale: str = "auto",
) -> Axes:
    """Show a matrix with its rows and columns ordered by cluster.

    Within a cluster, rows and columns are ordered by their scalings or, for
    :class:`~ccot.TransportCoclustering`, by confidence, the highest first. Numbers in brackets are
    sizes of clusters. Labels that do not fit are left out, those of small clusters first.

    Parameters
    ----------
    estimator : CCOT, CCOTGW or TransportCoclustering, fitted
    X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
        The fitted matrix. Missing values stay blank; words are shown as category numbers.
    before : bool, default=False
        Show the matrix in its original order instead.
    ax : matplotlib.axes.Axes, default: a new figure
    cmap, colorbar : str, default="viridis"; bool, default=True
        Colour map of the entries, which spans the central 99 %, and whether to add its bar.
    max_pixels : int, default=1000
        More rows or columns are averaged down to this many; sparse matrices are not made dense.
    names : bool, default=False
        Call clusters by their suggested names, and write the names of rows and columns.
    row_colors, column_colors : sequence, or mapping or data frame of several, optional
        Annotations: categories, numbers, or colours as ``"#rrggbb"``, with a legend.
    dendrograms : bool, default=False
        Draw the hierarchy of the clusters, and order the clusters by it
        (:class:`~ccot.TransportCoclustering` only).
    scale : {"auto", "none", "columns"}, default="auto"
        Show entries as they are (``"none"``), or in standard deviations from the mean of their
        column, as ``"auto"`` does if the columns differ in unit or kind.

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
    matrix, is_scaled = _values(estimator, X, scale)
    shape = (len(estimator.row_labels_), len(estimator.column_labels_))
    if matrix.shape != shape:
        raise ValueError(
            f"X has shape {matrix.shape}, but the estimator was fitted to a matrix of shape "
            f"{shape}: pass the fitted matrix"
        )
    called = _names(estimator, X) if names else ([], [])
    known = row_colors, column_colors
    sides = [_side(estimator, axis, dendrograms, names, called, known) for axis in (0, 1)]
    beside = 2.0 if dendrograms or names or any(side.tracks for side in sides) else 0.0
    panel: Axes = new_axes(1, _size(sides, beside)) if ax is None else ax
    orders = [*map(np.arange, shape)] if before else [side.order for side in sides]
    image = _shrink(matrix, orders, max_pixels)
    low, high = _limits(image)
    extent = (0, len(orders[1]), len(orders[0]), 0)
    shown = panel.imshow(
        image, cmap, aspect="auto", interpolation="nearest", clim=(low, high), extent=extent
    )
    without_frame(panel)
    if before:
        panel.set(title="as given", xlabel=f"{shape[1]} columns", ylabel=f"{shape[0]} rows")
        panel.locator_params(integer=True)
    else:
        _draw_borders(panel, sides)
        legends = [_draw_margin(panel, side, plain=not beside) for side in sides]
        margins.add_colour_legends(panel, [*legends[0], *legends[1]])
        panel.set_title(f"{estimator.n_row_clusters_} x {estimator.n_column_clusters_} blocks")
    if colorbar:
        extend = "both" if np.nanmin(image) < low or np.nanmax(image) > high else "neither"
        shrink = min(1.0, 5 / panel.figure.figure.get_size_inches()[1])
        bar = panel.figure.colorbar(
            shown, ax=panel, extend=extend, extendfrac=0.03, aspect=30, shrink=shrink
        )
        # Typed as a patch or a method by the stubs; it is the frame around the colour bar.
        bar.outline.set_visible(False)  # type: ignore[operator]
        if is_scaled:
            bar.set_label("standard deviations from the mean of the column")
    return panel


@dataclass(frozen=True)
class _Side:
    """One side of the picture: its points and its clusters in the order in which they stand."""

    name: str
    order: np.ndarray
    clusters: np.ndarray
    sizes: np.ndarray
    merges: Sequence[Merge]
    labels: Sequence[str]  # of the clusters
    names: list[str]  # of the points
    tracks: Mapping[str, Sequence[Any]]


def _side(
    estimator: Any, axis: int, dendrograms: bool, named: bool, names: Any, known: Any
) -> _Side:
    """Return a side ordered by cluster and, within a cluster, by scaling or falling confidence."""
    side, labels = SIDES[axis], (estimator.row_labels_, estimator.column_labels_)[axis]
    tracks, sizes = margins.as_tracks(known[axis], len(labels), side), sizes_of(estimator, side)
    merges = margins.merge_tree(estimator, axis) if dendrograms else []
    clusters = margins.leaf_order(merges, len(sizes))
    within = getattr(estimator, f"{side}_log_scaling_", None)
    if within is None:
        within = -getattr(estimator, f"{side}_confidence_", np.zeros(len(labels)))
    order = np.lexsort((within, np.argsort(clusters)[labels]))
    # Columns that were left out of a table are in no block.
    order, called = order[labels[order] >= 0], range(len(sizes))
    if named:
        # Clusters have no names if the fitted matrix was not kept, or was no matrix but kernels.
        called = getattr(estimator, ("cluster_names_", "column_cluster_names_")[axis], called)
    texts = [margins.sized_label(called[k], int(sizes[k])) for k in clusters]
    return _Side(side, order, clusters, sizes[clusters], merges, texts, names[axis], tracks)


def _values(estimator: Any, X: Any, scale: str) -> tuple[Any, bool]:
    """Return the numbers to show, and whether they are standardised by column."""
    if scale not in ("auto", "none", "columns"):
        raise ValueError(f'scale={scale!r} must be "auto", "none" or "columns"')
    is_table = isinstance(getattr(estimator, "preparation_", None), TablePreparation)
    given, _ = numbers_shown(estimator, X)
    matrix = as_numbers(fitted_columns(given, None) if isinstance(given, Table) else given)
    if sp.issparse(matrix) or scale == "none" or (scale == "auto" and not is_table):
        return matrix, False
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=RuntimeWarning)  # columns left out are all NaN
        spread = np.nanstd(matrix, axis=0)
        return (matrix - np.nanmean(matrix, axis=0)) / np.where(spread > 0, spread, 1.0), True


def _names(estimator: Any, X: Any) -> tuple[list[str], list[str]]:
    rows = row_names(X) if hasattr(X, "iloc") else getattr(X, "row_names", None)
    rows = getattr(estimator, "row_names_in_", ()) if rows is None else rows
    return [*map(str, rows)], [*map(str, getattr(estimator, "feature_names_in_", ()))]


def _size(sides: Sequence[_Side], beside: float) -> tuple[float, float]:
    """Return width and height of a new figure, with room for names and what else is beside."""
    rows, columns = (
        max(0.22 * len(side.labels), 0.14 * len(side.names) if len(side.names) <= 120 else 0.0)
        for side in sides
    )
    room = [margins.text_width(side.labels) + margins.text_width(side.names) for side in sides]
    width, height = max(columns, 4.4) + room[0] + 1.4 + beside, max(rows, 4.0) + 1.0
    return width, height + (0.75 if columns > 5 or beside else 0.0) * (room[1] + beside)


def _shrink(matrix: Any, orders: Sequence[np.ndarray], max_pixels: int) -> np.ndarray:
    """Return the ordered matrix as a dense image, averaged where it has too many entries."""
    if max_pixels < 1:
        raise ValueError(f"max_pixels={max_pixels} must be positive")
    by_row, by_column = map(partial(_averages, max_pixels), orders, matrix.shape)
    if sp.issparse(matrix):
        return (by_row @ matrix @ by_column.T).toarray()
    observed = np.isfinite(matrix)
    image = by_row @ np.where(observed, matrix, 0.0) @ by_column.T
    if observed.all():
        return image
    # A pixel is the mean of what is observed, NaN where nothing is.
    share = by_row @ observed.astype(np.float64) @ by_column.T
    return np.divide(image, share, out=np.full_like(image, np.nan), where=share > 0)


def _averages(max_pixels: int, order: np.ndarray, n_points: int) -> sp.csr_array:
    """Return the matrix that brings points into order and, where they are too many, averages."""
    n_pixels = min(len(order), max_pixels)
    pixel = np.arange(len(order)) * n_pixels // len(order)
    return sp.csr_array((1 / np.bincount(pixel)[pixel], (pixel, order)), shape=(n_pixels, n_points))


def _limits(image: np.ndarray) -> tuple[float, float]:
    """Return the central 99 % of the values; all of them where that is a single one."""
    low, high = np.nanquantile(image, (0.005, 0.995))
    return (float(low), float(high)) if low < high else (np.nanmin(image), np.nanmax(image))


def _draw_borders(ax: Axes, sides: Sequence[_Side]) -> None:
    # White on a dark rim: seen on every colour of the map.
    for colour, width in (("black", 2.4), ("white", 1.2)):
        for side, line in zip(sides, (ax.axhline, ax.axvline), strict=True):
            for border in np.cumsum(side.sizes)[:-1]:
                line(border, color=colour, linewidth=width)


def _draw_margin(ax: Axes, side: _Side, *, plain: bool) -> list[tuple[str, dict[str, Any]]]:
    """Draw what stands beside one side of the matrix; return the legends of its colours."""
    is_row, legends, reach = side.name == "row", [], 0.05

    def beside(inches: float) -> Axes:
        nonlocal reach
        start, reach = reach, reach + inches + 0.03
        start, edge = (-start - inches, 0) if is_row or plain else (start, 1)
        return margins.inset(ax, (start, inches), side.name, edge, len(side.order))

    outermost = beside(0.08)
    bar = outermost.axhspan if is_row else outermost.axvspan
    for k, ends in zip(side.clusters.tolist(), spans(side.sizes), strict=True):
        bar(*ends, color=colour_of(k), linewidth=0)
    for title, values in side.tracks.items():
        colours, legend = margins.colours_of(values)
        legends.append((title, legend))
        margins.draw_track(beside(0.13), colours[side.order], side.name, title)
    middles = np.cumsum(side.sizes) - side.sizes / 2
    if side.merges:
        outermost = beside(0.7)
        places = dict(zip(side.clusters.tolist(), middles.tolist(), strict=True))
        margins.draw_tree(outermost, side.merges, places, side.name)
    outermost, which = ax if plain else outermost, "yaxis" if is_row else "xaxis"
    axis, points = getattr(outermost, which), getattr(ax, which)
    margins.name_places(axis, middles, side.labels, side.sizes)
    axis.set_label_text(f"{side.name} cluster (size)")
    if plain:
        axis.set_tick_params(pad=12)
        return legends
    points.set_ticks([])
    if is_row:
        points.tick_right()
    else:
        axis.tick_top()
        axis.set_label_position("top")
    if side.names:
        places = np.arange(len(side.order)) + 0.5
        margins.name_places(points, places, [side.names[i] for i in side.order.tolist()])
    return legends
