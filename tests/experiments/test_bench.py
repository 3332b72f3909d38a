import importlib
import json
import sys
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from ccot.cli import app
from ccot.experiments.bench.cases import Case, Planted, column_cases, nonzero_cases, row_cases
from ccot.experiments.bench.measure import Limits, measure
from ccot.experiments.bench.rivals import Job, Rival, rivals
from ccot.experiments.bench.suite import Profile, profiles, run_suite
from ccot.experiments.bench.summary import Cell, fit_exponent, growth, summarise
from tests.conftest import PROJECT

LIMITS = Limits(30, 2)
SMALL = row_cases((40,), 20)[0]


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    path = tmp_path_factory.mktemp("bench") / "suite.json"
    outcome = CliRunner().invoke(app, ["bench", "--profile", "smoke", "--out", str(path)])
    assert outcome.exit_code == 0, outcome.output
    return path, outcome.output


def test_smoke_stores_every_fit(smoke):
    result = json.loads(smoke[0].read_text())
    assert result["complete"]
    assert result["profile"]["name"] == "smoke"
    assert {"processor", "cores", "load", "versions", "command"} <= set(result["facts"])
    assert [case["name"] for case in result["cases"]] == [
        case.name for case in profiles()["smoke"].cases
    ]
    assert [t["status"] for t in result["trials"]] == ["done"] * len(result["trials"])
    # A busy machine counts the processor's time in ticks, and a small fit may fall between two.
    assert sum(trial["processor_seconds"] for trial in result["trials"]) > 0
    for trial in result["trials"]:
        assert trial["seconds"] > 0
        assert trial["megabytes"] is None or trial["megabytes"] >= 0
    met = {trial["rival"] for trial in result["trials"]}
    assert met == {rival["name"] for rival in result["rivals"] if rival["version"]}


def test_smoke_knows_who_is_right(smoke):
    cells = {(cell.rival, cell.case): cell for cell in summarise(json.loads(smoke[0].read_text()))}
    for rival in ("CCOT", "CCOTGW", "TransportCoclustering", "SpectralCoclustering", "K-means"):
        assert cells[rival, "60 rows"].error == 0
        assert cells[rival, "60 rows"].numbers == ("3 x 3",)
    assert cells["SpectralCoclustering", "8000 entries"].error < 0.01
    assert cells["POT, plain loop", "60 rows"].error is None


def test_smoke_is_told_in_words(smoke):
    assert "rows: seconds; error" in smoke[1]
    assert "exponent of time" in smoke[1]


