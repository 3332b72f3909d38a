import numpy as np
import pandas as pd
import pytest

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
PERFECT = {
    coclustering_ari: 1.0,
    coclustering_error: 0.0,
    coclustering_nmi: 1.0,
    normalized_classification_error: 0.0,
}


@pytest.mark.parametrize("measure", PAIRED)
def test_renamed_labels_are_a_perfect_match(measure):
    perfect = measure([0, 0, 1, 2], [3, 3, 5], ["x", "x", "a", "m"], [-1.0, -1.0, 0.5])
    assert perfect == PERFECT[measure]


@pytest.mark.parametrize("measure", PAIRED)
def test_one_block_against_itself_is_a_perfect_match(measure):
    assert measure([0, 0], [0, 0, 0], [7, 7], [1, 1, 1]) == PERFECT[measure]


@pytest.mark.parametrize("measure", PAIRED)
def test_a_single_cell_is_a_perfect_match(measure):
    assert measure([0], [0], [3], [2]) == PERFECT[measure]


def test_error_rate_counts_unmatched_clusters_as_errors():
    assert error_rate([0, 0, 0, 0], [0, 0, 1, 2]) == 0.5
    assert error_rate([0, 0, 1, 2], [0, 0, 0, 0]) == 0.5
    assert error_rate([0, 1, 2, 3], [0, 0, 0, 0]) == 0.75


def test_error_rate_needs_the_best_matching_not_the_greedy_one():
    # The largest overlap (4) is a trap: taking it leaves 0 for the rest.
    table = np.array([[4, 3], [3, 0]])
    true = np.repeat([0, 0, 1], [4, 3, 3])
    pred = np.repeat([0, 1, 0], [4, 3, 3])
    assert len(true) == table.sum()
    assert error_rate(true, pred) == pytest.approx(0.4)


def test_coclustering_error_counts_cells_in_wrong_blocks():
    # 1 of 4 rows and 1 of 5 columns wrong: of 20 cells, 3 x 4 are right.
    error = coclustering_error([0, 0, 1, 1], [0, 0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 1, 1, 1])
    assert error == pytest.approx(1 - 12 / 20)


def test_normalized_error_of_unequal_numbers_uses_the_larger():
    error = normalized_classification_error([0, 0, 0], [0, 0], [0, 1, 2], [0, 0])
    assert error == pytest.approx(1.0)


def test_normalized_error_is_the_error_over_its_bound():
    # 1 of 6 rows wrong, where three clusters can have 4 of 6 wrong.
    rows = [0, 0, 1, 1, 2, 2], [0, 0, 1, 1, 2, 0]
    error = normalized_classification_error(rows[0], [0, 1], rows[1], [0, 1])
    assert error == pytest.approx(1 / 4)


@pytest.mark.parametrize("n_clusters", [2, 3, 7, 49])
def test_normalized_error_of_the_worst_is_exactly_one(n_clusters):
    rows, columns = np.divmod(np.arange(n_clusters**2), n_clusters)
    assert normalized_classification_error(rows, [0], columns, [0]) == 1.0


def test_nmi_of_the_same_blocks_is_one_without_rounding():
    # Information over entropy comes out a little less.
    labels = [0, 0, 1, 1, 1]
    assert coclustering_nmi(labels, labels, labels, labels) == 1.0


def test_nmi_of_independent_partitions_is_zero():
    rows = [0, 0, 1, 1], [0, 1, 0, 1]
    assert coclustering_nmi(rows[0], rows[0], rows[1], rows[1]) == pytest.approx(0, abs=1e-15)


def test_nmi_divides_by_the_larger_total_entropy():
    # Truth: log 2 + log 2; prediction: log 4 + log 2; shared: log 2 + log 2.
    value = coclustering_nmi([0, 0, 1, 1], [0, 0, 1, 1], [0, 1, 2, 3], [0, 0, 1, 1])
    assert value == pytest.approx(2 / 3)


def test_ari_of_the_worst_two_by_two():
    assert coclustering_ari([0, 0, 1, 1], [0], [0, 1, 0, 1], [0]) == pytest.approx(-0.5)


def test_ari_does_not_overflow_on_large_matrices():
    rng = np.random.default_rng(0)
    rows, columns = rng.integers(3, size=300_000), rng.integers(4, size=200_000)
    assert coclustering_ari(rows, columns, rows, columns) == 1.0
    shuffled = coclustering_ari(rows, columns, rng.permutation(rows), rng.permutation(columns))
    assert abs(shuffled) < 1e-3


def test_many_clusters_do_not_need_a_dense_table():
    labels = np.arange(50_000)
    assert coclustering_ari(labels, [0, 1], labels[::-1], [1, 0]) == 1.0
    assert coclustering_nmi(labels, [0, 1], labels[::-1], [1, 0]) == 1.0


def test_pandas_and_lists_are_as_good_as_arrays():
    true = pd.Series(["a", "a", "b"], index=[9, 8, 7])
    assert error_rate(true, [1, 1, 2]) == 0.0
    assert error_rate(pd.Categorical(["a", "a", "b"]), np.array([1, 2, 2])) == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("true", "pred", "message"),
    [
        ([0, 1], [0, 1, 1], "true and pred must label the same points.* 2 and 3"),
        ([], [], "true is empty"),
        ([0, 1], [[0, 1]], r"pred must be one-dimensional.*\(1, 2\)"),
        (0, [0], "true must be one-dimensional"),
        ([0.0, np.nan], [0, 1], "true has a label that is not finite at position 1"),
        ([0, 1], np.array([0, "a"], dtype=object), "pred mixes labels"),
    ],
)
def test_bad_labels_are_refused_with_their_name(true, pred, message):
    with pytest.raises(ValueError, match=message):
        error_rate(true, pred)


@pytest.mark.parametrize("measure", PAIRED)
def test_each_argument_is_named_when_it_is_wrong(measure):
    with pytest.raises(ValueError, match=r"row_true and row_pred .* 2 and 1"):
        measure([0, 1], [0], [0], [0])
    with pytest.raises(ValueError, match=r"column_true and column_pred .* 1 and 2"):
        measure([0, 1], [0], [0, 1], [0, 1])
    with pytest.raises(ValueError, match="column_pred is empty"):
        measure([0, 1], [0], [0, 1], [])
