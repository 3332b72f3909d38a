"""Users, or items, as the recommender sees them: labels, offsets, and checks of their numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class RatingSide:
    """The users, or the items, of a fit.

    Attributes
    ----------
    name : str
        ``"user"`` or ``"item"``.
    labels, offsets : arrays of shape (n,)
        Clusters and offsets.
    shrinkage : float
        Added to the number of ratings that an offset is divided by.
    """

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
            raise ValueError(f"a {self.name} is rated more than once: keep one of the ratings")
        return numbers[order], ratings[order]


def place_by_loss(left: np.ndarray, effects: np.ndarray, shrinkage: float) -> int:
    """Return the cluster whose block effects explain ratings best."""
    left = left - effects
    own = left.sum(axis=1) / (left.shape[1] + shrinkage)
    loss = ((left - own[:, None]) ** 2).sum(axis=1) + shrinkage * own**2
    return int(loss.argmin())
