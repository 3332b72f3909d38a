from dataclasses import replace

import numpy as np
import pytest

from ccot import CCOTGW
from ccot.datasets import load_simulated
from ccot.experiments.protocol import (
    DATA_SETS,
    METHODS,
    OVERLAPS,
    Protocol,
    Task,
    _in_order,
    base_of,
    make_estimator,
    run_task,
)


def test_the_defaults_are_the_papers_protocol():
    tasks = Protocol().tasks()
    assert len(set(tasks)) == len(tasks) == 100 * len(DATA_SETS) * len(OVERLAPS) * len(METHODS)
    assert {task.n_init for task in tasks if task.method == "GLBM"} == {50}
    draws = {task.data_set: task.n_samplings for task in tasks if task.method == "CCOT"}
    assert draws == {"D1": 1000, "D2": 1000, "D3": 1000, "D4": 1}
    fourth = Protocol(n_trials=1, methods=("CCOT",)).tasks()[3]
    assert fourth == Task("D2", "calibrated", 0, "CCOT", None, 1000)
    assert base_of("CCOT, authors' detector") == "CCOT"


def test_a_run_cut_short_has_seen_every_set_and_method():
    tasks = Protocol(seed=7).tasks()[: len(DATA_SETS) * len(OVERLAPS) * len(METHODS)]
    assert {task.seed for task in tasks} == {7}
    assert {task.data_set for task in tasks} == set(DATA_SETS)
    assert {task.method for task in tasks} == set(METHODS)


@pytest.mark.parametrize("method", METHODS)
def test_the_same_task_gives_the_same_trial(method):
    n_init = 1 if method in METHODS[:7] else None
    task = Task("D3", "calibrated", 3, method, n_init, 3 if method == "CCOT" else None)
    one, other = run_task(task), run_task(task)
    assert replace(one, seconds=0.0) == replace(other, seconds=0.0)
    assert one.task == task
    assert one.error == pytest.approx(
        one.row_error + one.column_error - one.row_error * one.column_error
    )


def test_few_draws_find_the_blocks_of_d3():
    trial = run_task(Task("D3", "published", 0, "CCOT", None, 8))
    assert (trial.row_clusters, trial.column_clusters, trial.error) == (2, 4, 0.0)


def test_only_matrices_with_negative_entries_are_shifted_and_only_where_needed():
    def shifted(method, overlap):
        return run_task(Task("D3", overlap, 0, method, 1, None)).shifted

    assert shifted("ITCC", "calibrated")
    assert not shifted("ITCC", "published")
    assert not shifted("K-means", "calibrated")


def test_a_rival_that_leaves_clusters_empty_has_not_found_the_numbers():
    trial = run_task(Task("D4", "published", 0, "NMF", 5, None))
    assert (trial.row_clusters, trial.column_clusters) != (5, 4)
    assert not trial.numbers_right


@pytest.mark.parametrize("overlap", OVERLAPS)
def test_the_authors_numbers_are_those_of_their_detector(overlap):
    trial = run_task(Task("D3", overlap, 1, "CCOT-GW", None, None))
    matrix = load_simulated("D3", random_state=1, overlap=overlap).data
    model = CCOTGW(detector="authors").fit(matrix)
    found = trial.authors_row_clusters, trial.authors_column_clusters
    assert found == (model.n_row_clusters_, model.n_column_clusters_)


def test_clusters_in_order_do_not_mix_along_the_scalings():
    labels = np.array([1, 1, 0, 0, 2])
    assert _in_order(np.array([0.0, 1.0, 2.0, 3.0, 4.0]), labels)
    assert not _in_order(np.array([0.0, 2.0, 1.0, 3.0, 4.0]), labels)


def test_an_unknown_method_is_refused():
    with pytest.raises(ValueError, match=r"unknown method 'magic'; choose from K-means"):
        make_estimator(Task("D3", "published", 0, "magic", None, None), (2, 4))
