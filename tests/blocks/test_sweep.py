from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from ccot.blocks.problem import make_blocks, make_problem
from ccot.blocks.sweep import (
    _transport,
    assign,
    balanced_plan,
    excess_share,
    log_marginal,
    mass_moved,
    settle,
    share_out,
    soft_plan,
    sweep,
)
from ccot.metrics import error_rate
from ccot.transport.sinkhorn import sinkhorn


@pytest.mark.parametrize("temperatures", [(0.0,), (1.0,), (4.0, 1.0, 0.0)], ids=str)
@pytest.mark.parametrize("balanced", [False, True])
def test_sweeps_mend_spoiled_labels(planted, family, temperatures, balanced):
    # As many rows and columns in every cluster, so that the balanced plan has a chance.
    rows = np.concatenate([np.flatnonzero(planted[1] == k)[:12] for k in range(2)])
    columns = np.concatenate([np.flatnonzero(planted[2] == k)[:6] for k in range(3)])
    true_rows, true_columns = np.repeat([0, 1], 12), np.repeat([0, 1, 2], 6)
    problem = make_problem(planted[0][rows][:, columns], family)
    spoiled = true_rows.copy(), true_columns.copy()
    spoiled[0][[0, 20]] = 1 - spoiled[0][[0, 20]]
    spoiled[1][[3, 9]] = 2
    found = sweep(
        problem, make_blocks(problem, *spoiled), temperatures=temperatures, balanced=balanced
    )
    assert error_rate(true_rows, found.labels[0]) == 0
    assert error_rate(true_columns, found.labels[1]) == 0
    assert 0 < found.n_sweeps <= 30 * len(temperatures)


def test_where_nothing_moves_sweeps_stop(planted, family):
    problem = make_problem(planted[0], family)
    settled = sweep(problem, make_blocks(problem, *planted[1:]))
    again = sweep(problem, settled)
    assert again.n_sweeps == settled.n_sweeps + 1
    for one, other in zip(settled.labels, again.labels, strict=True):
        np.testing.assert_array_equal(one, other)


def test_sparse_sweeps_are_dense_sweeps(planted, family):
    X = planted[0]
    rng = np.random.default_rng(5)
    start = rng.integers(0, 4, X.shape[0]), rng.integers(0, 4, X.shape[1])
    found = [
        sweep(problem, make_blocks(problem, *start))
        for problem in (make_problem(X, family), make_problem(sp.csr_array(X), family))
    ]
    for one, other in zip(found[0].labels, found[1].labels, strict=True):
        np.testing.assert_array_equal(one, other)


def test_soft_plans_are_softmax():
    gain = np.array([[0.0, np.log(3.0)], [1e4, 0.0], [-1e4, -1e4]])
    expected = [[0.25, 0.75], [1.0, 0.0], [0.5, 0.5]]
    np.testing.assert_allclose(soft_plan(gain), expected, atol=1e-12)
    np.testing.assert_allclose(soft_plan(gain, 2.0)[0, 1], np.sqrt(3) / (1 + np.sqrt(3)))


def test_balanced_plans_share_the_points_out():
    gain = np.random.default_rng(0).normal(size=(60, 4)) + np.array([5.0, 0.0, 0.0, 0.0])
    plan = balanced_plan(gain)
    np.testing.assert_allclose(plan.sum(axis=1), 1)
    np.testing.assert_allclose(plan.sum(axis=0), 15, rtol=1e-3)
    # The semi-relaxed plan does not.
    assert soft_plan(gain).sum(axis=0)[0] > 40


@pytest.mark.parametrize(("n_points", "n_clusters"), [(12, 3), (13, 3), (14, 3), (3, 3), (7, 5)])
def test_points_shared_out_make_clusters_of_equal_size(n_points, n_clusters):
    plan = soft_plan(np.random.default_rng(n_points).normal(size=(n_points, n_clusters)))
    plan[:, 0] += 3.0
    sizes = np.bincount(share_out(plan), minlength=n_clusters)
    assert sizes.sum() == n_points
    assert sizes.max() - sizes.min() <= 1
    # Where equal sizes are what everybody wants, everybody gets it.
    wanted = np.arange(n_points) % n_clusters
    np.testing.assert_array_equal(share_out(np.eye(n_clusters)[wanted] + 0.1), wanted)


def test_marginals_are_log_shares_and_finite():
    labels = np.array([0, 0, 2, 0])
    hard, soft = log_marginal(labels, 3), log_marginal(np.eye(3)[labels], 3)
    np.testing.assert_allclose(np.exp(hard), [0.75, 0.0, 0.25], atol=1e-290)
    np.testing.assert_array_equal(hard, soft)
    assert np.isfinite(hard).all()


