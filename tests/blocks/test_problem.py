from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from ccot.blocks import axes as problems
from ccot.blocks.axes import Profiles
from ccot.blocks.problem import (
    information,
    make_blocks,
    make_problem,
    pearson_dispersion,
)
from ccot.runtime import host_csr
from tests.blocks.matrices import sum_blocks


def test_totals_and_exposures_are_explicit_sums(planted, family):
    X, rows, columns = planted
    blocks = make_blocks(make_problem(X, family), rows, columns)
    exposure = np.ones_like(X)
    if family == "poisson":
        exposure = np.outer(X.sum(axis=1), X.sum(axis=0)) / X.sum()
    np.testing.assert_allclose(blocks.total, sum_blocks(X, rows, columns, (2, 3)), rtol=1e-12)
    np.testing.assert_allclose(
        blocks.exposure, sum_blocks(exposure, rows, columns, (2, 3)), rtol=1e-12
    )


def test_missing_entries_are_left_out_of_every_sum(planted):
    X = planted[0].copy()
    rng = np.random.default_rng(1)
    X[rng.uniform(size=X.shape) < 0.3] = np.nan
    precision = rng.uniform(0.5, 2.0, X.shape[1])
    rows, columns = planted[1:]
    problem = make_problem(X, "gaussian", precision)
    blocks = make_blocks(problem, rows, columns)
    observed = np.where(np.isnan(X), np.nan, precision)
    np.testing.assert_allclose(
        blocks.total, sum_blocks(X * precision, rows, columns, (2, 3)), rtol=1e-12
    )
    np.testing.assert_allclose(
        blocks.exposure, sum_blocks(observed, rows, columns, (2, 3)), rtol=1e-12
    )
    assert problem.n_observed == np.isfinite(X).sum()
    assert problem.sum_squares == pytest.approx(np.nansum(X**2 * precision), rel=1e-12)
    assert problem.overall == pytest.approx(np.nansum(X * precision) / np.nansum(observed))


def test_sparse_matrices_have_the_statistics_of_dense_ones(planted, family):
    X, rows, columns = planted
    dense, sparse = make_problem(X, family), make_problem(sp.csr_array(X), family)
    np.testing.assert_allclose(
        make_blocks(sparse, rows, columns).total, make_blocks(dense, rows, columns).total
    )
    for axis_view, other in zip(dense.axes, sparse.axes, strict=True):
        np.testing.assert_allclose(axis_view.exposure, other.exposure)
        np.testing.assert_allclose(axis_view.values, other.values.toarray())
    assert dense.overall == pytest.approx(sparse.overall)
    assert dense.sum_squares == pytest.approx(sparse.sum_squares)
    assert pearson_dispersion(dense) == pytest.approx(pearson_dispersion(sparse))


@pytest.mark.parametrize("kind", ["dense", "sparse", "missing", "weighted"])
def test_both_faces_tell_of_one_matrix(planted, family, kind):
    X, rows, columns = planted
    precision = None
    if kind in ("missing", "weighted"):
        family, precision = "gaussian", np.linspace(0.5, 2, 30)
    if kind == "missing":
        X = np.where(np.random.default_rng(1).uniform(size=X.shape) < 0.3, np.nan, X)
    problem = make_problem(sp.csr_array(X) if kind == "sparse" else X, family, precision)
    by_row = problem.axes[0].profiles(columns, 3).blocks(rows, 2)
    by_column = problem.axes[1].profiles(rows, 2).blocks(columns, 3)
    for one, other in zip(by_row, by_column, strict=True):
        np.testing.assert_allclose(one, other.T, rtol=1e-12)


