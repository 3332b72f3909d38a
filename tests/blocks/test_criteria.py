from dataclasses import replace
from math import factorial

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import bernoulli, norm

from ccot.blocks.criteria import (
    best_cuts,
    bic,
    evidence,
    icl,
    is_saturated,
    jump_scores,
    log_likelihood,
    mean_costs,
    ranked,
)
from ccot.blocks.hierarchy import Hierarchy, Merge, build_hierarchy
from ccot.blocks.problem import information, make_blocks, make_problem
from ccot.blocks.sweep import sweep
from ccot.datasets import load_simulated


def explicit_icl(likelihood, rows, columns):
    """The formula of the module, term by term."""
    n, d = len(rows), len(columns)
    sizes = np.bincount(rows), np.bincount(columns)
    g, m = len(sizes[0]), len(sizes[1])
    partition = sum(np.sum(s * np.log(s / s.sum())) for s in sizes)
    price = (g - 1) * np.log(n) + (m - 1) * np.log(d) + g * m * np.log(n * d)
    return likelihood + partition - price / 2


def test_icl_of_zeros_and_ones_is_its_formula():
    rng = np.random.default_rng(0)
    rows, columns = rng.integers(0, 2, 30), rng.integers(0, 3, 25)
    X = (rng.uniform(size=(30, 25)) < 0.5).astype(float)
    problem = make_problem(X, "bernoulli")
    blocks = make_blocks(problem, rows, columns)
    means = (blocks.total / blocks.exposure)[rows][:, columns]
    likelihood = bernoulli.logpmf(X, means).sum()
    assert icl(problem, blocks) == pytest.approx(explicit_icl(likelihood, rows, columns))
    assert bic(problem, blocks) == pytest.approx(likelihood - 0.5 * 6 * np.log(750))


def test_gaussian_likelihoods_are_right_up_to_one_constant():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 25))
    problem = make_problem(X, "gaussian")
    gaps = []
    for n_clusters in (1, 2, 4):
        blocks = make_blocks(problem, np.arange(30) % n_clusters, np.arange(25) % n_clusters)
        means = (blocks.total / blocks.exposure)[blocks.labels[0]][:, blocks.labels[1]]
        sigma = np.sqrt(np.mean((X - means) ** 2))
        exact = norm.logpdf(X, means, sigma).sum()
        gaps.append(exact - log_likelihood(problem, information(problem, blocks)))
    np.testing.assert_allclose(gaps, gaps[0], rtol=1e-9)


def test_dispersion_divides_likelihoods_of_counts():
    problem = make_problem(np.ones((3, 3)), "poisson")
    assert log_likelihood(problem.with_dispersion(4.0), 8.0) == 2


def test_every_cut_is_scored_by_its_icl(planted, family):
    problem = make_problem(planted[0], family)
    rng = np.random.default_rng(0)
    fine = make_blocks(problem, rng.integers(0, 6, 40), rng.integers(0, 5, 30))
    hierarchy = build_hierarchy(problem, fine)
    found = best_cuts(problem, fine, hierarchy)
    assert len(found) == 30
    assert [c.score for c in found] == sorted((c.score for c in found), reverse=True)
    for candidate in found:
        labels = [
            hierarchy.cut(axis, number)[fine.labels[axis]]
            for axis, number in enumerate(candidate.numbers)
        ]
        expected = icl(problem, make_blocks(problem, *labels))
        assert candidate.score == pytest.approx(expected, rel=1e-9)
        assert candidate.criterion == "icl"


def test_given_numbers_are_not_chosen(planted, family):
    problem = make_problem(planted[0], family)
    fine = make_blocks(problem, np.arange(40) % 6, np.arange(30) % 5)
    hierarchy = build_hierarchy(problem, fine)
    found = best_cuts(problem, fine, hierarchy, (3, None))
    assert {c.numbers for c in found} == {(3, m) for m in range(1, 6)}
    assert [c.numbers for c in best_cuts(problem, fine, hierarchy, (2, 4))] == [(2, 4)]
    # There are no more clusters than the finest ones.
    assert [c.numbers for c in best_cuts(problem, fine, hierarchy, (9, 5))] == [(6, 5)]


