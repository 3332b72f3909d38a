from functools import partial

import numpy as np
import pytest

from ccot.blocks import refine as refinement
from ccot.blocks.criteria import icl
from ccot.blocks.problem import information, make_blocks, make_problem
from ccot.blocks.refine import (
    _jointly,
    _leading_half,
    _splits,
    match_counts,
    refine,
    same_partitions,
)
from ccot.blocks.sweep import sweep
from ccot.metrics import error_rate


def refined(problem, blocks, free=(True, True)):
    return refine(
        problem,
        blocks,
        lambda blocks: icl(problem, blocks),
        partial(sweep, problem),
        free,
    )


@pytest.mark.parametrize("start", ["too coarse", "too fine"])
def test_splits_and_merges_find_planted_blocks(planted, family, start):
    X, rows, columns = planted
    problem = make_problem(X, family)
    if start == "too coarse":
        blocks = make_blocks(problem, rows, np.zeros(30, int))
    else:
        blocks = make_blocks(problem, 3 * rows + np.arange(40) % 3, 2 * columns + np.arange(30) % 2)
    found = refined(problem, blocks)
    assert found.shape == (2, 3)
    assert error_rate(rows, found.labels[0]) == 0
    assert error_rate(columns, found.labels[1]) == 0
    assert icl(problem, found) > icl(problem, blocks)


def test_sides_that_are_not_free_keep_their_number(planted, family):
    X, rows, columns = planted
    problem = make_problem(X, family)
    blocks = make_blocks(problem, rows, np.minimum(columns, 1))
    assert refined(problem, blocks, (True, False)).shape[1] == 2
    assert refined(problem, blocks, (False, True)).shape == (2, 3)
    assert refined(problem, blocks, (False, False)) is blocks


@pytest.mark.parametrize("numbers", [(1, 1), (2, 3), (5, 4), (40, 30), (None, 7), (3, None)])
def test_numbers_are_reached_exactly(planted, family, numbers):
    X, rows, columns = planted
    problem = make_problem(X, family)
    blocks = make_blocks(problem, rows, columns)
    found = match_counts(problem, blocks, numbers)
    assert found.shape == tuple(
        asked or now for asked, now in zip(numbers, blocks.shape, strict=True)
    )


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_equal_points_are_set_apart_where_a_number_is_asked_for(family, value):
    problem = make_problem(np.full((6, 5), value), family)
    blocks = make_blocks(problem, np.zeros(6, int), np.zeros(5, int))
    assert match_counts(problem, blocks, (4, 5)).shape == (4, 5)


