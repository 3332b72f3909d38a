"""Figures beside the matrix: means of blocks, confidence, and how the numbers were found."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ccot.estimators.base import BaseCoclustering
from ccot.plotting import _shared as shared
from ccot.plotting._shared import FAINT, INK, PALETTE, Axes, Panels, count, draw_sides
from ccot.plotting.margins import name_places
from ccot.scalings.jumps import LEVEL

# Strength of a jump is minus the decimal logarithm of the bound on a false alarm.
SIGNIFICANT = -math.log10(LEVEL)


def plot_block_means(
    estimator: BaseCoclustering, ax: Axes | None = None, *, cmap: str = "viridis"
) -> Axes:
    """Show the mean of every block.

    Parameters
    ----------
    estimator : CCOT, CCOTGW or TransportCoclustering, fitted to a matrix
    ax : matplotlib.axes.Axes, default: a new figure
    cmap : str, default="viridis"

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> from ccot import CCOT, datasets, plotting
    >>> model = CCOT(random_state=0).fit(datasets.load_simulated("D3", random_state=0).data)
    >>> plotting.plot_block_means(model, plotting.new_figure()[1]).get_title()
    'means of 2 x 4 blocks'
    """
    problem = "the estimator has no block means: it was fitted to similarities, not to a matrix"
    means = _require(estimator, "block_means_", problem)
    size = [min(1.5 + unit * n, 14.0) for unit, n in ((0.6, len(means)), (0.9, means.shape[1]))]
    panel: Axes = shared.new_axes(1, (size[1] + 0.4, size[0])) if ax is None else ax
    shown = panel.imshow(means, cmap=cmap, aspect="auto")
    # Numbers that would run into each other are left to the colours.
    cell = np.array([panel.bbox.width, panel.bbox.height]) / means.shape[::-1] / panel.figure.dpi
    if (cell > (0.45, 0.2)).all():
        light = shown.to_rgba(means)[..., :3] @ (0.3, 0.59, 0.11) > 0.55
        for row, column in np.argwhere(np.isfinite(means)).tolist():
            colour, text = "black" if light[row, column] else "white", f"{means[row, column]:.3g}"
            panel.text(column, row, text, ha="center", va="center", color=colour)
    else:
        panel.figure.colorbar(shown, ax=panel, aspect=30)
    for axis, side in ((panel.yaxis, "row"), (panel.xaxis, "column")):
        sizes = shared.sizes_of(estimator, side)
        labels = [f"{k} ({size})" for k, size in enumerate(sizes)]
        name_places(axis, np.arange(len(sizes)), labels, sizes)
        axis.set_label_text(f"{side} cluster (size)")
    panel.set_title(f"means of {means.shape[0]} x {means.shape[1]} blocks")
    shared.without_frame(panel)
    return panel


def plot_confidence(estimator: BaseCoclustering, ax: Panels | None = None) -> np.ndarray:
    """Show the confidence of every row and column.

    Members of a cluster are ordered by confidence, the highest first. A full bar is a certain
    cluster; a falling edge shows uncertain members. The title says how many draws found the number.

    Parameters
    ----------
    estimator : CCOT, CCOTGW or TransportCoclustering, fitted
    ax : sequence of two matplotlib.axes.Axes, for rows and columns; default: a new figure

    Returns
    -------
    ndarray of two matplotlib.axes.Axes

    Examples
    --------
    >>> from ccot import CCOT, datasets, plotting
    >>> model = CCOT(random_state=0).fit(datasets.load_simulated("D3", random_state=0).data)
    >>> plotting.plot_confidence(model, plotting.new_figure(1, 2)[1])[0].get_ylabel()
    'confidence'
    """
    _require(estimator, "row_confidence_", "{} has no confidence: use plot_block_means")
    return draw_sides(_draw_confidence, estimator, ax, 3.0, "confidence")


def _require(estimator: Any, attribute: str, problem: str) -> Any:
    """Return an attribute that fits of some estimators leave, or say why there is none."""
    check_is_fitted(estimator)
    if not hasattr(estimator, attribute):
        raise ValueError(problem.format(type(estimator).__name__))
    return getattr(estimator, attribute)


def _draw_confidence(ax: Axes, estimator: BaseCoclustering, side: str) -> None:
    confidence, labels = (getattr(estimator, f"{side}_{a}_") for a in ("confidence", "labels"))
    sizes = shared.sizes_of(estimator, side)
    for k, (start, end) in enumerate(shared.spans(sizes)):
        falling = np.sort(confidence[labels == k])[::-1]
        ax.stairs(falling, np.arange(start, end + 1), fill=True, color=shared.colour_of(k))
    votes = getattr(estimator, f"{side}_cluster_votes_", {})
    ranked = sorted(votes.items(), key=lambda item: -item[1])[:3]
    shares = ", ".join(f"{number} in {share:.0%}" for number, share in ranked)
    ax.set(xlim=(0, len(labels)), ylim=(0, 1.02), xlabel=f"{side}s by cluster")
    voted = f" ({shares} of the draws)" if len(votes) > 1 else ""
    ax.set_title(f"{side}s: {count(len(sizes), 'cluster')}{voted}")


def plot_scalings(estimator: BaseCoclustering, ax: Panels | None = None) -> np.ndarray:
    """Show the sorted log scalings of rows and of columns, with the jumps between steps.

    Every point is a row (column), in the colour of its cluster. A dashed line is a jump, with an
    upper bound on the probability of a false alarm; a dotted line is a jump that is not
    significant, but needed for the given number. If a step has two colours, draws did not agree.

    Parameters
    ----------
    estimator : CCOT or CCOTGW, fitted
    ax : sequence of two matplotlib.axes.Axes, for rows and columns; default: a new figure

    Returns
    -------
    ndarray of two matplotlib.axes.Axes

    Examples
    --------
    >>> from ccot import CCOT, datasets, plotting
    >>> model = CCOT(random_state=0).fit(datasets.load_simulated("D3", random_state=0).data)
    >>> plotting.plot_scalings(model, plotting.new_figure(1, 2)[1])[1].get_title()
    'columns: 4 steps'
    """
    problem = "{} has no scalings to show: use plot_merge_costs or plot_confidence"
    _require(estimator, "row_log_scaling_", problem)
    return draw_sides(_draw_scaling, estimator, ax, 3.6, "log scaling")


def _draw_scaling(ax: Axes, estimator: BaseCoclustering, side: str) -> None:
    names = "log_scaling", "labels", "jumps", "jump_strength"
    log_scaling, labels, jumps, strengths = (getattr(estimator, f"{side}_{a}_") for a in names)
    order = np.argsort(log_scaling, kind="stable")
    ranked = log_scaling[order]
    for k in range(getattr(estimator, f"n_{side}_clusters_")):
        members = np.flatnonzero(labels[order] == k)
        ax.plot(members, ranked[members], ".", color=shared.colour_of(k), markersize=6)
    ax.margins(x=0.02, y=0.08)
    tested = is_tested(estimator)
    for jump, strength in zip(jumps.tolist(), strengths.tolist(), strict=True):
        sure = not tested or strength >= SIGNIFICANT
        ax.axvline(jump - 0.5, color=INK, linewidth=1, linestyle="--" if sure else ":")
        if tested and len(jumps) <= 6:
            _name_jump(ax, jump - 0.5, strength)
    ax.set(title=f"{side}s: {count(len(jumps) + 1, 'step')}", xlabel=f"{side}s, sorted")
    ax.locator_params("x", integer=True)
    if len(jumps) == 0 and getattr(estimator, f"n_{side}_clusters") is None:
        share = getattr(estimator, f"{side}_cluster_votes_").get(1, 0.0)
        text = "no jump is significant" + (f" in {share:.0%} of the draws" if share < 0.9 else "")
        ax.text(0.04, 0.92, text, transform=ax.transAxes, color=INK, fontsize="small", va="top")


def is_tested(model: Any) -> bool:
    """Tell whether the model's jumps passed a test, so that their strength means something."""
    return getattr(model, "detector", "multiscale") == "multiscale"


