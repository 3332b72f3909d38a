"""What stands beside a matrix: trees, colours and names of its rows and columns."""

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from ccot.blocks.families import FAMILIES
from ccot.blocks.hierarchy import Merge, merge_side
from ccot.io.frames import is_missing
from ccot.plotting._shared import FAINT, INK, Axes, matplotlib_module, without_frame

# Points: size of letters, and how wide one is.
LETTERS, _WIDE = 7.5, 0.62
# More names than this are not even tried; longer ones are cut.
_MOST_NAMES, _LONGEST = 150, 40
_UNKNOWN, _MOST_COLOURS = "#d8d8d4", 20


def merge_tree(estimator: Any, axis: int) -> list[Merge]:
    """Return the merges of the fitted clusters of one side, the pair that loses least first."""
    found: Any = getattr(estimator, "_coclustering", None)
    if not hasattr(found, "hierarchy"):
        raise ValueError(f"{type(estimator).__name__} has no hierarchy: use TransportCoclustering")
    # Blocks of a mixed table hold scores.
    family: Any = FAMILIES.get(found.family, FAMILIES["gaussian"])
    return merge_side(family, found.blocks, axis)


def leaf_order(merges: Sequence[Merge], n_clusters: int) -> np.ndarray:
    """Return the clusters in an order in which no two branches cross."""
    groups = {k: [k] for k in range(n_clusters)}
    for merge in merges:
        groups[merge.first] += groups.pop(merge.second)
    return np.concatenate([*groups.values()])


def inset(ax: Axes, inches: tuple[float, float], side: str, edge: int, number: int) -> Axes:
    """Return bare axes for so many points beside an edge of others: where, and how wide."""
    transforms, (start, width) = matplotlib_module("transforms"), inches
    across = ax.figure.dpi_scale_trans + transforms.ScaledTranslation(edge, edge, ax.transAxes)
    both = (across, ax.transAxes) if side == "row" else (ax.transAxes, across)
    bounds = (start, 0, width, 1) if side == "row" else (0, start, 1, width)
    beside = ax.inset_axes(bounds, transform=transforms.blended_transform_factory(*both))
    beside.set(xticks=[], yticks=[])
    without_frame(beside)
    _ = beside.set_ylim(number, 0) if side == "row" else beside.set_xlim(0, number)
    return beside


def draw_tree(ax: Axes, merges: Sequence[Merge], middles: Mapping[int, float], side: str) -> None:
    """Draw a dendrogram away from the matrix; heights are roots of the information lost."""
    places, heights, top = dict(middles), dict.fromkeys(middles, 0.0), 0.0
    for merge in merges:
        pair, top = (merge.first, merge.second), max(top, merge.cost**0.5)
        ends = [heights[pair[0]], top, top, heights[pair[1]]]
        along = np.repeat([places[k] for k in pair], 2)
        ax.plot(*((ends, along) if side == "row" else (along, ends)), color=INK, linewidth=0.9)
        places[merge.first], heights[merge.first] = along.mean(), top
    end = 1.03 * top or 1.0
    _ = ax.set_xlim(end, 0) if side == "row" else ax.set_ylim(0, end)


def as_tracks(given: Any, number: int, side: str) -> dict[str, list[Any]]:
    """Return values to be shown as colours, by title."""
    if given is None:
        return {}
    if hasattr(given, "columns"):
        given = {title: given[title] for title in given.columns}
    elif not isinstance(given, Mapping):
        given = {getattr(given, "name", None) or "": given}
    found = {str(title): list(values) for title, values in given.items()}
    for title, values in found.items():
        if len(values) != number:
            raise ValueError(f"{len(values)} {side}_colors {title!r} for {number} {side}s")
    return found


