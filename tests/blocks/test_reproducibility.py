from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import entropy
from sklearn.metrics import adjusted_rand_score, mutual_info_score

from ccot.blocks.problem import make_problem
from ccot.blocks.reproducibility import (
    CLEAR,
    Halves,
    Reproducibility,
    adjusted_rand,
    can_be_halved,
    describe,
    fit_halves,
    half_problem,
    noise_like,
    with_noise,
)
from tests.blocks.matrices import draw, draw_noise, seeded


@pytest.fixture
def wide(family):
    rng = np.random.default_rng(1)
    rows, columns = np.arange(60) % 2, np.arange(48) % 3
    return make_problem(draw(family, rows, columns, rng), family), rows, columns


@pytest.mark.parametrize("axis", [0, 1])
def test_planted_clusters_come_back(wide, axis):
    problem, *labels = wide
    halves = fit_halves(problem, axis, (2, 3), seeded(), n_splits=2)
    truth = axis + 2
    assert halves.labels.shape == (4, 2, problem.shape[axis])
    assert halves.mean[truth - 2] > 0.95
    told = describe(halves, labels[axis], labels[axis], np.eye(truth))
    assert told.comes_back
    assert told.clusters.min() > 0.95
    assert told.points.mean() > 0.95
    assert told.n_clusters == truth


def test_workers_change_nothing(wide):
    problem = wide[0]
    one = fit_halves(problem, 0, (2, 3, 4), seeded())
    two = fit_halves(problem, 0, (2, 3, 4), replace(seeded(), n_jobs=2))
    assert (one.labels == two.labels).all()
    assert (one.agreement == two.agreement).all()


@pytest.mark.parametrize("axis", [0, 1])
def test_noise_does_not_come_back(family, axis):
    values = draw_noise(family, (80, 60), np.random.default_rng(5))
    problem = make_problem(values, family)
    halves = with_noise(problem, axis, fit_halves(problem, axis, range(2, 7), seeded()), seeded())
    assert halves.highest() < CLEAR
    assert halves.expected == 0
    assert not halves.is_clear


def test_planted_clusters_agree_better_than_noise(wide):
    problem = wide[0]
    halves = with_noise(problem, 0, fit_halves(problem, 0, (2, 3), seeded(), 2), seeded())
    assert 0 <= halves.expected < 0.5
    assert halves.is_clear


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_half_has_the_values_of_its_members(make, axis, family):
    values = draw_noise(family, (20, 12), np.random.default_rng(0))
    members = np.array([1, 4, 5, 9])
    kept = values[:, members] if axis == 0 else values[members]
    half = half_problem(make_problem(make(values), family), axis, members)
    alone = make_problem(make(kept), family)
    dense = half.axes[0].values
    assert np.allclose(dense.toarray() if sp.issparse(dense) else dense, kept)
    assert half.overall == pytest.approx(alone.overall)
    assert half.n_observed == alone.n_observed


def test_a_half_keeps_precisions_and_gaps_and_loses_its_own_effects():
    rng = np.random.default_rng(0)
    values, precision = rng.normal(size=(20, 12)), rng.uniform(0.5, 2.0, size=12)
    values[3, 4] = np.nan
    problem = make_problem(values, "gaussian", precision)
    members = np.arange(6)
    half = half_problem(problem, 0, members)
    assert np.allclose(half.axes[0].observed, np.isfinite(values[:, :6]) * precision[:6])
    assert np.allclose(half.axes[0].values, np.nan_to_num(values[:, :6]) * precision[:6])
    centred = half_problem(replace(make_problem(values, "gaussian"), n_effects=31), 1, members)
    assert np.allclose(centred.axes[0].values.sum(axis=0), 0)


def test_noise_has_the_margins(family):
    rng = np.random.default_rng(2)
    values = draw(family, np.arange(60) % 2, np.arange(48) % 3, rng)
    noise = noise_like(make_problem(values, family), rng).axes[0].values
    spread = 6 * np.sqrt(values.var() * values.shape[1])
    assert noise.shape == values.shape
    assert np.abs(noise.sum(axis=1) - values.sum(axis=1)).max() < spread
    sparse = noise_like(make_problem(sp.csr_array(np.abs(values)), "poisson"), rng)
    assert sp.issparse(sparse.axes[0].values)


def test_small_matrices_are_not_halved():
    for shape, enough in (((16, 8), True), ((15, 8), False), ((16, 7), False)):
        assert can_be_halved(make_problem(np.ones(shape), "gaussian")) is enough