@pytest.mark.parametrize("sparse", [False, True])
def test_soft_assignments_of_zeros_and_ones_are_labels(planted, family, sparse):
    X, rows, columns = planted
    problem = make_problem(sp.csr_array(X) if sparse else X, family)
    hard = problem.axes[0].profiles(columns, 3).blocks(rows, 2)
    soft = problem.axes[0].profiles(np.eye(3)[columns], 3).blocks(np.eye(2)[rows], 2)
    for one, other in zip(hard, soft, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("marginal", [0.0, np.log([0.9, 0.1])])
def test_gains_are_explicit_sums(planted, family, marginal):
    X, rows, columns = planted
    problem = make_problem(X, family)
    table = problem.table(rows, columns, (2, 3))
    natural, cumulant = problem.terms(*table)
    gain = problem.axes[0].profiles(columns, 3).gain(natural, cumulant, marginal) - marginal
    exposure = np.outer(problem.axes[0].exposure, problem.axes[0].partner_exposure)
    for i, k in [(0, 0), (7, 1), (39, 0)]:
        expected = X[i] @ natural[k, columns] - exposure[i] @ cumulant[k, columns]
        assert gain[i, k] == pytest.approx(expected, rel=1e-10)


def test_factored_exposures_equal_full_ones(planted, family):
    X, rows, columns = planted
    profiles = make_problem(X, family).axes[0].profiles(columns, 3)
    full = Profiles(profiles.total, profiles.full_exposure(), None)
    table = profiles.blocks(rows, 2)
    for one, other in zip(table, full.blocks(rows, 2), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    some, marginal = np.array([3, 5, 11]), np.log([0.9, 0.1])
    np.testing.assert_allclose(
        profiles.take(some).gain(*table), full.take(some).gain(*table), rtol=1e-10
    )
    np.testing.assert_allclose(
        profiles.gain(*table, marginal), full.gain(*table, marginal), rtol=1e-10
    )


def test_gains_of_the_own_cluster_are_those_among_all(planted, family):
    X, rows, columns = planted
    problem = make_problem(X, family)
    profiles = problem.axes[0].profiles(columns, 3)
    terms = problem.terms(*profiles.blocks(rows, 2))
    for one in (profiles, Profiles(profiles.total, profiles.full_exposure(), None)):
        expected = one.gain(*terms)[np.arange(40), rows]
        np.testing.assert_allclose(one.own_gain(rows, *terms), expected, rtol=1e-10)


def test_labels_are_numbered_without_gaps_in_their_order(planted, family):
    X, rows, columns = planted
    problem = make_problem(X, family)
    plain, gaps = make_blocks(problem, rows, columns), make_blocks(problem, 5 * rows, columns + 2)
    assert gaps.shape == (2, 3)
    np.testing.assert_array_equal(gaps.labels[0], rows)
    np.testing.assert_array_equal(gaps.labels[1], columns)
    np.testing.assert_array_equal(gaps.total, plain.total)


def test_poisson_information_is_mutual_information(planted):
    """Of row and column clusters, times the sum of the counts."""
    X, rows, columns = np.abs(np.round(planted[0])), *planted[1:]
    blocks = make_blocks(make_problem(X, "poisson"), rows, columns)
    joint = sum_blocks(X, rows, columns, (2, 3)) / X.sum()
    product = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    mutual = np.sum(joint * np.log(joint / product))
    assert information(make_problem(X, "poisson"), blocks) == pytest.approx(X.sum() * mutual)


def test_gaussian_noise_is_the_mean_square_around_blocks(planted):
    X, rows, columns = planted
    problem = make_problem(X, "gaussian")
    table = problem.table(rows, columns, (2, 3))
    residual = X - (table[0] / table[1])[rows][:, columns]
    assert problem.noise(*table) == pytest.approx(np.mean(residual**2), rel=1e-9)


@pytest.mark.parametrize("with_blocks", [False, True])
def test_dispersion_is_pearsons(planted, with_blocks):
    X, rows, columns = np.abs(np.round(planted[0])), *planted[1:]
    problem = make_problem(X, "poisson")
    blocks = make_blocks(problem, rows, columns)
    expected = np.outer(X.sum(axis=1), X.sum(axis=0)) / X.sum()
    n_free = 39 * 29
    if with_blocks:
        expected = expected * (blocks.total / blocks.exposure)[rows][:, columns]
        n_free -= 6
    explicit = np.sum((X - expected) ** 2 / expected) / n_free
    found = pearson_dispersion(problem, blocks if with_blocks else None)
    assert found == pytest.approx(explicit, rel=1e-9)


def test_dispersion_of_other_families_is_one():
    X = np.random.default_rng(0).integers(0, 2, (9, 8)).astype(float)
    assert pearson_dispersion(make_problem(X, "gaussian")) == 1
    assert pearson_dispersion(make_problem(X, "bernoulli")) == 1


@pytest.mark.parametrize("scale", [1e-3, 1e-9])
def test_small_amounts_are_counts_in_another_unit(scale):
    """Frequencies are smoothed no more than the counts they come from, at their largest."""
    X = np.random.default_rng(0).poisson(4.0, size=(20, 15)).astype(float)
    X /= X.max()
    labels = np.arange(20) % 2, np.arange(15) % 3
    plain, small = make_problem(X, "poisson"), make_problem(scale * X, "poisson")
    for one, other in zip(
        plain.terms(*plain.table(*labels, (2, 3))),
        small.terms(*small.table(*labels, (2, 3))),
        strict=True,
    ):
        np.testing.assert_allclose(other, one, rtol=1e-9)
    assert small.dispersion == pytest.approx(scale * plain.dispersion)


def test_points_without_entries_are_empty():
    X = np.ones((4, 3))
    X[2] = np.nan
    problem = make_problem(X, "gaussian")
    np.testing.assert_array_equal(problem.axes[0].is_empty(), [False, False, True, False])
    assert not problem.axes[1].is_empty().any()
    counts = make_problem(np.nan_to_num(X), "poisson")
    np.testing.assert_array_equal(counts.axes[0].is_empty(), [False, False, True, False])
    # To the bernoulli family zeros are news.
    assert not make_problem(np.nan_to_num(X), "bernoulli").axes[0].is_empty().any()


def test_dispersion_can_be_replaced(planted, family):
    problem = make_problem(planted[0], family)
    assert problem.with_dispersion(2.5) == replace(problem, dispersion=2.5)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_dispersion_may_be_summed_in_parts(make, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.poisson(1.5, size=(50, 20)).astype(float)
    problem = make_problem(make(X), "poisson")
    blocks = make_blocks(problem, rng.integers(0, 2, 50), rng.integers(0, 3, 20))
    whole = pearson_dispersion(problem), pearson_dispersion(problem, blocks)
    monkeypatch.setattr(host_csr, "_ENTRIES", 100)
    parts = pearson_dispersion(problem), pearson_dispersion(problem, blocks)
    np.testing.assert_allclose(parts, whole, rtol=1e-12)


@pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])
@pytest.mark.parametrize("shape", [(90, 40), (40, 90)], ids=["tall", "wide"])
def test_large_sparse_matrices_are_summed_the_same(shape, soft, monkeypatch):
    rng = np.random.default_rng(0)
    X = sp.random_array(shape, density=0.3, random_state=rng, format="csr")
    partners = [
        rng.dirichlet(np.ones(4), n) if soft else rng.integers(0, 4, n) for n in shape[::-1]
    ]

    def totals():
        axes = make_problem(X, "poisson").axes
        return [axis_view.profiles(p, 4).total for axis_view, p in zip(axes, partners, strict=True)]

    at_once = totals()
    monkeypatch.setattr(host_csr, "CACHE_ENTRIES", 50)
    monkeypatch.setattr(problems, "_CACHE_BYTES", 0)
    for given, expected in zip(totals(), at_once, strict=True):
        np.testing.assert_array_equal(given, expected)


def test_counts_have_one_for_their_mean_unless_there_are_none():
    some, none = (
        make_problem(np.full((4, 3), 5.0), "poisson"),
        make_problem(np.zeros((4, 3)), "poisson"),
    )
    assert (some.overall, some.unit, some.dispersion, some.n_observed) == (1.0, 1.0, 1.0, 12)
    assert (none.overall, none.unit, none.dispersion, none.n_observed) == (0.0, 1.0, 1.0, 12)


def test_only_real_values_have_a_sum_of_squares(family):
    problem = make_problem(np.ones((4, 3)), family)
    assert problem.sum_squares == (12.0 if family == "gaussian" else 0.0)


def test_weighted_sparse_matrices_have_the_statistics_of_dense_ones(planted):
    X, rows, columns = planted
    precision = np.linspace(0.5, 2, 30)
    one, other = (
        make_problem(make(X), "gaussian", precision) for make in (np.asarray, sp.csr_array)
    )
    for table, expected in zip(
        other.table(rows, columns, (2, 3)), one.table(rows, columns, (2, 3)), strict=True
    ):
        np.testing.assert_allclose(table, expected)
    assert other.sum_squares == pytest.approx(one.sum_squares)


@pytest.mark.parametrize("scale", [1.0, 1e-9, 1e9])
def test_a_perfect_fit_leaves_a_little_noise(scale):
    X = scale * np.repeat([[0.0, 3.0], [5.0, 1.0]], 4, axis=1)
    problem = make_problem(X, "gaussian")
    noise = problem.noise(*problem.table(np.arange(2), np.repeat([0, 1], 4), (2, 2)))
    assert noise == pytest.approx(1e-12 * np.sum(X**2) / 16, rel=1e-9, abs=0)
    single = make_problem(X[:1, 4:5], "gaussian")
    noise = single.noise(*single.table(np.zeros(1, int), np.zeros(1, int), (1, 1)))
    assert noise == pytest.approx(1e-12 * X[0, 4] ** 2, rel=1e-9, abs=0)


@pytest.mark.parametrize(("value", "least"), [(1e-3, 0.012), (5.0, 1.0)])
def test_degrees_that_explain_all_leave_a_little_dispersion(value, least):
    problem = make_problem(np.full((4, 3), value), "poisson")
    assert pearson_dispersion(problem) == pytest.approx(1e-12 * least / 6, rel=1e-9, abs=0)


def test_dispersion_is_never_zero():
    assert pearson_dispersion(make_problem(np.zeros((4, 3)), "poisson")) > 0


def test_dispersion_of_two_by_two_has_one_degree_of_freedom():
    X = np.array([[5.0, 1.0], [2.0, 9.0]])
    expected = np.outer(X.sum(axis=1), X.sum(axis=0)) / X.sum()
    found = pearson_dispersion(make_problem(X, "poisson"))
    assert found == pytest.approx(np.sum((X - expected) ** 2 / expected))


def test_blocks_of_zeros_add_no_dispersion():
    X = np.random.default_rng(0).poisson(3.0, size=(12, 9)).astype(float)
    rows, columns = np.arange(12) % 2, np.arange(9) % 3
    X[np.ix_(rows == 0, columns == 1)] = 0
    problem = make_problem(X, "poisson")
    blocks = make_blocks(problem, rows, columns)
    expected = np.outer(X.sum(axis=1), X.sum(axis=0)) / X.sum()
    expected = expected * (blocks.total / blocks.exposure)[rows][:, columns]
    held = expected > 0
    explicit = np.sum((X - expected)[held] ** 2 / expected[held]) / (11 * 8 - 6)
    assert pearson_dispersion(problem, blocks) == pytest.approx(explicit)


def test_weights_of_two_are_weights():
    X = np.random.default_rng(0).normal(size=(5, 4))
    for make in (np.asarray, sp.csr_array):
        problem = make_problem(make(X), "gaussian", np.full(4, 2.0))
        values = problem.axes[0].values
        np.testing.assert_allclose(values.toarray() if sp.issparse(values) else values, 2 * X)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_degrees_are_double_whatever_the_precision_of_the_values(make):
    X = np.random.default_rng(0).poisson(3.0, size=(12, 9)).astype(np.float32)
    axis_view = make_problem(make(X), "poisson").axes[0]
    assert axis_view.exposure.dtype == axis_view.partner_exposure.dtype == np.float64
    # In single precision one more than the largest is the largest again.
    largest = make(np.array([[2.0**24], [1.0], [1.0]], dtype=np.float32))
    np.testing.assert_array_equal(problems.degrees(largest)[1], [2.0**24 + 2])


def test_values_without_weights_are_not_copied(planted, family):
    X = planted[0]
    sparse = sp.csr_array(X)
    assert np.shares_memory(make_problem(X, family).axes[0].values, X)
    assert np.shares_memory(make_problem(sparse, family).axes[0].values.data, sparse.data)


def test_last_points_of_the_largest_clusters_are_set_apart():
    labels = np.array([0, 1, 1, 0, 1])
    np.testing.assert_array_equal(problems.set_apart(labels, 3), [0, 1, 1, 0, 2])
    np.testing.assert_array_equal(problems.set_apart(labels, 4), [0, 1, 1, 3, 2])
    for enough in (1, 2):
        np.testing.assert_array_equal(problems.set_apart(labels, enough), [0, 1, 1, 0, 1])


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_rows_are_stacked_into_an_array(make):
    X, labels = np.random.default_rng(0).normal(size=(7, 4)), np.array([0, 2, 0, 1, 2, 2, 0])
    stacked = problems.stack(make(X), labels, 4)
    assert isinstance(stacked, np.ndarray)
    np.testing.assert_allclose(stacked, [X[labels == k].sum(axis=0) for k in range(4)])


def test_soft_plans_that_fill_the_cache_may_meet_dense_values(planted, family, monkeypatch):
    problem = make_problem(planted[0], family)
    plans = [np.random.default_rng(0).dirichlet(np.ones(4), n) for n in (30, 40)]
    expected = [f.profiles(p, 4).total for f, p in zip(problem.axes, plans, strict=True)]
    monkeypatch.setattr(problems, "_CACHE_BYTES", 0)
    for axis_view, plan, total in zip(problem.axes, plans, expected, strict=True):
        np.testing.assert_array_equal(axis_view.profiles(plan, 4).total, total)


def test_blocks_remember_their_sweeps(planted, family):
    problem = make_problem(planted[0], family)
    assert make_blocks(problem, *planted[1:]).n_sweeps == 0
    assert make_blocks(problem, *planted[1:], 5).n_sweeps == 5
