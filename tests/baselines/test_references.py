"""Figures that the literature, or a start from the truth, lets one expect."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import normalized_mutual_info_score

from ccot.baselines import (
    DoubleKMeans,
    GaussianLatentBlockModel,
    InformationTheoreticCoclustering,
    ResidualBayesianCoclustering,
)
from ccot.baselines.base import run_start
from ccot.datasets import load_simulated
from ccot.metrics import coclustering_error

SETS = ("D1", "D2", "D3", "D4")
# In nats, of some 1e5: both runs stop where the bound changes by 1e-8 of its size.
SLACK = 0.05


def test_information_theoretic_coclustering_of_classic3(data_home):
    stored = np.load(data_home / "text" / "classic3.npz", allow_pickle=False)
    parts = stored["data"].astype(float), stored["indices"], stored["indptr"]
    counts = sp.csr_matrix(parts, shape=tuple(stored["shape"]))
    # Twenty clusters of words: topics have shades, and documents only three sources.
    model = InformationTheoreticCoclustering(3, 20, n_init=10, random_state=0).fit(counts)
    assert normalized_mutual_info_score(stored["row_labels"], model.row_labels_) >= 0.93


def reaches_the_truth(name, seed, n_init):
    """Whether random starts end at least as high as a start from the true partitions."""
    blocks = load_simulated(name, random_state=seed, overlap="calibrated")
    model = GaussianLatentBlockModel(*blocks.block_means.shape, n_init=n_init, random_state=seed)
    method = model._method(blocks.data)
    truth = method.start_from(blocks.row_labels, blocks.column_labels)
    reference = run_start(method, truth, model.max_iter, model.tol)
    return model.fit(blocks.data).criterion_ >= reference.criterion - SLACK


def test_block_em_reaches_the_likelihood_of_the_truth():
    runs = [
        reaches_the_truth(name, seed, 10) for name in ("D1", "D2", "D3", "D4") for seed in (0, 1)
    ]
    assert all(runs)


@pytest.mark.slow
def test_block_em_reaches_the_likelihood_of_the_truth_in_95_of_100_sets():
    runs = [reaches_the_truth(name, seed, 10) for name in SETS for seed in range(100, 125)]
    assert sum(runs) >= 95


@pytest.fixture(scope="module")
def ratings(data_home):
    """MovieLens-100K: users, films, ratings, and a mask of one fifth held out."""
    users, films, values = np.loadtxt(data_home / "ml-100k" / "u.data", dtype=int)[:, :3].T
    held_out = np.random.default_rng(0).random(len(values)) < 0.2
    return users - 1, films - 1, values.astype(float), held_out


@pytest.mark.slow
@pytest.mark.parametrize("numbers", [(3, 3), (9, 15)])
def test_residual_bayesian_coclustering_predicts_ratings(ratings, numbers):
    users, films, values, held_out = ratings
    matrix = np.full((users.max() + 1, films.max() + 1), np.nan)
    matrix[users[~held_out], films[~held_out]] = values[~held_out]
    model = ResidualBayesianCoclustering(*numbers, n_init=2, random_state=0).fit(matrix)
    errors = model.predict_entries(users[held_out], films[held_out]) - values[held_out]
    assert np.sqrt(np.square(errors).mean()) <= 0.96
    assert (np.diff(model.criterion_path_) >= -1e-11 * abs(model.criterion_)).all()


def test_missing_entries_are_predicted():
    blocks = load_simulated("D3", random_state=0, sigma=0.5)
    missing = np.random.default_rng(0).random(blocks.data.shape) < 0.5
    X = np.where(missing, np.nan, blocks.data)
    model = ResidualBayesianCoclustering(2, 4, n_init=5, random_state=0).fit(X)
    errors = model.predict_entries(*np.nonzero(missing)) - blocks.data[missing]
    assert np.sqrt(np.square(errors).mean()) <= 0.55


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize(
    "rival", [DoubleKMeans, GaussianLatentBlockModel, ResidualBayesianCoclustering]
)
def test_published_sets_are_recovered(rival, name):
    blocks = load_simulated(name, random_state=0)
    model = rival(*blocks.block_means.shape, n_init=5, random_state=0).fit(blocks.data)
    found = model.row_labels_, model.column_labels_
    assert coclustering_error(blocks.row_labels, blocks.column_labels, *found) == 0
