import array_api_compat.torch
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from ccot.scalings.costs import CrossedCosts, square_costs, typical_cost
from ccot.scalings.sampling import cross
from ccot.scalings.steps import join
from tests.scalings.full_costs import full_costs


def make_squares(n_draws=3, size=7, seed=0):
    return np.random.default_rng(seed).normal(2, 3, size=(n_draws, size, size))


def test_costs_are_distances_between_rows_and_columns():
    squares = make_squares()
    slow = np.array([cdist(square, square.T, "sqeuclidean") for square in squares])
    np.testing.assert_allclose(full_costs(square_costs(squares)), slow, rtol=1e-12, atol=1e-12)


def test_parts_are_norms_and_products():
    squares = make_squares()
    costs = square_costs(squares)
    np.testing.assert_allclose(costs.row_norms, (squares**2).sum(axis=2))
    np.testing.assert_allclose(costs.column_norms, (squares**2).sum(axis=1))
    np.testing.assert_allclose(costs.cross, squares @ squares)


def test_single_precision_is_for_products_only():
    squares = make_squares(size=40)
    costs = square_costs(squares, np.float32)
    assert costs.cross.dtype == np.float32
    assert costs.row_norms.dtype == costs.column_norms.dtype == np.float64
    np.testing.assert_allclose(costs.row_norms, (squares**2).sum(axis=2), rtol=1e-14)
    np.testing.assert_allclose(costs.cross, squares @ squares, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("dtype", [None, np.float32])
@pytest.mark.parametrize("make", [sp.csr_array, sp.csc_array, sp.csr_matrix])
def test_sparse_squares_cost_what_dense_ones_do(make, dtype):
    square = np.where(np.random.default_rng(1).uniform(size=(9, 9)) < 0.3, 2.5, 0.0)
    sparse, dense = square_costs(make(square), dtype), square_costs(square[None], dtype)
    for name in ("row_norms", "column_norms", "cross"):
        given, expected = getattr(sparse, name), getattr(dense, name)
        assert given.dtype == expected.dtype
        np.testing.assert_allclose(given, expected)


def test_costs_are_never_negative():
    # All rows and columns are one point, far from the origin: only rounding is left.
    squares = np.full((1, 30, 30), 1e8 / 3)
    assert full_costs(square_costs(squares)).min() >= 0


def test_torch_gives_the_same_costs():
    squares = make_squares()
    costs = square_costs(array_api_compat.torch.asarray(squares))
    np.testing.assert_allclose(
        np.asarray(full_costs(costs)), full_costs(square_costs(squares)), atol=1e-12
    )


def test_typical_cost_is_the_median_and_never_zero():
    squares = make_squares()
    assert typical_cost(full_costs(square_costs(squares))) == np.median(
        full_costs(square_costs(squares))
    )
    mostly_zero = np.zeros((1, 5, 5))
    mostly_zero[0, 0, 0] = 2.0
    costs = square_costs(mostly_zero)
    assert np.median(full_costs(costs)) == 0
    assert typical_cost(full_costs(costs)) == full_costs(costs).mean() > 0
    assert typical_cost(full_costs(square_costs(np.zeros((1, 4, 4))))) == 1.0


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 1e-12), (np.float32, 2e-5)])
@pytest.mark.parametrize("size", [5, 8, 30])
def test_crossings_cost_what_the_squares_themselves_do(size, dtype, rtol):
    matrix = np.random.default_rng(size).normal(size=(3 * size, size)).astype(dtype)
    crossed = CrossedCosts(size, dtype)
    # The second call uses the memory of the first.
    for draws in (np.arange(2 * size), np.arange(2 * size)[::-1]):
        draws = cross(draws[:size], draws[size:])
        parts = zip(crossed(matrix[draws[[0, -1]]]), np.split(draws, 2), strict=True)
        for got, part in parts:
            expected = square_costs(matrix[part])
            assert got.cross.dtype == dtype
            for name in ("row_norms", "column_norms", "cross"):
                one, other = getattr(got, name), getattr(expected, name)
                np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol * np.abs(other).max())


def test_products_are_put_where_they_are_wanted():
    squares = make_squares()
    where = np.empty_like(squares)
    assert square_costs(squares, out=where).cross is where
    np.testing.assert_allclose(where, squares @ squares)


@pytest.mark.parametrize("kind", ["numpy", "torch", "sparse"])
def test_norms_are_double_whatever_the_precision_of_the_draws(kind):
    square = make_squares(n_draws=1).astype(np.float32)
    make = {
        "numpy": np.asarray,
        "torch": array_api_compat.torch.asarray,
        "sparse": lambda squares: sp.csr_array(squares[0]),
    }[kind]
    costs = square_costs(make(square))
    for norms, axis in ((costs.row_norms, 2), (costs.column_norms, 1)):
        norms = np.asarray(norms)
        assert norms.dtype == np.float64
        np.testing.assert_allclose(norms, (square**2).sum(axis=axis), rtol=1e-6)
    assert np.asarray(costs.cross).dtype == np.float32
    assert np.asarray(full_costs(costs)).dtype == np.float64


def test_costs_of_several_batches_are_joined():
    squares = make_squares(5)
    joined = join([square_costs(squares[:2]), square_costs(squares[2:])])
    whole = square_costs(squares)
    for name in ("row_norms", "column_norms", "cross"):
        np.testing.assert_array_equal(getattr(joined, name), getattr(whole, name))
