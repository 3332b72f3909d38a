"""What a cluster is: the columns that set it apart, and a short name made of them.

A column tells much if its values within the cluster differ from those of all rows. How much is
measured by the Kullback-Leibler divergence between two laws of one value, normal, Poisson or
Bernoulli by the kind of the column, so that columns of different kinds can be ranked together.
Clusters of columns are described by rows in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import gen_batches

from ccot.persistence.registry import stored

KINDS = ("number", "amount", "binary", "level")
TOP = 12
# Standard deviations: a mean that is nearer to that of all rows tells nothing, one beyond always.
_SMALL, _LARGE = 0.2, 0.8
# A matrix with more zeros holds counts: shares of zeros and ones alone do not make it a table.
_MOSTLY_ZERO = 0.8
_BATCH_ENTRIES = 2**22
# Of more rows so many are looked at, taken evenly; column clusters are told by fewer.
MAX_ROWS, MAX_NAMED_ROWS = 200_000, 20_000


@dataclass(frozen=True)
class Column:
    """One column as people know it.

    Attributes
    ----------
    name : str
        Its name.
    kind : {"number", "amount", "binary", "level"} or None
        Unit of a difference: standard deviations, ratios, percentage points of ones, or percentage
        points of a category. None: read off the values.
    level : str or None
        Category whose members have a one in this column.
    """

    name: str
    kind: str | None = None
    level: str | None = None

    @property
    def title(self) -> str:
        """Name, and category if there is one."""
        return self.name if self.level is None else f"{self.name} = {self.level}"


@stored()
@dataclass(frozen=True)
class Trait:
    """One column that sets a cluster apart.

    Attributes
    ----------
    index : int
        The column.
    name, kind, level
        As in :class:`Column`.
    effect : float
        How much it tells, in standard deviations; negative if the cluster is low.
    value, overall, deviation : float
        Mean over the cluster, mean and standard deviation over everything.
    share : float
        Share of the members for which it holds: that have a one or none, or that are on the same
        side of the overall mean as the cluster.
    """

    index: int
    name: str
    kind: str
    level: str | None
    effect: float
    value: float
    overall: float
    deviation: float
    share: float

    @property
    def title(self) -> str:
        """Column, and category if there is one."""
        return self.name if self.level is None else f"{self.name} = {self.level}"

    @property
    def amount(self) -> str:
        """Signed difference, in the unit of the column."""
        if self.kind == "number":
            return f"{(self.value - self.overall) / self.deviation:+.1f} sd".replace("-", "−")
        if self.kind == "amount":
            return f"× {_digits(self.value / self.overall)}" if self.value else "none"
        points = f"{100 * (self.value - self.overall):+.0f}".replace("-", "−")
        return f"{100 * self.value:.0f} % ({points} points)"

    @property
    def phrase(self) -> str:
        """Two words that are true of the cluster."""
        high = self.effect > 0
        if self.kind == "number":
            return f"{'high' if high else 'low'} {self.title}"
        if self.kind == "amount":
            return self.title if high else f"{'little' if self.value else 'no'} {self.title}"
        if high:
            return self.title if self.value >= 0.9 else f"more {self.title}"
        return (
            f"{'no' if self.level is None else 'not'} {self.title}"
            if self.value <= 0.1
            else (f"less {self.title}")
        )


@stored()
@dataclass(frozen=True)
class Portrait:
    """What a cluster is.

    Attributes
    ----------
    size : int
        Number of members.
    name : str
        Suggested name.
    traits : tuple of Trait
        What sets it apart, the most telling first; empty if it is like everything else.
    members : tuple of str
        Names of some members; of a cluster of columns, the most typical ones.
    """

    size: int
    name: str
    traits: tuple[Trait, ...]
    members: tuple[str, ...] = ()

    @property
    def listed(self) -> str:
        """The first members, and how many more there are."""
        more = self.size - len(self.members[:6])
        return ", ".join(self.members[:6]) + (f" and {more} more" if more else "")

    @property
    def sentence(self) -> str:
        """One line: the first traits with their amounts."""
        if not self.traits:
            return "close to the average in everything"
        return ", ".join(f"{trait.phrase} {trait.amount}" for trait in self.traits[:4])


@dataclass(frozen=True)
class Statistics:
    """Sums over groups of points, for every feature: what portraits of their unions are made of.

    Attributes
    ----------
    sizes : array of shape (n_groups,)
        Numbers of points.
    observed, totals, above : arrays of shape (n_groups, n_features)
        Numbers of observed values, their sums, and how many lie above the overall mean.
    mean, deviation : arrays of shape (n_features,)
        Over all points.
    kinds : array of str of shape (n_features,)
        Their units.
    features : sequence of Column or str
        What they are called.
    """

    sizes: np.ndarray
    observed: np.ndarray
    totals: np.ndarray
    above: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray
    kinds: np.ndarray
    features: Sequence[Column | str]

    def traits(self, groups: Any, top: int = TOP) -> tuple[Trait, ...]:
        """Return what sets the union of some groups apart, the most telling first."""
        observed = np.maximum(self.observed[groups].sum(axis=0), 1)
        value = self.totals[groups].sum(axis=0) / observed
        above = self.above[groups].sum(axis=0) / observed
        effect = _effects(self.kinds, value, self.mean, self.deviation)
        # Below two standard errors is chance; a single point tells by its own deviation.
        error = 1 / observed - 1 / np.maximum(self.observed.sum(axis=0), 1)
        telling = np.maximum(_SMALL, np.minimum(2 * np.sqrt(np.maximum(error, 0)), _LARGE))
        order = np.argsort(-np.abs(effect), kind="stable")[: 4 * top]
        return tuple(
            Trait(
                index, feature.name, str(self.kinds[index]), feature.level, float(effect[index]),
                float(value[index]), float(self.mean[index]), float(self.deviation[index]),
                float(above[index] if effect[index] > 0 else 1 - above[index]),
            )
            for index in order[np.abs(effect[order]) >= telling[order]][:top].tolist()
            for feature in [self.feature(index)]
        )  # fmt: skip

    def feature(self, index: int) -> Column:
        """Return what a feature is called."""
        known = self.features[index]
        return known if isinstance(known, Column) else Column(known)


def row_statistics(matrix: Any, labels: np.ndarray, columns: Sequence[Column | str]) -> Statistics:
    """Return sums over groups of rows.

    Parameters
    ----------
    matrix : ndarray or sparse matrix of shape (n_rows, n_columns)
        The data; NaN is missing.
    labels : int array of shape (n_rows,)
        Group of each row.
    columns : sequence of Column or str
        What the columns are.

    Returns
    -------
    Statistics
        With the kind of every column.
    """
    groups = _memberships(labels)
    if sp.issparse(matrix):
        return _with_kinds(_sparse_sums(sp.csr_array(matrix), groups), columns, True)
    step = max(_BATCH_ENTRIES // max(len(matrix), 1), 1)
    parts = [_sums(matrix[:, batch], groups) for batch in gen_batches(matrix.shape[1], step)]
    zeros = np.concatenate([part["zeros"] for part in parts])
    return _with_kinds(_joined(parts), columns, bool(zeros.mean() >= _MOSTLY_ZERO))


def column_statistics(
    matrix: Any, labels: np.ndarray, rows: Statistics, names: Sequence[str]
) -> Statistics:
    """Return sums over groups of columns, which are standardised unless all are of one kind.

    Parameters
    ----------
    matrix : ndarray or sparse matrix of shape (n_rows, n_columns)
        The data.
    labels : int array of shape (n_columns,)
        Group of each column.
    rows : Statistics
        Of the same matrix, for the kinds, means and deviations of the columns.
    names : sequence of str
        Names of the rows.

    Returns
    -------
    Statistics
        Its features are the rows.
    """
    groups = _memberships(labels)
    # Numbers have units of their own.
    alike = rows.kinds[0] if (rows.kinds == rows.kinds[0]).all() else "number"
    kinds = np.full(matrix.shape[0], alike)
    if sp.issparse(matrix):
        sums = _sparse_sums(sp.csr_array(matrix.T), groups)
        return Statistics(**_facts(sums), kinds=kinds, features=names)
    spread = np.where(rows.deviation > 0, rows.deviation, 1.0)
    step = max(_BATCH_ENTRIES // max(matrix.shape[1], 1), 1)
    parts = [
        _sums((part if alike != "number" else (part - rows.mean) / spread).T, groups)
        for part in (matrix[batch] for batch in gen_batches(len(matrix), step))
    ]
    return Statistics(**_facts(_joined(parts)), kinds=kinds, features=names)


def portraits(
    statistics: Statistics, groups: Sequence[Any] | None = None, members: Sequence[Any] = ()
) -> tuple[Portrait, ...]:
    """Return what each group, or each union of groups, is.

    Parameters
    ----------
    statistics : Statistics
        Sums over the finest groups.
    groups : sequence of index arrays, optional
        Unions to describe; by default every group by itself.
    members : sequence of sequences of str, optional
        For each union names of members; its own name is then made of them rather than of traits.

    Returns
    -------
    tuple of Portrait
        Their names are different.
    """
    unions = [[k] for k in range(len(statistics.sizes))] if groups is None else groups
    found = [
        Portrait(int(statistics.sizes[union].sum()), "", statistics.traits(union))
        for union in unions
    ]
    if len(members):
        listed = zip(found, members, strict=True)
        found = [replace(portrait, members=tuple(names)) for portrait, names in listed]
    return tuple(
        replace(portrait, name=name)
        for portrait, name in zip(found, _different([*map(_words, found)]), strict=True)
    )


def describe_sides(
    matrix: Any,
    row_labels: np.ndarray,
    column_labels: np.ndarray,
    columns: Sequence[Column | str],
    row_names: Sequence[str],
    column_confidence: np.ndarray | None = None,
) -> tuple[tuple[Portrait, ...], tuple[Portrait, ...]]:
    """Return what every row cluster and every column cluster is.

    Parameters
    ----------
    matrix : ndarray or sparse matrix of shape (n_rows, n_columns)
        The data; NaN is missing.
    row_labels, column_labels : int arrays
        Clusters, numbered from 0.
    columns : sequence of Column or str
        What the columns are.
    row_names : list or array of str
        Names of the rows.
    column_confidence : array, optional
        The surest columns are named first.

    Returns
    -------
    tuple of two tuples of Portrait
        Rows, columns.

    Examples
    --------
    >>> import numpy as np
    >>> from ccot.describe import Column, describe_sides
    >>> petals = np.array([[1.4, 0.2], [1.3, 0.2], [4.7, 1.4], [4.5, 1.5]])
    >>> columns = [Column("petal length"), Column("petal width")]
    >>> flowers, _ = describe_sides(
    ...     petals, np.array([0, 0, 1, 1]), np.array([0, 0]), columns, "abcd"
    ... )
    >>> flowers[0].name
    'low petal length, low petal width'
    """
    some = every(len(row_labels), MAX_ROWS)
    rows = row_statistics(matrix[some], row_labels[some], columns)
    some = every(len(row_labels), MAX_NAMED_ROWS)
    others = column_statistics(matrix[some], column_labels, rows, row_names[some])
    order = typical_order(rows, column_confidence)
    names = [members_of(rows, order, column_labels == k) for k in range(len(others.sizes))]
    sizes = np.bincount(row_labels).tolist()
    described = zip(portraits(rows), sizes, strict=True)
    return (
        tuple(replace(portrait, size=size) for portrait, size in described),
        portraits(others, members=names),
    )


def every(number: int, most: int) -> slice:
    """Return at most so many indices, taken evenly."""
    return slice(None, None, max(-(-number // most), 1))


def typical_order(rows: Statistics, confidence: np.ndarray | None = None) -> np.ndarray:
    """Return the columns, the largest amounts or the surest first."""
    if (rows.kinds == "amount").all():
        confidence = rows.mean
    if confidence is None:
        return np.arange(len(rows.mean))
    return np.argsort(-np.asarray(confidence), kind="stable")


def members_of(rows: Statistics, order: np.ndarray, belongs: np.ndarray) -> list[str]:
    """Return the names of the first columns that belong to a cluster."""
    return [rows.feature(j).title for j in order[belongs[order]][:TOP].tolist()]


# Names ----------------------------------------------------------------------------------------


def _words(portrait: Portrait) -> list[str]:
    """Return the parts of a name, the first two of which are usually enough."""
    if portrait.members:
        return list(portrait.members)
    told: dict[str, str] = {}
    for trait in portrait.traits:
        told.setdefault(trait.name, trait.phrase)
    return list(told.values()) or ["average"]


def _different(words: Sequence[Sequence[str]]) -> list[str]:
    """Return names of two parts, of more where that makes them different, of a number at last."""
    names = [", ".join(parts[:2]) for parts in words]
    for length in (3, 4):
        names = [
            ", ".join(parts[:length]) if names.count(name) > 1 else name
            for parts, name in zip(words, names, strict=True)
        ]
    seen: dict[str, int] = {}
    for k, name in enumerate(names):
        seen[name] = seen.get(name, 0) + 1
        if seen[name] > 1:
            names[k] = f"{name} ({seen[name]})"
    return names


def _digits(ratio: float) -> str:
    return f"{ratio:.2g}" if ratio < 10 else f"{ratio:,.0f}"


# Sums -----------------------------------------------------------------------------------------


def _effects(
    kinds: np.ndarray, value: np.ndarray, mean: np.ndarray, deviation: np.ndarray
) -> np.ndarray:
    """Return signed roots of twice the divergences: of numbers, deviations from the mean."""
    spread = np.where(deviation > 0, deviation, np.inf)
    effect = (value - mean) / spread
    shares, amounts = np.isin(kinds, ("binary", "level")), kinds == "amount"
    divergence = np.zeros_like(effect)
    p, q = value[shares], mean[shares]
    divergence[shares] = _relative(p, q) + _relative(1 - p, 1 - q)
    p, q = value[amounts], mean[amounts]
    # Counts that vary more than Poisson's tell as much less.
    divergence[amounts] = (_relative(p, q) - p + q) * q / spread[amounts] ** 2
    other = np.sign(effect) * np.sqrt(2 * np.maximum(divergence, 0))
    return np.where(shares | amounts, other, effect)


def _relative(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return p log(p / q), which is 0 where p is."""
    return p * np.log(np.where(p > 0, p, 1.0) / np.where((p > 0) & (q > 0), q, 1.0))


