"""What the pages of a Parquet file unfold to, by their headers alone: Arrow believes them.

Where pages are is read from the end of the file here as well. Arrow would tell, but ends the whole
process where it finds a contradiction there.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import accumulate, islice
from pathlib import Path
from typing import Any, BinaryIO

from ccot.io.matrix import InputError, check_unfolded, held_limit

# Kinds of pages that Arrow reads: the struct that describes each, and the encoding in it, beside
# the number of values. Headers hold the kind, both sizes and one of these structs.
_DICTIONARY = 2
_ABOUT = {0: (5, 2), _DICTIONARY: (7, 2), 3: (8, 4)}
_HEADER: dict[int, Any] = {
    **dict.fromkeys((1, 2, 3)),
    **{place: dict.fromkeys((1, encoding)) for place, encoding in _ABOUT.values()},
}
# Bytes of a header that are read at first, and at most; Arrow gives up there as well.
_WINDOW, _LONGEST = 1 << 8, 1 << 24
# Kinds of fields in Thrift's compact protocol.
_NUMBERS, _BYTES, _STRUCT = frozenset((4, 5, 6)), 8, 12
# Fields of the end of a file, by their numbers: the schema, and of each row group its columns and
# number of rows; of each column the number of values, the stored bytes and the first pages.
_SCHEMA, _ROW_GROUPS, _COLUMNS, _N_ROWS, _ABOUT_COLUMN = 2, 4, 1, 3, 3
_CHUNK = (5, 7, 9, 11)
_WANTED: dict[int, Any] = {
    _SCHEMA: {1: None},
    _ROW_GROUPS: {_COLUMNS: {_ABOUT_COLUMN: dict.fromkeys(_CHUNK)}, _N_ROWS: None},
}
# Bytes of memory that each of these structs takes, here or in Arrow's description of the file, and
# how deep structs and lists may be within one another.
_STRUCT_BYTES, _DEEPEST = 650, 10
# Texts by their lengths, or by what they begin with: a few bytes may stand for any amount.
_DELTAS = {6: "DELTA_LENGTH_BYTE_ARRAY", 7: "DELTA_BYTE_ARRAY"}

Chunk = tuple[int, int, int]


def check_pages(
    file: Any, path: Path, columns: Iterable[str], groups: Iterable[int] | None = None
) -> None:
    """Refuse a Parquet file whose pages unfold to far more than its size, or contradict it.

    Parameters
    ----------
    file : pyarrow.parquet.ParquetFile
        The table.
    path : pathlib.Path
        Where it is.
    columns : iterable of str
        Columns that will be read.
    groups : iterable of int, optional
        Row groups that will be read; all by default.

    Raises
    ------
    InputError
        If they would unfold to too much, or are of a type or an encoding without limits.
    ValueError
        If they are damaged.
    """
    about, wanted, size = file.metadata, set(columns), path.stat().st_size
    leaves = {place: about.schema.column(place) for place in range(about.num_columns)}
    leaves = {place: leaf for place, leaf in leaves.items() if _is_read(leaf.path, wanted)}
    _check_types(file.schema_arrow, wanted, leaves.values())
    row_groups = read_footer(path)
    stored = unfolded = 0
    with path.open("rb", buffering=0) as content:
        for number in range(len(row_groups)) if groups is None else groups:
            chunks, n_rows = row_groups[number]
            if len(chunks) != about.num_columns or n_rows != about.row_group(number).num_rows:
                raise ValueError("the end of the file contradicts itself")
            for place, leaf in leaves.items():
                announced, length, first = chunks[place]
                stored += length
                if max(first + length, stored) > size:
                    raise InputError(f"{path} announces more than it holds: download it again")
                n_bytes, n_values = _walk(content, first, first + length, leaf.path)
                if not n_values == announced == n_rows:
                    raise ValueError(f"{n_values} values in pages of {n_rows} rows")
                unfolded += max(n_bytes, n_values * leaf.length)
    check_unfolded(unfolded, path)


def read_footer(path: Path) -> list[tuple[list[Chunk], int]]:
    """Return what the end of a Parquet file says of its row groups.

    Parameters
    ----------
    path : pathlib.Path
        The file.

    Returns
    -------
    list of tuples
        Of each row group its columns (number of values, bytes stored, place of the first page) and
        its number of rows.
    """
    about = path.stat()
    return _read_footer(path, about.st_size, about.st_mtime_ns)


@lru_cache(maxsize=4)
def _read_footer(path: Path, size: int, written: int) -> list[tuple[list[Chunk], int]]:
    with path.open("rb") as file:
        file.seek(max(size - 8, 0))
        end = file.read(8)
        length = int.from_bytes(end[:4], "little")
        if end[4:] != b"PAR1" or length > size - 12:
            raise ValueError("it does not end like one that is whole and not encrypted")
        file.seek(size - 8 - length)
        content = file.read(length)
    try:
        found, _ = _take(content, 0, _WANTED, [held_limit(size) // _STRUCT_BYTES])
        return [_row_group(group) for group in found.get(_ROW_GROUPS, [])]
    except OverflowError:
        raise InputError(
            f"{path} has so many columns and row groups that describing them would take far more "
            "memory than the file, which may be a trap: write it again in fewer row groups"
        ) from None
    except (IndexError, KeyError, TypeError):
        raise ValueError("the end of the file lacks a field") from None


def _row_group(found: dict[int, Any]) -> tuple[list[Chunk], int]:
    return [_chunk(one[_ABOUT_COLUMN]) for one in found[_COLUMNS]], _whole(found[_N_ROWS])


def _chunk(found: dict[int, int]) -> Chunk:
    n_values, length, first, dictionary = (_whole(found.get(number, 0)) for number in _CHUNK)
    # Columns without values may have a dictionary and no page.
    is_first = dictionary and (dictionary < first or not first)
    return n_values, length, dictionary if is_first else first


def _whole(number: int) -> int:
    """Return a number of 63 bits, which is stored twice as large: negative ones would be odd."""
    if number & ~0xFFFFFFFFFFFFFFFE:
        raise ValueError("the end of the file has a number that is no size")
    return number >> 1


def _is_read(path: str, wanted: set[str]) -> bool:
    """Tell whether Arrow reads a column: "a.b" is also what is in the struct b of the struct a."""
    ways = accumulate(path.split("."), "{}.{}".format)
    return path in wanted or any(way in wanted for way in islice(ways, 1, None))


def _check_types(schema: Any, names: Iterable[str], leaves: Iterable[Any]) -> None:
    """Refuse columns that take more than their pages and a value of fixed size for each row."""
    import pyarrow.types as types

    paths = {leaf.path for leaf in leaves}
    flat = paths - {leaf.path for leaf in leaves if leaf.max_repetition_level}
    # Arrow repeats a text for each row, however long, unless it keeps references.
    texts = {leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"}
    for name in names:
        kind = schema.field(name).type
        if name not in flat or (name in texts and not types.is_dictionary(kind)):
            raise InputError(
                f"column {name[:40]!r} is of type {str(kind)[:40]}, neither text nor numbers: "
                "leave it out by --drop, or name another --index-col"
            )
    for inner in paths.difference(schema.names):
        raise InputError(f"{inner[:40]!r} in a struct begins with the name of a column: rename it")


def _walk(content: BinaryIO, place: int, stop: int, name: str) -> tuple[int, int]:
    """Return how many bytes and values the pages of a column announce."""
    n_bytes = n_values = 0
    while place < stop:
        header, length = _read_header(content, place)
        try:
            kind, unfolded, stored = _sizes(header[1], header[2], header[3])
            n_bytes += unfolded
            place += length + stored
            if kind not in _ABOUT:  # Arrow skips it
                continue
            about, encoding = header[_ABOUT[kind][0]], _ABOUT[kind][1]
            count, encoding, _ = _sizes(about[1], about[encoding])
        except (KeyError, TypeError):
            raise ValueError("the header of a page lacks a field") from None
        if kind != _DICTIONARY:
            n_values += count
        elif count > unfolded:
            raise ValueError(f"{count} values in a dictionary of {unfolded} bytes")
        if encoding in _DELTAS:
            raise InputError(
                f"column {name[:40]!r} is in the encoding {_DELTAS[encoding]}, which is not read: "
                "write it again with a dictionary, or plain"
            )
    return n_bytes, n_values


def _sizes(first: int, second: int, third: int = 0) -> tuple[int, int, int]:
    """Return numbers of 31 bits, which are stored twice as large: negative ones would be odd."""
    if (first | second | third) & ~0xFFFFFFFE:
        raise ValueError("the header of a page has a number that is no size")
    return first >> 1, second >> 1, third >> 1


def _read_header(content: BinaryIO, place: int) -> tuple[dict[int, Any], int]:
    """Return the header of the page at a place, and its length."""
    window = _WINDOW
    while True:
        content.seek(place)
        found = content.read(window)
        try:
            return _take(found, 0, _HEADER, [len(_HEADER)])
        except IndexError:
            if len(found) < window or window >= _LONGEST:
                raise ValueError("the header of a page has no end") from None
            window *= 16


def _varint(content: bytes, place: int) -> tuple[int, int]:
    value = content[place]
    if value < 128:
        return value, place + 1
    value &= 127
    for shift in range(7, 70, 7):
        place += 1
        byte = content[place]
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place + 1
    raise ValueError("a number has no end")


def _take(
    content: bytes, place: int, wanted: dict[int, Any], left: list[int], depth: int = 0
) -> tuple[dict[int, Any], int]:
    """Return the wanted fields of a struct in Thrift's compact protocol, and where it ends.

    Wanted are numbers (None) and structs or lists of them, by what is wanted within; ``left`` is
    how many of these may still be kept.
    """
    fields: dict[int, Any] = {}
    number = 0
    left[0] -= bool(wanted)
    if left[0] < 0:
        raise OverflowError
    while head := content[place]:
        number += head >> 4
        kind = head & 15
        # What no writer has a reason for is refused, so that Arrow reads nothing in another way.
        if head < 16 or number > 255:
            raise ValueError("fields are out of order")
        if kind in _NUMBERS:  # nearly all are, or bytes
            value, place = _varint(content, place + 1)
        elif kind == _BYTES:
            length, place = _varint(content, place + 1)
            place += length
            continue
        else:
            within = wanted.get(number) or {}
            value, place = _value(content, place + 1, kind, within, left, depth + 1)
        if number in wanted and value is not None:
            fields[number] = value
    return fields, place + 1


def _value(
    content: bytes, place: int, kind: int, wanted: dict[int, Any], left: list[int], depth: int
) -> tuple[Any, int]:
    """Return the value of a field, or None where nobody wants its kind, and where it ends."""
    if depth > _DEEPEST:
        raise ValueError("fields are too deep within one another")
    if kind <= 2:  # true and false have no value
        return None, place
    if kind in _NUMBERS:
        return _varint(content, place)
    if kind == _STRUCT:
        return _take(content, place, wanted, left, depth)
    if kind == 9:
        return _list(content, place, wanted, left, depth)
    if kind == _BYTES:
        length, place = _varint(content, place)
        return None, place + length
    if kind in (3, 7):  # a byte, or a number of eight
        return None, place + (1 if kind == 3 else 8)
    raise ValueError("a field is of an unknown type")


def _list(
    content: bytes, place: int, wanted: dict[int, Any], left: list[int], depth: int
) -> tuple[list[Any] | None, int]:
    kind, size = content[place] & 15, content[place] >> 4
    place += 1
    if size == 15:
        size, place = _varint(content, place)
    if size > len(content) - place:
        raise ValueError("a list is longer than the file")
    if kind <= 2:
        return None, place + size
    values = []
    for _ in range(size):
        value, place = _value(content, place, kind, wanted, left, depth + 1)
        if wanted:
            values.append(value)
    return values, place
