"""Matrices that are read row by row, and rows that keep arriving."""

import tracemalloc
import warnings

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from ccot import CCOT, load_model
from ccot.datasets import make_latent_blocks
from ccot.metrics import error_rate
from ccot.runtime import spilled
from ccot.scalings import sampling
from ccot.sources import FunctionSource
from tests.sources.test_sources import KINDS

FITTED = (
    "row_labels_",
    "column_labels_",
    "row_confidence_",
    "column_confidence_",
    "row_jumps_",
)


@pytest.fixture
def small_pool(monkeypatch):
    """Let 120 rows vote, so that matrices of a few hundred are tall."""
    monkeypatch.setattr(sampling, "POOL_ROWS", 120)


@pytest.fixture(scope="module")
def blocks():
    return make_latent_blocks([[4, 0, 2], [1, 5, 1]], 1000, 30, sigma=0.05, random_state=0)


def same(one, other):
    for name in FITTED:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)
    np.testing.assert_allclose(one.block_means_, other.block_means_, rtol=1e-10)
    np.testing.assert_allclose(one.row_log_scaling_, other.row_log_scaling_, atol=1e-12)


def means_of(X, model):
    """Block means, cell by cell."""
    return [
        [
            X[model.row_labels_ == row][:, model.column_labels_ == column].mean()
            for column in range(3)
        ]
        for row in range(2)
    ]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pooled", [False, True], ids=["all vote", "a pool votes"])
def test_where_a_matrix_is_kept_changes_nothing(kind, pooled, blocks, tmp_path, monkeypatch):
    if pooled:
        monkeypatch.setattr(sampling, "POOL_ROWS", 120)
    dense = blocks.data[:400]
    dense = np.where(dense > 1.5, dense, 0) if kind.startswith("cs") else dense
    there = CCOT(n_samplings=8, random_state=0).fit(KINDS[kind](dense, tmp_path))
    here = CCOT(n_samplings=8, random_state=0)
    here.fit(sp.csr_array(dense) if kind.startswith("cs") else dense)
    same(there, here)
    np.testing.assert_array_equal(there.predict(KINDS[kind](dense, tmp_path)), here.predict(dense))


def test_the_pool_votes_and_the_others_are_placed(blocks, small_pool):
    model = CCOT(random_state=0).fit(blocks.data)
    assert error_rate(blocks.row_labels, model.row_labels_) == 0
    assert error_rate(blocks.column_labels, model.column_labels_) == 0
    assert model.n_samplings_ == 16 * 120 // 30
    assert model.row_labels_.shape == model.row_log_scaling_.shape == (1000,)
    assert model.row_confidence_.mean() == pytest.approx(model.row_cluster_votes_[2], abs=0.02)
    assert model.row_jumps_ == [(model.row_log_scaling_ < model.row_log_scaling_.mean()).sum()]
    np.testing.assert_array_equal(model.predict(blocks.data), model.row_labels_)
    np.testing.assert_array_equal(model.predict_columns(blocks.data.T), model.column_labels_)
    np.testing.assert_allclose(model.block_means_, means_of(blocks.data, model), rtol=1e-12)
    assert "1000 rows in 2 clusters" in model.summary()


def test_wide_matrices_have_a_pool_of_columns(blocks, small_pool):
    model, turned = (CCOT(random_state=0).fit(X) for X in (blocks.data, blocks.data.T))
    np.testing.assert_array_equal(turned.column_labels_, model.row_labels_)
    np.testing.assert_array_equal(turned.row_labels_, model.column_labels_)
    np.testing.assert_allclose(turned.block_means_, model.block_means_.T, rtol=1e-12)
    np.testing.assert_array_equal(turned.predict(blocks.data.T), model.column_labels_)


def test_threads_change_nothing(blocks, small_pool, monkeypatch):
    monkeypatch.setattr("ccot.sources.base.PART_CELLS", 300)
    same(*(CCOT(n_jobs=n_jobs, random_state=0).fit(blocks.data) for n_jobs in (1, 2)))


def test_reg_is_chosen_by_the_pool(blocks, small_pool):
    model = CCOT(reg="cv", n_samplings=8, random_state=0).fit(blocks.data)
    assert model.reg_ == model.reg_path_.best
    assert error_rate(blocks.row_labels, model.row_labels_) == 0


