"""Sums over groups of rows or columns, and the features that distinguish a group."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import gen_batches

from ccot.describe.words import Portrait, Trait
from ccot.runtime.backends import is_device_csr, namespace, to_numpy
from ccot.runtime.device_csr import by_row, take_rows, transposed

# Most rows that describe row clusters, and that describe column clusters; evenly spaced.
MAX_ROWS, MAX_NAMED_ROWS = 200_000, 20_000
TOP = 12
# Differences from the mean of all rows, in standard deviations: smaller ones never count, larger
# ones always.
_SMALL, _LARGE = 0.2, 0.8
# A matrix with at least this share of zeros holds counts, even if some columns have only 0 and 1.
_MOSTLY_ZERO = 0.8
_BATCH_ENTRIES = 2**22


@dataclass(frozen=True)
class Column:
    """Name and kind of a column.

    ``kind`` is the unit of a difference: standard deviations ("number", "date" in days, or
    "rank" of ordered words, whose mean says little), ratios ("amount"), percentage points of ones
    ("binary") or of a category ("level"); None: found from the values.
    """

    name: str
    kind: str | None = None
    level: str | None = None  # category whose members have a one in this column

    @property
    def title(self) -> str:
        """Name, and category if there is one."""
        return self.name if self.level is None else f"{self.name} = {self.level}"


@dataclass(frozen=True)
class Statistics:
    """Sums over groups of points, for every feature, to describe groups and unions of groups."""

    sizes: np.ndarray
    observed: np.ndarray  # number of values, of shape (n_groups, n_features), as the next two
    totals: np.ndarray
    above: np.ndarray  # number of values above the overall mean
    mean: np.ndarray  # over all points, as the next
    deviation: np.ndarray
    kinds: np.ndarray  # see Column
    features: Sequence[Column | str]
    unit: np.ndarray  # of totals, means and deviations of every feature

    def traits(self, groups: Any, top: int = TOP) -> tuple[Trait, ...]:
        """Return the features that distinguish the union of some groups, the strongest first."""
        seen = self.observed[groups].sum(axis=0)
        observed = np.maximum(seen, 1)
        # A feature without observed values in the union has no effect.
        value = np.where(seen > 0, self.totals[groups].sum(axis=0) / observed, self.mean)
        above = self.above[groups].sum(axis=0) / observed
        effect = _effects(self.kinds, value, self.mean, self.deviation)
        # Less than two standard errors may be chance, but _LARGE suffices, even for one point.
        error = 1 / observed - 1 / np.maximum(self.observed.sum(axis=0), 1)
        telling = np.maximum(_SMALL, np.minimum(2 * np.sqrt(np.maximum(error, 0)), _LARGE))
        order = np.argsort(-np.abs(effect), kind="stable")[: 4 * top]
        order = order[np.abs(effect[order]) >= telling[order]]
        # If a category has levels that are more frequent than usual, the rarer ones add nothing.
        levels = {i: self.feature(i).name for i in order.tolist() if self.kinds[i] == "level"}
        frequent = {name for i, name in levels.items() if effect[i] > 0}
        told = [i for i in order.tolist() if effect[i] > 0 or levels.get(i) not in frequent]
        value, mean, deviation = (one * self.unit for one in (value, self.mean, self.deviation))
        return tuple(
            Trait(
                index, feature.name, str(self.kinds[index]), feature.level, float(effect[index]),
                float(value[index]), float(mean[index]), float(deviation[index]),
                float(above[index] if effect[index] > 0 else 1 - above[index]),
            )
            for index in told[:top]
            for feature in [self.feature(index)]
        )  # fmt: skip

    def portraits(
        self, groups: Sequence[Any] | None = None, members: Sequence[Sequence[str]] = ()
    ) -> tuple[Portrait, ...]:
        """Return descriptions of all groups, or of unions of groups, without names."""
        unions = [[k] for k in range(len(self.sizes))] if groups is None else groups
        listed = members if len(members) else [()] * len(unions)
        return tuple(
            Portrait(int(self.sizes[union].sum()), "", self.traits(union), tuple(names))
            for union, names in zip(unions, listed, strict=True)
        )

    def feature(self, index: int) -> Column:
        """Return the name and kind of a feature."""
        known = self.features[index]
        return known if isinstance(known, Column) else Column(known)


def row_statistics(matrix: Any, labels: np.ndarray, columns: Sequence[Column | str]) -> Statistics:
    """Return sums over groups of rows."""
    if not isinstance(matrix, np.ndarray):
        matrix = matrix if is_device_csr(matrix) else sp.csr_array(matrix)
        return _with_kinds(_sparse_sums(matrix, labels), columns, True)
    groups = _memberships(labels)
    step = max(_BATCH_ENTRIES // max(len(matrix), 1), 1)
    parts = [_sums(matrix[:, batch], groups) for batch in gen_batches(matrix.shape[1], step)]
    zeros = np.concatenate([part["zeros"] for part in parts])
    return _with_kinds(_joined(parts), columns, bool(zeros.mean() >= _MOSTLY_ZERO))


def column_statistics(
    matrix: Any, labels: np.ndarray, rows: Statistics, names: Sequence[str]
) -> Statistics:
    """Return sums over groups of columns; dense numbers, or several kinds, are standardised."""
    # Columns of numbers have different units.
    kinds = {"number" if k in ("rank", "date") else k for k in rows.kinds.tolist()}
    alike = kinds.pop() if len(kinds) == 1 else "number"
    kinds = np.full(matrix.shape[0], alike)
    if not isinstance(matrix, np.ndarray):
        other = transposed(matrix) if is_device_csr(matrix) else sp.csr_array(matrix.T)
        sums = _sparse_sums(other, labels)
    else:
        groups = _memberships(labels)
        spread = np.where(rows.deviation > 0, rows.deviation, 1.0)
        step = max(_BATCH_ENTRIES // max(matrix.shape[1], 1), 1)
        parts = (matrix[batch] for batch in gen_batches(len(matrix), step))
        if alike == "number":
            parts = ((part / rows.unit - rows.mean) / spread for part in parts)
        sums = _joined([_sums(part.T, groups) for part in parts])
    return Statistics(**_facts(sums), kinds=kinds, features=names)


def portray_sides(
    matrix: Any,
    row_labels: np.ndarray,
    column_labels: np.ndarray,
    columns: Sequence[Column | str],
    row_names: Sequence[str] | range,
    column_confidence: np.ndarray | None = None,
) -> tuple[tuple[Portrait, ...], tuple[Portrait, ...]]:
    """Return descriptions of row clusters and of column clusters, without names."""
    some = every(len(row_labels), MAX_ROWS)
    rows = row_statistics(_take(matrix, some), row_labels[some], columns)
    some = every(len(row_labels), MAX_NAMED_ROWS)
    names = [name if isinstance(name, str) else f"row {name}" for name in row_names[some]]
    others = column_statistics(_take(matrix, some), column_labels, rows, names)
    order = typical_order(rows, column_confidence)
    members = [members_of(rows, order, column_labels == k) for k in range(len(others.sizes))]
    described = zip(rows.portraits(), np.bincount(row_labels).tolist(), strict=True)
    return (
        tuple(replace(portrait, size=size) for portrait, size in described),
        others.portraits(members=members),
    )


def _take(matrix: Any, some: slice) -> Any:
    if isinstance(matrix, np.ndarray) or not is_device_csr(matrix):
        return matrix[some]
    members = matrix.col_indices().new_tensor(np.arange(matrix.shape[0])[some])
    return matrix if len(members) == matrix.shape[0] else take_rows(matrix, members)


def every(number: int, most: int) -> slice:
    """Return a slice of at most ``most`` indices, evenly spaced."""
    return slice(None, None, max(-(-number // most), 1))


def typical_order(rows: Statistics, confidence: np.ndarray | None = None) -> np.ndarray:
    """Return the order of the columns: largest amounts or highest confidence first."""
    if (rows.kinds == "amount").all():
        confidence = rows.mean
    if confidence is None:
        return np.arange(len(rows.mean))
    return np.argsort(-np.asarray(confidence), kind="stable")


def members_of(rows: Statistics, order: np.ndarray, belongs: np.ndarray) -> list[str]:
    """Return the names of the first columns that belong to a cluster."""
    return [rows.feature(j).title for j in order[belongs[order]][:TOP].tolist()]


def _effects(
    kinds: np.ndarray, value: np.ndarray, mean: np.ndarray, deviation: np.ndarray
) -> np.ndarray:
    """Return signed roots of twice the divergences; for numbers, standardised differences."""
    # Kullback-Leibler, of a normal, Poisson or Bernoulli distribution from that of all rows.
    spread = np.where(deviation > 0, deviation, np.inf)
    effect = (value - mean) / spread
    shares, amounts = np.isin(kinds, ("binary", "level")), kinds == "amount"
    divergence = np.zeros_like(effect)
    p, q = value[shares], mean[shares]
    divergence[shares] = _relative(p, q) + _relative(1 - p, 1 - q)
    p, q = value[amounts], mean[amounts]
    # Divided by the dispersion relative to Poisson.
    divergence[amounts] = (_relative(p, q) - p + q) * q / spread[amounts] ** 2
    other = np.sign(effect) * np.sqrt(2 * np.maximum(divergence, 0))
    return np.where(shares | amounts, other, effect)


def _relative(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return p log(p / q), which is 0 where p is 0."""
    return p * np.log(np.where(p > 0, p, 1.0) / np.where((p > 0) & (q > 0), q, 1.0))


