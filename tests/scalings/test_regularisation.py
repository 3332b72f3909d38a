import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import mutual_info_score

from ccot.datasets import make_latent_blocks
from ccot.runtime.run import Run
from ccot.scalings.ccot import CCOTSettings, fit_ccot
from ccot.scalings.regularisation import choose_reg


@pytest.fixture
def blocks():
    return make_latent_blocks([[4, 0, 2], [1, 5, 1]], 80, 60, sigma=0.1, random_state=0)


def fit_with(**changes):
    def fit(matrix, reg):
        settings = CCOTSettings(reg=reg, n_samplings=4, **changes)
        return fit_ccot(matrix, settings, Run(np.random.default_rng(0)))

    return fit


def test_path_keeps_what_was_seen_and_chooses_the_best(blocks):
    grid = (0.2, 5.0, 1.0)
    path = choose_reg(fit_with(), blocks.data, Run(np.random.default_rng(0)), grid, n_splits=3)
    assert path.reg == (5.0, 1.0, 0.2)
    assert path.scores.shape == (3, 18)
    assert path.best == path.reg[int(path.scores.mean(axis=1).round(6).argmax())]


def test_structure_that_is_reproduced_scores_its_information(blocks):
    path = choose_reg(fit_with(), blocks.data, Run(np.random.default_rng(0)), (0.2,), n_splits=1)
    rows, columns = blocks.row_labels, blocks.column_labels
    row_information = mutual_info_score(rows, rows)
    column_information = mutual_info_score(columns, columns)
    # Halves by rows place rows; halves by columns place columns; each also sees the other side.
    expected = [row_information] * 2 + [column_information] * 3 + [row_information]
    np.testing.assert_allclose(path.scores[0], expected, rtol=0.1)


def test_partitions_into_one_cluster_score_nothing(blocks):
    fit = fit_with(n_row_clusters=1, n_column_clusters=1)
    path = choose_reg(fit, blocks.data, Run(np.random.default_rng(0)), (1.0, 0.2))
    np.testing.assert_array_equal(path.scores, 0)
    assert path.best == 1.0


def test_partitions_of_noise_score_nothing_on_average():
    noise = np.random.default_rng(0).normal(size=(80, 60))
    fit = fit_with(n_row_clusters=3, n_column_clusters=3)
    path = choose_reg(fit, noise, Run(np.random.default_rng(0)), (0.2,), n_splits=4)
    assert abs(path.scores[:, [4, 5]].mean()) < 0.15


def test_structure_beats_its_absence(blocks):
    def fit(matrix, reg):
        if reg == 2.0:
            return fit_with()(matrix, 0.2)
        return fit_with(n_row_clusters=1, n_column_clusters=1)(matrix, 0.2)

    path = choose_reg(fit, blocks.data, Run(np.random.default_rng(0)), (1.0, 2.0, 3.0))
    assert path.best == 2.0


def test_finer_partition_wins_where_both_are_reproduced():
    blocks = make_latent_blocks(np.diag([9.0, 20.0, 40.0]), 90, 90, sigma=0.01, random_state=0)

    def fit(matrix, reg):
        return fit_with(n_row_clusters=int(reg), n_column_clusters=int(reg))(matrix, 0.2)

    assert choose_reg(fit, blocks.data, Run(np.random.default_rng(0)), (2.0, 3.0)).best == 3.0


def test_sparse_matrices_can_be_halved(blocks):
    matrix = np.where(blocks.data > 1.5, blocks.data, 0.0)
    dense, sparse = (
        choose_reg(fit_with(), given, Run(np.random.default_rng(0)), (1.0, 0.2))
        for given in (matrix, sp.csr_array(matrix))
    )
    np.testing.assert_allclose(dense.scores, sparse.scores, atol=1e-12)


@pytest.mark.parametrize("shape", [(3, 50), (50, 3)])
def test_too_few_points_to_halve_are_refused(shape):
    with pytest.raises(ValueError, match=rf"at least 4 rows and 4 columns, got {shape[0]} x"):
        choose_reg(fit_with(), np.ones(shape), Run(np.random.default_rng(0)), (1.0,))
