"""Fits that are stopped and go on from their checkpoints come to the same model, byte for byte."""

import os
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from ccot import CCOT, CCOTGW, TransportCoclustering
from ccot.blocks import streaming as stream
from ccot.datasets import load_simulated, make_latent_blocks
from ccot.persistence import checkpoint
from ccot.persistence.checkpoint import CheckpointFolder
from ccot.scalings import draws, sampling
from ccot.sources import FunctionSource


class Stopped(BaseException):
    """The process is gone."""


@pytest.fixture(autouse=True)
def every_piece_is_written(monkeypatch):
    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # no power will fail here
    monkeypatch.setattr(checkpoint, "SHARE", np.inf)


@pytest.fixture
def all_small(monkeypatch):
    """Let few rows vote or be searched, and few draws be a batch."""
    monkeypatch.setattr(draws, "_CHUNKS_A_TASK", 1)
    monkeypatch.setattr(sampling, "POOL_ROWS", 120)
    monkeypatch.setattr(stream, "POOL_ROWS", 120)
    monkeypatch.setattr(stream, "POOL_ENTRIES", 2)


@pytest.fixture
def stop_after(monkeypatch):
    """Stop fits after every so many finished pieces, and count how often."""

    class Stopper:
        n_finished = n_stops = 0
        every = 10**9

    keep = CheckpointFolder._keep

    def keep_and_stop(self, *arguments):
        keep(self, *arguments)
        Stopper.n_finished += 1
        if Stopper.n_finished % Stopper.every == 0:
            Stopper.n_stops += 1
            raise Stopped

    monkeypatch.setattr(CheckpointFolder, "_keep", keep_and_stop)
    # As after kill -9, nothing is tidied up.
    close = CheckpointFolder._close
    monkeypatch.setattr(
        CheckpointFolder,
        "_close",
        lambda self, finished: close(self, finished) if finished else None,
    )
    return Stopper


def crisp(n_rows=60, n_columns=40):
    return make_latent_blocks([[4, 0, 2], [1, 5, 1]], n_rows, n_columns, sigma=0.05, random_state=0)


def noisy():
    return load_simulated("D3", random_state=0, overlap="calibrated").data[:90, :70]


def counts():
    rng = np.random.default_rng(0)
    means = np.array([[4.0, 0.5, 2.0], [1.0, 5.0, 0.2]]).repeat(40, axis=0).repeat(20, axis=1)
    return sp.csr_array(rng.poisson(means).astype(float))


def with_holes():
    matrix = noisy()
    return np.where(np.random.default_rng(1).random(matrix.shape) < 0.1, np.nan, matrix)


def scales():
    """Structure at every scale: numbers are where the merge costs jump."""
    rng = np.random.default_rng(0)
    return np.outer(np.linspace(0, 9, 80), np.linspace(0, 5, 60)) + rng.normal(size=(80, 60))


def streamed():
    rows = crisp(700, 30).data

    def make(first, last):
        return rows[first:last]

    return FunctionSource(make, rows.shape, part_rows=100)


CASES = {
    "CCOT": (CCOT(), lambda: crisp().data),
    "CCOT, wide": (CCOT(), lambda: crisp().data.T.copy()),
    "CCOT, many draws": (CCOT(n_samplings=300), lambda: crisp(110, 100).data),
    "CCOT, cv": (CCOT(reg="cv"), lambda: crisp(30, 20).data),
    "CCOT, sparse": (CCOT(), counts),
    "CCOT, row by row": (CCOT(n_samplings=20), streamed),
    "CCOTGW": (CCOTGW(), lambda: crisp(30, 24).data),
    "CCOTGW, landmarks": (CCOTGW(n_support=10, kernel_rank=15), lambda: crisp().data),
    "CCOTGW, cv": (CCOTGW(reg="cv", max_updates=1, max_gromov_iter=1), lambda: crisp(12, 10).data),
    "TransportCoclustering": (TransportCoclustering(n_init=3), noisy),
    "TransportCoclustering, counts": (TransportCoclustering(n_init=2), counts),
    "TransportCoclustering, holes": (TransportCoclustering(n_init=2), with_holes),
    "TransportCoclustering, jumps": (TransportCoclustering(n_init=2), scales),
    "CCOTGW, PyTorch": (CCOTGW(device="cpu"), lambda: crisp(30, 24).data),
    "TransportCoclustering, PyTorch": (TransportCoclustering(n_init=2, device="cpu"), noisy),
    "TransportCoclustering, row by row": (TransportCoclustering(n_init=2), streamed),
}


