"""What the estimators promise alike."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ccot import CCOT, CCOTGW, TransportCoclustering, load_model
from ccot.datasets import make_latent_blocks
from ccot.metrics import error_rate
from ccot.scalings.jumps import DETECTORS

ESTIMATORS = [CCOT(random_state=0), CCOTGW(random_state=0)]
each_estimator = pytest.mark.parametrize(
    "estimator", ESTIMATORS, ids=[type(estimator).__name__ for estimator in ESTIMATORS]
)
# What does not speak of steps and scalings holds for blocks too.
EVERY = [*ESTIMATORS, TransportCoclustering(random_state=0)]
every_estimator = pytest.mark.parametrize(
    "estimator", EVERY, ids=[type(estimator).__name__ for estimator in EVERY]
)
SHAPES = [(120, 60), (60, 120), (80, 80), (90, 91)]


def fit(estimator, X, **params):
    return clone(estimator).set_params(**params).fit(X)


def assert_same_partition(labels, others):
    assert len(labels) == len(others)
    assert error_rate(others, labels) == 0


def assert_consistent(model, shape):
    """Whatever was found, the attributes tell one story."""
    for labels, size, n_clusters, confidence, jumps, strength, log_scaling, votes in (
        (
            model.row_labels_,
            shape[0],
            model.n_row_clusters_,
            model.row_confidence_,
            model.row_jumps_,
            model.row_jump_strength_,
            model.row_log_scaling_,
            model.row_cluster_votes_,
        ),
        (
            model.column_labels_,
            shape[1],
            model.n_column_clusters_,
            model.column_confidence_,
            model.column_jumps_,
            model.column_jump_strength_,
            model.column_log_scaling_,
            model.column_cluster_votes_,
        ),
    ):
        assert labels.shape == confidence.shape == log_scaling.shape == (size,)
        assert np.issubdtype(labels.dtype, np.integer)
        assert labels.min() >= 0
        assert labels.max() < n_clusters
        assert len(jumps) == len(strength) == n_clusters - 1
        assert np.isfinite(log_scaling).all()
        assert ((confidence >= 0) & (confidence <= 1 + 1e-12)).all()
        assert sum(votes.values()) == pytest.approx(1)
        assert max(votes, key=votes.get) == n_clusters
    assert model.block_means_.shape == (model.n_row_clusters_, model.n_column_clusters_)


# What is found --------------------------------------------------------------------------------


@each_estimator
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_clear_blocks_are_found_and_counted(estimator, shape):
    blocks = make_latent_blocks([[4, 0, 2], [1, 5, 1]], *shape, sigma=0.05, random_state=1)
    model = fit(estimator, blocks.data)
    assert_consistent(model, shape)
    assert (model.n_row_clusters_, model.n_column_clusters_) == (2, 3)
    assert_same_partition(model.row_labels_, blocks.row_labels)
    assert_same_partition(model.column_labels_, blocks.column_labels)
    assert model.row_confidence_.min() > 0.9
    assert model.n_features_in_ == shape[1]
    np.testing.assert_array_equal(clone(model).fit_predict(blocks.data), model.row_labels_)


@each_estimator
@pytest.mark.parametrize("n_row_clusters", [1, 2, 4])
@pytest.mark.parametrize("n_column_clusters", [None, 1, 3, 5])
def test_numbers_asked_for_are_obeyed(estimator, blocks, n_row_clusters, n_column_clusters):
    model = fit(
        estimator,
        blocks.data,
        n_row_clusters=n_row_clusters,
        n_column_clusters=n_column_clusters,
    )
    assert model.n_row_clusters_ == n_row_clusters
    assert model.n_column_clusters_ == (n_column_clusters or 3)
    assert_consistent(model, blocks.data.shape)


@every_estimator
@pytest.mark.parametrize(
    ("change", "rows", "columns"),
    [
        (lambda X, i, j: X[i][:, j], True, True),
        (lambda X, i, j: 1e3 * X, False, False),
        (lambda X, i, j: X - 7, False, False),
        (lambda X, i, j: X.astype(np.float32), False, False),
        (lambda X, i, j: np.asfortranarray(X), False, False),
    ],
    ids=["permuted", "scaled", "shifted", "float32", "fortran"],
)
def test_partitions_follow_the_matrix(estimator, blocks, change, rows, columns):
    rng = np.random.default_rng(0)
    i, j = rng.permutation(120), rng.permutation(60)
    model = fit(estimator, change(blocks.data, i, j))
    assert_same_partition(model.row_labels_, blocks.row_labels[i] if rows else blocks.row_labels)
    assert_same_partition(
        model.column_labels_, blocks.column_labels[j] if columns else blocks.column_labels
    )


@every_estimator
def test_fit_leaves_the_matrix_alone(estimator, blocks):
    X = blocks.data.copy()
    model = fit(estimator, X)
    model.predict(X)
    model.predict_columns(X.T)
    np.testing.assert_array_equal(X, blocks.data)


@each_estimator
def test_detectors_can_be_chosen(estimator, blocks):
    """The authors' detector never cuts vectors of 16 to 43 values."""
    ours, authors = (
        fit(estimator, blocks.data[:40], detector=detector)
        for detector in ("multiscale", "authors")
    )
    assert (ours.n_row_clusters_, authors.n_row_clusters_) == (2, 1)
    assert_consistent(authors, (40, 60))


