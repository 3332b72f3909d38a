"""Matrices whose blocks are known."""

from ccot.datasets.simulated import load_simulated, make_latent_blocks

__all__ = ["load_simulated", "make_latent_blocks"]