@pytest.mark.parametrize("few", [[0, 1], [2, 6], [5]], ids=str)
@pytest.mark.parametrize("high", [0, 1])
def test_few_points_are_split_from_many_equal_ones(family, few, high):
    X = np.full((7, 4), 9.0)
    X[:, :2] = 1.0
    X[few] = X[few, ::-1]
    X = X if high else X[:, ::-1]
    problem = make_problem((X > 5) * 1.0 if family == "bernoulli" else X, family)
    blocks = make_blocks(problem, np.zeros(7, int), np.arange(4) // 2)
    expected = np.isin(np.arange(7), few)
    assert error_rate(expected, match_counts(problem, blocks, (2, None)).labels[0]) == 0


def test_the_best_split_is_taken(planted, family):
    X, rows, columns = planted
    problem = make_problem(X, family)
    blocks = make_blocks(problem, np.zeros(40, int), columns)
    split = match_counts(problem, blocks, (2, None))
    truth = make_blocks(problem, rows, columns)
    assert information(problem, split) == pytest.approx(information(problem, truth), rel=0.01)


@pytest.mark.parametrize("most", [1, 2, 3])
def test_moves_are_limited(planted, family, most, monkeypatch):
    X, rows, columns = planted
    problem = make_problem(X, family)
    fine = make_blocks(problem, 3 * rows + np.arange(40) % 3, 2 * columns + np.arange(30) % 2)
    monkeypatch.setattr(refinement, "_MAX_MOVES", most)
    found = refine(
        problem, fine, lambda blocks: icl(problem, blocks), lambda b, seen: b, (True, True)
    )
    assert sum(found.shape) == 6 + 6 - most


def test_splits_that_are_improvements_are_tried_together():
    """The first proposal has more than one cluster more."""
    rng = np.random.default_rng(0)
    rows, columns = np.arange(64) % 8, np.arange(48) % 6
    X = 9 * rng.normal(size=(8, 6))[rows][:, columns] + rng.normal(size=(64, 48))
    problem, settled = make_problem(X, "gaussian"), []
    found = refine(
        problem,
        make_blocks(problem, rows % 4, columns % 3),
        lambda blocks: icl(problem, blocks),
        lambda blocks, seen: settled.append(blocks.shape) or sweep(problem, blocks),
        (True, True),
    )
    assert found.shape == (8, 6)
    assert sum(settled[0]) > 4 + 3 + 1


def test_splits_are_joined_where_there_are_several():
    X = np.random.default_rng(0).normal(size=(9, 8))
    problem = make_problem(X, "gaussian")
    labels = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2]), np.array([0, 0, 0, 0, 1, 1, 1, 1])
    blocks = make_blocks(problem, *labels)
    first, last = np.array([0, 0, 3, 1, 1, 1, 2, 2, 2]), np.array([0, 0, 0, 1, 1, 1, 2, 3, 3])
    right = np.array([0, 0, 0, 0, 1, 1, 1, 2])
    merge = make_blocks(problem, np.minimum(labels[0], 1), labels[1])
    splits = [
        make_blocks(problem, first, labels[1]),
        merge,
        make_blocks(problem, labels[0], right),
        make_blocks(problem, last, labels[1]),
    ]
    (found,) = _jointly(problem, blocks, splits)
    expected = make_blocks(problem, np.array([0, 0, 3, 1, 1, 1, 2, 4, 4]), right)
    for given, wanted in zip(found.labels, expected.labels, strict=True):
        np.testing.assert_array_equal(given, wanted)
    np.testing.assert_allclose(found.total, expected.total)
    assert len(_jointly(problem, blocks, splits[2:])) == 1
    assert _jointly(problem, blocks, splits[:2]) == _jointly(problem, blocks, []) == []


