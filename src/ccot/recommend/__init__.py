"""Recommendations from blocks of users and items."""

from typing import TYPE_CHECKING

from ccot.runtime.lazy import load_when_used

if TYPE_CHECKING:
    from ccot.recommend.persist import load_recommender
    from ccot.recommend.recommender import BlockRecommender
    from ccot.recommend.values import Explanation, Item, Neighbour, Recommendation, User

__all__ = [
    "BlockRecommender",
    "Explanation",
    "Item",
    "Neighbour",
    "Recommendation",
    "User",
    "load_recommender",
]

_MODULES = {"BlockRecommender": "recommender", "load_recommender": "persist"}
__getattr__, __dir__ = load_when_used(
    __name__, {name: f"{__name__}.{_MODULES.get(name, 'values')}" for name in __all__}
)