def _memberships(labels: np.ndarray) -> sp.csr_array:
    ones = np.ones(len(labels))
    shape = (int(labels.max()) + 1, len(labels))
    return sp.csr_array((ones, (labels, np.arange(len(labels)))), shape=shape)


def _sums(block: np.ndarray, groups: sp.csr_array) -> dict[str, Any]:
    """Return the sums over groups of points for some features, and what kind these may be of."""
    block = np.asarray(block, dtype=np.float64)
    seen = ~np.isnan(block)
    filled = np.where(seen, block, 0.0)
    number = np.maximum(seen.sum(axis=0), 1)
    mean = filled.sum(axis=0) / number
    centred = np.where(seen, block - mean, 0.0)
    deviation = np.sqrt((centred**2).sum(axis=0) / number)
    return {
        "sizes": groups.sum(axis=1),
        "observed": groups @ seen.astype(float),
        "totals": groups @ filled,
        "above": groups @ (centred > 0).astype(float),
        "mean": mean,
        # What is left of rounding is no spread.
        "deviation": np.where(deviation > 1e-12 * np.abs(mean), deviation, 0.0),
        "zeros": (seen & (filled == 0)).sum(axis=0) / number,
        "binary": ((filled == 0) | (filled == 1)).all(axis=0),
        "negative": (filled < 0).any(axis=0),
    }


