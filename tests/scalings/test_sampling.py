from itertools import islice

import numpy as np
import pytest

from ccot.scalings.sampling import (
    CROSSINGS,
    SAMPLINGS,
    are_crossings,
    cross,
    draw_indices,
    pool_size,
    strips,
)


def make_draws(n_points, size, sampling, n_draws, seed=0):
    draws = draw_indices(n_points, size, sampling, np.random.default_rng(seed))
    return np.array(list(islice(draws, n_draws)))


@pytest.mark.parametrize("sampling", ["cover", "uniform"])
@pytest.mark.parametrize(
    ("n_points", "size"), [(10, 3), (10, 5), (10, 9), (7, 2), (5, 5), (601, 300)]
)
def test_draws_are_distinct_points_in_range(n_points, size, sampling):
    draws = make_draws(n_points, size, sampling, 50)
    assert draws.shape == (50, size)
    assert draws.min() >= 0
    assert draws.max() < n_points
    assert all(len(np.unique(draw)) == size for draw in draws)


@pytest.mark.parametrize(("n_points", "size"), [(10, 3), (10, 5), (10, 9), (11, 10), (601, 300)])
@pytest.mark.parametrize("n_draws", [1, 4, 17, 60])
def test_cover_draws_everyone_equally_often(n_points, size, n_draws):
    times = np.bincount(make_draws(n_points, size, "cover", n_draws).ravel(), minlength=n_points)
    assert np.ptp(times) <= 1


def test_cover_misses_nobody_in_one_pass():
    draws = make_draws(600, 300, "cover", 2)
    np.testing.assert_array_equal(np.sort(draws.ravel()), np.arange(600))


def test_passes_of_a_cover_are_independent():
    """The last draw of one pass and the first of the next may be the same points, by chance."""
    same = 0
    for seed in range(60):
        draws = draw_indices(4, 2, "cover", np.random.default_rng(seed))
        _, last, first = (frozenset(next(draws)) for _ in range(3))
        same += last == first
    assert 2 <= same <= 25


def test_uniform_draws_are_independent():
    times = np.bincount(make_draws(10, 5, "uniform", 2000).ravel(), minlength=10)
    # Binomial with 2000 trials of probability a half: within five standard deviations.
    np.testing.assert_allclose(times, 1000, atol=5 * np.sqrt(500))
    assert np.ptp(times) > 1


def test_draws_with_replacement_are_of_independent_points():
    draws = make_draws(10, 5, "replacement", 2000)
    times = np.bincount(draws.ravel(), minlength=10)
    np.testing.assert_allclose(times, 1000, atol=5 * np.sqrt(900))
    # Five of ten are all different with probability .3024.
    distinct = np.mean([len(np.unique(draw)) == 5 for draw in draws])
    assert abs(distinct - 0.3024) < 5 * np.sqrt(0.3024 * 0.6976 / 2000)


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_order_within_a_draw_is_random(sampling):
    first = make_draws(20, 10, sampling, 400)[:, 0]
    assert len(np.unique(first)) == 20


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_square_matrices_come_first_as_they_are_and_then_in_other_orders(sampling):
    draws = make_draws(6, 6, sampling, 20)
    np.testing.assert_array_equal(draws[0], np.arange(6))
    np.testing.assert_array_equal(np.sort(draws, axis=1), np.tile(np.arange(6), (20, 1)))
    assert len(np.unique(draws, axis=0)) > 10


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_a_seed_is_a_promise(sampling):
    first, second, other = (make_draws(30, 8, sampling, 9, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)


# Crossings -----------------------------------------------------------------------------------


def make_crossed(n_points, size, n_pairs, seed=0):
    draws = draw_indices(n_points, size, "cover", np.random.default_rng(seed), crossed=True)
    return np.array(list(islice(draws, n_pairs * len(CROSSINGS))))


@pytest.mark.parametrize(
    ("n_points", "size"), [(10, 3), (10, 5), (10, 9), (5, 5), (40, 10), (601, 300)]
)
def test_crossed_draws_are_distinct_points_in_range(n_points, size):
    draws = make_crossed(n_points, size, 6)
    assert all(len(np.unique(draw)) == size for draw in draws)
    assert draws.min() == 0
    assert draws.max() == n_points - 1
    assert all(are_crossings(pair) for pair in np.split(draws, 6))


def test_crossings_of_one_pair_draw_everyone_equally_often():
    times = np.bincount(make_crossed(600, 300, 1).ravel(), minlength=600)
    assert (times == len(CROSSINGS) // 2).all()


@pytest.mark.parametrize(("n_points", "size"), [(30, 20), (30, 30), (31, 12)])
def test_crossed_draws_cover_everyone_in_the_long_run(n_points, size):
    times = np.bincount(make_crossed(n_points, size, 60).ravel(), minlength=n_points)
    np.testing.assert_allclose(times, times.mean(), rtol=0.25)


def test_the_first_crossing_of_a_square_matrix_is_the_given_order():
    np.testing.assert_array_equal(make_crossed(12, 12, 2)[0], np.arange(12))


def test_a_strip_of_a_crossing_is_that_of_a_parent():
    first, second = np.arange(10), np.arange(10, 20)
    np.testing.assert_array_equal(cross(first, second)[[0, -1]], [first, second])
    # Strips of ten points have two each; CROSSINGS[5] is 00101 in binary digits.
    assert cross(first, second)[5].tolist() == [0, 1, 2, 3, 14, 15, 6, 7, 18, 19]


def test_other_draws_are_not_taken_for_crossings():
    draws = make_crossed(40, 12, 2)
    assert not are_crossings(draws[: len(CROSSINGS) - 1])
    assert not are_crossings(draws[1 : len(CROSSINGS) + 1])
    assert not are_crossings(draws[8 : 8 + len(CROSSINGS)])


def test_crossings_by_hand():
    expected = [[0, 1, 2, 3, 4], [0, 1, 2, 3, 9], [0, 1, 2, 8, 4], [0, 1, 2, 8, 9]]
    np.testing.assert_array_equal(cross(np.arange(5), np.arange(5, 10))[:4], expected)


def test_strips_and_pools_by_hand():
    cuts = [(strip.start, strip.stop) for strip in strips(12)]
    assert cuts == [(0, 3), (3, 6), (6, 8), (8, 10), (10, 12)]
    sizes = pool_size((600, 300)), pool_size((10**8, 100)), pool_size((10**8, 100), n_samplings=5)
    assert sizes == (600, 65536, 500)
    assert pool_size((10**8, 3000)) == 4 * 3000
    large = pool_size((10**8, 600))
    assert (large, type(large)) == (2**25 // 600, int)
    assert pool_size((65536, 100), n_samplings=5) == 65536
    draws = draw_indices(6, 3, "cover", np.random.default_rng(0))
    assert sorted(np.concatenate([next(draws), next(draws)]).tolist()) == [0, 1, 2, 3, 4, 5]
