"""Matrices of every family, and the slow obvious sums to compare with."""

import numpy as np

from ccot.blocks.fit import collect, search_blocks
from ccot.blocks.problem import make_blocks
from ccot.blocks.sweep import assign
from ccot.runtime.run import Run

MEANS = {
    "gaussian": np.array([[4.0, 0.0, 2.0], [1.0, 5.0, -1.0]]),
    "poisson": np.array([[9.0, 2.0, 4.0], [2.0, 8.0, 5.0]]),
    "bernoulli": np.array([[0.95, 0.05, 0.9], [0.05, 0.95, 0.9]]),
}


def draw(family, rows, columns, rng):
    means = MEANS[family][rows][:, columns]
    if family == "gaussian":
        return means + 0.5 * rng.normal(size=means.shape)
    if family == "poisson":
        return rng.poisson(means).astype(float)
    return (rng.uniform(size=means.shape) < means).astype(float)


def draw_noise(family, shape, rng):
    if family == "gaussian":
        return rng.normal(size=shape)
    if family == "poisson":
        return rng.poisson(3.0, size=shape).astype(float)
    return (rng.uniform(size=shape) < 0.4).astype(float)


def sum_blocks(values, rows, columns, shape):
    """Sum a matrix over blocks one entry at a time; NaN is left out."""
    table = np.zeros(shape)
    for (i, j), value in np.ndenumerate(values):
        if not np.isnan(value):
            table[rows[i], columns[j]] += value
    return table


def solve_blocks(X, family, settings, run):
    """Return the prepared matrix beside what was found in it."""
    found = search_blocks(X, family, settings, run)
    sides = [
        assign(found.problem, view, axis, settings.balanced)
        for axis, view in enumerate(found.views)
    ]
    (rows, sure_rows), (columns, sure_columns) = sides
    blocks = make_blocks(found.problem, rows, columns)
    return found.problem, collect(found, blocks, (sure_rows, sure_columns))


def seeded(progress=None, seed=0):
    """Return a run of its own seed."""
    rng = np.random.default_rng(seed)
    return Run(rng) if progress is None else Run(rng, progress)
