"""Entropic transport: Sinkhorn, Gromov-Wasserstein, and potentials of new points."""