def test_saturated_cuts_are_left_out_unless_asked_for(family):
    problem = make_problem(np.random.default_rng(0).integers(0, 2, (4, 4)) * 1.0, family)
    fine = make_blocks(problem, np.arange(4), np.arange(4))
    hierarchy = build_hierarchy(problem, fine)
    free = {c.numbers for c in best_cuts(problem, fine, hierarchy)}
    assert free == {(g, m) for g in range(1, 5) for m in range(1, 5) if g * m <= 8}
    assert best_cuts(problem, fine, hierarchy, (4, None))[-1].numbers[0] == 4
    assert len(best_cuts(problem, fine, hierarchy, (4, None))) == 4


def test_a_single_block_may_always_be_cut():
    """Of three entries, and of one."""
    three = np.array([[1.0, 2.0], [3.0, np.nan]])
    for X, labels in ((three, np.arange(2)), (np.ones((1, 1)), np.zeros(1, int))):
        problem = make_problem(X, "gaussian")
        fine = make_blocks(problem, labels, labels)
        found = best_cuts(problem, fine, build_hierarchy(problem, fine))
        assert [c.numbers for c in found] == [(1, 1)]


def test_a_side_of_one_cluster_has_one_cut(planted, family):
    problem = make_problem(planted[0], family)
    fine = make_blocks(problem, np.zeros(40, int), np.arange(30) % 5)
    found = best_cuts(problem, fine, build_hierarchy(problem, fine))
    assert sorted(c.numbers for c in found) == [(1, m) for m in range(1, 6)]


def test_of_equal_scores_the_cut_of_fewer_column_clusters_comes_first():
    """A matrix without values, cut into equally many clusters on both sides."""
    problem = make_problem(np.zeros((64, 64)), "bernoulli")
    labels = np.arange(64) % 8
    fine = make_blocks(problem, labels, labels)
    found = best_cuts(problem, fine, build_hierarchy(problem, fine))
    ranks = [(-c.score, *c.numbers[::-1]) for c in found]
    assert len({c.score for c in found}) < len(found)
    assert ranks == sorted(ranks)


def test_planted_numbers_have_the_best_icl(planted, family):
    X, rows, columns = planted
    problem = make_problem(X, family)
    fine = make_blocks(problem, 3 * rows + np.arange(40) % 3, 3 * columns + np.arange(30) % 3)
    assert best_cuts(problem, fine, build_hierarchy(problem, fine))[0].numbers == (2, 3)


@pytest.mark.parametrize(
    ("scores", "order"),
    [
        ([3.0, 1.0, 2.0], [0, 2, 1]),
        ([-3.0, -1.0, -2.0], [1, 2, 0]),
        ([5.0, 5.0 + 1e-10, 7.0], [2, 0, 1]),
        ([5.0, 5.1, 5.0 + 1e-10, 5.1 + 1e-10], [1, 3, 0, 2]),
        ([-1000.0 - 1e-7, -1000.0, -1001.0], [0, 1, 2]),
        ([-1000.0 - 1e-5, -1000.0], [1, 0]),
        ([], []),
    ],
)
def test_scores_that_differ_by_rounding_do_not_change_the_order(scores, order):
    assert ranked(iter(range(len(scores))), lambda place: scores[place]) == order


def test_blocks_of_single_entries_are_saturated():
    problem = make_problem(np.eye(4), "gaussian")
    assert is_saturated(problem, (4, 4))
    assert is_saturated(problem, (3, 3))
    assert not is_saturated(problem, (2, 4))
    single = make_problem(np.where(np.eye(2) * [1, 0], 1.0, np.nan), "gaussian")
    assert not is_saturated(single, (1, 1))
    three = make_problem(np.array([[1.0, 2.0], [3.0, np.nan]]), "gaussian")
    assert is_saturated(three, (1, 2))


