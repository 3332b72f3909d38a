"""Matrices of a million rows and two columns, or the other way round."""

import time

import numpy as np
import pytest

from ccot import TransportCoclustering

N = 1_000_000


def blocks(rng):
    return np.array([[0.0, 4.0], [4.0, 0.0]])[rng.integers(0, 2, N)] + rng.normal(size=(N, 2))


def noise(rng):
    return rng.normal(size=(N, 2))


def counts(rng):
    return rng.poisson(np.array([[1.0, 9.0], [9.0, 1.0]])[rng.integers(0, 2, N)])


def levels(rng):
    """Rows at two levels: turned, their columns might seem to have different units."""
    return 3.0 * rng.integers(0, 2, (N, 1)) + rng.normal(size=(N, 2))


@pytest.mark.slow
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("make", [blocks, noise, counts, levels])
def test_slender_matrices_are_fitted_in_seconds(make, turned):
    data = make(np.random.default_rng(0))
    began = time.process_time()
    TransportCoclustering(random_state=0).fit(np.ascontiguousarray(data.T) if turned else data)
    assert time.process_time() - began < 20  # of the processor, whatever else runs


@pytest.mark.slow
def test_many_columns_in_different_units_are_prepared_in_seconds():
    rng = np.random.default_rng(0)
    data = rng.normal(size=(20, 20_000)) * 10 ** rng.uniform(-3, 3, 20_000)
    began = time.process_time()
    TransportCoclustering(random_state=0).fit(data)
    assert time.process_time() - began < 15
