import numpy as np
import pytest
from scipy.stats import multivariate_normal, poisson

from ccot.blocks import table_problem
from ccot.blocks.table_problem import (
    make_table_blocks,
    make_table_problem,
    move_rows,
    row_gains,
    table_evidence,
    with_dispersion,
)
from ccot.blocks.tables import prepare_table
from tests.blocks.tables import draw_table, of_kind


def problem_of(table):
    preparation = prepare_table(table)
    return make_table_problem(preparation, preparation.cells(table))


@pytest.fixture(scope="module")
def planted():
    table, truth = draw_table(0, n_rows=200)
    problem = problem_of(table)
    return with_dispersion(problem, truth), truth


def test_gains_of_categories_are_log_likelihoods():
    """Poisson cells with the shares of levels for exposure are a multinomial."""
    table, truth = draw_table(1, n_rows=80, gaps=0.0)
    problem = problem_of(of_kind(table, "word"))
    blocks = make_table_blocks(problem, truth)
    gain = row_gains(problem, blocks, balanced=True)
    sizes = np.bincount(truth)
    share = problem.unit
    mean = (blocks.total + 0.5 * share) / (sizes[:, None] + 0.5) / share
    expected = problem.rows.total @ np.log(mean).T - (problem.owner[-1] + 1)
    np.testing.assert_allclose(gain, expected)


def test_gains_of_counts_are_log_likelihoods_up_to_a_constant():
    table, truth = draw_table(1, n_rows=80, gaps=0.0)
    problem = problem_of(of_kind(table, "count"))
    counts = slice(problem.n_real, problem.n_real + problem.n_counts)
    assert problem.n_counts > 1
    blocks = make_table_blocks(problem, truth)
    total, exposure = blocks.total[:, counts], blocks.exposure[:, counts]
    rate = (total + 0.5) / (exposure + 0.5)
    natural, cumulant = problem.terms(blocks.total, blocks.exposure)
    dispersion = problem.dispersion[counts]
    np.testing.assert_allclose(natural[:, counts] * dispersion, np.log(rate))
    np.testing.assert_allclose(cumulant[:, counts] * dispersion, rate)
    x, mean = problem.rows.total[0, counts], problem.rows.exposure[0, counts]
    gain = x * np.log(rate) - mean * rate
    change = poisson.logpmf(x, mean * rate) - gain
    np.testing.assert_allclose(change - change[0], 0, atol=1e-9)


def test_gaps_gain_nothing(planted):
    problem, truth = planted
    blocks = make_table_blocks(problem, truth)
    emptied = problem.rows.take(np.arange(3))
    emptied.total[1] = emptied.exposure[1] = 0
    gain = emptied.gain(*problem.terms(blocks.total, blocks.exposure))
    np.testing.assert_array_equal(gain[1], 0)


def test_rows_move_to_where_they_gain_and_stay(planted):
    problem, truth = planted
    start = make_table_blocks(problem, truth)
    moved = move_rows(problem, start, 50, 0.0)
    assert np.mean(moved.labels[0] == truth) > 0.9
    again = move_rows(problem, moved, 1, 0.0)
    np.testing.assert_array_equal(again.labels[0], moved.labels[0])
    equal = move_rows(problem, start, 5, 0.0, balanced=True)
    assert np.ptp(np.bincount(equal.labels[0])) <= 1


def test_evidence_of_numbers_is_that_of_a_normal_law():
    """With the means integrated out, the values of a cluster are jointly normal."""
    table, truth = draw_table(2, n_rows=30, n_clusters=2, gaps=0.0)
    table = of_kind(table, "number")
    truth = np.sort(truth)
    problem = problem_of(table)
    total, exposure = make_table_blocks(problem, truth).table(0)
    noise = problem.noise(total, exposure)
    x = problem.rows.total
    # At the best of a grid of prior variances, column by column.
    score = 0.0
    for j in range(x.shape[1]):
        mean = x[:, j].mean()
        means, sizes = total[:, j] / exposure[:, j], exposure[:, j]
        lowest, deviation = noise / sizes.max(), (means - mean) ** 2
        grid = 1e-3 * lowest * (1e3 * max(deviation.max() / lowest, 1)) ** np.linspace(0, 1, 40)
        best = -np.inf
        for prior in grid:
            whole = 0.0
            for k in range(2):
                values = x[truth == k, j]
                cover = noise * np.eye(len(values)) + prior
                whole += multivariate_normal.logpdf(values, np.full(len(values), mean), cover)
            best = max(best, whole)
        score += best
    constant = -0.5 * x.size * np.log(2 * np.pi)
    found = table_problem._normal_evidence(problem, total, exposure)
    assert found == pytest.approx(score - constant, rel=1e-9)


def test_evidence_prefers_the_planted_clusters(planted):
    problem, truth = planted
    rng = np.random.default_rng(0)
    right = table_evidence(problem, make_table_blocks(problem, truth))
    flat = table_evidence(problem, make_table_blocks(problem, np.zeros_like(truth)))
    wrong = table_evidence(problem, make_table_blocks(problem, rng.permutation(truth)))
    assert right > flat > wrong


def test_dispersion_of_counts_is_found():
    table, truth = draw_table(3, n_rows=2000, gaps=0.0)
    problem = with_dispersion(problem_of(of_kind(table, "count")), truth)
    counts = slice(problem.n_real, problem.n_real + problem.n_counts)
    np.testing.assert_allclose(problem.dispersion[counts], 1, atol=0.15)
