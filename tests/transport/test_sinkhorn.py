import math

import array_api_compat.torch
import array_api_strict
import numpy as np
import ot
import pytest
from scipy.special import logsumexp

from ccot.scalings.steps import join
from ccot.transport.sinkhorn import _NARROW, Scalings, Status, _Kernel, sinkhorn

REGS = [1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3]
LIBRARIES = {"numpy": np, "torch": array_api_compat.torch, "strict": array_api_strict}


def make_costs(*shape, seed=0):
    """Squared distances between two clouds, scaled to a median of one."""
    rng = np.random.default_rng(seed)
    points, anchors = (
        rng.normal(size=(*shape[:-1], 3)),
        rng.normal(size=(*shape[:-2], shape[-1], 3)),
    )
    cost = ((points[..., :, None, :] - anchors[..., None, :, :]) ** 2).sum(-1)
    return cost / np.median(cost)


def coupling_of(answer, log_kernel):
    return np.exp(answer.log_row[..., :, None] + log_kernel + answer.log_column[..., None, :])


def scale_slowly(log_kernel, n_iter, start=None):
    """The obvious version: every sum in the log domain."""
    log_row_mass, log_column_mass = -np.log(log_kernel.shape)
    log_row = -log_kernel.max(axis=1) if start is None else start
    for _ in range(n_iter):
        log_column = log_column_mass - logsumexp(log_kernel + log_row[:, None], axis=0)
        log_row = log_row_mass - logsumexp(log_kernel + log_column, axis=1)
    return log_row, log_column


@pytest.mark.parametrize(
    "shape", [(1, 1), (1, 4), (6, 1), (8, 8), (20, 13), (3, 5, 7), (2, 3, 4, 4)]
)
def test_marginals_are_uniform(shape):
    log_kernel = -make_costs(*shape)
    answer = sinkhorn(log_kernel, tol=1e-12)
    coupling = coupling_of(answer, log_kernel)
    assert answer.status is Status.CONVERGED
    np.testing.assert_allclose(coupling.sum(-1), 1 / shape[-2], rtol=1e-11)
    np.testing.assert_allclose(coupling.sum(-2), 1 / shape[-1], rtol=1e-11)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("reg", REGS)
@pytest.mark.parametrize("shape", [(40, 40), (4, 30, 50)])
def test_no_regularisation_breaks_the_arithmetic(reg, shape, dtype):
    log_kernel = (-make_costs(*shape) / reg).astype(dtype)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        answer = sinkhorn(log_kernel, max_iter=300)
    for array in (answer.log_row, answer.log_column, answer.error):
        assert array.dtype == np.float64
        assert np.isfinite(array).all()
    # Rows are set right last: their sums are as exact as the kernel's precision allows.
    rtol = 1e-9 if dtype == "float64" else 1e-3
    sums = coupling_of(answer, log_kernel.astype("float64")).sum(-1)
    if dtype == "float64" or reg >= 1e-2:
        np.testing.assert_allclose(sums, 1 / shape[-2], rtol=rtol)


@pytest.mark.parametrize("reg", REGS)
def test_iterates_are_those_of_the_log_domain(reg):
    log_kernel = -make_costs(25, 18) / reg
    start = -log_kernel.max(axis=1)
    answer = sinkhorn(log_kernel, log_row_start=start, max_iter=100, tol=1e-9)
    slow_row, slow_column = scale_slowly(log_kernel, int(answer.n_iter))
    scale = np.abs(log_kernel).max()
    np.testing.assert_allclose(answer.log_row, slow_row, rtol=0, atol=1e-13 * scale + 1e-11)
    np.testing.assert_allclose(answer.log_column, slow_column, rtol=0, atol=1e-13 * scale + 1e-11)


@pytest.mark.parametrize("n_iter", [1, 2, 5])
def test_columns_that_no_row_is_near_are_scaled_all_the_same(n_iter):
    # e^-900 is zero to the arithmetic, and its scaling infinite.
    log_kernel = np.array([[0.0, -900.0, -1.0], [-2.0, -950.0, 0.0], [-3.0, -999.0, -5.0]])
    answer = sinkhorn(log_kernel, max_iter=n_iter, tol=1e-300)
    slow_row, slow_column = scale_slowly(log_kernel, n_iter)
    np.testing.assert_allclose(answer.log_row, slow_row, atol=1e-10)
    np.testing.assert_allclose(answer.log_column, slow_column, atol=1e-10)