@each_estimator
@pytest.mark.parametrize("detector", DETECTORS)
def test_every_detector_honours_given_numbers(estimator, detector, blocks):
    model = fit(estimator, blocks.data, n_row_clusters=4, n_column_clusters=5, detector=detector)
    assert (model.n_row_clusters_, model.n_column_clusters_) == (4, 5)
    assert_consistent(model, blocks.data.shape)


# Blocks in the manner of scikit-learn ------------------------------------------------------------


@every_estimator
def test_block_means_are_means_over_blocks(estimator, blocks):
    model = fit(estimator, blocks.data)
    for i, j in np.ndindex(2, 3):
        cells = blocks.data[model.row_labels_ == i][:, model.column_labels_ == j]
        assert model.block_means_[i, j] == pytest.approx(cells.mean(), rel=1e-12)


@every_estimator
def test_biclusters_are_the_products_of_clusters(estimator, blocks):
    model = fit(estimator, blocks.data)
    rows, columns = model.biclusters_
    assert rows.shape == (6, 120)
    assert columns.shape == (6, 60)
    # Every cell lies in exactly one block.
    np.testing.assert_array_equal((rows[:, :, None] & columns[:, None, :]).sum(axis=0), 1)
    for block, (i, j) in enumerate(np.ndindex(2, 3)):
        np.testing.assert_array_equal(rows[block], model.row_labels_ == i)
        np.testing.assert_array_equal(columns[block], model.column_labels_ == j)
        assert model.get_shape(block) == (rows[block].sum(), columns[block].sum())
        submatrix = model.get_submatrix(block, blocks.data)
        assert submatrix.mean() == pytest.approx(model.block_means_[i, j], rel=1e-12)


# Out of sample --------------------------------------------------------------------------------


@every_estimator
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_predict_gives_fitted_points_their_labels(estimator, shape):
    blocks = make_latent_blocks([[4, 0, 2], [1, 5, 1]], *shape, sigma=0.05, random_state=2)
    model = fit(estimator, blocks.data)
    np.testing.assert_array_equal(model.predict(blocks.data), model.row_labels_)
    np.testing.assert_array_equal(model.predict_columns(blocks.data.T), model.column_labels_)


