"""Blocks of matrices that are read row by row, against the same matrices in memory."""

from functools import partial
from pathlib import Path

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from distributed import Client, LocalCluster

from ccot import TransportCoclustering, load_model
from ccot.blocks import streaming as stream
from ccot.metrics import error_rate
from ccot.sources import ArraySource, FunctionSource
from tests.blocks.matrices import draw


@pytest.fixture
def small_pool(monkeypatch):
    monkeypatch.setattr(stream, "POOL_ENTRIES", 2**12)
    monkeypatch.setattr(stream, "POOL_ROWS", 150)


def planted(family, n_rows=600, seed=0):
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(0, 2, n_rows), rng.integers(0, 3, 30)
    return draw(family, rows, columns, rng)


def in_parts(X, step=70, allow_nan=False):
    source = FunctionSource(lambda first, last: X[first:last], X.shape, part_rows=step)
    source.allow_nan = allow_nan
    return source


def fit(X, **params):
    return TransportCoclustering(random_state=0, **params).fit(X)


def assert_same(one, other):
    """Clusters may have other names."""
    assert error_rate(one.row_labels_, other.row_labels_) == 0
    assert error_rate(one.column_labels_, other.column_labels_) == 0
    np.testing.assert_allclose(
        np.sort(one.block_means_, axis=None), np.sort(other.block_means_, axis=None)
    )


def test_rows_read_in_parts_give_what_all_rows_give(family, small_pool):
    X = planted(family)
    here, there = fit(X), fit(in_parts(X))
    assert there.family_ == here.family_
    assert_same(there, here)
    np.testing.assert_allclose(there.row_confidence_, here.row_confidence_, atol=1e-3)
    np.testing.assert_allclose(there.column_confidence_, here.column_confidence_, atol=1e-3)
    assert there.score(X[:50]) == pytest.approx(here.score(X[:50]), rel=1e-3)
    assert there.icl_ == pytest.approx(here.icl_, rel=0.05)


def test_new_points_are_placed_as_usual(family, small_pool, tmp_path):
    X, new = planted(family), planted(family)[:40]
    model = fit(in_parts(X))
    np.testing.assert_array_equal(model.predict(X), model.row_labels_)
    np.testing.assert_array_equal(model.predict_columns(X.T), model.column_labels_)
    np.testing.assert_array_equal(model.predict(in_parts(new, step=7)), model.predict(new))
    again = load_model(model.save(tmp_path / "streamed.ccot"))
    np.testing.assert_array_equal(again.predict(new), model.predict(new))


def test_hierarchy_holds_all_rows(small_pool):
    X = planted("gaussian")
    model = fit(in_parts(X))
    cut = model.cut(2, 3)
    assert error_rate(cut.row_labels, model.row_labels_) < 0.02
    assert error_rate(cut.column_labels, model.column_labels_) == 0


def test_sparse_rows_give_what_dense_rows_give(small_pool):
    X = planted("poisson") * (np.random.default_rng(1).uniform(size=(600, 30)) < 0.2)
    here = fit(sp.csr_array(X), family="poisson")
    there = fit(in_parts(sp.csr_array(X)), family="poisson")
    assert_same(there, here)


def test_missing_entries_may_be_in_some_parts_only(small_pool):
    X = planted("gaussian")
    X[:200][np.random.default_rng(1).uniform(size=(200, 30)) < 0.2] = np.nan
    X[3] = np.nan
    here, there = fit(X), fit(in_parts(X, allow_nan=True))
    known = np.arange(600) != 3
    assert error_rate(here.row_labels_[known], there.row_labels_[known]) == 0
    assert error_rate(here.column_labels_, there.column_labels_) == 0
    assert there.row_confidence_[3] == 0
    np.testing.assert_allclose(
        np.sort(there.block_means_, axis=None), np.sort(here.block_means_, axis=None), rtol=1e-9
    )


def test_row_effects_are_taken_out_of_every_part(small_pool):
    rng = np.random.default_rng(0)
    X = planted("gaussian") + 5 * rng.normal(size=600)[:, None] + 5 * rng.normal(size=30)
    there = fit(in_parts(X), n_row_clusters=2, n_column_clusters=3, center="both")
    here = fit(X, n_row_clusters=2, n_column_clusters=3, center="both")
    assert len(there._fitted.row.placement.preparation.row_effect) == 600
    assert error_rate(here.row_labels_, there.row_labels_) == 0


