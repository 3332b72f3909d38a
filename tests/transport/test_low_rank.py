"""Products of thin matrices against the same matrices written out."""

import array_api_compat.torch
import array_api_strict
import numpy as np
import pytest

from ccot.transport.low_rank import LowRank, LowRankKernel, join_low_rank, transport_product
from ccot.transport.sinkhorn import Status, sinkhorn


def make_product(n_rows, n_columns, rank=3, scale=0.002, seed=0):
    rng = np.random.default_rng(seed)
    # Each term is fainter than the one before, as in a cost that has nearly rank one.
    fade = scale ** np.arange(1, rank + 1)
    return LowRank(rng.normal(size=(n_rows, rank)) * fade, rng.normal(size=(n_columns, rank)))


def test_products_multiply_and_add_like_matrices():
    one, other = make_product(7, 5, seed=0), make_product(7, 5, seed=1)
    right = np.random.default_rng(2).normal(size=(5, 2))
    np.testing.assert_allclose(one @ right, one.dense() @ right, rtol=1e-12)
    np.testing.assert_allclose(one.inner(other), np.sum(one.dense() * other.dense()), rtol=1e-12)
    np.testing.assert_allclose(
        join_low_rank([one, other]).dense(), one.dense() + other.dense(), rtol=1e-12
    )
    np.testing.assert_array_equal(join_low_rank([one]).dense(), one.dense())


@pytest.mark.parametrize("tol", [1e-2, 1e-12])
@pytest.mark.parametrize("shape", [(150, 200), (240, 160)])
def test_transport_is_sinkhorns(shape, tol):
    log_kernel = make_product(*shape)
    start = 0.1 * np.random.default_rng(3).normal(size=shape[0])
    plan = transport_product(log_kernel, start, 50, tol)
    assert plan is not None
    expected = sinkhorn(log_kernel.dense(), log_row_start=start, max_iter=50, tol=tol)
    np.testing.assert_allclose(plan.log_row, expected.log_row, atol=1e-12)
    np.testing.assert_allclose(plan.log_column, expected.log_column, atol=1e-12)
    log_coupling = plan.log_row[:, None] + log_kernel.dense() + plan.log_column
    coupling = np.exp(log_coupling)
    np.testing.assert_allclose(plan.coupling.dense(), coupling, rtol=1e-12)
    assert plan.negative_entropy == pytest.approx(np.sum(coupling * (log_coupling - 1)), rel=1e-12)
    assert plan.status is expected.status is Status.CONVERGED


@pytest.mark.parametrize(("tol", "n_iter"), [(3e-2, 1), (1e-3, 2), (1e-5, 3)])
def test_transport_makes_as_many_iterations_as_sinkhorn(tol, n_iter):
    log_kernel = make_product(150, 200, rank=1, scale=0.1)
    plan = transport_product(log_kernel, np.zeros(150), 50, tol)
    expected = sinkhorn(log_kernel.dense(), log_row_start=np.zeros(150), tol=tol)
    assert expected.n_iter == n_iter
    assert plan is not None
    np.testing.assert_allclose(plan.log_row, expected.log_row, atol=1e-12)


def test_limits_are_obeyed_and_reported():
    plan = transport_product(make_product(150, 200), np.zeros(150), 1, 1e-12)
    assert plan is not None
    assert plan.status is Status.MAX_ITER


@pytest.mark.parametrize("rank", [1, 5, 9])
def test_constant_costs_have_the_product_coupling(rank):
    log_kernel = LowRank(np.ones((6, rank)), np.ones((4, rank)))
    plan = transport_product(log_kernel, np.zeros(6), 10, 1e-12)
    assert plan is not None
    np.testing.assert_allclose(plan.coupling.dense(), 1 / 24, rtol=1e-14)


@pytest.mark.parametrize(
    ("left", "start"),
    [(30.0, 0.0), (1e-7, 1e3)],
    ids=["kernel", "start"],
)
def test_what_spans_too_much_is_left_to_others(left, start):
    """A kernel of high rank, or scalings that differ by more than the range of a float."""
    rng = np.random.default_rng(0)
    log_kernel = LowRank(left * rng.normal(size=(40, 2)), rng.normal(size=(50, 2)))
    assert transport_product(log_kernel, np.linspace(-start, start, 40), 10, 1e-9) is None
    modest = LowRank(1e-7 * log_kernel.left / left, log_kernel.right)
    assert transport_product(modest, np.zeros(40), 10, 1e-9) is not None


@pytest.mark.parametrize(("size", "is_low"), [(20, True), (19, False)])
def test_a_low_rank_is_up_to_a_quarter_of_the_size(size, is_low):
    # The terms 1, x, ..., x^4 / 4! of the exponential count; x^5 / 5! is below 1e-15.
    left = np.linspace(-2.4e-3, 2.4e-3, size)[:, None]
    log_kernel = LowRank(left, np.array([[-1.0], [1.0]] * 10))
    plan = transport_product(log_kernel, np.zeros(size), 10, 1e-9)
    assert (plan is not None) == is_low
    if plan is not None:
        assert plan.coupling.left.shape == (20, 5)


@pytest.mark.parametrize("xp", [array_api_compat.torch, array_api_strict], ids=["torch", "strict"])
def test_every_array_library_gives_the_same_plan(xp):
    log_kernel = make_product(150, 200)
    moved = LowRank(xp.asarray(log_kernel.left), xp.asarray(log_kernel.right))
    given = transport_product(moved, xp.asarray(np.zeros(150)), 50, 1e-9)
    expected = transport_product(log_kernel, np.zeros(150), 50, 1e-9)
    assert given is not None
    assert expected is not None
    np.testing.assert_allclose(np.asarray(given.log_row), expected.log_row, atol=1e-12)


def test_low_rank_kernel_has_the_means_of_its_matrix():
    rng = np.random.default_rng(0)
    factor = rng.uniform(size=(8, 3))
    matrix = factor @ factor.T
    kernel = LowRankKernel(factor, factor, np.log(matrix))
    assert kernel.shape == (8, 8)
    assert kernel.mean() == pytest.approx(matrix.mean())
    assert kernel.mean_square() == pytest.approx((matrix**2).mean())
    assert kernel.mean_entropy() == pytest.approx((matrix * np.log(matrix)).mean())
    other = rng.normal(size=(8, 2))
    np.testing.assert_allclose(kernel @ other, matrix @ other)
