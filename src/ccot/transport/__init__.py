"""Entropic transport: Sinkhorn, Gromov-Wasserstein, and potentials of unseen points."""
