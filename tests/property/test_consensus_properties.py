"""What every vote must satisfy."""

from itertools import permutations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ccot.scalings.consensus import match_clusters, vote
from tests.scalings.test_consensus import make_draws

seeds = st.integers(0, 2**32 - 1)


@given(seed=seeds, n_clusters=st.integers(1, 5), n_draws=st.integers(1, 12))
def test_relabelled_draws_of_one_partition_restore_it(seed, n_clusters, n_draws):
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.arange(30) % n_clusters)
    members, labels = make_draws(truth, n_draws, 20, rng)
    decided, sure = vote(members, labels, np.ones(n_draws, dtype=bool), truth)
    np.testing.assert_array_equal(decided, truth)
    drawn = np.isin(np.arange(30), members)
    np.testing.assert_array_equal(sure, drawn.astype(float))


@given(seed=seeds, noise=st.floats(0, 0.3))
def test_names_of_clusters_do_not_change_the_vote(seed, noise):
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.arange(60) % 3)
    members, _ = make_draws(truth, 9, 45, rng)
    labels = np.where(
        rng.uniform(size=(9, 45)) < noise, rng.integers(3, size=(9, 45)), truth[members]
    )
    renamed = np.array([rng.permutation(3)[row] for row in labels])
    agrees = rng.uniform(size=9) < 0.8
    one, other = (vote(members, given, agrees, truth) for given in (labels, renamed))
    np.testing.assert_array_equal(one, other)
    assert ((one[1] >= 0) & (one[1] <= 1)).all()


@given(seed=seeds, n_clusters=st.integers(1, 4))
def test_no_renaming_shares_more_members_than_the_matching(seed, n_clusters):
    rng = np.random.default_rng(seed)
    labels, reference = rng.integers(n_clusters, size=(2, 3, 12))
    matched = match_clusters(labels, reference, n_clusters)
    for row, given_labels, row_reference in zip(matched, labels, reference, strict=True):
        best = max(
            np.sum(np.array(names)[given_labels] == row_reference)
            for names in permutations(range(n_clusters))
        )
        assert np.sum(row == row_reference) == best
        # A renaming, not a merger: equal labels stay equal and different ones different.
        assert len({*zip(row.tolist(), given_labels.tolist(), strict=True)}) == len(np.unique(row))
