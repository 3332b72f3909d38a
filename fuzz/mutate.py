"""Changes that keep a file readable: inside members, headers, numbers and lines."""

from __future__ import annotations

import gzip
import io
import json
import random
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Sequence
from typing import Any

Mutate = Callable[[bytes], bytes]
Mutator = Callable[[bytes, random.Random, Mutate], bytes | None]

_BETWEEN = b"\n%%\n"
_NUMBERS = (0, 1, -1, 2, 127, 255, 65536, 2**31 - 1, 2**31, 2**32, 2**53, 2**62, 2**63 - 1, 2**64)
_WORDS = (
    "nan", "inf", "-inf", "1e400", "1e-400", "0x10", "1_0", "", '"', "\x00", "\ufeff", "NA", "''",
    "-", "+", "1,5", "٣", "\u2028", "\r", ";", "|", "../../etc/passwd", "__class__",
)  # fmt: skip


def archive(data: bytes, chance: random.Random, change: Mutate) -> bytes | None:
    """Change what is inside one member of a zip archive; sums and sizes are made right again."""
    members = _members(data)
    if not members:
        return None
    place = chance.randrange(len(members))
    name, content = members[place]
    if name.endswith((".xml", ".rels")):
        content = xml_text(content, chance, change)
    elif name.endswith(".npy"):
        kinds = (array_header, array_numbers, array_numbers)
        content = chance.choice(kinds)(content, chance, change) or change(content)
    else:
        content = change(content)
    members[place] = name, content
    return _zipped(members, _method(chance))


def archive_json(data: bytes, chance: random.Random, change: Mutate) -> bytes | None:
    """Change one value of the JSON inside a zip archive."""
    members = _members(data)
    if not members:
        return None
    for place, (name, content) in enumerate(members):
        if name.endswith(".json"):
            changed = json_text(content, chance, change)
            if changed is None:
                return None
            members[place] = name, changed
            return _zipped(members, zipfile.ZIP_STORED)
    return None


def archive_layout(data: bytes, chance: random.Random, change: Mutate) -> bytes | None:
    """Rename, repeat, drop, swap or compress members."""
    members = _members(data)
    if not members:
        return None
    place = chance.randrange(len(members))
    name, content = members[place]
    kind = chance.randrange(5)
    if kind == 0:
        members[place] = (
            chance.choice(["../a", "/etc/a", "format.npy", "arrays/0.npy", ""]),
            content,
        )
    elif kind == 1:
        members.append((name, content))
    elif kind == 2:
        del members[place]
    elif kind == 3:
        other = chance.randrange(len(members))
        members[place], members[other] = (name, members[other][1]), (members[other][0], content)
    return _zipped(members, zipfile.ZIP_DEFLATED if kind == 4 else _method(chance))


def json_text(data: bytes, chance: random.Random, change: Mutate) -> bytes | None:
    """Replace, repeat or drop one value of a JSON text."""
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        return None
    places = list(_places(tree))
    if not places:
        return None
    holder, key = chance.choice(places)
    kind = chance.randrange(5)
    if kind == 0:
        other_holder, other = chance.choice(places)
        holder[key] = other_holder[other]
    elif kind == 1 and isinstance(holder, list):
        holder.insert(key, holder[key])
    elif kind == 2:
        del holder[key]
    elif kind == 3 and isinstance(holder[key], str):
        holder[key] = change(holder[key].encode(errors="replace")).decode(errors="replace")
    else:
        holder[key] = chance.choice([*_NUMBERS, *_WORDS, None, True, [], {}, 0.5, 1e300])
    try:
        return json.dumps(tree).encode()
    except (ValueError, RecursionError):  # a value that was put into itself
        return None


def xml_text(data: bytes, chance: random.Random, change: Mutate) -> bytes:
    """Change a number, a name or a text between the marks of XML, or repeat or drop a part."""
    pieces = re.split(rb"([<>\"])", data)
    place = chance.randrange(len(pieces))
    kind = chance.randrange(5)
    if kind == 0:
        first, last = sorted(chance.randrange(len(pieces)) for _ in range(2))
        pieces[place:place] = pieces[first : min(last, first + 40)]
    elif kind == 1:
        del pieces[place : place + chance.choice([1, 2, 6])]
    elif kind == 2:
        pieces[place] = change(pieces[place])
    else:
        word = chance.choice(_WORDS) if chance.random() < 0.4 else str(chance.choice(_NUMBERS))
        pieces[place] = word.encode(errors="replace")
    return b"".join(pieces)


def array_header(data: bytes, chance: random.Random, change: Mutate) -> bytes | None:
    """Write another header in front of an array's numbers."""
    if not data.startswith(b"\x93NUMPY") or len(data) < 12:
        return None
    long = data[6] >= 2
    start = 12 if long else 10
    size = struct.unpack_from("<I" if long else "<H", data, 8)[0]
    if chance.random() < 0.3:
        header = change(data[start : start + size])
    else:
        shape = tuple(chance.choice(_NUMBERS) for _ in range(chance.randrange(4)))
        kind = chance.choice(
            ["<f8", "|O", "<i4", ">f4", "|b1", "<U4", "<c16", "|V8", "<f2", "<M8[s]"]
        )
        order = chance.random() < 0.3
        header = repr({"descr": kind, "fortran_order": order, "shape": shape}).encode() + b"\n"
    version = chance.choice([1, 1, 2, 3])
    length = struct.pack("<H" if version == 1 else "<I", min(len(header), 65535))
    return b"\x93NUMPY" + bytes([version, 0]) + length + header + data[start + size :]