@every_estimator
def test_unseen_points_join_the_cluster_of_their_block(estimator):
    blocks = make_latent_blocks([[4, 0, 2], [1, 5, 1]], 150, 100, sigma=0.05, random_state=3)
    model = fit(estimator, blocks.data[:100, :60])
    rows = np.r_[model.row_labels_, model.predict(blocks.data[100:, :60])]
    columns = np.r_[model.column_labels_, model.predict_columns(blocks.data[:100, 60:].T)]
    assert_same_partition(rows, blocks.row_labels)
    assert_same_partition(columns, blocks.column_labels)


@every_estimator
def test_predictions_do_not_depend_on_company(estimator, blocks):
    model = fit(estimator, blocks.data)
    together = model.predict(blocks.data[:20])
    alone = [model.predict(row[None])[0] for row in blocks.data[:20]]
    np.testing.assert_array_equal(together, alone)


@every_estimator
def test_prediction_is_not_refitting(estimator, blocks):
    model = fit(estimator, blocks.data)
    before = {key: np.array(value) for key, value in vars(model).items() if key.endswith("labels_")}
    model.predict(np.zeros((3, 60)))
    model.predict_columns(np.zeros((3, 120)))
    for key, value in before.items():
        np.testing.assert_array_equal(getattr(model, key), value)


# Containers and company -----------------------------------------------------------------------


@each_estimator
@pytest.mark.parametrize("make", [sp.csr_array, sp.csc_array, sp.csr_matrix, sp.csc_matrix])
def test_sparse_matrices_give_the_labels_of_dense_ones(estimator, blocks, make):
    X = np.where(blocks.data > 1.5, blocks.data, 0.0)
    dense, sparse = fit(estimator, X), fit(estimator, make(X))
    np.testing.assert_array_equal(sparse.row_labels_, dense.row_labels_)
    np.testing.assert_array_equal(sparse.column_labels_, dense.column_labels_)
    np.testing.assert_allclose(sparse.block_means_, dense.block_means_)
    assert sparse.n_row_clusters_ > 1
    np.testing.assert_array_equal(sparse.predict(make(X)), sparse.row_labels_)
    np.testing.assert_array_equal(sparse.predict(X), sparse.row_labels_)
    np.testing.assert_array_equal(sparse.predict_columns(make(X.T)), sparse.column_labels_)


@every_estimator
@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_data_frames_bring_their_names(estimator, blocks, library):
    names = [f"feature {j}" for j in range(60)]
    frame = library.DataFrame(dict(zip(names, blocks.data.T, strict=True)))
    model = fit(estimator, frame)
    assert list(model.feature_names_in_) == names
    np.testing.assert_array_equal(model.row_labels_, fit(estimator, blocks.data).row_labels_)
    np.testing.assert_array_equal(model.predict(frame), model.row_labels_)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(library.DataFrame(dict(zip(names[::-1], blocks.data.T, strict=True))))


@each_estimator
def test_clones_and_pickles_are_the_same_model(estimator, blocks):
    model = fit(estimator, blocks.data)
    assert clone(model).get_params() == model.get_params()
    assert not hasattr(clone(model), "row_labels_")
    thawed = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(thawed.row_labels_, model.row_labels_)
    np.testing.assert_array_equal(thawed.predict(blocks.data), model.predict(blocks.data))
    np.testing.assert_array_equal(thawed.column_log_scaling_, model.column_log_scaling_)
    assert thawed.summary() == model.summary()


@each_estimator
def test_pipelines_carry_it(estimator, blocks):
    scaled = StandardScaler().fit_transform(blocks.data)
    pipeline = make_pipeline(StandardScaler(), clone(estimator)).fit(blocks.data)
    np.testing.assert_array_equal(pipeline[-1].row_labels_, fit(estimator, scaled).row_labels_)
    np.testing.assert_array_equal(pipeline.predict(blocks.data), pipeline[-1].predict(scaled))
    assert_same_partition(pipeline.predict(blocks.data), blocks.row_labels)


