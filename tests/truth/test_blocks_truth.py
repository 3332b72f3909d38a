"""Likelihoods, criteria and merges of block models against formulas that visit every cell."""

import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from scipy.cluster.hierarchy import cut_tree, linkage
from scipy.special import xlogy

from ccot.blocks.criteria import bic, evidence, icl, log_likelihood
from ccot.blocks.hierarchy import build_hierarchy
from ccot.blocks.problem import information, make_blocks, make_problem, pearson_dispersion
from ccot.blocks.sweep import sweep
from ccot.metrics import error_rate
from tests.truth.problems import draw_matrix, examples, labelled, seeds

FAMILIES = ["gaussian", "poisson", "bernoulli"]
each_family = pytest.mark.parametrize("family", FAMILIES)


# The slow versions ----------------------------------------------------------------------------


def visit(X, labels):
    """Yield every observed cell with its block."""
    for (i, j), value in np.ndenumerate(X):
        if not np.isnan(value):
            yield int(labels[0][i]), int(labels[1][j]), i, j, value


def slow_information(family, X, labels, weights=None):
    """Log-likelihood at the block means beyond that of a reference without parameters.

    Gaussian: zeros. Poisson: the product of the degrees. Bernoulli: none.
    """
    weights = np.ones(X.shape[1]) if weights is None else weights
    exposure = np.broadcast_to(weights, X.shape)
    if family == "poisson":
        exposure = np.outer(X.sum(axis=1), X.sum(axis=0)) / max(X.sum(), 1e-300)
    factor = exposure if family == "gaussian" else np.ones(X.shape)
    totals, exposures = {}, {}
    for k, m, i, j, value in visit(X, labels):
        totals[k, m] = totals.get((k, m), 0.0) + value * factor[i, j]
        exposures[k, m] = exposures.get((k, m), 0.0) + exposure[i, j]
    held = 0.0
    for k, m, i, j, value in visit(X, labels):
        mean = totals[k, m] / exposures[k, m] if exposures[k, m] else 0.0
        if family == "gaussian":
            held += 0.5 * exposure[i, j] * (value**2 - (value - mean) ** 2)
        elif family == "poisson":
            held += xlogy(value, mean) - exposure[i, j] * (mean - 1)
        else:
            held += xlogy(value, mean) + xlogy(1 - value, 1 - mean)
    return held


def slow_likelihood(problem, X, labels):
    """The maximised log-likelihood, up to a constant of the data."""
    held = slow_information(problem.family, X, labels)
    if problem.family != "gaussian":
        return held / problem.dispersion
    residual = np.nansum(X**2) - 2 * held
    n_observed = np.count_nonzero(~np.isnan(X))
    return -0.5 * n_observed * np.log(max(residual, 1e-12 * np.nansum(X**2)) / n_observed)


def slow_criterion(problem, X, labels, name):
    """ICL or BIC, term by term, as the module writes them."""
    (n, d), N = X.shape, np.count_nonzero(~np.isnan(X))
    sizes = [np.unique(side, return_counts=True)[1] for side in labels]
    g, m = map(len, sizes)
    score = slow_likelihood(problem, X, labels) - 0.5 * g * m * np.log(N)
    if name == "bic":
        return score
    score -= 0.5 * (g - 1) * np.log(n) + 0.5 * (m - 1) * np.log(d)
    return score + sum(np.sum(s * np.log(s / s.sum())) for s in sizes)


def rounding(problem, blocks):
    """What is left of large sums where they cancel."""
    counts = 0.0 if problem.family == "gaussian" else float(blocks.total.sum())
    held = float(np.abs(problem.information(blocks.total, blocks.exposure)).sum())
    return 1e-13 * (1 + held + problem.sum_squares + counts)


# Likelihoods and criteria ---------------------------------------------------------------------


@each_family
@examples(30, 1000)
@given(case=labelled())
def test_information_is_the_likelihood_of_every_cell(family, case):
    rng, shape, labels = case
    X = draw_matrix(family, rng, shape)
    problem = make_problem(X, family)
    blocks = make_blocks(problem, *labels)
    expected = slow_information(family, X, labels)
    assert information(problem, blocks) == pytest.approx(
        expected, rel=1e-10, abs=rounding(problem, blocks)
    )


@examples(30, 1000)
@given(case=labelled())
def test_missing_cells_and_weights_of_columns_enter_every_sum(case):
    rng, shape, labels = case
    X, weights = draw_matrix("gaussian", rng, shape), rng.uniform(0.2, 5.0, shape[1])
    X[rng.uniform(size=shape) < rng.uniform(0, 0.9)] = np.nan
    problem = make_problem(X, "gaussian", weights)
    blocks = make_blocks(problem, *labels)
    expected = slow_information("gaussian", X, labels, weights)
    assert information(problem, blocks) == pytest.approx(
        expected, rel=1e-10, abs=rounding(problem, blocks)
    )


