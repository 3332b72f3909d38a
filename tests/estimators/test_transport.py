"""What is TransportCoclustering's own: families, numbers, missing values, scores and cuts."""

import pickle
import re
import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.stats import bernoulli, norm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from ccot import TransportCoclustering, load_model
from ccot.blocks.problem import make_blocks, make_problem
from ccot.blocks.sweep import sweep
from ccot.datasets import load_simulated, make_latent_blocks
from ccot.estimators.transport import _in_words
from ccot.metrics import coclustering_error, error_rate
from tests.blocks.matrices import draw, draw_noise
from tests.estimators.test_base import EDGES

FAMILIES = ["gaussian", "poisson", "bernoulli"]
each_family = pytest.mark.parametrize("family", FAMILIES)


def planted(family, seed=0, shape=(80, 60)):
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(0, 2, shape[0]), rng.integers(0, 3, shape[1])
    return draw(family, rows, columns, rng), rows, columns


def fit(X, *numbers, **params):
    return TransportCoclustering(*numbers, random_state=0, **params).fit(X)


def error(truth, model):
    return coclustering_error(
        truth.row_labels, truth.column_labels, model.row_labels_, model.column_labels_
    )


# Simulated sets --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["D1", "D2", "D3", "D4"])
def test_published_sets_are_found_exactly(name):
    truth = load_simulated(name, random_state=7)
    model = fit(truth.data)
    assert model.block_means_.shape == truth.block_means.shape
    assert error(truth, model) == 0


@pytest.mark.parametrize(
    ("name", "seed"),
    [("D1", 0), ("D2", 1), *(pytest.param(n, 0, marks=pytest.mark.slow) for n in ("D3", "D4"))],
)
def test_calibrated_sets_are_as_good_as_started_from_the_truth(name, seed):
    truth = load_simulated(name, random_state=seed, overlap="calibrated")
    model = fit(truth.data)
    preparation = model._fitted.row.placement.preparation
    problem = make_problem(preparation.matrix(truth.data), "gaussian")
    start = make_blocks(problem, truth.row_labels, truth.column_labels)
    best = sweep(problem, start, temperatures=(1.0,), max_iter=200)
    started = coclustering_error(truth.row_labels, truth.column_labels, *best.labels)
    assert model.block_means_.shape == truth.block_means.shape
    assert error(truth, model) <= started + 0.01


@pytest.mark.parametrize(("name", "factor"), [("D1", 1.4), ("D3", 1.2)])
def test_clusters_that_emerge_only_together_are_found(name, factor):
    sigma = factor * load_simulated(name, random_state=0, overlap="calibrated").sigma
    bunch = load_simulated(name, random_state=1, sigma=sigma)
    model = TransportCoclustering(random_state=0).fit(bunch.data)
    assert (model.n_row_clusters_, model.n_column_clusters_) == bunch.block_means.shape


@pytest.mark.parametrize("criterion", ["jump", "icl"])
@each_family
def test_planted_numbers_are_found_by_either_criterion(family, criterion):
    X, rows, columns = planted(family)
    model = fit(X, criterion=criterion)
    assert error_rate(rows, model.row_labels_) == 0
    assert error_rate(columns, model.column_labels_) == 0
    first = model.candidates_[0]
    assert first.numbers == (model.n_row_clusters_, model.n_column_clusters_) == (2, 3)
    assert len(model.candidates_) > 1


@pytest.mark.parametrize("numbers", [(1, 1), (2, 5), (7, 1), (None, 4), (80, 60)], ids=str)
@each_family
def test_numbers_given_are_met(family, numbers):
    model = fit(planted(family)[0], *numbers, n_init=3)
    found = model.n_row_clusters_, model.n_column_clusters_
    assert all(asked in (None, now) for asked, now in zip(numbers, found, strict=True))
    assert (len(set(model.row_labels_)), len(set(model.column_labels_))) == found
    assert model.candidates_[0].numbers == found


