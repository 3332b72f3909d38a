import numpy as np
import pytest
from scipy.stats import wilcoxon

from ccot.experiments.summary import paired_p_value, summarise


def test_all_trials_count_and_those_with_the_right_numbers_have_a_score_of_their_own(make_trials):
    (cell,) = summarise(make_trials("NMF", [0.1, 0.3, None, 0.2]))
    assert (cell.n_trials, cell.right.n_trials) == (4, 3)
    assert cell.right.mean == pytest.approx(0.2)
    assert cell.right.sd == pytest.approx(0.1)
    assert cell.every.mean == pytest.approx((0.1 + 0.3 + 0.5 + 0.2) / 4)
    assert (cell.rows_right, cell.columns_right) == (4, 3)


def test_a_method_that_mostly_misses_the_numbers_has_found_nothing(make_trials):
    seldom, never = summarise(
        make_trials("NMF", [0.0, None, None]) + make_trials("ITCC", [None] * 3)
    )
    assert not seldom.found
    assert not seldom.right.bold
    assert never.right.mean is None
    assert never.right.p_value is None
    assert never.every.mean == 0.5


def test_the_best_is_bold_and_what_cannot_be_told_from_it(make_trials):
    rng = np.random.default_rng(0)
    low = rng.uniform(0.0, 0.1, 20)
    cells = summarise(
        make_trials("K-means", low + 0.2)
        + make_trials("DKM", low)
        + make_trials("GLBM", rng.permutation(low) + 0.001)
    )
    for kind in ("every", "right"):
        bold = {cell.method: getattr(cell, kind).bold for cell in cells}
        assert bold == {"K-means": False, "DKM": True, "GLBM": True}
    best = next(cell for cell in cells if cell.method == "DKM")
    assert best.every.p_value is None


def test_trials_with_wrong_numbers_count_against_a_method(make_trials):
    rival = make_trials("K-means", [0.0] * 30)
    steps = make_trials("CCOT", [0.0] * 20 + [None] * 10)
    ours = summarise(rival + steps)[1]
    assert ours.right.bold
    assert ours.right.p_value == 1.0
    assert not ours.every.bold
    assert ours.every.p_value == pytest.approx(wilcoxon([0.0] * 20 + [0.5] * 10).pvalue)


def test_the_test_is_wilcoxons_on_shared_matrices(make_trials):
    one = make_trials("K-means", [0.1, 0.2, 0.4, None, 0.3, 0.9, 0.8])
    other = make_trials("DKM", [0.2, 0.1, 0.1, 0.2, 0.5, None, 0.1])
    differences = [-0.1, 0.1, 0.3, 0.3, -0.2, 0.4, 0.7]
    assert paired_p_value(one, other) == pytest.approx(wilcoxon(differences).pvalue)
    right = [[t for t in trials if t.numbers_right] for trials in (one, other)]
    differences = [-0.1, 0.1, 0.3, -0.2, 0.7]
    assert paired_p_value(*right) == pytest.approx(wilcoxon(differences).pvalue)


def test_equal_errors_do_not_differ(make_trials):
    cells = summarise(make_trials("K-means", [0.0] * 5) + make_trials("DKM", [0.0] * 5))
    assert [cell.every.p_value for cell in cells] == [None, 1.0]
    assert all(cell.every.bold for cell in cells)


def test_overlaps_and_sets_are_compared_apart(make_trials):
    cells = summarise(
        make_trials("K-means", [0.1] * 3)
        + make_trials("DKM", [0.2] * 3, overlap="calibrated")
        + make_trials("GLBM", [0.3] * 3, data_set="D4")
    )
    assert len(cells) == 3
    assert all(cell.every.bold and cell.every.p_value is None for cell in cells)