def make_rows(n_rows, n_columns=20, part_rows=10_000):
    means = np.array([[4.0, 0.0, 2.0, 3.0], [1.0, 5.0, 1.0, 0.0]]).repeat(n_columns // 4, axis=1)

    def make(first, last):
        rng = np.random.default_rng(first)
        noise = rng.standard_normal((last - first, n_columns), dtype=np.float32)
        return means[np.arange(first, last) % 2] + 0.05 * noise

    return FunctionSource(make, (n_rows, n_columns), part_rows)


def test_memory_does_not_grow_with_the_rows(monkeypatch):
    monkeypatch.setattr(spilled, "MEMORY_BYTES", 2**16)
    peaks = []
    for n_rows in (100_000, 400_000):
        model = CCOT(n_samplings=10, random_state=0)
        tracemalloc.start()
        try:
            model.fit(make_rows(n_rows))
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
        assert (model.row_labels_[::2] == model.row_labels_[0]).all()
        assert (model.row_labels_[1::2] == 1 - model.row_labels_[0]).all()
    assert peaks[1] < 1.1 * peaks[0] < 0.25 * 8 * 400_000 * 20


def test_long_answers_leave_memory_and_can_be_saved(monkeypatch, tmp_path):
    monkeypatch.setattr(spilled, "MEMORY_BYTES", 10_000)
    model = CCOT(n_samplings=10, random_state=0).fit(make_rows(100_000))
    assert isinstance(model.row_labels_, np.memmap)
    again = load_model(model.save(tmp_path / "model.ccot"))
    np.testing.assert_array_equal(again.row_labels_, model.row_labels_)
    new = make_rows(1000)
    np.testing.assert_array_equal(again.predict(new), model.predict(new))
    again.partial_fit(new)
    assert len(again.row_labels_) == 101_000


def test_bad_rows_are_found_wherever_they_are(blocks, small_pool):
    dirty = blocks.data.copy()
    dirty[777, 3] = np.nan
    with pytest.raises(ValueError, match="NaN in row 777: drop such rows"):
        CCOT(random_state=0).fit(da.from_array(dirty, chunks=(100, 30)))


def test_small_and_odd_sources_are_refused(blocks, tmp_path):
    with pytest.raises(ValueError, match="1 rows and 30 columns: co-clustering needs at least"):
        CCOT().fit(da.from_array(blocks.data[:1]))
    with pytest.raises(ValueError, match="=31 is more than the 30 columns"):
        CCOT(n_column_clusters=31).fit(da.from_array(blocks.data))
    model = CCOT(random_state=0, n_samplings=2).fit(blocks.data)
    with pytest.raises(ValueError, match="X has 29 features, but CCOT is expecting 30"):
        model.predict(da.from_array(blocks.data[:, 1:]))


# Rows that keep arriving -----------------------------------------------------------------------


def test_earlier_labels_stay_and_new_rows_are_placed(blocks):
    X = blocks.data
    model = CCOT(random_state=0).partial_fit(X[:400])
    first = CCOT(random_state=0).fit(X[:400])
    same(model, first)
    for start in (400, 700):
        before = model.row_labels_.copy(), model.row_confidence_.copy()
        model.partial_fit(X[start : start + 300])
        np.testing.assert_array_equal(model.row_labels_[:start], before[0])
        np.testing.assert_array_equal(model.row_confidence_[:start], before[1])
        np.testing.assert_array_equal(
            model.row_labels_[start:], first.predict(X[start : start + 300])
        )
    assert error_rate(blocks.row_labels, model.row_labels_) == 0
    assert (model.n_row_clusters_, model.n_column_clusters_) == (2, 3)
    np.testing.assert_array_equal(model.column_labels_, first.column_labels_)
    np.testing.assert_array_equal(model.predict_columns(X.T), model.column_labels_)
    np.testing.assert_allclose(model.block_means_, means_of(X, model), rtol=1e-10)
    assert model.row_jumps_ == [(model.row_labels_ == 0).sum()]
    assert "1000 rows" in model.summary()


def test_rows_may_arrive_sparse_or_from_a_file(blocks, tmp_path):
    X = np.where(blocks.data > 1.5, blocks.data, 0)
    np.save(tmp_path / "more.npy", X[300:])
    model = CCOT(random_state=0).partial_fit(sp.csr_array(X[:200]))
    model.partial_fit(sp.csr_array(X[200:300])).partial_fit(tmp_path / "more.npy")
    np.testing.assert_array_equal(model.row_labels_, model.predict(X))


def test_rows_of_a_new_kind_are_announced(blocks):
    model = CCOT(random_state=0).partial_fit(blocks.data[:500])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit(blocks.data[500:])
    with pytest.warns(UserWarning, match="100% of the new rows are far from all clusters"):
        model.partial_fit(blocks.data[:20] + 10)
    noise = make_latent_blocks([[1]], 100, 40, sigma=1.0, random_state=0).data
    smooth = CCOT(random_state=0).partial_fit(noise[:80])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        smooth.partial_fit(noise[80:])


def test_rows_must_have_the_columns_of_the_first(blocks):
    model = CCOT(n_samplings=2, random_state=0).partial_fit(blocks.data[:100])
    with pytest.raises(ValueError, match="29 features"):
        model.partial_fit(blocks.data[100:, 1:])
    with pytest.raises(ValueError, match="contains NaN"):
        model.partial_fit(np.full((3, 30), np.nan))
    assert len(model.row_labels_) == 100


def test_names_are_kept_while_rows_bring_them(blocks):
    frame = pd.DataFrame(blocks.data, index=[f"r{row}" for row in range(1000)])
    frame.columns = [f"c{column}" for column in range(30)]
    model = CCOT(n_samplings=2, random_state=0).partial_fit(frame[:100]).partial_fit(frame[100:150])
    assert model.to_frame()["name"].tolist() == frame.index[:150].tolist()
    model.partial_fit(frame[150:160].reset_index(drop=True))
    assert model.to_frame()["name"].tolist() == list(range(160))
