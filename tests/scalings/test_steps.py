from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import norm

from ccot.scalings.steps import (
    StepCoclustering,
    StepLaw,
    StepPlacement,
    Steps,
    join,
    label_steps,
    read_steps,
)
from ccot.transport.sinkhorn import Status


class AsTheyAre(StepPlacement):
    """Points that are their own scalings."""

    def scaling(self, points):
        return points


def step_posterior(values, labels):
    return StepLaw.of(values, labels, labels.max() + 1).posterior(values, labels)


def make_steps(values, jumps):
    order = np.argsort(values, axis=1)
    mask = np.zeros((len(values), values.shape[1] - 1), dtype=bool)
    strength = np.arange(mask.size, dtype=float).reshape(mask.shape)
    for row, positions in zip(mask, jumps, strict=True):
        row[np.array(positions, dtype=int) - 1] = True
    return label_steps(order, mask, strength)


def test_labels_count_the_jumps_below():
    values = np.array([[5.0, 0.0, 9.0, 1.0, 6.0], [0.0, 1.0, 2.0, 3.0, 4.0]])
    steps = make_steps(values, [[2, 4], []])
    np.testing.assert_array_equal(steps.labels, [[1, 0, 2, 0, 1], [0, 0, 0, 0, 0]])
    np.testing.assert_array_equal(steps.n_clusters, [3, 1])
    np.testing.assert_array_equal(steps.weakest, [1.0, np.inf])


def test_labels_follow_the_order_of_the_values():
    values = np.random.default_rng(0).normal(size=(6, 40))
    steps = make_steps(values, [[5, 20, 39]] * 6)
    for vector, labels in zip(values, steps.labels, strict=True):
        assert (np.diff(labels[np.argsort(vector)]) >= 0).all()
        np.testing.assert_array_equal(np.bincount(labels), [5, 15, 19, 1])


def test_batches_are_joined_in_order():
    values = np.random.default_rng(0).normal(size=(5, 9))
    jumps = [[1], [2], [3, 4], [], [8]]
    whole = make_steps(values, jumps)
    joined = join([make_steps(values[:2], jumps[:2]), make_steps(values[2:], jumps[2:])])
    np.testing.assert_array_equal(joined.labels, whole.labels)
    np.testing.assert_array_equal(joined.n_clusters, whole.n_clusters)
    assert joined.weakest.shape == (5,)


@dataclass(frozen=True)
class Solved:
    """Steps, and how they were come by."""

    steps: Steps
    status: Status


def test_parts_of_batches_and_their_statuses_are_joined_too():
    steps = make_steps(np.random.default_rng(0).normal(size=(2, 9)), [[1], [2]])
    good, bad = Solved(steps, Status.CONVERGED), Solved(steps, Status.MAX_ITER)
    for batches, status in (
        ([good], Status.CONVERGED),
        ([good, good], Status.CONVERGED),
        ([good, bad, good], Status.MAX_ITER),
    ):
        joined = join(batches)
        assert joined.status is status
        np.testing.assert_array_equal(joined.steps.labels, np.tile(steps.labels, (len(batches), 1)))


def test_a_slice_of_steps_is_that_of_some_vectors():
    values = np.random.default_rng(0).normal(size=(4, 9))
    some = make_steps(values, [[1], [2], [3, 4], []])[1:3]
    np.testing.assert_array_equal(some.labels, make_steps(values[1:3], [[2], [3, 4]]).labels)
    np.testing.assert_array_equal(some.n_clusters, [2, 3])
    np.testing.assert_array_equal(some.weakest, [9.0, 18.0])


def test_a_single_point_stands_on_a_single_step():
    steps = make_steps(np.array([[3.0], [4.0]]), [[], []])
    np.testing.assert_array_equal(steps.labels, [[0], [0]])
    np.testing.assert_array_equal(steps.n_clusters, [1, 1])
    np.testing.assert_array_equal(steps.weakest, [np.inf, np.inf])
    assert (steps.weakest.shape, steps.weakest.dtype) == ((2,), np.float64)


def test_placing_the_values_themselves_gives_their_labels():
    values = np.random.default_rng(0).normal(size=50)
    side = read_steps(values, "multiscale", 4, AsTheyAre(width=1))
    labels = make_steps(values[None], [side.jumps]).labels[0]
    np.testing.assert_array_equal(side.labels, labels)
    np.testing.assert_array_equal(side.placement.labels(values), labels)
    np.testing.assert_array_equal(side.placement.labels(np.array([-99.0, 99.0])), [0, 3])


