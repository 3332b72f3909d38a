"""Figures of a fitted co-clustering: the blocks, the steps behind them, how sure they are.

Every function takes a fitted estimator and draws into the axes it is given, or into a new figure
where there are none. One cluster has one colour in all figures; the palette is that of Okabe and
Ito, which people with any kind of colour vision can tell apart. Steps are ordered, so clusters
beyond the eighth begin the palette again without ever standing beside their own colour.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from ccot.scalings.jumps import LEVEL

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ccot.estimators.base import BaseCoclustering

__all__ = [
    "new_figure",
    "plot_block_means",
    "plot_blocks",
    "plot_confidence",
    "plot_merge_costs",
    "plot_reg_path",
    "plot_reproducibility",
    "plot_scalings",
]

PALETTE = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#666666",
    "#F0E442",
)
_INK, _FAINT = "#222222", "#8a8a8a"
_SIDES = ("row", "column")
# Strength is minus the decimal logarithm of the bound on a false alarm.
_SIGNIFICANT = -math.log10(LEVEL)
# Clusters narrower than this share of an axis get no label: it would run into the next one.
_LABELLED = 0.035


def new_figure(
    n_rows: int = 1,
    n_columns: int = 1,
    *,
    size: tuple[float, float] = (6.4, 4.8),
    **subplots: Any,
) -> tuple[Figure, Any]:
    """Make a figure that no window manager knows about, for files rather than screens.

    Parameters
    ----------
    n_rows, n_columns : int, default=1
        Grid of axes.
    size : tuple of two floats, default=(6.4, 4.8)
        Width and height in inches.
    **subplots
        Passed to :meth:`matplotlib.figure.Figure.subplots`.

    Returns
    -------
    figure : matplotlib.figure.Figure
        Save it with ``figure.savefig``.
    axes : matplotlib.axes.Axes or ndarray of Axes
        One, or as many as the grid has.

    Examples
    --------
    >>> from ccot.plotting import new_figure
    >>> figure, axes = new_figure(1, 2)
    >>> len(axes)
    2
    """
    figure = _matplotlib("figure").Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(n_rows, n_columns, **subplots)


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
    :class:`~ccot.TransportCoclustering`, go from the surest to the least sure. LineProgress are the
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
        ax = _new_axes((6.4, 5.6))
    orders = [np.arange(size) if before else _order(estimator, side) for side, size in _zip(shape)]
    image = _shrink(matrix, orders[0], orders[1], max_pixels)
    low, high = _limits(image)
    shown = ax.imshow(
        image,
        cmap=cmap,
        vmin=low,
        vmax=high,
        aspect="auto",
        interpolation="nearest",
        extent=(0, shape[1], shape[0], 0),
    )
    if before:
        ax.set_title("as given")
        ax.set(xlabel=f"{shape[1]} columns", ylabel=f"{shape[0]} rows")
        _whole_ticks(ax.xaxis)
        _whole_ticks(ax.yaxis)
        _bare(ax)
    else:
        _draw_borders(ax, estimator)
        ax.set_title(f"{estimator.n_row_clusters_} x {estimator.n_column_clusters_} blocks")
    if colorbar:
        clipped = bool(np.nanmin(image) < low or np.nanmax(image) > high)
        bar = ax.figure.colorbar(shown, ax=ax, extend="both" if clipped else "neither", aspect=30)
        # Typed as a patch or a method by the stubs; it is the frame around the colour bar.
        bar.outline.set_visible(False)  # type: ignore[operator]
    return ax


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
    panels = _pair(ax, (9.0, 3.6))
    for panel, side in zip(panels, _SIDES, strict=True):
        _draw_scaling(panel, estimator, side)
    panels[0].set_ylabel("log scaling")
    return panels


def plot_block_means(
    estimator: BaseCoclustering, ax: Axes | None = None, *, cmap: str = "viridis"
) -> Axes:
    """Show the mean of every block, the matrix in a nutshell.

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
        ax = _new_axes((1.9 + 0.9 * means.shape[1], 1.3 + 0.6 * means.shape[0]))
    shown = ax.imshow(means, cmap=cmap, aspect="auto")
    for (row, column), mean in np.ndenumerate(means):
        if np.isfinite(mean):
            red, green, blue, _ = shown.to_rgba(np.array([mean]))[0]
            bright = 0.3 * red + 0.59 * green + 0.11 * blue > 0.55
            colour = "black" if bright else "white"
            ax.text(column, row, f"{mean:.3g}", ha="center", va="center", color=colour)
    for axis, side in ((ax.yaxis, "row"), (ax.xaxis, "column")):
        sizes = _sizes(estimator, side)
        axis.set_ticks(np.arange(len(sizes)), [f"{k} ({size})" for k, size in enumerate(sizes)])
    ax.set(xlabel="column cluster (size)", ylabel="row cluster (size)")
    ax.set_title(f"means of {means.shape[0]} x {means.shape[1]} blocks")
    _bare(ax)
    return ax


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
    check_is_fitted(estimator)
    panels = _pair(ax, (9.0, 3.0))
    for panel, side in zip(panels, _SIDES, strict=True):
        _draw_confidence(panel, estimator, side)
    panels[0].set_ylabel("confidence")
    return panels


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
    panels = _pair(ax, (9.0, 3.6))
    for panel, side in zip(panels, _SIDES, strict=True):
        _draw_merge_costs(panel, estimator, side)
    panels[0].set_ylabel("information lost")
    return panels


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
        ax = _new_axes((5.2, 3.4))
    regs, means = np.array(path.reg), path.scores.mean(axis=1)
    everywhere = np.repeat(regs, path.scores.shape[1])
    ax.plot(everywhere, path.scores.ravel(), "o", color=_FAINT, alpha=0.5, markersize=4)
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
    _open(ax)
    return ax