def colours_of(values: Sequence[Any]) -> tuple[np.ndarray, dict[str, Any]]:
    """Return the colours of values, and a legend: of categories each, of numbers the ends."""
    colours, maps = matplotlib_module("colors"), matplotlib_module("pyplot")
    known = [value for value in values if not is_missing(value)]
    if all(isinstance(v, tuple) or (isinstance(v, str) and v.startswith("#")) for v in known):
        chosen, legend = {value: colours.to_rgba(value) for value in known}, {}
    elif len(set(known)) > _MOST_COLOURS and all(isinstance(v, Real) for v in known):
        low, high = min(known), max(known)
        gradient = maps.get_cmap("cividis")
        chosen = {value: gradient((value - low) / (high - low)) for value in known}
        legend = {f"{end:.4g}": chosen[end] for end in (low, high)}
    else:
        names, counts = np.unique([_text(value) for value in known], return_counts=True)
        common = names[np.sort(np.argsort(-counts, kind="stable")[:_MOST_COLOURS])]
        wheel = maps.get_cmap("tab10" if len(common) <= 10 else "tab20")
        legend = {str(name): wheel(k) for k, name in enumerate(common)}
        chosen = {value: legend.get(_text(value), colours.to_rgba(FAINT)) for value in known}
        legend |= {"other": FAINT} if len(names) > len(common) else {}
    unknown = colours.to_rgba(_UNKNOWN)
    return np.array([unknown if is_missing(v) else chosen[v] for v in values]), legend


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def draw_track(ax: Axes, colours: np.ndarray, side: str, title: str) -> None:
    """Draw one colour for every point beside the matrix."""
    if side == "row":
        image, extent = colours[:, None], (0, 1, len(colours), 0)
        ax.set_xlabel(title, fontsize=LETTERS, rotation=90)
    else:
        image, extent = colours[None], (0, len(colours), 1, 0)
        ax.set_ylabel(title, fontsize=LETTERS, rotation=0, ha="right", va="center")
    ax.imshow(image, aspect="auto", interpolation="nearest", extent=extent)


def add_colour_legends(ax: Axes, legends: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
    """Explain all colours at the right of the figure."""
    patch, entries = matplotlib_module("patches").Patch, []
    for title, legend in legends:
        entries += [patch(alpha=0, label=title)] if title and legend else []
        entries += [patch(color=colour, label=name[:_LONGEST]) for name, colour in legend.items()]
    add_legend(ax, entries)


def add_legend(ax: Axes, entries: Sequence[Any], **style: Any) -> None:
    """Put a legend at the right of the figure."""
    if entries:
        figure: Any = ax.figure
        engine = type(figure.get_layout_engine()).__name__
        place = "outside right upper" if engine == "ConstrainedLayoutEngine" else "upper right"
        style = {"fontsize": LETTERS, "frameon": False, "handlelength": 1.0} | style
        figure.legend(handles=entries, loc=place, **style)


def name_places(
    axis: Any, places: np.ndarray, names: Sequence[str], weights: np.ndarray | None = None
) -> None:
    """Write names beside an axis as far as they fit, the heaviest first, at any size of figure."""
    step = 1 if weights is not None else max(-(-len(places) // _MOST_NAMES), 1)
    places = np.asarray(places, dtype=float)[::step]
    texts = [shortened(name) for name in names[::step]]
    order = range(len(texts)) if weights is None else np.argsort(-weights, kind="stable").tolist()
    is_row, figure = axis.axis_name == "y", axis.axes.figure
    lengths = np.array([_WIDE * LETTERS * (len(text) + 2) for text in texts])
    turned = not is_row and lengths.sum() > 0.45 * 72 * figure.get_figwidth()
    room = lengths if not is_row and not turned else np.full(len(texts), 1.25 * LETTERS)

    def written(_: Any) -> list[str]:
        low, high = sorted(axis.get_view_interval())
        length = axis.axes.bbox.height if is_row else axis.axes.bbox.width
        at, kept = (places - low) / (high - low) * length * 72 / figure.dpi, []
        for k in order:
            if all(abs(at[k] - at[other]) >= (room[k] + room[other]) / 2 for other in kept):
                kept.append(k)
        return [text if k in kept else "" for k, text in enumerate(texts)]

    axis.set_ticks(places)
    formatter = matplotlib_module("ticker").FuncFormatter(lambda *_: "")
    formatter.format_ticks = written
    axis.set_major_formatter(formatter)
    axis.set_tick_params(labelsize=LETTERS, labelrotation=90 if turned else 0, length=0)


def sized_label(name: Any, size: float) -> str:
    """Return the name of a cluster with its size."""
    return f"{shortened(str(name), 34)} ({size:.0f})"


def shortened(name: str, longest: int = _LONGEST) -> str:
    """Return a name that is not too long for a figure."""
    return name if len(name) <= longest else f"{name[: longest - 1]}…"


def text_width(texts: Sequence[str]) -> float:
    """Return about how many inches the longest text is wide."""
    return 0.065 * max(map(len, texts), default=0)
