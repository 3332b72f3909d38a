"""Where starts begin, whether they are enough, and whether they end."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from ccot.baselines import (
    DoubleKMeans,
    GaussianLatentBlockModel,
    InformationTheoreticCoclustering,
    ResidualBayesianCoclustering,
    TriNMF,
    TwoSidedKMeans,
    TwoSidedNMF,
)
from ccot.baselines.base import KINDS, FirstPartitions, run_start
from ccot.baselines.partitions import indicator
from ccot.datasets import load_simulated, make_latent_blocks
from tests.baselines.rivals import NON_NEGATIVE, RIVALS, assert_same_partition, each_rival

ITERATIVE = [rival for rival in RIVALS if rival is not TwoSidedKMeans]


@pytest.fixture(scope="module")
def noisy():
    """A small relative of D4 whose clusters overlap."""
    means = load_simulated("D4", random_state=0).block_means
    return make_latent_blocks(means, 120, 100, sigma=1.2, random_state=0)


def shifted(rival, X):
    return X - X.min() if rival in NON_NEGATIVE else X


# Where they begin ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_partition_fills_the_clusters_and_repeats(kind, noisy):
    first = FirstPartitions.of(noisy.data, (4, 3))
    rows, columns = first.draw(kind, 5)
    assert (set(rows), set(columns)) == (set(range(4)), set(range(3)))
    np.testing.assert_array_equal(first.draw(kind, 5)[0], rows)
    assert (first.draw(kind, 6)[0] != rows).any()


def test_random_partitions_know_nothing_of_the_matrix(noisy):
    draws = [FirstPartitions.of(X, (4, 3)).draw("random", 0) for X in (noisy.data, -noisy.data)]
    np.testing.assert_array_equal(draws[0][0], draws[1][0])
    np.testing.assert_array_equal(draws[0][1], draws[1][1])


def test_a_start_from_double_kmeans_is_one_of_its_ends(noisy):
    rows, columns = FirstPartitions.of(noisy.data, (4, 4)).draw("double_kmeans", 0)
    method = DoubleKMeans(4, 4)._method(noisy.data)
    moved = method.step(method.start_from(rows, columns))
    assert_same_partition(moved.rows, rows)
    assert_same_partition(moved.columns, columns)


@pytest.mark.parametrize("rival", ITERATIVE)
def test_mixed_starts_take_the_kinds_in_turn(rival, noisy):
    tasks = rival(4, 4)._tasks(range(6))
    assert [kind for kind, _ in tasks] == [*KINDS, *KINDS[:2]]
    assert [seed for _, seed in tasks] == list(range(6))
    assert {kind for kind, _ in rival(4, 4, init="random")._tasks(range(6))} == {"random"}


@each_rival
def test_random_starts_are_an_option(rival, noisy):
    X = shifted(rival, noisy.data)
    model = rival(4, 4, init="random", n_init=2, max_iter=20, tol=0.1, random_state=0).fit(X)
    other = rival(4, 4, n_init=2, max_iter=20, tol=0.1, random_state=0).fit(X)
    assert model.criterion_ != other.criterion_
    with pytest.raises(ValueError, match="init"):
        rival(init="best").fit(X)


# Whether they are enough -----------------------------------------------------------------------


def loss_from(rival, X, shape, rows, columns):
    """Loss of one start from given partitions; the smaller, the better."""
    model = rival(*shape)
    if rival is TwoSidedNMF:
        sides = (X, shape[0], rows, 0), (np.ascontiguousarray(X.T), shape[1], columns, 0)
        return sum(model._run_side(*side).criterion for side in sides)
    method = model._method(X)
    end = run_start(method, method.start_from(rows, columns), 10 * model.max_iter, model.tol)
    return -end.criterion if rival._larger_is_better else end.criterion


def gaps_to_the_truth(rival, blocks, n_init, init="mixed"):
    """Loss less that of a start from the truth: of that loss, and of what its blocks explain."""
    X, shape = shifted(rival, blocks.data), blocks.block_means.shape
    model = rival(*shape, n_init=n_init, init=init, random_state=0).fit(X)
    assert model.converged_
    loss = -model.criterion_ if rival._larger_is_better else model.criterion_
    truth = loss_from(rival, X, shape, blocks.row_labels, blocks.column_labels)
    one_block = loss_from(rival, X, (1, 1), *(np.zeros(n, np.intp) for n in X.shape))
    return (loss - truth) / abs(truth), (loss - truth) / (one_block - truth)


def assert_reaches_the_truth(rival, blocks, n_init):
    of_loss, of_explained = gaps_to_the_truth(rival, blocks, n_init)
    assert of_loss <= 0.01
    # One block and residuals may have a larger bound than the true blocks.
    assert rival is ResidualBayesianCoclustering or of_explained <= 0.02


@pytest.mark.parametrize("rival", ITERATIVE)
def test_starts_reach_the_loss_of_a_start_from_the_truth(rival, noisy):
    slow = rival in (ResidualBayesianCoclustering, TwoSidedNMF)
    assert_reaches_the_truth(rival, noisy, 8 if slow else 30)


def test_well_spread_points_alone_are_not_enough(noisy):
    """The same kinds of starts for all: with these alone ITCC stays well above its best loss."""
    assert gaps_to_the_truth(InformationTheoreticCoclustering, noisy, 30, "k-means++")[1] > 0.02


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rival", ITERATIVE)
def test_starts_reach_the_loss_of_a_start_from_the_truth_on_calibrated_d4(rival, seed):
    blocks = load_simulated("D4", random_state=seed, overlap="calibrated")
    assert_reaches_the_truth(rival, blocks, 50)


# Whether they end ------------------------------------------------------------------------------


@each_rival
def test_converged_tells_whether_the_limit_was_reached(rival, noisy):
    X = shifted(rival, noisy.data)
    assert rival(4, 4, init="random", n_init=2, random_state=0).fit(X).converged_
    with pytest.warns(ConvergenceWarning, match="stopped at max_iter=1"):
        stopped = rival(4, 4, init="random", n_init=2, max_iter=1, tol=0, random_state=0).fit(X)
    assert not stopped.converged_
    assert stopped.n_iter_ == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["D1", "D2", "D3", "D4"])
@pytest.mark.parametrize("rival", [TwoSidedNMF, TriNMF])
def test_factorisations_of_calibrated_sets_converge(rival, name):
    blocks = load_simulated(name, random_state=0, overlap="calibrated")
    X = shifted(rival, blocks.data)
    assert rival(*blocks.block_means.shape, n_init=8, random_state=0).fit(X).converged_


# Tri-factorisation -----------------------------------------------------------------------------


def plain_rules(X, rows, columns, shape, n_iter):
    """Ding's rules, written once more as they are printed; the error and both factors."""
    F, G = (indicator(labels, k) + 0.2 for labels, k in zip((rows, columns), shape, strict=True))
    F, G = (factor / np.linalg.norm(factor, axis=0) for factor in (F, G))
    S = F.T @ X @ G
    for _ in range(n_iter):
        G = G * np.sqrt(X.T @ (F @ S) / (G @ (G.T @ (X.T @ (F @ S)))))
        F = F * np.sqrt(X @ (G @ S.T) / (F @ (F.T @ (X @ (G @ S.T)))))
        S = S * np.sqrt(F.T @ X @ G / (F.T @ F @ S @ (G.T @ G)))
    return np.square(X - F @ S @ G.T).sum(), F, G


