"""The reaction of rows and columns, against sums over every assignment there is."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import logsumexp

from ccot.blocks import tap as reaction
from ccot.blocks.problem import make_blocks, make_problem
from ccot.blocks.sweep import settle
from ccot.blocks.tap import _move, reacts, soft_sweep, tap_correction
from ccot.datasets import load_simulated
from ccot.runtime.backends import choose_backend


def overlapping(seed, shape=(7, 6), noise=1.0):
    rng = np.random.default_rng(seed)
    means = np.array([[1.0, -0.5], [-0.4, 0.3]])
    rows, columns = (rng.integers(0, 2, size) for size in shape)
    return means[rows][:, columns] + noise * rng.normal(size=shape)


def planted_halves(X):
    """A start that is not far from the blocks."""
    leading = np.linalg.svd(X - X.mean())
    return (leading[0][:, 0] > 0).astype(int), (leading[2][0] > 0).astype(int)


def random_plans(shape, numbers, seed=0):
    rng = np.random.default_rng(seed)
    return tuple(rng.dirichlet(np.ones(k), n) for n, k in zip(shape, numbers, strict=True))


def free_energy(X, plans, means, noise, with_reaction=True):
    """Likelihood of plans with entropy, cell by cell; marginals are the plans' own."""
    rows, columns = plans
    total = 0.0
    for x, row, column in (
        (X[i, j], rows[i], columns[j]) for i in range(X.shape[0]) for j in range(X.shape[1])
    ):
        both = np.outer(row, column)
        mean = np.sum(both * means)
        squares = np.sum(both * means**2)
        if with_reaction:
            # What is left of the variance when rows alone, and columns alone, explain their part.
            by_row, by_column = np.sum(row * (means @ column) ** 2), column @ (row @ means) ** 2
            squares -= squares - by_row - by_column + mean**2
        total -= (x**2 - 2 * x * mean + squares) / (2 * noise) + 0.5 * np.log(2 * np.pi * noise)
    for plan in plans:
        share = plan.mean(axis=0)
        total += np.sum(plan * (np.log(share) - np.log(np.maximum(plan, 1e-300))))
    return float(total)


def log_likelihood(X, shares, means, noise):
    """The logarithm of the sum over all assignments of rows and of columns."""
    n_columns = X.shape[1]
    terms = []
    for columns in product(range(means.shape[1]), repeat=n_columns):
        fit = -((X[:, None, :] - means[:, columns]) ** 2) / (2 * noise)
        fit -= 0.5 * np.log(2 * np.pi * noise)
        rows = logsumexp(fit.sum(axis=2) + np.log(shares[0]), axis=1).sum()
        terms.append(rows + np.log(shares[1])[list(columns)].sum())
    return float(logsumexp(terms))


def test_the_likelihood_comes_closer_to_that_of_all_assignments():
    """Mean field bounds it from below; the reaction makes up for most of what is missing."""
    short, shorter = [], []
    for seed in range(20):
        X = overlapping(seed, (14, 10), noise=1.5)
        problem = make_problem(X, "gaussian")
        ends = []
        for move in (settle, soft_sweep):
            soft = move(problem, make_blocks(problem, *planted_halves(X)), 500, 1e-9)
            if not reacts(problem, soft):
                break  # a cluster is gone: too little to go by
            found = tap_correction(problem, soft.plans)
            shares = [plan.mean(axis=0) for plan in soft.plans]
            exact = log_likelihood(X, shares, found.means, found.noise)
            args = X, soft.plans, found.means, found.noise
            ends.append(
                (exact - free_energy(*args, with_reaction=False), exact - free_energy(*args))
            )
        else:
            short.append(ends[0][0])
            shorter.append(abs(ends[1][1]))
            assert min(ends[0][0], ends[1][0]) >= 0
    assert len(short) > 5
    assert np.mean(short) > 0.1
    assert np.mean(shorter) < 0.6 * np.mean(short)


def test_nats_are_a_sum_over_cells():
    X = overlapping(0, (9, 8))
    problem = make_problem(X, "gaussian")
    plans = random_plans(X.shape, (3, 2))
    found = tap_correction(problem, plans)
    with_it, without = (
        free_energy(X, plans, found.means, found.noise, added) for added in (True, False)
    )
    assert found.nats == pytest.approx(with_it - without, rel=1e-9)


