"""Models, pickles and modes of files: what an attacker would try."""

import os
import pickle
import threading
import time
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from ccot import CCOT, TransportCoclustering, load_model
from ccot.baselines import DoubleKMeans
from ccot.datasets import load_simulated
from ccot.estimators.models import save_model
from ccot.io import ModelFileError
from ccot.persistence import pickles
from ccot.persistence.atomic import write_atomically
from ccot.persistence.model_file import read_values, write_values
from ccot.persistence.registry import stored_types
from ccot.recommend import BlockRecommender, load_recommender
from tests.conftest import needs_unix

MATRIX = load_simulated("D3", random_state=0).data


@pytest.fixture(scope="module")
def models():
    return {
        "transport": TransportCoclustering(random_state=0).fit(MATRIX),
        "ccot": CCOT(2, 2, n_samplings=2, random_state=0).fit(MATRIX),
        "baseline": DoubleKMeans(2, 2, random_state=0).fit(MATRIX),
    }


def changed(model, path, fitted=None, given=None):
    """Write a model whose fields are others than those that were fitted."""
    values = read_values(save_model(model, path), stored_types())
    values["fitted"] |= fitted or {}
    values["given"] |= given or {}
    write_values(path, values, stored_types(), "0")
    return path


def inner(model, **parts):
    row = replace(model._coclustering.row, **parts)
    return {"_coclustering": replace(model._coclustering, row=row)}


WRONG = {
    "labels too large": lambda m: {"row_labels_": m.row_labels_ + 7000},
    "labels below zero": lambda m: {"row_labels_": m.row_labels_ - 1},
    "labels that are no numbers": lambda m: {"column_labels_": m.column_labels_.astype(str)},
    "labels without a sign": lambda m: {"row_labels_": m.row_labels_.astype(np.uint64)},
    "labels that are a table": lambda m: {"column_labels_": m.column_labels_[:, None]},
    "labels that are none": lambda m: {"row_labels_": None},
    "no labels": lambda m: {"row_labels_": np.empty(0, np.int64)},
    "more clusters than rows": lambda m: {"n_row_clusters_": 10**9},
    "clusters that are a text": lambda m: {"n_row_clusters_": "2"},
    "another number of columns": lambda m: {"n_features_in_": 3},
    "names of other columns": lambda m: {"feature_names_in_": np.array(["a"], dtype=object)},
    "names that are numbers": lambda m: {"row_names_in_": np.arange(len(m.row_labels_))},
    "means of other blocks": lambda m: {"block_means_": np.ones((9, 9))},
    "means that are none": lambda m: {"block_means_": "a"},
}
WRONG_INSIDE = {
    "labels of another matrix": lambda m: {"row_labels_": m.row_labels_[:-1]},
    "confidence": lambda m: {"row_confidence_": np.ones(3)},
    "labels inside": lambda m: inner(m, labels=m.row_labels_ + 7000),
    "clusters inside": lambda m: inner(m, n_clusters=2**40),
    "width": lambda m: inner(m, placement=replace(m._coclustering.row.placement, width=10**12)),
}
WRONG_TRANSPORT = {
    "hierarchy of more than the points": lambda m: {
        "hierarchy_": replace(m.hierarchy_, shape=(10**9, 10**9))
    },
    "merges of clusters that are not there": lambda m: {
        "hierarchy_": replace(m.hierarchy_, merges=(replace(m.hierarchy_.merges[0], first=10**6),))
    },
    "merges of a cluster that is gone": lambda m: {
        "hierarchy_": replace(m.hierarchy_, merges=(*m.hierarchy_.merges[:1],) * 2)
    },
    "finest clusters that are not there": lambda m: {
        "_coclustering": replace(
            m._coclustering,
            finest=replace(
                m._coclustering.finest,
                labels=(m.row_labels_ + 7000, m._coclustering.finest.labels[1]),
            ),
        )
    },
    "tables of other blocks": lambda m: inner(
        m, placement=replace(m._coclustering.row.placement, natural=np.ones((1, 1)))
    ),
}
CASES = [
    *((kind, what) for kind in ("transport", "ccot", "baseline") for what in WRONG),
    *((kind, what) for kind in ("transport", "ccot") for what in WRONG_INSIDE),
    *(("transport", what) for what in WRONG_TRANSPORT),
]


