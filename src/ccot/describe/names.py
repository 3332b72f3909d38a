"""Short names for clusters, made of what sets them apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ccot.describe.statistics import portray_sides
from ccot.describe.words import Portrait


def describe_sides(*matrix_and_labels: Any) -> tuple[tuple[Portrait, ...], tuple[Portrait, ...]]:
    """Return what every row cluster and every column cluster is, with names.

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
    rows, columns = portray_sides(*matrix_and_labels)
    return with_names(rows), with_names(columns)


def with_names(portraits: Sequence[Portrait]) -> tuple[Portrait, ...]:
    """Return portraits whose names differ from one another."""
    names = _different([*map(_words, portraits)])
    return tuple(replace(one, name=name) for one, name in zip(portraits, names, strict=True))


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
