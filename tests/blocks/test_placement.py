from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import softmax
from scipy.stats import bernoulli, norm, poisson

from ccot.blocks.placement import place_side
from ccot.blocks.preparation import Preparation, with_effects
from ccot.blocks.problem import make_blocks, make_problem
from tests.blocks.matrices import draw


@pytest.fixture
def placed(planted, family):
    X, rows, columns = planted
    problem = make_problem(X, family)
    blocks = make_blocks(problem, rows, columns)
    return [place_side(problem, Preparation(family), blocks, axis) for axis in (0, 1)]


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, sp.csc_array])
def test_points_go_where_their_like_went(planted, placed, family, make):
    X, rows, columns = planted
    np.testing.assert_array_equal(placed[0].labels(make(X)), rows)
    np.testing.assert_array_equal(placed[1].labels(make(X.T)), columns)
    rng = np.random.default_rng(9)
    fresh_rows, fresh_columns = np.arange(20) % 2, np.arange(21) % 3
    np.testing.assert_array_equal(
        placed[0].labels(make(draw(family, fresh_rows, columns, rng))), fresh_rows
    )
    np.testing.assert_array_equal(
        placed[1].labels(make(draw(family, rows, fresh_columns, rng).T)), fresh_columns
    )


def block_means(X, rows, columns):
    """Block means smoothed as documented: half an entry at the overall mean."""
    problem = make_problem(X, "bernoulli")
    blocks = make_blocks(problem, rows, columns)
    return (blocks.total + 0.5 * X.mean()) / (blocks.exposure + 0.5)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_likelihood_is_the_slow_sum_over_entries(planted, placed, family, make):
    X, rows, columns = planted
    if family == "gaussian":
        problem = make_problem(X, family)
        blocks = make_blocks(problem, rows, columns)
        means = (blocks.total / blocks.exposure)[rows][:, columns]
        slow = norm.logpdf(X, means, np.sqrt(np.mean((X - means) ** 2)))
    elif family == "bernoulli":
        slow = bernoulli.logpmf(X, block_means(X, rows, columns)[rows][:, columns])
    else:
        problem = make_problem(X, family)
        blocks = make_blocks(problem, rows, columns)
        lift = (blocks.total + 0.5) / (blocks.exposure + 0.5)
        expected = np.outer(X.sum(axis=1), X.sum(axis=0)) / X.sum() * lift[rows][:, columns]
        slow = poisson.logpmf(X, expected)
    np.testing.assert_allclose(placed[0].log_likelihood(make(X)), slow.mean(axis=1), rtol=1e-9)


def test_missing_entries_are_left_out_of_likelihoods():
    rng = np.random.default_rng(0)
    rows, columns = rng.integers(0, 2, 40), rng.integers(0, 3, 30)
    X = draw("gaussian", rows, columns, rng)
    X[rng.uniform(size=X.shape) < 0.3] = np.nan
    X[5, 1:] = np.nan
    problem = make_problem(X, "gaussian")
    blocks = make_blocks(problem, rows, columns)
    placement = place_side(problem, Preparation("gaussian"), blocks, 0)
    means = (blocks.total / blocks.exposure)[rows][:, columns]
    sigma = np.sqrt(np.nanmean((X - means) ** 2))
    slow = np.nanmean(norm.logpdf(X, means, sigma), axis=1)
    np.testing.assert_allclose(placement.log_likelihood(X), slow, rtol=1e-9)
    np.testing.assert_array_equal(placement.labels(X), rows)


def test_points_with_nothing_to_go_by_join_the_largest_cluster():
    X = np.vstack([np.tile([5.0, 0.0], (6, 2)), np.tile([0.0, 5.0], (3, 2))])
    labels = np.repeat([0, 1], [6, 3]), np.array([0, 1, 0, 1])
    gaussian = make_problem(X, "gaussian")
    placed = place_side(gaussian, Preparation("gaussian"), make_blocks(gaussian, *labels), 0)
    np.testing.assert_array_equal(placed.labels(np.full((2, 4), np.nan)), 0)
    counts = make_problem(X, "poisson")
    placed = place_side(counts, Preparation("poisson"), make_blocks(counts, *labels), 0)
    np.testing.assert_array_equal(placed.labels(np.zeros((2, 4))), 0)


@pytest.mark.parametrize("kind", ["dense", "sparse", "missing"])
def test_columns_count_by_their_precision(kind):
    rng = np.random.default_rng(0)
    rows, columns = rng.integers(0, 2, 40), rng.integers(0, 3, 30)
    X, precision = draw("gaussian", rows, columns, rng), rng.uniform(0.2, 3.0, 30)
    if kind == "missing":
        X[rng.uniform(size=X.shape) < 0.3] = np.nan
    given = sp.csr_array(X) if kind == "sparse" else X
    problem = make_problem(given, "gaussian", precision)
    blocks = make_blocks(problem, rows, columns)
    placement = place_side(problem, Preparation("gaussian"), blocks, 0)
    means = blocks.total / blocks.exposure
    cost = [np.nansum(precision * (X - mean[columns]) ** 2 / 2, axis=1) for mean in means]
    noise = np.nanmean(precision * (X - means[rows][:, columns]) ** 2)
    gain = np.log(np.bincount(rows) / 40) - np.transpose(cost) / noise
    found = placement.gains(placement.profiles(placement.axis_view(given)))
    np.testing.assert_allclose(found[:, 0] - found[:, 1], gain[:, 0] - gain[:, 1], rtol=1e-9)
    counted = np.isfinite(X).sum(axis=1)
    slow = -np.min(cost, axis=0) / noise / counted - np.log(2 * np.pi * noise) / 2
    np.testing.assert_allclose(placement.log_likelihood(given), slow, rtol=1e-9)