def _name_jump(ax: Axes, place: float, strength: float) -> None:
    """Write the evidence for a jump where the sorted curve never is: low right, high left."""
    exponent = int(min(strength, 999))
    text = rf"$p < 10^{{-{exponent}}}$" if strength >= SIGNIFICANT else "not significant"
    right = place < 0.75 * ax.get_xlim()[1]
    end, shift, align = (0.03, 3, "left") if right else (0.93, -3, "right")
    style: dict[str, Any] = {"ha": align, "fontsize": "small", "color": INK}
    ax.annotate(text, (place, end), (shift, 0), ("data", "axes fraction"), "offset points", **style)


def plot_merge_costs(estimator: BaseCoclustering, ax: Panels | None = None) -> np.ndarray:
    """Show what merging clusters costs, and where the merges stopped.

    A point at k is the information lost by merging k clusters into k - 1 in the best start; it is
    filled if the merge was not made. The dashed line is the chosen number. The dotted line falls
    like 1 / (k - 1), which is expected without a jump: points far above it, on the left, are the
    jump. Jumps are found in the mean over all starts, or the likelihood decided: ``candidates_``
    says by which criterion.

    Parameters
    ----------
    estimator : TransportCoclustering, fitted
    ax : sequence of two matplotlib.axes.Axes, for rows and columns; default: a new figure

    Returns
    -------
    ndarray of two matplotlib.axes.Axes

    Examples
    --------
    >>> from ccot import TransportCoclustering, datasets, plotting
    >>> noisy = datasets.load_simulated("D3", random_state=0, sigma=2.0).data
    >>> model = TransportCoclustering(random_state=0).fit(noisy)
    >>> plotting.plot_merge_costs(model, plotting.new_figure(1, 2)[1])[1].get_title()
    'columns: 4 clusters'
    """
    others = "it works for TransportCoclustering; for CCOT and CCOTGW use plot_scalings"
    _require(estimator, "row_merge_costs_", f"{{}} has no merge costs: {others}")
    return draw_sides(_draw_merge_costs, estimator, ax, 3.6, "information lost")


