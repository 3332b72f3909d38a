"""What all rivals promise alike."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from ccot import load_model
from ccot.baselines import DoubleKMeans, ResidualBayesianCoclustering, TriNMF, TwoSidedNMF
from ccot.baselines.information_theoretic import mutual_information
from ccot.baselines.partitions import cluster_sums, fill_empty, first_labels, sum_columns
from ccot.baselines.residual_bayesian import fill_in
from ccot.coclustering import Partition, block_means
from ccot.datasets import make_latent_blocks
from ccot.plotting import new_figure, plot_blocks
from tests.baselines.rivals import NON_NEGATIVE, RIVALS, assert_same_partition, each_rival

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
TAKE_SPARSE = [rival for rival in RIVALS if rival is not ResidualBayesianCoclustering]


@each_rival
def test_clear_blocks_are_found(rival, blocks):
    model = rival(3, 3, n_init=10, random_state=0).fit(blocks.data)
    assert_same_partition(model.row_labels_, blocks.row_labels)
    assert_same_partition(model.column_labels_, blocks.column_labels)
    assert (model.n_row_clusters_, model.n_column_clusters_) == (3, 3)
    assert model.block_means_.shape == (3, 3)
    assert sorted(model.block_means_.round().ravel()) == sorted(blocks.block_means.ravel())


def test_fewer_clusters_than_asked_for_are_admitted():
    # Three kinds of columns, but mixtures of two: one of three components weighs most nowhere.
    blocks = make_latent_blocks([[9, 1, 4], [1, 9, 2]], 60, 45, sigma=0.1, random_state=0)
    model = TwoSidedNMF(2, 3, n_init=5, random_state=0).fit(blocks.data)
    assert (model.n_row_clusters_, model.n_column_clusters_) == (2, 2)
    assert model.block_means_.shape == (2, 2)


@each_rival
def test_attributes_tell_one_story(rival, blocks):
    model = rival(3, 2, n_init=3, random_state=1).fit(blocks.data)
    assert model.criterion_path_[-1] == model.criterion_
    assert len(model.criterion_path_) in (1, model.n_iter_ + 1)
    assert set(model.row_labels_) == set(range(model.n_row_clusters_))
    assert set(model.column_labels_) == set(range(model.n_column_clusters_))
    assert model.rows_.shape == (model.n_row_clusters_ * model.n_column_clusters_, 60)
    assert (model.rows_.sum(axis=0) == model.n_column_clusters_).all()
    assert (model.columns_.sum(axis=0) == model.n_row_clusters_).all()
    rows, columns = model.get_indices(0)
    assert blocks.data[np.ix_(rows, columns)].mean() == pytest.approx(model.block_means_[0, 0])
    np.testing.assert_array_equal(clone(model).fit_predict(blocks.data), model.row_labels_)


@each_rival
def test_notebooks_show_what_was_found(rival, blocks):
    model = rival(3, 2, n_init=1, random_state=1).fit(blocks.data)
    assert "row_labels_" in dir(model)
    assert "row clusters: sizes" in model._repr_html_()


@each_rival
def test_clusters_are_described_and_drawn(rival, blocks):
    model = rival(3, 2, n_init=1, random_state=1).fit(blocks.data)
    assert set(model.describe_clusters(blocks.data)["cluster"]) == {0, 1, 2}
    panel = plot_blocks(model, blocks.data, ax=new_figure()[1])
    assert [text.get_text() for text in panel.get_yticklabels()] == [
        f"{cluster} ({size})" for cluster, size in enumerate(np.bincount(model.row_labels_))
    ]


@each_rival
def test_labels_do_not_depend_on_the_number_of_threads(rival):
    X = np.random.default_rng(0).gamma(2.0, size=(40, 30))
    models = [
        rival(3, 4, n_init=6, random_state=0, max_iter=50, n_jobs=n_jobs).fit(X)
        for n_jobs in (None, 2, 3)
    ]
    for model in models[1:]:
        np.testing.assert_array_equal(model.row_labels_, models[0].row_labels_)
        np.testing.assert_array_equal(model.column_labels_, models[0].column_labels_)
        np.testing.assert_array_equal(model.criterion_path_, models[0].criterion_path_)


@each_rival
def test_more_starts_are_never_worse(rival):
    X = np.random.default_rng(1).gamma(2.0, size=(40, 30))
    criteria = [
        rival(3, 3, n_init=n_init, random_state=0).fit(X).criterion_ for n_init in (1, 3, 9)
    ]
    sign = -1 if rival._larger_is_better else 1
    assert (np.diff(sign * np.array(criteria)) <= 0).all()


@pytest.mark.parametrize("rival", TAKE_SPARSE)
def test_sparse_and_dense_matrices_give_the_same_blocks(rival, blocks):
    X = np.where(blocks.data.round() > 1, blocks.data, 0.0)
    dense = rival(3, 3, random_state=0).fit(X)
    for sparse in (sp.csr_matrix(X), sp.csc_array(X), sp.coo_array(X)):
        model = rival(3, 3, random_state=0).fit(sparse)
        assert_same_partition(model.row_labels_, dense.row_labels_)
        assert_same_partition(model.column_labels_, dense.column_labels_)
        assert model.criterion_ == pytest.approx(dense.criterion_, rel=1e-6)


@each_rival
@pytest.mark.parametrize("numbers", [(1, 1), (1, 3), (2, 1)])
def test_one_cluster_is_allowed(rival, numbers, blocks):
    model = rival(*numbers, n_init=2, random_state=0).fit(blocks.data)
    assert model.n_row_clusters_ <= numbers[0]
    assert model.n_column_clusters_ <= numbers[1]


@each_rival
@pytest.mark.parametrize(
    "X",
    [np.zeros((6, 5)), np.ones((6, 5)), np.eye(6), np.vstack([np.eye(5), np.zeros((2, 5))])],
    ids=["zeros", "ones", "identity", "zero rows"],
)
def test_degenerate_matrices_end_in_finite_numbers(rival, X):
    model = rival(3, 2, n_init=2, random_state=0).fit(X)
    assert np.isfinite(model.criterion_path_).all()
    assert np.isfinite(model.block_means_).all()


# Refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("rival", NON_NEGATIVE)
def test_negative_values_are_refused_with_the_remedy(rival, blocks):
    X = blocks.data - 5
    with pytest.raises(ValueError, match=r"shift the data, e\.g\. X - X\.min\(\)"):
        rival(2, 3).fit(X)
    rival(2, 3, n_init=1).fit(X - X.min())


@each_rival
def test_more_clusters_than_points_are_refused(rival, blocks):
    with pytest.raises(ValueError, match=r"n_row_clusters=61 .* 60 rows .* at most 60"):
        rival(61, 2).fit(blocks.data)
    with pytest.raises(ValueError, match=r"n_column_clusters=46 .* 45 columns .* at most 45"):
        rival(2, 46).fit(blocks.data)


@each_rival
def test_missing_and_infinite_values(rival, blocks):
    X = blocks.data.copy()
    X[3, 4] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        rival(2, 3).fit(X)
    X[3, 4] = np.nan
    if rival is ResidualBayesianCoclustering:
        rival(2, 3, n_init=1).fit(X)
        with pytest.raises(ValueError, match="NaN only"):
            rival(2, 3).fit(np.full((4, 4), np.nan))
    else:
        with pytest.raises(ValueError, match=r"NaN.* use ResidualBayesianCoclustering"):
            rival(2, 3).fit(X)


@each_rival
@pytest.mark.parametrize(
    "params",
    [{"n_row_clusters": 0}, {"n_column_clusters": 2.5}, {"n_init": 0}, {"tol": -1}, {"n_jobs": ""}],
    ids=str,
)
def test_parameters_are_checked(rival, params, blocks):
    with pytest.raises(ValueError, match=next(iter(params))):
        rival(**params).fit(blocks.data)


def test_a_start_that_was_stopped_says_so(blocks):
    with pytest.warns(ConvergenceWarning, match="max_iter=1: raise max_iter or tol"):
        TriNMF(2, 3, max_iter=1, random_state=0).fit(blocks.data)


def test_biclusters_need_a_fit():
    with pytest.raises(NotFittedError):
        _ = DoubleKMeans().rows_


# Arithmetic of partitions ---------------------------------------------------------------------


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_sums_over_clusters(make):
    rng = np.random.default_rng(0)
    X = rng.poisson(0.5, size=(20, 15)).astype(float)
    rows, columns = rng.integers(3, size=20), rng.integers(4, size=15)
    sums = cluster_sums(sum_columns(make(X), columns, 4), rows, 3)
    for k in range(3):
        for m in range(4):
            assert sums[k, m] == X[np.ix_(rows == k, columns == m)].sum()


def test_block_means_leave_missing_entries_out():
    X = np.array([[1.0, 2.0, np.nan], [3.0, np.nan, np.nan]])
    rows = Partition(labels=np.array([0, 0]), n_clusters=1)
    columns = Partition(labels=np.array([0, 0, 1]), n_clusters=2)
    means = block_means(X, rows, columns)
    np.testing.assert_array_equal(means, [[2.0, np.nan]])


def test_empty_clusters_are_filled_by_the_costliest_points():
    labels = fill_empty(np.array([0, 0, 3, 0]), np.array([1.0, 2.0, 9.0, 3.0]), 4)
    np.testing.assert_array_equal(labels, [0, 2, 3, 1])


@pytest.mark.parametrize("kind", ["k-means++", "kmeans", "random"])
def test_starts_fill_every_cluster_even_if_points_coincide(kind):
    labels = first_labels(kind, np.ones((7, 3)), 5, np.random.default_rng(0))
    assert set(labels) == set(range(5))


# What baselines share with the other estimators -----------------------------------------------


@each_rival
def test_tables_summary_and_files_are_those_of_all_estimators(rival, blocks, tmp_path):
    model = rival(3, 3, n_init=1, random_state=0).fit(blocks.data)
    table = model.to_frame("columns")
    assert list(table.columns) == ["name", "cluster"]
    np.testing.assert_array_equal(table["cluster"], model.column_labels_)
    assert model.summary().startswith(f"{rival.__name__}: 60 rows in 3 clusters, 45 columns in 3")
    assert "confidence" not in model.summary()
    again = load_model(model.save(tmp_path / "model.ccot"))
    assert again.summary() == model.summary()
    # They place no unseen points, and do not claim to.
    assert not hasattr(model, "predict")


def test_missing_entries_are_filled_in_by_row_and_column_means():
    filled = fill_in(np.array([[2.0, 0.0], [np.nan, 1.0]]))
    np.testing.assert_array_equal(filled, [[1.0, -1.0], [1.0, 0.0]])


def test_mutual_information_of_a_diagonal_is_its_entropy():
    assert mutual_information(np.eye(2) / 2) == pytest.approx(np.log(2))
