"""Tables of mixed columns as cells that families can model.

A cell has a total and an exposure for every row. The exposure is 0 if missing, 1 for a scaled
number, the column's mean for a count, and the level's share for a level of a category (each level
is poisson; the levels together are multinomial).
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import skew

from ccot.blocks.axes import Profiles
from ccot.blocks.columns import BY_LEVEL, ColumnKind, read_column, read_levels, recognise
from ccot.io.cells import is_gap
from ccot.io.matrix import Table
from ccot.persistence.registry import stored

SCALES = ("auto", "none", "standard", "robust", "log")
CENTERS = ("auto", "none", "columns", "rows", "both")

# A column is skewed above this skewness, and a transformation must reduce it to this share.
_SKEWED, _LESS_SKEWED = 1.0, 0.5


@stored()
@dataclass(frozen=True)
class PreparedColumn:
    """How one column is turned into cells."""

    kind: ColumnKind
    family: str  # gaussian, poisson, multinomial, or none if it is left out
    transform: str = "none"  # log, sqrt or log1p is taken of numbers first
    location: float = 0.0  # subtracted from numbers
    scale: float = 1.0  # numbers are divided by it; mean of counts
    shares: np.ndarray | None = None  # of the levels
    n_gaps: int = 0

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return 0 if self.family == "none" else 1 if self.shares is None else len(self.shares)

    def numbers(self, values: np.ndarray) -> np.ndarray:
        """Return the prepared numbers of a column; NaN is missing."""
        numbers = _transformed(read_column(values, self.kind), self.transform)
        return (numbers - self.location) / self.scale

    def shown(self, table: Table) -> np.ndarray:
        """Return one number for every cell; NaN if it is missing or the column is left out."""
        values = table.columns[self.kind.name]
        if self.family == "none":
            return np.full(len(values), np.nan)
        if self.family != "multinomial":
            return read_column(values, self.kind)
        levels = read_levels(values, self.kind).astype(np.float64)
        return np.where(levels < 0, np.nan, levels)

    def describe(self) -> str:
        """Return in words what is done to the column."""
        kind, gaps = self.kind, f"; {self.n_gaps} missing" if self.n_gaps else ""
        if self.family == "none":
            return f"{kind.name}: {kind.kind} ({kind.reason}), left out"
        if self.family == "multinomial":
            return f"{kind.name}: {kind.kind} of {self.n_cells} levels ({kind.reason}){gaps}"
        if self.family == "poisson":
            return f"{kind.name}: count with mean {self.scale:.3g} ({kind.reason}){gaps}"
        taken = "" if self.transform == "none" else f"{self.transform}, then "
        done = f"{taken}minus {self.location:.3g}, divided by {self.scale:.3g}"
        return f"{kind.name}: {kind.kind} ({kind.reason}), {done}{gaps}"


@stored()
@dataclass(frozen=True)
class TablePreparation:
    """How a table was prepared, in words and as numbers."""

    columns: tuple[PreparedColumn, ...]
    sentence: str  # what was done and why
    center_rows: bool = False  # subtract the mean of a row's scaled numbers

    def __str__(self) -> str:
        return "\n".join([self.sentence, *(column.describe() for column in self.columns)])

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all columns."""
        return tuple(column.kind.name for column in self.columns)

    @property
    def used(self) -> np.ndarray:
        """Positions of the columns that are used: numbers first, then counts, then categories."""
        order = ("none", "gaussian", "poisson", "multinomial")
        families = np.array([order.index(column.family) for column in self.columns])
        return np.argsort(families, kind="stable")[np.count_nonzero(families == 0) :]

    def shown_values(self, table: Table) -> np.ndarray:
        """Return one number for every cell: numbers as read, words by the number of their level."""
        return np.column_stack([column.shown(table) for column in self.columns])

    @property
    def dropped(self) -> tuple[str, ...]:
        """Names of the columns that are left out."""
        return tuple(column.kind.name for column in self.columns if column.family == "none")

    def cells(self, table: Table, rows: np.ndarray | slice = slice(None)) -> Profiles:
        """Return totals and exposures of some rows of a table; an absent column is missing."""
        used = [self.columns[position] for position in self.used]
        n_rows = len(np.arange(table.shape[0])[rows])
        total = np.zeros((n_rows, sum(column.n_cells for column in used)))
        exposure, first = np.zeros_like(total), 0
        for column in used:
            cells = slice(first, first := first + column.n_cells)
            if column.kind.name in table.columns:
                values = table.columns[column.kind.name][rows]
                _fill(column, values, total[:, cells], exposure[:, cells])
        if self.center_rows:
            numbers = slice(0, sum(column.family == "gaussian" for column in used))
            observed = exposure[:, numbers] > 0
            mean = total[:, numbers].sum(axis=1) / np.maximum(observed.sum(axis=1), 1)
            total[:, numbers] -= np.where(observed, mean[:, None], 0.0)
        return Profiles(total, exposure, None)

    def unread(self, table: Table) -> Counter[str]:
        """Return by column how many cells are not missing but cannot be read like fitted ones."""
        kinds = [c.kind for c in self.columns if c.n_cells and c.kind.name in table.columns]
        return Counter({k.name: count_unread(table.columns[k.name], k) for k in kinds})

    def on_all_columns(self, values: np.ndarray, left_out: float) -> np.ndarray:
        """Return values for all columns: those of used ones, and ``left_out`` for the others."""
        whole = np.full(len(self.columns), left_out, dtype=values.dtype)
        whole[self.used] = values
        return whole


