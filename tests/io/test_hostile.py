"""Files made to harm: each is refused by its reader's own error, and takes little memory."""

import base64
import gzip
import io
import json
import os
import pickle
import sqlite3
import tracemalloc
import zipfile
import zlib
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from benchmarks.hostile_files import entities, text_rows, workbook
from ccot import load_model
from ccot.io import InputError, ModelFileError, layout, long, matrix, read_matrix, read_table
from ccot.io.isolated import client
from ccot.io.matrix import check_sparse
from ccot.io.rowwise import _records
from ccot.persistence.model_file import write_values
from ccot.sources import as_source
from tests.conftest import needs_proc, needs_unix

HUGE = 2**53


class Trap:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def refused(path, match):
    with pytest.raises(InputError, match=match):
        read_matrix(path)


def npy(shape, kind="<f8", body=b""):
    header = repr({"descr": kind, "fortran_order": False, "shape": shape}).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + body


def saved(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def archive(path, **members):
    with zipfile.ZipFile(path, "w") as stored:
        for name, content in members.items():
            stored.writestr(
                f"{name}.npy", content if isinstance(content, bytes) else saved(content)
            )
    return path


def sparse(path, kind, **parts):
    shape = parts.pop("shape", np.array([3, 3]))
    return archive(path, format=np.array(kind), shape=shape, **parts)


def test_array_of_an_archive_longer_than_its_member(tmp_path):
    refused(archive(tmp_path / "a.npz", a=npy((HUGE, 1), "|b1")), "shorter than its header says")


def overstated(content):
    """Return an archive whose directory says that its first member takes gigabytes."""
    place = content.index(b"PK\x01\x02") + 20
    return content[:place] + (2**31 - 1).to_bytes(4, "little") + content[place + 4 :]


def test_archive_whose_member_is_longer_than_the_file(tmp_path):
    path = archive(tmp_path / "a.npz", a=np.ones((2, 2)))
    path.write_bytes(overstated(path.read_bytes()))
    refused(path, "is incomplete")


@pytest.mark.parametrize("pointers", [[0, 10**6, 0, 0], [0, 2, 1, 1], [0, 2**25, -(2**31), 1]])
@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_sparse_pointers_that_go_down(tmp_path, kind, pointers):
    n = pointers[-1]
    path = sparse(tmp_path / "a.npz", kind, data=np.ones(n), indices=np.zeros(n, np.int32),
                  indptr=np.array(pointers, np.int32))  # fmt: skip
    refused(path, "must not go down")


def test_sparse_indices_outside(tmp_path):
    path = sparse(tmp_path / "a.npz", "csc", data=np.ones(1), indices=np.array([10**6], np.int32),
                  indptr=np.array([0, 1, 1, 1], np.int32))  # fmt: skip
    refused(path, "not a readable NPZ")


@pytest.mark.parametrize("shape", [[HUGE, 3], [3, HUGE]])
def test_sparse_rows_and_columns_without_end(tmp_path, shape):
    path = sparse(tmp_path / "a.npz", "coo", data=np.ones(1), row=np.array([0]), col=np.array([0]),
                  shape=np.array(shape))  # fmt: skip
    refused(path, "malicious")


def test_check_sparse_looks_at_matrices_without_entries():
    empty = sp.csr_array((3, 3))
    empty.indptr[1] = 7
    empty.check_format(full_check=True)  # is content
    with pytest.raises(ValueError, match="must not go down"):
        check_sparse(empty)


def test_archive_that_unfolds_to_very_much(tmp_path):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, np.zeros((1, 9 << 20)))
    refused(path, "malicious")


def test_text_that_unfolds_to_very_much(tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"0," * (33 << 20), 1))
    refused(path, "malicious")


def test_market_that_unfolds_to_very_much(tmp_path):
    path = tmp_path / "a.mtx.gz"
    head = b"%%MatrixMarket matrix array real general\n4 4\n"
    path.write_bytes(gzip.compress(head + b"1\n" * (33 << 20), 1))
    refused(path, "too long")


@pytest.mark.parametrize(
    ("size", "match"),
    [
        (b"900000000 9 1\n1 1 1\n", "malicious"),
        (b"9 900000000 1\n1 1 1\n", "malicious"),
        (b"9 9 900000000\n1 1 1\n", "too short"),
    ],
)
@pytest.mark.parametrize("name", ["a.mtx", "a.mtx.gz"])
def test_market_that_announces_very_much(tmp_path, size, match, name):
    content = b"%%MatrixMarket matrix coordinate real general\n" + size
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    refused(tmp_path / name, match)


