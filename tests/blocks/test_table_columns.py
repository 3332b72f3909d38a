import tracemalloc

import numpy as np
import pytest

from ccot.blocks.reproducibility import Halves
from ccot.blocks.table_columns import (
    Choice,
    ScorePlacement,
    choose_number,
    cluster_columns,
    score_table,
    score_weights,
)
from ccot.blocks.table_problem import make_table_blocks, make_table_problem
from ccot.blocks.tables import prepare_table
from ccot.io.matrix import Table
from ccot.metrics import error_rate

RNG = np.random.default_rng(0)
TRUTH = np.repeat(np.arange(3), 60)


def clustered(table, wanted=None):
    preparation = prepare_table(table)
    problem = make_table_problem(preparation, preparation.cells(table))
    blocks = make_table_blocks(problem, TRUTH)
    weights = score_weights(problem, blocks)
    scores = score_table(problem, blocks, weights)
    return problem, scores, cluster_columns(problem, scores, wanted, np.random.default_rng(0))


def two_groups(n_each=5, sign=1.0):
    """Columns that rise over the row clusters, some of them falling, and columns with a hump."""
    rise, hump = np.array([-1.0, 0.0, 1.0]), np.array([-1.0, 2.0, -1.0])
    columns = {}
    for j in range(n_each):
        turned = sign if j == 0 else 1.0
        columns[f"rise{j}"] = turned * 2 * rise[TRUTH] + RNG.normal(size=180) + 10 * j
        columns[f"hump{j}"] = 2 * hump[TRUTH] + RNG.normal(size=180) - 10 * j
    return Table(columns)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_columns_that_tell_the_same_share_a_cluster_with_a_sign(sign):
    table = two_groups(sign=sign)
    _, _, found = clustered(table)
    groups = np.array([name.startswith("rise") for name in table.columns])
    assert error_rate(groups, found.labels) == 0
    assert found.signs[0] * found.signs[2] == sign
    assert found.confidence.min() > 0.9


def test_scores_are_in_units_of_the_noise():
    problem, (total, exposure), _ = clustered(two_groups())
    assert exposure.sum() == 180 * 10
    spread = np.sqrt(problem.noise(*make_table_blocks(problem, TRUTH).table(0)))
    sums = np.array([problem.rows.total[k == TRUTH].sum(axis=0) for k in range(3)])
    np.testing.assert_allclose(total, sums / spread)


def test_scores_of_many_columns_take_little_memory():
    columns = RNG.normal(size=(3000, 180))
    table = Table({f"c{j}": column for j, column in enumerate(columns)})
    preparation = prepare_table(table)
    problem = make_table_problem(preparation, preparation.cells(table))
    blocks = make_table_blocks(problem, TRUTH)
    tracemalloc.start()
    score_table(problem, blocks, score_weights(problem, blocks))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10 * problem.rows.total.nbytes


def test_categories_are_scored_along_what_separates_the_rows():
    word = np.array(["a", "b", "c"], dtype=object)[TRUTH]
    other = np.array(["u", "v"], dtype=object)[(TRUTH == 1).astype(int)]
    _, (total, exposure), _ = clustered(Table({"word": word, "other": other}))
    np.testing.assert_allclose(exposure, 60)
    mean = total / exposure
    # Variance one over all rows, mean zero.
    np.testing.assert_allclose(mean.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose((mean[:, 1] ** 2).mean(), 1)


def test_kinds_merge_among_themselves_first():
    table = two_groups(2)
    table.columns["word"] = np.array(["a", "b", "c"], dtype=object)[TRUTH]
    table.columns["other"] = np.array(["u", "v"], dtype=object)[(TRUTH == 1).astype(int)]
    _, _, found = clustered(table, 2)
    assert error_rate(np.array([0, 0, 0, 0, 1, 1]), found.labels) == 0
    assert len(np.unique(clustered(table, 1)[2].labels)) == 1
    assert len(np.unique(clustered(table, 6)[2].labels)) == 6


def test_many_columns_are_cut_finely_first():
    table = two_groups(60)
    _, _, found = clustered(table, 2)
    groups = np.array([name.startswith("rise") for name in table.columns])
    assert error_rate(groups, found.labels) < 0.02
    assert found.finest.max() + 1 <= 40


def test_numbers_are_those_of_the_score_where_it_stops_early():
    costs = np.array([9.0, 5.0, 0.1, 0.08, 0.05, 0.04, 0.03])
    early, late, flat = {1: 0.0, 2: 5.0, 3: 1.0}, {1: 0.0, 7: 5.0}, {1: 5.0, 7: 0.0}
    assert choose_number(costs, early, 8) == Choice(2, early, "icl")
    by_jump = choose_number(costs, late, 8)
    assert (by_jump.number, by_jump.criterion) == (3, "jump")
    assert choose_number(costs, flat, 8).number == 1
    assert choose_number(costs, flat, 8, least=2).number == 2


def test_halves_overrule_a_jump_that_they_do_not_find_again():
    costs, late = np.array([9.0, 5.0, 0.1, 0.08, 0.05, 0.04, 0.03]), {1: 0.0, 7: 5.0}
    labels = np.zeros((2, 2, 1), np.uint8)
    lost, found = (Halves(np.array([2, 3]), np.array([both]), labels)
                   for both in ([0.9, 0.01], [0.9, 0.9]))  # fmt: skip
    assert choose_number(costs, late, 8, lost).number == 2
    chosen = choose_number(costs, late, 8, found)
    assert (chosen.number, chosen.criterion, set(chosen.scores)) == (3, "reproducibility", {2, 3})
    # The evidence is asked first.
    assert choose_number(costs, {1: 0.0, 2: 5.0}, 8, lost).criterion == "icl"


def test_new_columns_go_where_theirs_are():
    means = np.array([[-1.0, 0.0, 1.0], [-1.0, 2.0, -1.0]])
    placement = ScorePlacement(width=180, rows=TRUTH, means=means, noise=0.5)
    rise = TRUTH + 0.1 * RNG.normal(size=180)
    hump = (TRUTH == 1) + 0.1 * RNG.normal(size=180)
    gappy = rise.copy()
    gappy[::4] = np.nan
    assert placement.labels(np.array([rise, -rise, 5 * hump, gappy])).tolist() == [0, 0, 1, 0]