@each_estimator
def test_torch_gives_the_labels_of_numpy(estimator, blocks):
    numpy, torch = (fit(estimator, blocks.data, device=device) for device in (None, "cpu"))
    np.testing.assert_array_equal(torch.row_labels_, numpy.row_labels_)
    np.testing.assert_array_equal(torch.column_labels_, numpy.column_labels_)
    np.testing.assert_allclose(torch.row_log_scaling_, numpy.row_log_scaling_, atol=1e-6)
    np.testing.assert_array_equal(torch.predict(blocks.data), torch.row_labels_)
    pickle.dumps(torch)


@each_estimator
def test_missing_devices_are_replaced_with_a_warning(estimator, blocks):
    with pytest.warns(RuntimeWarning, match="computing with NumPy instead"):
        model = fit(estimator, blocks.data, device="cuda:99")
    assert model.n_row_clusters_ == 2


@each_estimator
def test_refitting_forgets_everything(estimator, blocks):
    frame = pd.DataFrame(blocks.data[:40, :20]).rename(columns=str)
    model = clone(estimator).set_params(reg="cv").fit(frame)
    assert hasattr(model, "reg_path_")
    model.set_params(reg=estimator.reg).fit(blocks.data)
    fresh = fit(estimator, blocks.data)
    assert vars(model).keys() == vars(fresh).keys()
    np.testing.assert_array_equal(model.row_labels_, fresh.row_labels_)


# Telling ---------------------------------------------------------------------------------------


@each_estimator
def test_summary_tells_numbers_sizes_and_confidence(estimator, blocks):
    model = fit(estimator, blocks.data)
    name = type(estimator).__name__
    first, rows, *clusters, columns = model.summary().splitlines()[:5]
    assert [line.strip()[:2] for line in clusters] == ["0:", "1:"]
    assert first == f"{name}: 120 rows in 2 clusters, 60 columns in 3 clusters"
    assert f"sizes {', '.join(map(str, np.bincount(model.row_labels_)))};" in rows
    assert "; confidence below 0.9: none" in rows
    assert columns.strip().startswith("column clusters: sizes")


@each_estimator
def test_summary_says_where_no_step_is_significant(estimator):
    noise = np.random.default_rng(0).normal(size=(60, 40))
    summary = fit(estimator, noise).summary()
    assert "the sorted row scalings are smooth: no jump is significant" in summary
    assert "the sorted column scalings are smooth" in summary


@every_estimator
def test_verbose_prints_progress_and_silence_nothing(estimator, blocks, capsys):
    fit(estimator, blocks.data)
    assert capsys.readouterr().out == ""
    fit(estimator, blocks.data, verbose=1)
    lines = capsys.readouterr().out.splitlines()
    assert lines
    assert all(line.startswith(f"[{type(estimator).__name__}] ") for line in lines)
    assert "2 x 3 clusters" in lines[-1]


@every_estimator
def test_whoever_listens_is_told_how_far_a_fit_is(estimator, blocks, tmp_path, capsys):
    told = []
    model = fit(estimator, blocks.data, verbose=lambda *news: told.append(news))
    assert capsys.readouterr().out == ""
    stages = [news for news in told if len(news) == 3]
    assert stages
    for _, done, total in stages:
        assert 0 <= done <= total
    assert "2 x 3 clusters" in told[-1][0]
    assert load_model(model.save(tmp_path / "m.ccot")).verbose == 0


def test_long_votes_are_told_of_in_between(blocks):
    told = []
    quiet = fit(CCOT(n_samplings=6000, random_state=0), blocks.data)
    model = fit(quiet, blocks.data, verbose=lambda *news: told.append(news))
    draws = [done for stage, done, total in (news for news in told if len(news) == 3)]
    assert len(draws) > 2
    assert draws == sorted(draws)
    assert (draws[0], draws[-1]) == (0, 6000)
    np.testing.assert_array_equal(model.row_confidence_, quiet.row_confidence_)


