"""The scripts around the stored trials: parts, sweep, calibration, rerun."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import calibrate, paper, rerun
from ccot.experiments.protocol import (
    ALL_METHODS,
    D3_EQUAL,
    DATA_SETS,
    RIVALS,
    Task,
    at_sigma,
    load_matrix,
    make_estimator,
    run_task,
    sigma_of,
)
from ccot.experiments.published import TABLE2


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
    model = make_estimator(task, (2, 4))
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
    assert found == [{"method": "K-means", "rerun": 3, "same": 2}]
    assert len(rerun.choose(stored, 2, seed=0)) == 2