def test_effects_have_their_price():
    problem = make_problem(np.random.default_rng(0).normal(size=(9, 8)), "gaussian")
    blocks = make_blocks(problem, np.arange(9) % 2, np.arange(8) % 2)
    priced = replace(problem, n_effects=7)
    assert bic(priced, blocks) == pytest.approx(bic(problem, blocks) - 3.5 * np.log(72))


@pytest.mark.parametrize("k", [2, 3, 5, 7])
def test_scores_peak_where_costs_jump(k):
    costs = 1.0 / np.arange(1, 20)
    costs[: k - 1] *= 50
    scores = jump_scores(costs, limit=10)
    assert set(scores) == set(range(2, 11))
    assert max(scores, key=lambda number: scores[number]) == k
    assert scores[k] == pytest.approx(np.log(50), rel=1e-9)


def test_without_a_jump_no_number_stands_out():
    scores = jump_scores(7.0 / np.arange(1, 20), limit=30)
    assert set(scores) == set(range(2, 11))  # the lower half of the tree is not considered
    np.testing.assert_allclose(list(scores.values()), 0, atol=1e-12)
    assert jump_scores(np.empty(0), limit=5) == {}
    assert np.isfinite(list(jump_scores(np.zeros(9), limit=5).values())).all()


def test_scores_compare_three_costs_on_either_side():
    costs = np.random.default_rng(0).uniform(1, 9, 11)
    level = np.log(costs * np.arange(1, 12))
    scores = jump_scores(costs, limit=9)
    assert set(scores) == {2, 3, 4, 5, 6}
    assert scores[2] == pytest.approx(level[0] - level[1:4].mean())
    assert scores[3] == pytest.approx(level[:2].mean() - level[2:5].mean())
    assert scores[6] == pytest.approx(level[2:5].mean() - level[5:8].mean())
    assert set(jump_scores(costs, limit=4)) == {2, 3, 4}
    assert set(jump_scores(costs[:10], limit=9)) == {2, 3, 4, 5}


def make_chain(*costs):
    """A hierarchy of rows whose merges cost so much, the last one first."""
    merges = tuple(Merge(0, 0, k + 1, cost) for k, cost in enumerate(costs[::-1]))
    return Hierarchy((len(costs) + 1, 1), merges)


def test_costs_of_nothing_have_a_floor():
    np.testing.assert_allclose(
        mean_costs([make_chain(8.0, 0.0), make_chain(2.0, 4.0, 1.0)], 0), [4.0, np.sqrt(4 * 8e-12)]
    )
    assert len(mean_costs([make_chain(8.0), make_chain()], 0)) == 0
    assert np.isfinite(np.log(mean_costs([make_chain(0.0, 0.0)], 0))).all()
    level = np.log([1.0, 1e-12, 1e-12]) + np.log([1, 2, 3])
    assert jump_scores(np.array([1.0, 0.0, 0.0]), 9)[2] == pytest.approx(
        level[0] - level[1:].mean()
    )


def test_costs_of_several_starts_are_averaged_geometrically(planted, family):
    problem = make_problem(planted[0], family)
    trees = [
        build_hierarchy(problem, make_blocks(problem, np.arange(40) % k, np.arange(30) % 4))
        for k in (6, 8)
    ]
    expected = np.sqrt(trees[0].costs(0) * trees[1].costs(0)[:5])
    np.testing.assert_allclose(mean_costs(trees, 0), expected, rtol=1e-9)


def soft_from(problem, labels):
    start = make_blocks(problem, *labels)
    return sweep(problem, start, temperatures=(1.0,), max_iter=100, tol=1e-5)


@pytest.fixture(scope="module")
def noisy():
    sigma = 1.2 * load_simulated("D3", random_state=0, overlap="calibrated").sigma
    return load_simulated("D3", random_state=2, sigma=sigma)


def test_evidence_of_a_hard_plan_is_that_of_its_labels(noisy):
    problem = make_problem(noisy.data, "gaussian")
    hard = make_blocks(problem, noisy.row_labels, noisy.column_labels)
    one_hot = tuple(np.eye(labels.max() + 1)[labels] for labels in hard.labels)
    soft = replace(hard, plans=one_hot)
    assert evidence(problem, soft) == pytest.approx(evidence(problem, hard), rel=1e-12)


