"""What scikit-learn and SciPy say of the same data."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist, pdist, squareform
from scipy.special import logsumexp
from sklearn.cluster import KMeans
from sklearn.decomposition import NMF
from sklearn.metrics import (
    adjusted_rand_score,
    consensus_score,
    mutual_info_score,
    normalized_mutual_info_score,
)
from sklearn.metrics.cluster import contingency_matrix
from sklearn.metrics.pairwise import rbf_kernel

from ccot.baselines import TwoSidedKMeans, TwoSidedNMF
from ccot.metrics import coclustering_ari, coclustering_error, coclustering_nmi, error_rate
from ccot.scalings.kernels import gaussian_kernel, mean_distance, own_similarity
from ccot.transport.sinkhorn import extend_scaling
from tests.truth.problems import examples, seeds

# Random problems may stop at their limit of iterations; what is compared holds there too.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
TIGHT = {"rel": 1e-11, "abs": 1e-11}


def draw_partitions(rng, size):
    """Two partitions that may agree, nearly agree, or have nothing to do with each other."""
    one = rng.integers(0, rng.integers(1, 9), size)
    noise = rng.uniform(size=size) < rng.choice([0.0, 0.1, 1.0])
    return one, np.where(noise, rng.integers(0, rng.integers(1, 9), size), one)


# Measures -------------------------------------------------------------------------------------


@examples(40, 2000)
@given(seed=seeds)
def test_error_is_what_the_best_assignment_of_the_table_leaves(seed):
    rng = np.random.default_rng(seed)
    true, pred = draw_partitions(rng, int(rng.integers(1, 200)))
    table = contingency_matrix(true, pred)
    matched = table[linear_sum_assignment(-table)].sum()
    assert error_rate(true, pred) == pytest.approx(1 - matched / len(true), **TIGHT)


@examples(40, 2000)
@given(seed=seeds)
def test_measures_of_cells_are_scikit_learns(seed):
    rng = np.random.default_rng(seed)
    row_true, row_pred = draw_partitions(rng, int(rng.integers(1, 25)))
    column_true, column_pred = draw_partitions(rng, int(rng.integers(1, 25)))
    arguments = row_true, column_true, row_pred, column_pred
    true, pred = (
        np.add.outer(100 * rows, columns).ravel()
        for rows, columns in ((row_true, column_true), (row_pred, column_pred))
    )
    assert coclustering_ari(*arguments) == pytest.approx(adjusted_rand_score(true, pred), **TIGHT)
    if len(np.unique(true)) > 1 or len(np.unique(pred)) > 1:
        expected = normalized_mutual_info_score(true, pred, average_method="max")
        assert coclustering_nmi(*arguments) == pytest.approx(expected, **TIGHT)


@examples(40, 2000)
@given(seed=seeds)
def test_without_columns_the_measures_are_those_of_rows(seed):
    rng = np.random.default_rng(seed)
    true, pred = draw_partitions(rng, int(rng.integers(2, 300)))
    arguments = true, [0], pred, [0]
    assert coclustering_ari(*arguments) == pytest.approx(adjusted_rand_score(true, pred), **TIGHT)
    assert coclustering_error(*arguments) == error_rate(true, pred)
    information = mutual_info_score(true, pred)
    most = max(mutual_info_score(true, true), mutual_info_score(pred, pred))
    if most > 0:
        assert coclustering_nmi(*arguments) == pytest.approx(information / most, **TIGHT)


def blocks_of(rows, columns):
    """Return the blocks of two partitions as scikit-learn's biclusters."""
    row_sets = [rows == k for k in np.unique(rows) for _ in np.unique(columns)]
    column_sets = [columns == m for _ in np.unique(rows) for m in np.unique(columns)]
    return SimpleNamespace(biclusters_=(np.array(row_sets), np.array(column_sets))).biclusters_


@examples(20, 500)
@given(seed=seeds)
def test_consensus_is_perfect_where_there_is_no_error(seed):
    rng = np.random.default_rng(seed)
    row_true, row_pred = draw_partitions(rng, int(rng.integers(1, 15)))
    column_true, column_pred = draw_partitions(rng, int(rng.integers(1, 15)))
    consensus = consensus_score(blocks_of(row_true, column_true), blocks_of(row_pred, column_pred))
    error = coclustering_error(row_true, column_true, row_pred, column_pred)
    assert (consensus == pytest.approx(1, abs=1e-12)) == (error == 0)