@pytest.mark.parametrize(
    "text",
    [
        b"coordinate integer general\n2 2 1\n1 1 1\0\n",
        b"coordinate integer general\n2 2 1\n1 1 1\x8b\0e-",
        b"array integer symmetric\n3 3\n3 3",
        b"array real general\n%\n0 3\n#\n3\n1\nix 0\n8\n",
        b"array real general\n2 2\n1\n2\n3\n",
        b"array real general\n2 2\n1\n2\n3\n4\n5\n",
        b"coordinate real general\n2 2 2\n1 1 5 2\n2 5\n",
        b"coordinate real general\n2 2 1\n1.5 1 5\n",
        b"coordinate real general\n2 2 1\n0 1 5\n",
        b"coordinate real symmetric\n2 3 1\n1 1 5\n",
        b"coordinate real general\n2 2\n",
        b"coordinate real general",
    ],
)
def test_damaged_markets(tmp_path, text):
    """SciPy's reader crashes on some of them."""
    (tmp_path / "a.mtx").write_bytes(b"%%MatrixMarket matrix " + text)
    refused(tmp_path / "a.mtx", "not a readable Matrix Market|too short")


@pytest.fixture
def small(monkeypatch):
    """Let small files take what large ones may, and no more."""
    monkeypatch.setattr(matrix, "_ALWAYS", 1000)
    monkeypatch.setattr(long, "_CELLS_BETWEEN_CHECKS", 100)
    monkeypatch.setattr(layout, "MOST_CELLS", 1000)


@pytest.mark.parametrize(
    ("text", "options", "match"),
    [
        ("ab,\n" * 1000, {"index_col": 0}, "short row names and few values"),
        (",".join(["12"] * 2000), {}, "line 1 has more than 1000 cells"),
        ("1,2\n" * 60 + '"' + '","12\n' * 2000, {}, "has more than 1000 cells"),
        ('"' + "\n" * 99, {}, "first row does not end in line 50"),
        (",".join(["0.5"] * 900 + ["x"]), {"header": False}, "901 columns with words would take"),
        ("".join(f"{k},{k},1\n" for k in range(1000)), {"long": True}, "cells with .* names"),
        ("a,b\n" + "1,2\n1,1\n" * 999, {"long": [0, 1]}, "long table of 1998 cells with 3 names"),
    ],
)
def test_text_that_takes_much_memory(tmp_path, small, text, options, match):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(InputError, match=match):
        read_matrix(tmp_path / "a.csv", **options)


def test_honest_tables_are_no_traps(tmp_path, small):
    """Rows of many cells, names of eight letters with three digits, ratings of a few items each."""
    (tmp_path / "a.csv").write_text((",".join(["12.5"] * 900) + "\n") * 5)
    assert read_matrix(tmp_path / "a.csv").shape == (5, 900)
    (tmp_path / "a.csv").write_text("".join(f"row-{k:04d},1,2,3\n" for k in range(2000)))
    assert read_matrix(tmp_path / "a.csv", index_col=0).shape == (2000, 3)
    cells = ((f"user-{k:04d}", f"item-{(k + j) % 99}") for k in range(500) for j in range(5))
    (tmp_path / "b.csv").write_text("".join(f"{row},{column},1.5\n" for row, column in cells))
    assert read_matrix(tmp_path / "b.csv", long=True).shape == (500, 99)


def test_entries_that_are_listed_again_and_again(tmp_path, small):
    text = "%%MatrixMarket matrix coordinate pattern symmetric\n99 99 999\n" + "2 1\n" * 999
    (tmp_path / "a.mtx").write_text(text)
    refused(tmp_path / "a.mtx", "1998 entries would take")
    text = "%%MatrixMarket matrix coordinate pattern general\n99 99 1998\n" + "1 2\n1 1\n" * 999
    (tmp_path / "a.mtx").write_text(text)
    refused(tmp_path / "a.mtx", "1998 entries would take")