def end_of(rules, X, shape, rows, columns, n_iter=500, tol=1e-6):
    method = TriNMF(*shape, rules=rules)._method(X)
    return run_start(method, method.start_from(rows, columns), n_iter, tol)


def distance_from_orthogonality(factor):
    return np.abs(factor.T @ factor - np.eye(factor.shape[1])).max()


def test_multiplicative_rules_are_those_printed(noisy):
    X, shape = shifted(TriNMF, noisy.data), (4, 3)
    first = FirstPartitions.of(X, shape).draw("kmeans", 0)
    error, F, G = plain_rules(X, *first, shape, 30)
    end = end_of("multiplicative", X, shape, *first, n_iter=30, tol=0)
    assert end.criterion == pytest.approx(error, rel=1e-9)
    np.testing.assert_allclose(end.state.rows, F, rtol=1e-8)
    np.testing.assert_allclose(end.state.columns, G, rtol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_exact_rules_end_with_orthogonal_factors(kind, noisy):
    X, shape = shifted(TriNMF, noisy.data), (4, 3)
    end = end_of("exact", X, shape, *FirstPartitions.of(X, shape).draw(kind, 0))
    assert end.converged
    for factor in (end.state.rows, end.state.columns):
        assert distance_from_orthogonality(factor) <= 1e-12
        assert ((factor > 0).sum(axis=1) == 1).all()
    np.testing.assert_allclose(
        end.state.table, end.state.rows.T @ X @ end.state.columns, rtol=1e-10
    )


@pytest.mark.parametrize("overlap", ["published", "calibrated"])
@pytest.mark.parametrize("name", ["D1", "D4"])
def test_exact_rules_are_as_good_as_the_plain_ones(name, overlap):
    """Within 1 %, although the plain ones have more freedom: their factors are not orthogonal."""
    blocks = load_simulated(name, random_state=0, overlap=overlap)
    X, shape = shifted(TriNMF, blocks.data), blocks.block_means.shape
    first = FirstPartitions.of(X, shape)
    draws = [first.draw(kind, seed) for kind, seed in zip(KINDS * 3, range(12), strict=True)]
    exact = min(end_of("exact", X, shape, *draw).criterion for draw in draws)
    ends = [plain_rules(X, *draw, shape, 500) for draw in draws[:3]]
    plain, F, G = min(ends, key=lambda end: end[0])
    assert exact <= 1.01 * plain
    assert max(map(distance_from_orthogonality, (F, G))) > 1e-3


@pytest.mark.parametrize("kind", ["zero row", "zero column", "equal rows"])
def test_exact_rules_on_degenerate_rows(kind):
    X = np.random.default_rng(0).gamma(2.0, size=(20, 15))
    if kind == "equal rows":
        X[:] = X[0]
    X[(3, slice(None)) if kind == "zero row" else (slice(None), 3)] *= kind == "equal rows"
    model = TriNMF(4, 3, n_init=8, random_state=0).fit(X)
    assert (model.n_row_clusters_, model.n_column_clusters_) == (4, 3)
    assert np.diff(model.criterion_path_).max(initial=0) <= 1e-11 * np.square(X).sum()


def test_glbm_and_itcc_share_the_starts_of_double_kmeans(noisy):
    """The same seed gives the same first partitions, whatever the method."""
    draws = [
        rival(4, 4)._first_partitions(noisy.data).draw("double_kmeans", 0)
        for rival in (DoubleKMeans, GaussianLatentBlockModel, TriNMF)
    ]
    for rows, columns in draws[1:]:
        np.testing.assert_array_equal(rows, draws[0][0])
        np.testing.assert_array_equal(columns, draws[0][1])
    X = shifted(InformationTheoreticCoclustering, noisy.data)
    assert InformationTheoreticCoclustering(4, 4)._first_partitions(X).means.shape == (4, 4)