def _sparse_sums(matrix: sp.csr_array, groups: sp.csr_array) -> dict[str, Any]:
    n_points, n_features = matrix.shape
    sizes = groups.sum(axis=1)
    mean = matrix.sum(axis=0) / max(n_points, 1)
    above = matrix.copy()
    above.data = (matrix.data > mean[matrix.indices]).astype(float)
    # Where the mean is below zero, entries that are not stored lie above it.
    stored_entries = matrix.copy()
    stored_entries.data = np.ones_like(matrix.data)
    absent = (sizes[:, None] - (groups @ stored_entries).toarray()) * (mean < 0)
    variance = matrix.multiply(matrix).sum(axis=0) / max(n_points, 1) - mean**2
    other = sp.csr_array(matrix != stored_entries)
    other.eliminate_zeros()
    return {
        "sizes": sizes,
        "observed": np.broadcast_to(sizes[:, None], (len(sizes), n_features)),
        "totals": (groups @ matrix).toarray(),
        "above": (groups @ above).toarray() + absent,
        "mean": mean,
        "deviation": np.sqrt(np.maximum(variance, 0)),
        "binary": np.bincount(other.indices, minlength=n_features) == 0,
        "negative": np.bincount(
            matrix.indices[matrix.data < 0], minlength=n_features
        ) > 0,
        "zeros": 1 - np.bincount(matrix.indices, minlength=n_features) / max(n_points, 1),
    }  # fmt: skip


def _joined(parts: Sequence[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Return the sums for all features from those for batches of them."""
    joined = {
        key: np.concatenate([part[key] for part in parts], axis=-1)
        for key in parts[0]
        if key != "sizes"
    }
    return joined | {"sizes": parts[0]["sizes"]}


def _facts(sums: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {key: sums[key] for key in sums.keys() - {"zeros", "binary", "negative"}}


def _with_kinds(
    sums: dict[str, np.ndarray], columns: Sequence[Column | str], mostly_zero: bool
) -> Statistics:
    """Return statistics in which every column has a kind: its own, or one read off the values."""
    counts = mostly_zero and not sums["negative"].any() and not sums["binary"].all()
    kinds = np.where(sums["binary"] & ~np.bool_(counts), "binary", "number")
    kinds[(kinds == "number") & ~sums["negative"] & ((sums["zeros"] >= 0.5) | counts)] = "amount"
    given = zip(columns, kinds.tolist(), strict=True)
    kinds = np.array([getattr(column, "kind", None) or kind for column, kind in given])
    return Statistics(**_facts(sums), kinds=kinds, features=columns)