def test_confidence_is_the_share_above_chance(planted, family):
    problem = make_problem(planted[0], family)
    blocks = make_blocks(problem, *planted[1:])
    _, sure = assign(problem, blocks, 0)
    assert sure.min() > 0.9
    assert sure.max() <= 1
    # A row halfway between the clusters is not sure of either.
    X = planted[0].copy()
    X[0] = np.mean([X[planted[1] == k].mean(axis=0) for k in range(2)], axis=0)
    _, unsure = assign(*[p := make_problem(X, family), make_blocks(p, *planted[1:])], 0)
    assert unsure[0] < unsure[1:].min()
    # A wrong label is put right; where it has to stay, it is no better than chance.
    flipped = planted[1].copy()
    flipped[5] = 1 - flipped[5]
    wrong = make_blocks(problem, flipped, planted[2])
    np.testing.assert_array_equal(assign(problem, wrong, 0)[0], planted[1])
    labels, sure = assign(problem, wrong, 0, balanced=True)
    np.testing.assert_array_equal(labels, flipped)
    assert sure[5] < 0.01


@pytest.mark.parametrize("cluster", [0, 1])
def test_no_cluster_loses_all_its_points_at_the_end(cluster):
    """A row of noise that is a cluster of its own had rather go to the others."""
    X = np.random.default_rng(0).normal(size=(20, 4))
    X[0] = X[1:].mean(axis=0)
    problem = make_problem(X, "gaussian")
    alone = np.array([cluster] + [1 - cluster] * 19)
    blocks = make_blocks(problem, alone, np.zeros(4, int))
    labels, sure = assign(problem, blocks, 0)
    np.testing.assert_array_equal(labels, alone)
    assert sure[0] == 0
    assert sure[1:].min() > 0.5


def test_confidence_of_a_single_cluster_is_full_but_for_empty_points():
    X = np.ones((4, 3))
    X[1] = 0
    problem = make_problem(X, "poisson")
    blocks = make_blocks(problem, np.zeros(4, int), np.zeros(3, int))
    np.testing.assert_array_equal(assign(problem, blocks, 0)[1], [1, 0, 1, 1])


def test_a_soft_sweep_moves_rows_by_their_gains_then_columns(planted, family):
    X, rows, columns = planted
    problem = make_problem(X, family)
    start = make_blocks(problem, rows, columns, n_sweeps=5)
    swept = sweep(problem, start, temperatures=(7.0,), max_iter=1)
    assert swept.n_sweeps == 6
    plans = [np.eye(2)[rows], np.eye(3)[columns]]
    for axis, values in enumerate((X, X.T)):
        table = problem.table(*plans, (2, 3))
        terms = [term if axis == 0 else term.T for term in problem.terms(*table)]
        axis_view, partner = problem.axes[axis], plans[1 - axis]
        exposure = np.outer(axis_view.exposure, axis_view.partner_exposure)
        gain = values @ partner @ terms[0].T - exposure @ partner @ terms[1].T
        shares = plans[axis].mean(axis=0)
        gain = gain / problem.noise(*table) + np.log(np.maximum(shares, 1e-300))
        plans[axis] = soft_plan(gain, 7.0)
        np.testing.assert_allclose(swept.plans[axis], plans[axis], rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(swept.labels[axis], plans[axis].argmax(axis=1))


def test_sweeps_stop_where_little_enough_moves(planted, family):
    X, rows, columns = planted
    problem = make_problem(X, family)
    spoiled = rows.copy()
    spoiled[:4] = 1 - spoiled[:4]
    start = make_blocks(problem, spoiled, columns)
    # Four of seventy points move in the first sweep, and none in the second.
    assert sweep(problem, start).n_sweeps == 2
    assert sweep(problem, start, tol=4 / 70).n_sweeps == 1
    assert sweep(problem, start, tol=3.9 / 70).n_sweeps == 2


def test_mass_moved_is_half_of_what_changed():
    assert mass_moved(np.array([0, 1, 1]), np.array([0, 0, 1])) == 1
    assert mass_moved(np.eye(3), np.eye(3)) == 0
    assert mass_moved(np.eye(3)[[0, 1]], np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])) == 1.5
    assert mass_moved(np.array([0, 1]), np.eye(2)) == np.inf