def test_points_are_prepared_as_those_of_their_side():
    rng = np.random.default_rng(0)
    rows, columns = np.arange(40) % 2, np.arange(30) % 3
    X = draw("gaussian", rows, columns, rng) + rng.normal(size=(40, 1)) + rng.normal(size=30)
    preparation = with_effects(Preparation("gaussian"), X)
    problem = make_problem(preparation.matrix(X), "gaussian")
    blocks = make_blocks(problem, rows, columns)
    by_row, by_column = (place_side(problem, preparation, blocks, axis) for axis in (0, 1))
    np.testing.assert_array_equal(by_row.labels(X + 50 * rng.normal(size=(40, 1))), rows)
    shifted = (X + 50 * rng.normal(size=30)).T
    np.testing.assert_array_equal(by_column.labels(shifted), by_column.labels(X.T))


def test_rare_columns_and_empty_rows_have_their_likelihood():
    rng = np.random.default_rng(0)
    rows, columns = np.arange(40) % 2, np.arange(30) % 3
    X = draw("poisson", rows, columns, rng)
    X[:, 0], X[-1] = 0, 0
    X[3, 0] = 1
    problem = make_problem(X, "poisson")
    blocks = make_blocks(problem, rows, columns)
    placement = place_side(problem, Preparation("poisson"), blocks, 0)
    lift = (blocks.total + 0.5) / (blocks.exposure + 0.5)
    expected = np.outer(X.sum(axis=1), X.sum(axis=0)) / X.sum() * lift[rows][:, columns]
    slow = poisson.logpmf(X, expected).mean(axis=1)
    np.testing.assert_allclose(placement.log_likelihood(X), slow, rtol=1e-9)


def test_small_amounts_go_where_large_ones_go():
    rng = np.random.default_rng(0)
    rows, columns = np.arange(40) % 2, np.arange(30) % 3
    X = 1e-9 * draw("poisson", rows, columns, rng)
    problem = make_problem(X, "poisson")
    placement = place_side(problem, Preparation("poisson"), make_blocks(problem, rows, columns), 0)
    np.testing.assert_array_equal(placement.labels(X), rows)


def soft_blocks(problem, labels, doubt):
    """Blocks whose points have a share in every cluster, the larger the more they doubt."""
    blocks = make_blocks(problem, *labels)
    one_hot = [np.eye(k)[own] for k, own in zip(blocks.shape, blocks.labels, strict=True)]
    plans = tuple((1 - doubt) * plan + doubt / plan.shape[1] for plan in one_hot)
    return replace(blocks, plans=plans)


@pytest.mark.parametrize("axis", [0, 1])
def test_points_go_where_soft_blocks_gain_most(planted, axis):
    """Means, shares and the other side's clusters are those of the plans, not of the labels."""
    X, rows, columns = planted
    problem = make_problem(X, "gaussian")
    blocks = soft_blocks(problem, (rows, columns), 0.3)
    placement = place_side(problem, Preparation("gaussian"), blocks, axis)
    own, partner = blocks.plans[axis], blocks.plans[1 - axis]
    transposed = X.T if axis else X
    exposure = np.outer(own.sum(axis=0), partner.sum(axis=0))
    means = (own.T @ transposed @ partner) / exposure
    noise = (np.sum(X**2) - np.sum(means**2 * exposure)) / X.size
    slow = (transposed @ partner @ means.T - partner.sum(axis=0) @ means.T**2 / 2) / noise
    slow += np.log(own.mean(axis=0))
    axis_view = placement.axis_view(transposed)
    np.testing.assert_allclose(placement.gains(placement.profiles(axis_view)), slow, rtol=1e-9)
    np.testing.assert_array_equal(placement.partner, partner)


@pytest.mark.parametrize("axis", [0, 1])
def test_shares_are_probabilities_and_confidence_is_what_exceeds_chance(axis):
    # All points of noise are in doubt.
    X = np.random.default_rng(0).normal(size=(40, 30))
    points = X.T.copy() if axis else X.copy()
    points[3] = np.nan
    problem = make_problem(X, "gaussian")
    blocks = make_blocks(problem, np.arange(40) % 5 // 3, np.arange(30) % 4 // 2)
    placement = place_side(problem, Preparation("gaussian"), blocks, axis)
    shares = softmax(placement.gains(placement.profiles(placement.axis_view(points))), axis=1)
    np.testing.assert_allclose(placement.shares(points), shares, rtol=1e-9, atol=1e-12)
    n_clusters = blocks.shape[axis]
    sure = (shares.max(axis=1) - 1 / n_clusters) / (1 - 1 / n_clusters)
    sure[3] = 0
    np.testing.assert_allclose(placement.confidence(points), sure, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("doubt", "is_hard"), [(0.0, True), (1e-12, True), (1e-3, False)])
def test_plans_that_are_sure_are_kept_as_labels(planted, doubt, is_hard):
    X, rows, columns = planted
    problem = make_problem(X, "gaussian")
    blocks = soft_blocks(problem, (rows, columns), doubt)
    partner = place_side(problem, Preparation("gaussian"), blocks, 0).partner
    assert partner.ndim == (1 if is_hard else 2)
    np.testing.assert_array_equal(partner if is_hard else partner.argmax(axis=1), columns)
    # One point in doubt is enough for all to be kept as shares.
    blocks.plans[1][0] = 1 / 3
    assert place_side(problem, Preparation("gaussian"), blocks, 0).partner.ndim == 2
