"""Recommendations from blocks of users and items."""

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