@pytest.mark.parametrize("n_matrices", [10, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.parametrize("family", [*FAMILIES, "auto"])
def test_no_structure_is_one_block(family, n_matrices):
    found = []
    for seed in range(n_matrices):
        rng = np.random.default_rng(seed)
        shape = [(60, 40), (40, 60), (50, 50)][seed % 3]
        law = FAMILIES[seed % 3] if family == "auto" else family
        model = fit(draw_noise(law, shape, rng), family=family)
        found.append((model.n_row_clusters_, model.n_column_clusters_))
    assert sum(numbers == (1, 1) for numbers in found) >= 0.95 * n_matrices


# Families --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "family", "reason"),
    [
        (planted("poisson")[0], "poisson", "counts whose variance grows"),
        (planted("bernoulli")[0], "bernoulli", "0 or 1"),
        (planted("gaussian")[0], "gaussian", "negative"),
        (np.where(np.eye(80, 60) > 0, np.nan, planted("poisson")[0]), "gaussian", "missing"),
    ],
)
def test_auto_chooses_a_family_and_says_why(X, family, reason):
    model = fit(X)
    assert model.family_ == family
    assert reason in model.family_reason_
    assert f"family {family}: {model.family_reason_}" in model.summary()


@pytest.mark.parametrize("seed", range(5))
def test_counts_with_uneven_degrees_are_counts(seed):
    """Square, where overfitted means once made the variance seem to fall."""
    rng = np.random.default_rng(seed)
    degrees = rng.gamma(4, 0.25, size=(2, 50))
    model = fit(rng.poisson(3 * np.outer(*degrees)), n_init=2)
    assert model.family_ == "poisson"
    assert (model.n_row_clusters_, model.n_column_clusters_) == (1, 1)


@pytest.mark.parametrize("scale", [1e-3, 1e-6, 100.0])
def test_units_of_amounts_do_not_matter(scale):
    X, rows, columns = planted("poisson")
    model = fit(scale * X, family="poisson")
    assert error_rate(rows, model.row_labels_) == 0
    assert error_rate(columns, model.column_labels_) == 0


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("offset", [1e6, -1e8, 1e10])
def test_offsets_do_not_matter(offset, make):
    X, rows, columns = planted("gaussian")
    model = fit(make(X + offset))
    assert model.family_ == "gaussian"
    assert error_rate(rows, model.row_labels_) == 0
    assert error_rate(columns, model.column_labels_) == 0


def test_noise_of_columns_can_be_learned():
    """Half of the columns shout: only weighed down do they let the others speak."""
    rng = np.random.default_rng(0)
    rows, columns = np.arange(100) % 2, np.arange(60) % 2
    sigma = np.where(np.arange(60) < 30, 0.5, 2.0)
    X = np.array([[0.5, 0.0], [0.0, 0.5]])[rows][:, columns] + sigma * rng.normal(size=(100, 60))
    plain, weighed = (fit(X, 2, 2, heteroscedastic=value) for value in (False, True))
    assert error_rate(rows, weighed.row_labels_) < 0.05
    assert error_rate(rows, plain.row_labels_) > 0.2


@pytest.mark.parametrize("numbers", [(2, 3), (4, 5)])
@each_family
def test_balanced_clusters_have_equal_sizes(family, numbers):
    model = fit(planted(family)[0][:, :50], *numbers, balanced=True, n_init=2, max_iter=5)
    for labels, n_clusters in zip((model.row_labels_, model.column_labels_), numbers, strict=True):
        sizes = np.bincount(labels, minlength=n_clusters)
        assert sizes.max() - sizes.min() <= 1


# Missing and empty -----------------------------------------------------------------------------


def test_a_fifth_missing_changes_nothing():
    X, rows, columns = planted("gaussian")
    X[np.random.default_rng(1).uniform(size=X.shape) < 0.2] = np.nan
    model = fit(X)
    assert error_rate(rows, model.row_labels_) == 0
    assert error_rate(columns, model.column_labels_) == 0
    np.testing.assert_array_equal(model.predict(X), model.row_labels_)
    np.testing.assert_array_equal(model.predict_columns(X.T), model.column_labels_)
    cells = X[model.row_labels_ == 1][:, model.column_labels_ == 2]
    assert model.block_means_[1, 2] == pytest.approx(np.nanmean(cells))


@pytest.mark.parametrize("heteroscedastic", [False, True])
def test_points_without_entries_get_a_label_and_no_confidence(heteroscedastic):
    X, rows, _ = planted("gaussian")
    X[[3, 70]], X[:, 5] = np.nan, np.nan
    model = fit(X, heteroscedastic=heteroscedastic)
    assert set(model.row_confidence_[[3, 70]]) == {0.0}
    assert model.column_confidence_[5] == 0
    some = np.delete(np.arange(80), [3, 70])
    assert model.row_confidence_[some].min() > 0.9
    assert error_rate(rows[some], model.row_labels_[some]) == 0
    assert model.row_labels_[3] < model.n_row_clusters_
    assert np.isfinite(model.score(X))


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("numbers", [(None, None), (3, 4)])
def test_empty_rows_and_columns_of_counts_get_a_label_and_no_confidence(make, numbers):
    X = np.random.default_rng(0).poisson(0.2, size=(60, 50)).astype(float)
    X[[0, 9]], X[:, [7, 49]] = 0, 0
    model = fit(make(X), *numbers)
    np.testing.assert_array_equal(model.row_confidence_ == 0, np.isin(np.arange(60), [0, 9]))
    assert set(model.column_confidence_[[7, 49]]) == {0.0}
    assert model.row_labels_.shape == (60,)
    np.testing.assert_array_equal(np.unique(model.row_labels_), np.arange(model.n_row_clusters_))


# Out of sample ---------------------------------------------------------------------------------


def tilted(X):
    rng = np.random.default_rng(3)
    return X + 5 * rng.normal(size=(len(X), 1)) + 5 * rng.normal(size=X.shape[1])


def traits(X):
    return np.hstack([(X[:, :20] > 2).astype(float), 100 * X[:, 20:]])


@pytest.mark.parametrize(
    "X",
    [
        *(make(planted(family)[0]) for family in FAMILIES for make in (np.asarray, sp.csr_array)),
        sp.csc_array(planted("poisson")[0]),
        tilted(planted("gaussian")[0]),
        traits(planted("gaussian")[0]),
    ],
    ids=[
        *(f"{family} {kind}" for family in FAMILIES for kind in ("dense", "sparse")),
        "csc",
        "effects",
        "traits",
    ],
)
def test_predictions_reproduce_the_labels(X):
    model = fit(X)
    assert model.n_row_clusters_ > 1
    np.testing.assert_array_equal(model.predict(X), model.row_labels_)
    np.testing.assert_array_equal(model.predict_columns(X.T), model.column_labels_)


@pytest.mark.parametrize("name", ["D1", "D3", "D4"])
def test_predictions_reproduce_the_labels_where_clusters_overlap(name, tmp_path):
    """Also where rows and columns are shared between clusters, and from a model file."""
    X = load_simulated(name, overlap="calibrated", random_state=0).data
    model = fit(X)
    assert model.row_confidence_.min() < 0.9
    model.save(tmp_path / "model.ccot")
    for one in (model, load_model(tmp_path / "model.ccot")):
        np.testing.assert_array_equal(one.predict(X), model.row_labels_)
        np.testing.assert_array_equal(one.predict_columns(X.T), model.column_labels_)


@pytest.mark.parametrize("seed", range(3))
def test_noise_with_heavy_tails_is_noise(seed):
    X = np.random.default_rng(seed).standard_t(3, size=(80, 60))
    assert fit(X).row_labels_.max() == 0
    assert fit(X).column_labels_.max() == 0


def test_blocks_are_found_under_noise_with_heavy_tails():
    truth = make_latent_blocks([[1, 0, 0.5], [0, 1, -0.5]], 120, 90, sigma=1e-9, random_state=0)
    X = truth.data + np.random.default_rng(0).standard_t(3, size=truth.data.shape)
    model = fit(X)
    found = model.row_labels_, model.column_labels_
    assert coclustering_error(truth.row_labels, truth.column_labels, *found) < 0.1
    assert re.search(r"values below (\S+) count as \1, those above (\S+) as \2", model.summary())
    np.testing.assert_array_equal(model.predict(X), model.row_labels_)


@each_family
def test_held_out_rows_and_columns_are_classified(family):
    X, rows, columns = planted(family, shape=(110, 80))
    model = fit(X[:80, :60])
    found = np.r_[model.row_labels_, model.predict(X[80:, :60])]
    assert error_rate(rows, found) == 0
    found = np.r_[model.column_labels_, model.predict_columns(X[:80, 60:].T)]
    assert error_rate(columns, found) == 0


@each_family
def test_data_of_the_model_score_higher_than_shuffled(family):
    X, _, _ = planted(family, shape=(120, 60))
    model = fit(X[:80])
    rng = np.random.default_rng(0)
    assert model.score(X[80:]) > model.score(rng.permuted(X[80:], axis=1)) + 0.1


@pytest.mark.parametrize("family", ["gaussian", "bernoulli"])
def test_scores_of_held_out_rows_are_slow_sums(family):
    X, _, _ = planted(family, shape=(110, 60))
    seen, held_out = X[:80], X[80:]
    model = fit(seen, family=family)
    means = model.block_means_
    if family == "bernoulli":
        sizes = np.outer(np.bincount(model.row_labels_), np.bincount(model.column_labels_))
        means = (means * sizes + 0.5 * seen.mean()) / (sizes + 0.5)
    fitted = means[model.row_labels_][:, model.column_labels_]
    target = means[model.predict(held_out)][:, model.column_labels_]
    if family == "gaussian":
        slow = norm.logpdf(held_out, target, np.sqrt(np.mean((seen - fitted) ** 2)))
    else:
        slow = bernoulli.logpmf(held_out, target)
    assert model.score(held_out) == pytest.approx(slow.mean(), rel=1e-9)


# Hierarchy, determinism, telling ---------------------------------------------------------------


@each_family
def test_cuts_are_coarser_and_keep_a_share(family):
    X, rows, _ = planted(family)
    model = fit(X)
    kept = []
    for number in (1, 2, 4, 8):
        cut = model.cut(number, 3)
        assert (len(set(cut.row_labels)), len(set(cut.column_labels))) == (number, 3)
        kept.append(cut.share_kept)
    assert kept == sorted(kept)
    assert 0 <= kept[0] < kept[1] <= 1
    assert error_rate(rows, model.cut(2, 3).row_labels) < 0.03
    most = model.hierarchy_.shape
    assert model.cut(*most).share_kept == pytest.approx(1)
    assert model.cut(1, 1).share_kept == pytest.approx(0, abs=1e-9)
    assert len(model.row_merge_costs_) == most[0] - 1
    assert model.row_merge_costs_[0] > 10 * model.row_merge_costs_[1]
    with pytest.raises(ValueError, match=rf"has 1 to {most[0]} row clusters, not 99"):
        model.cut(99, 1)
    with pytest.raises(ValueError, match="column clusters, not 0"):
        model.cut(1, 0)


def test_the_seed_decides():
    X = np.random.default_rng(0).normal(size=(60, 40))
    one, same = (TransportCoclustering(4, 4, random_state=3).fit(X) for _ in range(2))
    other = TransportCoclustering(4, 4, random_state=4).fit(X)
    np.testing.assert_array_equal(one.row_labels_, same.row_labels_)
    assert one.icl_ == same.icl_
    assert one.icl_ != other.icl_


def test_tables_with_missing_entries_come_as_frames():
    X, rows, _ = planted("gaussian")
    frame = pd.DataFrame(X).rename(columns=str)
    frame.iloc[2, 3] = None
    assert error_rate(rows, fit(frame).row_labels_) == 0


def test_pickles_are_the_same_model():
    X = planted("gaussian")[0]
    model = fit(X)
    thawed = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(thawed.row_labels_, model.row_labels_)
    np.testing.assert_array_equal(thawed.predict(X), model.predict(X))
    assert thawed.score(X) == model.score(X)
    assert thawed.summary() == model.summary()
    assert thawed.cut(2, 2).share_kept == model.cut(2, 2).share_kept


def test_probabilities_agree_with_predictions_and_confidence(tmp_path):
    truth = load_simulated("D1", random_state=0, overlap="calibrated")
    model = fit(truth.data[:500])
    shares = model.predict_proba(truth.data[500:])
    assert shares.shape == (100, model.n_row_clusters_)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_array_equal(shares.argmax(axis=1), model.predict(truth.data[500:]))
    chance = 1 / model.n_row_clusters_
    np.testing.assert_allclose(
        (shares.max(axis=1) - chance) / (1 - chance), model.predict_confidence(truth.data[500:])
    )
    np.save(tmp_path / "new.npy", truth.data[500:])
    np.testing.assert_allclose(model.transform(tmp_path / "new.npy"), shares)
    np.testing.assert_array_equal(model.labels_, model.row_labels_)


def test_sparse_rows_are_transformed():
    counts = sp.csr_array(planted("poisson")[0])
    model = fit(counts, 2, 2)
    assert not hasattr(model, "predict_proba")
    np.testing.assert_array_equal(model.transform(counts).argmax(axis=1), model.row_labels_)
    assert hasattr(model.fit(counts.toarray()), "predict_proba")


def test_a_table_is_transformed_to_a_frame_of_clusters():
    frame = pd.DataFrame({"x": [0.0, 0.1] * 9 + [5.0, 5.2] * 9, "y": ["a"] * 18 + ["b"] * 18})
    model = fit(frame, 2, 1).set_output(transform="pandas")
    shares = model.transform(frame)
    assert list(shares) == ["transportcoclustering0", "transportcoclustering1"]
    np.testing.assert_array_equal(shares.to_numpy().argmax(axis=1), model.labels_)


def test_pipelines_carry_it():
    X, rows, _ = planted("gaussian")
    pipeline = make_pipeline(FunctionTransformer(np.negative), TransportCoclustering())
    pipeline.set_params(transportcoclustering__random_state=0).fit(X)
    assert error_rate(rows, pipeline.predict(X)) == 0
    assert pipeline.score(X) == fit(-X).score(-X)


def test_runners_up_are_told():
    summary = fit(planted("gaussian")[0]).summary()
    assert "next best by icl: " in summary
    assert "next best" not in fit(planted("gaussian")[0], 2, 3).summary()


# Bad input -------------------------------------------------------------------------------------

GAUSSIAN = planted("gaussian")[0]
HOLED = np.where(np.eye(80, 60, k=4) > 0, np.nan, planted("bernoulli")[0])


@pytest.mark.parametrize(
    ("X", "params", "message"),
    [
        (GAUSSIAN, {"family": "poisson"}, "Negative values in data: the poisson family"),
        (sp.csr_array(GAUSSIAN), {"family": "poisson"}, "Negative values in data"),
        (GAUSSIAN, {"family": "bernoulli"}, "the bernoulli family needs zeros and ones"),
        (sp.csr_array(GAUSSIAN), {"family": "bernoulli"}, "needs zeros and ones"),
        (HOLED, {"family": "poisson"}, r"contains NaN .*row 0, column 4"),
        (HOLED, {"family": "bernoulli"}, r"contains NaN .*row 0, column 4"),
        (sp.csr_array(HOLED), {}, r"contains NaN .*row 0, column 4"),
        (np.full((5, 4), np.nan), {}, "contains NaN only"),
        (np.where(np.eye(5) > 0, np.inf, np.nan), {}, r"infinity .*row 0, column 0"),
        (GAUSSIAN, {"n_row_clusters": 81}, "n_row_clusters=81 is more than the 80 rows"),
        (GAUSSIAN, {"n_column_clusters": 61}, "n_column_clusters=61 is more than the 60 col"),
        (GAUSSIAN, {"family": "gamma"}, "'family' parameter .* must be a str among"),
        (GAUSSIAN, {"criterion": "aic"}, "'criterion' parameter"),
        (GAUSSIAN, {"balanced": "yes"}, "'balanced' parameter"),
        (GAUSSIAN, {"n_init": 0}, "'n_init' parameter"),
        (GAUSSIAN, {"tol": -1.0}, "'tol' parameter"),
        (GAUSSIAN, {"max_iter": 0}, "'max_iter' parameter"),
        (GAUSSIAN, {"random_state": "x"}, "random_state must be an integer"),
    ],
)
def test_bad_input_is_named(X, params, message):
    with pytest.raises(ValueError, match=message):
        clone(TransportCoclustering()).set_params(**params).fit(X)


# Edges -----------------------------------------------------------------------------------------

MORE_EDGES = {
    **EDGES,
    "1000 x 3": np.random.default_rng(0).normal(size=(1000, 3)),
    "offset": EDGES["tiny"] * 1e150 + 1e8,
    "one observed": np.where(np.eye(1, 40).reshape(10, 4) > 0, 1.0, np.nan),
    "missing row": np.where(np.arange(9)[:, None] == 3, np.nan, np.arange(54.0).reshape(9, 6)),
}


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("case", MORE_EDGES)
def test_edges_work_quietly(case, sparse):
    X = MORE_EDGES[case]
    if sparse and np.isnan(X).any():
        pytest.skip("NaN is missing in dense matrices only")
    matrix = sp.csr_array(X) if sparse else X
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("error", ConvergenceWarning)
        model = fit(matrix)
        np.testing.assert_array_equal(model.predict(matrix), model.row_labels_)
        np.testing.assert_array_equal(model.predict_columns(matrix.T), model.column_labels_)
        assert np.isfinite([model.score(matrix), model.icl_, model.bic_]).all()
    for labels, confidence, size in (
        (model.row_labels_, model.row_confidence_, X.shape[0]),
        (model.column_labels_, model.column_confidence_, X.shape[1]),
    ):
        assert labels.shape == confidence.shape == (size,)
        assert ((confidence >= 0) & (confidence <= 1)).all()
    assert model.candidates_[0].numbers == (model.n_row_clusters_, model.n_column_clusters_)


@pytest.mark.parametrize("case", ["zeros", "constant", "constant square", "two by two zeros"])
def test_nothing_is_found_where_there_is_nothing(case):
    assert fit(EDGES[case]).block_means_.shape == (1, 1)


@pytest.mark.parametrize("case", ["huge", "tiny", "huge offset", "offset"])
def test_units_and_offsets_hide_nothing(case):
    model = fit(MORE_EDGES[case])
    assert error_rate(np.repeat([0, 1], [13, 7]), model.row_labels_) == 0
    assert error_rate(np.repeat([0, 1], [10, 6]), model.column_labels_) == 0


# Text ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_classic3_has_three_kinds_of_text(data_home):
    with np.load(data_home / "text" / "classic3.npz", allow_pickle=True) as stored:
        X = sp.csr_array(
            (stored["data"], stored["indices"], stored["indptr"]), shape=stored["shape"]
        )
        labels = stored["row_labels"]
    model = fit(X)
    assert model.family_ == "poisson"
    assert model.n_row_clusters_ == 3
    assert normalized_mutual_info_score(labels, model.row_labels_) > 0.9


@pytest.fixture(scope="module")
def topics():
    """Word counts of four topics with words at every scale: no block model is right."""
    rng = np.random.default_rng(0)
    labels = np.arange(240) % 4
    rates = rng.gamma(0.3, size=(4, 300))[labels] * rng.gamma(2.0, size=(240, 1))
    rates *= rng.gamma(1.0, size=(240, 300))
    return sp.csr_array(rng.poisson(rates).astype(float)), labels


@pytest.fixture(scope="module")
def reproducible(topics):
    return TransportCoclustering(criterion="reproducibility", random_state=0).fit(topics[0])


def test_reproducibility_tells_of_numbers_clusters_and_points(topics, reproducible):
    told = reproducible.reproducibility_.row
    assert reproducible.n_row_clusters_ == told.n_clusters == 4
    assert told.mean.shape == told.spread.shape == told.numbers.shape
    assert told.clusters.shape == (4,)
    assert told.points.shape == (240,)
    assert told.clusters.min() > 0.8
    assert reproducible.candidates_[0].criterion == "reproducibility"
    assert "all clusters are found again with half of the data" in reproducible.summary()
    assert (reproducible.row_confidence_ <= told.points).all()


def test_workers_change_no_label(topics, reproducible):
    other = TransportCoclustering(criterion="reproducibility", random_state=0, n_jobs=2)
    other.fit(topics[0])
    assert (other.row_labels_ == reproducible.row_labels_).all()
    assert (other.column_labels_ == reproducible.column_labels_).all()
    assert (other.row_confidence_ == reproducible.row_confidence_).all()


def test_reproducibility_is_in_the_model_file(reproducible, tmp_path):
    again = load_model(reproducible.save(tmp_path / "model.ccot"))
    assert again.summary() == reproducible.summary()
    told = again.reproducibility_.row
    assert (told.points == reproducible.reproducibility_.row.points).all()
    assert told.plausible == reproducible.reproducibility_.row.plausible


def test_a_number_asked_of_noise_gets_a_plain_warning():
    noise = np.random.default_rng(0).poisson(3.0, size=(90, 60))
    with pytest.warns(UserWarning, match="3 row clusters are not found again"):
        model = TransportCoclustering(n_row_clusters=3, random_state=0).fit(noise)
    assert model.n_row_clusters_ == 3
    assert "warning: the 3 row clusters are not found again" in model.summary()
    free = TransportCoclustering(random_state=0).fit(noise)
    assert (free.n_row_clusters_, free.n_column_clusters_) == (1, 1)
    assert free.reproducibility_.row is None


def test_what_is_not_found_again_is_named(reproducible):
    told = reproducible.reproducibility_.row
    poor = replace(told, clusters=np.array([0.9, 0.3, 0.8, 0.2]))
    side = reproducible._fitted.row
    sizes = side.sizes()
    said = f"all clusters but R1 ({sizes[1]} rows), R3 ({sizes[3]} rows)"
    assert said in _in_words("row", poor, side, found=True)
    none = replace(told, clusters=np.full(4, 0.4))
    assert (
        _in_words("row", none, side, found=True)
        == "no cluster is found again with half of the data"
    )


def test_a_single_row_is_counted_as_one():
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(60, 40)) + np.where(np.arange(60) < 30, 3.0, 0.0)[:, None]
    matrix[7] += 30.0
    model = TransportCoclustering(3, criterion="reproducibility", random_state=0).fit(matrix)
    told, side = model.reproducibility_.row, model._fitted.row
    alone = int(np.argmin(side.sizes()))
    assert side.sizes()[alone] == 1
    poor = replace(told, clusters=np.where(np.arange(3) == alone, 0.1, 0.9))
    assert f"all clusters but R{alone} (1 row)" in _in_words("row", poor, side, False)