def test_sparse_format_that_grows_on_its_way(tmp_path, small):
    cells = np.ones((1, 100, 100), np.int8)
    sp.save_npz(tmp_path / "a.npz", sp.bsr_array((cells, [0], [0, 1])))
    refused(tmp_path / "a.npz", "format bsr would take")
    sp.save_npz(tmp_path / "a.npz", sp.bsr_array((cells.astype(float), [0], [0, 1])))
    assert read_matrix(tmp_path / "a.npz").shape == (100, 100)


def test_parquet_that_names_everyone_the_same(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    codes = pa.array(np.zeros(200_000, np.int32))
    names = pa.DictionaryArray.from_arrays(codes, pa.array(["x" * 100_000]))  # 20 GB of text
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"name": names, "a": np.ones(200_000)}), path)
    refused(path, "rows are named 'xxx")
    with pytest.raises(InputError, match="rows are named 'xxx"):
        as_source(path).row_names()
    pq.write_table(pa.table({"name": names}), path)
    refused(path, "empty")
    pq.write_table(pa.table({"row": names, "column": names, "value": np.ones(200_000)}), path)
    assert read_matrix(path, long=True).values.toarray().tolist() == [[200_000]]
    table = read_table(path)
    assert table.columns["column"][0] is table.columns["column"][-1]


def test_parquet_with_hardly_more_than_names(tmp_path, small):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {"name": [f"{k}" for k in range(999)], "a": np.ones(999)}
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(columns), path, compression="zstd")
    refused(path, "999 row names")
    pq.write_table(pa.table({**columns, "b": np.ones(999)}), path)
    assert read_matrix(path).shape == (999, 2)


