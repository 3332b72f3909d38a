import numpy as np
import pytest

from ccot.scalings.consensus import _fill_empty, match_clusters, number_shares, vote, winning_number


def make_draws(truth, n_draws, size, rng):
    """Draws of some of the points, each of which numbers the true clusters as it likes."""
    n_clusters = truth.max() + 1
    members = np.array([rng.choice(len(truth), size, replace=False) for _ in range(n_draws)])
    names = np.array([rng.permutation(n_clusters) for _ in range(n_draws)])
    return members, np.take_along_axis(names, truth[members], axis=1)


def test_number_shares_are_shares_by_number():
    assert number_shares(np.array([3, 2, 3, 5])) == {2: 0.25, 3: 0.5, 5: 0.25}
    assert list(number_shares(np.array([5, 1, 1]))) == [1, 5]


@pytest.mark.parametrize(
    ("numbers", "winner"), [([4], 4), ([2, 3, 3], 3), ([5, 5, 2, 2, 3], 2), ([1, 9, 9], 9)]
)
def test_the_number_found_most_often_wins_the_smaller_in_a_tie(numbers, winner):
    assert winning_number(np.array(numbers)) == winner


def test_swapped_steps_are_matched_before_the_vote():
    """Two clusters change places in a third of the draws, as on the paper's first set."""
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], 40)
    members = np.array([rng.permutation(120)[:60] for _ in range(30)])
    labels = truth[members]
    swapped = np.arange(30) % 3 == 0
    labels[swapped] = np.array([1, 0, 2])[labels[swapped]]
    by_step_number = np.array([np.bincount(labels[members == i]).argmax() for i in range(120)])
    assert (by_step_number != truth).any()
    decided, sure = vote(members, labels, np.ones(30, dtype=bool), truth)
    np.testing.assert_array_equal(decided, truth)
    np.testing.assert_array_equal(sure, 1.0)


def test_majority_outvotes_reference_and_minority():
    truth = np.repeat([0, 1], 10)
    members = np.tile(np.arange(20), (5, 1))
    labels = np.tile(truth, (5, 1))
    labels[0, 3] = 1
    labels[1:4, 15] = 0
    reference = truth.copy()
    reference[7] = 1
    decided, sure = vote(members, labels, np.ones(5, dtype=bool), reference)
    expected = truth.copy()
    expected[15] = 0
    np.testing.assert_array_equal(decided, expected)
    confidence = np.ones(20)
    confidence[3], confidence[15] = 4 / 5, 3 / 5
    np.testing.assert_allclose(sure, confidence)


def test_dissenting_draws_lower_confidence_and_cast_no_votes():
    truth = np.repeat([0, 1], 5)
    members = np.tile(np.arange(10), (4, 1))
    labels = np.tile(truth, (4, 1))
    labels[3] = np.arange(10)
    decided, sure = vote(members, labels, np.array([True, True, True, False]), truth)
    np.testing.assert_array_equal(decided, truth)
    np.testing.assert_allclose(sure, 0.75)


def test_points_without_votes_keep_their_reference_label():
    reference = np.array([0, 0, 1, 1, 0, 1])
    members, labels = np.array([[0, 1, 2, 3]]), np.array([[0, 0, 1, 1]])
    decided, sure = vote(members, labels, np.array([True]), reference)
    np.testing.assert_array_equal(decided, reference)
    np.testing.assert_array_equal(sure, [1, 1, 1, 1, 0, 0])


def test_matching_is_the_best_assignment_where_first_choices_clash():
    # Both clusters have most of their members in cluster 0 of the reference.
    labels = np.array([[1, 1, 1, 1, 0, 0, 0, 0, 0, 0]])
    reference = np.array([[0, 0, 0, 0, 0, 0, 0, 0, 1, 1]])
    matched = match_clusters(labels, reference, 2)
    np.testing.assert_array_equal(matched, [[0, 0, 0, 0, 1, 1, 1, 1, 1, 1]])


def test_a_cluster_that_won_nobody_gets_who_came_closest():
    members = np.tile(np.arange(4), (3, 1))
    labels = np.array([[0, 0, 1, 0], [0, 0, 0, 1], [0, 1, 0, 0]])
    reference = np.array([0, 0, 1, 0])
    decided, sure = vote(members, labels, np.ones(3, dtype=bool), reference)
    np.testing.assert_array_equal(np.bincount(decided, minlength=2), [3, 1])
    assert decided[2] == 1
    assert sure[2] == pytest.approx(1 / 3)


def test_one_vote_outweighs_the_reference():
    members, labels = np.array([[0, 1, 2, 3, 4, 5]]), np.array([[0, 0, 0, 1, 1, 0]])
    decided, sure = vote(members, labels, np.array([True]), np.array([0, 0, 0, 1, 1, 1]))
    np.testing.assert_array_equal(decided, labels[0])
    np.testing.assert_array_equal(sure, 1.0)


def test_the_reference_stands_where_no_draw_agrees():
    reference = np.array([0, 2, 1, 1])
    decided, sure = vote(np.array([[0, 1, 2]]), np.array([[0, 1, 1]]), np.array([False]), reference)
    np.testing.assert_array_equal(decided, reference)
    np.testing.assert_array_equal(sure, 0.0)


def test_draws_may_have_more_clusters_than_the_reference():
    members, labels = np.tile(np.arange(5), (2, 1)), np.array([[0, 0, 0, 1, 1], [1, 1, 1, 0, 0]])
    decided, _ = vote(members, labels, np.ones(2, dtype=bool), np.zeros(5, dtype=int))
    np.testing.assert_array_equal(decided, [0, 0, 0, 1, 1])


def test_who_is_alone_in_a_cluster_stays_there():
    # The third point came closest to the empty cluster 2, but cluster 1 has nobody else.
    winner, votes = np.array([0, 0, 1]), np.array([[3, 0, 0], [3, 0, 0], [0, 2, 1]])
    _fill_empty(winner, votes, reference=np.array([0, 2, 1]))
    np.testing.assert_array_equal(winner, [0, 2, 1])


def test_a_vote_for_the_empty_cluster_counts_more_than_the_reference():
    winner, votes = np.array([0, 0, 0]), np.array([[3, 0], [2, 1], [3, 0]])
    _fill_empty(winner, votes, reference=np.array([0, 0, 1]))
    np.testing.assert_array_equal(winner, [0, 1, 0])


def test_small_votes_by_hand():
    assert winning_number(np.array([3, 4, 3, 2, 4])) == 3
    matched = match_clusters(np.array([[1, 1, 0, 2]]), np.array([[0, 0, 1, 2]]), 3)
    np.testing.assert_array_equal(matched, [[0, 0, 1, 2]])