@each_estimator
def test_the_choice_of_reg_tells_how_far_it_is(estimator, blocks):
    told = []
    fit(estimator, blocks.data, reg="cv", verbose=lambda *news: told.append(news))
    compared = [news[1:] for news in told if news[0] == "comparisons for reg"]
    assert compared == [(done, len(compared) - 1) for done in range(len(compared))]


@each_estimator
def test_unfinished_transport_is_warned_about_in_the_line_of_the_user(estimator, blocks):
    hurried = clone(estimator).set_params(max_iter=1, reg=0.02)
    advice = r"stopped at max_iter .* raise max_iter, reg or tol"
    with pytest.warns(ConvergenceWarning, match=advice) as seen:
        hurried.fit(blocks.data)
    assert [warning.filename for warning in seen] == [__file__]


# Bad input -------------------------------------------------------------------------------------


def spoiled(value, row, column):
    X = np.arange(120.0).reshape(12, 10)
    X[row, column] = value
    return X


BAD_MATRICES = {
    "nan": (spoiled(np.nan, 3, 7), r"contains NaN .*row 3, column 7.*SimpleImputer"),
    "inf": (spoiled(-np.inf, 11, 0), r"contains infinity .*row 11, column 0.*drop these rows"),
    "sparse nan": (sp.csr_array(spoiled(np.nan, 3, 7)), r"contains NaN .*row 3, column 7"),
    "sparse inf": (sp.csc_array(spoiled(np.inf, 11, 2)), r"infinity .*row 11, column 2"),
    "vector": (np.arange(9.0), "Expected 2D array, got 1D array"),
    "cube": (np.zeros((3, 3, 3)), r"dim 3|3D|<= 2 expected"),
    "scalar": (np.float64(3), "Expected 2D array, got scalar array"),
    "empty": (np.empty((0, 0)), r"0 sample\(s\)|0 feature\(s\)"),
    "no rows": (np.empty((0, 5)), r"0 sample\(s\).*minimum of 2 is required"),
    "no columns": (np.empty((5, 0)), r"0 feature\(s\).*minimum of 2 is required"),
    "one row": (np.ones((1, 5)), r"1 sample\(s\).*minimum of 2 is required"),
    "one column": (np.ones((5, 1)), r"1 feature\(s\).*minimum of 2 is required"),
    "strings": (np.array([["a", "b"], ["c", "d"]]), "X contains text.*drop those columns, or"),
    "list of strings": ([["a", "b"], ["c", "d"]], "X contains text.*drop those columns, or"),
    "text that is numbers": (np.array([["1", "2"], ["3", "4"]]), "X contains text"),
    "object strings": (np.array([["a", 1], ["c", 2]], dtype=object), "could not convert string"),
    "frame of strings": (
        pd.DataFrame({"a": ["x", "y"], "b": [1, 2]}),
        r"columns \['a'\] are not num",
    ),
    "complex": (np.ones((4, 4)) * 1j, "Complex data not supported"),
    "digits without end": ([[10**400, 1], [2, 3]], "a whole number that is too large"),
}


@each_estimator
@pytest.mark.parametrize("case", BAD_MATRICES)
def test_bad_matrices_are_named(estimator, case):
    X, message = BAD_MATRICES[case]
    with pytest.raises(ValueError, match=message):
        fit(estimator, X)


@each_estimator
@pytest.mark.parametrize("missing", [np.nan, None, pd.NA])
def test_missing_values_of_data_frames_are_placed(estimator, missing):
    frame = pd.DataFrame({"a": [1, 2, 3], "b": [4, missing, 6]}).convert_dtypes()
    with pytest.raises(ValueError, match=r"contains NaN .*row 1, column 1"):
        fit(estimator, frame)