def test_the_page_is_rendered(smoke, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(PROJECT / "docs")
    page = importlib.import_module("suite")
    try:
        monkeypatch.setattr(page, "load", lambda name: json.loads(smoke[0].read_text()))
        made = {name: make() for name, make in page.TABLES.items() if name.startswith("suite")}
        slots = (PROJECT / "docs" / "benchmarks.md").read_text()
        for name, text in made.items():
            assert f"<!-- table: {name} -->" in slots
            rows = [line for line in text.splitlines() if line.startswith("|")]
            assert len({row.count(" | ") for row in rows}) == 1
        assert "CCOT, beside POT, plain loop" in made["suite_transport"]
        assert "exponent of time" in made["suite_rows"]
        for axis in page.GROWING:
            drawn = page.draw(axis, tmp_path).read_text()
            assert "CCOT" in drawn
            assert "SpectralCoclustering" in drawn
    finally:
        for name in ("suite", "ratings"):
            sys.modules.pop(name, None)


def answers(job: Job):
    return np.zeros(len(job.matrix), dtype=int), np.zeros(job.matrix.shape[1], dtype=int)


def takes_memory(job: Job):
    np.ones(2**23).sum()
    return answers(job)


def takes_too_much(job: Job):
    np.ones(2**34 if len(job.matrix) == 40 else 1)
    return answers(job)


def takes_forever(job: Job):
    while len(job.matrix) == 40:
        pass
    return answers(job)


def breaks(job: Job):
    if len(job.matrix) == 40:
        raise ValueError("too  odd\nfor me")
    return answers(job)


def dies(job: Job):
    if len(job.matrix) == 40:
        import os

        os._exit(3)
    return answers(job)


def test_memory_is_that_of_the_fit_alone():
    # The warm-up took as much, and gave it back.
    seen = measure(SMALL, Rival("greedy", takes_memory), 0, LIMITS)
    assert seen["status"] == "done"
    assert seen["megabytes"] == pytest.approx(64, abs=2)
    assert measure(SMALL, Rival("modest", answers), 0, LIMITS)["megabytes"] < 5


@pytest.mark.parametrize(
    ("fit", "status"),
    [
        (breaks, "failed: too odd for me"),
        (takes_too_much, "asked for more than 2 GB"),
        (dies, "ended with exit code 3"),
        (takes_forever, "stopped after 1 s"),
    ],
)
def test_what_goes_wrong_is_said(fit, status):
    limits = Limits(1, 2) if fit is takes_forever else LIMITS
    assert measure(SMALL, Rival("bad", fit), 0, limits) == {"status": status}


def test_who_failed_is_spared_larger_cases_only(tmp_path, monkeypatch):
    asked = []

    def pretend(case, rival, seed, limits):
        asked.append((case.name, rival.name, seed))
        if (case.name, rival.name) == ("50 rows", "NMF"):
            return {"status": "stopped after 1 s"}
        return {"status": "done", "processor_seconds": 1.0, "megabytes": 1.0, "error": 0.0,
                "row_clusters": 3, "column_clusters": 3}  # fmt: skip

    monkeypatch.setattr("ccot.experiments.bench.suite.measure", pretend)
    cases = (*row_cases((40, 50, 60), 20), *column_cases((20,), 30))
    small = Profile("small", cases, paper_seeds=1, repeats=2, limits=LIMITS)
    path = tmp_path / "suite.json"
    result = run_suite(small, path, only=["K-means", "NMF"])
    assert [rival for case, rival, _ in asked if case == "40 rows"] == [
        "K-means", "NMF", "NMF", "K-means"
    ]  # fmt: skip
    assert ("60 rows", "NMF", 0) not in asked
    assert ("20 columns", "NMF", 0) in asked
    statuses = {
        (trial["case"], trial["status"]) for trial in result["trials"] if trial["rival"] == "NMF"
    }
    assert ("60 rows", "not asked: stopped after 1 s at 50 rows") in statuses
    assert json.loads(path.read_text()) == json.loads(json.dumps(result))


def test_an_interrupted_run_keeps_what_it_has(tmp_path, monkeypatch):
    def pretend(case, rival, seed, limits):
        if case.name == "50 rows":
            raise KeyboardInterrupt
        return {"status": "done"}

    monkeypatch.setattr("ccot.experiments.bench.suite.measure", pretend)
    small = Profile("small", tuple(row_cases((40, 50), 20)), 1, 1, LIMITS)
    with pytest.raises(KeyboardInterrupt):
        run_suite(small, tmp_path / "suite.json")
    kept = json.loads((tmp_path / "suite.json").read_text())
    assert not kept["complete"]
    assert {trial["case"] for trial in kept["trials"]} == {"40 rows"}


def test_unknown_rivals_are_refused(tmp_path):
    outcome = CliRunner().invoke(app, ["bench", "--rival", "nobody", "--out", str(tmp_path / "a")])
    assert outcome.exit_code == 2
    assert "unknown method nobody; choose from CCOT" in outcome.stderr


def test_absent_packages_are_left_out(tmp_path):
    absent = {"here": Rival("here", answers), "gone": Rival("gone", answers, package="no-such")}
    profile = Profile("small", (SMALL,), 1, 1, LIMITS, lambda: absent)
    result = run_suite(profile, tmp_path / "suite.json")
    assert {trial["rival"] for trial in result["trials"]} == {"here"}
    assert [rival["version"] is None for rival in result["rivals"]] == [False, True]


@pytest.mark.parametrize("case", [SMALL, *nonzero_cases((4000,), 100)], ids=lambda case: case.name)
def test_cases_are_what_they_say(case: Case):
    planted, again = case.make(3), case.make(3)
    assert isinstance(planted, Planted)
    assert planted.matrix.shape == case.shape
    assert abs(planted.matrix - again.matrix).max() == 0
    assert planted.numbers == tuple(
        len(np.unique(labels)) for labels in (planted.row_labels, planted.column_labels)
    )


def test_counts_are_those_asked_for():
    planted = nonzero_cases((4000,), 100)[0].make(0)
    assert planted.matrix.sum() == 4000
    assert (planted.matrix.sum(axis=1) == 20).all()
    own = planted.matrix.toarray()[planted.row_labels[:, None] == planted.column_labels]
    assert own.sum() / 4000 == pytest.approx(0.775, abs=0.02)


def test_profiles_name_their_cases_apart():
    for profile in profiles().values():
        names = [case.name for case in profile.cases]
        assert len(set(names)) == len(names)
        for case in profile.cases:
            assert set(case.only) <= set(rivals())


def test_exponents():
    sizes = np.array([1, 2, 4, 8, 16, 32])
    assert fit_exponent(sizes, 5.0 + sizes**2) == pytest.approx(1.95, abs=0.05)
    cells = [
        Cell("", "rows", "ours", int(size), "done", 0.1 * size, 0.5, None, ()) for size in sizes
    ]
    cells.append(replace(cells[0], size=64, seconds=None, status="stopped"))
    seen = growth(cells, "ours", "rows", "seconds")
    assert seen.exponent == pytest.approx(1.0)
    assert seen.sizes == tuple(sizes)
    assert growth(cells, "ours", "rows", "megabytes").exponent is None
