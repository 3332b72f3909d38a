"""Measures of the difference between two co-clusterings.

Only which points are in one cluster matters, not the names of the labels. A cell belongs to the
block of its row and its column, so everything about the cells follows from two small tables of
counts, one for rows and one for columns: no function here visits the n x d cells.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

__all__ = [
    "coclustering_ari",
    "coclustering_error",
    "coclustering_nmi",
    "error_rate",
    "normalized_classification_error",
]


@dataclass(frozen=True)
class _Crossing:
    """Two partitions of the same things, crossed: only the counts that are not zero."""

    counts: NDArray[np.int64]
    true_codes: NDArray[np.int64]
    pred_codes: NDArray[np.int64]
    true_sizes: NDArray[np.int64]
    pred_sizes: NDArray[np.int64]

    @property
    def n_points(self) -> int:
        return int(self.counts.sum())

    @property
    def is_bijection(self) -> bool:
        return len(self.counts) == len(self.true_sizes) == len(self.pred_sizes)


def error_rate(true: ArrayLike, pred: ArrayLike) -> float:
    """Share of misplaced points under the best one-to-one matching of labels.

    Parameters
    ----------
    true, pred : array-like of shape (n_points,)
        Two partitions of the same points. Labels may be integers or strings.

    Returns
    -------
    float
        From 0 (same partition) to below 1. Where the numbers of clusters differ, some clusters
        have no counterpart and all their points count as errors.

    Examples
    --------
    The names of the labels do not matter, and a cluster cut in two costs its smaller part:

    >>> from ccot.metrics import error_rate
    >>> error_rate([0, 0, 0, 0, 1], ["b", "b", "b", "c", "a"])
    0.2
    """
    return _error_rate(_cross(true, pred, "true", "pred"))


def coclustering_error(
    row_true: ArrayLike, column_true: ArrayLike, row_pred: ArrayLike, column_pred: ArrayLike
) -> float:
    r"""Share of matrix cells in the wrong block: the co-clustering error (CCE).

    With :math:`e_r` and :math:`e_c` the `error_rate` of rows and of columns,

    .. math:: \mathrm{CCE} = e_r + e_c - e_r e_c ,

    since a cell is right only if both its row and its column are.

    Parameters
    ----------
    row_true, column_true, row_pred, column_pred : array-like of shape (n_rows,) or (n_columns,)
        The reference, and the partitions to judge. Numbers of clusters may differ; clusters
        without a counterpart then count as errors.

    Returns
    -------
    float
        From 0 (same blocks) to below 1.

    See Also
    --------
    normalized_classification_error : the same on a scale where 1 is the worst possible.
    coclustering_ari : corrected for chance.

    References
    ----------
    .. [1] A. Patrikainen and M. Meila, "Comparing subspace clusterings", IEEE Transactions on
       Knowledge and Data Engineering 18 (2006), 902-916.

    Examples
    --------
    One row of four and no column is wrong:

    >>> from ccot.metrics import coclustering_error
    >>> coclustering_error([0, 0, 1, 1], [0, 1], [1, 1, 1, 0], [0, 1])
    0.25
    """
    rows = _cross(row_true, row_pred, "row_true", "row_pred")
    columns = _cross(column_true, column_pred, "column_true", "column_pred")
    return _either(_error_rate(rows), _error_rate(columns))


def normalized_classification_error(
    row_true: ArrayLike, column_true: ArrayLike, row_pred: ArrayLike, column_pred: ArrayLike
) -> float:
    r"""Co-clustering error on a scale from 0 to 1 whatever the numbers of clusters (NCE).

    Two partitions with :math:`k` and :math:`k'` clusters never disagree by more than
    :math:`1 - 1/\max(k, k')`. Each side's `error_rate` is divided by that bound (a side
    on which both partitions have one cluster has error 0), and combined as in `coclustering_error`:

    .. math:: \mathrm{NCE}_r = e_r \frac{g}{g - 1}, \quad g = \max(k_r, k_r'), \qquad
              \mathrm{NCE} = \mathrm{NCE}_r + \mathrm{NCE}_c - \mathrm{NCE}_r \mathrm{NCE}_c .

    Parameters
    ----------
    row_true, column_true, row_pred, column_pred : array-like of shape (n_rows,) or (n_columns,)
        The reference, and the partitions to judge.

    Returns
    -------
    float
        Between 0 (same blocks) and 1. It is an error; the R package ``bikm1`` returns
        one minus this value from its ``NCE_LBM``.

    References
    ----------
    .. [1] Robert, Vasseur and Brault (2021), as in :func:`coclustering_ari`.

    Examples
    --------
    Rows as wrong as two clusters can be:

    >>> from ccot.metrics import coclustering_error, normalized_classification_error
    >>> partitions = [0, 0, 1, 1], [0, 1], [0, 1, 0, 1], [0, 1]
    >>> coclustering_error(*partitions)
    0.5
    >>> normalized_classification_error(*partitions)
    1.0
    """
    rows = _cross(row_true, row_pred, "row_true", "row_pred")
    columns = _cross(column_true, column_pred, "column_true", "column_pred")
    return _either(_normalized_error_rate(rows), _normalized_error_rate(columns))


def coclustering_ari(
    row_true: ArrayLike, column_true: ArrayLike, row_pred: ArrayLike, column_pred: ArrayLike
) -> float:
    """Adjusted Rand index of the two partitions of the cells into blocks (CARI).

    The table that crosses the blocks is the Kronecker product of those that cross the rows and the
    columns, so its sums of squares are products of theirs: exact, in time independent of n x d.

    Parameters
    ----------
    row_true, column_true, row_pred, column_pred : array-like of shape (n_rows,) or (n_columns,)
        The reference, and the partitions to judge.

    Returns
    -------
    float
        1 for the same blocks, about 0 for unrelated ones, negative for worse than chance.

    References
    ----------
    .. [1] V. Robert, Y. Vasseur and V. Brault, "Comparing high-dimensional partitions with the
       Co-clustering Adjusted Rand Index", Journal of Classification 38 (2021), 158-186.

    Examples
    --------
    >>> from ccot.metrics import coclustering_ari
    >>> round(coclustering_ari([0, 0, 1, 1], [0, 1, 1], [1, 1, 1, 0], [1, 0, 0]), 3)
    0.399
    """
    rows = _cross(row_true, row_pred, "row_true", "row_pred")
    columns = _cross(column_true, column_pred, "column_true", "column_pred")
    n_cells = rows.n_points * columns.n_points
    together_in_both = _sum_of_squares(rows.counts) * _sum_of_squares(columns.counts)
    together_in_true = _sum_of_squares(rows.true_sizes) * _sum_of_squares(columns.true_sizes)
    together_in_pred = _sum_of_squares(rows.pred_sizes) * _sum_of_squares(columns.pred_sizes)

    # Ordered pairs of distinct cells, by whether each partition keeps them together.
    both = together_in_both - n_cells
    only_true = together_in_true - together_in_both
    only_pred = together_in_pred - together_in_both
    neither = n_cells * n_cells - n_cells - both - only_true - only_pred
    if only_true == only_pred == 0:
        return 1.0
    numerator = 2 * (both * neither - only_true * only_pred)
    denominator = (both + only_true) * (only_true + neither)
    return numerator / (denominator + (both + only_pred) * (only_pred + neither))


def coclustering_nmi(
    row_true: ArrayLike, column_true: ArrayLike, row_pred: ArrayLike, column_pred: ArrayLike
) -> float:
    r"""Normalised mutual information of the two partitions of the cells (coNMI).

    A block is a row cluster and a column cluster drawn independently, so information and entropy of
    the blocks are sums over the two sides:

    .. math:: \mathrm{coNMI} = \frac{I(z, z') + I(w, w')}{\max\{H(z) + H(w),\; H(z') + H(w')\}}

    with :math:`z, w` the true, :math:`z', w'` the predicted row and column partitions, :math:`I`
    mutual information and :math:`H` entropy. It is 1 if and only if the blocks are the same,
    in particular if both co-clusterings are one single block.

    Parameters
    ----------
    row_true, column_true, row_pred, column_pred : array-like of shape (n_rows,) or (n_columns,)
        The reference, and the partitions to judge.

    Returns
    -------
    float
        Between 0 (independent) and 1 (same blocks). Not corrected for chance.

    References
    ----------
    .. [1] Robert, Vasseur and Brault (2021), as in :func:`coclustering_ari`.

    Examples
    --------
    All that is known about the rows is lost, the columns are right:

    >>> from ccot.metrics import coclustering_nmi
    >>> round(coclustering_nmi([0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 0, 0], [0, 0, 1, 1]), 3)
    0.5
    """
    rows = _cross(row_true, row_pred, "row_true", "row_pred")
    columns = _cross(column_true, column_pred, "column_true", "column_pred")
    entropy = max(
        _entropy(rows.true_sizes) + _entropy(columns.true_sizes),
        _entropy(rows.pred_sizes) + _entropy(columns.pred_sizes),
    )
    if rows.is_bijection and columns.is_bijection:
        return 1.0
    information = _mutual_information(rows) + _mutual_information(columns)
    return max(information / entropy, 0.0)


def _cross(true: ArrayLike, pred: ArrayLike, true_name: str, pred_name: str) -> _Crossing:
    true_inverse, true_sizes = _encode(true, true_name)
    pred_inverse, pred_sizes = _encode(pred, pred_name)
    if len(true_inverse) != len(pred_inverse):
        raise ValueError(
            f"{true_name} and {pred_name} must label the same points, "
            f"but have lengths {len(true_inverse)} and {len(pred_inverse)}"
        )
    n_pred = len(pred_sizes)
    codes, counts = np.unique(true_inverse * n_pred + pred_inverse, return_counts=True)
    return _Crossing(counts, codes // n_pred, codes % n_pred, true_sizes, pred_sizes)


def _encode(labels: ArrayLike, name: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Labels as 0..k-1, and how many points carry each."""
    array = np.asarray(labels)
    if array.ndim != 1:
        raise ValueError(
            f"{name} must be one-dimensional, one label per point, but has shape {array.shape}"
        )
    if array.size == 0:
        raise ValueError(f"{name} is empty: at least one label is needed")
    if array.dtype.kind in "fc" and not np.isfinite(array).all():
        where = int(np.flatnonzero(~np.isfinite(array))[0])
        raise ValueError(f"{name} has a label that is not finite at position {where}")
    try:
        _, inverse, sizes = np.unique(array, return_inverse=True, return_counts=True)
    except TypeError as error:
        raise ValueError(
            f"{name} mixes labels that cannot be compared; use one type, such as int or str"
        ) from error
    return inverse.astype(np.int64), sizes.astype(np.int64)


def _error_rate(crossing: _Crossing) -> float:
    table = np.zeros((len(crossing.true_sizes), len(crossing.pred_sizes)))
    table[crossing.true_codes, crossing.pred_codes] = crossing.counts
    matched = int(table[linear_sum_assignment(table, maximize=True)].sum())
    return (crossing.n_points - matched) / crossing.n_points


def _normalized_error_rate(crossing: _Crossing) -> float:
    n_clusters = max(len(crossing.true_sizes), len(crossing.pred_sizes))
    if n_clusters == 1:
        return 0.0
    return _error_rate(crossing) * n_clusters / (n_clusters - 1)


def _either(row_error: float, column_error: float) -> float:
    """Share of cells whose row or whose column is wrong."""
    return row_error + column_error - row_error * column_error


def _sum_of_squares(counts: NDArray[np.int64]) -> int:
    # Python integers: products of these sums outgrow 64 bits on large matrices.
    return int(np.dot(counts, counts))


def _entropy(sizes: NDArray[np.int64]) -> float:
    shares = sizes / sizes.sum()
    return max(float(-(shares * np.log(shares)).sum()), 0.0)


def _mutual_information(crossing: _Crossing) -> float:
    n = crossing.n_points
    true_shares = crossing.true_sizes[crossing.true_codes] / n
    pred_shares = crossing.pred_sizes[crossing.pred_codes] / n
    shares = crossing.counts / n
    return float((shares * np.log(shares / (true_shares * pred_shares))).sum())
