"""Planted tables of numbers, counts and categories with gaps."""

import numpy as np

from ccot.io.matrix import Table


def draw_table(seed, n_rows=500, n_clusters=5, each=8, gaps=0.2, strength=1.0):
    """A table of ``each`` columns of each kind, and the clusters of its rows."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_clusters, size=n_rows)
    columns = {}
    for j in range(each):
        mean = 1.15 * strength * rng.normal(size=n_clusters)
        value = (mean[truth] + rng.normal(size=n_rows)) * 10 ** rng.uniform(-3, 4)
        columns[f"number{j}"] = value + 10 ** rng.uniform(0, 3)
    for j in range(each):
        rate = np.log(rng.uniform(2, 10)) + 0.54 * strength * rng.normal(size=n_clusters)
        columns[f"count{j}"] = rng.poisson(np.exp(rate)[truth]).astype(float)
    for j in range(each):
        n_levels = int(rng.integers(3, 6))
        share = np.exp(1.2 * strength * rng.normal(size=(n_clusters, n_levels)))
        share = (share / share.sum(axis=1, keepdims=True)).cumsum(axis=1)
        level = (share[truth] < rng.random((n_rows, 1))).sum(axis=1).clip(0, n_levels - 1)
        columns[f"word{j}"] = np.array(list("abcde"), dtype=object)[level]
    for values in columns.values():
        values[rng.random(n_rows) < gaps] = None if values.dtype == object else np.nan
    return Table(columns), truth


def of_kind(table, name):
    """The columns of one kind."""
    held = {key: values for key, values in table.columns.items() if key.startswith(name)}
    return Table(held)