# matplotlib, and only here --------------------------------------------------------------------


def _matplotlib(module: str) -> Any:
    try:
        return importlib.import_module(f"matplotlib.{module}")
    except ImportError as error:
        raise ImportError(
            "figures need matplotlib, which is not installed: pip install 'ccot[report]'"
        ) from error


def _new_axes(size: tuple[float, float]) -> Axes:
    """Return the axes of a figure that notebooks and interactive shells will show."""
    return _matplotlib("pyplot").subplots(figsize=size, layout="constrained")[1]


def _pair(ax: Sequence[Axes] | np.ndarray | None, size: tuple[float, float]) -> np.ndarray:
    """Return two axes, for rows and for columns."""
    if ax is None:
        return _matplotlib("pyplot").subplots(1, 2, figsize=size, layout="constrained")[1]
    panels = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
    if len(panels) != 2:
        raise ValueError(f"ax must hold two axes, for rows and for columns, not {len(panels)}")
    return panels


# What the figures share -----------------------------------------------------------------------


def _zip(values: Iterable[Any]) -> Iterable[tuple[str, Any]]:
    return zip(_SIDES, values, strict=True)


def _of(estimator: BaseCoclustering, side: str, what: str) -> Any:
    return getattr(estimator, f"{side}_{what}_")


def _sizes(estimator: BaseCoclustering, side: str) -> np.ndarray:
    n_clusters = getattr(estimator, f"n_{side}_clusters_")
    return np.bincount(_of(estimator, side, "labels"), minlength=n_clusters)


def _order(estimator: BaseCoclustering, side: str) -> np.ndarray:
    """Return the order by cluster and, within a cluster, by scaling or falling confidence."""
    stepped = hasattr(estimator, f"{side}_log_scaling_")
    within = _of(estimator, side, "log_scaling") if stepped else -_of(estimator, side, "confidence")
    return np.lexsort((within, _of(estimator, side, "labels")))


def _colour(cluster: int) -> str:
    return PALETTE[cluster % len(PALETTE)]


def _bare(ax: Axes) -> None:
    """Take away frame and tick marks; labels stay."""
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)


def _whole_ticks(axis: Any) -> None:
    """Put ticks at whole numbers only: there is no half row."""
    axis.get_major_locator().set_params(integer=True)


def _open(ax: Axes) -> None:
    """Take away the frame's upper and right edge."""
    ax.spines[["top", "right"]].set_visible(False)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


# The matrix -----------------------------------------------------------------------------------


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
    rows, columns = _sizes(estimator, "row"), _sizes(estimator, "column")
    # White on a dark rim: seen on every colour of the map.
    for colour, width in (("black", 2.4), ("white", 1.2)):
        for border in np.cumsum(rows)[:-1]:
            ax.axhline(border, color=colour, linewidth=width)
        for border in np.cumsum(columns)[:-1]:
            ax.axvline(border, color=colour, linewidth=width)
    for k, (start, end) in enumerate(_spans(rows)):
        ax.axhspan(start, end, xmin=-0.022, xmax=-0.007, color=_colour(k), clip_on=False, lw=0)
    for k, (start, end) in enumerate(_spans(columns)):
        ax.axvspan(start, end, ymin=-0.026, ymax=-0.008, color=_colour(k), clip_on=False, lw=0)
    for axis, sizes in ((ax.yaxis, rows), (ax.xaxis, columns)):
        named = [
            (k, (start + end) / 2)
            for k, (start, end) in enumerate(_spans(sizes))
            if end - start >= _LABELLED * sizes.sum()
        ]
        axis.set_ticks([middle for _, middle in named], [f"{k} ({sizes[k]})" for k, _ in named])
    ax.set(
        xlim=(0, columns.sum()),
        ylim=(rows.sum(), 0),
        xlabel="column cluster (size)",
        ylabel="row cluster (size)",
    )
    _bare(ax)
    ax.tick_params(pad=9)


def _spans(sizes: np.ndarray) -> list[tuple[int, int]]:
    ends = np.cumsum(sizes)
    return list(zip((ends - sizes).tolist(), ends.tolist(), strict=True))


# Steps and doubts -----------------------------------------------------------------------------


