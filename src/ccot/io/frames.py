"""Tables and names from data frames, and data frames from results."""

import re
from collections.abc import Mapping, Sequence
from datetime import date
from importlib import import_module
from typing import Any

import numpy as np

from ccot.io.layout import names_rows
from ccot.io.matrix import Table

LIBRARIES = ("pandas", "polars")
# Whole numbers above this are names: float64 has no room for all of their digits.
_EXACT = 2**53


def row_names(X: Any) -> np.ndarray | None:
    """Return the row names that an input brings along; None where rows are only counted."""
    if not hasattr(X, "iloc") or type(X.index).__name__ == "RangeIndex":
        return None
    return np.array([str(name) for name in X.index], dtype=object)


def make_frame(columns: Mapping[str, Sequence[Any] | np.ndarray], library: str = "pandas") -> Any:
    """Return a data frame of the wanted library."""
    if library not in LIBRARIES:
        raise ValueError(f"library={library!r} must be one of {', '.join(LIBRARIES)}")
    try:
        return import_module(library).DataFrame(dict(columns))
    except ImportError as missing:
        problem = f"to_frame needs {library}, which is not installed"
        raise ImportError(f"{problem}: pip install {library}") from missing


def is_frame(X: Any) -> bool:
    """Return True for a data frame of pandas or polars."""
    return hasattr(X, "columns") and hasattr(X, "dtypes") and hasattr(X, "shape")


def has_times(frame: Any) -> bool:
    """Return True for a data frame with columns of dates, times or durations."""
    return any(str(kind).lower().startswith(_DATES + _DURATIONS) for kind in frame.dtypes)


def table_from_frame(frame: Any) -> Table:
    """Return a data frame as a table; its dtypes are believed."""
    kinds: dict[str, str] = {}
    levels: dict[str, tuple[str, ...]] = {}
    columns: dict[str, np.ndarray] = {}
    for position, name in enumerate(str(name) for name in frame.columns):
        series = frame.iloc[:, position] if hasattr(frame, "iloc") else frame[name]
        # The second column of a name is called so.
        name = name if name not in columns else f"{name} ({position + 1})"
        columns[name], kind, order = _column(series)
        kinds |= {name: kind} if kind else {}
        levels |= {name: order} if order else {}
    names = row_names(frame)
    first = next(iter(columns.items()), None)
    if names is None and first and kinds.get(first[0], "date") == "date" and names_rows(*first):
        kinds[first[0]] = "identifier"
    return Table(columns, None if names is None else names.tolist(), (), kinds, levels)


def _column(series: Any) -> tuple[np.ndarray, str, tuple[str, ...]]:
    """Return the values of one column of a frame, the kind its dtype tells, and its levels."""
    name = str(series.dtype).lower()
    if name.startswith(_DATES):
        if getattr(series.dtype, "tz", None) is not None:
            series = series.dt.tz_convert("UTC").dt.tz_localize(None)
        return np.asarray(series.to_numpy()).astype("datetime64[us]"), "date", ()
    if name.startswith(_DURATIONS):
        days = np.asarray(series.to_numpy()).astype("timedelta64[us]") / np.timedelta64(1, "D")
        return days, "number", ()
    if _NUMERIC(name):
        kind = "yes/no" if name.startswith("bool") else ""
        largest = series.max() if "int" in name else 0
        if isinstance(largest, int | np.integer) and largest > _EXACT:
            return _texts(series.to_list()), kind, ()
        if hasattr(series, "isna"):  # pandas: what is missing, in whatever way, is NaN
            return series.to_numpy(dtype=np.float64, na_value=np.nan), kind, ()
        return _numbers(series.to_list()), kind, ()
    values = series.to_list() if hasattr(series, "to_list") else list(series)
    if not name.startswith(("category", "categorical", "enum")):
        return _of_objects(values)
    is_ordered = name.startswith("enum") or bool(getattr(series.dtype, "ordered", False))
    levels = tuple(str(level) for level in series.dtype.categories) if is_ordered else ()
    return _texts(values), "ordered" if is_ordered else "category", levels


_DATES, _DURATIONS = ("date", "timestamp"), ("timedelta", "duration")
# Whole numbers have a number of bits, unlike intervals.
_NUMERIC = re.compile("bool|u?int[0-9]|float|double|decimal|halffloat").match


def _of_objects(values: list[Any]) -> tuple[np.ndarray, str, tuple[str, ...]]:
    """Return a column of Python objects: numbers, dates, or the words for whatever they are."""
    held = [value for value in values if not is_missing(value)]
    if held and all(isinstance(value, bool | np.bool_) for value in held):
        return _numbers(values), "yes/no", ()
    is_exact = not any(isinstance(value, int) and value > _EXACT for value in held)
    if held and is_exact and all(isinstance(value, int | float | np.number) for value in held):
        return _numbers(values), "", ()
    if held and all(isinstance(value, date) for value in held):
        gaps = [None if is_missing(value) else value for value in values]
        return np.array(gaps, dtype="datetime64[us]"), "date", ()
    return _texts(values), "", ()


def _texts(values: list[Any]) -> np.ndarray:
    out = np.empty(len(values), dtype=object)
    out[:] = [None if is_missing(value) else str(value) for value in values]
    return out


def _numbers(values: list[Any]) -> np.ndarray:
    return np.array([np.nan if is_missing(v) else float(v) for v in values], dtype=np.float64)


def is_missing(value: Any) -> bool:
    """Return True for whatever says that there is no value."""
    # Nothing else is unlike itself; pandas' NA does not even say so.
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value