def test_a_far_start_brings_back_what_underflows():
    # The second row counts in the second column: e^(590 - 800) is more than e^-300.
    log_kernel, start = np.array([[0.0, -300.0], [0.0, -800.0]]), np.array([0.0, 590.0])
    answer = sinkhorn(log_kernel, log_row_start=start, max_iter=1)
    slow_row, slow_column = scale_slowly(log_kernel, 1, start)
    np.testing.assert_allclose(answer.log_row, slow_row, rtol=1e-12)
    np.testing.assert_allclose(answer.log_column, slow_column, rtol=1e-12)


def test_iterates_from_anywhere_are_those_of_the_log_domain():
    """Kernels and starts of any range, met together or one alone."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        shape, n_iter = rng.integers(2, 5, 2), int(rng.integers(1, 4))
        log_kernel = -(10 ** rng.uniform(0, 4)) * rng.exponential(size=shape)
        start = 10 ** rng.uniform(0, 4) * rng.normal(size=shape[0])
        answer = sinkhorn(log_kernel, log_row_start=start, max_iter=n_iter, tol=0.0)
        slow = scale_slowly(log_kernel, n_iter, start)
        scale = max(np.abs(log_kernel).max(), np.abs(start).max())
        for given, expected in zip((answer.log_row, answer.log_column), slow, strict=True):
            np.testing.assert_allclose(given, expected, rtol=0, atol=1e-13 * scale + 1e-11)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_are_finite_whatever_was_absorbed(dtype):
    kernel = _Kernel(np.zeros((3, 1000), dtype), overwrite=False, reach=math.inf)
    kernel.absorb(np.full(3, 1e5), np.zeros(1000))
    highest = np.full(1000, math.exp(_NARROW[dtype] / 2), dtype)
    assert kernel.is_close(highest)
    assert np.isfinite(kernel.row_sums(highest)).all()


def test_narrow_kernels_start_from_a_constant():
    log_kernel = -make_costs(7, 5)
    constant = np.full(7, -log_kernel.max())
    answers = [sinkhorn(log_kernel, log_row_start=given, max_iter=3) for given in (None, constant)]
    np.testing.assert_allclose(answers[0].log_row, answers[1].log_row, rtol=1e-12)


@pytest.mark.parametrize("reg", [0.02, 0.2, 5.0])
def test_coupling_is_that_of_pot(reg):
    cost = make_costs(15, 22)
    answer = sinkhorn(-cost / reg, max_iter=100_000, tol=1e-13)
    theirs = ot.sinkhorn([], [], cost, reg, "sinkhorn_log", numItermax=100_000, stopThr=1e-14)
    np.testing.assert_allclose(coupling_of(answer, -cost / reg), theirs, rtol=1e-7, atol=1e-12)


def test_batch_is_the_sum_of_its_problems():
    # Hard and easy problems together: each stops by itself.
    log_kernel = -make_costs(5, 20, 30) / np.array([0.01, 0.1, 0.3, 1.0, 100.0])[:, None, None]
    together = sinkhorn(log_kernel, tol=1e-8, max_iter=400)
    alone = [sinkhorn(kernel, tol=1e-8, max_iter=400) for kernel in log_kernel]
    assert len({int(one.n_iter) for one in alone}) == 5
    np.testing.assert_array_equal(together.n_iter, [one.n_iter for one in alone])
    np.testing.assert_allclose(together.log_row, [one.log_row for one in alone], rtol=1e-12)
    np.testing.assert_allclose(together.log_column, [one.log_column for one in alone], rtol=1e-12)
    np.testing.assert_allclose(together.error, [one.error for one in alone], rtol=1e-6, atol=1e-14)


@pytest.mark.parametrize("reg", [0.1, 1.0, 10.0])
def test_single_precision_is_close_to_double(reg):
    log_kernel = -make_costs(50, 50) / reg
    single, double = (
        sinkhorn(log_kernel.astype(dtype), tol=1e-5) for dtype in ("float32", "float64")
    )
    resolution = 16 * np.finfo("float32").eps * (1 + np.abs(log_kernel).max())
    np.testing.assert_array_equal(single.n_iter, double.n_iter)
    # Scalings have one free factor, and the start decides it.
    factor = np.median(single.log_row - double.log_row)
    np.testing.assert_allclose(single.log_row - factor, double.log_row, atol=resolution)
    np.testing.assert_allclose(single.log_column + factor, double.log_column, atol=resolution)


def test_warm_start_from_the_answer_has_nothing_to_do():
    log_kernel = -make_costs(3, 20, 20) / 0.05
    cold = sinkhorn(log_kernel, tol=1e-10, max_iter=10_000)
    warm = sinkhorn(log_kernel, log_row_start=cold.log_row, tol=1e-9)
    assert (cold.n_iter > 20).all()
    assert (warm.n_iter == 1).all()
    np.testing.assert_allclose(coupling_of(warm, log_kernel), coupling_of(cold, log_kernel))


def test_any_start_leads_to_the_same_coupling():
    log_kernel = -make_costs(20, 15) / 0.2
    start = 30 * np.random.default_rng(0).normal(size=20)
    cold, warm = (
        sinkhorn(log_kernel, log_row_start=given, tol=1e-13, max_iter=10_000)
        for given in (None, start)
    )
    np.testing.assert_allclose(
        coupling_of(warm, log_kernel), coupling_of(cold, log_kernel), rtol=1e-9, atol=1e-15
    )
    # Scalings have one free factor, and the start decides it.
    assert np.ptp(warm.log_row - cold.log_row) < 1e-9


def test_status_tells_what_to_do():
    log_kernel = -make_costs(30, 30) / 0.01
    stopped = sinkhorn(log_kernel, max_iter=7)
    assert stopped.status is Status.MAX_ITER
    assert stopped.n_iter == 7
    assert np.issubdtype(stopped.n_iter.dtype, np.integer)
    assert stopped.error > 1e-6
    assert "raise max_iter, reg or tol" in stopped.status.value
    done = sinkhorn(log_kernel, max_iter=7, tol=2 * float(stopped.error))
    assert done.status is Status.CONVERGED


def test_status_of_a_batch_is_that_of_its_hardest_problem():
    log_kernel = -make_costs(2, 30, 30) / np.array([0.01, 10.0])[:, None, None]
    answer = sinkhorn(log_kernel, max_iter=20)
    assert answer.status is Status.MAX_ITER
    assert answer.error[0] > 1e-6 > answer.error[1]
    assert answer.n_iter[0] == 20 > answer.n_iter[1]


def test_products_of_wide_factors_are_solved_at_once_beside_harder_problems():
    # One iteration in logarithms is enough for the first, whose factors are beyond any float.
    wide = 2000 * np.add.outer(np.linspace(-1, 1, 6), np.linspace(-1, 1, 6) ** 2)
    log_kernel = np.stack([wide, -make_costs(6, 6) / 0.001])
    answer, alone = sinkhorn(log_kernel, max_iter=50), sinkhorn(wide)
    assert (answer.n_iter.tolist(), int(alone.n_iter)) == ([1, 50], 1)
    np.testing.assert_allclose(answer.log_row[0], alone.log_row, rtol=1e-12)
    np.testing.assert_allclose(answer.error[0], alone.error, atol=1e-12)


def test_nothing_left_to_do_is_within_a_tolerance_of_zero():
    answer = sinkhorn(np.zeros((4, 4)), tol=0.0)
    assert (answer.status, int(answer.n_iter), float(answer.error)) == (Status.CONVERGED, 1, 0.0)


def test_scalings_of_factors_that_are_zero_are_finite():
    kernel = _Kernel(np.zeros((2, 2)), overwrite=False, reach=math.inf)
    with np.errstate(divide="ignore"):
        found = kernel.log_scaling(np.array([0.0, np.e]), np.array([2.0, 2.0]))
    assert np.isfinite(found).all()
    assert (found[0] < -1e29, found[1]) == (True, 3.0)


def test_error_is_the_larger_of_both_marginals():
    log_kernel = -make_costs(10, 14) / 0.05
    before, after = (sinkhorn(log_kernel, max_iter=n, tol=1e-15) for n in (4, 5))
    # The fifth iteration sets the columns, sees the rows, sets the rows, sees the columns.
    seen = np.exp(before.log_row[:, None] + log_kernel + after.log_column)
    row_error = np.abs(seen.sum(1) - 1 / 10).sum()
    column_error = np.abs(coupling_of(after, log_kernel).sum(0) - 1 / 14).sum()
    assert after.error == pytest.approx(max(row_error, column_error), rel=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_one_loop_serves_every_array_library(library, dtype):
    xp = LIBRARIES[library]
    reg = np.array([0.03, 0.5, 20.0])[:, None, None]
    log_kernel = (-make_costs(3, 12, 17) / reg).astype(dtype)
    start = np.random.default_rng(1).normal(size=(3, 12))
    tol = 1e-4 if dtype == "float32" else 1e-9

    def solve(module) -> Scalings:
        return sinkhorn(module.asarray(log_kernel), log_row_start=module.asarray(start), tol=tol)

    expected, answer = solve(np), solve(xp)
    assert answer.log_row.dtype == xp.float64
    rtol, atol = (1e-4, 1e-4) if dtype == "float32" else (1e-11, 1e-11)
    for name in ("log_row", "log_column"):
        given = np.asarray(getattr(answer, name))
        np.testing.assert_allclose(given, getattr(expected, name), rtol=rtol, atol=atol)
    np.testing.assert_array_equal(np.asarray(answer.n_iter), expected.n_iter)
    assert answer.status is expected.status


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_known_reach_changes_no_scaling(dtype):
    log_kernel = -np.random.default_rng(0).uniform(-3, 3, (4, 9, 7)).astype(dtype)
    known, unknown = (
        sinkhorn(log_kernel.copy(), reach=reach, overwrite=True) for reach in (3.0, np.inf)
    )
    # Scalings are defined up to a factor that goes from one side to the other.
    couplings = [
        answer.log_row[:, :, None] + answer.log_column[:, None, :] for answer in (known, unknown)
    ]
    np.testing.assert_allclose(*couplings, rtol=0, atol=1e-5)


def test_errors_may_be_looked_at_now_and_then():
    log_kernel = -make_costs(3, 12, 9) / np.array([0.1, 0.3, 2.0])[:, None, None]
    always, rarely = (sinkhorn(log_kernel, tol=1e-9, check_every=every) for every in (1, 7))
    np.testing.assert_array_equal(rarely.n_iter % 7, 0)
    np.testing.assert_array_equal(rarely.n_iter, -(-always.n_iter // 7) * 7)
    for place, n_iter in enumerate(rarely.n_iter):
        alone = sinkhorn(log_kernel[place], max_iter=int(n_iter), tol=1e-300)
        np.testing.assert_allclose(rarely.log_row[place], alone.log_row, rtol=1e-12)
        np.testing.assert_allclose(rarely.log_column[place], alone.log_column, rtol=1e-12)
    stopped = sinkhorn(log_kernel, tol=1e-300, check_every=7, max_iter=10)
    np.testing.assert_array_equal(stopped.n_iter, 10)
    assert stopped.status is Status.MAX_ITER


def test_wide_kernels_are_looked_at_every_time():
    log_kernel = -make_costs(12, 9) / 1e-3
    answers = [sinkhorn(log_kernel, max_iter=40, check_every=every) for every in (1, 7)]
    np.testing.assert_array_equal(answers[0].log_row, answers[1].log_row)


@pytest.mark.parametrize("reg", [1e-3, 1.0], ids=["wide", "narrow"])
@pytest.mark.parametrize("start", [None, 0.0, 700.0], ids=["cold", "near", "far"])
def test_only_memory_that_was_offered_is_used(reg, start):
    log_kernel = -make_costs(8, 6) / reg
    log_row = None if start is None else np.linspace(0, start, 8)
    untouched = log_kernel.copy()
    expected = sinkhorn(untouched, log_row_start=log_row, max_iter=50)
    np.testing.assert_array_equal(untouched, log_kernel)
    given = sinkhorn(log_kernel.copy(), log_row_start=log_row, max_iter=50, overwrite=True)
    np.testing.assert_array_equal(given.log_row, expected.log_row)
    np.testing.assert_array_equal(given.log_column, expected.log_column)


def test_a_thousand_iterations_are_made_by_default():
    answer = sinkhorn(-make_costs(30, 30) / 1e-3)
    assert answer.n_iter == 1000
    assert answer.status is Status.MAX_ITER


def test_joined_answers_are_those_of_the_joined_batch():
    log_kernel = -make_costs(3, 10, 8) / np.array([0.02, 1.0, 5.0])[:, None, None]
    whole = sinkhorn(log_kernel, max_iter=15)
    joined = join([sinkhorn(log_kernel[:1], max_iter=15), sinkhorn(log_kernel[1:])])
    for name in ("log_row", "log_column", "n_iter", "error"):
        np.testing.assert_allclose(getattr(joined, name), getattr(whole, name), rtol=1e-9)
    assert joined.status is whole.status is Status.MAX_ITER
    easy = sinkhorn(log_kernel[1:])
    assert join([easy]).status is Status.CONVERGED


def test_a_small_problem_by_hand():
    cost = np.array([[0.0, 1.0], [2.0, 0.5]])
    answer = sinkhorn(-cost, tol=1e-12)
    coupling = np.exp(answer.log_row[:, None] - cost + answer.log_column)
    np.testing.assert_allclose(coupling.sum(axis=0), 0.5)
    np.testing.assert_allclose(coupling.sum(axis=1), 0.5)