def _draw_scaling(ax: Axes, estimator: BaseCoclustering, side: str) -> None:
    log_scaling, labels = _of(estimator, side, "log_scaling"), _of(estimator, side, "labels")
    jumps, strengths = _of(estimator, side, "jumps"), _of(estimator, side, "jump_strength")
    order = np.argsort(log_scaling, kind="stable")
    ranked = log_scaling[order]
    for k in range(getattr(estimator, f"n_{side}_clusters_")):
        here = np.flatnonzero(labels[order] == k)
        ax.plot(here, ranked[here], ".", color=_colour(k), markersize=6)
    tested = getattr(estimator, "detector", "multiscale") == "multiscale"
    for jump, strength in zip(jumps.tolist(), strengths.tolist(), strict=True):
        sure = not tested or strength >= _SIGNIFICANT
        ax.axvline(jump - 0.5, color=_INK, linewidth=1, linestyle="--" if sure else ":")
    ax.margins(x=0.02, y=0.08)
    if tested and len(jumps) <= 6:
        _name_jumps(ax, jumps, strengths)
    _describe_steps(ax, estimator, side, len(jumps))
    _open(ax)


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
            color=_INK,
        )


def _describe_steps(ax: Axes, estimator: BaseCoclustering, side: str, n_jumps: int) -> None:
    ax.set_title(f"{side}s: {_count(n_jumps + 1, 'step')}")
    ax.set_xlabel(f"{side}s, sorted")
    _whole_ticks(ax.xaxis)
    if n_jumps or getattr(estimator, f"n_{side}_clusters") is not None:
        return
    share = _of(estimator, side, "cluster_votes").get(1, 0.0)
    text = "no step is significant" + (f" in {share:.0%} of the draws" if share < 0.9 else "")
    ax.text(0.04, 0.92, text, transform=ax.transAxes, color=_INK, fontsize="small", va="top")


def _draw_confidence(ax: Axes, estimator: BaseCoclustering, side: str) -> None:
    confidence, labels = _of(estimator, side, "confidence"), _of(estimator, side, "labels")
    sizes = _sizes(estimator, side)
    for k, (start, end) in enumerate(_spans(sizes)):
        falling = np.sort(confidence[labels == k])[::-1]
        ax.stairs(falling, np.arange(start, end + 1), fill=True, color=_colour(k))
    votes = getattr(estimator, f"{side}_cluster_votes_", {})
    ranked = sorted(votes.items(), key=lambda item: -item[1])[:3]
    shares = ", ".join(f"{number} in {share:.0%}" for number, share in ranked)
    ax.set(xlim=(0, len(labels)), ylim=(0, 1.02), xlabel=f"{side}s by cluster")
    found = f" ({shares} of the draws)" if len(votes) > 1 else ""
    ax.set_title(f"{side}s: {_count(len(sizes), 'cluster')}{found}")
    _open(ax)


def _draw_merge_costs(ax: Axes, estimator: BaseCoclustering, side: str) -> None:
    costs = _of(estimator, side, "merge_costs")
    number = getattr(estimator, f"n_{side}_clusters_")
    merged = np.arange(2, len(costs) + 2)
    shown = costs > 1e-12 * costs.max(initial=0.0)
    refused, granted = shown & (merged <= number), shown & (merged > number)
    if granted.any():
        first = np.argmax(granted)
        decay = costs[first] * (merged[first] - 1) / (merged - 1)
        ax.plot(merged, decay, ":", color=_FAINT, linewidth=1)
    ax.plot(merged[refused], costs[refused], "o", color=PALETTE[0], markersize=6)
    ax.plot(merged[granted], costs[granted], "o", mfc="none", mec=_FAINT, markersize=5)
    ax.axvline(number + 0.5, color=_INK, linewidth=1, linestyle="--")
    if shown.any():
        ax.set_yscale("log")
    ax.set(xlabel=f"{side} clusters before the merge")
    ax.set_title(f"{side}s: {_count(number, 'cluster')}")
    _whole_ticks(ax.xaxis)
    _open(ax)


# Reproducibility -------------------------------------------------------------------------------


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
    panels = _pair(ax, (9.0, 3.6))
    for panel, side in zip(panels, _SIDES, strict=True):
        _draw_reproducibility(panel, getattr(both, side), side)
    panels[0].set_ylabel("agreement of halves")
    return panels


def _draw_reproducibility(ax: Axes, told: Any, side: str) -> None:
    ax.set(xlabel=f"{side} clusters", ylim=(-0.05, 1.05))
    _open(ax)
    if told is None:
        ax.set_title(f"{side}s: not looked into")
        return
    low, high = told.plausible
    ax.axvspan(low - 0.5, high + 0.5, color=_FAINT, alpha=0.2, linewidth=0)
    ax.errorbar(told.numbers, told.mean, told.spread, color=PALETTE[0], marker="o", capsize=2)
    ax.axvline(told.n_clusters, color=_INK, linewidth=1, linestyle="--")
    ax.set_title(f"{side}s: {_count(told.n_clusters, 'cluster')}")
    _whole_ticks(ax.xaxis)
