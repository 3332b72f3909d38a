r"""Costs between the rows and the columns of square draws.

Row ``i`` and column ``j`` of a square matrix ``D`` have the same length, and the cost of moving
one to the other is

.. math:: M_{ij} = \|x_i - y_j\|^2 = \|x_i\|^2 + \|y_j\|^2 - 2 (D D)_{ij}.

The two norms only rescale the rows and columns of the Gibbs kernel :math:`e^{-\lambda M}`, so the
solver sees the cross term alone and the norms are added to the logarithms of its scalings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

Array = Any


@dataclass(frozen=True)
class SquareCosts:
    """Costs of a batch of square draws, in three parts.

    Attributes
    ----------
    row_norms, column_norms : arrays of shape (n_draws, size)
        Squared norms of rows and columns, float64.
    cross : array of shape (n_draws, size, size)
        The products ``D @ D``.
    """

    row_norms: Array
    column_norms: Array
    cross: Array

    def full(self) -> Array:
        """Return the costs themselves."""
        norms = self.row_norms[..., :, None] + self.column_norms[..., None, :]
        xp = array_namespace(norms)
        return xp.clip(norms - 2 * xp.astype(self.cross, xp.float64), 0.0, None)


def square_costs(squares: Array, dtype: Any = None, out: Array | None = None) -> SquareCosts:
    """Compute the row-column costs of a batch of squares.

    Parameters
    ----------
    squares : array of shape (n_draws, size, size), or one sparse matrix
        The draws. A sparse draw is never made dense; its products are.
    dtype : dtype, optional
        Precision of the products, that of ``squares`` by default.
    out : array of shape (n_draws, size, size), optional
        Where to put the products (NumPy only).

    Returns
    -------
    SquareCosts
        Norms and cross products.
    """
    if sp.issparse(squares):
        squared = squares.multiply(squares)
        row_norms = np.asarray(squared.sum(axis=1), dtype=np.float64).reshape(1, -1)
        column_norms = np.asarray(squared.sum(axis=0), dtype=np.float64).reshape(1, -1)
        cross = np.asarray((squares @ squares).toarray())[None]
        return SquareCosts(row_norms, column_norms, cross if dtype is None else cross.astype(dtype))
    xp = array_namespace(squares)
    row_norms, column_norms = _squared_norms(squares, -1), _squared_norms(squares, -2)
    factor = squares if dtype is None else xp.astype(squares, dtype)
    cross = xp.matmul(factor, factor) if out is None else np.matmul(factor, factor, out=out)
    return SquareCosts(row_norms, column_norms, cross)


def _squared_norms(squares: Array, axis: int) -> Array:
    xp = array_namespace(squares)
    if isinstance(squares, np.ndarray):
        norms = np.einsum("bij,bij->bi" if axis == -1 else "bij,bij->bj", squares, squares)
        return norms.astype(np.float64)
    return xp.astype(xp.linalg.vector_norm(squares, axis=axis), xp.float64) ** 2


def join_costs(parts: Sequence[SquareCosts]) -> SquareCosts:
    """Put the costs of several batches of draws together."""
    return SquareCosts(
        row_norms=np.concatenate([part.row_norms for part in parts]),
        column_norms=np.concatenate([part.column_norms for part in parts]),
        cross=np.concatenate([part.cross for part in parts]),
    )


def typical_cost(cost: np.ndarray) -> float:
    """Return the median cost, the mean where that is zero, 1 where all costs are.

    Rounding below zero counts as zero.
    """
    cost = np.maximum(cost, 0.0)
    return float(np.median(cost)) or float(np.mean(cost)) or 1.0