def test_scores_weigh_agreement_resolution_and_jump():
    splits = np.array([[1.0, 0.6, -0.2], [1.0, 0.4, -0.2]])
    halves = Halves(np.array([2, 3, 4]), splits, np.zeros((4, 3, 5), int))
    scores = halves.scores({2: 0.2, 3: 1.0, 4: 0.0, 5: 9.0})
    assert list(scores) == [2, 3, 4]
    assert scores[2] == pytest.approx(0.6 * np.log(np.log(2)) + 1.5 * 0.2)
    assert scores[3] == pytest.approx(np.log(0.5 - 0.1) + 0.6 * np.log(np.log(3)) + 1.5)
    assert scores[4] == pytest.approx(np.log(1e-3) + 0.6 * np.log(np.log(4)))


def test_distances_are_variations_of_information():
    rng = np.random.default_rng(0)
    labels = np.stack([[rng.integers(k, size=60) for k in (2, 3)] for _ in range(4)])
    halves, own = Halves(np.array([2, 3]), np.zeros((2, 2)), labels), rng.integers(4, size=60)

    def by_definition(first, second):
        lost = [entropy(np.bincount(part)) for part in (first, second)]
        return sum(lost) - 2 * mutual_info_score(first, second)

    expected = [np.mean([by_definition(own, half[j]) for half in labels]) for j in (0, 1)]
    assert halves.distances(own) == pytest.approx(expected)
    same = Halves(np.array([4]), np.zeros((1, 1)), np.stack([[own], [3 - own]]))
    assert same.distances(own) == pytest.approx(0)


def test_distances_are_never_below_zero_by_rounding():
    rng = np.random.default_rng(0)
    for _ in range(100):
        own = rng.integers(3, size=rng.integers(20, 60))
        same = Halves(np.array([3]), np.ones((1, 1)), np.stack([[own], [2 - own]]))
        assert same.distances(own)[0] >= 0


def test_expected_distance_weighs_numbers_by_their_scores():
    coarse, fine = np.arange(40) // 20, np.arange(40) // 10
    halves = Halves(np.array([2, 4]), np.ones((1, 2)), np.stack([[coarse, fine]] * 2))

    def distance(scores):
        return halves.weighed(scores).distance(fine)

    assert distance({2: 0.0, 4: 0.0}) == pytest.approx(np.log(2) / 2)
    assert distance({2: 0.0, 4: 1.0}) == pytest.approx(np.log(2) / (1 + np.exp(4)))
    assert distance({4: 0.0}) == pytest.approx(0)


def test_distances_of_many_points_are_taken_from_some():
    rng = np.random.default_rng(1)
    own = rng.integers(3, size=20_000)
    noisy = np.where(rng.random(20_000) < 0.9, own, rng.integers(3, size=20_000))
    many = Halves(np.array([3]), np.ones((1, 1)), np.stack([[noisy], [noisy]]))
    few = replace(many, labels=many.labels[..., :4_000])
    assert many.distances(own) == pytest.approx(few.distances(own[:4_000]), abs=0.05)


def test_numbers_that_a_half_does_not_reach_are_left_out():
    problem = make_problem(np.tile([1.0, 2.0], (16, 8)), "gaussian")
    assert len(fit_halves(problem, 0, (2, 3), seeded(), 1).numbers) == 0


def test_clusters_and_points_are_told_apart():
    fitted = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    halves = Halves(
        numbers=np.array([2, 3]),
        agreement=np.array([[0.5, 0.2]]),
        labels=np.array([[[1, 1, 1, 1, 0, 0, 0, 0]], [[0, 0, 0, 1, 1, 1, 1, 1]]]),
    )
    tree = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 1, 1]])
    told = describe(halves, fitted, np.array([0, 0, 0, 1, 2, 2, 2, 2]), tree)
    # The first three points are all that one half has; with the fourth they are the other's.
    assert told.nodes == pytest.approx(
        [
            (3 / 4 + 1) / 2,
            (1 / 4 + 1 / 5) / 2,
            (1 + 4 / 5) / 2,
            (1 + 3 / 4) / 2,
            (1 / 2 + 5 / 8) / 2,
        ]
    )
    assert told.clusters == pytest.approx([(1 + 3 / 4) / 2, (1 + 4 / 5) / 2])
    assert told.points.tolist() == [1, 1, 1, 0.5, 1, 1, 1, 1]
    assert told.agreement == 0.5


def test_the_plausible_range_is_around_the_number():
    told = Reproducibility(
        numbers=np.arange(2, 8),
        mean=np.array([0.9, 0.5, 0.78, 0.8, 0.79, 0.4]),
        spread=np.full(6, 0.05),
        n_clusters=5,
        clusters=np.array([0.9, 0.4, 0.8, 0.7, 0.95]),
        points=np.ones(10),
    )
    assert told.plausible == (4, 6)
    assert told.dissolved.tolist() == [1]
    assert told.comes_back
    assert not replace(told, expected=0.75).comes_back


def test_adjusted_rand_index_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 4, 50), rng.integers(0, 3, 50)
    assert adjusted_rand(first, second) == pytest.approx(adjusted_rand_score(first, second))
