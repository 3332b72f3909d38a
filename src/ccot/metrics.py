"""Measures that compare two co-clusterings; the names of the labels do not matter.

The clusters of its row and of its column determine the block of a cell. So all measures are
computed from two small tables of counts, of rows and of columns, and not cell by cell.
"""

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from scipy.stats import entropy

__all__ = [
    "coclustering_ari",
    "coclustering_error",
    "coclustering_nmi",
    "error_rate",
    "normalized_classification_error",
]


def error_rate(true: ArrayLike, pred: ArrayLike) -> float:
    """Return the share of misplaced points under the best one-to-one matching of clusters.

    Parameters
    ----------
    true, pred : array-like of shape (n_points,)
        Two partitions of the same points. Labels may be integers or strings.

    Returns
    -------
    float
        From 0 (same partition) to below 1. If the numbers of clusters differ, some clusters have
        no counterpart, and all their points count as errors.

    Examples
    --------
    >>> from ccot.metrics import error_rate
    >>> error_rate([0, 0, 0, 0, 1], ["b", "b", "b", "c", "a"])  # a cluster cut in two
    0.2
    """
    return _error_rate(_cross(true, pred))


def coclustering_error(
    row_true: ArrayLike, column_true: ArrayLike, row_pred: ArrayLike, column_pred: ArrayLike
) -> float:
    r"""Return the share of cells in the wrong block: the co-clustering error (CCE).

    With :math:`e_r` and :math:`e_c` the `error_rate` of rows and of columns,

    .. math:: \mathrm{CCE} = e_r + e_c - e_r e_c ,

    since a cell is right only if both its row and its column are.

    Parameters
    ----------
    row_true, column_true, row_pred, column_pred : array-like of shape (n_rows,) or (n_columns,)
        The reference, and the partitions to judge. Numbers of clusters may differ; points of
        clusters without a counterpart count as errors.

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
    >>> from ccot.metrics import coclustering_error
    >>> coclustering_error([0, 0, 1, 1], [0, 1], [1, 1, 1, 0], [0, 1])  # one row of four is wrong
    0.25
    """
    sides = _cross_sides(row_true, column_true, row_pred, column_pred)
    return _either(*map(_error_rate, sides))


def normalized_classification_error(
    row_true: ArrayLike, column_true: ArrayLike, row_pred: ArrayLike, column_pred: ArrayLike
) -> float:
    r"""Return the co-clustering error on a scale from 0 to 1 for all numbers of clusters (NCE).

    Two partitions with :math:`k` and :math:`k'` clusters have an `error_rate` of at most
    :math:`1 - 1/\max(k, k')`. Each side's rate is divided by this bound (it is 0 if both
    partitions have one cluster); both are combined as in `coclustering_error`:

    .. math:: \mathrm{NCE}_r = e_r \frac{g}{g - 1}, \quad g = \max(k_r, k_r'), \qquad
              \mathrm{NCE} = \mathrm{NCE}_r + \mathrm{NCE}_c - \mathrm{NCE}_r \mathrm{NCE}_c .

    Parameters
    ----------
    row_true, column_true, row_pred, column_pred : array-like of shape (n_rows,) or (n_columns,)
        The reference, and the partitions to judge.

    Returns
    -------
    float
        Between 0 (same blocks) and 1. ``NCE_LBM`` of the R package ``bikm1`` returns one minus this
        value.

    References
    ----------
    .. [1] Robert, Vasseur and Brault (2021), as in :func:`coclustering_ari`.

    Examples
    --------
    >>> from ccot.metrics import coclustering_error, normalized_classification_error
    >>> partitions = [0, 0, 1, 1], [0, 1], [0, 1, 0, 1], [0, 1]  # rows as wrong as they can be
    >>> coclustering_error(*partitions)
    0.5
    >>> normalized_classification_error(*partitions)
    1.0
    """
    sides = _cross_sides(row_true, column_true, row_pred, column_pred)
    return _either(*map(_normalized_error_rate, sides))