def explicit_bound(X, rows, columns):
    """The formula of the module for soft plans, term by term, with their entropy."""
    masses = rows.sum(axis=0), columns.sum(axis=0)
    total, exposure = rows.T @ X @ columns, np.outer(*masses)
    sizes = [len(mass) for mass in masses]
    spreads = [np.diag(plan.sum(axis=0)) - plan.T @ plan for plan in (rows, columns)]
    system = np.diag(exposure.ravel()) - np.kron(*spreads)
    means = np.linalg.solve(system, total.ravel()).reshape(sizes)
    noise = (np.sum(X**2) - np.sum(means * total)) / X.size
    # Shares are integrated over a flat prior; any order of the clusters will do.
    partition = sum(
        gammaln(len(mass)) + gammaln(mass + 1).sum() - gammaln(mass.sum() + len(mass))
        for mass in masses
    )
    orders = sum(np.log(factorial(size)) for size in sizes)
    # Clusters that overlap by more than half are hardly told apart.
    known = sum(
        np.sum(np.log(np.maximum(np.linalg.eigvals((plan.T @ plan) / plan.sum(axis=0)).real, 0.5)))
        for plan in (rows, columns)
    )
    held = means * exposure
    variance = (np.sum(X**2) - np.sum(held**2 / exposure)) / X.size / exposure
    deviation = (means - held.sum() / X.size) ** 2
    largest = max(deviation.max(), variance.min())
    prior = max(
        -0.5 * np.sum(np.log(1 + tau / variance) + deviation / (tau + variance))
        for tau in np.geomspace(variance.min() / 1000, largest, 60)
    ) - 0.5 * np.log(exposure.size)
    entropy = -sum(np.sum(plan * np.log(np.maximum(plan, 1e-300))) for plan in (rows, columns))
    return -X.size / 2 * np.log(noise) + partition + orders - known / 2 + prior + entropy


def test_evidence_is_its_formula(noisy):
    problem = make_problem(noisy.data, "gaussian")
    hard = make_blocks(problem, noisy.row_labels, noisy.column_labels)
    one_hot = [np.eye(labels.max() + 1)[labels] for labels in hard.labels]
    assert evidence(problem, hard) == pytest.approx(explicit_bound(noisy.data, *one_hot), rel=1e-11)
    soft = soft_from(problem, hard.labels)
    bound = explicit_bound(noisy.data, *soft.plans)
    assert bound > evidence(problem, replace(soft, plans=None)) + 1
    assert evidence(problem, soft) == pytest.approx(bound, rel=1e-11)
    # A vague plan says less than the labels read off it.
    vague = replace(hard, plans=tuple(0.5 * plan + 0.5 / plan.shape[1] for plan in one_hot))
    assert evidence(problem, vague) == evidence(problem, hard)


def test_a_cluster_in_two_equal_halves_gains_little(noisy):
    """The less halves are told apart the cheaper are their shares, but not without end."""
    problem = make_problem(noisy.data, "gaussian")
    rows, columns = (np.eye(n.max() + 1)[n] for n in (noisy.row_labels, noisy.column_labels))
    whole = explicit_bound(noisy.data, rows, columns)
    for lean in (0.1, 0.01):
        share = np.where(np.arange(len(rows)) % 2, 0.5 + lean, 0.5 - lean)
        halved = np.column_stack([rows[:, 0] * share, rows[:, 0] * (1 - share), rows[:, 1:]])
        blocks = make_blocks(problem, halved.argmax(axis=1), noisy.column_labels)
        found = evidence(problem, replace(blocks, plans=(halved, columns)))
        assert found == pytest.approx(explicit_bound(noisy.data, halved, columns), rel=1e-11)
        assert found < whole