@each_estimator
@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"reg": -1.0}, r"'reg' parameter .* range \(0.0, inf\) or a str among \{'cv'\}. Got -1.0"),
        ({"reg": 0.0}, "'reg' parameter .* Got 0.0"),
        ({"reg": np.nan}, "'reg' parameter .* Got nan"),
        ({"reg": np.inf}, "'reg' parameter .* Got inf"),
        ({"reg": "auto"}, "'reg' parameter .* Got 'auto'"),
        ({"n_row_clusters": 121}, "n_row_clusters=121 is more than the .* pass at most"),
        ({"n_column_clusters": 61}, "n_column_clusters=61 is more than the 60 columns .* None"),
        ({"n_row_clusters": 0}, "'n_row_clusters' parameter"),
        ({"n_column_clusters": 2.5}, "'n_column_clusters' parameter"),
        ({"detector": "wavelets"}, "'detector' parameter .* must be a str among"),
        ({"max_iter": 0}, "'max_iter' parameter"),
        ({"tol": 0}, "'tol' parameter"),
        ({"device": 3}, "'device' parameter"),
        ({"random_state": "x", "reg": "cv"}, "random_state must be an integer"),
    ],
)
def test_bad_parameters_are_named(estimator, blocks, params, message):
    with pytest.raises(ValueError, match=message):
        fit(estimator, blocks.data, **params)


@each_estimator
def test_bad_new_points_are_named(estimator, blocks):
    model = fit(estimator, blocks.data)
    with pytest.raises(ValueError, match=r"X has 59 features, but .* is expecting 60 features"):
        model.predict(blocks.data[:, :59])
    with pytest.raises(ValueError, match=r"60 values for each new column, but .* 120"):
        model.predict_columns(blocks.data)
    for method, size in ((model.predict, 60), (model.predict_columns, 120)):
        X = np.ones((4, size))
        X[2, 5] = np.nan
        with pytest.raises(ValueError, match=r"contains NaN .*row 2, column 5"):
            method(X)
        with pytest.raises(ValueError, match="Expected 2D array"):
            method(np.ones(size))
        with pytest.raises(ValueError, match="contains text"):
            method(np.full((2, size), "a"))
        with pytest.raises(ValueError, match="too large for a float"):
            method([[-(10**400)] * size])


@every_estimator
def test_nothing_is_told_before_fitting(estimator):
    model = clone(estimator)
    for ask in (
        lambda: model.predict(np.ones((2, 2))),
        lambda: model.predict_columns(np.ones((2, 2))),
        lambda: model.rows_,
        lambda: model.columns_,
        lambda: model.biclusters_,
        lambda: model.cluster_names_,
        lambda: model.summary(),
    ):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            ask()


# Edges -----------------------------------------------------------------------------------------


def make_edges():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(30, 20))
    # Sizes differ: CCOT-GW cannot tell clusters of equal mean similarity apart.
    means = np.array([[1.0, 3.0], [7.0, 2.0]])
    blocks = means[np.repeat([0, 1], [13, 7])][:, np.repeat([0, 1], [10, 6])]
    blocks += 0.01 * rng.normal(size=blocks.shape)
    zero_rows, zero_columns, both = noise.copy(), noise.copy(), np.abs(noise)
    zero_rows[[0, 7, 29]] = 0
    zero_columns[:, [3, 19]] = 0
    both[:20] = 0
    both[:, :15] = 0
    return {
        "zero rows": zero_rows,
        "zero columns": zero_columns,
        "mostly zero": both,
        "zeros": np.zeros((12, 7)),
        "constant": np.full((7, 12), 3.7),
        "constant square": np.full((8, 8), -1e9),
        "duplicated rows": np.repeat(noise[:4], 10, axis=0),
        "duplicated columns": np.repeat(noise[:, :3], 9, axis=1),
        "two by two": np.array([[1.0, 2.0], [3.0, 4.0]]),
        "two by two zeros": np.zeros((2, 2)),
        "identity": np.eye(15),
        "one entry": np.eye(1, 40).reshape(10, 4),
        "2 x 50": rng.normal(size=(2, 50)),
        "50 x 2": rng.normal(size=(50, 2)),
        "200 x 3": rng.normal(size=(200, 3)),
        "3 x 1000": rng.normal(size=(3, 1000)),
        "huge": 1e150 * blocks,
        "tiny": 1e-150 * blocks,
        "huge offset": 1e12 + blocks,
        "one outlier": np.where(np.eye(20, 16) * np.eye(20, 1) > 0, 1e9, blocks),
        "integers": rng.integers(-5, 5, size=(20, 30)),
        "unsigned bytes": rng.integers(0, 255, size=(20, 30), dtype=np.uint8),
        "booleans": rng.uniform(size=(25, 15)) < 0.3,
    }


