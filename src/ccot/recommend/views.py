"""Ratings as a co-clustering sees them."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from ccot.recommend.values import UNASSIGNED
from ccot.runtime.types import Matrix

VIEWS = ("zeros", "likes", "nan")


def see(ratings: sp.csr_array, view: str, like: float) -> Matrix:
    """Return ratings in one of the views."""
    if view == "nan":
        dense = np.full(ratings.shape, np.nan)
        dense[ratings.tocoo().coords] = ratings.data
        return dense
    if view == "zeros":
        return ratings
    liked = ratings.copy()
    liked.data = (ratings.data >= like).astype(np.float64)
    liked.eliminate_zeros()
    return liked


def unless_empty(labels: np.ndarray, seen: Matrix) -> np.ndarray:
    """Return labels, -1 where the co-clustering saw nothing."""
    if sp.issparse(seen):
        holds = np.diff(sp.csr_array(seen).indptr) > 0
    else:
        holds = ~np.isnan(seen).all(axis=1)
    return np.where(holds, labels, UNASSIGNED)