def _draw_merge_costs(ax: Axes, estimator: BaseCoclustering, side: str) -> None:
    costs = getattr(estimator, f"{side}_merge_costs_")
    number = getattr(estimator, f"n_{side}_clusters_")
    merged = np.arange(2, len(costs) + 2)
    shown = costs > 1e-12 * costs.max(initial=0.0)
    refused, granted = shown & (merged <= number), shown & (merged > number)
    if granted.any():
        first = np.argmax(granted)
        decay = costs[first] * (merged[first] - 1) / (merged - 1)
        ax.plot(merged, decay, ":", color=FAINT, linewidth=1)
    ax.plot(merged[refused], costs[refused], "o", color=PALETTE[0], markersize=6)
    ax.plot(merged[granted], costs[granted], "o", mfc="none", mec=FAINT, markersize=5)
    if shown.any():
        ax.set_yscale("log")
    ax.set_xlabel(f"{side} clusters before the merge")
    _mark_number(ax, side, number, number + 0.5)


def plot_reproducibility(estimator: BaseCoclustering, ax: Panels | None = None) -> np.ndarray:
    """Show how well every number of clusters is found again with half of the data.

    The line is the agreement of two halves of the data, adjusted for chance, with its spread over
    random splits. The dashed line is the fitted number. Numbers that are as good are shaded.

    Parameters
    ----------
    estimator : TransportCoclustering, fitted, with ``reproducibility_`` of at least one side
    ax : sequence of two matplotlib.axes.Axes, for rows and columns; default: a new figure

    Returns
    -------
    ndarray of two matplotlib.axes.Axes

    Examples
    --------
    >>> from ccot import TransportCoclustering, datasets, plotting
    >>> matrix = datasets.load_simulated("D1", random_state=0, overlap="calibrated").data
    >>> model = TransportCoclustering(criterion="reproducibility", random_state=0).fit(matrix)
    >>> plotting.plot_reproducibility(model, plotting.new_figure(1, 2)[1])[0].get_ylabel()
    'agreement of halves'
    """
    check_is_fitted(estimator)
    both = getattr(estimator, "reproducibility_", None)
    if both is None or (both.row is None and both.column is None):
        raise ValueError(
            "this fit did not estimate reproducibility: use TransportCoclustering with "
            'criterion="reproducibility"'
        )
    return draw_sides(_draw_reproducibility, estimator, ax, 3.6, "agreement of halves")


