"""Finite matrices of any scale, and matrices without noise, are fitted rightly and silently."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from ccot import CCOT, CCOTGW, TransportCoclustering, load_model
from ccot.datasets import make_latent_blocks
from ccot.estimators.base import _unit_of
from ccot.metrics import coclustering_error

BLOCKS = make_latent_blocks([[1, 5, 9], [6, 1, 3]], 40, 30, sigma=0.5, random_state=0)
CRISP = make_latent_blocks([[1, 5, 9], [6, 1, 3]], 40, 30, sigma=0.01, random_state=0)
FITS = [
    (TransportCoclustering(random_state=0), BLOCKS),
    (CCOT(random_state=0), CRISP),
    (CCOTGW(2, 3, random_state=0), CRISP),
]
IDS = [type(model).__name__ for model, _ in FITS]


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def check_described(model, X, *given):
    """Check that row clusters are described by means of the values of ``X``."""
    for cluster, portrait in enumerate(model._portraits(*given)[0]):
        members = model.row_labels_ == cluster
        for trait in portrait.traits:
            means = X[members, trait.index].mean(), X[:, trait.index].mean()
            np.testing.assert_allclose((trait.value, trait.overall), means)
        assert portrait.traits


@pytest.mark.parametrize("scale", [1e300, 1e-300, 1e153, 1e-160])
@pytest.mark.parametrize(("model", "blocks"), FITS, ids=IDS)
def test_scale_changes_nothing(model, blocks, scale, tmp_path):
    plain = model.fit(blocks.data)
    labels = plain.row_labels_.copy(), plain.column_labels_.copy()
    means = plain.block_means_.copy()
    scaled = model.fit(blocks.data * scale)
    assert np.isfinite(scaled.row_confidence_).all()
    assert coclustering_error(*labels, scaled.row_labels_, scaled.column_labels_) == 0
    order = np.lexsort(means.T), np.lexsort(scaled.block_means_.T)
    np.testing.assert_allclose(scaled.block_means_[order[1]] / scale, means[order[0]], rtol=1e-6)
    again = load_model(scaled.save(tmp_path / "model.ccot"))
    np.testing.assert_array_equal(again.predict(blocks.data * scale), scaled.row_labels_)
    assert "divided by" in again.summary()
    # Descriptions are of the values that were given, kept or passed, dense or sparse.
    X = blocks.data * scale
    for given_values in ((), (X,), (sp.coo_array(X),)):
        check_described(again, X, *given_values)


@pytest.mark.parametrize("scale", [1e300, 1e-200])
def test_tables_are_described_in_their_own_units(scale):
    # Columns that differ in unit make a table, of an array and of a frame.
    table = BLOCKS.data[:, :6] + 1000 * np.arange(6)
    plain = TransportCoclustering(random_state=0).fit(table)
    for X in (table * scale, pd.DataFrame(table * scale, columns=[f"x{j}" for j in range(6)])):
        model = TransportCoclustering(random_state=0).fit(X)
        check_described(model, table * scale)
        np.testing.assert_allclose(model.block_means_, plain.block_means_, rtol=1e-6)
        with warnings.catch_warnings():
            # Scikit-learn expects the frame of the fit; an array is meant here.
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            predicted = model.predict(table * scale)
        np.testing.assert_array_equal(predicted, model.row_labels_)


def test_the_unit_is_finite_for_every_float():
    largest = np.array([[np.finfo(float).max, 1.0]])
    assert _unit_of(largest) == 2.0**1023
    assert _unit_of(-5e-324 * np.ones((1, 1))) == 5e-324
    assert _unit_of(np.array([[np.nan, -3.0]])) == 1.0


@pytest.mark.parametrize("seed", range(6))
def test_exact_blocks_of_any_size_are_found(seed):
    rng = np.random.default_rng(seed)
    rows, columns = (rng.integers(3, size=size) for size in rng.integers(24, 60, size=2))
    X = np.array([[0.0, 8, 3], [6, 1, 2], [4, 5, 9]])[rows][:, columns]
    model = TransportCoclustering(random_state=0).fit(X)
    assert coclustering_error(rows, columns, model.row_labels_, model.column_labels_) == 0


def test_identical_rows_are_fitted():
    model = TransportCoclustering(random_state=0).fit(np.tile(np.arange(24.0), (40, 1)))
    assert model.n_row_clusters_ == 1


@st.composite
def without_noise(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    n, d = draw(st.integers(6, 40)), draw(st.integers(6, 40))
    rows, columns = (rng.integers(draw(st.integers(1, 4)), size=size) for size in (n, d))
    kind = draw(st.sampled_from(["rows", "columns", "rank one", "blocks", "integers", "copies"]))
    if kind == "rows":
        return np.tile(rng.normal(size=d), (n, 1))
    if kind == "columns":
        return np.tile(rng.normal(size=(n, 1)), (1, d))
    if kind == "rank one":
        return np.outer(rng.normal(size=n), rng.normal(size=d))
    if kind == "blocks":
        return rng.normal(size=(4, 4))[rows][:, columns]
    if kind == "integers":
        return rng.integers(-3, 9, size=(4, 4)).astype(float)[rows][:, columns]
    return np.repeat(rng.normal(size=(max(n // 3, 2), d)), 3, axis=0)


def check(X):
    model = TransportCoclustering(random_state=0).fit(X)
    assert np.isfinite(model.row_confidence_).all()
    assert np.isfinite(model.column_confidence_).all()
    _, kinds = np.unique(X.round(9), axis=0, return_inverse=True)
    # Equal rows are in one cluster.
    for kind in range(kinds.max() + 1):
        assert len(set(model.row_labels_[kinds.ravel() == kind])) == 1


@settings(deadline=None, max_examples=25)
@given(without_noise())
def test_matrices_without_noise_are_fitted(X):
    check(X)


@pytest.mark.slow
@settings(deadline=None, max_examples=2000)
@given(without_noise())
def test_many_matrices_without_noise_are_fitted(X):
    check(X)


def test_masked_entries_are_missing():
    mask = np.random.default_rng(0).uniform(size=BLOCKS.data.shape) < 0.1
    spoilt = np.where(mask, 1e6, BLOCKS.data)
    masked = TransportCoclustering(random_state=0).fit(np.ma.array(spoilt, mask=mask))
    missing = TransportCoclustering(random_state=0).fit(np.where(mask, np.nan, BLOCKS.data))
    np.testing.assert_array_equal(masked.row_labels_, missing.row_labels_)


DATES = np.array([["2026-01-01", "2026-01-02"]] * 3, dtype="datetime64[D]")


@pytest.mark.parametrize("dates", [DATES, DATES.astype(object), DATES.tolist()])
@pytest.mark.parametrize("estimator", [CCOT, TransportCoclustering])
def test_dates_are_refused_in_words(estimator, dates):
    with pytest.raises(ValueError, match="dates or times"):
        estimator().fit(dates)