@each_family
@pytest.mark.parametrize("criterion", [icl, bic])
@examples(20, 500)
@given(case=labelled())
def test_criteria_are_their_formulas(family, criterion, case):
    rng, shape, labels = case
    X = draw_matrix(family, rng, shape)
    if family == "gaussian" and rng.uniform() < 0.5:
        X[rng.uniform(size=shape) < 0.3] = np.nan
        X[0, 0] = 1.0
    problem = make_problem(X, family).with_dispersion(rng.uniform(0.5, 3.0))
    blocks = make_blocks(problem, *labels)
    problem = problem if family == "poisson" else problem.with_dispersion(1.0)
    residual = problem.sum_squares - 2 * information(problem, blocks)
    if family == "gaussian" and residual <= 1e-6 * problem.sum_squares:
        return  # the floor of the noise decides
    expected = slow_criterion(problem, X, labels, criterion.__name__)
    assert criterion(problem, blocks) == pytest.approx(expected, rel=1e-8, abs=1e-6)


@examples(20, 500)
@given(case=labelled())
def test_evidence_integrates_over_the_block_means(case):
    """At every prior variance that is tried, the integral of one block after the other."""
    rng, shape, labels = case
    X = rng.normal(size=shape) + rng.normal(size=(5, 5))[labels[0]][:, labels[1]]
    problem = make_problem(X, "gaussian")
    blocks = make_blocks(problem, *labels)
    n_blocks = blocks.total.size
    sizes, means, centre = blocks.exposure, blocks.total / blocks.exposure, X.mean()
    noise = (problem.sum_squares - 2 * information(problem, blocks)) / X.size
    if n_blocks == 1 or noise < 1e-9:
        return

    def log_integral(tau2):
        spread = noise / sizes
        log_normal = -0.5 * (np.log(tau2 + spread) + (means - centre) ** 2 / (tau2 + spread))
        # Relative to the block at its own mean: the maximised likelihood is counted already.
        return float(np.sum(log_normal + 0.5 * np.log(spread)))

    largest = max(float(((means - centre) ** 2).max()), float((noise / sizes).min()))
    tried = np.geomspace(1e-3 * float((noise / sizes).min()), largest, 60)
    best = max(log_integral(tau2) for tau2 in tried) - 0.5 * np.log(n_blocks)
    expected = -0.5 * X.size * math.log(noise) + best
    for labels in blocks.labels:
        counts, n_points = np.bincount(labels).tolist(), len(labels)
        # The share of labellings with these sizes, were all sizes equally likely; in any order.
        ways = math.factorial(n_points) // math.prod(map(math.factorial, counts))
        sizes_of = math.comb(n_points + len(counts) - 1, n_points)
        expected += math.log(math.factorial(len(counts))) - math.log(ways * sizes_of)
    assert evidence(problem, blocks) == pytest.approx(expected, rel=1e-9, abs=1e-7)


@examples(5, 100)
@given(seed=seeds)
def test_the_integral_over_a_block_mean_is_what_quadrature_gives(seed):
    """The closed form above, once in twenty digits and by brute force."""
    rng = np.random.default_rng(seed)
    n, mean, noise, tau2 = rng.integers(1, 50), rng.normal(), *rng.uniform(0.1, 3.0, size=2)

    def likelihood(mu):
        return mpmath.exp(-n * (mean - mu) ** 2 / (2 * noise)) * mpmath.npdf(
            mu, 0, mpmath.sqrt(tau2)
        )

    with mpmath.workdps(20):
        integral = mpmath.log(mpmath.quad(likelihood, [-mpmath.inf, 0, mean, mpmath.inf]))
    closed = -0.5 * (np.log1p(n * tau2 / noise) + mean**2 / (tau2 + noise / n))
    assert float(integral) == pytest.approx(closed, rel=1e-8)


@examples(20, 500)
@given(case=labelled())
def test_dispersion_is_pearsons_sum_over_cells(case):
    rng, shape, labels = case
    X = draw_matrix("poisson", rng, shape)
    problem = make_problem(X, "poisson")
    blocks = make_blocks(problem, *labels)
    exposure = np.outer(X.sum(axis=1), X.sum(axis=0)) / max(X.sum(), 1e-300)
    mean = blocks.total / np.maximum(blocks.exposure, 1e-300)
    expected = exposure * mean[labels_of(blocks)]
    seen = expected > 0
    used = np.count_nonzero(X.sum(axis=1)), np.count_nonzero(X.sum(axis=0))
    n_free = max((used[0] - 1) * (used[1] - 1) - blocks.total.size, 1)
    slow = np.sum((X - expected)[seen] ** 2 / expected[seen]) / n_free
    fast = pearson_dispersion(problem, blocks)
    assert fast == pytest.approx(slow, rel=1e-9, abs=1e-11 * (1 + X.sum()))


def labels_of(blocks):
    return np.ix_(*blocks.labels)