def test_means_and_noise_are_the_likeliest():
    X = overlapping(1, (9, 8))
    problem = make_problem(X, "gaussian")
    plans = random_plans(X.shape, (3, 2), 1)
    found = tap_correction(problem, plans)
    best = free_energy(X, plans, found.means, found.noise)
    rng = np.random.default_rng(0)
    for _ in range(20):
        other = found.means + 1e-3 * rng.normal(size=found.means.shape)
        assert free_energy(X, plans, other, found.noise) < best
    for factor in (0.999, 1.001):
        assert free_energy(X, plans, found.means, factor * found.noise) < best


@pytest.mark.parametrize("axis", [0, 1])
def test_points_move_up_the_free_energy(axis):
    """The gain of a cluster is the slope of the free energy, entropy aside, in its share."""
    X = overlapping(2, (6, 5))
    problem = make_problem(X, "gaussian")
    plans = random_plans(X.shape, (3, 2), 2)
    found = tap_correction(problem, plans)
    own = plans[axis]
    moved, _ = _move(problem, axis, plans, found)
    np.testing.assert_array_equal(moved[1 - axis], plans[1 - axis])
    target = 2 * moved[axis] - own
    gain = np.log(target) - np.log(own.mean(axis=0))
    for point, cluster in product(range(len(own)), range(1, own.shape[1])):
        ends = []
        for step in (1e-5, -1e-5):
            moved = own.copy()
            moved[point, cluster] += step
            moved[point, 0] -= step
            ends.append(_without_entropy(X, axis, plans, moved, found))
        slope = (ends[0] - ends[1]) / 2e-5
        assert gain[point, cluster] - gain[point, 0] == pytest.approx(slope, rel=1e-5, abs=1e-6)


def _without_entropy(X, axis, plans, moved, found):
    both = (moved, plans[1]) if axis == 0 else (plans[0], moved)
    energy = free_energy(X, both, found.means, found.noise)
    share = moved.mean(axis=0)
    return energy - np.sum(moved * (np.log(share) - np.log(moved)))


def test_blocks_after_a_move_are_those_of_the_new_plans():
    problem = make_problem(overlapping(6, (9, 8)), "gaussian")
    plans = random_plans((9, 8), (3, 2), 6)
    for axis in (0, 1):
        moved, found = _move(problem, axis, plans, tap_correction(problem, plans))
        again = tap_correction(problem, moved)
        np.testing.assert_allclose(found.means, again.means, rtol=1e-10)
        assert found.noise == pytest.approx(again.noise, rel=1e-12)


def test_clusters_that_are_all_the_same_have_finite_means():
    X = overlapping(7, (9, 8))
    plans = np.full((9, 2), 0.5), np.full((8, 2), 0.5)
    found = tap_correction(make_problem(X, "gaussian"), plans)
    np.testing.assert_allclose(found.means, X.mean(), rtol=1e-9)


def test_hard_plans_have_no_reaction():
    X = overlapping(3)
    problem = make_problem(X, "gaussian")
    blocks = make_blocks(problem, np.arange(7) % 2, np.arange(6) % 3)
    plans = tuple(np.eye(k)[labels] for k, labels in zip((2, 3), blocks.labels, strict=True))
    found = tap_correction(problem, plans)
    assert found.nats == 0
    np.testing.assert_allclose(found.means, blocks.total / blocks.exposure, rtol=1e-12)
    assert found.noise == pytest.approx(problem.noise(blocks.total, blocks.exposure))


@pytest.mark.parametrize("limits", [{}, {"tol": 0.5}, {"max_iter": 2}], ids=str)
def test_where_clusters_are_clear_nothing_changes(planted, family, limits):
    problem = make_problem(planted[0], family)
    blocks = make_blocks(problem, np.arange(40) % 2, np.arange(30) % 3)
    settled, relaxed = (move(problem, blocks, **limits) for move in (settle, soft_sweep))
    for one, other in zip(settled.plans, relaxed.plans, strict=True):
        np.testing.assert_array_equal(one, other)
    assert relaxed.n_sweeps == settled.n_sweeps


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_points_are_less_sure_than_mean_field_makes_them(make):
    X = load_simulated("D4", random_state=1, sigma=2.6)
    problem = make_problem(make(X.data), "gaussian")
    start = make_blocks(problem, X.row_labels, X.column_labels)
    settled, relaxed = (move(problem, start, 200, 1e-6) for move in (settle, soft_sweep))
    assert relaxed.n_sweeps > settled.n_sweeps
    for side, labels in enumerate((X.row_labels, X.column_labels)):
        sure = [found.plans[side].max(axis=1).mean() for found in (settled, relaxed)]
        right = np.mean(relaxed.labels[side] == labels)
        assert right - 0.05 < sure[1] < sure[0] - 0.01


