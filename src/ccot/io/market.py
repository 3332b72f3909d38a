"""Matrix Market files.

SciPy has a faster reader, which crashes on damaged files; this one refuses them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ccot.io.matrix import InputError, check_held, check_unfolded, sorting_bytes

_KINDS = ("coordinate", "array")
_FIELDS = ("real", "double", "integer", "unsigned-integer", "pattern")
_SYMMETRIES = ("general", "symmetric", "skew-symmetric", "hermitian")
# Text is turned into numbers so many bytes at a time: they take more room than it does.
_BLOCK = 1 << 18
# Bytes that an entry takes in a list of places and in the sparse matrix that comes of it.
_ENTRY_BYTES = 28


@dataclass(frozen=True)
class _Header:
    """What a file says about itself; ``start`` is where its numbers begin."""

    kind: str
    field: str
    symmetry: str
    shape: tuple[int, int]
    n_listed: int
    start: int

    @property
    def numbers_each(self) -> int:
        """How many numbers an entry takes."""
        return 1 if self.kind == "array" else 2 + (self.field != "pattern")

    @property
    def n_entries(self) -> int:
        """How many entries there are at most, those of the other triangle included."""
        return self.n_listed * (1 if self.symmetry == "general" else 2)

    @property
    def sign(self) -> float:
        """What entries of the other triangle are multiplied with."""
        return -1.0 if self.symmetry == "skew-symmetric" else 1.0


def parse_market(text: bytes, path: Path) -> Any:
    """Return the matrix of a Matrix Market file.

    Parameters
    ----------
    text : bytes
        Its content.
    path : pathlib.Path
        Its name and size.

    Returns
    -------
    ndarray or COO array
        The matrix, as the file is dense or not.
    """
    header = _read_header(text, path)
    if 2 * header.numbers_each * header.n_listed > len(text) - header.start + 1:
        raise InputError(
            f"{path} announces {header.n_listed} entries and is too short for them: download it "
            "again"
        )
    numbers = _blocks(text, header)
    if header.kind == "array":
        return _dense(numbers, header)
    _check_entries(header, text)
    # A row needs a pointer once it is sorted.
    check_unfolded(24 * header.n_entries + 8 * header.shape[0], path)
    matrix = _sparse(numbers, header)
    _check_entries(header, text, sorting_bytes(matrix.coords[0]))
    return matrix


def _check_entries(header: _Header, text: bytes, more_bytes: int = 0) -> None:
    check_held(
        len(text) + _ENTRY_BYTES * header.n_entries + more_bytes,
        len(text),
        f"{header.n_entries} entries",
        "add up those that are listed more than once",
    )


def _read_header(text: bytes, path: Path) -> _Header:
    start, lines = 0, []
    while len(lines) < 2:
        end = text.find(b"\n", start)
        if end < 0:
            raise ValueError("the line with its numbers of rows and columns is missing")
        line = text[start:end].strip()
        if not lines or (line and not line.startswith(b"%")):
            lines.append(line.lower().split())
        start = end + 1
    banner, sizes = lines
    words = [word.decode("ascii", "replace") for word in banner]
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
        raise ValueError("the first line must be %%MatrixMarket matrix ...")
    kind, field, symmetry = words[2:]
    if field == "complex":
        raise InputError(f"{path} holds complex numbers: pass their real parts or moduli")
    if kind not in _KINDS or field not in _FIELDS or symmetry not in _SYMMETRIES:
        raise ValueError(f"{' '.join(words[2:])[:60]} is not known")
    if not all(size.isdigit() for size in sizes) or len(sizes) != 2 + (kind == "coordinate"):
        raise ValueError("the line with its numbers of rows and columns is damaged")
    shape = int(sizes[0]), int(sizes[1])
    if symmetry != "general" and shape[0] != shape[1]:
        raise ValueError(f"a matrix of shape {shape} cannot be {symmetry}")
    n_listed = int(sizes[2]) if kind == "coordinate" else _n_stored(shape, symmetry)
    return _Header(kind, field, symmetry, shape, n_listed, start)


def _n_stored(shape: tuple[int, int], symmetry: str) -> int:
    """Return how many entries of a dense matrix are written down."""
    if symmetry == "general":
        return shape[0] * shape[1]
    return shape[0] * (shape[0] + (-1 if symmetry == "skew-symmetric" else 1)) // 2


def _blocks(text: bytes, header: _Header) -> Iterator[np.ndarray]:
    """Yield the numbers of whole lines, an entry a row."""
    if b"\0" in text:
        raise ValueError("it holds bytes that are no text")
    start, found = header.start, 0
    while start < len(text):
        end = start + _BLOCK
        if end < len(text):
            end = text.find(b"\n", end) + 1 or len(text)
        lines = text[start:end].strip()
        if header.kind == "coordinate":
            _check_lines(lines, header.numbers_each)
        numbers = _numbers(lines)
        found += numbers.size // header.numbers_each
        if found > header.n_listed:
            break
        yield numbers.reshape(-1, header.numbers_each)
        start = end
    if found != header.n_listed:
        raise ValueError(f"other than the {header.n_listed} entries that it announces were found")


def _check_lines(text: bytes, n_words: int) -> None:
    """Refuse lines of other than so many words, empty ones aside."""
    marks = np.frombuffer(text, np.uint8)
    blank = marks <= ord(" ")
    words = np.flatnonzero(~blank & np.concatenate([[True], blank[:-1]]))
    lengths = np.bincount(np.searchsorted(np.flatnonzero(marks == ord("\n")), words))
    if not np.isin(lengths, (0, n_words)).all():
        raise ValueError(f"a line holds other than {n_words} numbers")


def _numbers(text: bytes) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # where a word is no number
        return np.fromstring(text, np.float64, sep=" ") if text else np.empty(0)


def _dense(numbers: Iterator[np.ndarray], header: _Header) -> np.ndarray:
    matrix = np.zeros(header.shape)
    first = 0
    for block in numbers:
        rows, columns = _stored_places(np.arange(first, first + len(block)), header)
        if header.symmetry != "general":
            matrix[columns, rows] = header.sign * block[:, 0]
        matrix[rows, columns] = block[:, 0]
        first += len(block)
    return matrix


def _stored_places(numbers: np.ndarray, header: _Header) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and columns of the entries of a dense matrix, by their numbers in the file."""
    n_rows = header.shape[0]
    if header.symmetry == "general":
        columns, rows = np.divmod(numbers, n_rows)
        return rows, columns
    above = np.arange(n_rows) + (header.sign < 0)  # of each column: entries that are not stored
    ends = np.cumsum(n_rows - above)
    columns = np.searchsorted(ends, numbers, side="right")
    return n_rows - (ends[columns] - numbers), columns


