from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp

from ccot.blocks import start
from ccot.blocks.problem import make_blocks, make_problem
from ccot.blocks.spectrum import noise_level, shrink
from ccot.blocks.start import draw_seed, embed, over_segment, segment
from ccot.blocks.sweep import sweep
from ccot.metrics import error_rate
from ccot.runtime.run import Checkpoint, Run


def assert_same_up_to_signs(found, expected):
    """Vectors of a decomposition have no sign of their own; inner products do not see it."""
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one @ one.T, other @ other.T, atol=1e-9 * np.abs(other).max())


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("family", ["poisson", "bernoulli"], indirect=True)
def test_scores_of_counts_are_directions_of_the_matrix_scaled_by_degrees(planted, family, make):
    X = planted[0]
    X[4], X[:, -1] = 0, 0
    degrees = X.sum(axis=1), X.sum(axis=0)
    rows, columns = (1 / np.sqrt(degree + degree.mean() / 2) for degree in degrees)
    left, singular, right = np.linalg.svd(rows[:, None] * X * columns, full_matrices=False)
    scores = left[:, :21] * singular[:21], right[:21].T * singular[:21]
    lengths = [np.linalg.norm(side, axis=1, keepdims=True) for side in scores]
    expected = [side / np.maximum(n, 1e-12) for side, n in zip(scores, lengths, strict=True)]
    found = embed(make_problem(make(X), family), np.random.default_rng(0))
    # A search among random vectors is as good as they come.
    tolerance = 1e-9 if make is np.asarray else 1e-3
    for one, other, degree in zip(found, expected, degrees, strict=True):
        # Points that hold nothing have no direction: what they have is rounding.
        np.testing.assert_allclose(one[degree == 0], 0, atol=1e-3)
        one, other = one[degree > 0], other[degree > 0]
        np.testing.assert_allclose(one @ one.T, other @ other.T, atol=tolerance)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_counts_that_are_all_zero_have_no_directions(make):
    problem = make_problem(make(np.zeros((6, 5))), "poisson")
    for side, size in zip(embed(problem, np.random.default_rng(0)), (6, 5), strict=True):
        np.testing.assert_array_equal(side, np.zeros((size, 5)))


@pytest.mark.parametrize("height", [0.0, 1.0], ids=["noise", "blocks"])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("precision", [None, (0.5, 2.0), (4.0, 4.0)], ids=str)
def test_scores_of_real_values_are_weighed_by_what_is_signal(height, missing, precision):
    rng = np.random.default_rng(0)
    rows, columns = rng.integers(0, 2, 40), rng.integers(0, 3, 30)
    X = height * 4.0 * np.outer(rows, columns == 1) + rng.normal(size=(40, 30)) + 0.5
    X /= 1000
    weights = np.ones(30) if precision is None else rng.uniform(*precision, 30)
    if missing:
        X[rng.uniform(size=X.shape) < 0.2] = np.nan
    seen = np.where(np.isnan(X), 0.0, weights)
    mean = np.nansum(X * seen) / seen.sum()
    values = np.where(np.isnan(X), mean, X) * np.sqrt(weights)
    left, singular, right = np.linalg.svd(values, full_matrices=False)
    shrunk = shrink(singular, values.shape, noise_level(values, singular))
    rank = min(np.count_nonzero(shrunk) + 1, 20)
    weight = np.maximum(shrunk, shrunk[0] / 4 * singular / singular[0])[:rank]
    expected = left[:, :rank] * weight, right[:rank].T * weight
    problem = make_problem(X, "gaussian", None if precision is None else weights)
    assert_same_up_to_signs(embed(problem, np.random.default_rng(0)), expected)


def test_without_signal_the_strongest_direction_is_kept():
    X = np.random.default_rng(1).normal(size=(30, 30))
    X /= np.linalg.svd(X, compute_uv=False)[0]
    left, singular, right = np.linalg.svd(X)
    assert shrink(singular, X.shape, noise_level(X, singular))[0] == 0
    expected = left[:, :1] * singular[0], right[:1].T * singular[0]
    found = embed(make_problem(X, "gaussian"), np.random.default_rng(0))
    assert_same_up_to_signs(found, expected)


def test_sparse_real_values_are_not_shrunk():
    rng = np.random.default_rng(0)
    X, precision = rng.normal(size=(40, 15)), rng.uniform(0.5, 2.0, 15)
    left, singular, right = np.linalg.svd(X * np.sqrt(precision), full_matrices=False)
    problem = make_problem(sp.csr_array(X), "gaussian", precision)
    found = embed(problem, np.random.default_rng(0))
    assert_same_up_to_signs(found, (left * singular, right.T * singular))


