"""Zarr arrays are read by a process of their own, whatever their chunks do to it."""

import json
import multiprocessing
import pickle
import shutil
import time
from pathlib import Path

import numpy as np
import pytest

from ccot import CCOT
from ccot.io import InputError, binary
from ccot.io.binary import ZarrFolder
from ccot.io.isolated import client
from ccot.sources import as_source
from tests.conftest import needs_proc, needs_unix

numcodecs = pytest.importorskip("numcodecs")
zarr = pytest.importorskip("zarr")

MATRIX = np.random.default_rng(0).normal(size=(20, 6))


@pytest.fixture
def folder(tmp_path):
    stored = zarr.create_array(
        str(tmp_path / "a.zarr"), shape=MATRIX.shape, chunks=(8, 4), dtype="f8"
    )
    stored[:] = MATRIX
    return tmp_path / "a.zarr"


def read_all(path):
    source = as_source(path)
    return source.rows(np.arange(source.shape[0]))


def running(stored):
    return Path(f"/proc/{stored._reader._process._popen.pid}").exists()


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "u1", "bool", ">f8", "f2"])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_numbers_of_every_type(tmp_path, dtype, zarr_format):
    path = str(tmp_path / "a.zarr")
    values = (MATRIX > 0).astype(dtype)
    stored = zarr.create_array(
        path, shape=values.shape, chunks=(7, 6), dtype=dtype, zarr_format=zarr_format
    )
    stored[:] = values
    np.testing.assert_array_equal(read_all(path), values)


def test_chunks_in_shards(tmp_path):
    path = str(tmp_path / "a.zarr")
    stored = zarr.create_array(path, shape=(20, 6), chunks=(2, 3), shards=(10, 6), dtype="f8")
    stored[:] = MATRIX
    np.testing.assert_array_equal(read_all(path), MATRIX)


def test_a_fit_of_the_folder_is_that_of_the_array(folder):
    def labels(X):
        return CCOT(2, 2, n_samplings=3, random_state=0).fit(X).row_labels_

    np.testing.assert_array_equal(labels(folder), labels(zarr.open(str(folder), mode="r")))


@needs_proc
@pytest.mark.parametrize("codec", ["zstd", "gzip", "blosc"])
def test_chunk_that_unfolds_to_far_more_than_it_says(folder, codec):
    about = {"zarr_format": 2, "shape": [4, 3], "chunks": [4, 3], "order": "C", "fill_value": 0,
             "dtype": "<f8", "filters": None, "compressor": {"id": codec}}  # fmt: skip
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / ".zarray").write_text(json.dumps(about))
    (folder / "0.0").write_bytes(numcodecs.get_codec({"id": codec}).encode(bytes(300 << 20)))
    stored = ZarrFolder(folder)
    with pytest.raises(InputError, match="not a readable Zarr"):
        stored[0:4]
    peak = Path(f"/proc/{stored._reader._process._popen.pid}/status").read_text().split("VmHWM:")[1]
    assert int(peak.split()[0]) < 250 << 10


@pytest.mark.parametrize("chunk", [b"", b"xx", bytes(range(50))], ids=["no", "short", "other"])
def test_damaged_chunk_is_named_and_does_no_lasting_harm(folder, chunk):
    whole = (folder / "c/0/0").read_bytes()
    (folder / "c/0/0").write_bytes(chunk)
    stored = ZarrFolder(folder)
    with pytest.raises(InputError, match=r"a\.zarr is not a readable Zarr array .* again"):
        stored[0:8]
    np.testing.assert_array_equal(stored[8:16], MATRIX[8:16])
    (folder / "c/0/0").write_bytes(whole)
    np.testing.assert_array_equal(stored[0:8], MATRIX[:8])


@pytest.mark.parametrize("about", [b"", b"null", b"[1]", b"{", b"\xff", b'{"zarr_format": 9}'])
def test_damaged_description(folder, about):
    (folder / "zarr.json").write_bytes(about)
    with pytest.raises(InputError, match=r"not a readable Zarr array .* again"):
        as_source(folder)


def test_values_that_are_no_numbers(tmp_path):
    path = str(tmp_path / "a.zarr")
    zarr.create_array(path, shape=(3, 2), chunks=(3, 2), dtype="complex128")
    with pytest.raises(ValueError, match="complex128 where numbers are expected"):
        as_source(path)


FAILING = """
import ccot.io.isolated.zarr as reader, os
read = reader.open_file.read
def fail(self, first, last):
    first == 0 and ({end})
    yield from read(self, first, last)
reader.open_file.read = fail
main(*"""


@pytest.mark.parametrize("end", ["os.abort()", "all(n == 0 for n in iter(int, 1))"])
def test_worker_that_crashes_or_never_ends(folder, monkeypatch, end):
    """The next question starts another one."""
    program = client._PROGRAM.replace("main(*", FAILING.format(end=end), 1)
    monkeypatch.setattr(client, "_PROGRAM", program)
    monkeypatch.setattr(client, "_SECONDS", 2)
    stored = ZarrFolder(folder)
    with pytest.raises(InputError, match="reader of zarr files crashed"):
        stored[0:8]
    np.testing.assert_array_equal(stored[8:16], MATRIX[8:16])


def test_worker_that_never_answers(folder, monkeypatch):
    monkeypatch.setattr(client, "_PROGRAM", "import time; time.sleep(600)")
    monkeypatch.setattr(client, "_PATIENCE", 0.05)
    began = time.perf_counter()
    with pytest.raises(InputError, match="crashed"):
        ZarrFolder(folder)
    assert time.perf_counter() - began < 30


@needs_proc
def test_interruption_leaves_no_half_answer(folder, monkeypatch):
    stored = ZarrFolder(folder)
    monkeypatch.setattr(client.json, "loads", lambda text: (_ for _ in ()).throw(
        KeyboardInterrupt))  # fmt: skip
    with pytest.raises(KeyboardInterrupt):
        stored[0:8]
    assert not running(stored)
    monkeypatch.undo()
    np.testing.assert_array_equal(stored[8:16], MATRIX[8:16])


@needs_proc
def test_the_process_ends_with_the_array(folder):
    stored = ZarrFolder(folder)
    pid = stored._reader._process._popen.pid
    assert Path(f"/proc/{pid}").exists()
    del stored
    assert not Path(f"/proc/{pid}").exists()


def test_copies_read_on_their_own(folder):
    stored = ZarrFolder(folder)
    copy = pickle.loads(pickle.dumps(stored))
    np.testing.assert_array_equal(copy[3:5], stored[3:5])
    assert copy._reader._process._popen.pid != stored._reader._process._popen.pid


@needs_unix
def test_a_forked_process_reads_on_its_own(folder):
    stored = ZarrFolder(folder)
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(
        target=lambda: sender.send((stored[3:5], stored._reader._process._popen.pid))
    )
    child.start()
    assert receiver.poll(60)
    rows, pid = receiver.recv()
    np.testing.assert_array_equal(rows, MATRIX[3:5])
    assert pid != stored._reader._process._popen.pid
    child.join()
    assert child.exitcode == 0
    np.testing.assert_array_equal(stored[5:9], MATRIX[5:9])


def test_without_zarr(folder, monkeypatch):
    monkeypatch.setattr(binary, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install 'ccot\[zarr\]'"):
        as_source(folder)
