"""Simulated matrices with known blocks, and loaders of real data."""

from ccot.datasets.movielens import fetch_movielens_100k
from ccot.datasets.simulated import load_simulated, make_latent_blocks

__all__ = ["fetch_movielens_100k", "load_simulated", "make_latent_blocks"]
