"""A table as it was read: columns by name, nothing interpreted yet."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Table:
    """A table as it was read: columns by name, nothing interpreted yet.

    Attributes
    ----------
    columns : dict of str to ndarray
        One-dimensional arrays of one length: float64 with NaN for gaps, objects that are str or
        None, or datetime64.
    row_names : list of str or None
        Names of the rows.
    notes : tuple of str
        Sentences about how it was read.
    kinds : dict of str to str
        Kinds of columns that are known already, as from the dtypes of a data frame.
    levels : dict of str to tuple of str
        Levels of ordered categories, in their order.
    """

    columns: dict[str, np.ndarray]
    row_names: list[str] | None = None
    notes: tuple[str, ...] = ()
    kinds: dict[str, str] = field(default_factory=dict)
    levels: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return len(next(iter(self.columns.values()), ())), len(self.columns)
