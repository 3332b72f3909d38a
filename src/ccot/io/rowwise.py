"""Spreadsheets, JSON records and tables of SQLite, as rows of cells that are text."""

import datetime
import json
import re
import sqlite3
import time
import zipfile
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from ccot.io.binary import check_installed, damage_explained, unpacked_size
from ccot.io.isolated.client import IsolatedReader
from ccot.io.layout import ReadOptions
from ccot.io.matrix import InputError, check_held, held_limit, text_limit
from ccot.io.mixed import as_text, drop_options

# A JSON record is at most so many characters long; one that unfolds to lists of lists takes more
# than twenty times that.
_RECORD = 1 << 21
_NESTED = (dict, list)
_SPACE = re.compile(r"[\s\ufeff]*")
# Steps of SQLite between looks at the clock, its longest text in any case, and how long a database
# may take: some seconds, and one more for so many bytes.
_SQLITE_STEPS, _SQLITE_BYTES, _SECONDS, _BYTES_A_SECOND = 1_000_000, 1 << 20, 300, 20_000


def cell_text(value: Any) -> str:
    """Return a value as the text of a cell."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime.timedelta):
        value = value / datetime.timedelta(days=1)
    if isinstance(value, float):
        return as_text(value)
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        value = value.date()
    is_moment = isinstance(value, datetime.date | datetime.time)
    return value.isoformat() if is_moment else str(value)


def sheet_rows(path: Path, options: ReadOptions) -> tuple[Iterator[list[str]], int, ReadOptions]:
    """Return the rows of a sheet, the bytes of the unpacked file, and what is known of them."""
    check_installed("openpyxl", "Excel files", "tables", ", or save the sheet as CSV")
    with damage_explained(path, "Excel"), zipfile.ZipFile(path) as archive:
        size = unpacked_size(archive, path, text_limit)
    # The reader takes twice this, beside what is always allowed.
    reader, n_bytes = IsolatedReader("excel", "Excel file"), (held_limit(size) - held_limit(0)) // 2
    names = reader.open(path, n_bytes)["sheets"]
    if not names:
        raise InputError(f"{path} has no worksheet: save the table as CSV")
    chosen = names[0] if options.sheet is None else options.sheet
    if chosen not in names:
        raise InputError(f"there is no sheet {chosen}: the sheets are {_listed(names)}")
    notes = ()
    if options.sheet is None and len(names) > 1:
        notes = (f"sheet {chosen!r} is read, not {_listed(names, chosen)}: pass --sheet NAME",)
    options = replace(options, source=f"Excel, sheet {chosen!r}", notes=notes)
    answers = reader.read(path, n_bytes, sheet=chosen)
    return (row for message, _ in answers for row in message["rows"]), size, options


def json_rows(
    open_text: Callable[[], IO[str]], drop: Collection[Any], name: str, size: int
) -> Iterator[list[str]]:
    """Return a header and rows of JSON records in a file of a size, listed or one after another."""
    # The file is opened twice: any record may have a key that no other has.
    keys, nested, n_records = dict[str, None](), dict[str, None](), 0
    with open_text() as text:
        for record in _records(text, name):
            n_records += 1
            keys.update(dict.fromkeys(record))
            nested.update((key, None) for key, v in record.items() if isinstance(v, _NESTED))
    if wrong := [key for key in nested if key not in drop]:
        remedy = f"write one flat record for each row, or leave them out with {drop_options(wrong)}"
        if n_records == 1:
            remedy = "write a list of records, [{...}, {...}], in pandas to_json(orient='records')"
        raise InputError(f"{name}: {_listed(wrong)} hold lists or objects: {remedy}")
    what = f"a table of {n_records} records and {len(keys)} keys"
    check_held(8 * n_records * len(keys), size, what, "use the same keys in all records")
    yield list(keys)
    with open_text() as text:
        for record in _records(text, name):
            yield ["" if isinstance(v, _NESTED) else cell_text(v) for v in map(record.get, keys)]


def _records(text: IO[str], name: str) -> Iterator[dict[str, Any]]:
    decoder = json.JSONDecoder(object_pairs_hook=_record)
    buffer, place, more, number, ends_at = "", 0, "more", 0, ""
    while True:
        if more and len(buffer) - place < _RECORD:
            more = text.read(_RECORD)
            buffer, place = buffer[place:] + more, 0
        place = _SPACE.match(buffer, place).end()  # type: ignore[union-attr]
        if place == len(buffer):
            if more:  # blanks alone
                continue
            if ends_at == "]" or not number:
                raise InputError(f"{name} ends in the middle of its records: write it again")
            return
        mark = buffer[place]
        if mark == "[" and not number and not ends_at:
            ends_at = "]"
        elif mark == ends_at:
            ends_at = "\n"
        elif mark != "," or ends_at != "]" or not number:
            number += 1
            if ends_at == "\n":
                raise InputError(f"{name} has text after its list of records: write it again")
            record, place = _decoded(decoder, buffer, place, f"{name}, record {number}")
            yield record
            continue
        place += 1


def _decoded(
    decoder: json.JSONDecoder, buffer: str, place: int, where: str
) -> tuple[dict[str, Any], int]:
    try:
        record, end = decoder.raw_decode(buffer, place)
        if buffer.find(r"\u", place, end) >= 0:
            # Halves of characters can be escaped, but no file of results can hold them.
            json.dumps(record, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        reason = getattr(error, "msg", str(error))[:80]
        raise InputError(f"{where} is not JSON ({reason}): write the file again") from error
    if not isinstance(record, dict):
        remedy = "write a list of records, [{...}, {...}], or one record on each line"
        raise InputError(f"{where} is not an object: {remedy}")
    return record, end


def _record(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        raise ValueError("a key occurs twice")
    return record


def sqlite_rows(path: Path, options: ReadOptions) -> Iterator[list[str]]:
    """Return a header and the rows of a table of an SQLite database."""
    size = path.stat().st_size
    deadline = time.monotonic() + _SECONDS + size // _BYTES_A_SECOND
    # SQLite writes files beside a database that others may change, unless told that none does.
    changing = any(Path(f"{path}-{kind}").exists() for kind in ("wal", "journal"))
    address = f"{path.absolute().as_uri()}?mode=ro" + ("" if changing else "&immutable=1")
    # Of some damaged files SQLite says that memory is lacking, having taken none.
    explained = damage_explained(path, "SQLite", InputError)
    with explained, closing(sqlite3.connect(address, uri=True)) as base:
        base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, max(size, _SQLITE_BYTES))
        base.set_progress_handler(lambda: time.monotonic() > deadline, _SQLITE_STEPS)
        base.execute("PRAGMA trusted_schema = OFF")
        chosen = _chosen_table(base, path, options.table).replace('"', '""')
        rows = base.execute(f'SELECT * FROM "{chosen}"')
        yield (names := [column[0] for column in rows.description])
        kept = [name not in options.drop for name in names]
        for row in rows:
            for name, value, is_kept in zip(names, row, kept, strict=True):
                if is_kept and isinstance(value, bytes):
                    remedy = f"leave it out with {drop_options([name])}"
                    raise InputError(f"column {name[:40]!r} holds binary data: {remedy}")
            yield list(map(cell_text, row))


def _chosen_table(base: sqlite3.Connection, path: Path, asked: str | None) -> str:
    """Return the table to read: views and virtual tables run code of the file, and are not."""
    asked_for = "type = 'table' AND name NOT LIKE 'sqlite_%' AND sql NOT LIKE 'CREATE VIRTUAL%'"
    found = base.execute(f"SELECT name FROM sqlite_master WHERE {asked_for} ORDER BY rowid")
    names = [name for (name,) in found]
    if asked is None and len(names) == 1:
        return names[0]
    if asked is None or asked not in names:
        wrong = "" if asked is None else f"there is no table {asked}: "
        raise InputError(f"{wrong}{path} holds {_listed(names) or 'none'}: pass --table NAME")
    return asked


def _listed(names: list[str], *but: str) -> str:
    shown = [repr(name[:40]) for name in names if name not in but]
    return ", ".join(shown[:8]) + (f" and {len(shown) - 8} more" if len(shown) > 8 else "")