# Merges ---------------------------------------------------------------------------------------


@each_family
@examples(10, 300)
@given(case=labelled(largest=10))
def test_every_merge_costs_what_recomputing_says_and_none_is_cheaper(family, case):
    rng, shape, labels = case
    X = draw_matrix(family, rng, shape)
    problem = make_problem(X, family)
    blocks = make_blocks(problem, *labels)
    slack = 10 * rounding(problem, blocks)
    for axis in (0, 1):
        current = [side.copy() for side in blocks.labels]
        for merge in build_hierarchy(problem, blocks).side(axis):
            before = slow_information(family, X, current)
            names = np.unique(current[axis])
            lost = {}
            for place, first in enumerate(names):
                for second in names[place + 1 :]:
                    merged = list(current)
                    merged[axis] = np.where(current[axis] == second, first, current[axis])
                    lost[first, second] = before - slow_information(family, X, merged)
            assert merge.cost == pytest.approx(lost[merge.first, merge.second], abs=slack)
            assert merge.cost <= min(lost.values()) + slack
            current[axis] = np.where(current[axis] == merge.second, merge.first, current[axis])


@examples(20, 1000)
@given(seed=seeds)
def test_merges_of_single_rows_are_wards(seed):
    """With every row and column a cluster of its own the gaussian hierarchy is SciPy's."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=rng.integers(2, 25, size=2)) * 10 ** rng.uniform(-3, 3)
    problem = make_problem(X, "gaussian")
    hierarchy = build_hierarchy(problem, make_blocks(problem, *map(np.arange, X.shape)))
    for axis, points in enumerate((X, X.T)):
        tree = linkage(points, "ward")
        # A merge adds d^2 / 2 to the squares within clusters; information is half of squares.
        costs = hierarchy.costs(axis)[::-1]
        np.testing.assert_allclose(costs, tree[:, 2] ** 2 / 4, rtol=1e-7, atol=1e-9 * np.max(costs))
        for number in range(1, len(points)):
            expected = cut_tree(tree, number).ravel()
            assert error_rate(expected, hierarchy.cut(axis, number)) == 0


# Dense and sparse -----------------------------------------------------------------------------


@each_family
@examples(20, 500)
@given(case=labelled())
def test_sparse_matrices_have_the_criteria_and_merges_of_dense_ones(family, case):
    rng, shape, labels = case
    X = draw_matrix(family, rng, shape) * (rng.uniform(size=shape) < rng.uniform())
    dense, sparse = make_problem(X, family), make_problem(sp.csr_array(X), family)
    one, other = (make_blocks(problem, *labels) for problem in (dense, sparse))
    for criterion in (icl, bic, evidence):
        assert criterion(sparse, other) == pytest.approx(criterion(dense, one), rel=1e-9, abs=1e-9)
    for axis in (0, 1):
        np.testing.assert_allclose(
            build_hierarchy(sparse, other).costs(axis),
            build_hierarchy(dense, one).costs(axis),
            rtol=1e-7,
            atol=10 * rounding(dense, one),
        )


@pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])
@examples(20, 500)
@given(case=labelled())
def test_sparse_matrices_are_swept_as_dense_ones(soft, case):
    """On values without ties: where two clusters are worth the same, rounding decides."""
    rng, shape, labels = case
    X = rng.normal(size=shape) * (rng.uniform(size=shape) < 0.7)
    ends = [
        sweep(problem, make_blocks(problem, *labels), max_iter=2, temperatures=(float(soft),))
        for problem in (make_problem(X, "gaussian"), make_problem(sp.csr_array(X), "gaussian"))
    ]
    np.testing.assert_allclose(ends[1].total, ends[0].total, rtol=1e-9, atol=1e-9)
    for axis in (0, 1):
        np.testing.assert_array_equal(ends[1].labels[axis], ends[0].labels[axis])


@examples(20, 500)
@given(case=labelled())
def test_evidence_of_a_soft_plan_is_at_least_that_of_its_labels(case):
    rng, shape, labels = case
    problem = make_problem(draw_matrix("gaussian", rng, shape), "gaussian")
    soft = sweep(problem, make_blocks(problem, *labels), temperatures=(1.0,), max_iter=3)
    assert soft.plans is not None
    hard = evidence(problem, replace(soft, plans=None))
    assert evidence(problem, soft) >= hard
    assert np.isfinite(hard)


@examples(20, 500)
@given(case=labelled())
def test_a_likelihood_never_falls_where_blocks_are_finer(case):
    rng, shape, labels = case
    X = draw_matrix("gaussian", rng, shape)
    problem = make_problem(X, "gaussian")
    fine = make_blocks(problem, *labels)
    coarse = make_blocks(problem, labels[0] // 2, labels[1] // 2)
    one, other = (
        log_likelihood(problem, information(problem, blocks)) for blocks in (coarse, fine)
    )
    assert other >= one - 1e-6 * (1 + abs(one))
