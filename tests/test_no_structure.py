"""Where there is nothing to find, nothing is found."""

import numpy as np
import pytest

from ccot import CCOT, CCOTGW

SHAPES = [(100, 60), (60, 100), (80, 80), (150, 40), (50, 50)]


def make_matrix(seed):
    """Gaussian noise, uniform noise or one smooth gradient under noise, in turn."""
    rng = np.random.default_rng(seed)
    shape = SHAPES[seed // 3 % len(SHAPES)]
    if seed % 3 == 0:
        return rng.normal(size=shape)
    if seed % 3 == 1:
        return rng.uniform(size=shape)
    rows, columns = np.linspace(0, 1, shape[0])[:, None], np.linspace(0, 1, shape[1])
    return rows + columns + 0.1 * rng.normal(size=shape)


@pytest.mark.parametrize("n_matrices", [21, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("estimator", [CCOT(random_state=0), CCOTGW()], ids=["CCOT", "CCOTGW"])
def test_one_cluster_each_way_in_matrices_without_structure(estimator, n_matrices):
    found = [estimator.fit(make_matrix(seed)).block_means_.shape for seed in range(n_matrices)]
    assert np.mean([numbers == (1, 1) for numbers in found]) >= 0.95
