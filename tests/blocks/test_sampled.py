"""Matrices with very many points on one side are searched by a sample."""

import numpy as np
import pytest

from ccot import TransportCoclustering
from ccot.blocks import fit as sampled
from ccot.metrics import error_rate


@pytest.fixture
def few_are_many(monkeypatch):
    monkeypatch.setattr(sampled, "MANY_POINTS", 1000)
    monkeypatch.setattr(sampled, "SAMPLE", 300)


def lopsided(n_points=3000, n_values=6, level=False):
    rng = np.random.default_rng(0)
    truth = np.arange(n_points) % 3
    X = rng.normal(size=(n_points, n_values)) + 6 * rng.normal(size=(3, n_values))[truth]
    return X + (5 * rng.normal(size=(n_points, 1)) if level else 0), truth


@pytest.mark.parametrize("turn", [np.asarray, np.transpose], ids=["rows", "columns"])
def test_all_points_are_placed(few_are_many, turn):
    X, truth = lopsided()
    model = TransportCoclustering(random_state=0).fit(turn(X))
    labels = model.row_labels_ if turn is np.asarray else model.column_labels_
    assert error_rate(truth, labels) < 0.01
    np.testing.assert_array_equal(model.predict(turn(X)), model.row_labels_)
    cut = model.cut(2, 1) if turn is np.asarray else model.cut(1, 2)
    assert len(cut.row_labels) == turn(X).shape[0]
    assert model.block_means_.shape == (model.n_row_clusters_, model.n_column_clusters_)


def test_counts_are_placed_too(few_are_many):
    rng = np.random.default_rng(0)
    truth = np.arange(2000) % 2
    X = rng.poisson(np.array([[9, 9, 1, 1, 4], [1, 1, 9, 9, 4]])[truth]).astype(float)
    model = TransportCoclustering(family="poisson", random_state=0).fit(X)
    assert error_rate(truth, model.row_labels_) < 0.01


def test_others_are_searched_whole(few_are_many):
    settings = TransportCoclustering()._given(sampled.BlockSettings)
    assert sampled.is_lopsided(np.ones((2000, 5)), settings)
    assert not sampled.is_lopsided(np.ones((900, 5)), settings)
    assert not sampled.is_lopsided(np.ones((1100, 300)), settings)
    assert not sampled.is_lopsided(
        np.ones((2000, 5)), TransportCoclustering(balanced=True)._given(sampled.BlockSettings)
    )
