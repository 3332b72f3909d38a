"""How cells of a table are written: numbers, shares, money, dates, words for missing values."""

import re
import tomllib
from collections.abc import Callable, Collection, Iterable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

# The process that reads spreadsheets knows no package to ask.
_WORDS = tomllib.loads(Path(__file__).with_name("cells.toml").read_text(encoding="utf-8"))
MISSING = frozenset(_WORDS["gaps"])
MISSING_NUMBER = MISSING | frozenset(_WORDS["gaps_among_numbers"])

_PLAIN = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
# Digits that are a name: numbers begin with no zero, and have no more digits than float64.
_CODES = r"(?:0\d+|\+\d{7,}|\d{16,})"
_CODE, _DIGITS = re.compile(_CODES), re.compile(r"\+?\d+")
_CODE_CELL = re.compile(rf"\|\s*{_CODES}\s*(?=\||$)")
_GROUPED = re.compile(r"[-+]?[1-9]\d{0,2}([,'’\u00a0\u202f ]\d{3})+(\.\d+)?")
_COMMA = re.compile(r"[-+]?(\d+|[1-9]\d{0,2}([.\u00a0\u202f ]\d{3})+)(,\d+)?")
_PERCENT = re.compile(r"([-+]?\d+([.,]\d+)?)\s?%")
_SIGN = r"(?:[$€£¥₹]|USD|EUR|GBP|CHF|JPY)"
_MONEY = re.compile(rf"([-+]?)\s?(?:{_SIGN}\s?([-+]?[\d.,'’ ]*\d)|([\d.,'’ ]*\d)\s?{_SIGN})")
_UNIT = re.compile(r"(?<=[\d ])([^\W\d_]{1,6}|°[CF]?)$")
_CLOCK = re.compile(r"(\d{1,2}):([0-5]\d)(?::([0-5]\d(?:\.\d+)?))?")


def is_gap(cell: str | None, among_numbers: bool = False) -> bool:
    """Return True for an empty cell and for a word that stands for one."""
    return cell is None or cell.strip().lower() in (MISSING_NUMBER if among_numbers else MISSING)


def is_code(cell: str) -> bool:
    """Return True for digits that stand for no number: 01234, +15550100, 4111111111111111."""
    return _CODE.fullmatch(cell.strip()) is not None


def hold_code(cells: Iterable[str]) -> bool:
    """Return True where one of many cells may be a code; for numbers, quickly and exactly."""
    return _CODE_CELL.search(f"|{'|'.join(cells)}") is not None


def are_codes(cells: Iterable[str]) -> bool:
    """Return True where some cells are codes, and no other one can only be a number."""
    numbers = [cell for cell in cells if _PLAIN.fullmatch(cell)]
    return any(map(is_code, numbers)) and all(map(_DIGITS.fullmatch, numbers))


def _signed(cell: str) -> str:
    """Return a cell with a plain minus, which accountants write as brackets."""
    cell = f"-{cell[1:-1]}" if cell.startswith("(") and cell.endswith(")") else cell
    return cell.replace("\u2212", "-")


def _matched(pattern: re.Pattern[str], cell: str) -> re.Match[str]:
    match = pattern.fullmatch(cell)
    if match is None:
        raise ValueError(cell)
    return match


def _plain(cell: str) -> float:
    return float(_matched(_PLAIN, cell)[0])


def _grouped(cell: str) -> float:
    return float(re.sub(r"[^\d.+-]", "", (_PLAIN.fullmatch(cell) or _matched(_GROUPED, cell))[0]))


def _comma(cell: str) -> float:
    return float(re.sub(r"[^\d,+-]", "", _matched(_COMMA, cell)[0]).replace(",", "."))


def _percent(cell: str) -> float:
    return float(_matched(_PERCENT, cell)[1].replace(",", ".")) / 100


def _money(cell: str) -> float:
    sign, after, before = _matched(_MONEY, cell).groups()
    value = _amount((after or before).strip())
    return -value if sign == "-" else value


def _amount(cell: str) -> float:
    return _grouped(cell) if _reads(_grouped, [cell]) else _comma(cell)


def _in_unit(unit: str) -> Callable[[str], float]:
    """Return what reads numbers before a unit, and raises ValueError without it."""
    return lambda cell: _amount(cell[: cell.rindex(unit, -len(unit))].strip())


def _clock(cell: str) -> float:
    hours, minutes, seconds = _matched(_CLOCK, cell).groups(default="0")
    return (int(hours) + int(minutes) / 60 + float(seconds) / 3600) / 24


def _days(moment: datetime) -> float:
    return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() / 86400


def _iso(cell: str) -> float:
    # A bare "20200102" is a number before it is a date.
    if cell[4:5] != "-":
        raise ValueError(cell)
    return _days(datetime.fromisoformat(cell))


def _date(pattern: str) -> Callable[[str], float]:
    return lambda cell: _days(datetime.strptime(cell, pattern))


# In this order: the first one that reads every cell is taken.
FORMATS: dict[str, Callable[[str], float]] = {
    "plain": _plain,
    "percent": _percent,
    "money": _money,
    "thousands": _grouped,
    "decimal comma": _comma,
    "time": _clock,
    "%Y-%m-%d": _iso,
    **{pattern: _date(pattern) for pattern in _WORDS["dates"]},
}


def _reads(read: Callable[[str], float], cells: Iterable[str]) -> bool:
    try:
        for cell in cells:
            read(_signed(cell))
    except ValueError:
        return False
    return True


def find_formats(cells: Collection[str]) -> list[str]:
    """Return all formats that read every cell, the likeliest first."""
    cells = [cell for cell in cells if not is_gap(cell, among_numbers=True)]
    found = [name for name, read in FORMATS.items() if cells and _reads(read, cells)]
    unit = _UNIT.search(cells[0]) if cells and not found else None
    return [f"in {unit[0]}"] if unit and _reads(_in_unit(unit[0]), cells) else found


def read_numbers(values: np.ndarray, name: str) -> np.ndarray:
    """Return the numbers that cells stand for; NaN for gaps and for what the format cannot read."""
    read = FORMATS.get(name) or _in_unit(name.removeprefix("in "))

    def number(cell: str | None) -> float:
        try:
            return np.nan if cell is None else read(_signed(cell.strip()))
        except (ValueError, OverflowError):
            return np.nan

    cells = values.tolist()
    known = {cell: number(cell) for cell in set(cells)}
    return np.fromiter((known[cell] for cell in cells), np.float64, len(cells))
