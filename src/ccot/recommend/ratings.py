"""The arithmetic of ratings: how a co-clustering sees them, offsets, effects of blocks."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array

from ccot.blocks.families import ratio
from ccot.recommend.values import UNASSIGNED
from ccot.runtime.types import Matrix

VIEWS = ("zeros", "likes", "nan")
_ROUNDS = 20


@dataclass(frozen=True)
class BlockTable:
    """Ratings summed over blocks; the last row and column are for who belongs nowhere."""

    effect: np.ndarray  # mean of what the offsets leave, shrunk towards 0
    mean: np.ndarray  # plain mean rating, NaN where there is none
    size: np.ndarray


@dataclass(frozen=True)
class RatingSide:
    """The users, or the items, of a fit; ``name`` is "user" or "item"."""

    name: str
    labels: np.ndarray
    offsets: np.ndarray
    shrinkage: float

    def check_numbers(self, numbers: Any) -> np.ndarray:
        """Return numbers of this side as an array, or say why they are none."""
        checked = np.asarray(numbers)
        if checked.size == 0:
            checked = checked.astype(np.int64)
        if checked.dtype.kind not in "iu":
            raise TypeError(f"{self.name}s are numbers of the fitted matrix, not {numbers!r}")
        size = len(self.labels)
        if checked.size and (checked.min() < 0 or checked.max() >= size):
            raise IndexError(f"there are {self.name}s 0 to {size - 1} only: {numbers!r}")
        return checked

    def check_ratings(
        self, numbers: Any, ratings: Any, limits: tuple[float, float]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return numbers of this side, in increasing order, and their ratings."""
        numbers = np.atleast_1d(self.check_numbers(numbers))
        ratings = np.atleast_1d(np.asarray(ratings, dtype=np.float64))
        if numbers.shape != ratings.shape or numbers.ndim != 1:
            raise ValueError(f"there are {numbers.size} {self.name}s and {ratings.size} ratings")
        low, high = limits
        if not np.all((ratings >= low) & (ratings <= high)):
            raise ValueError(f"ratings lie between {low:g} and {high:g}")
        order = np.argsort(numbers, kind="stable")
        if (np.diff(numbers[order]) == 0).any():
            raise ValueError(f"one {self.name} has several ratings: keep one of them")
        return numbers[order], ratings[order]


Sides = tuple[RatingSide, RatingSide]  # users and items


def as_ratings(X: Any) -> sp.csr_array:
    """Return ratings as a sparse array whose stored entries are the ratings, zeros among them."""
    if sp.issparse(X):
        ratings = sp.csr_array(check_array(X, accept_sparse="csr", dtype=np.float64))
        ratings.sum_duplicates()
    else:
        dense = check_array(X, dtype=np.float64, ensure_all_finite="allow-nan")
        users, items = np.nonzero(~np.isnan(dense))
        ratings = sp.csr_array((dense[users, items], (users, items)), shape=dense.shape)
    if ratings.nnz == 0:
        raise ValueError("X has no ratings: all its entries are missing")
    return ratings


def fit_offsets(
    ratings: sp.csr_array, user_shrinkage: float, item_shrinkage: float
) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the mean, and offsets by regularised least squares, users and items in turn."""
    (users, items), values = ratings.tocoo().coords, ratings.data
    mean = float(values.mean())
    n_users, n_items = ratings.shape
    by_user = np.bincount(users, minlength=n_users) + user_shrinkage
    by_item = np.bincount(items, minlength=n_items) + item_shrinkage
    user, item = np.zeros(n_users), np.zeros(n_items)
    for _ in range(_ROUNDS):
        item = ratio(np.bincount(items, values - mean - user[users], n_items), by_item)
        user = ratio(np.bincount(users, values - mean - item[items], n_users), by_user)
    return mean, user, item


def sum_blocks(
    ratings: sp.csr_array, mean: float, sides: Sides, shape: tuple[int, int], shrinkage: float
) -> BlockTable:
    """Return effect, mean and size of every block; users and items labelled -1 count nowhere."""
    (users, items), values, (user, item) = ratings.tocoo().coords, ratings.data, sides
    rows, columns = user.labels[users], item.labels[items]
    placed = (rows >= 0) & (columns >= 0)
    rows, columns, values = rows[placed], columns[placed], values[placed]
    left = values - mean - user.offsets[users[placed]] - item.offsets[items[placed]]

    def table(weights: np.ndarray | None) -> np.ndarray:
        flat = np.bincount(rows * shape[1] + columns, weights, shape[0] * shape[1])
        return np.pad(flat.reshape(shape), (0, 1))

    size = table(None)
    plain = np.divide(table(values), size, out=np.full(size.shape, np.nan), where=size > 0)
    return BlockTable(ratio(table(left), size + shrinkage), plain, size.astype(np.int64))


def shares_who_liked(likes: sp.csr_array, groups: np.ndarray, shrinkage: float) -> np.ndarray:
    """Return the shares of each group (a row of truth values), and of all, who liked each item."""
    overall = np.asarray(likes.sum(axis=0)) / likes.shape[0]
    weight = np.maximum(groups.sum(axis=1, keepdims=True) + shrinkage, 1)
    return np.vstack([(groups @ likes + shrinkage * overall) / weight, overall])


def see(ratings: sp.csr_array, view: str, like: float) -> Matrix:
    """Return ratings as a co-clustering sees them: see ``view`` of :class:`BlockRecommender`."""
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


def place_by_loss(left: np.ndarray, effects: np.ndarray, shrinkage: float) -> int:
    """Return the cluster whose block effects explain best what mean and offsets left of ratings."""
    left = left - effects
    own = left.sum(axis=1) / (left.shape[1] + shrinkage)
    loss = ((left - own[:, None]) ** 2).sum(axis=1) + shrinkage * own**2
    return int(loss.argmin())
