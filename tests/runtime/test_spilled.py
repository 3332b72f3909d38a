import io
import os
import pickle

import numpy as np
import pytest

from ccot.runtime import spilled as ledger
from ccot.runtime.spilled import SpilledArray


def fill(pieces, dtype="float32"):
    book = SpilledArray(dtype)
    for piece in pieces:
        book.append(piece)
    return book.close()


@pytest.mark.parametrize("limit", [0, 100, 10**6])
def test_pieces_are_put_together_in_memory_or_in_a_file(monkeypatch, limit):
    monkeypatch.setattr(ledger, "MEMORY_BYTES", limit)
    pieces = [np.arange(start, start + 10.0)[::-1] for start in (0, 10, 20, 30)]
    whole = fill(pieces)
    np.testing.assert_array_equal(whole, np.concatenate(pieces))
    assert isinstance(whole, np.memmap) == (limit < 160)
    assert whole.dtype == np.float32
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(whole)), whole)
    whole[3] = -1
    assert whole[3] == -1


def test_nothing_is_an_empty_array():
    assert fill([]).shape == (0,)
    assert fill([np.empty(0)], "int32").dtype == np.int32


def test_files_leave_with_their_arrays(monkeypatch, tmp_path):
    monkeypatch.setattr(ledger, "MEMORY_BYTES", 0)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    whole = fill([np.ones(10)])
    assert whole.sum() == 10
    assert os.listdir(tmp_path) == []


def test_a_full_disk_is_told_with_a_way_out(monkeypatch):
    class Full(io.BytesIO):
        def write(self, data):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(ledger, "MEMORY_BYTES", 1)
    monkeypatch.setattr("tempfile.TemporaryFile", lambda **how: Full())
    with pytest.raises(OSError, match=r"No space left on device.*set TMPDIR"):
        fill([np.ones(10)])
