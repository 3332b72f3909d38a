"""The scripts around the stored trials: parts, sweep, calibration, rerun."""

import sys
from dataclasses import asdict, replace

import numpy as np
import pytest
import scipy.sparse as sp

from benchmarks import calibrate, movielens_settings, paper, rerun, times
from benchmarks.printed import PrintedVote, _mode
from benchmarks.readings import (
    ALL_MAKERS,
    ALL_METHODS,
    D3_EQUAL,
    at_sigma,
    load_matrix,
    run_task,
    sigma_of,
)
from ccot.datasets import load_simulated
from ccot.experiments import protocol
from ccot.experiments.protocol import DATA_SETS, RIVALS, Protocol, Task, make_estimator
from ccot.experiments.published import TABLE2
from ccot.experiments.store import TrialStore, load_trials, run_protocol, sort_trials


def test_parts_cover_what_the_page_shows():
    tasks = {p: [t for q in make() for t in q.tasks()] for p, make in paper.PARTS.items()}
    assert len(tasks["main"]) == 8000
    assert {task.data_set for task in tasks["equal"]} == {D3_EQUAL}
    assert {task.data_set for task in tasks["variants"]} == {*DATA_SETS, D3_EQUAL}
    for name in DATA_SETS:
        levels = {task.overlap for task in tasks["sweep"] if task.data_set == name}
        assert len(levels) == len(paper.LEVELS) >= 8
    assert {task.method for part in tasks.values() for task in part} == set(ALL_METHODS)


def test_equal_proportions_and_a_noise_of_its_own():
    equal = load_matrix(D3_EQUAL, "published", 0)
    assert np.ptp(equal.column_proportions) == 0
    assert equal.data.shape == (300, 200)
    assert load_matrix("D1", at_sigma(2.5), 0).sigma == 2.5
    assert sigma_of(at_sigma(0.0105)) == 0.0105
    assert sigma_of("published") is None


@pytest.mark.parametrize("method", ALL_METHODS)
def test_every_method_has_an_estimator_that_knows_its_options(method):
    task = Task("D3", "published", 0, method, 2 if "CCOT" not in method else None, None)
    model = make_estimator(task, (2, 4), ALL_MAKERS)
    model._validate_params() if hasattr(model, "_validate_params") else model


def test_calibration_finds_the_noise_at_which_errors_are_the_papers(a_trial):
    """Errors that grow with sigma, and are the paper's at 3 for all rivals but one."""
    trials = []
    for level in np.geomspace(0.01, 30, 12):
        for method in RIVALS:
            printed = TABLE2[method]["D2"].mean
            error = min(1.0, printed * (level / 3) * (20 if method == "NMF" else 1))
            overlap = at_sigma(level)
            trials.append(
                replace(a_trial, data_set="D2", method=method, overlap=overlap, error=error)
            )
    found = calibrate.calibrate(trials, "D2")
    assert found["sigma"] == pytest.approx(3, rel=0.02)
    assert found["reaches"]["DKM"] == pytest.approx(3, rel=0.02)
    assert found["reaches"]["NMF"] == pytest.approx(0.15, rel=0.1)
    assert found["median_ratio"] == pytest.approx(1, abs=0.02)


def test_an_error_that_is_not_reached():
    assert calibrate.reaches(np.array([0.1, 1.0]), np.array([0.0, 0.1]), 0.2) is None


def test_a_rerun_tells_trials_that_do_not_come_out_again():
    stored = [run_task(Task("D3", "published", seed, "K-means", 1, None)) for seed in range(3)]
    stored[1] = replace(stored[1], seconds=99.0, commit="other", versions="other")
    assert rerun.differing(stored, 1) == []
    changed = replace(stored[2], error=0.25)
    [(old, new)] = rerun.differing([*stored[:2], changed], 1)
    assert (old.error, new.error) == (0.25, 0.0)
    found = rerun.counted([*stored[:2], changed], [(old, new)])
    of_commit = {cell["commit"]: (cell["rerun"], cell["same"]) for cell in found}
    assert of_commit == {"other": (1, 1), stored[0].commit: (2, 1)}
    assert {cell["method"] for cell in found} == {"K-means"}


