"""The arithmetic of ratings: what is a rating, offsets, effects of blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array

_ROUNDS = 20


@dataclass(frozen=True)
class Offsets:
    """What users and items add to the mean rating.

    Attributes
    ----------
    mean : float
        Mean of all ratings.
    user, item : arrays
        Offsets; 0 for who has no ratings.
    """

    mean: float
    user: np.ndarray
    item: np.ndarray


@dataclass(frozen=True)
class BlockTable:
    """Ratings summed over blocks; the last row and column are for who belongs nowhere.

    Attributes
    ----------
    effect : array of shape (n_user_clusters + 1, n_item_clusters + 1)
        Mean of what the offsets leave, shrunk towards 0.
    mean : array of the same shape
        Plain mean rating; NaN where there is none.
    size : array of the same shape
        Number of ratings.
    """

    effect: np.ndarray
    mean: np.ndarray
    size: np.ndarray


def as_ratings(X: Any) -> sp.csr_array:
    """Return ratings as a sparse array whose stored entries are the ratings."""
    if sp.issparse(X):
        checked = check_array(X, accept_sparse="csr", dtype=np.float64)
        ratings = sp.csr_array(checked)
        ratings.sum_duplicates()
    else:
        dense = check_array(X, dtype=np.float64, ensure_all_finite="allow-nan")
        users, items = np.nonzero(~np.isnan(dense))
        ratings = sp.csr_array((dense[users, items], (users, items)), shape=dense.shape)
    if ratings.nnz == 0:
        raise ValueError("there are no ratings: X has no entry that is not missing")
    return ratings


def fit_offsets(ratings: sp.csr_array, user_shrinkage: float, item_shrinkage: float) -> Offsets:
    """Return offsets by regularised least squares, users and items in turn."""
    (users, items), values = ratings.tocoo().coords, ratings.data
    mean = float(values.mean())
    n_users, n_items = ratings.shape
    by_user = np.bincount(users, minlength=n_users) + user_shrinkage
    by_item = np.bincount(items, minlength=n_items) + item_shrinkage
    user, item = np.zeros(n_users), np.zeros(n_items)
    for _ in range(_ROUNDS):
        item = _ratio(np.bincount(items, values - mean - user[users], n_items), by_item)
        user = _ratio(np.bincount(users, values - mean - item[items], n_users), by_user)
    return Offsets(mean, user, item)


def sum_blocks(
    ratings: sp.csr_array,
    offsets: Offsets,
    user_labels: np.ndarray,
    item_labels: np.ndarray,
    shape: tuple[int, int],
    shrinkage: float,
) -> BlockTable:
    """Return effect, mean and size of every block; users and items labelled -1 count nowhere."""
    (users, items), values = ratings.tocoo().coords, ratings.data
    rows, columns = user_labels[users], item_labels[items]
    placed = (rows >= 0) & (columns >= 0)
    rows, columns, values = rows[placed], columns[placed], values[placed]
    left = values - offsets.mean - offsets.user[users[placed]] - offsets.item[items[placed]]

    def table(weights: np.ndarray | None) -> np.ndarray:
        flat = np.bincount(rows * shape[1] + columns, weights, shape[0] * shape[1])
        return np.pad(flat.reshape(shape), (0, 1))

    size = table(None)
    total = table(values)
    mean = np.divide(total, size, out=np.full(size.shape, np.nan), where=size > 0)
    return BlockTable(_ratio(table(left), size + shrinkage), mean, size.astype(np.int64))


def _ratio(total: np.ndarray, weight: np.ndarray) -> np.ndarray:
    return np.divide(total, weight, out=np.zeros_like(total), where=weight > 0)
