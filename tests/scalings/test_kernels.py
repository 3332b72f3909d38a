import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import laplacian_kernel

from ccot.scalings.kernels import (
    LogGaussian,
    LowRankSimilarities,
    gaussian_kernel,
    mean_distance,
    own_similarity,
    similarity,
    squared_distances,
)
from tests.golden.cases import RUN_NAMES, load_run


def make_points(seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(9, 5)), rng.normal(size=(4, 5))


@pytest.mark.parametrize("name", RUN_NAMES)
def test_bandwidths_are_the_authors(name):
    run = load_run(name)
    assert mean_distance(run.matrix) == pytest.approx(float(run.stored["sigma_rows"]), rel=1e-9)
    assert mean_distance(run.matrix.T) == pytest.approx(float(run.stored["sigma_cols"]), rel=1e-9)


def test_mean_distance_counts_the_zeros_of_the_diagonal():
    points, _ = make_points()
    assert mean_distance(points) == pytest.approx(cdist(points, points).mean(), rel=1e-12)


def test_gaussian_kernel_is_its_formula():
    points, anchors = make_points()
    expected = np.exp(-(cdist(points, anchors) ** 2) / (2 * 1.7**2))
    np.testing.assert_allclose(gaussian_kernel(points, anchors, 1.7), expected, rtol=1e-12)


def test_sparse_points_are_as_similar_as_dense_ones():
    points, anchors = make_points()
    points[points < 0.5] = 0
    np.testing.assert_allclose(
        gaussian_kernel(sp.csr_array(points), sp.csr_array(anchors), 2.0),
        gaussian_kernel(points, anchors, 2.0),
        rtol=1e-12,
    )
    assert mean_distance(sp.csr_array(points)) == pytest.approx(mean_distance(points), rel=1e-12)


@pytest.mark.parametrize("far", [1e3, 1e6, 1e9])
def test_similarities_do_not_depend_on_where_the_points_lie(far):
    """Far from the origin squared norms would leave nothing of the distances."""
    points, anchors = make_points()
    rtol = 1e-14 * far  # what float64 resolves of the shifted points
    assert mean_distance(points + far) == pytest.approx(mean_distance(points), rel=rtol)
    np.testing.assert_allclose(
        gaussian_kernel(points + far, anchors + far, 1.7),
        gaussian_kernel(points, anchors, 1.7),
        rtol=10 * rtol,
    )
    np.testing.assert_allclose(
        LowRankSimilarities.of(points + far, np.arange(4), "rbf").features @ np.ones(4),
        LowRankSimilarities.of(points, np.arange(4), "rbf").features @ np.ones(4),
        rtol=100 * rtol,
    )


def test_points_that_coincide_are_all_alike():
    points = np.ones((3, 4))
    assert mean_distance(points) == 0
    np.testing.assert_array_equal(gaussian_kernel(points, points[:2], 0.0), np.ones((3, 2)))


def test_other_kernels_are_those_of_scikit_learn_or_the_given_one():
    points, anchors = make_points()
    np.testing.assert_allclose(
        similarity(points, anchors, "laplacian", 0.0), laplacian_kernel(points, anchors)
    )
    np.testing.assert_allclose(
        similarity(points, anchors, lambda one, other: one @ other, 0.0), points @ anchors.T
    )
    np.testing.assert_array_equal(
        similarity(points, anchors, "rbf", 1.3), gaussian_kernel(points, anchors, 1.3)
    )


@pytest.mark.parametrize("kernel", ["rbf", "linear", "laplacian"])
def test_similarities_of_points_to_themselves(kernel):
    points, _ = make_points()
    matrix, bandwidth = own_similarity(points, kernel)
    assert bandwidth == (pytest.approx(mean_distance(points)) if kernel == "rbf" else 0)
    np.testing.assert_allclose(
        matrix, similarity(points, points, kernel, bandwidth), rtol=1e-12, atol=1e-14
    )


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_features_by_all_points_give_all_similarities(kernel, make):
    points, _ = make_points()
    few = LowRankSimilarities.of(make(points), np.arange(9), kernel)
    matrix, expected = own_similarity(points, kernel)
    assert few.landmarks.bandwidth == pytest.approx(expected)
    np.testing.assert_allclose(few.features @ few.features.T, matrix, atol=1e-9)
    np.testing.assert_allclose(matrix @ few.landmarks.weights, few.features, atol=1e-9)


def test_features_by_equal_landmarks_stay_finite():
    points = np.repeat(make_points()[1], 5, axis=0)
    features = LowRankSimilarities.of(points, np.arange(10), "rbf").features
    assert np.isfinite(features).all()
    features = LowRankSimilarities.of(np.ones((6, 2)), np.arange(3), "rbf").features
    np.testing.assert_allclose(features @ features.T, 1)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_logarithm_of_the_gaussian_kernel_multiplies_like_it(make):
    points, _ = make_points()
    other = np.random.default_rng(1).normal(size=(9, 3))
    expected = np.log(gaussian_kernel(points, points, 1.7)) @ other
    np.testing.assert_allclose(LogGaussian(make(points), 1.7) @ other, expected, rtol=1e-10)
    assert not (LogGaussian(make(points), 0.0) @ other).any()


def test_two_points_by_hand():
    assert mean_distance([[0.0], [2.0]]) == 1.0
    np.testing.assert_array_equal(squared_distances([[1e9], [1e9 + 2]], [[1e9 - 1]]), [[1], [9]])
    assert own_similarity(np.array([[0.0], [2.0]]), "rbf")[1] == 1.0