def array_numbers(data: bytes, chance: random.Random, change: Mutate) -> bytes | None:
    """Write other numbers into an array, behind its header."""
    start = data.find(b"\n") + 1
    if not data.startswith(b"\x93NUMPY") or not 0 < start < len(data):
        return None
    numbers = bytearray(data[start:])
    for _ in range(chance.choice([1, 1, 2, 8])):
        place = 8 * chance.randrange(len(numbers) // 8 + 1)
        number = chance.choice(_NUMBERS)
        new = (
            struct.pack("<d", number)
            if chance.random() < 0.3
            else struct.pack("<Q", number % 2**64)
        )
        numbers[place : place + 8] = chance.choice(
            [new, struct.pack("<q", chance.randrange(-3, 9))]
        )
    return data[:start] + bytes(numbers[: len(data) - start])


def lines(data: bytes, chance: random.Random, change: Mutate) -> bytes | None:
    """Change, swap, repeat or drop the lines and cells of a text."""
    rows = data.split(b"\n")
    place = chance.randrange(len(rows))
    kind = chance.randrange(5)
    if kind == 0:
        rows.insert(place, rows[chance.randrange(len(rows))])
    elif kind == 1 and len(rows) > 1:
        del rows[place]
    elif kind == 2:
        rows[place] = change(rows[place])
    else:
        mark = chance.choice([b",", b"\t", b";", b" "])
        cells = rows[place].split(mark)
        word = chance.choice(_WORDS) if chance.random() < 0.6 else str(chance.choice(_NUMBERS))
        cells[chance.randrange(len(cells))] = word.encode()
        rows[place] = mark.join(cells)
    return b"\n".join(rows)


def joined(contents: Sequence[bytes]) -> bytes:
    """Put files one behind the other."""
    return _BETWEEN.join(contents)


def parted(data: bytes) -> list[bytes]:
    """Return the files that were put one behind the other."""
    return data.split(_BETWEEN)


def parts(data: bytes, chance: random.Random, change: Mutate) -> bytes | None:
    """Change one of several files that are put one behind the other."""
    files = parted(data)
    place = chance.choice([number for number, file in enumerate(files) if file] or [0])
    file = files[place]
    changed = json_text(file, chance, change) if chance.random() < 0.8 else None
    files[place] = changed or (_flip(file, chance) if chance.random() < 0.5 else change(file))
    return joined(files)


def gzipped(data: bytes, chance: random.Random, change: Mutate) -> bytes | None:
    """Change the text inside a gzip file."""
    try:
        text = zlib.decompressobj(31).decompress(data, 1 << 20)
    except zlib.error:
        return None
    changed = lines(text, chance, change) or text
    return gzip.compress(changed, 1, mtime=0)


def footer(data: bytes, chance: random.Random, change: Mutate) -> bytes | None:
    """Change the footer of a Parquet file and make its length right again."""
    if len(data) < 12 or not data.endswith(b"PAR1"):
        return None
    size = int.from_bytes(data[-8:-4], "little")
    start = len(data) - 8 - size
    if start < 4:
        return None
    changed = _flip(data[start:-8], chance) if chance.random() < 0.5 else change(data[start:-8])
    body = data[:start] if chance.random() < 0.7 else _flip(data[:start], chance)
    return body + changed + len(changed).to_bytes(4, "little") + b"PAR1"


def words(data: bytes, chance: random.Random, change: Mutate) -> bytes | None:
    """Change a few bytes, or a whole little-endian number, where they stand."""
    return _flip(data, chance)


def _flip(data: bytes, chance: random.Random) -> bytes:
    if not data:
        return data
    changed = bytearray(data)
    for _ in range(chance.choice([1, 1, 2, 4])):
        place = chance.randrange(len(changed))
        if chance.random() < 0.5:
            changed[place] = chance.randrange(256)
        else:
            size = chance.choice([1, 2, 4, 8])
            number = chance.choice(_NUMBERS) & (2 ** (8 * size) - 1)
            changed[place : place + size] = number.to_bytes(size, "little")
    return bytes(changed[: len(data)])


def _members(data: bytes) -> list[tuple[str, bytes]]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as stored:
            if sum(member.file_size for member in stored.infolist()) > 1 << 22:
                return []
            return [(member.filename, stored.read(member)) for member in stored.infolist()]
    except Exception:  # whatever the archive has become, it is changed as bytes then
        return []


def _zipped(members: list[tuple[str, bytes]], method: int) -> bytes:
    import warnings

    buffer = io.BytesIO()
    with warnings.catch_warnings():  # repeated names are what we want
        warnings.simplefilter("ignore")
        with zipfile.ZipFile(buffer, "w", method) as stored:
            for name, content in members:
                stored.writestr(zipfile.ZipInfo(name or "a"), content, method)
    return buffer.getvalue()


def _method(chance: random.Random) -> int:
    return zipfile.ZIP_STORED if chance.random() < 0.9 else zipfile.ZIP_DEFLATED


def _places(tree: Any) -> Any:
    """Yield every value of a JSON tree as its holder and its key there."""
    waiting = [tree]
    while waiting:
        holder = waiting.pop()
        if isinstance(holder, dict):
            keys: Any = list(holder)
        elif isinstance(holder, list):
            keys = range(len(holder))
        else:
            continue
        for key in keys:
            yield holder, key
            waiting.append(holder[key])
