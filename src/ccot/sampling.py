"""Which rows go into each square draw.

CCOT compares rows with columns, so both must have the same length. When a matrix has more rows
than columns, as many rows as there are columns are drawn, again and again, until everyone had a
say. The order within a draw matters too: it decides which row stands opposite which column.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

SAMPLINGS = ("cover", "uniform")


def draw_indices(
    n_points: int, size: int, sampling: str, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """Yield ordered draws of ``size`` of ``n_points`` points, without end.

    Parameters
    ----------
    n_points, size : int
        How many points there are and how many go into a draw.
    sampling : {"cover", "uniform"}
        ``"cover"`` cuts random permutations into blocks: everyone is drawn equally often, up to
        one draw. ``"uniform"`` makes independent draws, as the paper does.
    rng : numpy.random.Generator
        Source of randomness.

    Yields
    ------
    numpy.ndarray of shape (size,)
        Distinct indices. Where there is nothing to draw (``size == n_points``), the first draw is
        the given order and later ones pair rows and columns anew.

    Examples
    --------
    >>> import numpy as np
    >>> draws = draw_indices(6, 3, "cover", np.random.default_rng(0))
    >>> sorted(np.concatenate([next(draws), next(draws)]).tolist())
    [0, 1, 2, 3, 4, 5]
    """
    if size == n_points:
        yield np.arange(n_points)
    if sampling == "cover":
        yield from _cover(n_points, size, rng)
    while True:
        yield rng.choice(n_points, size=size, replace=False)


def _cover(n_points: int, size: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    waiting = rng.permutation(n_points)
    while True:
        if len(waiting) < size:
            fresh = rng.permutation(n_points)
            # The remainder of one permutation is filled up from the next: those already in the
            # draw go to the end of the queue, so that nobody is in it twice.
            twice = np.isin(fresh, waiting)
            waiting = np.concatenate([waiting, fresh[~twice], fresh[twice]])
        yield waiting[:size]
        waiting = waiting[size:]
