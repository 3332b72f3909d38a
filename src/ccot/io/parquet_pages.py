"""What the pages of a Parquet file unfold to, by their headers alone: Arrow believes them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate, islice
from pathlib import Path
from typing import Any, BinaryIO

from ccot.io.matrix import InputError, check_unfolded

# Kinds of pages that Arrow reads: the struct that describes each, and the encoding in it.
_DICTIONARY = 2
_ABOUT = {0: (5, 2), _DICTIONARY: (7, 2), 3: (8, 4)}
# Bytes of a header that are read at first, and at most; Arrow gives up there as well.
_WINDOW, _LONGEST = 1 << 8, 1 << 24
# Texts by their lengths, or by what they begin with: a few bytes may stand for any amount.
_DELTAS = {6: "DELTA_LENGTH_BYTE_ARRAY", 7: "DELTA_BYTE_ARRAY"}


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
    stored = unfolded = 0
    with path.open("rb", buffering=0) as content:
        for number in range(about.num_row_groups) if groups is None else groups:
            group = about.row_group(number)
            n_rows = group.num_rows
            for place, leaf in leaves.items():
                chunk = group.column(place)
                first, length = _first_page(chunk), chunk.total_compressed_size
                stored += length
                if first < 0 or length < 0 or max(first + length, stored) > size:
                    raise InputError(f"{path} announces more than it holds: download it again")
                n_bytes, n_values = _walk(content, first, first + length, leaf.path)
                if not n_values == chunk.num_values == n_rows:
                    raise ValueError(f"{n_values} values in pages of {n_rows} rows")
                unfolded += max(n_bytes, n_values * leaf.length)
    check_unfolded(unfolded, path)


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


def _first_page(chunk: Any) -> int:
    first, dictionary = chunk.data_page_offset, chunk.dictionary_page_offset
    return dictionary if dictionary and 0 < dictionary < first else first


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
            return _parse(found)
        except IndexError:
            if len(found) < window or window >= _LONGEST:
                raise ValueError("the header of a page has no end") from None
            window *= 16


def _parse(content: bytes) -> tuple[dict[int, Any], int]:
    """Return the numbers and structs of a header in Thrift's compact protocol, and its length.

    What no writer has a reason for is refused, so that nothing is read in another way by Arrow.
    """
    fields: dict[int, Any] = {}
    around: list[tuple[dict[int, Any], int]] = []
    number = place = 0
    while True:
        head = content[place]
        place += 1
        if head < 16:
            if head or number > 255:
                raise ValueError("the header of a page has fields out of order")
            if not around:
                return fields, place
            fields, number = around.pop()
            continue
        number += head >> 4
        kind = head & 15
        if kind in (5, 6):  # numbers of 32 and 64 bits
            fields[number], place = _varint(content, place)
        elif kind == 8:  # bytes
            length, place = _varint(content, place)
            place += length
        elif kind == 12 and len(around) < 3:  # a struct
            around.append((fields, number))
            inner: dict[int, Any] = {}
            fields[number] = inner
            fields, number = inner, 0
        elif kind > 2:  # neither true nor false
            raise ValueError("the header of a page has fields of an unknown type")


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
    raise ValueError("the header of a page has a number without end")
