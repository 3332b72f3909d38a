"""TransportCoclustering on a device; PyTorch on the CPU stands for all of them."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from ccot import TransportCoclustering
from ccot.datasets import load_simulated
from ccot.persistence import checkpoint
from tests.estimators.test_transport import FAMILIES, fit, planted

pytestmark = pytest.mark.usefixtures("one_torch_thread")


def assert_same_fit(one, other):
    for side in ("row", "column"):
        labels, confidence = f"{side}_labels_", f"{side}_confidence_"
        np.testing.assert_array_equal(getattr(one, labels), getattr(other, labels))
        np.testing.assert_allclose(getattr(one, confidence), getattr(other, confidence), atol=1e-9)
    assert one.icl_ == pytest.approx(other.icl_, rel=1e-9)


def with_gaps(X):
    return np.where(np.random.default_rng(1).uniform(size=X.shape) < 0.2, np.nan, X)


@pytest.mark.parametrize(
    ("family", "make", "params"),
    [
        *((family, make, {}) for family in FAMILIES for make in (np.asarray, sp.csr_array)),
        ("gaussian", with_gaps, {}),
        ("gaussian", np.asarray, {"heteroscedastic": True}),
        ("gaussian", np.asarray, {"n_row_clusters": 4, "n_column_clusters": 2, "balanced": True}),
        ("poisson", sp.csr_array, {"criterion": "icl", "n_row_clusters": 5}),
    ],
)
def test_torch_gives_the_labels_of_numpy(family, make, params):
    X = make(planted(family)[0])
    numpy, torch = (
        fit(X, family=family, n_init=3, device=device, **params) for device in (None, "cpu")
    )
    assert_same_fit(torch, numpy)
    np.testing.assert_array_equal(torch.predict(X), numpy.predict(X))
    assert_same_fit(pickle.loads(pickle.dumps(torch)), numpy)


@pytest.mark.parametrize("overlap", ["published", "calibrated"])
@pytest.mark.parametrize(
    "name", ["D3", *(pytest.param(n, marks=pytest.mark.slow) for n in ("D1", "D2", "D4"))]
)
def test_torch_gives_the_labels_of_numpy_on_simulated_sets(name, overlap):
    X = load_simulated(name, random_state=1, overlap=overlap).data
    assert_same_fit(fit(X, n_init=4, device="cpu"), fit(X, n_init=4))


def test_missing_devices_are_replaced_with_a_warning():
    X = planted("gaussian")[0]
    with pytest.warns(RuntimeWarning, match="computing with NumPy instead"):
        model = fit(X, n_init=3, device="cuda:99")
    assert_same_fit(model, fit(X, n_init=3))


def test_a_stopped_fit_goes_on_where_it_was_on_a_device(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    monkeypatch.setattr(checkpoint, "SHARE", np.inf)
    X = planted("gaussian")[0]

    def stop(message, done=0, total=0):
        if message == "candidates refined" and done == 1:
            raise KeyboardInterrupt

    kept = tmp_path / "kept"
    model = TransportCoclustering(n_init=3, device="cpu", random_state=0, checkpoint=kept)
    with pytest.raises(KeyboardInterrupt):
        clone(model).set_params(verbose=stop).fit(X)
    assert any(kept.iterdir())
    assert_same_fit(model.fit(X), fit(X, n_init=3))
