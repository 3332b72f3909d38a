"""Fuzzing in turns, by processor time, with what earlier code had kept apart."""

import argparse
import json

import pytest

from fuzz import campaign
from fuzz.campaign import Campaign


@pytest.fixture
def run(tmp_path, monkeypatch):
    turns = []

    def turn(name, seconds, out):
        turns.append(name)
        why = "IndexError" if len(turns) == 1 else ""
        return {"executions": 10, "accepted": 1, "cpu_s": seconds, "slowest_s": 0.5, "why": why}

    def make(code, seconds=20):
        monkeypatch.setattr(campaign, "_turn", turn)
        monkeypatch.setattr(campaign, "digest", code if callable(code) else lambda name: code)
        turns.clear()
        options = argparse.Namespace(
            targets=["a", "b"], seconds=seconds, turn=10, out=tmp_path, summary=tmp_path / "s.json"
        )
        Campaign(options).work()
        return turns.copy(), json.loads(options.summary.read_text())["targets"]

    return make


def test_targets_take_turns_until_each_has_had_its_time(run):
    turns, targets = run("one")
    assert turns == ["a", "b", "a", "b"]
    assert {seen["cpu_s"] for seen in targets.values()} == {20}
    assert targets["a"]["findings"] == ["IndexError"]
    assert len(targets["a"]["runs"]) == 1


def test_a_campaign_goes_on_where_it_was(run):
    run("one")
    turns, targets = run("one", seconds=30)
    assert turns == ["a", "b"]
    assert targets["b"]["executions"] == 30


def test_time_counts_over_all_versions_of_the_code_and_is_shown_apart(run):
    run("one")
    _, targets = run("two", seconds=40)
    assert targets["a"]["cpu_s"] == 20
    assert targets["a"]["earlier"] == {"executions": 20, "cpu_s": 20, "findings": ["IndexError"]}
    assert campaign.in_all(targets["a"], "cpu_s") == 40
    assert len(targets["a"]["runs"]) == 1


def test_changed_code_gets_a_turn_in_any_case_and_first(run):
    run("one")
    turns, targets = run("two")
    assert turns == ["a", "b"]
    assert targets["a"]["earlier"]["cpu_s"] == 20
    assert run("two")[0] == []
    seen = {"a": "two", "b": "three"}
    turns, _ = run(seen.get, seconds=50)
    assert turns[0] == "b"


def test_what_was_wrong_is_the_last_thing_said():
    log = "#1 NEW\n === Uncaught Python exception: ===\nMemoryError: none\n\n"
    assert campaign._why(log) == "MemoryError: none"
    assert campaign._why("") != ""
