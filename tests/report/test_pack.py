"""What the page carries: nothing is lost that is said to be kept, and little is carried twice."""

import base64
import json
import zlib

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ccot.report.pack import (
    _rounded,
    pack_array,
    pack_integers,
    pack_matrix,
    pack_text,
    spread,
)
from tests.report.unpack import unpack_array


def unpack_matrix(packed):
    """The matrix that travels, dense; the slow obvious twin of decode.js."""
    values = unpack_array(packed["values"]).astype(np.float64)
    if "table" in packed:
        table = [np.nan if value is None else value for value in packed["table"]]
        values = np.array(table)[values.astype(int)]
    if "gaps" not in packed:
        return values.reshape(packed["shape"])
    dense = np.zeros(packed["shape"])
    gaps, at = unpack_array(packed["gaps"]).astype(int), 0
    for row, length in enumerate(unpack_array(packed["lengths"]).astype(int)):
        columns = np.cumsum(gaps[at : at + length])
        dense[row, columns] = values[at : at + length]
        at += length
    return dense


def pack_whole(matrix, **options):
    return pack_matrix(
        matrix, np.zeros(matrix.shape[0], int), np.zeros(matrix.shape[1], int), **options
    )


@given(
    hnp.arrays(
        st.sampled_from([np.uint8, np.uint16, np.uint32, np.float32, np.float64]),
        st.integers(0, 40),
    )
)
def test_arrays_come_back_bit_for_bit(values):
    back = unpack_array(pack_array(values))
    assert back.dtype == values.dtype
    assert back.tobytes() == values.tobytes()


@pytest.mark.parametrize(("largest", "name"), [(0, "uint8"), (256, "uint16"), (70_000, "uint32")])
def test_integers_take_the_smallest_type(largest, name):
    assert pack_integers(np.array([0, largest]))["type"] == name


@given(st.lists(st.text()))
def test_text_comes_back(texts):
    assert json.loads(zlib.decompress(base64.b64decode(pack_text(texts)))) == texts


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("density", [0.02, 0.9])
def test_few_values_are_exact(sparse, density):
    rng = np.random.default_rng(0)
    matrix = np.where(rng.random((70, 90)) < density, rng.integers(1, 6, (70, 90)) / 3, 0.0)
    packed = pack_whole(sp.csc_array(matrix) if sparse else matrix)
    assert packed["exact"]
    assert "table" in packed
    np.testing.assert_array_equal(unpack_matrix(packed), matrix)


def test_missing_entries_stay_missing():
    matrix = np.array([[1.0, np.nan, 3.0], [np.nan, 2.0, 1.0]])
    packed = pack_whole(matrix)
    json.dumps(packed, allow_nan=False)
    np.testing.assert_array_equal(unpack_matrix(packed), matrix)


def test_empty_rows_and_explicit_zeros():
    matrix = sp.csr_array((np.array([0.0, 2.0, 5.0]), ([0, 2, 2], [1, 0, 3])), shape=(4, 4))
    packed = pack_whole(matrix)
    np.testing.assert_array_equal(unpack_array(packed["lengths"]), [0, 0, 2, 0])
    np.testing.assert_array_equal(unpack_matrix(packed), matrix.toarray())


def test_continuous_values_are_single_precision():
    matrix = np.random.default_rng(0).normal(size=(60, 50))
    packed = pack_whole(matrix)
    assert packed["exact"]
    assert packed["signed"]
    np.testing.assert_array_equal(unpack_matrix(packed), matrix.astype(np.float32))


def test_noise_around_zero_is_no_sign():
    amounts = np.repeat([0.0, 5.0], 500).reshape(100, 10)
    noise = np.random.default_rng(0).normal(scale=0.05, size=amounts.shape)
    assert not pack_whole(amounts + noise)["signed"]
    assert pack_whole(amounts - 3)["signed"]


def test_large_matrices_keep_four_digits(monkeypatch):
    monkeypatch.setattr("ccot.report.pack.MAX_EXACT", 1000)
    matrix = np.random.default_rng(0).lognormal(sigma=8, size=(60, 50))
    packed = pack_whole(matrix)
    assert not packed["exact"]
    np.testing.assert_allclose(unpack_matrix(packed), matrix, rtol=2.0**-12)
    assert len(packed["values"]["bytes"]) < 0.8 * len(pack_array(matrix.astype("f4"))["bytes"])


def test_the_worst_matrix_of_a_ratings_table_size_is_below_8_mb():
    noise = np.random.default_rng(0).normal(size=(943, 1682))
    assert len(json.dumps(pack_whole(noise))) < 7e6


def test_a_matrix_too_large_travels_in_part():
    rng = np.random.default_rng(0)
    matrix, rows = rng.normal(size=(400, 100)), np.repeat([0, 1, 2], [380, 19, 1])
    packed = pack_matrix(matrix, rows, np.zeros(100, int), max_entries=20_000)
    kept = unpack_array(packed["rows"])
    assert packed["columns"] is None
    assert packed["shape"] == [len(kept), 100]
    assert len(kept) * 100 <= 20_000 + 100 * len(np.unique(rows))
    assert set(rows[kept]) == {0, 1, 2}
    np.testing.assert_array_equal(unpack_matrix(packed), matrix[kept].astype(np.float32))


def test_a_sparse_matrix_too_large_travels_in_part():
    matrix = sp.random_array(
        (500, 600), density=0.1, random_state=np.random.default_rng(0), format="csr"
    )
    packed = pack_whole(matrix, max_entries=5000)
    rows, columns = unpack_array(packed["rows"]), unpack_array(packed["columns"])
    assert 4000 < len(unpack_array(packed["values"])) < 6000
    np.testing.assert_allclose(
        unpack_matrix(packed), matrix.toarray()[np.ix_(rows, columns)], rtol=1e-6
    )


@given(st.lists(st.integers(0, 4), min_size=1, max_size=60), st.integers(1, 60))
def test_spread_is_even_over_clusters(labels, keep):
    labels = np.array(labels)
    chosen = spread(labels, min(keep, len(labels)))
    assert (np.diff(chosen) > 0).all()
    shares = np.bincount(labels) * min(keep, len(labels)) / len(labels)
    np.testing.assert_array_less(
        np.abs(np.bincount(labels[chosen], minlength=len(shares)) - shares), 1
    )


def test_arrays_are_deflated():
    packed = pack_array(np.arange(1000, dtype=np.uint16))
    assert packed["type"] == "uint16"
    assert len(packed["bytes"]) < 500


def test_spread_takes_some_of_every_cluster():
    chosen = spread(np.array([0, 0, 0, 0, 0, 0, 1, 1, 1, 2]), 5)
    assert chosen.tolist() == [0, 2, 4, 6, 7, 9]


def test_rounding_goes_to_the_nearest():
    assert float(_rounded(np.array([1 / 3]))[0]).hex() == "0x1.5560000000000p-2"
