"""Simulated matrices with known blocks, small named data, and loaders of real data."""

from ccot.datasets.movielens import fetch_movielens_100k
from ccot.datasets.shipped import (
    load_penguins,
    load_southern_women,
    load_titles,
    load_votes,
    load_zoo,
)
from ccot.datasets.simulated import load_simulated, make_latent_blocks

__all__ = [
    "fetch_movielens_100k",
    "load_penguins",
    "load_simulated",
    "load_southern_women",
    "load_titles",
    "load_votes",
    "load_zoo",
    "make_latent_blocks",
]
