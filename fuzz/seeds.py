"""Valid inputs to start from, made when they are needed."""

from __future__ import annotations

import contextlib
import datetime
import gzip
import io
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp

from ccot import CCOT, CCOTGW, TransportCoclustering, baselines
from ccot.datasets import make_latent_blocks
from ccot.recommend import BlockRecommender
from fuzz.mutate import joined

ZARR_FILES = ("zarr.json", ".zarray", "c/0/0", "c/1/0", "0.0", "1.0")
_X = make_latent_blocks([[1, 5], [6, 1]], 8, 6, sigma=0.1, random_state=0).data.round(2)
_COUNTS = sp.csr_array(np.random.default_rng(0).poisson(np.abs(_X)))
_TASTE = np.array([[5, 1], [1, 5]])[np.arange(8) % 2][:, np.arange(6) % 2]


def models() -> list[bytes]:
    """Return a file of every estimator."""
    rivals: list[Any] = [getattr(baselines, name) for name in baselines.__all__]
    fitted = [
        CCOT(2, 2, n_samplings=4, random_state=0).fit(_X),
        CCOTGW(2, 2).fit(_X),
        TransportCoclustering(2, 2, random_state=0).fit(_X),
        TransportCoclustering(2, 2, random_state=0).fit(_COUNTS),
        *(kind(2, 2, random_state=0).fit(np.abs(_X)) for kind in rivals),
    ]
    return [_written(model.save) for model in fitted]


def recommenders() -> list[bytes]:
    """Return files of recommenders, with and without names."""
    fitted = BlockRecommender(random_state=0).fit(_TASTE)
    named = BlockRecommender(random_state=0).fit(
        sp.csr_array(_TASTE), user_names=list("abcdefgh"), item_names=list("uvwxyz")
    )
    plain = TransportCoclustering(2, 2, random_state=0).fit(_X)
    return [_written(fitted.save), _written(named.save), _written(plain.save)]


def tables() -> list[bytes]:
    """Return text tables of every layout."""
    return [
        b"gene,s1,s2\nABC,1.5,2\nXYZ,0,4\n",
        b"a;b\n1,5;2,5\n3,5;4\n",
        b"1 2 3\n4 5 6\n",
        b"x\ty\n1\t2\nNA\t-\n",
        b'"id","a b","c ""d"""\r\n1,"2",3\r\n2,,4e-3\r\n',
        b"s1,s2\nr1,1,2\nr2,3,4\n",
        b"\xef\xbb\xbfid|a|b\nu|1|2\nv|3|?\n",
        b'"a\nb",c\n1,2\n3,4\n',
        "id,ä,€\nß,1,2\nø,3,4\n".encode(),
    ]


def long_tables() -> list[bytes]:
    """Return tables of one line a cell."""
    return [
        b"user\titem\trating\nann\ttea\t2\nbob\tjam\t1.5\nann\tjam\t3\n",
        b"a,b,1\na,c,2\nd,b,\n",
        b"doc,word\n1,the\n1,a\n2,the\n1,the\n",
        b"196\t242\t3\t881250949\n186\t302\t3\t891717742\n",
        b'r;c;v\n"x;y";q;1,5\nz;q;2\n',
    ]


def gzipped() -> list[bytes]:
    """Return text tables, compressed."""
    return [gzip.compress(text, 1, mtime=0) for text in tables()]


def arrays() -> list[bytes]:
    """Return arrays of every type."""
    kinds = ("<f8", "<f4", ">f8", "<i4", "|u1", "|b1", "<f2", "<U2", "<c8")
    found = [_saved(np.save, np.ones((3, 4)).astype(kind)) for kind in kinds]
    found.append(_saved(np.save, np.asfortranarray(np.arange(12.0).reshape(3, 4))))
    found += [_saved(np.save, np.ones(shape)) for shape in ((), (5,), (2, 3, 4), (0, 3))]
    return found


def archives() -> list[bytes]:
    """Return sparse matrices and single arrays."""
    dense = np.diag([1.0, 2.0, 0.0, 4.0])
    formats = ("csr", "csc", "coo", "bsr", "dia")
    found = [_saved(sp.save_npz, sp.coo_array(dense).asformat(kind)) for kind in formats]
    found.append(_saved(lambda file, matrix: sp.save_npz(file, matrix, compressed=False),
                        sp.csr_matrix(dense)))  # fmt: skip
    return [*found, _saved(np.savez, dense), _saved(np.savez_compressed, dense)]