def test_a_side_keeps_what_it_was_read_from():
    values = np.array([5.0, 0.1, 0.0, 5.1, 0.2, 5.2, 0.15, 5.15, 9.0])
    side = read_steps(values, "multiscale", 3, AsTheyAre(width=1))
    assert side.n_clusters == 3
    assert side.number_votes == {3: 1.0}
    np.testing.assert_array_equal(side.log_scaling, values)
    np.testing.assert_array_equal(side.jumps, [4, 8])
    assert (side.jump_strength.shape, side.jump_strength.dtype) == ((2,), np.float64)
    np.testing.assert_array_equal(side.confidence, step_posterior(values, side.labels))
    np.testing.assert_allclose(side.placement.thresholds, [2.6, 7.1])


def test_gaps_up_to_the_resolution_are_no_jumps():
    values = np.r_[np.linspace(0, 1, 30), np.linspace(21, 22, 30)]
    found = [
        read_steps(values, "multiscale", None, AsTheyAre(width=1), resolution=resolution).n_clusters
        for resolution in (None, 19.0, 20.5)
    ]
    assert found == [2, 2, 1]


def test_equal_values_are_cut_in_their_order():
    side = read_steps(np.zeros(100), "multiscale", 3, AsTheyAre(width=1))
    np.testing.assert_array_equal(side.labels, np.repeat([0, 1, 2], [98, 1, 1]))
    side = read_steps(np.tile([0.0, 1.0], 50), "multiscale", 9, AsTheyAre(width=1))
    np.testing.assert_array_equal(side.labels[1::2], np.r_[[1] * 43, 2:9])


def test_the_transposed_coclustering_swaps_both_sides():
    row, column = (
        read_steps(np.arange(float(n)), "multiscale", 2, AsTheyAre(width=1)) for n in (4, 6)
    )
    made = {"n_iter": 7, "n_draws": 1, "share_converged": 1.0, "status": Status.CONVERGED}
    means = np.array([[1.0, 2.0], [3.0, 4.0]])
    found = StepCoclustering(row=row, column=column, block_means=means, **made).transposed()
    assert (found.row, found.column, found.n_iter) == (column, row, 7)
    np.testing.assert_array_equal(found.block_means, means.T)
    assert StepCoclustering(row=row, column=column, **made).transposed().block_means is None


def test_one_cluster_has_no_thresholds():
    placement = read_steps(np.arange(4.0), "multiscale", 1, AsTheyAre(width=1)).placement
    assert len(placement.thresholds) == 0
    np.testing.assert_array_equal(placement.labels(np.array([-1e9, 0, 1e9])), [0, 0, 0])


def test_posterior_is_that_of_a_normal_mixture():
    rng = np.random.default_rng(0)
    values = np.r_[rng.normal(0, 1, 60), rng.normal(3, 0.5, 40)]
    labels = np.repeat([0, 1], [60, 40])
    parts = [values[labels == k] for k in (0, 1)]
    joint = np.array([len(part) * norm.pdf(values, part.mean(), part.std()) for part in parts])
    slow = joint[labels, np.arange(100)] / joint.sum(axis=0)
    np.testing.assert_allclose(step_posterior(values, labels), slow, rtol=1e-12)


def test_a_step_of_one_value_borrows_its_spread():
    law = StepLaw.of(np.array([-1.0, 1.0, 50.0]), np.array([0, 0, 1]), 2)
    np.testing.assert_allclose(law.variance, [1.0, 1e-3])
    equal = StepLaw.of(np.array([0.0, 0.0, 7.0]), np.array([0, 0, 1]), 2)
    np.testing.assert_allclose(equal.variance, [49e-12, 49e-12])


def test_posterior_weighs_steps_by_their_sizes():
    # Equal spreads, and a value halfway between: two against one.
    law = StepLaw(
        np.array([2, 1]), np.array([0.0, 4.0]), np.ones(2), np.array([0, 4]), np.array([0, 4])
    )
    posterior = law.posterior(np.array([2.0, 2.0]), np.array([0, 1]))
    np.testing.assert_allclose(posterior, [2 / 3, 1 / 3])


def test_posterior_of_a_value_far_from_every_step_adds_up_to_one():
    law = StepLaw.of(np.array([0.0, 1.0, 9.0, 10.0]), np.array([0, 0, 1, 1]), 2)
    values = np.array([0.5, 1e6])
    on_each = [law.posterior(values, np.full(2, step)) for step in (0, 1)]
    np.testing.assert_allclose(np.sum(on_each, axis=0), 1.0)


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        (np.zeros(5), np.zeros(5, dtype=int)),
        (np.array([0.0, 0.0, 7.0]), np.array([0, 0, 1])),
        (np.array([1e150, 1e150, -1e150]), np.array([1, 1, 0])),
        (np.arange(4.0), np.arange(4)),
    ],
)
def test_posterior_is_a_probability_on_any_steps(values, labels):
    with np.errstate(all="raise", under="ignore"):
        posterior = step_posterior(values, labels)
    assert np.isfinite(posterior).all()
    assert (posterior > 0.5).all()
    assert (posterior <= 1 + 1e-12).all()


