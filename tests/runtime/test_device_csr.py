"""Sparse matrices on a device against SciPy's; PyTorch on the CPU stands for every device."""

import numpy as np
import pytest
import scipy.sparse as sp

from ccot import TransportCoclustering
from ccot.blocks import fit, start
from ccot.blocks.axes import n_entries
from ccot.runtime import backends, device_csr
from ccot.runtime.backends import choose_backend

pytestmark = pytest.mark.usefixtures("one_torch_thread")


@pytest.fixture
def counts():
    rng = np.random.default_rng(0)
    matrix = rng.poisson(0.3, (40, 25)).astype(float)
    matrix[3], matrix[:, 4] = 0, 0
    return sp.csr_array(matrix)


@pytest.fixture
def sent(counts):
    return choose_backend("cpu", "float64").send(counts)


def test_parts_of_a_matrix_are_scipys(counts, sent):
    dense = counts.toarray()
    there = device_csr.transposed(sent)
    np.testing.assert_array_equal(device_csr.to_scipy(there).toarray(), dense.T)
    np.testing.assert_allclose(device_csr.row_sums(sent), dense.sum(axis=1))
    rows = device_csr.by_row(sent, sent.values().new_tensor(range(counts.shape[0])))
    np.testing.assert_array_equal(rows, counts.tocoo().row)
    assert n_entries(sent) == counts.nnz
    members = np.array([7, 3, 3, 30])
    taken = device_csr.take_rows(sent, sent.col_indices().new_tensor(members).long())
    np.testing.assert_array_equal(device_csr.to_scipy(taken).toarray(), dense[members])


def test_rows_and_columns_are_scaled(counts, sent):
    rng = np.random.default_rng(1)
    rows, columns = rng.uniform(size=40), rng.uniform(size=25)
    tensor = sent.values().new_tensor
    scaled = device_csr.to_scipy(device_csr.scaled(sent, tensor(rows), tensor(columns)))
    np.testing.assert_allclose(scaled.toarray(), rows[:, None] * counts.toarray() * columns)


def test_blocks_are_summed(counts, sent):
    rng = np.random.default_rng(2)
    rows, columns = rng.integers(3, size=40), rng.integers(2, size=25)
    expected = np.eye(3)[rows].T @ counts.toarray() @ np.eye(2)[columns]
    np.testing.assert_allclose(device_csr.sum_blocks(sent, rows, columns, (3, 2)), expected)


def test_matrices_of_cupy_are_taken_where_they_are(counts):
    class Rows:
        indptr, indices, data, shape = counts.indptr, counts.indices, counts.data, counts.shape

        def tocsr(self):
            return self

    Rows.__module__ = "cupyx.scipy.sparse._csr"
    given = backends.as_device_csr(Rows())
    np.testing.assert_array_equal(device_csr.to_scipy(given).toarray(), counts.toarray())
    assert given.values().data_ptr() == counts.data.ctypes.data
    assert backends.as_device_csr(counts) is None


@pytest.fixture
def few_are_many(monkeypatch):
    """Counts of a test are enough for a device."""
    monkeypatch.setattr(fit, "HERE_ENTRIES", 0)
    monkeypatch.setattr(start, "HERE_ENTRIES", 0)


def sparse_counts(n_columns=70):
    rng = np.random.default_rng(0)
    rows, columns = rng.integers(3, size=120), rng.integers(2, size=n_columns)
    means = np.array([[0.02, 0.5], [0.5, 0.05], [0.1, 0.1]])
    return sp.csr_array(rng.poisson(means[rows][:, columns]).astype(float))


@pytest.mark.parametrize(
    "params",
    [{}, {"criterion": "reproducibility"}, {"n_row_clusters": 3, "n_column_clusters": 2},
     {"scale": "none"}, {"family": "poisson"}],
    ids=str,
)  # fmt: skip
def test_counts_on_a_device_have_the_labels_of_numpy(params, few_are_many, monkeypatch):
    # Halves of fewer columns have equal points, of which rounding chooses.
    X = sparse_counts(140 if "criterion" in params else 70)
    sent = choose_backend("cpu", "float32").send(X.astype(np.float32))
    expected = TransportCoclustering(random_state=0, n_init=3, **params).fit(X)
    segment, segmented = start._segment_on_device, []
    watched = lambda *given: segmented.append(1) or segment(*given)  # noqa: E731
    monkeypatch.setattr(start, "_segment_on_device", watched)
    for given, device in ((X, "cpu"), (X.astype(np.int32), "cpu"), (sent, None)):
        model = TransportCoclustering(random_state=0, n_init=3, device=device, **params).fit(given)
        assert segmented
        segmented.clear()
        np.testing.assert_array_equal(model.row_labels_, expected.row_labels_)
        np.testing.assert_array_equal(model.column_labels_, expected.column_labels_)
        np.testing.assert_allclose(model.row_confidence_, expected.row_confidence_, atol=1e-8)
        np.testing.assert_allclose(model.block_means_, expected.block_means_)
        assert model.family_reason_ == expected.family_reason_
        assert str(model.preparation_) == str(expected.preparation_)
        assert model.describe_clusters().equals(expected.describe_clusters())


@pytest.mark.parametrize(
    ("change", "params"),
    [(lambda X: -X, {}), (lambda X: X, {"family": "gaussian"}), (lambda X: X, {"scale": "log"}),
     (lambda X: 1e60 * X, {}), (lambda X: 0 * X, {})],
)  # fmt: skip
def test_other_matrices_on_a_device_are_fitted_as_those_in_memory(change, params, few_are_many):
    X = sp.csr_array(change(sparse_counts()))
    sent = choose_backend("cpu", "float64").send(X)
    expected = TransportCoclustering(random_state=0, n_init=2, **params).fit(X)
    for given, device in ((sent, None), (X, "cpu")):
        model = TransportCoclustering(random_state=0, n_init=2, device=device, **params).fit(given)
        np.testing.assert_array_equal(model.row_labels_, expected.row_labels_)
        np.testing.assert_array_equal(model.predict(given), expected.predict(X))
        assert model.describe_clusters().equals(expected.describe_clusters())


@pytest.mark.parametrize(
    ("change", "params"),
    [(lambda X: -X, {}), (lambda X: X, {"family": "gaussian"}), (lambda X: X, {"center": "none"})],
)
def test_matrices_that_are_no_counts_are_not_sent_to_be_checked(
    change, params, few_are_many, monkeypatch
):
    monkeypatch.setattr(fit.prepare, "are_device_counts", None)  # it takes what was sent
    X = sp.csr_array(change(sparse_counts()))
    model = TransportCoclustering(2, 2, random_state=0, n_init=2, device="cpu", **params).fit(X)
    assert model.describe_clusters() is not None


def test_what_is_wrong_on_a_device_is_said(few_are_many):
    X = sparse_counts()
    X.data[5] = np.inf
    for given, device in ((choose_backend("cpu", "float64").send(X), None), (X, "cpu")):
        with pytest.raises(ValueError, match="Input X contains infinity"):
            TransportCoclustering(device=device).fit(given)


def test_large_counts_are_checked_on_the_device_they_are_sent_to(few_are_many, monkeypatch):
    monkeypatch.setattr(TransportCoclustering, "_check_matrix", None)
    model = TransportCoclustering(random_state=0, n_init=2, device="cpu").fit(sparse_counts())
    assert model.n_features_in_ == 70
    with pytest.raises(ValueError, match="1 rows and 70 columns"):
        model.fit(sparse_counts()[:1])
