r"""Positions of jumps in sorted values.

The detectors look for local maxima of :math:`F(I_i) = |\alpha_{i+1} - \alpha_i| + |\alpha_i -
\alpha_{i-1}|` that form a chain through averages of the values, from fine to coarse.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal, overload

import numpy as np
from array_api_compat import array_namespace, device
from numpy.typing import ArrayLike

from ccot.runtime.types import Array

DETECTORS = ("multiscale", "authors", "paper")
LEVEL = 0.02


@dataclass(frozen=True)
class Jumps:
    """Jumps in sorted vectors (..., n), see :func:`detect_jumps`; both arrays are (..., n - 1)."""

    mask: Array
    strength: Array


@overload
def detect_jumps(
    sorted_values: ArrayLike,
    method: str = ...,
    *,
    n_jumps: int | None = ...,
    level: float = ...,
    return_strength: Literal[False] = ...,
) -> np.ndarray: ...
@overload
def detect_jumps(
    sorted_values: ArrayLike,
    method: str = ...,
    *,
    n_jumps: int | None = ...,
    level: float = ...,
    return_strength: Literal[True],
) -> tuple[np.ndarray, np.ndarray]: ...
def detect_jumps(
    sorted_values: ArrayLike,
    method: str = "multiscale",
    *,
    n_jumps: int | None = None,
    level: float = LEVEL,
    return_strength: bool = False,
) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
    r"""Return the positions of the jumps in a sorted vector.

    Section 3.5 of the paper [1]_.

    Parameters
    ----------
    sorted_values : array-like of shape (n_values,), ascending; for scalings, their logarithms
    method : {"multiscale", "authors", "paper"}, default="multiscale"
        ``"multiscale"`` accepts only jumps that are large compared with the spacing of the values
        around them; it finds clusters of a few values, also at the ends. ``"authors"`` does the
        same as the paper's published code: no test of significance, no jumps close to the ends.
        ``"paper"`` follows section 3.5 literally, see the notes.
    n_jumps : int, optional, number of jumps to return: the strongest, significant or not
    level : float, default=0.02, at most 1
        Loose bound on the probability of a false jump in a vector without structure (multiscale).
    return_strength : bool, default=False, returns also the strength of every jump

    Returns
    -------
    positions : ndarray of int, increasing: the number of values before each jump
    strength : ndarray of float, only with ``return_strength``
        Minus the decimal logarithm of the bound on the probability of a false jump
        (``"multiscale"``), or the height relative to the range.

    Notes
    -----
    ``"paper"`` follows the text in F, the averages of pairs, the :math:`\lfloor \log_2 n \rfloor`
    coarser scales, the chain (an interval must be suspicious, and so must the one that contains
    it at every coarser scale), and the lack of a threshold. The text leaves five choices:

    - The printed argmax over all intervals allows one jump only. Here an interval is suspicious
      if its F is at least as large as in the intervals beside it.
    - The first and last interval have one neighbour; the missing difference in F is zero.
    - If the number of averages is odd, the last one has no partner and is kept.
    - A jump in an interval is at the wider of its two gaps, in a tie at the second.
    - The vectors of CCOT and CCOT-GW are the scalings, as printed, not their logarithms.

    At the scale with three or four averages, F has one local maximum, unless two values of F are
    equal. So all jumps are inside that interval, and more than two clusters are seldom found.

    References
    ----------
    .. [1] Laclau, C., Redko, I., Matei, B., Bennani, Y. and Brault, V. (2017). Co-clustering
       through optimal transport. ICML.

    Examples
    --------
    >>> import numpy as np
    >>> steps = np.repeat([0.0, 5.0, 9.0], [10, 40, 25])
    >>> values = np.sort(steps + 0.1 * np.random.default_rng(0).normal(size=75))
    >>> detect_jumps(values)
    array([10, 50])
    >>> detect_jumps(values, n_jumps=1)
    array([50])
    """
    values = _check_sorted(sorted_values)
    _check_request(len(values), method, n_jumps, level)
    positions, strength = np.empty(0, dtype=np.int64), np.empty(0)
    if len(values):
        jumps = find_jumps(values, method, n_jumps=n_jumps, level=level)
        positions, strength = np.flatnonzero(jumps.mask) + 1, jumps.strength[jumps.mask]
    return (positions, strength) if return_strength else positions


def find_jumps(
    values: Array,
    method: str = "multiscale",
    *,
    n_jumps: int | None = None,
    level: float = LEVEL,
    resolution: float | None = None,
) -> Jumps:
    """Return the jumps in a batch of sorted vectors; PyTorch tensors need ``"multiscale"``."""
    # Gaps up to ``resolution`` count as rounding errors; its default suits float64.
    _check_request(values.shape[-1], method, n_jumps, level)
    xp = array_namespace(values)
    batch = xp.reshape(values, (-1, values.shape[-1]))
    if resolution is None:
        largest = float(xp.max(xp.abs(values))) if batch.shape[0] else 0.0
        resolution = 64 * float(np.finfo(np.float64).eps) * largest
    gaps = batch[:, 1:] - batch[:, :-1]
    if method != "multiscale":
        extent = np.maximum(np.ptp(batch, axis=-1), np.finfo(np.float64).tiny)
        mask = _authors(batch) if method == "authors" else _paper(batch)
        strength = gaps / extent[:, None]
    else:
        strength = _evidence(batch, gaps, resolution)
        mask = strength > -math.log10(level)
    if n_jumps is not None:
        mask = _strongest(strength if method == "multiscale" else mask, gaps, n_jumps)
    shape = (*values.shape[:-1], values.shape[-1] - 1)
    return Jumps(xp.reshape(mask, shape), xp.reshape(strength, shape))


def find_scaling_jumps(sorted_log_scaling: Array, method: str, **options: Any) -> Jumps:
    """Return the jumps in sorted log scalings; only ``"multiscale"`` works on the logarithms."""
    if method != "multiscale":
        sorted_log_scaling = np.exp(sorted_log_scaling - sorted_log_scaling[..., -1:])
    return find_jumps(sorted_log_scaling, method, **options)


def _strongest(evidence: Array, gaps: Array, n_jumps: int) -> Array:
    """Return a mask of the ``n_jumps`` positions with most evidence, in a tie of the wider gaps."""
    xp = array_namespace(gaps)
    # Sorted by gap, then stably by evidence, so that gaps decide only in a tie.
    order = xp.argsort(gaps, axis=-1, stable=True)
    vector = xp.arange(gaps.shape[0], device=device(gaps))[:, None]
    ranked = xp.astype(evidence, xp.float64)[vector, order]
    order = order[vector, xp.argsort(ranked, axis=-1, stable=True)]
    mask = xp.zeros_like(gaps, dtype=xp.bool)
    mask[vector, order[:, gaps.shape[1] - n_jumps :]] = True
    return mask


def _evidence(values: Array, gaps: Array, resolution: float) -> Array:
    """Return minus log10 of the bound on the probability of a false jump, for each gap."""
    xp = array_namespace(values)
    n_values, n_gaps = values.shape[-1], gaps.shape[-1]
    candidates = xp.nonzero((gaps > resolution) & _is_peak(gaps))
    vector, place = candidates
    gap, flat = gaps[candidates], xp.reshape(values, (-1,))
    n_links = max(1, int(math.log2(n_values)) - 1)
    chained = xp.arange(gap.shape[0], device=device(values))
    log_chances = (xp.zeros_like(gap), xp.zeros_like(gap))
    totals, sizes = values, xp.ones_like(values[:1, :])
    for link in range(n_links):
        if link:
            totals, sizes = _pair(totals), _pair(sizes)
            peak = xp.reshape(_is_peak(_cost(totals / sizes)), (-1,))
            # A jump at the border of two intervals is in both: one of them is enough for the chain.
            start = vector * totals.shape[1]
            left, right = (xp.take(peak, start + (one >> link)) for one in (place, place + 1))
            (kept,) = xp.nonzero(left | right)
            chained, vector, place, gap = (xp.take(x, kept) for x in (chained, vector, place, gap))
        for side, log_chance in zip((-1, 1), log_chances, strict=True):
            near = vector * n_values + place + (side > 0)
            edge = xp.take(flat, near)
            room = place if side < 0 else n_gaps - 1 - place
            chance = xp.take(log_chance, chained)
            for window in (2 * 2**link, 3 * 2**link):
                count = xp.clip(room, None, window)
                total = side * (xp.take(flat, near + side * count) - edge)
                # Equal values have no gaps at all: a limit keeps the evidence finite.
                ratio = gap / xp.maximum(total, 1e-15 * gap)
                chance = xp.minimum(chance, -count * xp.log1p(ratio))
            log_chance[chained] = chance
    log_bound = xp.maximum(*log_chances) + math.log(max(1, n_gaps) * 2 * n_links)
    evidence = xp.zeros_like(gaps)
    evidence[candidates] = xp.clip(-log_bound, 0.0, None) / math.log(10)
    return evidence


def _pair(totals: Array) -> Array:
    """Return sums of pairs of neighbours; the last of an odd number is kept."""
    paired = array_namespace(totals).asarray(totals[..., ::2], copy=True)
    paired[..., : totals.shape[-1] // 2] += totals[..., 1::2]
    return paired


def _cost(averages: Array) -> Array:
    """Return F of the paper; differences beyond the ends are zero."""
    cost = array_namespace(averages).zeros_like(averages)
    steps = averages[:, 1:] - averages[:, :-1]
    cost[:, 1:] = steps
    cost[:, :-1] += steps
    return cost


def _is_peak(heights: Array) -> Array:
    xp = array_namespace(heights)
    peak = xp.ones_like(heights, dtype=xp.bool)
    peak[:, 1:] = heights[:, 1:] >= heights[:, :-1]
    peak[:, :-1] &= heights[:, 1:] <= heights[:, :-1]
    return peak


def _paper(batch: np.ndarray) -> np.ndarray:
    """Return a mask of the gaps with a chain of suspicious intervals through all scales."""
    n_values = batch.shape[-1]
    chained = np.ones(batch.shape, dtype=bool)
    # Their smallest value is subtracted, so that equal gaps have equal sums for any offset.
    totals, sizes = batch - batch[:, :1], np.ones((1, n_values))
    for scale in range(int(math.log2(n_values)) + 1):
        suspicious = _is_peak(_cost(totals / sizes))
        chained &= suspicious[:, np.arange(n_values) >> scale]
        totals, sizes = _pair(totals), _pair(sizes)
    gaps = np.diff(batch, prepend=batch[:, :1], append=batch[:, -1:])
    after = gaps[:, 1:] >= gaps[:, :-1]
    at_gap = (chained & after)[:, :-1] | (chained & ~after)[:, 1:]
    return at_gap & (gaps[:, 1:-1] > 0)


def _authors(batch: np.ndarray) -> np.ndarray:
    mask = np.zeros((len(batch), batch.shape[-1] - 1), dtype=bool)
    for row, values in zip(mask, batch, strict=True):
        row[_authors_jumps(values)] = True
    return mask


def _authors_jumps(values: np.ndarray) -> list[int] | np.ndarray:
    """Return the indices of the gaps that are jumps in the published code."""
    octaves = int(np.log2(len(values)))
    if octaves < 4:
        gaps = np.diff(values)
        return [i for i in range(3, len(values) - 3) if gaps[i] > max(gaps[i + 1 : i + 3])]
    n_scales = 2 if octaves < 7 else 4
    coarse, scales = values, []
    for scale in range(1, n_scales + 1):
        scales.append(_authors_scale(coarse, window=3 * (5 - scale)))
        paired = coarse[: len(coarse) // 2 * 2]
        coarse = (paired[::2] + paired[1::2]) / 2
    # Only the finest and the coarsest scale decide; the published code does not use the others.
    finest, coarsest = scales[0], scales[-1] * 2 ** (n_scales - 1)
    near = np.abs(finest[:, None] - coarsest[None, :]) < 2 * n_scales
    return finest[near.any(axis=1)] - 1


def _authors_scale(values: np.ndarray, window: int) -> np.ndarray:
    """Return the local maxima of F within ``window`` intervals on either side, counted from 1."""
    gaps = np.diff(values)
    cost = gaps[:-1] + gaps[1:]
    kept = []
    for i in range(1 + window, len(values) - 2 - window):
        higher_than_next = cost[i] > cost[i + 1 : i + 1 + window].max()
        if higher_than_next and cost[i - 1] > cost[i - 1 - window : i - 1].max():
            kept.append(i)
    # Neighbouring candidates are one jump seen from both sides; the first of them is the taller.
    return np.array([i for i in kept if i - 1 not in kept], dtype=np.int64) + 1


def _check_request(n_values: int, method: str, n_jumps: int | None, level: float) -> None:
    if method not in DETECTORS:
        raise ValueError(f"unknown detector {method!r}: choose one of {', '.join(DETECTORS)}")
    most = max(n_values - 1, 0)
    if n_jumps is not None and not 0 <= n_jumps <= most:
        raise ValueError(f"{n_values} values cannot have {n_jumps} jumps: pass 0 to {most}")
    if not 0 < level <= 1:
        raise ValueError(f"level is {level}: pass a probability, more than 0 and at most 1")


def _check_sorted(sorted_values: ArrayLike) -> np.ndarray:
    values = np.asarray(sorted_values, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"expected one vector of values, got an array of shape {values.shape}")
    if not np.isfinite(values).all():
        raise ValueError("the values contain NaN or infinity: remove them first")
    if (np.diff(values) < 0).any():
        raise ValueError("the values are not in ascending order: pass numpy.sort(values)")
    return values