# Rivals ---------------------------------------------------------------------------------------


def starts_of(random_state, n_init):
    return np.random.default_rng(random_state).integers(2**31, size=n_init).tolist()


@examples(10, 300)
@given(seed=seeds)
def test_two_sided_kmeans_is_kmeans_of_each_side(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=rng.integers(4, 30, size=2)) * 10 ** rng.uniform(-6, 6)
    numbers = [int(rng.integers(1, min(5, size) + 1)) for size in X.shape]
    model = TwoSidedKMeans(*numbers, n_init=2, random_state=seed).fit(X)
    sides = [
        KMeans(k, n_init=2, random_state=starts_of(seed, 2)[0]).fit(np.ascontiguousarray(points))
        for k, points in zip(numbers, (X, X.T), strict=True)
    ]
    assert model.criterion_ == pytest.approx(sum(side.inertia_ for side in sides))
    assert error_rate(sides[0].labels_, model.row_labels_) == 0
    assert error_rate(sides[1].labels_, model.column_labels_) == 0


@examples(6, 200)
@given(seed=seeds)
def test_two_sided_nmf_is_nmf_of_each_side(seed):
    rng = np.random.default_rng(seed)
    X = rng.gamma(2.0, size=rng.integers(4, 20, size=2))
    numbers = [int(rng.integers(1, min(4, size) + 1)) for size in X.shape]
    model = TwoSidedNMF(*numbers, init="random", n_init=1, max_iter=50, random_state=seed).fit(X)
    (start,) = starts_of(seed, 1)
    sides = [
        NMF(k, init="random", max_iter=50, random_state=start).fit(np.ascontiguousarray(points))
        for k, points in zip(numbers, (X, X.T), strict=True)
    ]
    expected = sum(side.reconstruction_err_**2 for side in sides)
    assert model.criterion_ == pytest.approx(expected, rel=1e-6)


# Similarities ---------------------------------------------------------------------------------


@examples(30, 1000)
@given(seed=seeds)
def test_gaussian_kernels_are_those_of_direct_distances(seed):
    """Wherever the points lie: far from the origin squares would leave nothing of distances."""
    rng = np.random.default_rng(seed)
    n, m, k = rng.integers(2, 20, size=3)
    scale = 10 ** rng.uniform(-3, 3)
    far = scale * rng.choice([0.0, 1e3, 1e6])
    points, anchors = (far + scale * rng.normal(size=(size, k)) for size in (n, m))
    width = mean_distance(points)
    assert width == pytest.approx(squareform(pdist(points)).mean(), rel=1e-6)
    expected = np.exp(-(cdist(points, anchors) ** 2) / (2 * width**2))
    np.testing.assert_allclose(gaussian_kernel(points, anchors, width), expected, atol=1e-6)
    own, bandwidth = own_similarity(points, "rbf")
    assert bandwidth == pytest.approx(width, rel=1e-9)
    np.testing.assert_allclose(
        own, np.exp(-(squareform(pdist(points)) ** 2) / (2 * width**2)), atol=1e-6
    )
    if not far:
        theirs = rbf_kernel(points, anchors, gamma=1 / (2 * width**2))
        np.testing.assert_allclose(gaussian_kernel(points, anchors, width), theirs, rtol=1e-9)


@examples(30, 1000)
@given(seed=seeds)
def test_unseen_points_are_scaled_by_one_more_sum_of_exponentials(seed):
    rng = np.random.default_rng(seed)
    log_kernel = -(10 ** rng.uniform(-6, 6, size=rng.integers(1, 20, size=2)))
    log_scaling = rng.normal(size=log_kernel.shape[1]) * rng.choice([1.0, 1e3])
    expected = np.log(0.25) - logsumexp(log_kernel + log_scaling, axis=1)
    given_scaling = extend_scaling(log_kernel.copy(), log_scaling, 0.25)
    np.testing.assert_allclose(given_scaling, expected, rtol=1e-12, atol=1e-12)