@pytest.mark.parametrize("sizes", [(1, 11), (6, 6), (3, 4, 5)], ids=str)
@pytest.mark.parametrize("height", [0.0, 2.0])
def test_evidence_of_few_blocks_is_its_formula(sizes, height):
    """A cluster of one, two blocks alone, and clusters that are none."""
    rows = np.repeat(np.arange(len(sizes)), sizes)
    X = height * rows[:, None] + np.random.default_rng(0).normal(size=(12, 8))
    problem = make_problem(X, "gaussian")
    blocks = make_blocks(problem, rows, np.zeros(8, int))
    expected = explicit_bound(X, np.eye(len(sizes))[rows], np.ones((8, 1)))
    assert evidence(problem, blocks) == pytest.approx(expected)


def test_evidence_of_a_single_block_has_no_prior():
    X = np.random.default_rng(0).normal(size=(9, 8)) + 3
    problem = make_problem(X, "gaussian")
    flat = make_blocks(problem, np.zeros(9, int), np.zeros(8, int))
    assert evidence(problem, flat) == pytest.approx(-36 * np.log(X.var()))


def test_a_perfect_fit_has_a_finite_likelihood():
    X = np.repeat([[0.0, 3.0], [5.0, 1.0]], 4, axis=1)
    problem = make_problem(X, "gaussian")
    perfect = make_blocks(problem, np.arange(2), np.repeat([0, 1], 4))
    held = log_likelihood(problem, information(problem, perfect))
    assert held == pytest.approx(-8 * np.log(1e-12 * np.sum(X**2) / 16))
    assert np.isfinite(evidence(problem, perfect))


def test_evidence_sees_clusters_that_icl_misses_under_noise(noisy):
    problem = make_problem(noisy.data, "gaussian")
    truth = soft_from(problem, (noisy.row_labels, noisy.column_labels))
    fewer = soft_from(problem, (0 * noisy.row_labels, noisy.column_labels > 1))
    assert icl(problem, fewer) > icl(problem, truth)
    assert evidence(problem, truth) > evidence(problem, fewer) + 5


@pytest.mark.parametrize("shape", [(150, 100), (60, 40), (200, 20)])
def test_evidence_of_noise_is_highest_for_a_single_block(shape):
    rng = np.random.default_rng(0)
    problem = make_problem(rng.normal(size=shape), "gaussian")
    flat = make_blocks(problem, *(np.zeros(n, dtype=int) for n in shape))
    for n_clusters in (2, 3):
        start = tuple(rng.integers(n_clusters, size=n) for n in shape)
        assert evidence(problem, soft_from(problem, start)) < evidence(problem, flat)


def test_evidence_differences_do_not_depend_on_unit_or_origin(noisy):
    def gap(matrix):
        problem = make_problem(matrix, "gaussian")
        truth = make_blocks(problem, noisy.row_labels, noisy.column_labels)
        flat = make_blocks(problem, 0 * noisy.row_labels, 0 * noisy.column_labels)
        return evidence(problem, truth) - evidence(problem, flat)

    assert gap(1e-3 * noisy.data) == pytest.approx(gap(noisy.data), rel=1e-6)
    assert gap(1e-9 * noisy.data) == pytest.approx(gap(noisy.data), rel=1e-6)
    assert gap(noisy.data + 100) == pytest.approx(gap(noisy.data), rel=1e-4)


def test_evidence_of_counts_is_icl():
    problem = make_problem(np.random.default_rng(0).poisson(2.0, size=(20, 15)) * 1.0, "poisson")
    blocks = make_blocks(problem, np.arange(20) % 3, np.arange(15) % 2)
    assert evidence(problem, blocks) == icl(problem, blocks)


def test_evidence_of_a_soft_plan_survives_large_values():
    rng = np.random.default_rng(0)
    rows, columns = np.arange(6000) % 3, np.arange(60) % 3
    means = np.array([[4.0, 0.5, 1.5], [1.8, 4.5, 1.1], [1.5, 1.5, 5.5]])
    matrix = means[rows][:, columns] + 0.003 * rng.normal(size=(6000, 60))
    problem = make_problem(matrix, "gaussian")
    finer = np.where((columns == 0) & (rng.random(60) < 0.5), 3, columns)
    truth = make_blocks(problem, rows, columns)
    assert evidence(problem, soft_from(problem, (rows, finer))) < evidence(problem, truth)