def test_the_finest_number_is_told_from_one_that_others_were_compared_with(reproducible):
    told, side = reproducible.reproducibility_.row, reproducible._fitted.row
    few = replace(told, numbers=told.numbers[:3], mean=told.mean[:3], spread=told.spread[:3])
    assert few.numbers[-1] == told.n_clusters < told.numbers[-1]
    assert "were not tried" in _in_words("row", few, side, found=True)
    assert "were not tried" not in _in_words("row", few, side, found=False)
    assert "were not tried" not in _in_words("row", told, side, found=True)


def test_halves_that_do_not_agree_are_doubted_where_noise_was_not_drawn():
    """ICL sees structure in amounts with long tails; halves of the columns do not."""
    amounts = np.random.default_rng(3).lognormal(sigma=1.5, size=(100, 40))
    model = TransportCoclustering(criterion="reproducibility", random_state=0).fit(amounts)
    told = model.reproducibility_.row
    assert np.isnan(told.expected)
    assert told.agreement < 0.1
    assert f"warning: the {told.n_clusters} row clusters are not found again" in model.summary()


@pytest.mark.parametrize("n_kinds", [3, 5, 8])
@pytest.mark.parametrize("kind", ["gaussian", "bernoulli", "poisson"])
def test_equal_rows_are_one_cluster_each(kind, n_kinds):
    rng = np.random.default_rng(n_kinds)
    draw = {
        "gaussian": rng.normal,
        "bernoulli": partial(rng.binomial, 1, 0.5),
        "poisson": partial(rng.poisson, 3.0),
    }
    kinds = np.arange(20 * n_kinds) % n_kinds
    matrix = draw[kind](size=(n_kinds, 24)).astype(float)[kinds]
    found = TransportCoclustering(random_state=0).fit(matrix)
    assert adjusted_rand_score(kinds, found.row_labels_) == 1.0
