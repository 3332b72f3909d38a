"""What every measure must satisfy, and agreement with slow oracles that visit every cell."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score, mutual_info_score, normalized_mutual_info_score

from ccot.metrics import (
    coclustering_ari,
    coclustering_error,
    coclustering_nmi,
    error_rate,
    normalized_classification_error,
)

PAIRED = [
    coclustering_ari,
    coclustering_error,
    coclustering_nmi,
    normalized_classification_error,
]
each_measure = pytest.mark.parametrize("measure", PAIRED)
TIGHT = {"rel": 1e-12, "abs": 1e-12}


def partitions(size, max_clusters=5):
    labels = st.integers(0, max_clusters - 1)
    return st.lists(labels, min_size=size, max_size=size).map(np.array)


@st.composite
def partition_pairs(draw, max_size=12):
    size = draw(st.integers(1, max_size))
    return draw(partitions(size)), draw(partitions(size))


@st.composite
def coclusterings(draw):
    (row_true, row_pred), (column_true, column_pred) = draw(
        st.tuples(partition_pairs(), partition_pairs())
    )
    return row_true, column_true, row_pred, column_pred


def blocks_of_cells(rows, columns):
    return (rows[:, None] * 100 + columns[None, :]).ravel()


def swap(arguments):
    row_true, column_true, row_pred, column_pred = arguments
    return row_pred, column_pred, row_true, column_true


def transpose(arguments):
    row_true, column_true, row_pred, column_pred = arguments
    return column_true, row_true, column_pred, row_pred


@each_measure
@given(arguments=coclusterings(), names=st.permutations(range(5)))
def test_names_of_labels_do_not_matter(measure, arguments, names):
    row_true, column_true, row_pred, column_pred = arguments
    renamed = row_true, column_true, np.array(names)[row_pred], np.array(names)[column_pred]
    assert measure(*renamed) == pytest.approx(measure(*arguments), **TIGHT)


@each_measure
@given(arguments=coclusterings(), data=st.data())
def test_order_of_rows_and_columns_does_not_matter(measure, arguments, data):
    row_true, column_true, row_pred, column_pred = arguments
    rows = np.array(data.draw(st.permutations(range(len(row_true)))))
    columns = np.array(data.draw(st.permutations(range(len(column_true)))))
    permuted = row_true[rows], column_true[columns], row_pred[rows], column_pred[columns]
    assert measure(*permuted) == pytest.approx(measure(*arguments), **TIGHT)


@each_measure
@given(arguments=coclusterings())
def test_truth_and_prediction_can_be_exchanged(measure, arguments):
    assert measure(*swap(arguments)) == pytest.approx(measure(*arguments), **TIGHT)


@each_measure
@given(arguments=coclusterings())
def test_rows_and_columns_can_be_exchanged(measure, arguments):
    assert measure(*transpose(arguments)) == pytest.approx(measure(*arguments), **TIGHT)


@given(arguments=coclusterings())
def test_ranges(arguments):
    assert 0 <= coclustering_error(*arguments) < 1
    assert coclustering_error(*arguments) <= normalized_classification_error(*arguments) + 1e-15
    assert normalized_classification_error(*arguments) <= 1
    assert 0 <= coclustering_nmi(*arguments) <= 1
    assert -1 <= coclustering_ari(*arguments) <= 1


@given(arguments=coclusterings())
def test_all_measures_agree_on_what_a_perfect_match_is(arguments):
    row_true, column_true, row_pred, column_pred = arguments
    perfect = error_rate(row_true, row_pred) == 0 == error_rate(column_true, column_pred)
    assert (coclustering_error(*arguments) == 0) == perfect
    assert (normalized_classification_error(*arguments) == 0) == perfect
    assert (coclustering_nmi(*arguments) == 1) == perfect
    assert (coclustering_ari(*arguments) == 1) == perfect


@given(arguments=coclusterings())
def test_ari_is_that_of_all_cells(arguments):
    row_true, column_true, row_pred, column_pred = arguments
    slow = adjusted_rand_score(
        blocks_of_cells(row_true, column_true), blocks_of_cells(row_pred, column_pred)
    )
    assert coclustering_ari(*arguments) == pytest.approx(slow, **TIGHT)


@given(arguments=coclusterings())
def test_nmi_is_that_of_all_cells(arguments):
    row_true, column_true, row_pred, column_pred = arguments
    true_cells = blocks_of_cells(row_true, column_true)
    pred_cells = blocks_of_cells(row_pred, column_pred)
    one_block = len(np.unique(true_cells)) == len(np.unique(pred_cells)) == 1
    slow = (
        1.0
        if one_block
        else normalized_mutual_info_score(true_cells, pred_cells, average_method="max")
    )
    assert coclustering_nmi(*arguments) == pytest.approx(slow, **TIGHT)


@given(arguments=coclusterings())
def test_information_about_cells_is_the_sum_over_both_sides(arguments):
    row_true, column_true, row_pred, column_pred = arguments
    cells = mutual_info_score(
        blocks_of_cells(row_true, column_true), blocks_of_cells(row_pred, column_pred)
    )
    sides = mutual_info_score(row_true, row_pred) + mutual_info_score(column_true, column_pred)
    assert cells == pytest.approx(sides, **TIGHT)


@given(pair=partition_pairs(max_size=10))
def test_error_rate_is_the_least_over_all_renamings(pair):
    true, pred = pair
    slow = min(np.mean(np.array(names)[pred] != true) for names in permutations(range(5)))
    assert error_rate(true, pred) == pytest.approx(slow, **TIGHT)


@given(pair=partition_pairs())
def test_error_rate_stays_below_its_bound(pair):
    n_clusters = max(len(np.unique(labels)) for labels in pair)
    assert error_rate(*pair) <= 1 - 1 / n_clusters + 1e-15


@given(size=st.integers(1, 10), data=st.data())
def test_error_rate_obeys_the_triangle_inequality(size, data):
    a, b, c = (data.draw(partitions(size)) for _ in range(3))
    assert error_rate(a, c) <= error_rate(a, b) + error_rate(b, c) + 1e-15


@given(arguments=coclusterings())
def test_error_counts_cells_under_the_best_matching_of_each_side(arguments):
    row_true, column_true, row_pred, column_pred = arguments
    right_rows = 1 - error_rate(row_true, row_pred)
    right_columns = 1 - error_rate(column_true, column_pred)
    assert coclustering_error(*arguments) == pytest.approx(1 - right_rows * right_columns, **TIGHT)