@pytest.mark.parametrize(
    ("n_points", "n_segments"), [(1, 1), (2, 2), (9, 9), (50, 16), (100, 20), (101, 21), (500, 40)]
)
def test_segments_are_many_but_not_too_many(n_points, n_segments):
    scores = np.random.default_rng(0).normal(size=(n_points, 3))
    labels = segment(scores, draw_seed(scores, np.random.default_rng(0)))
    assert len(np.unique(labels)) == n_segments
    np.testing.assert_array_equal(
        labels, segment(scores, draw_seed(scores, np.random.default_rng(0)))
    )


def test_equal_scores_are_one_segment():
    equal = np.tile([3.0, 5.0], (30, 1))
    labels = segment(equal, draw_seed(equal, np.random.default_rng(0)))
    np.testing.assert_array_equal(labels, 0)
    assert labels.dtype == np.int64
    twice = np.repeat([[0.0, 1.0], [5.0, 5.0]], 15, axis=0)
    assert error_rate(np.repeat([0, 1], 15), segment(twice, 0)) == 0


def test_every_segmentation_has_a_seed_of_its_own():
    rng = np.random.default_rng(0)
    assert len({draw_seed(np.eye(2), rng) for _ in range(70)}) == 70


def test_some_of_many_points_tell_the_centres(monkeypatch):
    """All points go to the nearest centre."""
    monkeypatch.setattr(start, "_SAMPLE", 60)
    rng, groups = np.random.default_rng(0), np.repeat(np.arange(3), 80)
    scores = rng.normal(size=(240, 2)) + 100 * np.eye(3)[groups, :2]
    found = segment(scores, 7)
    assert len(np.unique(found)) == 31
    mixed = [len(set(groups[found == k])) for k in np.unique(found)]
    assert max(mixed) == 1
    # No point of the sample is taken twice: each has a cluster of its own if there are enough.
    monkeypatch.setattr(start, "_SAMPLE", 16)
    assert len(np.unique(segment(scores[:60], 7))) == 16


def test_warnings_of_overflow_are_not_hidden():
    with pytest.warns(RuntimeWarning, match="overflow"):
        segment(1e200 * np.random.default_rng(0).normal(size=(30, 2)), 0)


def test_pieces_of_the_start_are_named(planted, family):
    names = Counter()

    class Witness(Checkpoint):
        def piece(self, name, make, send=None):
            names[name] += 1
            return make()

        def series(self, name, total, rest, count=len):
            for made in rest(0):
                names[name] += 1
                yield made

    problem = make_problem(planted[0], family)
    run = Run(np.random.default_rng(0), checkpoint=Witness())
    over_segment(problem, 2, run)
    assert names == {"scores": 1, "segments": 4, "start": 2}


def test_starts_are_swept(planted, family):
    X = planted[0]
    problem, told = make_problem(X, family), []
    run = Run(np.random.default_rng(0), lambda *news: told.append(news))
    found = over_segment(problem, 2, run)
    assert len(found) == 2
    assert found[0].shape[0] > 2
    assert all(blocks.n_sweeps > 0 for blocks in found)
    assert told[-1] == ("starts", 2, 2)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_a_start_is_what_a_few_sweeps_make_of_the_segments(make):
    rng = np.random.default_rng(0)
    rows, columns = rng.integers(0, 2, 200), rng.integers(0, 3, 150)
    X = make(rng.poisson(2.0 + 3 * np.outer(rows, columns == 1)).astype(float))
    problem, rng = make_problem(X, "poisson"), np.random.default_rng(0)
    labels = [segment(side, draw_seed(side, rng)) for side in embed(problem, rng)]
    segments = make_blocks(problem, *labels)
    expected = sweep(problem, segments, max_iter=start._SWEEPS, tol=start._TOL)
    found = over_segment(problem, 1, Run(np.random.default_rng(0)))[0]
    # Fewer than until nothing moves.
    assert found.n_sweeps == expected.n_sweeps < sweep(problem, segments).n_sweeps
    for given, own in zip(found.labels, expected.labels, strict=True):
        np.testing.assert_array_equal(given, own)
    fewer = over_segment(problem, 1, Run(np.random.default_rng(0)), max_iter=1)[0]
    assert fewer.n_sweeps == 1


def test_rows_of_a_single_column_are_segmented():
    problem = make_problem(np.arange(40.0)[:, None], "gaussian")
    found = over_segment(problem, 1, Run(np.random.default_rng(0)))[0]
    assert found.shape[0] > 2
    assert found.shape[1] == 1
