"""Files that are made to take much memory, and honest ones, for `benchmarks.hostile_memory`.

Each function writes a file of about so many bytes, and returns what it unfolds to.
"""

import contextlib
import gzip
import io
import json
import sqlite3
import zipfile
from collections.abc import Callable, Iterable
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ccot.persistence.model_file import write_values

LETTERS = [chr(code) for code in range(ord("#"), 127) if chr(code) not in ",\\{|}"]
SPARSE_PARTS = ("data", "indices", "indptr")


def repeated(unit: str, head: str = "") -> Callable[[Path, int], None]:
    def make(path: Path, size: int) -> None:
        content = unit.encode() * (size // len(unit.encode()))
        path.write_bytes(head.encode() + content)

    return make


def lines(each: Iterable[str], path: Path, size: int) -> None:
    with path.open("w", encoding="utf-8") as file:
        written = 0
        for line in each:
            written += file.write(line + "\n")
            if written > size:
                return


def named_rows(end: str, length: int = 4, letters: Iterable[str] = LETTERS):
    return lambda path, size: lines(
        ("".join(name) + end for name in product(letters, repeat=length)), path, size
    )


def named_cells(path: Path, size: int) -> None:
    names = map("".join, product(LETTERS, repeat=4))
    lines((f"{name},{name},1" for name in names), path, size)


def one_row(cell: str, end: str = "") -> Callable[[Path, int], None]:
    return lambda path, size: lines([",".join([cell] * (size // (len(cell) + 1))) + end], path, 0)


def real_table(path: Path, size: int) -> None:
    rng = np.random.default_rng(0)
    head = "gene," + ",".join(f"s{place}" for place in range(100))
    rows = (f"ENSG{n:011d}," + ",".join(f"{v:.4f}" for v in rng.normal(size=100))
            for n in range(10**9))  # fmt: skip
    lines((line for part in ([head], rows) for line in part), path, size)


def ratings(path: Path, size: int) -> None:
    rng = np.random.default_rng(0)
    n_cells = size // 13
    cells = rng.choice(20_000 * 5_000, n_cells, replace=False)
    lines((f"u{c // 5000},i{c % 5000},{c % 5 + 1}" for c in cells.tolist()), path, size)


def gzipped(make: Callable[[Path, int], None]) -> Callable[[Path, int], int]:
    """Compress a table; what cannot be compressed in front keeps it below the limit."""

    def made(path: Path, size: int) -> int:
        plain = path.with_name("plain")
        make(plain, size)
        content = plain.read_bytes()
        plain.unlink()
        path.write_bytes(gzip.compress(content, 6, mtime=0))
        return len(content)

    return made


def mostly_digits(path: Path, size: int) -> None:
    """Digits that compress by less than a hundred."""
    rng = np.random.default_rng(0)
    row = b",".join([b"1"] * 50) + b"\n"
    n_rows = size // len(row)
    chance = b"".join(b",".join(map(b"%d".__mod__, r)) + b"\n"
                      for r in rng.integers(0, 10, (n_rows // 40 + 1, 50)).tolist())  # fmt: skip
    path.write_bytes(chance + row * n_rows)


def gzipped_market(path: Path, size: int) -> int:
    """Compress places, by less than a hundred."""
    n = size // 4
    chance = np.random.default_rng(0).integers(1, 10, (n // 2, 2)).tolist()
    text = "".join(f"{row} {column}\n" for row, column in chance) + "1 1\n" * (n - len(chance))
    content = f"%%MatrixMarket matrix coordinate pattern general\n4000 4000 {n}\n{text}".encode()
    path.write_bytes(gzip.compress(content, 6, mtime=0))
    return len(content)


def market(kind: str, line: str, shape: Callable[[int], tuple]) -> Callable[[Path, int], None]:
    def make(path: Path, size: int) -> None:
        n_lines = size // len(line)
        n_lines, sizes = shape(n_lines)
        path.write_text(f"%%MatrixMarket matrix {kind}\n{sizes}\n" + line * n_lines)

    return make


def listed(n: int) -> tuple[int, str]:
    return n, f"{4000} {4000} {n}"


def square(n: int) -> tuple[int, str]:
    side = int(n**0.5)
    return side * side, f"{side} {side}"


def half_square(n: int) -> tuple[int, str]:
    side = int((2 * n) ** 0.5) - 1
    return side * (side + 1) // 2, f"{side} {side}"


def real_market(path: Path, size: int) -> None:
    rng = np.random.default_rng(0)
    n = size // 22
    places, values = rng.integers(1, 20_000, (n, 2)).tolist(), rng.normal(size=n).tolist()
    text = "\n".join(f"{r} {c} {v:.6f}" for (r, c), v in zip(places, values, strict=True))
    head = f"%%MatrixMarket matrix coordinate real general\n20000 20000 {n}\n"
    path.write_text(f"{head}{text}\n")


def array(kind: str, order: Any = "C") -> Callable[[Path, int], None]:
    def make(path: Path, size: int) -> None:
        n_rows = size // np.dtype(kind).itemsize // 100 or 1
        values = np.random.default_rng(0).integers(0, 2, (n_rows, 100)).astype(kind)
        np.save(path, np.asarray(values, order=order))

    return make


def nearly_constant(size: int, kind: Any = np.int8) -> np.ndarray:
    """Return values that compress, though by less than a hundred."""
    values = np.zeros((size // np.dtype(kind).itemsize // 100 or 1, 100), kind)
    chance = np.random.default_rng(0).integers(0, 100, (len(values) // 50 + 1, 100))
    values[: len(chance)] = chance
    return values


def archive(path: Path, size: int) -> int:
    values = nearly_constant(size)
    np.savez_compressed(path, values)
    return values.nbytes


def sparse_archive(form: str, kind: Any) -> Callable[[Path, int], None]:
    def make(path: Path, size: int) -> None:
        width = 100
        each = np.dtype(kind).itemsize + (4 if form == "csr" else 0)
        n_rows = size // each // width or 1
        if form == "csr":
            matrix: Any = sp.csr_array(np.ones((n_rows, width), kind))
        elif form == "bsr":
            starts = np.arange(n_rows + 1, dtype=np.int32)
            cells = np.ones((n_rows, 1, width), kind)
            matrix = sp.bsr_array((cells, np.zeros(n_rows, np.int32), starts))
        else:
            matrix = sp.dia_array((np.ones((width, n_rows), kind), -np.arange(width)),
                                  shape=(n_rows + width, n_rows))  # fmt: skip
        sp.save_npz(path, matrix, compressed=False)

    return make


def parquet(path: Path, size: int, names: Iterable[str] | None = None, n: int = 10) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    n_rows = size // 8 // n
    columns: dict[str, Any] = {}
    if names is not None:
        known = list(islice(names, n_rows))
        codes = pa.array(np.arange(n_rows, dtype=np.int32) % len(known))
        columns["name"] = pa.DictionaryArray.from_arrays(codes, pa.array(known))
    chance = np.random.default_rng(0).normal(size=n_rows)
    chance[n_rows // 90 :] = 0
    columns |= {f"c{place}": chance for place in range(n)}
    pq.write_table(pa.table(columns), path, compression="zstd")
    return 8 * n_rows * (n + 2 * (names is not None))


def real_parquet(path: Path, size: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    values = np.random.default_rng(0).normal(size=(size // 80, 10))
    names = pa.array([f"row {n}" for n in range(len(values))])
    columns = {f"c{place}": column for place, column in enumerate(values.T)}
    pq.write_table(pa.table({"name": names, **columns}), path)


def pairs_parquet(path: Path, size: int) -> int:
    """Write two columns of runs, which take nearly no room, and one of numbers."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    n_rows = size // 24
    codes = pa.array(np.zeros(n_rows, np.int32))
    text = pa.DictionaryArray.from_arrays(codes, pa.array(["name"]))
    values = np.ones(n_rows)
    values[: n_rows // 20] = np.random.default_rng(0).normal(size=n_rows // 20)
    pq.write_table(pa.table({"row": text, "column": text, "value": values}), path)
    return 24 * n_rows


def varint(value: int) -> bytes:
    digits = [value >> shift & 127 for shift in range(0, max(value.bit_length(), 1), 7)]
    return bytes([*(digit | 128 for digit in digits[:-1]), digits[-1]])


def thrift(fields: dict[int, Any]) -> bytes:
    """Return a struct in Thrift's compact protocol, as in the headers of Parquet's pages."""
    written, before = b"", 0
    for number, value in fields.items():
        if isinstance(value, bool):
            kind, content = 1 if value else 2, b""
        elif isinstance(value, dict):
            kind, content = 12, thrift(value)
        elif isinstance(value, bytes):
            kind, content = 8, varint(len(value)) + value
        else:
            kind, content = 5, varint(2 * value if value >= 0 else -2 * value - 1)
        written += bytes([number - before << 4 | kind]) + content
        before = number
    return written + b"\0"


def page_of(body: bytes, kind: int, unfolded: int, about: dict[int, dict]) -> bytes:
    """Return a page of Parquet: of values (kinds 0 and 3), a dictionary (2), or skipped (1)."""
    return thrift({1: kind, 2: unfolded, 3: len(body), **about}) + body


def zeros(n_bytes: int, codec: str) -> bytes:
    """Return that many bytes of nothing, compressed."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        for start in range(0, n_bytes, 1 << 22):
            stream.write(bytes(min(1 << 22, n_bytes - start)))
    return sink.getvalue().to_pybytes()


def replace_pages(path: Path, pages: bytes, column: int = 0) -> None:
    """Put other pages where those of a Parquet file's column are; its summary stays as it is."""
    import pyarrow.parquet as pq

    chunk = pq.read_metadata(path).row_group(0).column(column)
    first, length = chunk.data_page_offset, chunk.total_compressed_size
    fillings = (page_of(bytes(length - len(pages) - head), 1, 0, {6: {}}) for head in range(8, 14))
    filling = next(made for made in fillings if len(made) == length - len(pages))
    content = path.read_bytes()
    path.write_bytes(content[:first] + pages + filling + content[first + length :])


def parquet_of_much(path: Path, size: int, codec: str = "zstd", n_rows: int = 20_000) -> int:
    """Write a small Parquet file with a page of 20 times the size, which its summary hides."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    values = np.random.default_rng(0).normal(size=(2, n_rows))
    schema = pa.schema([pa.field(name, pa.float64(), nullable=False) for name in "ab"])
    table = pa.table(list(values), schema=schema)
    pq.write_table(table, path, compression=codec, use_dictionary=False)
    unfolded = 20 * max(size, n_rows)
    about = {5: {1: n_rows, 2: 0, 3: 3, 4: 3}}
    replace_pages(path, page_of(zeros(unfolded, codec), 0, unfolded, about))
    return unfolded


def annotated(make: Callable[[int], Any], short_names: bool = False):
    def made(path: Path, size: int) -> int | None:
        import anndata
        import h5py

        matrix = make(size)
        known = anndata.AnnData(np.ones((2, 2)))
        known.write_h5ad(path)
        with h5py.File(path, "r+") as file:
            del file["X"]
            sparse = sp.issparse(matrix)
            parts = {f"X/{name}": getattr(matrix, name) for name in SPARSE_PARTS} if sparse else {
                "X": matrix
            }  # fmt: skip
            for name, part in parts.items():
                file.create_dataset(name, data=part, compression=None if sparse else "gzip")
            kind = "csr_matrix" if sparse else "array"
            file["X"].attrs.update({"encoding-type": kind, "encoding-version": "0.2.0"})
            if sparse:
                file["X"].attrs["shape"] = matrix.shape
            for axis, length in zip(("obs", "var"), matrix.shape, strict=True):
                del file[axis]["_index"]
                names = [f"{n:04x}" if short_names else f"cell-{n:012d}" for n in range(length)]
                file[axis]["_index"] = np.array(names, "S") if short_names else names
        return None if sparse else matrix.nbytes

    return made


def nothing(size: int) -> np.ndarray:
    """Return zeros, which compress by a thousand."""
    return np.zeros((size // 10_000 or 1, 10_000), np.int8)


def short_rows(size: int) -> sp.csr_array:
    """Return a matrix of nothing but rows."""
    return sp.csr_array((size // 8, 2), dtype=np.int8)


def counts(size: int) -> sp.csr_array:
    return sp.random_array((max(size // 4000, 2), 5000), density=0.1, format="csr", rng=0,
                           dtype=np.float32)  # fmt: skip


def tree_of(unit: str, before: str = "[", after: str = "0]") -> Callable[[Path, int], None]:
    """Write a model file of nothing but its description."""

    def make(path: Path, size: int) -> None:
        values = before + unit * (size // len(unit)) + after
        head = '{"format": "ccot-model", "version": 1, "ccot": "0", "values": '
        with zipfile.ZipFile(path, "w") as stored:
            stored.writestr("model.json", head + values + "}")

    return make


def shared_parts(path: Path, size: int) -> None:
    """Write a model file with many matrices of the same few arrays."""
    n = size // 24
    parts = np.ones(n), np.zeros(n, np.int64), np.array([0, n], np.int64)
    one = '{"sparse": "csr", "as": "array", "shape": [1, 2], "parts": [%s]}'
    text = one % ", ".join(f'{{"array": {k}}}' for k in range(3))
    tree = ", ".join([text] * 100)
    with zipfile.ZipFile(path, "w") as stored:
        stored.writestr("model.json", '{"format": "ccot-model", "version": 1, "ccot": "0", '
                        f'"values": [{tree}]}}')  # fmt: skip
        for number, part in enumerate(parts):
            buffer = io.BytesIO()
            np.save(buffer, part)
            stored.writestr(f"arrays/{number}.npy", buffer.getvalue())


def real_model(path: Path, size: int) -> None:
    n = size // 45
    names = np.array([f"cell-{k:08d}" for k in range(n)], object)
    write_values(path, [names, np.zeros(n, np.int64), np.ones(n), np.ones(n)], {}, "0")


def zarr_of_nothing(path: Path, size: int) -> None:
    path.mkdir()
    about = {"zarr_format": 2, "shape": [size, 100], "chunks": [size, 100], "order": "C",
             "fill_value": 0, "dtype": "<f8", "filters": None, "compressor": None}  # fmt: skip
    (path / ".zarray").write_text(json.dumps(about))


def zarr_of_much(path: Path, size: int) -> int:
    """Write a Zarr array whose one small chunk holds gzip members of zeros without end."""
    path.mkdir()
    about = {"zarr_format": 2, "shape": [100, 100], "chunks": [100, 100], "order": "C",
             "fill_value": 0, "dtype": "<f8", "filters": None,
             "compressor": {"id": "gzip", "level": 1}}  # fmt: skip
    (path / ".zarray").write_text(json.dumps(about))
    member = gzip.compress(bytes(1 << 24), 1)
    (path / "0.0").write_bytes(member * max(size // len(member), 1))
    return size


def real_zarr(path: Path, size: int) -> int:
    import zarr

    values = np.random.default_rng(0).normal(size=(size // 800, 100))
    zarr.create_array(str(path), shape=values.shape, chunks=(1000, 100), dtype="f8")[:] = values
    return size


def names_alone(path: Path, size: int) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    n_rows = size // 8
    names = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n_rows, np.int32)), pa.array(["a"]))
    pq.write_table(pa.table({"name": names}), path)
    return 8 * n_rows


def workbook(sheet: Callable[[int], str], texts: Callable[[int], str] | None = None):
    """Write an Excel file with the rows of a sheet, and the texts that its cells share."""

    def make(path: Path, size: int) -> int:
        import openpyxl

        book = openpyxl.Workbook()
        book.worksheets[0].append(["a", 1])
        book.save(path)
        with zipfile.ZipFile(path) as stored:
            members = {name: stored.read(name) for name in stored.namelist()}
        place = "xl/worksheets/sheet1.xml"
        head, _, _ = members[place].partition(b"<row")
        members[place] = head + sheet(size).encode() + b"</sheetData></worksheet>"
        if texts is not None:
            members["xl/sharedStrings.xml"] = texts(size).encode()
            kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
            more = f'<Override PartName="/xl/sharedStrings.xml" ContentType="{kind}"/></Types>'
            types = members["[Content_Types].xml"]
            members["[Content_Types].xml"] = types.replace(b"</Types>", more.encode())
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as stored:
            for name, content in members.items():
                stored.writestr(name, content)
        return sum(map(len, members.values()))

    return make


def real_rows(size: int) -> str:
    values = np.random.default_rng(0).normal(size=(size // 2600 + 1, 100)).tolist()
    return "".join(
        "<row>" + "".join(f"<c><v>{v:.9f}</v></c>" for v in r) + "</row>" for r in values
    )


def digit_rows(size: int) -> str:
    return "<row><c><v>1</v></c><c><v>2</v></c></row>" * (size // 41)


def far_cell(size: int) -> str:
    cells = '<c r="XFC1048576"><v>1</v></c><c r="XFD1048576"><v>2</v></c>'
    return f'<!--{"x" * size}--><row r="1048576">{cells}</row>'


def empty_cells(size: int) -> str:
    return f"<row>{'<c/>' * (size // 4)}</row>"


def text_rows(size: int) -> str:
    return '<row><c t="s"><v>0</v></c><c><v>2</v></c></row>' * 3


SHARED = '<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'


def short_texts(size: int) -> str:
    names = islice(map("".join, product(LETTERS[30:80], repeat=4)), size // 20)
    return SHARED + "".join(f"<si><t>{name}</t></si>" for name in names) + "</sst>"


def entities(size: int) -> str:
    """Return texts that unfold to a thousand times the size, by names for names."""
    named = "".join(f'<!ENTITY e{n + 1} "{f"&e{n};" * 10}">' for n in range(7))
    head = f'<!DOCTYPE sst [<!ENTITY e0 "{"a" * max(size // 10**4, 10)}">{named}]>'
    return f"{head}{SHARED}<si><t>&e7;</t></si></sst>"


def real_records(path: Path, size: int) -> None:
    values = np.random.default_rng(0).normal(size=(size // 170 + 1, 10)).round(6).tolist()
    lines((json.dumps({f"c{n}": v for n, v in enumerate(row)}) for row in values), path, size)


def own_keys(path: Path, size: int) -> None:
    lines((f'{{"{key}":1,"a":2}}' for key in map("".join, product(LETTERS, repeat=4))), path, size)


def nested_record(path: Path, size: int) -> None:
    path.write_text('[{"a": 1, "b": [' + "[1,2,[],[],[]]," * (size // 15) + "[]]}]")


def database(path: Path, size: int, text: str | None = None) -> None:
    path.unlink(missing_ok=True)
    values = np.random.default_rng(0).normal(size=(max(size // 40, 2), 4)).tolist()
    with contextlib.closing(sqlite3.connect(path)) as base, base:
        if text is None:
            base.execute("CREATE TABLE t (a, b, c, d)")
            base.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", values)
        else:
            base.execute("CREATE TABLE t (name, b)")
            names = map("".join, product(LETTERS, repeat=4))
            base.executemany(
                "INSERT INTO t VALUES (?, 1)", ((n,) for n in islice(names, size // 12))
            )


def feather(path: Path, size: int, honest: bool = False) -> int:
    import pyarrow as pa
    from pyarrow.feather import write_feather

    n_rows = size // 80
    values = np.random.default_rng(0).normal(size=(n_rows, 10))
    if not honest:
        values[n_rows // 90 :] = 0
    write_feather(pa.table({f"c{n}": v for n, v in enumerate(values.T)}), path, compression="zstd")
    return 80 * n_rows


def gzip_of_much(path: Path, size: int) -> int:
    """Write a gzip file of digits that unfolds to a thousand times itself, 4 times the size."""
    content = b"1,2\n" * size
    path.write_bytes(gzip.compress(content, 9, mtime=0))
    return len(content)
