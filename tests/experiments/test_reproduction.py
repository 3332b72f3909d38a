"""The page that shows the stored run says what the stored trials say."""

import importlib
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from ccot.experiments.protocol import Protocol
from ccot.experiments.store import TrialStore

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def docs():
    sys.path.insert(0, str(DOCS))
    yield importlib.import_module("reproduction"), importlib.import_module("render")
    sys.path.remove(str(DOCS))


@pytest.fixture
def made_up(docs, tmp_path, monkeypatch, a_trial):
    """A store with two complete seeds at 5 starts, and one at 50."""
    with TrialStore(tmp_path) as store:
        for protocol in (Protocol(2, n_init=5), Protocol(1, n_init=50)):
            for task in protocol.tasks():
                store.add(replace(a_trial, **asdict(task)))
        store.checkpoint()
    monkeypatch.setattr(docs[0], "STORED", tmp_path)
    return docs[0]


def test_the_page_is_up_to_date(docs):
    page = (DOCS / "reproduction.md").read_text()
    assert docs[1].render(page) == page


def test_the_largest_complete_comparison_is_shown(made_up):
    protocol, trials = made_up.chosen()
    assert (protocol.n_trials, protocol.n_init) == (2, 5)
    assert {trial.task for trial in trials} == set(protocol.tasks())


def test_every_part_can_be_made_from_any_complete_store(made_up):
    for name, make in made_up.TABLES.items():
        if "rivals" not in name:
            assert len(make()) > 100, name


def test_verdicts_follow_the_trials(made_up, monkeypatch):
    assert made_up.k_means_is_perfect()[2] == "holds"
    protocol, trials = made_up.chosen()
    worse = [replace(t, error=0.2) if t.method == "K-means" else t for t in trials]
    monkeypatch.setattr(made_up, "chosen", lambda: (protocol, worse))
    assert made_up.k_means_is_perfect()[2] == "does not hold"