def test_whatever_is_read_row_by_row_is_taken(small_pool, tmp_path):
    X = planted("gaussian")
    expected = fit(in_parts(X))
    path = Path(tmp_path, "x.npy")
    np.save(path, X)
    for source in (path, np.load(path, mmap_mode="r"), da.from_array(X, chunks=(90, 11))):
        assert_same(fit(source), expected)


def faint(family, n_rows=600):
    """Return a matrix whose blocks are so faint that sweeps go on for a while."""
    rng = np.random.default_rng(1)
    rows, columns = rng.integers(0, 2, n_rows), rng.integers(0, 3, 30)
    signal = np.array([[0.3, -0.3, 0.0], [-0.3, 0.3, 0.2]])[rows][:, columns]
    if family == "gaussian":
        return signal + rng.normal(size=signal.shape)
    if family == "poisson":
        return rng.poisson(np.exp(signal)).astype(float)
    return (rng.uniform(size=signal.shape) < 0.5 + signal).astype(float)


@pytest.mark.parametrize("kind", ["gaussian", "poisson", "bernoulli", "sparse"])
def test_full_sweeps_are_those_of_one_block_however_rows_are_kept(
    kind, small_pool, tmp_path, monkeypatch
):
    """Swept until nothing moves, rows and columns are where the blocks of all of them say."""
    monkeypatch.setattr(stream, "POOL_ENTRIES", 1)  # one sample, whatever the first part holds
    family = "poisson" if kind == "sparse" else kind
    X = sp.csr_array(faint(family)) if kind == "sparse" else faint(family)
    settle = partial(fit, n_row_clusters=2, n_column_clusters=3, family=family, criterion="jump")
    few, settle = settle(in_parts(X, step=600)), partial(settle, max_passes=None, tol=0)
    expected = settle(in_parts(X, step=600))
    assert expected.n_iter_ > few.n_iter_
    np.testing.assert_array_equal(expected.predict(X), expected.row_labels_)
    np.testing.assert_array_equal(expected.predict_columns(X.T), expected.column_labels_)
    if kind == "sparse":
        sources = [da.from_array(sp.csr_matrix(X), chunks=(90, 30))]  # as AnnData has them
    else:
        np.save(tmp_path / "x.npy", X)
        sources = [tmp_path / "x.npy", da.from_array(X, chunks=(90, 11))]
    for source in [in_parts(X, step=7), *sources]:
        there = settle(source, n_jobs=2)
        np.testing.assert_array_equal(there.row_labels_, expected.row_labels_)
        np.testing.assert_array_equal(there.column_labels_, expected.column_labels_)
        assert there.icl_ == pytest.approx(expected.icl_, rel=1e-12)


@pytest.mark.slow
def test_a_cluster_gives_what_threads_give(small_pool, tmp_path):
    X = planted("gaussian")
    blocks = da.from_array(X, chunks=(90, 30))
    here = fit(blocks)
    workers = LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, local_directory=tmp_path
    )
    with workers, Client(workers):
        there = fit(blocks)
    np.testing.assert_array_equal(there.row_labels_, here.row_labels_)
    np.testing.assert_array_equal(there.column_labels_, here.column_labels_)
    np.testing.assert_array_equal(there.row_confidence_, here.row_confidence_)


def test_few_rows_are_fitted_as_if_they_were_in_memory():
    X = planted("gaussian")
    here, there = fit(X), fit(ArraySource(X))
    np.testing.assert_array_equal(there.row_labels_, here.row_labels_)
    assert there.icl_ == here.icl_


def test_a_cluster_of_the_sample_that_nobody_joins_is_dropped():
    labels = np.array([0, 2, 2, 0]), np.array([1, 1, 1, 1])
    total = np.arange(6.0).reshape(3, 2)
    sums = stream.RowSums((total, np.ones((2, 2))), (0.0, 0.0), 1.0, total)
    rows = stream.Rows(labels, np.ones(4), np.ones(4), None, sums)
    dropped = stream._without_empty(rows)
    np.testing.assert_array_equal(dropped.labels[0], [0, 1, 1, 0])
    np.testing.assert_array_equal(dropped.sums.total[0], total[[0, 2]])
    np.testing.assert_array_equal(dropped.sums.raw, total[[0, 2]])
    # The finest clusters come last.
    np.testing.assert_array_equal(dropped.labels[1], labels[1])


def test_what_needs_all_rows_is_refused(small_pool):
    with pytest.raises(ValueError, match="clusters of equal size need all rows at once"):
        fit(in_parts(planted("gaussian")), balanced=True)
    with pytest.raises(ValueError, match="NaN only"):
        fit(in_parts(np.full((600, 30), np.nan), allow_nan=True))
