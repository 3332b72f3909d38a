import numpy as np
import pytest
import scipy.sparse as sp

from ccot.blocks.spectrum import leading_vectors, low_rank, noise_level, shrink

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
