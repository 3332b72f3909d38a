"""The kind of each column of a table, with the reason.

The distinct cells of a column show its kind; for a few whole numbers, the other columns decide.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources

import numpy as np

from ccot.io.cells import are_codes, find_formats, is_gap, read_numbers
from ccot.io.layout import is_number
from ccot.io.matrix import Table, check_values
from ccot.persistence.registry import stored

LEFT_OUT = ("identifier", "text", "constant")
BY_LEVEL = ("yes/no", "category")
NUMBER_KINDS = ("number", "count", "share", "money")
KINDS = (*NUMBER_KINDS, "ordered", "date", *BY_LEVEL, *LEFT_OUT)

# Whole numbers with at most so many levels, in a narrower range, may be codes of categories.
_CODE_LEVELS, _CODE_RANGE = 10, 20
# Limits for counts: of the mean, and of the minimum and the variance in units of the mean.
_COUNT_MEAN, _COUNT_LOW, _COUNT_DISPERSION = 30.0, 1 / 3, 3.0
# Words that are all different name the rows if there are this many. So do dates in even steps: all
# but a few (Friday to Monday) differ from the median by at most this share (months).
_MIN_NAMES, _EVEN, _EVEN_SHARE = 11, 0.1, 0.75
# Most levels of a category: the first number or, if larger, a share of the cells up to the last.
_MAX_LEVELS, _LEVEL_SHARE, _MOST_LEVELS = 20, 0.3, 200
_TEXT_SPACES = 3
_COMPONENTS = 5
# Rows used by the regressions on codes.
_CODE_ROWS = 20_000

_TRUTH = {"false": "0", "true": "1"}
_YES_NO = {"yes", "no", "y", "n", "true", "false", "t", "f", "+", "-"}
_FILE = resources.files("ccot.blocks") / "ordered_words.toml"
_SCALES, _CALENDAR = (
    [tuple(words.split(", ")) for words in listed]
    for listed in tomllib.loads(_FILE.read_text(encoding="utf-8")).values()
)
_RANGE = re.compile(r"(?:[<>]=?\s?)?(\d+(?:\.\d+)?)\s?(?:(?:-|–|to)\s?\d+(?:\.\d+)?|\+)?")
# Endings of column names whose whole numbers are codes: id, storeID, postal_code, cowcode2.
_NAMED_CODE = re.compile(
    r"(?:(?:^|[^A-Za-z])(?i:id|ids|uid|key|zip|phone|fips|geoid|isbn|sku)|[a-z](?:ID|Id|Key)"
    r"|(?i:identifier|code|idnum))[\d\W_]*$"
)
_DATES, _ISO = ("time", "%"), "%Y-%m-%d"  # beginnings of date formats; format of a date type


@stored()
@dataclass(frozen=True)
class ColumnKind:
    """The kind of one column, with the reason."""

    name: str
    kind: str  # one of KINDS
    reason: str
    levels: tuple[str, ...] = ()  # of categories; of ordered ones, in their order
    format: str = "plain"  # how numbers are written, see ccot.io.cells.find_formats

    @property
    def is_used(self) -> bool:
        """True if rows are clustered by this column."""
        return self.kind not in LEFT_OUT


def recognise(table: Table, column_kinds: Mapping[str, str] | None = None) -> list[ColumnKind]:
    """Return the kind of every column; those in ``column_kinds`` are taken as given."""
    asked = dict(column_kinds or {})
    for name, kind in asked.items():
        if kind not in KINDS:
            raise ValueError(
                f"column {name!r}: unknown kind {kind!r}; choose one of {', '.join(KINDS)}"
            )
        if name not in table.columns:
            known = ", ".join(map(repr, list(table.columns)[:20]))
            raise ValueError(f"column_kinds names {name!r}, but the columns are {known}")
    kinds = []
    for name, values in table.columns.items():
        # A date type does not say whether the dates name the rows.
        known = table.kinds.get(name)
        given = asked.get(name) or (None if known == "date" else known)
        if given is None:
            guess = _of_numbers if values.dtype.kind == "f" else _of_cells
            kind = guess(name, values)
        else:
            reason = "chosen by the user" if name in asked else "by its data type"
            kind = as_kind(name, values, given, table.levels.get(name, ()), reason)
        kinds.append(kind)
    return _settle_codes(table, kinds)


def as_kind(
    name: str, values: np.ndarray, kind: str, levels: tuple[str, ...], reason: str
) -> ColumnKind:
    """Return the description of a column of the given kind; an error says why it cannot be that."""
    counts = _count(values)
    if len(counts) < 2 and kind not in ("identifier", "text"):
        return ColumnKind(name, "constant", "all its values are the same" if counts else "empty")
    if kind in LEFT_OUT:
        return ColumnKind(name, kind, reason)
    if kind in BY_LEVEL:
        return ColumnKind(name, kind, reason, levels or _sorted_levels(counts))
    if kind == "ordered":
        order = levels or _order(counts, [*_SCALES, *_CALENDAR])
        reason = reason if order else f"{reason}, in alphabetical order"
        return ColumnKind(name, kind, reason, order or _sorted_levels(counts))
    declared = _ISO if values.dtype.kind == "M" else "plain"
    formats = find_formats(counts) if values.dtype.kind == "O" else [declared]
    if not formats:
        odd = next(cell for cell in counts if not find_formats([cell]))
        raise ValueError(
            f"column {name!r} cannot be of kind {kind!r}: {odd!r} is not a number; correct it, or "
            'use the kind "category"'
        )
    return ColumnKind(name, kind, reason, (), formats[0])


def _count(values: np.ndarray) -> Counter[str]:
    """Return how often each cell occurs, without missing values; numbers become text."""
    if values.dtype.kind in "fM":
        distinct, times = np.unique(values[np.isfinite(values)], return_counts=True)
        texts = map(number_text if values.dtype.kind == "f" else str, distinct)
        return Counter(dict(zip(texts, times.tolist(), strict=True)))
    counts: Counter[str] = Counter()
    for cell, times in Counter(values.tolist()).items():
        if cell is not None:
            counts[cell.strip()] += times
    held = Counter({cell: times for cell, times in counts.items() if not is_gap(cell)})
    # "-" is a missing value, but not if the other cells are "+".
    return counts if set(held) == {"+"} and "-" in counts else held


def number_text(value: float) -> str:
    """Return a number as the name of a level: whole ones without a point."""
    return f"{value:.12g}"


def _sorted_levels(counts: Mapping[str, int]) -> tuple[str, ...]:
    try:
        return tuple(sorted(counts, key=float))
    except ValueError:
        return tuple(sorted(counts))


def _of_numbers(name: str, values: np.ndarray, format: str = "plain") -> ColumnKind:
    """Return the kind of a column of numbers; "code" if the other columns have to decide."""
    held = values[np.isfinite(values)]
    distinct = np.unique(held)
    if len(distinct) < 2:
        why = "all its values are the same" if len(distinct) else "empty"
        return ColumnKind(name, "constant", why)
    levels = tuple(map(number_text, distinct.tolist())) if len(distinct) <= _CODE_LEVELS else ()
    if len(distinct) == 2:
        return ColumnKind(name, "yes/no", "two values", levels, format)
    if not (distinct == np.round(distinct)).all():
        return ColumnKind(name, "number", "numbers", (), format)
    # Row numbers rise in equal steps; ranks do not.
    if len(held) >= _MIN_NAMES and np.ptp(np.diff(held)) == 0:
        return ColumnKind(name, "identifier", "it numbers the rows")
    if _NAMED_CODE.search(name) and format == "plain":
        return _of_codes(name, _count(held), "codes, by the name of the column")
    if len(distinct) <= _CODE_LEVELS and distinct[-1] - distinct[0] < _CODE_RANGE:
        return ColumnKind(name, "code", "a few whole numbers", levels, format)
    mean = float(held.mean())
    is_small = distinct[0] >= 0 and mean <= _COUNT_MEAN and distinct[0] <= _COUNT_LOW * mean
    if is_small and float(held.var()) < _COUNT_DISPERSION * mean:
        return ColumnKind(name, "count", "small whole numbers, some near zero", (), format)
    return ColumnKind(name, "number", "numbers", (), format)


def _of_cells(name: str, values: np.ndarray) -> ColumnKind:
    """Return the kind of a column of words, or of numbers written as words."""
    if values.dtype.kind == "M":
        return _of_dates(name, read_column(values, ColumnKind(name, "date", "")), "dates", _ISO)
    counts = _count(values)
    if len(counts) < 2:
        return ColumnKind(name, "constant", "all its cells are the same" if counts else "empty")
    if are_codes(counts):
        has_zeros = any(cell.startswith("0") for cell in counts)
        reason = "codes: leading zeros" if has_zeros else "codes: too many digits for numbers"
        return _of_codes(name, counts, reason)
    formats = find_formats(counts)
    if not formats or (len(counts) == 2 and formats[0].startswith("in ")):
        return _of_words(name, counts)
    first = formats[0]
    told = {"percent": ("share", "numbers with %"), "money": ("money", "numbers with a currency")}
    if first in told:
        return ColumnKind(name, *told[first], (), first)
    if first.startswith(_DATES):
        doubt = f", though {formats[1]} fits as well" if len(formats) > 1 else ""
        reason = f"dates or times ({first}{doubt})"
        return _of_dates(name, read_numbers(values, first), reason, first)
    found = _of_numbers(name, read_numbers(values, first), first)
    if first == "plain":
        return found
    marks = {"decimal comma": "a decimal comma", "thousands": "thousands separators"}
    mark = marks.get(first, f"the unit {first.removeprefix('in ')}")
    return replace(found, reason=f"{found.reason}, with {mark}")


def _of_dates(name: str, days: np.ndarray, reason: str, format: str) -> ColumnKind:
    """Return the kind of a column of dates: "identifier" if they number the rows of a series."""
    if len(days) >= _MIN_NAMES and np.isfinite(days).all() and _are_even(days):
        return ColumnKind(name, "identifier", "dates in even steps, each one once")
    return ColumnKind(name, "date", reason, format=format)


def _are_even(days: np.ndarray) -> bool:
    """Return True if dates, in any order, form a series: days, weekdays, months."""
    steps = np.diff(np.sort(days))
    is_usual = np.abs(steps / max(np.median(steps), 1e-300) - 1) <= _EVEN
    return bool(steps.min() > 0 and is_usual.mean() >= _EVEN_SHARE)


def _of_codes(name: str, counts: Counter[str], reason: str) -> ColumnKind:
    """Return the kind of a column of codes: digits that are not numbers."""
    if len(counts) > _most_levels(counts) or len(counts) == sum(counts.values()) >= _MIN_NAMES:
        return ColumnKind(name, "identifier", reason)
    kind = "yes/no" if len(counts) == 2 else "category"
    return ColumnKind(name, kind, reason, _sorted_levels(counts))


def _most_levels(counts: Counter[str]) -> float:
    return max(_MAX_LEVELS, min(_LEVEL_SHARE * sum(counts.values()), _MOST_LEVELS))


def _of_words(name: str, counts: Counter[str]) -> ColumnKind:
    n_cells, levels = sum(counts.values()), tuple(sorted(counts))
    if len(counts) == 2:
        is_plain = {cell.lower() for cell in counts} <= _YES_NO
        return ColumnKind(name, "yes/no", "yes or no" if is_plain else "two words", levels)
    order = _order(counts)
    if order:
        return ColumnKind(name, "ordered", f"ordered words, {order[0]} to {order[-1]}", order)
    spaces = sum(cell.count(" ") * times for cell, times in counts.items()) / n_cells
    if spaces >= _TEXT_SPACES and len(counts) > 0.5 * n_cells:
        return ColumnKind(name, "text", "sentences, most of them different")
    if len(counts) == n_cells >= _MIN_NAMES:
        return ColumnKind(name, "identifier", "words that are all different")
    if len(counts) > _most_levels(counts):
        return ColumnKind(name, "text", f"{len(counts)} different words in {n_cells} cells")
    return ColumnKind(name, "category", f"{len(counts)} words", levels)


def _order(counts: Mapping[str, int], scales: Sequence[tuple] = _SCALES) -> tuple[str, ...]:
    """Return cells in the order of a known scale or of their ranges; () if neither applies."""
    lower = {cell.lower(): cell for cell in counts}
    if len(lower) == len(counts):
        for scale in scales:
            if lower.keys() <= set(scale):
                return tuple(lower[word] for word in scale if word in lower)
    matches = {cell: match for cell in counts if (match := _RANGE.fullmatch(cell))}
    if len(matches) < len(counts):
        return ()
    # "<10" comes before "10-19", and ">90" after "80-90".
    offset = {"<": -1, ">": 1}
    starts = {cell: (float(match[1]), offset.get(cell[0], 0)) for cell, match in matches.items()}
    return tuple(sorted(starts, key=starts.__getitem__))


def _settle_codes(table: Table, kinds: list[ColumnKind]) -> list[ColumnKind]:
    """Return kinds in which every code is a category or a number, decided by the other columns."""
    if not (codes := [index for index, kind in enumerate(kinds) if kind.kind == "code"]):
        return kinds
    rows = some_rows(table.shape[0], _CODE_ROWS, _CODE_ROWS, np.random.default_rng(0))
    blocks = [_expand(table.columns[kind.name][rows], kind) for kind in kinds]
    settled = list(kinds)
    for code in codes:
        others = [block for index, block in enumerate(blocks) if index != code and block.size]
        column = read_column(table.columns[kinds[code].name][rows], kinds[code])
        if others and _is_category(column, np.hstack(others)):
            reason = "a few whole numbers, which predict other columns better as categories"
            settled[code] = replace(kinds[code], kind="category", reason=reason)
        else:
            settled[code] = replace(kinds[code], kind="number", levels=())
    return settled


def some_rows(n_rows: int, most: int, size: int, rng: np.random.Generator) -> np.ndarray | slice:
    """Return ``size`` random rows if there are more than ``most``, otherwise all rows."""
    if n_rows <= most:
        return slice(None)
    return np.sort(rng.choice(n_rows, size, replace=False))


def _expand(values: np.ndarray, kind: ColumnKind) -> np.ndarray:
    """Return a column as standardised numbers; a category gets one column per level."""
    if not kind.is_used:
        return np.empty((len(values), 0))
    if kind.kind in BY_LEVEL:
        codes = read_levels(values, kind)
        levels = (codes[:, None] == np.arange(len(kind.levels))).astype(np.float64)
        levels[codes < 0] = np.nan
        levels -= np.nanmean(levels, axis=0)
        return np.nan_to_num(levels / max(np.sqrt(np.nanvar(levels, axis=0).sum()), 1e-300))
    number = read_column(values, kind)
    number = number / max(float(np.nanmax(np.abs(number))), 1e-300)
    number = (number - np.nanmean(number)) / max(float(np.nanstd(number)), 1e-300)
    return np.nan_to_num(number)[:, None]


def _is_category(code: np.ndarray, others: np.ndarray) -> bool:
    """Return True if, by BIC, one mean per level explains the other columns better than a line."""
    left, singular, _ = np.linalg.svd(others - others.mean(axis=0), full_matrices=False)
    observed = np.isfinite(code)
    target = (left * singular)[observed, :_COMPONENTS]
    level = np.unique(code[observed], return_inverse=True)[1]
    free = np.eye(level.max() + 1)[level]
    if 2 * free.shape[1] > len(level):
        return False  # too few rows to tell
    line = np.column_stack([np.ones(len(level)), code[observed]])
    lost = [((target - design @ np.linalg.lstsq(design, target, rcond=None)[0]) ** 2).sum(axis=0)
            for design in (line, free)]  # fmt: skip
    gain = len(level) * np.log(np.maximum(lost[0], 1e-300) / np.maximum(lost[1], 1e-300)).sum()
    return gain > target.shape[1] * (free.shape[1] - 2) * np.log(len(level))


def read_column(values: np.ndarray, kind: ColumnKind) -> np.ndarray:
    """Return a column of numbers, dates in days, ordered levels by rank; NaN if missing."""
    if kind.kind == "ordered":
        ranks = read_levels(values, kind).astype(np.float64)
        ranks[ranks < 0] = np.nan
        return ranks
    if values.dtype.kind == "M":
        days = values.astype("datetime64[us]").astype(np.float64) / 86400e6
        return np.where(np.isnat(values), np.nan, days)
    if values.dtype.kind == "O":
        numbers = read_numbers(values, kind.format)
        check_values(numbers, kind.name)
        return numbers
    numbers = values.astype(np.float64)
    # Plain numbers cannot stand for the percentages, dates or units of the fitted column.
    is_alike = kind.format in ("plain", "money", "thousands", "decimal comma")
    return np.where(np.isfinite(numbers) & is_alike, numbers, np.nan)


def read_levels(values: np.ndarray, kind: ColumnKind) -> np.ndarray:
    """Return the index of every cell's level; -1: missing, -2: an unknown level."""
    index = {level: position for position, level in enumerate(kind.levels)}
    # Some files have the words true and false, others a boolean type.
    index |= {_TRUTH[level.lower()]: i for level, i in index.items() if level.lower() in _TRUTH}
    # Other files may have lost the leading zeros of a code.
    index = {level.lstrip("0") or "0": i for level, i in index.items()} | index
    are_plain = "plain" in find_formats(kind.levels) and all(map(is_number, kind.levels))
    are_plain = are_plain and not are_codes(kind.levels)
    if values.dtype.kind == "O" and are_plain:
        values = read_numbers(values, kind.format)
    if values.dtype.kind == "f":
        distinct, code = np.unique(values, return_inverse=True)
        known = [index.get(number_text(v), -2) if np.isfinite(v) else -1 for v in distinct.tolist()]
        return np.array(known, dtype=np.int64)[code.reshape(-1)]
    cells = values.tolist() if values.dtype.kind == "O" else [str(value) for value in values]
    texts = {cell: "" if cell is None else cell.strip() for cell in set(cells)}
    known = {cell: index.get(text, -1 if is_gap(text) else -2) for cell, text in texts.items()}
    return np.fromiter((known[cell] for cell in cells), np.int64, len(cells))
