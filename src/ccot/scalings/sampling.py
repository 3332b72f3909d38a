"""Which rows go into each square draw; their order pairs them with columns.

If there are many draws, crossings cost less: each strip of rows comes from one of two squares.
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

SAMPLINGS = ("cover", "uniform", "replacement")
N_STRIPS = 5
# The pool of rows that vote has at most this many rows and entries, but always enough rows for this
# many draws.
POOL_ROWS, POOL_CELLS, POOL_DRAWS = 2**16, 2**25, 4
# Draws are crossings, which share products, if every row is drawn at least this often.
CROSSED_FROM = 64
# CROSSINGS[k, p]: strip p of crossing k comes from the first (0) or second (1) of two squares.
CROSSINGS = np.arange(2**N_STRIPS)[:, None] >> np.arange(N_STRIPS)[::-1] & 1


def draw_indices(
    n_points: int, size: int, sampling: str, rng: np.random.Generator, crossed: bool = False
) -> Iterator[np.ndarray]:
    """Yield ordered draws of ``size`` of ``n_points`` points, or crossings, without end."""
    # If all points are drawn, the first draw has the given order.
    if crossed:
        for first, second in _parents(n_points, size, rng):
            yield from cross(first, second)
    if size == n_points:
        yield np.arange(n_points)
    if sampling == "cover":
        yield from _cover(n_points, size, rng)
    replace = sampling == "replacement" and size < n_points
    while True:
        yield rng.choice(n_points, size=size, replace=replace)


def _cover(n_points: int, size: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield blocks of random permutations, so that every row is drawn equally often."""
    waiting = rng.permutation(n_points)
    while True:
        if len(waiting) < size:
            fresh = rng.permutation(n_points)
            # The remainder of one permutation is filled up from the next. Rows already in the draw
            # go to the end of the queue, so that no row is in a draw twice.
            twice = np.isin(fresh, waiting)
            waiting = np.concatenate([waiting, fresh[~twice], fresh[twice]])
        yield waiting[:size]
        waiting = waiting[size:]


def _parents(
    n_points: int, size: int, rng: np.random.Generator
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield pairs of squares; if rows are few, strips of the second repeat rows of the first."""
    given = size == n_points
    n_fresh = min(size, n_points - size)
    for points in _cover(n_points, size + n_fresh, rng):
        first, fresh = (np.arange(n_points) if given else points[:size]), points[size:]
        given = False
        pairs = zip(*(np.array_split(some, N_STRIPS) for some in (first, fresh)), strict=True)
        filled = (np.concatenate([new, old[len(new) :]]) for old, new in pairs)
        yield first, np.concatenate([rng.permutation(strip) for strip in filled])


def strips(size: int) -> list[slice]:
    """Return the strips of a square of this many rows, as equal as possible."""
    edges = np.cumsum([0, *map(len, np.array_split(range(size), N_STRIPS))]).tolist()
    return [slice(start, stop) for start, stop in pairwise(edges)]


def cross(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return all crossings of two draws."""
    return np.where(is_second(len(first)), second, first)


def is_second(size: int) -> np.ndarray:
    """Return True for each row of each crossing that comes from the second square."""
    lengths = [strip.stop - strip.start for strip in strips(size)]
    return np.repeat(CROSSINGS == 1, lengths, axis=1)


def are_crossings(draws: np.ndarray) -> bool:
    """Return True if draws are all the crossings of the first and the last, in order."""
    return len(draws) == len(CROSSINGS) and np.array_equal(draws, cross(draws[0], draws[-1]))


def pool_size(shape: tuple[int, int], n_samplings: int | str = "auto") -> int:
    """Return the number of rows in the pool of a matrix with many rows."""
    n_rows, size = shape
    most = max(POOL_DRAWS * size, min(POOL_ROWS, POOL_CELLS // size))
    if n_rows <= most:
        return n_rows
    return most if n_samplings == "auto" else min(most, int(n_samplings) * size)