EDGES = make_edges()


@each_estimator
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("case", EDGES)
def test_edges_work_quietly(estimator, case, sparse):
    X = sp.csr_array(EDGES[case]) if sparse else EDGES[case]
    how = {"n_samplings": 20} if isinstance(estimator, CCOT) else {}
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = fit(estimator, X, **how)
        rows, columns = model.predict(X), model.predict_columns(X.T)
    assert_consistent(model, EDGES[case].shape)
    assert rows.max() < model.n_row_clusters_
    assert columns.max() < model.n_column_clusters_


@each_estimator
@pytest.mark.parametrize("case", ["zeros", "constant", "constant square", "two by two zeros"])
def test_nothing_is_found_where_there_is_nothing(estimator, case):
    model = fit(estimator, EDGES[case])
    assert (model.n_row_clusters_, model.n_column_clusters_) == (1, 1)
    assert not model.row_labels_.any()
    assert not model.column_labels_.any()


@each_estimator
@pytest.mark.parametrize("case", ["huge", "tiny"])
def test_units_do_not_matter(estimator, case):
    model = fit(estimator, EDGES[case])
    assert_same_partition(model.row_labels_, np.repeat([0, 1], [13, 7]))
    assert_same_partition(model.column_labels_, np.repeat([0, 1], [10, 6]))


@pytest.mark.parametrize(
    "estimator",
    [
        pytest.param(CCOT(random_state=0), id="CCOT"),
        pytest.param(CCOTGW(exact_refinement=False), id="CCOTGW entropic"),
        pytest.param(CCOTGW(), id="CCOTGW", marks=pytest.mark.slow),
    ],
)
def test_a_thousand_rows_and_three_columns_work_quietly(estimator):
    X = np.random.default_rng(0).normal(size=(1000, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fit(estimator, X)
    assert_consistent(model, X.shape)


# Matrices in other forms ------------------------------------------------------------------------


def in_parts(matrix):
    """The same sparse matrix, every entry stored as two halves that cannot be written to."""
    parts = np.repeat(matrix.data / 2, 2), np.repeat(matrix.indices, 2), matrix.indptr * 2
    for part in parts:
        part.flags.writeable = False
    return sp.csr_array(parts, shape=matrix.shape)


@every_estimator
def test_entries_that_are_stored_in_parts_are_added_up(estimator):
    means = np.array([[1.0, 5.0], [6.0, 1.0], [3.0, 9.0]])[np.arange(60) % 3][:, np.arange(40) % 2]
    whole = sp.csr_array(np.random.default_rng(0).poisson(means).astype(float))
    split = in_parts(whole)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        models = [clone(estimator).fit(matrix) for matrix in (whole, split)]
    assert split.nnz == 2 * whole.nnz
    np.testing.assert_array_equal(models[1].row_labels_, models[0].row_labels_)
    np.testing.assert_array_equal(models[1].predict(split), models[0].predict(whole))


def test_text_among_objects_is_refused_with_advice():
    with pytest.raises(ValueError, match="pass a data frame to TransportCoclustering"):
        CCOT().fit(np.array([[1, "a"], [2, None]], dtype=object))


@pytest.mark.parametrize("kind", [CCOT, TransportCoclustering])
def test_no_jobs_are_refused_in_words(kind):
    with pytest.raises(ValueError, match="'n_jobs' parameter"):
        kind(n_jobs=0).fit(np.eye(4))
