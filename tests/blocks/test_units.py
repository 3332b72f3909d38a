import numpy as np
import pytest

from ccot.blocks.preparation import differ_in_unit, row_level_share
from ccot.datasets import load_simulated

RNG = np.random.default_rng(0)
SCALES = 10.0 ** np.arange(6)


@pytest.mark.parametrize("name", ["D1", "D2", "D3", "D4"])
@pytest.mark.parametrize("overlap", ["published", "calibrated"])
def test_simulated_matrices_have_one_unit(name, overlap):
    assert not differ_in_unit(load_simulated(name, random_state=0, overlap=overlap).data)


def test_unlike_measurements_differ_in_unit():
    X = RNG.normal(size=(80, 6))
    assert differ_in_unit(X * SCALES)
    assert differ_in_unit(X + 10 * np.arange(6))
    assert not differ_in_unit(X * RNG.uniform(0.5, 2, 6))


def test_amounts_that_overlap_as_logarithms_share_a_unit():
    assert not differ_in_unit(np.exp(3 * RNG.normal(size=(200, 6))) * RNG.uniform(0.2, 5, 6))


def test_gaps_and_constant_columns_are_passed_over():
    X = RNG.normal(size=(80, 6)) * SCALES
    X[::3] = np.nan
    X[:, 5] = 1.0
    assert differ_in_unit(X)
    assert not differ_in_unit(np.full((5, 3), np.nan))


def test_the_level_of_rows_is_a_share_of_the_variance():
    level = RNG.normal(size=(200, 1))
    X = level + RNG.normal(size=(200, 50))
    X[RNG.random(X.shape) < 0.2] = np.nan
    assert row_level_share(X) == pytest.approx(0.5, abs=0.07)
    assert row_level_share(RNG.normal(size=(200, 50))) < 0.05
    assert row_level_share(np.ones((4, 3))) == 0