def count_unread(values: np.ndarray, kind: ColumnKind) -> int:
    """Return how many cells are neither missing, nor a known level, nor a readable number."""
    by_level = kind.kind in BY_LEVEL or kind.kind == "ordered"
    is_read = read_levels(values, kind) >= 0 if by_level else np.isfinite(read_column(values, kind))
    if values.dtype.kind == "O":
        gaps = {cell: is_gap(cell, among_numbers=not by_level) for cell in set(values.tolist())}
        return sum(not read and not gaps[cell] for cell, read in zip(values, is_read, strict=True))
    return int(np.count_nonzero(~is_read & (values == values)))


def _fill(column: PreparedColumn, values: np.ndarray, total: np.ndarray, exposure: np.ndarray):
    """Write the cells of one column."""
    if column.shares is not None:
        codes = read_levels(values, column.kind)
        seen = np.flatnonzero(codes >= 0)
        total[seen, codes[seen]] = 1.0
        exposure[seen] = column.shares
        return
    is_count = column.family == "poisson"
    numbers = read_column(values, column.kind) if is_count else column.numbers(values)
    observed = np.isfinite(numbers) & (numbers >= 0 if is_count else True)
    total[:, 0] = np.where(observed, numbers, 0.0)
    exposure[:, 0] = observed * (column.scale if is_count else 1.0)


def prepare_table(
    table: Table,
    column_kinds: Mapping[str, str] | None = None,
    scale: str = "auto",
    center: str = "auto",
    reason: str = "columns are of different kinds",
) -> TablePreparation:
    """Return how the columns of a table are prepared."""
    kinds = recognise(table, column_kinds)
    columns = tuple(_prepare(table.columns[kind.name], kind, scale, center) for kind in kinds)
    if not any(column.n_cells for column in columns):
        raise ValueError(
            "no column can be used: "
            + "; ".join(f"{kind.name!r} is {kind.kind} ({kind.reason})" for kind in kinds[:10])
            + '. Give the right kind by column_kinds={"NAME": "category"} or --kind NAME=category'
        )
    return TablePreparation(columns, _say(columns, scale, center, reason), center in _BY_ROW)


_BY_ROW = ("rows", "both")
_SCALED_BY = {
    "standard": "each column of numbers divided by its standard deviation",
    "robust": "each column of numbers divided by its interquartile range",
    "log": "logarithms of the numbers, divided by their standard deviation",
    "none": "numbers as they are",
}


