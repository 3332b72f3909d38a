"""Whether the columns of a matrix share a unit, and how much of it the levels of rows are."""

from __future__ import annotations

import numpy as np

# Units differ where the ranges of columns overlap less than this; with many columns, than that.
_OVERLAP, _OVERLAP_MANY, _MANY_COLUMNS = 0.3, 0.2, 100
# Columns and rows looked at.
_UNIT_COLUMNS, _UNIT_ROWS = 200, 20_000
_RANGE = (0.05, 0.95)
# Share of the column-centred variance from which the level of rows is kept.
ROW_SHARE = 0.4


def differ_in_unit(X: np.ndarray) -> bool:
    """Return True where the columns of a matrix are measured in different units.

    The ranges (5 to 95 %) of columns in one unit overlap; those of unlike measurements do not,
    neither as they are nor, where no value is negative, as logarithms.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(50, 4))
    >>> differ_in_unit(X), differ_in_unit(X * [1, 10, 100, 1000] + [0, 50, 900, 0])
    (False, True)
    """
    X = X[:: max(1, len(X) // _UNIT_ROWS)]
    with np.errstate(all="ignore"):
        lowest = np.fmin.reduce(X, axis=None)
        limit = _OVERLAP if X.shape[1] <= _MANY_COLUMNS else _OVERLAP_MANY
        overlap = _overlap(X)
        if overlap < limit and lowest >= 0 and X.shape[1] <= _MANY_COLUMNS:
            overlap = max(overlap, _overlap(np.log(np.where(X > 0, X, np.nan))))
    return bool(overlap < limit)


def _overlap(X: np.ndarray) -> float:
    """Return the mean overlap of the ranges of two columns, as a share of the wider one."""
    held = np.isfinite(X).sum(axis=0) > 1
    held[held] = np.nanmax(X[:, held], axis=0) > np.nanmin(X[:, held], axis=0)
    columns = np.flatnonzero(held)
    if len(columns) < 2:
        return 1.0
    columns = np.random.default_rng(0).permutation(columns)[:_UNIT_COLUMNS]
    low, high = np.nanquantile(X[:, columns], _RANGE, axis=0)
    # Columns of which hardly any value differs.
    low = np.where(high > low, low, np.nanmin(X[:, columns], axis=0))
    high = np.where(high > low, high, np.nanmax(X[:, columns], axis=0))
    shared = np.minimum(high[:, None], high) - np.maximum(low[:, None], low)
    share = np.clip(shared, 0, None) / np.maximum((high - low)[:, None], high - low)
    return float(share[np.triu_indices(len(columns), 1)].mean())


def row_level_share(X: np.ndarray) -> float:
    """Return the share of the column-centred variance that the levels of rows hold.

    Examples
    --------
    >>> round(row_level_share(np.arange(5.0)[:, None] + np.zeros(3)), 3)
    1.0
    """
    observed = np.isfinite(X)
    n_row, n_column = observed.sum(axis=1), observed.sum(axis=0)
    left = np.where(observed, X, 0.0)
    left = np.where(observed, left - left.sum(axis=0) / np.maximum(n_column, 1), 0.0)
    level = left.sum(axis=1) / np.maximum(n_row, 1)
    whole = float((left**2).sum())
    return float((n_row * level**2).sum()) / whole if whole > 0 else 0.0
