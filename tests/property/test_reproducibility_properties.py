"""What the comparison of halves must satisfy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from ccot.blocks.problem import make_problem
from ccot.blocks.reproducibility import Halves, adjusted_rand, describe, fit_halves
from ccot.runtime.run import Run

partitions = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=2, max_size=40).map(
    lambda pairs: np.unique(np.array(pairs), axis=0, return_inverse=True)[1].reshape(-1)
)
seeds = st.integers(0, 2**32 - 1)


@given(labels=partitions, seed=seeds)
def test_agreement_is_symmetric_bounded_and_blind_to_names(labels, seed):
    rng = np.random.default_rng(seed)
    other = rng.integers(0, 4, len(labels))
    agreement = adjusted_rand(labels, other)
    assert agreement == pytest.approx(adjusted_rand(other, labels))
    assert agreement == pytest.approx(adjusted_rand_score(labels, other))
    assert agreement <= 1 + 1e-12
    names = rng.permutation(int(labels.max()) + 1)
    assert adjusted_rand(labels, names[labels]) == pytest.approx(1)


@given(labels=partitions, seed=seeds, n_halves=st.integers(1, 4))
def test_what_comes_back_whole_does_so_for_every_cluster_and_point(labels, seed, n_halves):
    rng = np.random.default_rng(seed)
    k = int(labels.max()) + 1
    same = np.array([[rng.permutation(k)[labels]] for _ in range(2 * n_halves)])
    told = describe(Halves(np.array([k]), np.ones((n_halves, 1)), same), labels, labels, np.eye(k))
    assert (told.clusters == 1).all()
    assert (told.points == 1).all()
    mixed = np.array([[rng.integers(0, k, len(labels))] for _ in range(2 * n_halves)])
    told = describe(Halves(np.array([k]), np.ones((n_halves, 1)), mixed), labels, labels, np.eye(k))
    assert ((told.clusters > 0) & (told.clusters <= 1)).all()
    assert ((told.points >= 0) & (told.points <= 1)).all()


@settings(max_examples=15)
@given(seed=seeds, axis=st.integers(0, 1))
def test_halves_are_reproducible_and_within_bounds(seed, axis):
    rng = np.random.default_rng(seed)
    problem = make_problem(rng.poisson(rng.gamma(1.0, 2.0, size=(20, 16))).astype(float), "poisson")
    first, second = (
        fit_halves(problem, axis, (2, 3), Run(np.random.default_rng(seed)), 2) for _ in range(2)
    )
    assert (first.labels == second.labels).all()
    assert (first.agreement <= 1 + 1e-12).all()
    for k, labels in zip(first.numbers, first.labels.swapaxes(0, 1), strict=True):
        assert all(len(np.unique(half)) == k for half in labels)
