"""What is CCOT-GW's own: kernels, losses, weights and the support of the barycentre."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels

from ccot import CCOTGW, load_model
from ccot.datasets import load_simulated
from ccot.metrics import coclustering_error, error_rate
from ccot.scalings import kernels
from ccot.scalings.ccot_gw import REG_GRID
from ccot.scalings.kernels import gaussian_kernel, mean_distance


def paper_kernel(points):
    return gaussian_kernel(points, points, mean_distance(points))


def similarity_of_norms(one, other):
    return np.exp(-abs(np.linalg.norm(one) - np.linalg.norm(other)))


def assert_same_fit(one, other, atol=1e-9):
    np.testing.assert_array_equal(one.row_labels_, other.row_labels_)
    np.testing.assert_array_equal(one.column_labels_, other.column_labels_)
    np.testing.assert_allclose(one.row_log_scaling_, other.row_log_scaling_, atol=atol)
    np.testing.assert_allclose(one.column_log_scaling_, other.column_log_scaling_, atol=atol)


@pytest.mark.parametrize("loss", ["square", "kl"])
def test_a_set_of_the_paper_is_partitioned(loss):
    blocks = load_simulated("D3", random_state=0)
    model = CCOTGW(loss=loss).fit(blocks.data)
    error = coclustering_error(
        blocks.row_labels, blocks.column_labels, model.row_labels_, model.column_labels_
    )
    assert (model.n_row_clusters_, model.n_column_clusters_) == (2, 4)
    assert error == 0


@pytest.mark.parametrize("loss", ["square", "kl"])
def test_log_scalings_are_nearly_linear_in_mean_similarity(blocks, loss):
    model = CCOTGW(loss=loss).fit(blocks.data)
    degree = paper_kernel(blocks.data).mean(axis=1)
    correlation = np.corrcoef(model.row_log_scaling_, degree)[0, 1]
    assert correlation == pytest.approx(-1 if loss == "square" else 1, abs=1e-3)


def test_given_kernels_are_as_good_as_the_matrix(blocks):
    X = blocks.data
    fitted = CCOTGW().fit(X)
    given = CCOTGW().fit_kernels(paper_kernel(X), paper_kernel(X.T))
    assert_same_fit(given, fitted)
    assert not hasattr(given, "block_means_")
    # New points come by their similarities to the fitted ones.
    width, height = mean_distance(X), mean_distance(X.T)
    np.testing.assert_array_equal(
        given.predict(gaussian_kernel(X[:30], X, width)), fitted.row_labels_[:30]
    )
    np.testing.assert_array_equal(
        given.predict_columns(gaussian_kernel(X.T[:9], X.T, height)), fitted.column_labels_[:9]
    )
    with pytest.raises(ValueError, match="59 features"):
        given.predict(np.ones((2, 59)))
    with pytest.raises(ValueError, match=r"59 values for each new column, but .* 60"):
        given.predict_columns(np.ones((2, 59)))


def test_kernels_after_a_matrix_leave_nothing_of_it(blocks):
    X = blocks.data
    kernels = paper_kernel(X), paper_kernel(X.T)
    # Notebooks ask for every attribute; names are made of values, which kernels do not tell.
    assert "row_labels_" in dir(CCOTGW().fit_kernels(*kernels))
    again, fresh = CCOTGW().fit(X).fit_kernels(*kernels), CCOTGW().fit_kernels(*kernels)
    assert vars(again).keys() == vars(fresh).keys()
    assert "2 clusters" in again.summary()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kernel", sorted(PAIRWISE_KERNEL_FUNCTIONS))
def test_every_kernel_of_scikit_learn_can_be_named(blocks, kernel):
    X = np.abs(blocks.data[:40, :25])
    if kernel == "rbf":  # the paper's bandwidth, not scikit-learn's
        kernels = paper_kernel(X), paper_kernel(X.T)
    else:
        kernels = pairwise_kernels(X, metric=kernel), pairwise_kernels(X.T, metric=kernel)
    named = CCOTGW(kernel=kernel).fit(X)
    assert_same_fit(named, CCOTGW().fit_kernels(*kernels), atol=1e-6)
    assert named.predict(X).shape == (40,)


def test_any_callable_is_a_kernel(blocks):
    X = blocks.data
    model = CCOTGW(kernel=similarity_of_norms).fit(X)
    norms = [np.linalg.norm(points, axis=1)[:, None] for points in (X, X.T)]
    kernels = [np.exp(-cdist(norm, norm)) for norm in norms]
    assert_same_fit(model, CCOTGW().fit_kernels(*kernels))
    np.testing.assert_array_equal(model.predict(X), model.row_labels_)
    np.testing.assert_array_equal(model.predict_columns(X.T), model.column_labels_)


def test_weight_decides_whose_barycentre_it_is(blocks):
    row_kernel = paper_kernel(blocks.data)
    kernels = [paper_kernel(blocks.data.T), 0.3 * paper_kernel(blocks.data[:50].T)]

    def row_scaling(weights):
        return [
            CCOTGW(weights=weights).fit_kernels(row_kernel, other).row_log_scaling_
            for other in kernels
        ]

    np.testing.assert_array_equal(*row_scaling((1, 0)))
    one, other = row_scaling((0.5, 0.5))
    assert not np.allclose(one, other)


@pytest.mark.parametrize("exact_refinement", [True, False])
@pytest.mark.parametrize("n_support", [5, 20, 120])
@pytest.mark.parametrize("loss", ["square", "kl"])
def test_smaller_supports_give_the_same_partition(blocks, loss, n_support, exact_refinement):
    model = CCOTGW(loss=loss, n_support=n_support, exact_refinement=exact_refinement)
    model.fit(blocks.data)
    assert error_rate(blocks.row_labels, model.row_labels_) == 0
    assert error_rate(blocks.column_labels, model.column_labels_) == 0
    np.testing.assert_array_equal(model.predict(blocks.data), model.row_labels_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_order_of_the_support_does_not_matter(blocks):
    """A support of as many points as rows is that of the authors, in another order."""
    authors, ordered = (
        CCOTGW(reg=0.1, n_support=n_support, max_updates=1).fit(blocks.data)
        for n_support in (None, 120)
    )
    assert_same_fit(ordered, authors)


@pytest.mark.parametrize("loss", ["square", "kl"])
@pytest.mark.parametrize("make", [np.asarray, csr_array], ids=["dense", "sparse"])
def test_landmarks_give_the_partition_of_all_pairs(blocks, loss, make, tmp_path):
    X = make(blocks.data)
    full = CCOTGW(loss=loss, n_support=20).fit(X)
    few = CCOTGW(loss=loss, n_support=20, kernel_rank=15, random_state=0).fit(X)
    assert error_rate(full.row_labels_, few.row_labels_) == 0
    assert error_rate(full.column_labels_, few.column_labels_) == 0
    np.testing.assert_allclose(few.row_log_scaling_, full.row_log_scaling_, atol=0.01)
    np.testing.assert_array_equal(few.predict(X), few.row_labels_)
    np.testing.assert_array_equal(few.predict_columns(X.T), few.column_labels_)
    again = load_model(few.save(tmp_path / "few.ccot"))
    np.testing.assert_array_equal(again.predict(X), few.row_labels_)


def test_a_placement_by_landmarks_keeps_neither_points_nor_similarities(blocks):
    model = CCOTGW(n_support=20, kernel_rank=15, random_state=0).fit(blocks.data)
    placement = model._coclustering.row.placement
    assert placement.similarities.points.shape == (15, 60)
    assert max(factor.shape[0] for factor in placement.potential) < 120


def test_landmarks_are_seeded_and_leave_a_number_of_support_points_free(blocks):
    one, other = (CCOTGW(kernel_rank=10, random_state=3).fit(blocks.data) for _ in range(2))
    assert_same_fit(one, other, atol=0)
    assert error_rate(blocks.row_labels, one.row_labels_) == 0
    chosen = CCOTGW(reg="cv", n_support=20, kernel_rank=10, random_state=0).fit(blocks.data)
    assert error_rate(blocks.row_labels, chosen.row_labels_) == 0


def test_large_sides_get_landmarks_by_themselves(blocks, monkeypatch):
    monkeypatch.setattr(kernels, "AUTO_FULL", 100)
    monkeypatch.setattr(kernels, "AUTO_RANK", 12)
    model = CCOTGW(n_support=20, random_state=0).fit(blocks.data)
    assert isinstance(model._coclustering.row.placement.similarities, kernels.Landmarks)
    assert error_rate(blocks.row_labels, model.row_labels_) == 0
    full = CCOTGW().fit(blocks.data)
    assert isinstance(full._coclustering.row.placement.similarities, kernels.Similarities)


def test_what_does_not_fit_into_memory_is_refused_first(blocks, monkeypatch):
    monkeypatch.setattr(kernels, "free_bytes", lambda: 300_000)
    with pytest.raises(MemoryError, match=r"120 rows and 60 columns .* pass n_support=100"):
        CCOTGW().fit(blocks.data)
    CCOTGW(n_support=10, kernel_rank=10, random_state=0).fit(blocks.data)


def test_limits_reach_the_solver(blocks):
    with pytest.warns(UserWarning, match="stopped at max_iter"):
        model = CCOTGW(max_updates=1).fit(blocks.data)
    assert model.n_iter_ == 1


def test_nothing_is_random(blocks):
    one, other = (CCOTGW(random_state=seed).fit(blocks.data) for seed in (0, 1))
    assert_same_fit(one, other, atol=0)


def test_confidence_falls_where_steps_blur(blocks):
    rng = np.random.default_rng(0)
    blurred = blocks.data + rng.normal(size=blocks.data.shape)
    clear, unsure = (CCOTGW(2, 3).fit(X).row_confidence_ for X in (blocks.data, blurred))
    assert clear.min() > 0.999
    assert unsure.min() < 0.9
    assert unsure.max() <= 1


def test_reg_is_chosen_by_what_is_reproduced(blocks):
    model = CCOTGW(reg="cv", n_support=30, random_state=0).fit(blocks.data)
    assert set(model.reg_path_.reg) == set(REG_GRID)
    assert model.reg_ == model.reg_path_.best
    assert model.reg_path_.scores.mean(axis=1).max() > 0.5
    assert error_rate(blocks.row_labels, model.row_labels_) == 0


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"weights": (0.5, 0.6)}, r"weights=\(0.5, 0.6\) must be two numbers"),
        ({"weights": (1.5, -0.5)}, "not negative, that sum to one"),
        ({"weights": (1 / 3,) * 3}, "must be two numbers"),
        ({"weights": (np.nan, np.nan)}, "must be two numbers"),
        ({"weights": 0.5}, "'weights' parameter"),
        ({"n_support": 121}, "n_support=121 is more than the 120 rows: pass at most 120"),
        ({"n_support": 0}, "'n_support' parameter"),
        ({"loss": "absolute"}, "'loss' parameter .* must be a str among"),
        ({"kernel": "precomputed"}, "'kernel' parameter .* must be a str among"),
        ({"kernel": "linear", "loss": "kl"}, 'negative: use loss="square" or a non-negative'),
        (
            {"kernel": "laplacian", "loss": "kl", "kernel_rank": 9},
            'kernel="rbf" only: use that, loss="square" or kernel_rank=None',
        ),
        ({"kernel_rank": 0}, "'kernel_rank' parameter"),
        ({"kernel_rank": "full"}, "'kernel_rank' parameter"),
        ({"exact_refinement": "yes"}, "'exact_refinement' parameter"),
        ({"max_updates": 0}, "'max_updates' parameter"),
        ({"max_gromov_iter": 0}, "'max_gromov_iter' parameter"),
        ({"sinkhorn_tol": -1}, "'sinkhorn_tol' parameter"),
    ],
)
def test_bad_parameters_are_named(blocks, params, message):
    with pytest.raises(ValueError, match=message):
        CCOTGW(**params).fit(blocks.data - 2)


@pytest.mark.parametrize(
    ("row_kernel", "column_kernel", "params", "message"),
    [
        (np.ones((3, 4)), np.eye(3), {}, r"row_kernel has shape \(3, 4\).*square"),
        (np.eye(3), np.triu(np.ones((3, 3))), {}, r"column_kernel is not symmetric.*K \+ K.T"),
        (np.eye(3), np.full((3, 3), np.nan), {}, "column_kernel contains NaN"),
        (np.eye(1), np.eye(3), {}, r"1 sample\(s\).*minimum of 2"),
        (np.eye(3), -np.eye(3), {"loss": "kl"}, "some are negative"),
        (np.eye(3), np.eye(3), {"reg": "cv"}, 'reg="cv" needs the matrix: call fit'),
        (np.eye(3), np.eye(3), {"n_row_clusters": 4}, "n_row_clusters=4 is more than the 3 rows"),
        (np.eye(3), np.eye(4), {"n_support": 4}, "n_support=4 is more than the 3 rows"),
    ],
)
def test_bad_kernels_are_named(row_kernel, column_kernel, params, message):
    with pytest.raises(ValueError, match=message):
        CCOTGW(**params).fit_kernels(row_kernel, column_kernel)
