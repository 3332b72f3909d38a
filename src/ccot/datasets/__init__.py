"""Matrices whose blocks are known, and ratings whose blocks are not."""

from ccot.datasets.movielens import fetch_movielens_100k
from ccot.datasets.simulated import load_simulated, make_latent_blocks

__all__ = ["fetch_movielens_100k", "load_simulated", "make_latent_blocks"]