def fit(case, folder=None, random_state=0):
    model, make = CASES[case]
    if "PyTorch" in case:
        pytest.importorskip("torch")
    model = clone(model).set_params(random_state=random_state, checkpoint=folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(make())


SLOW = ("CCOTGW, PyTorch", "CCOTGW, cv", "TransportCoclustering, holes")


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[pytest.mark.slow] * (case in SLOW)) for case in CASES]
)
def test_the_model_is_the_same_byte_for_byte(case, tmp_path, stop_after, all_small):
    expected = fit(case).save(tmp_path / "undisturbed").read_bytes()
    whole = fit(case, tmp_path / "whole")
    assert whole.save(tmp_path / "kept").read_bytes() == expected
    stop_after.every = max(1, stop_after.n_finished // 3)
    stop_after.n_finished = 0
    for _ in range(20):
        try:
            again = fit(case, tmp_path / "stopped")
            break
        except Stopped:
            continue
    assert stop_after.n_stops > 0
    assert again.save(tmp_path / "again").read_bytes() == expected
    # Once finished it is there at once, with all that a fit leaves.
    stop_after.n_finished = 0
    finished = fit(case, tmp_path / "stopped")
    assert stop_after.n_finished == 0
    assert finished.save(tmp_path / "finished").read_bytes() == expected
    assert vars(finished).keys() == vars(whole).keys()


def test_similarities_go_on_too(tmp_path, stop_after):
    matrix = crisp().data
    kernels = np.exp(-np.abs(matrix @ matrix.T) / 100), np.exp(-np.abs(matrix.T @ matrix) / 100)
    expected = CCOTGW().fit_kernels(*kernels).save(tmp_path / "undisturbed").read_bytes()
    stop_after.every = 5
    model = CCOTGW(checkpoint=tmp_path / "kept", random_state=0)
    with pytest.raises(Stopped):
        model.fit_kernels(*kernels)
    stop_after.every = 10**9
    again = clone(model).fit_kernels(*kernels).set_params(random_state=None)
    assert again.save(tmp_path / "again").read_bytes() == expected


def stopped(model, X, stop_after):
    stop_after.every, stop_after.n_finished = 1, 0
    with pytest.raises(Stopped):
        clone(model).fit(X)
    stop_after.every = 10**9


def test_another_fit_is_refused(tmp_path, stop_after):
    X = noisy()
    model = TransportCoclustering(n_init=2, random_state=0, checkpoint=tmp_path)
    stopped(model, X, stop_after)
    changed = X.copy()
    changed[3, 4] += 1e-9
    for other, data, difference in (
        (clone(model).set_params(random_state=1), X, "random_state=0 instead of 1"),
        (clone(model).set_params(criterion="icl"), X, "criterion=auto instead of icl"),
        (clone(model), changed, "other data"),
        (clone(model), sp.csr_array(X), "other data"),
        (CCOT(random_state=0, checkpoint=tmp_path), X, "estimator=TransportCoclustering"),
    ):
        with pytest.raises(ValueError, match=difference):
            other.fit(data)
    expected = clone(model).set_params(checkpoint=None).fit(X)
    again = clone(model).set_params(verbose=1).fit(X)
    np.testing.assert_array_equal(again.row_labels_, expected.row_labels_)


def test_other_versions_are_other_fits(tmp_path, stop_after, monkeypatch):
    model = CCOT(random_state=0, checkpoint=tmp_path)
    stopped(model, crisp().data, stop_after)
    monkeypatch.setattr("ccot.persistence.checkpoint.__version__", "99")
    with pytest.raises(ValueError, match=r"ccot=.* instead of 99"):
        model.fit(crisp().data)


@pytest.mark.parametrize("make_seed", [lambda: None, lambda: np.random.default_rng(3)])
def test_seeds_of_all_kinds(make_seed, tmp_path, stop_after):
    X = noisy()
    models = []
    for folder in ("one", "other"):
        model = TransportCoclustering(
            n_init=2, random_state=make_seed(), checkpoint=tmp_path / folder
        )
        if folder == "one":
            stopped(model, X, stop_after)
            header = (tmp_path / "one" / "checkpoint.json").read_text()
            model.set_params(random_state=make_seed())
            models.append(model.fit(X))
            assert (
                header.replace("false", "true")
                == (tmp_path / "one" / "checkpoint.json").read_text()
            )
        else:
            models.append(model.fit(X))
    if make_seed() is not None:
        np.testing.assert_array_equal(models[0].row_confidence_, models[1].row_confidence_)


def test_more_workers_go_on_where_fewer_were(tmp_path, stop_after, all_small):
    source = streamed()
    model = CCOT(n_samplings=40, random_state=0)
    expected = clone(model).fit(source)
    kept = clone(model).set_params(checkpoint=tmp_path)
    stop_after.every = 2
    with pytest.raises(Stopped):
        kept.fit(source)
    stop_after.every = 10**9
    again = clone(kept).set_params(n_jobs=2).fit(source)
    assert (
        again.set_params(n_jobs=None).save(tmp_path / "a").read_bytes()
        == expected.save(tmp_path / "b").read_bytes()
    )


def test_a_file_that_was_written_again_is_other_data(tmp_path, stop_after, all_small):
    path = tmp_path / "rows.npy"
    rows = crisp(700, 30).data
    np.save(path, rows)
    model = CCOT(n_samplings=20, random_state=0, checkpoint=tmp_path / "kept")
    stopped(model, path, stop_after)
    rows[350] += 1.0
    np.save(path, rows)
    with pytest.raises(ValueError, match="other data"):
        model.fit(path)


def test_code_is_not_kept(tmp_path):
    model = CCOTGW(kernel=lambda a, b: float(a @ b), checkpoint=tmp_path)
    with pytest.raises(ValueError, match="kernel is a function"):
        model.fit(crisp().data)


def test_the_path_is_not_part_of_the_model(tmp_path):
    model = CCOT(random_state=0, checkpoint=tmp_path / "kept").fit(crisp().data)
    plain = CCOT(random_state=0).fit(crisp().data)
    assert model.save(tmp_path / "a").read_bytes() == plain.save(tmp_path / "b").read_bytes()