def _memberships(labels: np.ndarray) -> sp.csr_array:
    entries = np.ones(len(labels)), (labels, np.arange(len(labels)))
    return sp.csr_array(entries, shape=(int(labels.max()) + 1, len(labels)))


def _sums(block: np.ndarray, groups: sp.csr_array) -> dict[str, Any]:
    """Return sums over groups of points for some features, and properties that show their kinds."""
    block = np.asarray(block, dtype=np.float64)
    unit = _unit_of(np.fmax.reduce(np.abs(block), axis=0, initial=0.0))
    block = block if (unit == 1).all() else block / unit
    sizes, gaps = groups.sum(axis=1), np.isnan(block)
    filled, number = block, np.full(block.shape[1], max(len(block), 1))
    observed = np.broadcast_to(sizes[:, None], (len(sizes), block.shape[1]))
    if has_gaps := gaps.any():
        filled, number = np.where(gaps, 0.0, block), np.maximum((~gaps).sum(axis=0), 1)
        observed = groups @ (~gaps).astype(float)
    mean = filled.sum(axis=0) / number
    centred = filled - mean
    if has_gaps:
        centred[gaps] = 0.0
    deviation = np.sqrt((centred**2).sum(axis=0) / number)
    return {
        "sizes": sizes,
        "observed": observed,
        "totals": groups @ filled,
        "above": groups @ (centred > 0).astype(float),
        "mean": mean,
        # A deviation of the size of rounding is set to zero.
        "deviation": np.where(deviation > 1e-12 * np.abs(mean), deviation, 0.0),
        "zeros": ((filled == 0) & ~gaps).sum(axis=0) / number,
        "binary": ((filled == 0) | (filled == 1)).all(axis=0) & (unit == 1),
        "negative": (filled < 0).any(axis=0),
        "unit": unit,
    }


