"""What clusters are, and short names for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ccot.describe.statistics import TOP, Statistics, column_statistics, row_statistics
from ccot.describe.words import Column, Portrait

# Of more rows so many are looked at, taken evenly; column clusters are told by fewer.
MAX_ROWS, MAX_NAMED_ROWS = 200_000, 20_000


def portraits(
    statistics: Statistics, groups: Sequence[Any] | None = None, members: Sequence[Any] = ()
) -> tuple[Portrait, ...]:
    """Return what each group, or each union of groups, is."""
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
