"""The same problems, at the same settings, solved by POT."""

import warnings

import numpy as np
import ot
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from ccot.scalings.kernels import gaussian_kernel, mean_distance
from ccot.transport.gromov import LOSSES, Limits, gromov_barycentre, refine
from ccot.transport.low_rank import LowRank
from ccot.transport.sinkhorn import Status, sinkhorn
from tests.transport.alignment import align
from tests.truth.problems import COSTS, examples, seeds

kinds = st.sampled_from(sorted(COSTS))
each_loss = pytest.mark.parametrize("loss", LOSSES)
# Theirs takes the gradient as cost, twice ours, and a square loss without the half.
EPSILON = {"square": 4.0, "kl": 2.0}


def quietly(solve, *arguments, **options):
    """Call POT, which warns where it stops at a given iteration."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return solve(*arguments, **options)


def coupling_of(answer, log_kernel):
    return np.exp(answer.log_row[:, None] + log_kernel + answer.log_column)


@pytest.mark.parametrize("method", ["sinkhorn", "sinkhorn_log"])
@examples(30, 1000)
@given(kind=kinds, seed=seeds)
def test_sinkhorn_makes_the_same_iterations(method, kind, seed):
    """Iterate by iterate, not only in the limit; plain scaling where it does not overflow."""
    rng = np.random.default_rng(seed)
    shape, n_iter = rng.integers(1, 25, size=2), int(rng.integers(1, 40))
    cost, reg = COSTS[kind](rng, shape), 10 ** rng.uniform(-1, 1)
    if method == "sinkhorn":
        cost = (cost - cost.min()) * min(1.0, 100 * reg / (np.ptp(cost) or 1.0))
    a, b = (np.full(size, 1 / size) for size in shape)
    theirs = quietly(
        ot.sinkhorn, a, b, cost, reg, method, numItermax=n_iter, stopThr=0.0, warn=False
    )
    answer = sinkhorn(
        -cost / reg,
        log_row_start=np.zeros(shape[0]),
        max_iter=n_iter,
        tol=1e-300,
    )
    resolution = 64 * np.finfo(float).eps * (1 + cost.max() / reg + np.abs(np.log(a)).max())
    if answer.n_iter == n_iter:
        np.testing.assert_allclose(
            coupling_of(answer, -cost / reg), theirs, rtol=resolution, atol=1e-300
        )


@examples(30, 1000)
@given(kind=kinds, seed=seeds)
def test_no_coupling_beats_exact_transport(kind, seed):
    """Entropic transport costs at least as much as exact one, and little more at a small reg."""
    rng = np.random.default_rng(seed)
    shape = rng.integers(2, 15, size=2)
    cost = COSTS[kind](rng, shape)
    cost = cost / (cost.max() or 1.0)
    exact = ot.emd2([], [], cost)
    reg = 0.01
    answer = sinkhorn(-cost / reg, max_iter=5000, tol=1e-9)
    entropic = float((coupling_of(answer, -cost / reg) * cost).sum())
    slack = (1e-12 + float(answer.error)) * (1 + cost.max())
    assert entropic >= exact - slack
    assert entropic <= exact + reg * np.log(shape[0] * shape[1]) + slack


# Gromov-Wasserstein ---------------------------------------------------------------------------


def written(coupling):
    return coupling.dense() if isinstance(coupling, LowRank) else coupling


def draw_kernel(rng, size):
    points = rng.normal(size=(size, 3)) + 2 * (rng.integers(0, 2, size))[:, None]
    return gaussian_kernel(points, points, mean_distance(points) or 1.0)


@each_loss
@examples(15, 500)
@given(seed=seeds)
def test_alignment_makes_the_same_linearisations(loss, seed):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(2, 12, size=2)
    kernel, support, reg = draw_kernel(rng, n), draw_kernel(rng, m), 10 ** rng.uniform(-1.5, 0)
    rounds = int(rng.integers(1, 8))
    limits = Limits(max_gromov_iter=rounds, max_iter=5000, tol=-1.0, sinkhorn_tol=1e-14)
    ours = align(kernel, support, reg, LOSSES[loss], limits)
    assume(ours.status is Status.CONVERGED)
    theirs = quietly(
        ot.gromov.entropic_gromov_wasserstein,
        kernel,
        support,
        np.full(n, 1 / n),
        np.full(m, 1 / m),
        f"{loss}_loss",
        epsilon=EPSILON[loss] * reg,
        symmetric=True,
        solver="PGD",
        max_iter=rounds,
        tol=0.0,
        numItermax=5000,
        stopThr=1e-15,
    )
    np.testing.assert_allclose(ours.coupling, theirs, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(ours.coupling.sum(axis=1), 1 / n, rtol=1e-10)
    np.testing.assert_allclose(ours.coupling.sum(axis=0), 1 / m, rtol=1e-10)


@each_loss
@examples(15, 500)
@given(seed=seeds)
def test_barycentre_is_updated_the_same_way(loss, seed):
    rng = np.random.default_rng(seed)
    sizes, n_support = rng.integers(2, 12, size=2), int(rng.integers(1, 12))
    kernels, start = [draw_kernel(rng, size) for size in sizes], draw_kernel(rng, n_support)
    weight = rng.uniform()
    ours = gromov_barycentre(
        kernels,
        (weight, 1 - weight),
        start,
        reg=10 ** rng.uniform(-1.5, 0),
        loss=loss,
        exact_refinement=bool(rng.integers(2)),
        limits=Limits(max_updates=int(rng.integers(1, 4)), max_iter=1000, sinkhorn_tol=1e-14),
    )
    theirs = ot.gromov._utils.update_barycenter_structure(
        [written(coupling).T for coupling in ours.couplings],
        kernels,
        [weight, 1 - weight],
        np.full(n_support, 1 / n_support),
        f"{loss}_loss",
        target=False,
    )
    # Logarithms of similarities are kept from minus infinity by 1e-10 in ours.
    np.testing.assert_allclose(ours.support, theirs, rtol=1e-8)


@each_loss
@examples(15, 500)
@given(seed=seeds)
def test_refinement_solves_each_linearisation_as_scipy_does(loss, seed):
    """Between equal numbers of points exact transport is an assignment."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 10))
    kernel, support = draw_kernel(rng, n), draw_kernel(rng, n)
    rule = LOSSES[loss]
    start = align(kernel, support, 0.1, rule, Limits()).coupling
    coupling, _ = refine(kernel, support, start, rule, Limits(max_gromov_iter=1))
    cost = -(kernel @ start @ rule.h2(support))
    best = cost[linear_sum_assignment(cost)].sum() / n
    assert float((cost * coupling).sum()) == pytest.approx(best, rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(coupling.sum(axis=0), 1 / n, rtol=1e-12)
    np.testing.assert_allclose(coupling.sum(axis=1), 1 / n, rtol=1e-12)