def coclustering_ari(
    row_true: ArrayLike, column_true: ArrayLike, row_pred: ArrayLike, column_pred: ArrayLike
) -> float:
    """Return the adjusted Rand index of two partitions of the cells into blocks (CARI).

    The contingency table of the blocks is the Kronecker product of the tables of rows and of
    columns. So the index is exact, although no cell is visited.

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
    rows, columns = map(_counts, _cross_sides(row_true, column_true, row_pred, column_pred))
    n_cells = int(rows[0].sum()) * int(columns[0].sum())
    together_in_both, together_in_true, together_in_pred = (
        _sum_of_squares(row) * _sum_of_squares(column)
        for row, column in zip(rows, columns, strict=True)
    )
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
    r"""Return the normalised mutual information of two partitions of the cells (coNMI).

    The row cluster and the column cluster of a random cell are independent, so the information and
    the entropy of the blocks are sums of those of rows and of columns:

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
    >>> from ccot.metrics import coclustering_nmi
    >>> all_in_one, right = [0, 0, 0, 0], [0, 0, 1, 1]
    >>> round(coclustering_nmi(right, right, all_in_one, right), 3)
    0.5
    """
    rows, columns = _cross_sides(row_true, column_true, row_pred, column_pred)
    if all(side.nnz == side.shape[0] == side.shape[1] for side in (rows, columns)):
        return 1.0
    both, true, pred = (
        float(entropy(row) + entropy(column))
        for row, column in zip(_counts(rows), _counts(columns), strict=True)
    )
    return max((true + pred - both) / max(true, pred), 0.0)


def _cross_sides(
    row_true: ArrayLike, column_true: ArrayLike, row_pred: ArrayLike, column_pred: ArrayLike
) -> tuple[sp.csr_array, sp.csr_array]:
    return _cross(row_true, row_pred, "row_"), _cross(column_true, column_pred, "column_")


def _cross(true: ArrayLike, pred: ArrayLike, side: str = "") -> sp.csr_array:
    """Return the numbers of points in each pair of clusters."""
    codes = _encode(true, f"{side}true"), _encode(pred, f"{side}pred")
    n_true, n_pred = map(len, codes)
    if n_true != n_pred:
        raise ValueError(
            f"{side}true and {side}pred must label the same points, "
            f"but have lengths {n_true} and {n_pred}"
        )
    # In two steps: SciPy before 1.15 does not add up equal pairs if csr_array is called at once.
    return sp.coo_array((np.ones(n_true, dtype=np.int64), codes)).tocsr()


def _counts(table: sp.csr_array) -> tuple[NDArray[np.int64], ...]:
    """Return the sizes of the pairs, of the true and of the predicted clusters."""
    return table.data, table.sum(axis=1), table.sum(axis=0)


def _encode(labels: ArrayLike, name: str) -> NDArray[np.intp]:
    """Return labels as 0..k-1."""
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
        return np.unique(array, return_inverse=True)[1]
    except TypeError as error:
        raise ValueError(
            f"{name} mixes labels that cannot be compared; use one type, such as int or str"
        ) from error


def _error_rate(table: sp.csr_array) -> float:
    counts, n_points = table.toarray(), int(table.sum())
    matched = int(counts[linear_sum_assignment(counts, maximize=True)].sum())
    return (n_points - matched) / n_points


def _normalized_error_rate(table: sp.csr_array) -> float:
    n_clusters = max(table.shape)
    return 0.0 if n_clusters == 1 else _error_rate(table) * n_clusters / (n_clusters - 1)


def _either(row_error: float, column_error: float) -> float:
    """Return the share of cells whose row or column is wrong."""
    return row_error + column_error - row_error * column_error


def _sum_of_squares(counts: NDArray[np.int64]) -> int:
    # Python integers: products of these sums overflow 64 bits on large matrices.
    return int(np.dot(counts, counts))
