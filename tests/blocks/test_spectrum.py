from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from ccot.blocks import spectrum as spectra
from ccot.blocks.spectrum import leading_vectors, low_rank, noise_level, rank_to_look_at, shrink
from ccot.runtime import host_csr
from ccot.runtime.backends import NUMPY

SHAPES = [(200, 100), (100, 200), (150, 150)]


def spectrum(X):
    return np.linalg.svd(X, compute_uv=False)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("sigma", [1e-3, 1.0, 50.0])
def test_noise_is_estimated(shape, sigma):
    rng = np.random.default_rng(0)
    noise = sigma * rng.normal(size=shape)
    spiked = noise + 20 * sigma * np.outer(rng.normal(size=shape[0]), rng.normal(size=shape[1]))
    for X in (noise, spiked):
        assert noise_level(X, spectrum(X)) == pytest.approx(sigma, rel=0.05)
        # From the leading values alone, by what they leave.
        assert noise_level(X, spectrum(X)[:10]) == pytest.approx(sigma, rel=0.2)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_pure_noise_is_shrunk_to_nearly_nothing(shape):
    X = np.random.default_rng(1).normal(size=shape)
    shrunk = shrink(spectrum(X), shape, 1.05)
    assert (shrunk == 0).all()
    assert np.linalg.norm(low_rank(X)) < 0.3 * np.linalg.norm(X)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_signal_is_kept(shape):
    rng = np.random.default_rng(2)
    signal = np.outer(rng.normal(size=shape[0]), rng.normal(size=shape[1]))
    X = signal + 0.1 * rng.normal(size=shape)
    shrunk = shrink(spectrum(X), shape, 0.105)
    assert shrunk[0] == pytest.approx(np.linalg.norm(signal), rel=0.02)
    assert (shrunk[1:] == 0).all()
    error, raw = np.linalg.norm(low_rank(X) - signal), np.linalg.norm(X - signal)
    assert error < 0.5 * raw


def test_shrinkage_follows_its_formula():
    """Gavish and Donoho, equation for the Frobenius loss, on a square matrix: sqrt(y^2 - 4)."""
    noise, size = 2.0, 100
    values = np.array([5.0, 3.0, 2.1, 1.9]) * noise * np.sqrt(size)
    expected = np.sqrt(np.maximum(np.array([5.0, 3.0, 2.1, 1.9]) ** 2 - 4, 0))
    np.testing.assert_allclose(shrink(values, (size, size), noise), expected * noise * 10)
    np.testing.assert_array_equal(shrink(values, (size, size), 0.0), values)


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_noise_that_is_rounding_leaves_singular_values_as_they_are(unit):
    """Of 10,000 rows: the share of the largest one is 100 times the level over it."""
    values = unit * np.array([1.0, 5e-13])
    rounding, noise = 5e-16 * unit, 1e-14 * unit
    np.testing.assert_array_equal(shrink(values, (10_000, 2), rounding), values)
    np.testing.assert_allclose(shrink(values, (10_000, 2), noise), [unit, 0])
    np.testing.assert_array_equal(shrink(np.zeros(2), (3, 2), 0.0), np.zeros(2))


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_leading_vectors_rebuild_matrices_of_low_rank(make):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(500, 3)) @ rng.normal(size=(3, 450))
    left, values, right = leading_vectors(make(X), 5, np.random.default_rng(0))
    assert left.shape == (500, 5)
    assert right.shape == (450, 5)
    assert (np.diff(values) <= 0).all()
    np.testing.assert_allclose((left * values) @ right.T, X, atol=1e-8)


def test_rank_is_at_most_that_of_the_shape():
    left, values, right = leading_vectors(np.ones((3, 8)), 20, np.random.default_rng(0))
    assert (left.shape, values.shape, right.shape) == ((3, 3), (3,), (8, 3))


def test_small_dense_matrices_are_decomposed_in_full(monkeypatch):
    monkeypatch.setattr(spectra, "_FULL_SIZE", 40)
    X = np.random.default_rng(0).normal(size=(60, 40))
    rng, untouched = np.random.default_rng(0), np.random.default_rng(0)
    left, values, right = leading_vectors(X, 3, rng)
    whole = np.linalg.svd(X, full_matrices=False)
    np.testing.assert_array_equal(left, whole[0][:, :3])
    np.testing.assert_array_equal(values, whole[1][:3])
    np.testing.assert_array_equal(right, whole[2][:3].T)
    assert rng.integers(2**31) == untouched.integers(2**31)