def _sparse(numbers: Iterator[np.ndarray], header: _Header) -> sp.coo_array:
    kind = np.int32 if max(header.shape) < 2**31 else np.int64
    places, values = np.empty((2, header.n_entries), kind), np.empty(header.n_entries)
    first = 0
    for block in numbers:
        found, listed = _entries(block, header)
        within = slice(first, first + len(listed))
        places[:, within], values[within] = found, listed
        first += len(listed)
    return sp.coo_array((values[:first], tuple(places[:, :first])), shape=header.shape)


def _entries(block: np.ndarray, header: _Header) -> tuple[np.ndarray, np.ndarray]:
    """Return places and values of entries, those of the other triangle behind them."""
    _check_places(block[:, :2], header.shape)
    places = block[:, :2].T - 1
    values = np.ones(len(block)) if header.field == "pattern" else block[:, 2]
    if header.symmetry == "general":
        return places, values
    off = places[0] != places[1]
    mirrored = places[::-1, off], header.sign * values[off]
    return np.concatenate([places, mirrored[0]], axis=1), np.concatenate([values, mirrored[1]])


def _check_places(places: np.ndarray, shape: tuple[int, int]) -> None:
    inside = (places >= 1) & (places <= shape) & (places == np.floor(places))
    if not inside.all():
        row, column = places[~inside.all(axis=1)][0].tolist()
        raise ValueError(f"there is no place {row:g}, {column:g} in a matrix of shape {shape}")