def test_partitions_are_the_same_under_other_names(planted, family):
    X, rows, columns = planted
    problem = make_problem(X, family)
    blocks = make_blocks(problem, rows, columns)
    renamed = make_blocks(problem, 1 - rows, (columns + 1) % 3)
    assert same_partitions(blocks, renamed)
    moved, merged = rows.copy(), np.minimum(columns, 1)
    moved[0] = 1 - moved[0]
    assert not same_partitions(blocks, make_blocks(problem, moved, columns))
    assert not same_partitions(blocks, make_blocks(problem, rows, np.roll(columns, 1)))
    assert not same_partitions(blocks, make_blocks(problem, rows, merged))
    assert not same_partitions(make_blocks(problem, rows, merged), blocks)
    # Equally many clusters of rows and of columns, of which those of one side are not the same.
    crossed = make_blocks(problem, np.arange(40) % 4 // 2, np.arange(30) % 4 // 2)
    assert not same_partitions(
        crossed, make_blocks(problem, np.arange(40) % 2, np.arange(30) % 4 // 2)
    )


def test_moves_end_where_others_have_ended(planted, family):
    X, rows, columns = planted
    problem = make_problem(X, family)
    truth = make_blocks(problem, rows, columns)
    fine = make_blocks(problem, 2 * rows + np.arange(40) % 2, columns)
    known = make_blocks(problem, 3 - fine.labels[0], columns)
    asked = {"criterion": partial(icl, problem), "settle": partial(sweep, problem)}
    assert refine(problem, fine, free=(True, True), known=[truth, known], **asked) is fine
    assert refine(problem, fine, free=(True, True), known=[truth], **asked).shape == (2, 3)


def test_two_clusters_of_noise_are_merged():
    problem = make_problem(np.random.default_rng(0).normal(size=(30, 20)), "gaussian")
    blocks = make_blocks(problem, np.arange(30) % 2, np.arange(20) % 2)
    assert refined(problem, blocks).shape == (1, 1)


def test_clusters_of_two_are_split_and_single_points_are_not(family):
    X = np.array([[9.0, 1.0, 9.0, 1.0], [1.0, 9.0, 1.0, 9.0], [9.0, 9.0, 1.0, 1.0]])
    problem = make_problem((X > 5) * 1.0 if family == "bernoulli" else X, family)
    blocks = make_blocks(problem, np.array([0, 0, 1]), np.arange(4))
    (split,) = _splits(problem, blocks, 0, problem.axes[0].profiles(np.arange(4), 4))
    assert len(np.unique(split.labels[0])) == 3


@pytest.mark.parametrize("seed", [0, 15, 25])
@pytest.mark.parametrize("kind", ["gaussian", "missing", "poisson", "degrees"])
def test_splits_follow_the_leading_direction_of_the_residuals(kind, seed):
    rng = np.random.default_rng(seed)
    family = "poisson" if kind in ("poisson", "degrees") else "gaussian"
    rows, columns = rng.integers(0, 2, 40), rng.integers(0, 3, 30)
    means = np.array([[0.2, 3.0, 40.0], [30.0, 3.0, 1.0]])[rows][:, columns]
    if kind == "degrees":
        means *= rng.uniform(0.05, 4.0, size=(40, 1)) ** 2
    X = rng.poisson(means) * 1.0
    if kind == "missing":
        X[rng.uniform(size=X.shape) < 0.4] = np.nan
    problem = make_problem(X, family)
    exposure = np.where(np.isnan(X), 0.0, 1.0)
    if family == "poisson":
        exposure = np.outer(X.sum(axis=1), X.sum(axis=0)) / X.sum()
    halves = _leading_half(problem, problem.axes[0].profiles(columns, 3), rows, 2)
    for cluster in (0, 1):
        members = np.flatnonzero(rows == cluster)
        total, seen = (np.nan_to_num(part)[members] @ np.eye(3)[columns] for part in (X, exposure))
        mean = total.sum(axis=0) / seen.sum(axis=0)
        residual = (total - seen * mean) / np.sqrt(np.maximum(seen, 1e-300))
        residual /= np.sqrt(mean) if family == "poisson" else 1.0
        leading = np.linalg.svd(residual - residual.mean(axis=0))[0][:, 0]
        half = halves[members]
        # Which way the direction points is left open.
        sign = 1 if (half == (leading > np.median(leading))).all() else -1
        np.testing.assert_array_equal(half, sign * leading > np.median(sign * leading))


def test_halves_that_are_left_empty_are_no_split(monkeypatch):
    """Both of two rows fit the half that the larger one was in."""
    monkeypatch.setattr(refinement, "_SPLIT_SWEEPS", 1)
    problem = make_problem(np.array([[0.0, 1.0], [1.0, 3.0], [2.0, 0.0]]), "poisson")
    columns = np.arange(2)
    blocks = make_blocks(problem, np.array([0, 0, 1]), columns)
    assert not list(_splits(problem, blocks, 0, problem.axes[0].profiles(columns, 2)))


def test_points_without_values_stay_in_the_cluster_that_is_split():
    X = np.array([[9.0, 1.0], [1.0, 9.0], [9.0, 1.0], [np.nan, np.nan]])
    problem = make_problem(X, "gaussian")
    columns = np.arange(2)
    blocks = make_blocks(problem, np.zeros(4, int), columns)
    (split,) = _splits(problem, blocks, 0, problem.axes[0].profiles(columns, 2))
    assert split.labels[0][3] == 0


@pytest.mark.parametrize("axis", [0, 1])
def test_a_split_has_the_statistics_of_its_labels(planted, family, axis):
    X, rows, columns = planted
    problem = make_problem(X, family)
    blocks = make_blocks(problem, rows, columns)
    profiles = problem.axes[axis].profiles(blocks.labels[1 - axis], blocks.shape[1 - axis])
    for split in _splits(problem, blocks, axis, profiles):
        expected = make_blocks(problem, *split.labels)
        assert expected.shape[axis] == blocks.shape[axis] + 1
        np.testing.assert_allclose(split.total, expected.total, rtol=1e-12)
        np.testing.assert_allclose(split.exposure, expected.exposure, rtol=1e-12)
