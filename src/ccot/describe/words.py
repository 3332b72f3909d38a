"""Descriptions of clusters in words: columns that distinguish them, and short names."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ccot.persistence.registry import stored

# Kinds of columns whose means are compared in standard deviations.
BY_SPREAD = ("number", "rank", "date")


@stored()
@dataclass(frozen=True)
class Trait:
    """One column that distinguishes a cluster."""

    index: int
    name: str
    kind: str
    level: str | None
    effect: float  # in standard deviations; negative if the cluster is low
    value: float  # mean of the cluster
    overall: float  # mean of all points; the next is their standard deviation
    deviation: float
    share: float  # of members with a one (or none), or on the cluster's side of the overall mean

    @property
    def title(self) -> str:
        """Column, and category if there is one."""
        return self.name if self.level is None else f"{self.name} = {self.level}"

    @property
    def amount(self) -> str:
        """Signed difference, in the unit of the column."""
        if self.kind in BY_SPREAD:
            return f"{(self.value - self.overall) / (self.deviation or 1):+.1f} sd"
        if self.kind == "amount":
            ratio = self.value / (self.overall or 1)
            return f"× {ratio:{'.2g' if ratio < 10 else ',.0f'}}" if self.value else "none"
        return f"{100 * self.value:.0f} % ({100 * (self.value - self.overall):+.0f} points)"

    @property
    def means(self) -> tuple[object, ...]:
        """Mean of the cluster, and of all points; dates or times of day for a column of dates."""
        if self.kind != "date":
            return self.value, self.overall
        # Days since 1970; with minutes if the standard deviation is at most two days.
        minutes = np.array([round(1440 * self.value), round(1440 * self.overall)], "M8[m]")
        dates = minutes.astype("M8[D]" if self.deviation > 2 else "M8[m]").tolist()
        return tuple(one.time() if 0 <= self.overall < 1 else one for one in dates)

    @property
    def in_both_units(self) -> str:
        """Mean of the cluster in the column's unit, if it is a number or a date, and ``amount``."""
        if self.kind in ("number", "date"):
            return f"{self.means[0]:{'' if self.kind == 'date' else '.4g'}} ({self.amount})"
        return "" if self.amount == "none" else self.amount

    @property
    def phrase(self) -> str:
        """Short description, such as "high price"."""
        high = self.effect > 0
        if self.kind in BY_SPREAD:
            way = ("early", "late") if self.kind == "date" else ("low", "high")
            return f"{way[high]} {self.title}"
        if self.kind == "amount":
            return self.title if high else f"{'little' if self.value else 'no'} {self.title}"
        if high:
            return self.title if self.value >= 0.9 else f"more {self.title}"
        if self.value > 0.1:
            return f"less {self.title}"
        return f"{'no' if self.level is None else 'not'} {self.title}"


@stored()
@dataclass(frozen=True)
class Portrait:
    """Description of a cluster: its size, a suggested name, and traits, the strongest first."""

    size: int
    name: str
    traits: tuple[Trait, ...]  # empty: like all other points
    members: tuple[str, ...] = ()  # some; of a cluster of columns the most typical ones

    @property
    def listed(self) -> str:
        """The first members, and how many more there are."""
        more = self.size - len(self.members[:6])
        return ", ".join(self.members[:6]) + (f" and {more} more" if more else "")

    @property
    def sentence(self) -> str:
        """One line: the first traits with their amounts, or members if there are no traits."""
        if not self.traits:
            return self.listed if self.members else "close to the average in every column"
        return ", ".join(
            f"{trait.phrase} {trait.in_both_units}".strip() for trait in self.traits[:4]
        )


def with_names(portraits: Sequence[Portrait]) -> tuple[Portrait, ...]:
    """Return portraits with names that are all different."""
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
    """Return names of two parts, with more parts or a number if they would be equal."""
    names = [", ".join(parts[:2]) for parts in words]
    for length in (3, 4):
        names = [
            ", ".join(parts[:length]) if names.count(name) > 1 else name
            for parts, name in zip(words, names, strict=True)
        ]
    return [
        f"{name} ({number})" if (number := names[: k + 1].count(name)) > 1 else name
        for k, name in enumerate(names)
    ]