def _unit_of(largest: Any) -> np.ndarray:
    """Return powers of two to divide by where squares would overflow or underflow; 1 elsewhere."""
    exponent = np.frexp(largest)[1]
    return np.where(np.abs(exponent) < 500, 1.0, np.ldexp(1.0, exponent - 1))


def _sparse_sums(matrix: Any, labels: np.ndarray) -> dict[str, Any]:
    """Return the same for a sparse matrix; from a device, only sums for each group are copied."""
    (n_points, n_features), sizes = matrix.shape, np.bincount(labels).astype(np.float64)
    if is_device_csr(matrix):
        values, features, unit = matrix.values(), matrix.col_indices().long(), np.ones(())
        send, groups = values.new_tensor, by_row(matrix, features.new_tensor(labels))
    else:
        values, features = matrix.data.astype(np.float64, copy=False), matrix.indices
        unit = _unit_of(np.abs(values).max(initial=0.0))
        values = values if unit == 1 else values / unit
        send, groups = np.asarray, np.repeat(labels.astype(np.int64), np.diff(matrix.indptr))
    xp, cells = namespace(values), groups * n_features + features

    def count(weights: Any = None, of: Any = features, n_groups: int = 1) -> np.ndarray:
        weights = weights if weights is None else xp.astype(weights, values.dtype)
        found = xp.bincount(of, weights, minlength=n_groups * n_features)
        return to_numpy(found).reshape(n_groups, n_features)

    totals = count(values, cells, len(sizes))
    mean = totals.sum(axis=0) / max(n_points, 1)
    above = count(values > send(mean)[features], cells, len(sizes))
    if (mean < 0).any():
        # Where the mean is below zero, entries that are not stored lie above it.
        above += (sizes[:, None] - count(None, cells, len(sizes))) * (mean < 0)
    variance = count(values**2)[0] / max(n_points, 1) - mean**2
    return {
        "sizes": sizes,
        "observed": np.broadcast_to(sizes[:, None], totals.shape),
        "totals": totals,
        "above": above,
        "mean": mean,
        "deviation": np.sqrt(np.maximum(variance, 0)),
        "binary": (count(values != 1)[0] == 0) & (unit == 1),
        "negative": count(values < 0)[0] > 0,
        "zeros": 1 - count()[0] / max(n_points, 1),
        "unit": np.broadcast_to(unit, n_features),
    }


def _joined(parts: Sequence[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Return the sums for all features from those for batches of them."""
    keys = parts[0].keys() - {"sizes"}
    joined = {key: np.concatenate([part[key] for part in parts], axis=-1) for key in keys}
    return joined | {"sizes": parts[0]["sizes"]}


def _facts(sums: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {key: sums[key] for key in sums.keys() - {"zeros", "binary", "negative"}}


def _with_kinds(
    sums: dict[str, np.ndarray], columns: Sequence[Column | str], mostly_zero: bool
) -> Statistics:
    """Return statistics in which every column has a kind: its own, or one found from the values."""
    counts = mostly_zero and not sums["negative"].any() and not sums["binary"].all()
    kinds = np.where(sums["binary"] & ~np.bool_(counts), "binary", "number")
    kinds[(kinds == "number") & ~sums["negative"] & ((sums["zeros"] >= 0.5) | counts)] = "amount"
    given = zip(columns, kinds.tolist(), strict=True)
    kinds = np.array([getattr(column, "kind", None) or kind for column, kind in given])
    return Statistics(**_facts(sums), kinds=kinds, features=columns)