@pytest.mark.parametrize(("kind", "what"), CASES)
def test_fields_that_contradict_each_other(models, tmp_path, kind, what):
    wrong = (WRONG | WRONG_INSIDE | WRONG_TRANSPORT)[what](models[kind])
    path = changed(models[kind], tmp_path / "a.ccot", wrong)
    tracemalloc.start()
    with pytest.raises(ModelFileError, match=r"a\.ccot"):
        load_model(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 << 20


@pytest.mark.parametrize("kind", ["transport", "ccot", "baseline"])
def test_parameters_that_nobody_may_give(models, tmp_path, kind):
    path = changed(models[kind], tmp_path / "a.ccot", given={"n_row_clusters": -3})
    with pytest.raises(ModelFileError, match="n_row_clusters"):
        load_model(path)


def test_a_loaded_model_writes_nothing(models, tmp_path):
    given = {"checkpoint": str(tmp_path / "elsewhere"), "verbose": 2}
    loaded = load_model(changed(models["transport"], tmp_path / "a.ccot", given=given))
    assert loaded.checkpoint is None
    assert loaded.verbose == 0


def recommender(tmp_path, **parts):
    ratings = np.array([[5, 1], [1, 5]])[np.arange(40) % 2][:, np.arange(20) % 2]
    path = BlockRecommender(random_state=0).fit(ratings).save(tmp_path / "a.ccot")
    write_values(path, read_values(path, {}) | parts, {}, "0")
    return path


def test_recommender_of_other_sizes(tmp_path):
    for parts in (
        {"user_names": tuple("ab")},
        {"ratings": sp.csr_array((np.ones(1), ([0], [0])), shape=(40, 10**12))},
        {"given": {"like": "a"}},
        {"given": {"nothing": 1}},
        {"coclustering": np.zeros(3)},
    ):
        with pytest.raises(ModelFileError):
            load_recommender(recommender(tmp_path, **parts))


def test_recommender_of_very_many_clusters(tmp_path):
    n = 7000
    model = DoubleKMeans(2, 2).fit(MATRIX)
    labels = np.arange(n, dtype=np.int16)
    for name, value in {
        "row_labels_": labels, "column_labels_": labels, "n_row_clusters_": n,
        "n_column_clusters_": n, "n_features_in_": n, "block_means_": None,
    }.items():  # fmt: skip
        setattr(model, name, value)
    inside = np.frombuffer(save_model(model, tmp_path / "b.ccot").read_bytes(), np.uint8)
    names = tuple(map(str, range(n)))
    ratings = sp.csr_array((np.ones(1), ([0], [0])), shape=(n, n))
    path = recommender(tmp_path, coclustering=inside, ratings=ratings, user_names=names,
                       item_names=names)  # fmt: skip
    tracemalloc.start()
    with pytest.raises(ModelFileError):
        load_recommender(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 << 20


def test_many_names_that_are_the_same(tmp_path):
    n = 40_000
    names = [*map(str, range(n - 1)), "0"]
    began = time.process_time()
    with pytest.raises(ValueError, match="two items are named '0'"):
        BlockRecommender().fit(sp.csr_array((1, n)) + sp.eye_array(1, n, format="csr"),
                               item_names=names)  # fmt: skip
    assert time.process_time() - began < 2


# Modes ------------------------------------------------------------------------------------------


def mode(path):
    return path.stat().st_mode & 0o777


@pytest.fixture
def umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


@needs_unix
def test_modes_are_kept_if_they_are_stricter(tmp_path, umask):
    path = tmp_path / "a"
    for before, after in ((None, 0o644), (0o600, 0o600), (0o640, 0o640), (0o666, 0o644)):
        if before is not None:
            path.chmod(before)
        with write_atomically(path, "w") as file:
            file.write("new")
        assert mode(path) == after
    assert mode(recommender(tmp_path)) == 0o600


@needs_unix
def test_the_umask_is_never_changed(tmp_path, umask, monkeypatch):
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("the umask is changed"))
    threads = [threading.Thread(target=lambda k=k: write(tmp_path / str(k))) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {mode(path) for path in tmp_path.iterdir()} == {0o644}


def write(path):
    with write_atomically(path, "w") as file:
        file.write("new")


# Pickles ----------------------------------------------------------------------------------------


def test_pickles_of_another_version_are_refused(models, monkeypatch):
    ratings = BlockRecommender(random_state=0).fit(np.tile([[5, 1], [1, 5]], (9, 9)))
    for model in (*models.values(), ratings):
        stored = pickle.dumps(model)
        again = pickle.loads(stored)
        assert vars(again).keys() == vars(model).keys()
        with monkeypatch.context() as patch:
            patch.setattr(pickles, "__version__", "99.0")
            with pytest.raises(pickle.UnpicklingError, match=r"pickled by ccot .* call save"):
                pickle.loads(stored)


def test_a_file_is_written_as_a_whole(tmp_path):
    with write_atomically(tmp_path / "a.txt", "w") as file:
        file.write("all or nothing")
        assert not (tmp_path / "a.txt").exists()
    assert (tmp_path / "a.txt").read_text() == "all or nothing"
