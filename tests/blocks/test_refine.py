import numpy as np
import pytest

from ccot.blocks.numbers import icl
from ccot.blocks.problem import information, make_blocks, make_problem
from ccot.blocks.refine import reach, refine
from ccot.blocks.sweep import sweep
from ccot.metrics import error_rate


def refined(problem, blocks, free=(True, True)):
    return refine(
        problem,
        blocks,
        lambda blocks: icl(problem, blocks),
        lambda blocks: sweep(problem, blocks),
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
    found = reach(problem, blocks, numbers)
    assert found.shape == tuple(
        asked or now for asked, now in zip(numbers, blocks.shape, strict=True)
    )


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_equal_points_are_set_apart_where_a_number_is_asked_for(family, value):
    problem = make_problem(np.full((6, 5), value), family)
    blocks = make_blocks(problem, np.zeros(6, int), np.zeros(5, int))
    assert reach(problem, blocks, (4, 5)).shape == (4, 5)


def test_the_best_split_is_taken(planted, family):
    X, rows, columns = planted
    problem = make_problem(X, family)
    blocks = make_blocks(problem, np.zeros(40, int), columns)
    split = reach(problem, blocks, (2, None))
    truth = make_blocks(problem, rows, columns)
    assert information(problem, split) == pytest.approx(information(problem, truth), rel=0.01)