def test_every_commit_of_every_method_is_rerun(a_trial):
    tasks = Protocol(5, methods=("DKM", "NMF"), data_sets=("D1",)).tasks()
    trials = [replace(a_trial, **asdict(t), commit="ab"[t.seed == 4]) for t in tasks]
    chosen = rerun.choose(trials, 3, seed=0)
    groups = [(trial.method, trial.commit) for trial in chosen]
    assert sorted(groups) == sorted(
        [("DKM", "a"), ("NMF", "a")] * 3 + [("DKM", "b"), ("NMF", "b")] * 2
    )


def test_only_trials_of_the_named_part_and_methods_are_forgotten(tmp_path, a_trial, monkeypatch):
    def keep(folder, *tasks):
        with TrialStore(folder) as store:
            store.trials = {task: replace(a_trial, **asdict(task)) for task in tasks}
            store.checkpoint()
        return folder

    few = {"n_init": 1, "n_trials": 1}
    swept = [t for p in paper.protocols("sweep", ("NMF", "DKM"), **few) for t in p.tasks()]
    main = paper.protocols("main", ("NMF",), **few)[0].tasks()
    new = [task for task in swept if task.method == "NMF"][:2]
    target, source = keep(tmp_path / "target", *swept, *main), keep(tmp_path / "source", *new)
    asked = ["--parts", "sweep", "--methods", "NMF", "--seeds", "1", "--n-init", "1", "--forget"]
    where = ["--folder", str(target), "--add", str(source)]
    monkeypatch.setattr(sys, "argv", ["paper", *asked, *where])
    assert paper.main() == 0
    others = [task for task in swept if task.method == "DKM"]
    assert {trial.task for trial in load_trials(target)} == {*others, *main, *new}


def test_times_are_medians_of_every_method_and_set():
    few = Protocol(2, n_init=1, methods=("K-means", "DKM"), data_sets=("D3",))
    cells = times.timed(few)
    assert [(cell["set"], cell["method"]) for cell in cells] == [("D3", "K-means"), ("D3", "DKM")]
    assert all(cell["seconds"] > 0 for cell in cells)


def test_blocks_explain_what_is_between_them():
    labels = np.repeat([0, 1], 5), np.repeat([0, 1], 4)
    means = np.array([[1.0, 5.0], [4.0, 2.0]])[np.ix_(*labels)]
    ratings = sp.coo_array(means)
    assert movielens_settings.explained(ratings, *labels) == pytest.approx(1)
    one = [np.zeros_like(side) for side in labels]
    assert movielens_settings.explained(ratings, *one) == pytest.approx(0)
    # Rows alone: the means of the two row clusters are equal.
    assert movielens_settings.explained(ratings, labels[0], one[1]) == pytest.approx(0)


def test_other_readings_run_like_the_protocol_in_processes_of_their_own(tmp_path):
    """Methods, sets and noises that only the scripts know, found in other processes, too."""
    few = Protocol(
        n_trials=1,
        n_init=1,
        data_sets=("D3", D3_EQUAL),
        overlaps=(at_sigma(0.5),),
        methods=("K-means", "K-means, random starts"),
    )
    trials = run_protocol(few, tmp_path, n_jobs=2, run=run_task)
    assert [(t.data_set, t.method) for t in trials] == [(t.data_set, t.method) for t in few.tasks()]
    assert load_trials(tmp_path) == trials
    with pytest.raises(ValueError, match="overlap must be 'published' or 'calibrated'"):
        protocol.run_task(few.tasks()[0])


def test_trials_are_stored_in_one_order_whatever_their_names(a_trial):
    names = "K-means", "NMF", "CCOT, with replacement", "NMF, random starts"
    overlaps = "published", "calibrated", at_sigma(0.5)
    trials = [replace(a_trial, method=m, overlap=o) for o in overlaps for m in names]
    assert sort_trials(reversed(trials)) == trials


def test_the_printed_vote():
    matrix = load_simulated("D3", random_state=0).data
    model = PrintedVote(n_samplings=8, sampling="uniform", random_state=0).fit(matrix)
    assert (model.n_row_clusters_, model.n_column_clusters_) == (2, 4)


def test_draws_vote_by_step_number_without_matching():
    members = np.array([[0, 1, 2], [0, 1, 3], [0, 2, 3]])
    labels = np.array([[0, 1, 1], [1, 0, 0], [1, 0, 2]])
    # Row 1 and row 2 are tied: the smaller step wins, as with MATLAB's mode.
    assert _mode(members, labels, 5).tolist() == [1, 0, 0, 0, 0]