def _draw_reproducibility(ax: Axes, estimator: Any, side: str) -> None:
    curve = getattr(estimator.reproducibility_, side)
    ax.set(xlabel=f"{side} clusters", ylim=(-0.05, 1.05))
    if curve is None:
        ax.set_title(f"{side}s: not estimated")
        return
    low, high = curve.plausible
    ax.axvspan(low - 0.5, high + 0.5, color=FAINT, alpha=0.2, linewidth=0)
    ax.errorbar(curve.numbers, curve.mean, curve.spread, color=PALETTE[0], marker="o", capsize=2)
    _mark_number(ax, side, curve.n_clusters, curve.n_clusters)


def _mark_number(ax: Axes, side: str, number: int, place: float) -> None:
    ax.axvline(place, color=INK, linewidth=1, linestyle="--")
    ax.set_title(f"{side}s: {count(number, 'cluster')}")
    ax.locator_params("x", integer=True)


def plot_reg_path(estimator: BaseCoclustering, ax: Axes | None = None) -> Axes:
    """Show how ``reg="cv"`` chose the regularisation.

    A point compares two halves of the data, the line is the mean, the ring the chosen value.

    Parameters
    ----------
    estimator : CCOT or CCOTGW, fitted with ``reg="cv"``
    ax : matplotlib.axes.Axes, default: a new figure

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> from ccot import CCOT, datasets, plotting
    >>> means = [[4, 0, 2], [1, 5, 1]]
    >>> blocks = datasets.make_latent_blocks(means, 90, 60, sigma=0.05, random_state=0)
    >>> model = CCOT(reg="cv", random_state=0).fit(blocks.data)
    >>> plotting.plot_reg_path(model, plotting.new_figure()[1]).get_xlabel()
    'reg'
    """
    problem = 'there is no path to show: fit the estimator with reg="cv"'
    path = _require(estimator, "reg_path_", problem)
    panel: Axes = shared.new_axes(1, (5.2, 3.4)) if ax is None else ax
    regs, means = np.array(path.reg), path.scores.mean(axis=1)
    repeated = np.repeat(regs, path.scores.shape[1])
    panel.plot(repeated, path.scores.ravel(), "o", color=FAINT, alpha=0.5, markersize=4)
    panel.plot(regs, means, "o-", color=PALETTE[0], markersize=5, label="mean")
    best, ring = means[path.reg.index(path.best)], {"mfc": "none", "mec": PALETTE[5], "mew": 2}
    panel.plot(path.best, best, "o", markersize=13, label=f"chosen: {path.best:g}", **ring)
    panel.set(xscale="log", xlabel="reg", ylabel="information shared by halves (nats)")
    panel.set_xticks(regs, [f"{reg:g}" for reg in regs])
    panel.minorticks_off()
    panel.set_title("reproducibility of the partition")
    panel.legend(frameon=False)
    panel.spines[["top", "right"]].set_visible(False)
    return panel