@pytest.mark.parametrize("why", ["missing", "counts", "balanced"])
def test_where_the_reaction_is_not_known_plans_stay_those_of_mean_field(why):
    X = np.abs(overlapping(4, (30, 20)))
    if why == "missing":
        X[0, 0] = np.nan
    problem = make_problem(X, "poisson" if why == "counts" else "gaussian")
    start = make_blocks(problem, np.arange(30) % 2, np.arange(20) % 2)
    balanced = why == "balanced"
    settled, relaxed = (move(problem, start, balanced=balanced) for move in (settle, soft_sweep))
    assert not reacts(problem, make_blocks(problem, *start.labels))
    for one, other in zip(settled.labels, relaxed.labels, strict=True):
        np.testing.assert_array_equal(one, other)
    assert settled.n_sweeps == relaxed.n_sweeps


def test_precisions_of_columns_weigh_as_much_as_copies_of_them():
    """A column of weight two is two columns that are always in the same cluster."""
    X = overlapping(5, (12, 6))
    plans = random_plans(X.shape, (2, 2), 5)
    once = tap_correction(make_problem(X, "gaussian", np.array([2.0, 1, 1, 1, 1, 1])), plans)
    assert once.overlaps[1].sum() == pytest.approx(7.0)
    twice = make_problem(X[:, [0, 0, 1, 2, 3, 4, 5]], "gaussian")
    again = tap_correction(twice, (plans[0], plans[1][[0, 0, 1, 2, 3, 4, 5]]))
    np.testing.assert_allclose(once.means, again.means, rtol=1e-10)
    assert once.explained == pytest.approx(again.explained, rel=1e-10)


def test_pytorch_gives_the_same_plans():
    pytest.importorskip("torch")
    X = load_simulated("D3", random_state=0, overlap="calibrated")
    found = []
    for backend in (choose_backend(None, "float64"), choose_backend("cpu", "float64")):
        problem = make_problem(X.data, "gaussian", None, backend)
        found.append(soft_sweep(problem, make_blocks(problem, X.row_labels, X.column_labels)))
    assert found[0].n_sweeps == found[1].n_sweeps
    for one, other in zip(*(blocks.plans for blocks in found), strict=True):
        np.testing.assert_allclose(np.asarray(other), one, rtol=0, atol=1e-9)


@pytest.fixture(scope="module")
def unsure():
    """Blocks of D4 under noise, settled without reaction, and their problem."""
    X = load_simulated("D4", random_state=1, sigma=2.6)
    problem = make_problem(X.data, "gaussian")
    return problem, settle(problem, make_blocks(problem, X.row_labels, X.column_labels), 1, 0.0)


def test_sweeps_are_counted_and_limited(unsure):
    problem, settled = unsure
    start = make_blocks(problem, *settled.labels)
    one = settle(problem, start, 1, 0.0).n_sweeps
    assert soft_sweep(problem, start, 1, 0.0).n_sweeps == one + 3
    assert (
        soft_sweep(problem, start, 2, 0.0).n_sweeps == settle(problem, start, 2, 0.0).n_sweeps + 6
    )
    # Half a step moves half of the mass: one is enough for who lets all of it move.
    assert soft_sweep(problem, start, 1, 1.0).n_sweeps == one + 1


@pytest.mark.parametrize(("least", "gone"), [(2.0, False), (100.0, True)])
def test_where_a_cluster_is_gone_plans_stay_those_of_mean_field(unsure, least, gone, monkeypatch):
    problem, settled = unsure
    monkeypatch.setattr(reaction, "_LEAST_MASS", least)
    start = make_blocks(problem, *settled.labels)
    found, field = soft_sweep(problem, start, 3), settle(problem, start, 3)
    assert (found.n_sweeps == field.n_sweeps) == gone
    assert all(map(np.array_equal, found.plans, field.plans)) == gone