def _say(columns: tuple[PreparedColumn, ...], scale: str, center: str, reason: str) -> str:
    """Return in one line what is done, and why."""
    parts = []
    if any(column.family == "gaussian" for column in columns):
        parts.append(_SCALED_BY[scale.replace("auto", "standard")])
        taken = [c.kind.name for c in columns if c.transform != "none"]
        if taken and scale == "auto":
            parts.append(f"skewed ones as logarithms or roots ({_some(taken)})")
    if any(column.family == "poisson" for column in columns):
        parts.append("counts relative to their mean")
    if any(column.family == "multinomial" for column in columns):
        parts.append("shares of categories")
    if codes := [c.kind.name for c in columns if c.n_cells and c.kind.reason.startswith("codes")]:
        parts.append(f"codes made of digits used as categories ({_some(codes)})")
    parts.append("row means subtracted" if center in _BY_ROW else "row levels kept")
    if dropped := [f"{c.kind.name} ({c.kind.kind})" for c in columns if c.family == "none"]:
        parts.append(f"left out: {_some(dropped)}")
    why = f"{reason}: " if scale == center == "auto" else ""
    return why + "; ".join(parts)


def _some(names: list[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _prepare(values: np.ndarray, kind: ColumnKind, scale: str, center: str) -> PreparedColumn:
    if not kind.is_used:
        return PreparedColumn(kind, "none")
    if kind.kind in BY_LEVEL:
        codes = read_levels(values, kind)
        times = np.bincount(codes[codes >= 0], minlength=len(kind.levels))
        shares = times / max(times.sum(), 1)
        # Levels of a data frame that occur in no row count as unknown.
        held = tuple(level for level, share in zip(kind.levels, shares, strict=True) if share > 0)
        kind = replace(kind, levels=held)
        n_gaps = int(np.count_nonzero(codes < 0))
        return PreparedColumn(kind, "multinomial", shares=shares[shares > 0], n_gaps=n_gaps)
    numbers = read_column(values, kind)
    observed = numbers[np.isfinite(numbers)]
    n_gaps = len(numbers) - len(observed)
    if kind.kind == "count" and scale == "auto" and observed.min() >= 0 and observed.max() > 0:
        return PreparedColumn(kind, "poisson", scale=float(observed.mean()), n_gaps=n_gaps)
    transform = _transform(observed, scale)
    location, spread = _location_and_spread(_transformed(observed, transform), scale)
    location = location if center != "none" else 0.0
    return PreparedColumn(kind, "gaussian", transform, location, spread, n_gaps=n_gaps)


def _transform(observed: np.ndarray, scale: str) -> str:
    """Return the transformation of numbers before they are scaled."""
    lowest = observed.min()
    if scale == "log" and lowest >= 0:
        return "log" if lowest > 0 else "log1p"
    if scale != "auto" or lowest < 0 or np.ptp(observed) == 0:
        return "none"
    observed = observed / observed.max()
    before, taken = float(skew(observed)), "log" if lowest > 0 else "sqrt"
    if before <= _SKEWED:
        return "none"
    after = abs(float(skew(_transformed(observed, taken))))
    return taken if after < _LESS_SKEWED * before else "none"


def _transformed(numbers: np.ndarray, transform: str) -> np.ndarray:
    if transform == "none":
        return numbers
    # New rows may have smaller values than the fitted ones.
    lowest = np.finfo(np.float64).tiny if transform == "log" else 0.0
    numbers = np.where(np.isnan(numbers), np.nan, np.maximum(numbers, lowest))
    return {"log": np.log, "sqrt": np.sqrt, "log1p": np.log1p}[transform](numbers)


def _location_and_spread(observed: np.ndarray, scale: str) -> tuple[float, float]:
    # In this unit, squares are finite.
    unit = float(np.abs(observed).max()) or 1.0
    location, spread = float((observed / unit).mean()) * unit, float((observed / unit).std()) * unit
    if scale == "none":
        return location, 1.0
    if scale == "robust":
        low, location, high = (float(q) for q in np.quantile(observed, (0.25, 0.5, 0.75)))
        # The quartiles may be equal, if half of the values are.
        spread = (high - low) / 1.349 or spread
    return location, spread if spread > 0 else 1.0
