"""Random problems, ill-conditioned ones among them, and how many of them a test tries."""

import os

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"
seeds = st.integers(0, 2**32 - 1)


def examples(quick: int, thorough: int):
    """Say how many examples a property is tried on, by default and in ``make test-all``."""
    return settings(max_examples=thorough if THOROUGH else quick)


# Costs ----------------------------------------------------------------------------------------


def _plain(rng, shape):
    return rng.exponential(size=shape) / 10 ** rng.uniform(-2, 2)


def _twelve_orders(rng, shape):
    return 10 ** rng.uniform(-6, 6, size=shape)


def _duplicates(rng, shape):
    rows, columns = (rng.integers(0, max(1, size // 2), size) for size in shape)
    return _twelve_orders(rng, shape)[rows][:, columns]


def _zero_rows(rng, shape):
    cost = _plain(rng, shape)
    cost[rng.uniform(size=shape[0]) < 0.5] = 0
    cost[:, rng.uniform(size=shape[1]) < 0.3] = 0
    return cost


def _rank_one(rng, shape):
    return np.outer(*(10 ** rng.uniform(-3, 3, size=size) for size in shape))


def _all_equal(rng, shape):
    return np.full(shape, 10 ** rng.uniform(-6, 6))


def _far_apart(rng, shape):
    """Two groups that are next to infinitely far from each other, and need not balance."""
    rows, columns = (rng.integers(0, 2, size) for size in shape)
    return _plain(rng, shape) + 1e4 * np.not_equal.outer(rows, columns)


COSTS = {
    "plain": _plain,
    "twelve orders of magnitude": _twelve_orders,
    "duplicates": _duplicates,
    "zero rows": _zero_rows,
    "rank one": _rank_one,
    "all equal": _all_equal,
    "far apart": _far_apart,
}


# Matrices -------------------------------------------------------------------------------------


def draw_matrix(family, rng, shape):
    """Return a matrix of a family: plain, over many orders, with copies, zero rows, of rank one."""
    kind = rng.choice(["plain", "orders", "copies", "zero rows", "rank one"])
    if family == "gaussian":
        X = rng.normal(size=shape) * rng.choice([0.1, 1.0, 30.0])
        if kind == "orders":
            X = np.sign(X) * 10 ** rng.uniform(-6, 6, size=shape)
        if kind == "rank one":
            X = np.outer(X[:, 0], X[0])
    elif family == "poisson":
        rates = rng.gamma(1.0, 2.0, size=shape)
        if kind == "rank one":
            rates = np.outer(rates[:, 0], rates[0])
        if kind == "orders":
            rates = rates * 10 ** rng.uniform(-2, 8, size=shape)
        X = rng.poisson(rates).astype(float)
    else:
        X = (rng.uniform(size=shape) < rng.uniform()).astype(float)
    if kind == "copies":
        X = X[rng.integers(0, shape[0], shape[0])][:, rng.integers(0, shape[1], shape[1])]
    if kind == "zero rows":
        X[rng.uniform(size=shape[0]) < 0.3] = 0
        X[:, rng.uniform(size=shape[1]) < 0.3] = 0
    return X


@st.composite
def labelled(draw, largest=14):
    """A generator, a shape and labels of both sides."""
    rng = np.random.default_rng(draw(seeds))
    shape = tuple(rng.integers(3, largest + 1, size=2))
    labels = [rng.integers(0, rng.integers(1, 6), size) for size in shape]
    return rng, shape, labels