def markets() -> list[bytes]:
    """Return Matrix Market files of every kind."""
    found = []
    for kind, field, symmetry in (
        ("coordinate", "real", "general"), ("coordinate", "integer", "symmetric"),
        ("coordinate", "pattern", "general"), ("coordinate", "real", "skew-symmetric"),
        ("coordinate", "complex", "hermitian"), ("array", "real", "general"),
        ("array", "integer", "symmetric"),
    ):  # fmt: skip
        matrix: Any = np.arange(9.0).reshape(3, 3) if symmetry == "general" else np.eye(3)
        if symmetry == "skew-symmetric":
            matrix = np.array([[0.0, -1], [1, 0]])
        if kind == "coordinate":
            matrix = sp.coo_array(matrix)
        buffer = io.BytesIO()
        scipy.io.mmwrite(buffer, matrix.astype(complex) if field == "complex" else matrix,
                         field=field, symmetry=symmetry)  # fmt: skip
        found.append(buffer.getvalue())
    return found


def gzipped_markets() -> list[bytes]:
    """Return Matrix Market files, compressed."""
    return [gzip.compress(text, 1, mtime=0) for text in markets()]


def parquets() -> list[bytes]:
    """Return Parquet tables: types, codecs, encodings, pages."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    wide = pa.table({"name": ["a", "b", "c"], "x": [1.0, 2.0, None], "y": [1, 2, 3]})
    long = pa.table({"row": [1, 1, 2], "column": ["u", "v", "u"], "value": [0.5, 1.5, 2.0]})
    types = pa.table({
        "f": pa.array([1, 2, 3], pa.float32()), "b": [True, False, True],
        "d": pa.array([1, 2, 3], pa.decimal128(5)), "h": pa.array([1, 2, 3], pa.float16()),
        "u": pa.array([1, 2, 3], pa.uint8()),
    })  # fmt: skip
    nested = pa.table({"list": [[1], [2, 3], []], "x": [1, 2, 3]})
    found = []
    for table in (wide, long, types, nested):
        for how in (
            {"compression": "none"},
            {"compression": "snappy", "data_page_version": "2.0"},
            {"compression": "zstd", "use_dictionary": False},
            {"compression": "gzip", "row_group_size": 2, "write_statistics": False},
        ):
            buffer = io.BytesIO()
            pq.write_table(table, buffer, **how)  # type: ignore[arg-type]
            found.append(buffer.getvalue())
    buffer = io.BytesIO()
    wide.to_pandas().set_index("name").to_parquet(buffer)
    return [*found, buffer.getvalue()]


def feathers() -> list[bytes]:
    """Return tables of Arrow: plain and compressed, in one batch and in several."""
    import pyarrow as pa
    import pyarrow.feather as feather

    wide = pa.table({"name": ["a", "b", "c"], "x": [1.0, 2.0, None], "y": [1, 2, 3]})
    coded = pa.table({"k": pa.array(["u", "v", "u"]).dictionary_encode(), "x": [1.0, 2.0, 3.0],
                      "when": pa.array([1, 2, 3], pa.timestamp("s"))})  # fmt: skip
    return [
        _saved(lambda file, table, how=how: feather.write_feather(table, file, **how), table)
        for table in (wide, coded)
        for how in ({"compression": "uncompressed"}, {"compression": "lz4"},
                    {"compression": "zstd", "chunksize": 2})
    ]  # fmt: skip


def workbooks() -> list[bytes]:
    """Return Excel files: numbers, words, dates, several sheets."""
    import openpyxl

    found = []
    for rows in (
        [["id", "a", "b"], ["u", 1, 2.5], ["v", None, 4]],
        [["sex", "born", "mass"], ["male", datetime.date(2001, 2, 3), 3750], ["female", None, "?"]],
    ):
        book = openpyxl.Workbook()
        for row in rows:
            book.worksheets[0].append(row)
        found.append(_saved(lambda file, book: book.save(file), book))
        book.create_sheet("more").append([1, 2])
        found.append(_saved(lambda file, book: book.save(file), book))
    return found


def records() -> list[bytes]:
    """Return JSON records, in a list and one a line."""
    return [
        b'[{"id": "a", "x": 1, "y": 2.5}, {"id": "b", "x": null, "z": true}]',
        b'{"id": "a", "x": 1, "y": 2}\n{"id": "b", "x": -3e2, "y": "word"}\n',
        b'\xef\xbb\xbf [ {"k": [1, {"n": 2}], "x": 1, "y": 2} , {"x": 3, "y": 4} ] ',
    ]


def databases() -> list[bytes]:
    """Return SQLite files: tables, an index, a view, texts that go over pages."""
    import sqlite3

    found = []
    for more in ((), ("CREATE INDEX i ON t (x)", "CREATE VIEW v AS SELECT * FROM t"),
                 (f"INSERT INTO t VALUES ('{'long ' * 300}', 5, 6)",)):  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "a.sqlite")
            with contextlib.closing(sqlite3.connect(path)) as base, base:
                base.execute("PRAGMA page_size = 512")
                base.execute("CREATE TABLE t (name TEXT, x REAL, y INTEGER)")
                base.execute("INSERT INTO t VALUES ('a', 1.5, 2), ('b', NULL, 4)")
                for line in more:
                    base.execute(line)
            found.append(path.read_bytes())
    return found


def anndatas() -> list[bytes]:
    """Return annotated data: dense, sparse, compressed, with layers."""
    import anndata
    import pandas as pd

    found = []
    for values in (_X, sp.csr_matrix(_COUNTS), sp.csc_matrix(_COUNTS)):
        adata = anndata.AnnData(
            values.astype(np.float64),
            obs=pd.DataFrame({"kind": list("aabbccdd")}, index=list("abcdefgh")),
            var=pd.DataFrame(index=list("uvwxyz")),
        )
        found.append(_written(adata.write_h5ad))
        adata.layers["raw"] = adata.X.copy()
        found.append(_written(lambda path, adata=adata: adata.write_h5ad(path, compression="gzip")))
    return found


def zarr_arrays() -> list[bytes]:
    """Return Zarr arrays: formats, codecs, types, shards."""
    import numcodecs
    import zarr
    from zarr.codecs import BloscCodec, Crc32cCodec, GzipCodec

    found = []
    for zarr_format, how in (
        (3, {}), (3, {"compressors": GzipCodec()}), (3, {"compressors": BloscCodec()}),
        (3, {"compressors": None, "dtype": "<i4"}), (3, {"compressors": Crc32cCodec()}),
        (3, {"shards": (8, 6)}), (2, {}), (2, {"compressors": numcodecs.LZ4(), "dtype": ">f4"}),
        (2, {"compressors": None, "filters": [numcodecs.Delta("<f8")]}),
    ):  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            options: Any = {"chunks": (4, 6), "dtype": "<f8", "zarr_format": zarr_format} | how
            zarr.create_array(folder, shape=_X.shape, **options)[:] = _X
            files = [Path(folder, name) for name in ZARR_FILES]
            found.append(joined([file.read_bytes() if file.exists() else b"" for file in files]))
    return found


def anything() -> list[bytes]:
    """Return a little of all."""
    return [*tables()[:3], *gzipped()[:1], *arrays()[:2], *archives()[:2], *markets()[:2]]


def requests() -> list[bytes]:
    """Return what clients of the service send."""
    bodies: list[Any] = [
        {"ratings": {"0": 5, "1": 1.5}},
        {"ratings": {}, "n": 3, "by": "rating", "exclude_seen": False},
        {"user": "3", "n": 2.0},
        {"user": "3", "item": "2"},
        {"ratings": {"4": 2}, "item": "1"},
        {"user": "nobody"},
        [],
    ]
    return [json.dumps(body).encode() for body in bodies]


def _saved(save: Callable[[Any, Any], Any], value: Any) -> bytes:
    buffer = io.BytesIO()
    save(buffer, value)
    return buffer.getvalue()


def _written(write: Callable[[Path], Any]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a")
        write(path)
        return path.read_bytes()
