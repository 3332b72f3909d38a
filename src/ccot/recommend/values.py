"""What the recommender takes and returns besides numbers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

# Label of users and items of whom nothing is known. It picks the last row (column) of the
# recommender's tables, which holds what is true of all.
UNASSIGNED = -1


@dataclass(frozen=True)
class User:
    """A user who was not in the fit.

    Attributes
    ----------
    label, offset : int, float
        Cluster, -1 where there is nothing to go by; how far ratings lie above expectation, shrunk.
    items, ratings : ndarray
        Rated items and their ratings.
    """

    label: int
    offset: float
    items: np.ndarray
    ratings: np.ndarray


@dataclass(frozen=True)
class Item:
    """An item that was not in the fit.

    Attributes
    ----------
    label, offset : int, float
        Cluster, -1 where there is nothing to go by; how far ratings lie above expectation, shrunk.
    users, ratings : ndarray
        Users who rated it and their ratings.
    """

    label: int
    offset: float
    users: np.ndarray
    ratings: np.ndarray


@dataclass(frozen=True)
class Recommendation:
    """One recommended item.

    Attributes
    ----------
    item, rating : int, float
        Its number and predicted rating.
    liking : float
        Share of the user's group who liked it, shrunk towards that of all users.
    """

    item: int
    rating: float
    liking: float


@dataclass(frozen=True)
class Neighbour:
    """Someone of the user's group who rated the item.

    Attributes
    ----------
    user, rating, shared : int, float, int
        Number of the user, their rating, and the number of items both liked.
    """

    user: int
    rating: float
    shared: int


@dataclass(frozen=True)
class Explanation:
    """Where a predicted rating comes from.

    Attributes
    ----------
    rating : float
        The prediction: the sum of the next four, kept within the scale of the ratings.
    mean, user_offset, item_offset, block_effect : float
        Mean of all ratings, what user and item add, what their block adds.
    block : tuple of int
        Clusters of user and item; -1 where unknown.
    block_mean, block_size : float, int
        Plain mean of the ratings in the block, NaN where there are none, and their number.
    neighbours : tuple of Neighbour
        Members of the user's group who rated the item; those who share most likes first.
    """

    rating: float
    mean: float
    user_offset: float
    item_offset: float
    block_effect: float
    block: tuple[int, int]
    block_mean: float
    block_size: int
    neighbours: tuple[Neighbour, ...]

    def as_record(self, user_names: Sequence[str]) -> dict[str, Any]:
        """Return all of it as JSON can hold it, with the sum in words; users by their names."""
        near = [vars(one) | {"user": user_names[one.user]} for one in self.neighbours]
        mean = None if math.isnan(self.block_mean) else self.block_mean
        parts = {"block_mean": mean, "neighbours": near, "text": self.in_words(user_names)}
        return vars(self) | parts

    def in_words(self, user_names: Sequence[str] | None = None) -> str:
        """Return the sum in words; users by their names, or by their numbers."""
        lines = [
            f"{self.rating:.2f} = mean {self.mean:.2f}, user {self.user_offset:+.2f}, "
            f"item {self.item_offset:+.2f}, block {self.block_effect:+.2f}"
        ]
        if UNASSIGNED in self.block:
            lines.append("no block: too few ratings of the user or of the item")
        else:
            lines.append(
                f"block of user cluster {self.block[0]} and item cluster {self.block[1]}: "
                f"mean {self.block_mean:.2f} of {self.block_size} ratings"
            )
        called = str if user_names is None else user_names.__getitem__
        lines += [
            f"user {called(near.user)} of the same group rated it {near.rating:g} "
            f"({near.shared} likes in common)"
            for near in self.neighbours
        ]
        return "\n".join(lines)

    __str__ = in_words