@pytest.mark.parametrize("shape", [(60, 40), (40, 60)], ids=str)
def test_vectors_are_the_same_on_several_threads(shape, monkeypatch):
    # Products of more than a few entries are shared out.
    monkeypatch.setattr(host_csr, "_ENTRIES", 200)
    X = sp.csr_array(np.random.default_rng(0).poisson(0.5, shape).astype(float))
    found = leading_vectors(X, 5, np.random.default_rng(0))
    threads = replace(NUMPY, n_jobs=3)
    again = leading_vectors(X, 5, np.random.default_rng(0), threads)
    for one, other in zip(found, again, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("shape", [(60, 40), (40, 60)], ids=str)
def test_a_search_finds_the_vectors_of_the_full_decomposition(shape, monkeypatch):
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(shape[0], 9)), rng.normal(size=(9, shape[1]))
    X = factors[0] @ np.diag(2.0 ** np.arange(9)) @ factors[1] + 0.01 * rng.normal(size=shape)
    left, values, right = np.linalg.svd(X)
    monkeypatch.setattr(spectra, "_FULL_SIZE", 39)
    found = leading_vectors(X, 9, np.random.default_rng(0))
    np.testing.assert_allclose(found[1], values[:9], rtol=1e-10)
    np.testing.assert_allclose(np.abs(found[0]), np.abs(left[:, :9]), atol=1e-7)
    np.testing.assert_allclose(np.abs(found[2]), np.abs(right[:9].T), atol=1e-7)
    np.testing.assert_allclose((found[0] * found[1]) @ found[2].T, X, atol=0.1)


def test_a_search_is_seeded(monkeypatch):
    monkeypatch.setattr(spectra, "_FULL_SIZE", 9)
    X = np.random.default_rng(0).normal(size=(30, 25))
    one, same, other = (leading_vectors(X, 3, np.random.default_rng(s))[0] for s in (0, 0, 1))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
    X += np.outer(np.arange(30), np.arange(25))
    assert np.linalg.norm(low_rank(X)) > 1
    np.testing.assert_array_equal(low_rank(X), low_rank(X))


def test_all_values_are_looked_at_where_they_come_anyway():
    assert rank_to_look_at((400, 9000)) == 400
    assert rank_to_look_at((9000, 7)) == 7
    assert rank_to_look_at((401, 500)) == 40


def test_shrinkage_of_rectangles_follows_its_formula():
    noise, scaled = 2.0, np.array([5.0, 1.6, 1.51, 1.49, 0.3])
    values = scaled * noise * 20
    edge = np.array([True, True, True, False, False])
    inner = np.maximum((scaled**2 - 1.25) ** 2 - 1, 0)
    expected = np.where(edge, np.sqrt(inner) / scaled, 0) * noise * 20
    for shape in ((100, 400), (400, 100)):
        np.testing.assert_allclose(shrink(values, shape, noise), expected)


def test_noise_is_what_the_leading_values_leave():
    X = np.random.default_rng(0).normal(size=(30, 20))
    rest = spectrum(X)[5:]
    assert noise_level(X, spectrum(X)[:5]) == pytest.approx(np.sqrt(np.sum(rest**2) / (30 * 15)))
    assert noise_level(np.zeros((9, 8)), np.ones(3)) == 0


@pytest.mark.parametrize("least", [1, 1e-3, 1e-6])
def test_many_rows_are_made_orthogonal_by_products(monkeypatch, least):
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(203, 6)) * np.geomspace(1, least, 6)
    whole = spectra._factors(matrix, NUMPY)
    for one, other in zip(whole, np.linalg.qr(matrix), strict=True):
        np.testing.assert_array_equal(one, other)
    monkeypatch.setattr(spectra, "_MANY_ROWS", 203)
    # Parts of 25 rows.
    in_parts = replace(NUMPY, chunk_bytes=300)
    basis, triangle = spectra._factors(matrix, in_parts)
    np.testing.assert_allclose(basis.T @ basis, np.eye(6), atol=1e-13)
    np.testing.assert_allclose(basis @ triangle, matrix, atol=1e-13)
    np.testing.assert_allclose(np.abs(triangle), np.abs(whole[1]), atol=1e-12)
    assert not np.array_equal(basis, whole[0])
    again = spectra._factors(matrix, replace(in_parts, n_jobs=3))
    for one, other in zip(again, (basis, triangle), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_columns_that_hardly_differ_are_not_made_orthogonal_by_products(monkeypatch, dtype):
    rng = np.random.default_rng(1)
    matrix = rng.normal(size=(203, 6)).astype(dtype)
    matrix[:, 5] = matrix[:, 4] * (1 + np.finfo(dtype).eps)
    whole = spectra._factors(matrix, NUMPY)
    monkeypatch.setattr(spectra, "_MANY_ROWS", 20)
    for columns in (matrix, np.zeros_like(matrix)):
        with pytest.raises(np.linalg.LinAlgError):
            spectra._factors_by_products(columns, NUMPY)
    for one, other in zip(spectra._factors(matrix, NUMPY), whole, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [1e30, 1e200])
def test_columns_whose_squares_are_too_large_are_made_orthogonal_without_a_warning(
    monkeypatch, size
):
    matrix = np.random.default_rng(1).normal(size=(203, 6)) * size
    matrix = matrix.astype(np.float32 if size < 1e38 else np.float64)
    with pytest.raises(np.linalg.LinAlgError):
        spectra._factors_by_products(matrix, NUMPY)
    monkeypatch.setattr(spectra, "_MANY_ROWS", 20)
    basis, _ = spectra._factors(matrix, NUMPY)
    np.testing.assert_allclose(basis.T @ basis, np.eye(6), atol=1e-6)
