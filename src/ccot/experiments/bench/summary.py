"""What a run of the suite amounts to: medians of cells, ratios, and exponents of growth."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

import numpy as np

# Below these, clocks and page sizes are seen rather than the method.
_FLOOR = {"seconds": 1e-3, "megabytes": 2.0}
_FEWEST = 3


@dataclass(frozen=True)
class Cell:
    """One rival on one case."""

    case: str
    axis: str
    rival: str
    size: int
    status: str  # "done", or the first reason why not
    seconds: float | None  # median processor time
    megabytes: float | None  # median of peak memory beyond the matrix
    error: float | None  # mean
    numbers: tuple[str, ...]  # of clusters in every fit, "rows x columns"


@dataclass(frozen=True)
class Growth:
    """How something grows along an axis; the exponent, see :func:`fit_exponent`, may be None."""

    sizes: tuple[float, ...]
    values: tuple[float, ...]
    exponent: float | None


def summarise(result: dict[str, Any]) -> list[Cell]:
    """Return a cell for every case and rival that met."""
    trials: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for trial in result["trials"]:
        trials.setdefault((trial["case"], trial["rival"]), []).append(trial)
    return [
        _cell(case, rival["name"], trials[case["name"], rival["name"]])
        for case in result["cases"]
        for rival in result["rivals"]
        if (case["name"], rival["name"]) in trials
    ]


def growth(cells: Sequence[Cell], rival: str, axis: str, what: str) -> Growth:
    """Return how the seconds or the megabytes of a rival grow along an axis."""
    own = [(c.size, getattr(c, what)) for c in cells if (c.rival, c.axis) == (rival, axis)]
    seen = sorted((size, value) for size, value in own if value is not None)
    sizes, values = tuple(size for size, _ in seen), tuple(value for _, value in seen)
    clear = [(size, value) for size, value in seen if value >= _FLOOR[what]]
    return Growth(sizes, values, fit_exponent(*zip(*clear, strict=True)) if clear else None)


def fit_exponent(sizes: Sequence[float], values: Sequence[float]) -> float | None:
    """Return the exponent of a power law through the larger half of the sizes; None: too few."""
    # What a method does once, whatever the size, flattens the smaller half.
    n_kept = max(_FEWEST, (len(sizes) + 1) // 2)
    if len(sizes) < n_kept:
        return None
    return round(float(np.polyfit(np.log(sizes[-n_kept:]), np.log(values[-n_kept:]), 1)[0]), 3)


def _cell(case: dict[str, Any], rival: str, trials: list[dict[str, Any]]) -> Cell:
    done = [trial for trial in trials if trial["status"] == "done"]
    status = next((trial["status"] for trial in trials if trial["status"] != "done"), "done")
    labelled = [trial for trial in done if trial["row_clusters"] is not None]
    return Cell(
        case=case["name"],
        axis=case["axis"],
        rival=rival,
        size=case["size"],
        status=status,
        seconds=_of(median, done, "processor_seconds"),
        megabytes=_of(median, done, "megabytes"),
        error=_of(fmean, done, "error"),
        numbers=tuple(f"{t['row_clusters']} x {t['column_clusters']}" for t in labelled),
    )


def _of(average: Any, trials: list[dict[str, Any]], key: str) -> float | None:
    values = [trial[key] for trial in trials if trial[key] is not None]
    return float(average(values)) if values else None