@pytest.mark.parametrize("balanced", [False, True])
def test_settling_is_a_soft_sweep(planted, family, balanced):
    problem = make_problem(planted[0], family)
    start = make_blocks(problem, np.arange(40) % 3, np.arange(30) % 3)
    settled = settle(problem, start, **({"balanced": True} if balanced else {}))
    swept = sweep(problem, start, temperatures=(1.0,), max_iter=30, tol=1e-3, balanced=balanced)
    assert settled.n_sweeps == swept.n_sweeps
    for one, other in zip(settled.plans, swept.plans, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_balanced_sweep_ends_with_equal_sizes_whatever_the_truth(planted, family):
    problem = make_problem(planted[0], family)
    start = make_blocks(problem, np.arange(40) // 30, np.arange(30) // 14)
    for temperatures in ((1.0,), (0.0,), (3.0, 0.0)):
        found = sweep(problem, start, temperatures=temperatures, max_iter=3, balanced=True)
        for labels in found.labels:
            assert np.ptp(np.bincount(labels)) <= 1
        assert (found.plans is not None) == (temperatures == (1.0,))


@pytest.mark.parametrize("temperature", [0.0, 1.0, 4.0])
def test_balanced_transport_shares_out_by_gains(planted, family, temperature):
    """A hard plan is the plan of temperature one, shared out: at two, others choose first."""
    problem = make_problem(planted[0][:, :3], family)
    labels = np.arange(40) * 7 // 40, np.arange(3) % 2
    profiles = problem.axes[0].profiles(labels[1], 2)
    gain = profiles.gain(*problem.terms_in_nats(*profiles.blocks(labels[0], 7)))
    expected = balanced_plan(gain, temperature or 1.0)
    plan = _transport(problem, profiles, labels[0], 7, temperature, balanced=True)
    np.testing.assert_array_equal(plan, expected if temperature else share_out(expected))


def test_settling_has_a_limit(planted, family):
    problem = make_problem(planted[0], family)
    start = make_blocks(problem, np.arange(40) % 3, np.arange(30) % 3)
    assert settle(problem, start, max_iter=2, tol=0.0).n_sweeps == 2


def test_the_surest_points_choose_first():
    plan = np.array([[0.6, 0.4], [0.9, 0.1], [0.7, 0.3], [0.8, 0.2]])
    np.testing.assert_array_equal(share_out(plan), [1, 0, 1, 0])
    # One of five is left over, and goes where it likes.
    np.testing.assert_array_equal(share_out(np.vstack([plan, [0.55, 0.45]])), [1, 0, 0, 0, 1])


def test_balanced_plans_have_a_temperature():
    gain = np.random.default_rng(0).normal(size=(20, 3))
    np.testing.assert_allclose(balanced_plan(gain, 2.0), balanced_plan(gain / 2))


def test_balanced_plans_are_left_as_they_are_after_a_hundred_iterations():
    """Where points are this sure, clusters would have the same mass after some hundreds."""
    gain = 100 * np.random.default_rng(0).normal(size=(20, 3))
    plan = balanced_plan(gain)
    expected = soft_plan(gain + sinkhorn(gain, max_iter=100).log_column)
    np.testing.assert_array_equal(plan, expected)
    assert np.ptp(plan.sum(axis=0)) > 0.5


def test_excess_is_the_share_beyond_chance():
    plan = np.array([[0.7, 0.2, 0.1], [0.2, 0.5, 0.3], [0.1, 0.1, 0.8], [1.0, 0.0, 0.0]])
    found = excess_share(plan, np.array([0, 0, 2, 0]), np.array([False, False, False, True]))
    np.testing.assert_allclose(found, [(0.7 - 1 / 3) * 1.5, 0.0, 0.7, 0.0])
    np.testing.assert_array_equal(excess_share(np.ones((2, 1)), np.zeros(2, int), np.zeros(2)), 1)
    np.testing.assert_allclose(
        excess_share(np.array([[0.8, 0.2]]), np.zeros(1, int), np.zeros(1)), 0.6
    )


def test_confidence_is_read_off_one_more_soft_plan(planted, family):
    X, rows, columns = planted
    problem = make_problem(X[:, :6], family)
    blocks = make_blocks(problem, rows, columns[:6])
    plan = sweep(problem, blocks, temperatures=(1.0,), max_iter=1).plans[0]
    expected = np.clip(2 * plan[np.arange(40), rows] - 1, 0, 1)
    np.testing.assert_allclose(assign(problem, blocks, 0)[1], expected, rtol=1e-12)


def test_confidence_of_a_soft_plan_is_its_own(planted, family):
    """A plan knows more than one more sweep from its blocks would say."""
    X, rows, columns = planted
    problem, rng = make_problem(X, family), np.random.default_rng(0)
    plans = rng.dirichlet(np.ones(2), len(rows)), rng.dirichlet(np.ones(3), len(columns))
    blocks = make_blocks(problem, *(plan.argmax(axis=1) for plan in plans))
    for axis, plan in enumerate(plans):
        labels, sure = assign(problem, replace(blocks, plans=plans), axis)
        expected = excess_share(plan, labels, problem.axes[axis].is_empty())
        np.testing.assert_array_equal(sure, expected)