def test_long_parquet_that_unfolds_to_very_much(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    ones = pa.array(np.ones(3_000_000, np.int8))
    pq.write_table(pa.table({"row": ones, "column": ones, "value": ones}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="malicious"):
        read_matrix(tmp_path / "a.parquet", long=True)


def test_parquet_that_announces_other_rows_than_it_holds(tmp_path):
    """Places that were never written to must not pass for data."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": [1.0, 2.0, 3.0], "b": [4.0, 5.0, 6.0]}), path)
    content = path.read_bytes()
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    # The number of rows is the first zigzag 3 (field 3 of the footer, type i64) after the schema.
    footer = content[start:]
    for place in [k for k, byte in enumerate(footer[:-1]) if footer[k : k + 2] == b"\x16\x06"]:
        changed = footer[: place + 1] + b"\x0a" + footer[place + 2 :]
        path.write_bytes(content[:start] + changed)
        for read in (read_matrix, read_rows):
            try:
                found = read(path)
            except InputError:
                continue
            values = getattr(found, "values", found)
            np.testing.assert_array_equal(values, [[1, 4], [2, 5], [3, 6]])


def test_parquet_that_unfolds_to_very_much(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(9 << 20, np.int8)), pa.array([1.0]))
    pq.write_table(pa.table({"a": column.cast("float64"), "b": column.cast("float64")}),
                   tmp_path / "a.parquet")  # fmt: skip
    refused(tmp_path / "a.parquet", "malicious")


@pytest.fixture
def without_values(tmp_path):
    h5py = pytest.importorskip("h5py")
    anndata = pytest.importorskip("anndata")
    path = tmp_path / "a.h5ad"
    anndata.AnnData(np.ones((3, 2))).write_h5ad(path)
    (tmp_path / "secret").write_bytes(bytes(48))
    with h5py.File(path, "r+") as file:
        del file["X"]
        yield h5py, file, path


def test_h5ad_whose_values_are_another_file(without_values, tmp_path):
    _, file, path = without_values
    file.create_dataset("X", (3, 2), "f8", external=[(str(tmp_path / "secret"), 0, 48)])
    file["X"].attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})
    file.close()
    refused(path, "file or place")


def test_h5ad_with_a_link_to_another_file(without_values, tmp_path):
    h5py, file, path = without_values
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["X"] = np.ones((3, 2))
    file["X"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "/X")
    file.close()
    refused(path, "file or place")


def test_h5ad_with_a_view_of_another_file(without_values, tmp_path):
    h5py, file, path = without_values
    layout = h5py.VirtualLayout((3, 2), "f8")
    layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "X", (3, 2))
    file.create_virtual_dataset("X", layout)
    file.close()
    refused(path, "file or place")


def test_h5ad_that_announces_very_much(without_values):
    _, file, path = without_values
    file.create_dataset("X", (HUGE, 2), "f8", chunks=(10, 2))
    file.close()
    refused(path, "malicious")


@pytest.mark.parametrize("shape", [(2, HUGE), (HUGE, 2)])
def test_sparse_h5ad_of_rows_and_columns_without_end(without_values, shape):
    _, file, path = without_values
    for part, values in {"data": [1.0], "indices": [0], "indptr": [0, 1, 1]}.items():
        file[f"X/{part}"] = np.array(values)
    file["X"].attrs.update({"encoding-type": "csr_matrix", "shape": shape})
    file.close()
    refused(path, "malicious")


def test_h5ad_with_nothing_but_names(tmp_path):
    h5py = pytest.importorskip("h5py")
    path, n_rows = tmp_path / "a.h5ad", 400_000
    with h5py.File(path, "w") as file:
        file["X/indptr"] = np.zeros(n_rows + 1, np.int32)
        for part in ("data", "indices"):
            file[f"X/{part}"] = np.zeros(0, np.int32)
        file["X"].attrs.update({"encoding-type": "csr_matrix", "shape": [n_rows, 2]})
        file["obs/_index"] = np.arange(n_rows).astype("S6")
        file["var/_index"] = np.array([b"a", b"b"])
    refused(path, "400002 short names")


def test_zarr_of_one_chunk_that_is_not_there(tmp_path):
    pytest.importorskip("zarr")
    folder = tmp_path / "a.zarr"
    folder.mkdir()
    about = {"zarr_format": 2, "shape": [HUGE, 2], "chunks": [10**9, 2], "order": "C",
             "dtype": "<f8", "fill_value": 0, "filters": None, "compressor": None}  # fmt: skip
    (folder / ".zarray").write_text(json.dumps(about))
    with pytest.raises(InputError, match="malicious"):
        as_source(folder)


def test_zarr_of_chunks_that_hold_nothing(tmp_path):
    pytest.importorskip("zarr")
    folder = tmp_path / "a.zarr"
    folder.mkdir()
    about = {"zarr_format": 2, "shape": [8, 6], "chunks": [0, 6], "order": "C",
             "dtype": "<f8", "fill_value": 0, "filters": None, "compressor": None}  # fmt: skip
    (folder / ".zarray").write_text(json.dumps(about))
    with pytest.raises(InputError, match="empty chunks"):
        as_source(folder)


@pytest.mark.parametrize("shape", [[2**64, 6], [6, 2**64], [8_000_000, 2_000_000]])
def test_zarr_of_rows_that_are_not_there(tmp_path, shape):
    pytest.importorskip("zarr")
    folder = tmp_path / "a.zarr"
    folder.mkdir()
    about = {"zarr_format": 2, "shape": shape, "chunks": [1, 6], "order": "C",
             "dtype": "<f8", "fill_value": 0, "filters": None, "compressor": None}  # fmt: skip
    (folder / ".zarray").write_text(json.dumps(about))
    with pytest.raises(InputError, match=r"rows that need .* zarr\.open_array"):
        as_source(folder)


@pytest.mark.parametrize("unit", ["[],", "{},", '"ab",', "1234,"])
def test_model_of_many_small_values(tmp_path, small, unit):
    write_tree(tmp_path / "a.ccot", f"[{unit * 1000}0]")
    with pytest.raises(ModelFileError, match="description that would take"):
        load_model(tmp_path / "a.ccot")


def write_tree(path, values, *arrays):
    with zipfile.ZipFile(path, "w") as stored:
        head = '{"format": "ccot-model", "version": 1, "ccot": "0", "values": '
        stored.writestr("model.json", f"{head}{values}}}")
        for number, one in enumerate(arrays):
            stored.writestr(f"arrays/{number}.npy", saved(one))


def test_model_of_many_matrices_of_the_same_arrays(tmp_path):
    parts = '"parts": [{"array": 0}, {"array": 1}, {"array": 2}]'
    one = '{"sparse": "csr", "as": "array", "shape": [1, 2], ' + parts + "}"
    arrays = np.ones(9999), np.zeros(9999, np.int64), np.array([0, 9999])
    write_tree(tmp_path / "a.ccot", f"[{', '.join([one] * 9)}]", *arrays)
    with pytest.raises(ModelFileError, match="more sparse matrices than fit"):
        load_model(tmp_path / "a.ccot")


def test_model_whose_member_is_longer_than_the_file(tmp_path):
    path = write_values(tmp_path / "a.ccot", [1, np.ones(3)], {}, "0")
    path.write_bytes(overstated(path.read_bytes()))
    with pytest.raises(ModelFileError, match="more than fits"):
        load_model(path)


@pytest.mark.parametrize("end", ["os.abort()", "[0 for _ in iter(int, 1)]", "[b' ' * 10**10] * 2"])
def test_h5ad_that_hdf5_falls_over(tmp_path, monkeypatch, end):
    """The process that reads the file crashes, never ends, or wants all memory."""
    fail = f"import h5py, os\nh5py.File = lambda path, mode: {end}\nmain(*"
    monkeypatch.setattr(client, "_PROGRAM", client._PROGRAM.replace("main(*", fail, 1))
    monkeypatch.setattr(client, "_SECONDS", 2)
    (tmp_path / "a.h5ad").write_bytes(b"\x89HDF\r\n\x1a\n")
    refused(tmp_path / "a.h5ad", "not a readable h5ad")


@pytest.mark.parametrize("header", [b"{'descr': (\n", b"{" * 300, b"\xff\n"])
def test_model_whose_array_has_an_odd_header(tmp_path, header):
    path = tmp_path / "a.ccot"
    tree = {"format": "ccot-model", "version": 1, "ccot": "0", "values": {"array": 0}}
    with zipfile.ZipFile(path, "w") as stored:
        stored.writestr("model.json", json.dumps(tree))
        length = len(header).to_bytes(2, "little")
        stored.writestr("arrays/0.npy", b"\x93NUMPY\x01\x00" + length + header)
    with pytest.raises(ModelFileError, match="damaged"):
        load_model(path)


def test_zarr_array_that_would_run_code(tmp_path):
    pytest.importorskip("zarr")
    folder = tmp_path / "a.zarr"
    folder.mkdir()
    about = {"zarr_format": 2, "shape": [2, 2], "chunks": [2, 2], "order": "C", "fill_value": 0}
    pickled = {"id": "pickle", "protocol": 5}
    trap = pickle.dumps(Trap(tmp_path / "sprung"))
    for kind, filters, compressor in (
        ("|O", [pickled], None), ("<f8", [pickled], None), ("<f8", None, pickled),
    ):  # fmt: skip
        about |= {"dtype": kind, "filters": filters, "compressor": compressor}
        (folder / ".zarray").write_text(json.dumps(about))
        (folder / "0.0").write_bytes(trap)
        with pytest.raises(ValueError, match="pickle"):
            read_rows(folder)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.npy", npy((HUGE, HUGE))),
        ("a.npy", b"\x93NUMPY\x01\x00\x02\x00{("),
        ("a.npy", b""),
        ("a.npy", b"\x93NUMPY\x02\x00\xff\xff\xff\xff{}"),
        ("a.npy", npy((0, HUGE))),
        ("a.npy", npy((HUGE, 0))),
        ("a.parquet", b"PAR1"),
        ("a.parquet", b"PAR1\x15\x00\x00\x00\x00\x00\x00\x7fPAR1"),
    ],
)
def test_rows_of_damaged_files(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError):
        read_rows(tmp_path / name)


def read_rows(path):
    source = as_source(path)
    return source.read(source.parts[0])


# Pipes and devices --------------------------------------------------------------------------------


@needs_unix
@pytest.mark.parametrize("name", ["a.csv", "a.npy", "a.parquet", "a.h5ad", "a.mtx.gz"])
def test_pipes_and_devices_are_no_input(tmp_path, name):
    """Nobody writes to the pipe: whoever opens it waits for ever."""
    os.mkfifo(tmp_path / name)
    refused(tmp_path / name, "not a regular file")
    if name in ("a.npy", "a.parquet"):
        with pytest.raises(InputError, match="not a regular file"):
            as_source(tmp_path / name)
    refused(Path("/dev/zero"), "not a regular file")


@needs_unix
def test_pipe_as_a_chunk(tmp_path):
    zarr = pytest.importorskip("zarr")
    stored = zarr.create_array(str(tmp_path / "a.zarr"), shape=(4, 3), chunks=(2, 3), dtype="f8")
    stored[:2] = 1
    (tmp_path / "a.zarr" / "c" / "1").mkdir()
    os.mkfifo(tmp_path / "a.zarr" / "c" / "1" / "0")
    with pytest.raises(InputError, match="not a regular file"):
        as_source(tmp_path / "a.zarr")


# Files that unfold: the reading process takes what the declared shape needs, times two ------------


@pytest.fixture
def peaks(monkeypatch):
    """Collect the peaks of memory of all workers, beside what they take before they read."""
    if not Path("/proc/self/status").exists():
        pytest.skip("only Linux tells peaks")
    found = []
    receive = client._Process.receive

    def watched(self, n_bytes):
        answer = receive(self, n_bytes)
        status = Path(f"/proc/{self._popen.pid}/status")
        if status.exists() and "VmHWM" in (text := status.read_text()):
            found.append(1024 * int(text.split("VmHWM:")[1].split()[0]))
        return answer

    monkeypatch.setattr(client._Process, "receive", watched)
    return found


def h5ad_of(path, values, **how):
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        file.create_dataset("X", data=values, **how)
        file["obs/_index"] = np.array([f"r{k}" for k in range(len(values))]).astype("S")
        file["var/_index"] = np.array([f"c{k}" for k in range(values.shape[1])]).astype("S")
    return path


def test_compressed_h5ad_takes_little_memory(tmp_path, peaks):
    values = np.zeros((20_000, 2000), np.int8)
    values[:3000] = np.random.default_rng(0).integers(0, 100, (3000, 2000))
    path = h5ad_of(tmp_path / "a.h5ad", values, chunks=(1000, 2000), compression="gzip")
    assert path.stat().st_size < 6e6
    assert read_matrix(path).shape == values.shape
    assert max(peaks) < (150 << 20)  # Python, NumPy and HDF5 take half of it


def test_h5ad_that_declares_more_than_the_file_can_hold(tmp_path, peaks):
    values = np.zeros((20_000, 3000), np.int8)
    path = h5ad_of(tmp_path / "a.h5ad", values, chunks=(1000, 3000), compression="gzip")
    refused(path, "malicious")
    assert max(peaks) < (150 << 20)


def test_h5ad_with_one_chunk_that_unfolds_to_very_much(tmp_path, peaks):
    h5py = pytest.importorskip("h5py")
    path = h5ad_of(tmp_path / "a.h5ad", np.ones((10, 2)), chunks=(10, 2), compression="gzip")
    with h5py.File(path, "r+") as file:
        try:
            file["X"].id.write_direct_chunk((0, 0), zlib.compress(bytes(500 << 20), 9))
        except OSError as error:
            pytest.skip(f"this HDF5 does not write such a file: {error}")
    refused(path, "not a readable h5ad")
    assert max(peaks) < (64 << 20) + (100 << 20)


def test_h5ad_whose_names_are_all_the_same_long_text(tmp_path, peaks):
    """Names of variable length are references: many may be to the same text."""
    h5py = pytest.importorskip("h5py")
    path = h5ad_of(tmp_path / "a.h5ad", np.ones((3000, 2)))
    with h5py.File(path, "r+") as file:
        del file["obs/_index"]
        names = file.create_dataset("obs/_index", (3000,), h5py.string_dtype(), chunks=(3000,))
        names[:] = "y" * 91  # each is 16 bytes in the chunk: a length and a place
        names[0] = "x" * 100_000
        raw = bytearray(names.id.read_direct_chunk((0,))[1])
        names.id.write_direct_chunk((0,), bytes(raw[:16] * 3000))
    refused(path, "not a readable h5ad|names|rows are named")
    assert max(peaks) < (200 << 20)


@pytest.fixture
def small_limit(monkeypatch):
    """The size that any file may unfold to."""
    monkeypatch.setattr(matrix, "_ALWAYS", 1 << 20)
    return 1 << 20


def gzipped(path, n_bytes):
    row = b"0." + b"0" * 97 + b",1\n"
    path.write_bytes(gzip.compress(b"a,b\n" + row * (n_bytes // len(row))))
    assert 100 * path.stat().st_size < n_bytes
    return path


def test_gzipped_text_of_more_than_100_times_is_read_up_to_a_limit(tmp_path, small_limit):
    path = gzipped(tmp_path / "zeros.csv.gz", small_limit - 1000)
    assert read_matrix(path).shape == ((small_limit - 1000) // 102, 2)


def test_gzipped_text_beyond_the_limit_is_refused_in_bounded_memory(tmp_path, small_limit):
    path = gzipped(tmp_path / "zeros.csv.gz", 2 * small_limit)
    tracemalloc.start()
    try:
        with pytest.raises(
            InputError, match=r"more than 1\.05 MB, .* may be malicious: .* unpack it"
        ):
            read_matrix(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # It is counted before any of it is kept; Python 3.14 reads by larger buffers than 3.11.
    assert peak < small_limit


def test_text_of_less_than_100_times_has_a_limit_too(tmp_path, small_limit, monkeypatch):
    monkeypatch.setattr(matrix, "_TEXT", 2 * small_limit)
    rows = np.random.default_rng(0).poisson(0.05, (6000, 200))
    path = tmp_path / "counts.csv.gz"
    for n_rows, message in ((2000, ""), (6000, r"more than 2\.1 MB, .* unpack it first")):
        text = "\n".join(",".join(map(str, row)) for row in rows[:n_rows].tolist())
        path.write_bytes(gzip.compress(text.encode()))
        assert 10 < len(text) / path.stat().st_size < 30
        if message:
            refused(path, message)
        else:
            assert read_matrix(path, header=False).shape == (n_rows, 200)


def test_excel_files_have_the_limit_of_text(tmp_path, small_limit, monkeypatch):
    openpyxl = pytest.importorskip("openpyxl")
    monkeypatch.setattr(matrix, "_TEXT", small_limit)
    book = openpyxl.Workbook()
    for _ in range(3000):
        book.active.append([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15])
    book.save(tmp_path / "a.xlsx")
    refused(tmp_path / "a.xlsx", "bytes, but needs .* may be malicious")


def test_records_that_share_no_key_are_refused_before_they_are_a_table(tmp_path, small_limit):
    path = tmp_path / "a.json"
    path.write_text("\n".join(f'{{"k{n}": 1}}' for n in range(2000)))
    refused(path, "a table of 2000 records and 2000 keys would take 3.2e\\+07 bytes")


@pytest.mark.parametrize("tail", ["", " " * 50, "\n" * 50])
def test_many_small_records_are_read_once(tail):
    class Counted(io.StringIO):
        n_reads = 0

        def read(self, size=-1):
            self.n_reads += 1
            return super().read(size)

    text = Counted("[" + ",".join(f'{{"a": {n}}}' for n in range(5000)) + "]" + tail)
    assert [record["a"] for record in _records(text, "a.json")] == list(range(5000))
    # What is left is not copied again for every record.
    assert text.n_reads <= 3


def test_halves_of_characters_are_refused_where_they_are_read(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('[{"a": 1, "b": 2}, {"a": 3, "b\\ud800": 4}]')
    refused(path, "record 2 is not JSON .*surrogates")
    path.write_text('[{"a": 1, "\\ud83d\\ude00": 2}, {"a": 3, "\\ud83d\\ude00": 4}]')
    assert read_matrix(path).column_names == ("a", "\U0001f600")


def test_database_of_which_sqlite_says_that_memory_is_lacking(tmp_path):
    """It has 1024 bytes, and SQLite takes no memory for it."""
    head = bytes.fromhex(
        "020001010040202000000002000000020000000000a30000000000010000000400000000000000000000000100"
        "0000000000000000000000000000000000000000000000000000000000000000000002002e63010d0000000101"
        "c30001c3"
    )
    cell = bytes.fromhex(
        "320000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
        "000000000000000000000000000000000000000000000000000400000000000000000000000000000000000000"
        "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
        "00ffffffffffffffff7461626c65747402435245415445205441424c45207420286e616d6520544558542c2078"
        "205245414c09207920494e544547455229"
    )
    path = tmp_path / "a.sqlite"
    page = (b"SQLite format 3\0" + head).ljust(315, b"\0") + cell
    path.write_bytes(page.ljust(1024, b"\0"))
    # SQLite 3.40 says that memory is lacking, later ones say what is wrong.
    refused(path, "not a readable SQLite file .*(MemoryError|image is malformed)")
    assert list(tmp_path.iterdir()) == [path]


def test_database_whose_rows_need_memory_that_sqlite_does_not_take(tmp_path):
    packed = (
        b"c-jjN^vNtqRY=P(%1ta$FlJz4ILOH0prF9O0AxZi3@`#Q3mTsgU}DfqX5<AaW<1OQM5F@&R4yaKcQgf$G4=c"
        b">VCMh-q`QL*Ep!6bjBMik{EX=(iAg!BB_&MGL9UJ=t_mTJPCl**B?=mOiD{_{A+8Z2ItmpEKsg^Bg-QiazYt"
        b"e<*C0(^h6M~vj4v1%`JTMMZu~{kT%$;eVl@Va`KTg$C=ZYSs7aHJiRC{8)Yr4KCffgirc40wPcJC"
    )
    path = tmp_path / "a.sqlite"
    path.write_bytes(zlib.decompress(base64.b85decode(packed)))
    refused(path, "not a readable SQLite file")


@pytest.mark.parametrize("version", [1, 2])
def test_nothing_is_written_beside_a_database(tmp_path, version):
    path = tmp_path / "a.sqlite"
    with closing(sqlite3.connect(path)) as base:
        base.execute("CREATE TABLE t (a, b)")
        base.executemany("INSERT INTO t VALUES (?, ?)", [(1, 2), (3, 4)])
        base.commit()
    content = bytearray(path.read_bytes())
    content[18:20] = version, version  # 2: changes are kept in a file beside it
    path.write_bytes(content)
    assert read_matrix(path).values.tolist() == [[1, 2], [3, 4]]
    assert list(tmp_path.iterdir()) == [path]


def test_excel_file_of_names_for_names(tmp_path):
    pytest.importorskip("openpyxl")
    workbook(text_rows, entities)(tmp_path / "a.xlsx", 10**6)
    tracemalloc.start()
    refused(tmp_path / "a.xlsx", "not a readable Excel file")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 << 20


def sheet_with(path, text):
    """Write a small sheet that holds some XML after its rows."""
    book = pytest.importorskip("openpyxl").Workbook()
    book.active.append([1, 2])
    book.active.append([3, 4])
    book.save(path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content.replace(b"</sheetData>", text + b"</sheetData>"))


def test_excel_file_of_many_beginnings_of_formulas(tmp_path):
    sheet_with(tmp_path / "a.xlsx", b"<!--" + b"<f" * 200_000 + b"-->")
    began = sum(os.times()[:4])  # of the process that reads, too
    assert read_matrix(tmp_path / "a.xlsx").shape == (2, 2)
    # It was twenty seconds, and four times as many for twice as much.
    assert sum(os.times()[:4]) - began < 5


@needs_proc
@pytest.mark.parametrize(
    "text",
    [b"<row>" + b"<c/>" * 1_000_000 + b"</row>", b"<x/>" * 2_000_000],
    ids=["cells of one row", "what no program knows"],
)
def test_excel_file_of_elements_without_end(tmp_path, text):
    sheet_with(tmp_path / "a.xlsx", text)
    refused(tmp_path / "a.xlsx", "not a readable Excel file")


def test_excel_file_of_a_row_far_beyond_the_last(tmp_path):
    row = b'<row r="99999999999"><c r="A99999999999"><v>1</v></c></row>'
    sheet_with(tmp_path / "a.xlsx", row)
    refused(tmp_path / "a.xlsx", "more rows than a sheet can have")


def test_feather_file_that_arrow_falls_over(tmp_path, monkeypatch):
    frame = pytest.importorskip("pandas").DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    frame.to_feather(tmp_path / "a.feather")
    assert read_matrix(tmp_path / "a.feather").values.tolist() == [[1, 3], [2, 4]]
    fail = "import os; os.abort(); main(*"
    monkeypatch.setattr(client, "_PROGRAM", client._PROGRAM.replace("main(*", fail, 1))
    with pytest.raises(InputError, match=r"not a readable Feather file .* crashed"):
        read_matrix(tmp_path / "a.feather")


def test_feather_file_that_unfolds_to_far_more_than_its_size(tmp_path, small_limit):
    pa, feather = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.feather")
    table = pa.table({"a": np.zeros(1 << 20), "b": np.zeros(1 << 20)})
    feather.write_feather(table, str(tmp_path / "zeros.feather"), compression="zstd")
    with pytest.raises(InputError, match="malicious"):
        read_matrix(tmp_path / "zeros.feather")