def test_posterior_falls_towards_the_neighbouring_step():
    values = np.r_[np.linspace(0, 1, 30), np.linspace(1.2, 2.2, 30)]
    posterior = step_posterior(values, np.repeat([0, 1], 30))
    assert posterior[0] > posterior[15] > posterior[29]
    assert posterior[29] < 0.9 < 0.99 < posterior[0]


def test_posterior_is_how_often_a_value_is_placed_right():
    rng = np.random.default_rng(0)
    truth = rng.permutation(np.repeat([0, 1, 2], [500, 3000, 1500]))
    values = np.array([0.0, 3.0, 5.0])[truth] + np.array([1.0, 0.7, 0.5])[truth] * rng.normal(
        size=5000
    )
    cuts = np.array([1.3, 4.2])
    labels = np.searchsorted(cuts, values)
    posterior = StepLaw.of(values, labels, 3).posterior(values, labels)
    assert posterior.mean() == pytest.approx((labels == truth).mean(), abs=0.03)
    doubtful = posterior < 0.8
    assert posterior[doubtful].mean() == pytest.approx((labels == truth)[doubtful].mean(), abs=0.1)


def test_a_step_without_values_is_nobodys():
    law = StepLaw.of(np.array([0.0, 1.0, 9.0]), np.array([0, 0, 2]), 3)
    values = np.array([0.5, 4.9, 9.0])
    assert (law.posterior(values, np.array([1, 1, 1])) == 0).all()
    assert (law.posterior(values, np.array([0, 0, 2])) > 0.5).all()
    np.testing.assert_array_equal(law.stands_on_none(values), [False, True, False])


def test_the_last_steps_may_be_without_values():
    law = StepLaw.of(np.array([0.0, 1.0, 9.0]), np.array([0, 0, 1]), 3)
    np.testing.assert_array_equal(law.size, [2, 1, 0])
    np.testing.assert_array_equal(law.posterior(np.array([0.0, 9.0]), np.array([2, 2])), [0, 0])


def test_steps_end_where_a_quarter_of_the_jump_is_climbed():
    values = np.array([0.0, 1.0, 5.0, 6.0, 20.0, 22.0])
    law = StepLaw.of(values, np.array([0, 0, 1, 1, 2, 2]), 3)
    ends = np.array([-1.0, 2.0, 4.0, 9.5, 16.5, 25.5])
    outwards = np.tile([-0.01, 0.01], 3)
    assert not law.stands_on_none(values).any()
    assert not law.stands_on_none(ends).any()
    assert law.stands_on_none(ends + outwards).all()


def test_a_single_step_reaches_as_far_as_it_is_wide():
    law = StepLaw.of(np.array([2.0, 4.0]), np.array([0, 0]), 1)
    values = np.array([-0.1, 0.1, 3.0, 5.9, 6.1])
    np.testing.assert_array_equal(law.stands_on_none(values), [True, False, False, False, True])


def test_a_small_vector_by_hand():
    order, mask = np.argsort([[3.0, 0.1, 3.1, 0.0]], axis=1), np.array([[False, True, False]])
    labels = label_steps(order, mask, mask.astype(float)).labels
    np.testing.assert_array_equal(labels, [[1, 0, 1, 0]])
    side = read_steps(np.array([0.0, 1.0, 5.0, 6.0]), "multiscale", 2, AsTheyAre(width=1))
    np.testing.assert_array_equal(side.placement.thresholds, [3.0])
    placement = AsTheyAre(width=1, thresholds=np.array([1.0, 5.0]))
    np.testing.assert_array_equal(placement.labels(np.array([0.2, 7.0, 2.5])), [0, 2, 1])
    law = StepLaw.of(np.array([0.0, 1.0, 5.0, 6.0]), np.array([0, 0, 1, 1]), 2)
    outside = law.stands_on_none(np.array([-2.0, -0.9, 1.5, 3.0, 5.5, 7.5]))
    np.testing.assert_array_equal(outside, [True, False, False, True, False, True])
    clear = step_posterior(np.array([0.0, 0.1, 9.0, 9.1]), np.array([0, 0, 1, 1]))
    np.testing.assert_allclose(clear, 1.0, atol=1e-3)
