"""Costs between the rows and the columns of square draws.

Squared norms only rescale rows and columns of the Gibbs kernel. So the solver gets the products of
rows and columns, and the norms are added to its log scalings.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from ccot.runtime.types import Array
from ccot.scalings.sampling import CROSSINGS, N_STRIPS, is_second, strips


@dataclass(frozen=True)
class SquareCosts:
    """Costs of a batch of square draws: squared norms in float64, and the products ``D @ D``."""

    row_norms: Array
    column_norms: Array
    cross: Array


def square_costs(squares: Array, dtype: Any = None, out: Array | None = None) -> SquareCosts:
    """Return the row-column costs of a batch of squares, or of one sparse square."""
    if sp.issparse(squares):
        squared = squares.multiply(squares)
        norms = [np.asarray(squared.sum(axis), np.float64).reshape(1, -1) for axis in (1, 0)]
        cross = np.asarray((squares @ squares).toarray())[None]
        return SquareCosts(norms[0], norms[1], cross if dtype is None else cross.astype(dtype))
    xp = array_namespace(squares)
    row_norms, column_norms = _squared_norms(squares, -1), _squared_norms(squares, -2)
    factor = squares if dtype is None else xp.astype(squares, dtype)
    cross = xp.matmul(factor, factor) if out is None else np.matmul(factor, factor, out=out)
    return SquareCosts(row_norms, column_norms, cross)


def _squared_norms(squares: Array, axis: int) -> Array:
    if isinstance(squares, np.ndarray):
        norms = np.einsum("bij,bij->bi" if axis == -1 else "bij,bij->bj", squares, squares)
        return norms.astype(np.float64)
    xp = array_namespace(squares)
    return xp.astype(xp.linalg.vector_norm(squares, axis=axis), xp.float64) ** 2


class CrossedCosts:
    """Costs of all crossings of two squares, summed from products that they share."""

    # ``D @ D`` is a sum over the five strips: the columns of a strip times its rows. The rows of
    # both factors come from one of two squares: four products a strip are enough for all crossings.

    def __init__(self, size: int, dtype: Any) -> None:
        self._strips = strips(size)
        shapes = ((3, 2), (2, 2), (2, 2, 2), (2, 2, 2, 2), (2, 2, 2, 2))
        edges = np.cumsum([math.prod(shape) for shape in shapes])
        # One large allocation uses large memory pages, which are faster than many small ones.
        pieces = np.split(np.empty((edges[-1], size, size), dtype), edges[:-1])
        # Axes of left and right: the square of the rows of the first factor, then of each strip.
        self._products, self._two, self._left, self._right, self._cross = (
            piece.reshape(*shape, size, size) for piece, shape in zip(pieces, shapes, strict=True)
        )

    def __call__(self, squares: np.ndarray) -> Iterator[SquareCosts]:
        """Yield costs of crossings of two squares, in two parts that use the same memory."""
        self._multiply(squares)
        size = squares.shape[-1]
        row_norms = _squared_norms(squares, -1)
        row_norms = np.where(is_second(size), row_norms[1], row_norms[0])
        by_strip = np.stack([_squared_norms(squares[:, s], -2) for s in self._strips], axis=1)
        column_norms = by_strip[CROSSINGS, np.arange(N_STRIPS)].sum(axis=1)
        half = len(CROSSINGS) // 2
        for first, part in enumerate((slice(half), slice(half, None))):
            self._add_up(first)
            cross = self._cross.reshape(-1, size, size)
            yield SquareCosts(row_norms[part], column_norms[part], cross)

    def _multiply(self, squares: np.ndarray) -> None:
        for parent, square in enumerate(squares):
            self._multiply_strips(square, squares, self._strips[:2])
            np.add(self._products[0, :, None], self._products[1], out=self._left[parent])
            self._multiply_strips(square, squares, self._strips[2:])
            np.add(self._products[0, :, None], self._products[1], out=self._two)
            np.add(self._two[:, :, None], self._products[2], out=self._right[parent])

    def _multiply_strips(self, square: np.ndarray, squares: np.ndarray, some: list[slice]) -> None:
        for strip, products in zip(some, self._products, strict=False):
            np.matmul(square[:, strip], squares[:, strip], out=products)

    def _add_up(self, first: int) -> None:
        """Write the products of all crossings whose first strip comes from the square ``first``."""
        for place, strip in enumerate(self._strips):
            for parent in range(2) if place else (first,):
                which = [slice(None)] * (N_STRIPS - 1)
                if place:
                    which[place - 1] = slice(parent, parent + 1)
                left = self._left[parent, first, which[0], None, None, None, strip]
                right = self._right[parent, *which[1:], strip]
                np.add(left, right, out=self._cross[*which, strip])


def typical_cost(cost: np.ndarray) -> float:
    """Return the median cost; the mean if the median is zero; 1 if no cost is positive."""
    cost = np.maximum(cost, 0.0)
    return float(np.median(cost)) or float(np.mean(cost)) or 1.0
