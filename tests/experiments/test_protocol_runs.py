import multiprocessing
import os
import random
import signal
import time
from dataclasses import replace

import pytest

from ccot.experiments import store
from ccot.experiments.store import TRIALS, load_trials, run_protocol


@pytest.fixture(scope="module")
def undisturbed(small, tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    run_protocol(small, folder)
    return folder


def test_all_tasks_are_done_and_returned(small, undisturbed):
    trials = load_trials(undisturbed)
    assert {trial.task for trial in trials} == set(small.tasks())


def test_trials_do_not_depend_on_the_number_of_processes(small, undisturbed, tmp_path):
    run_protocol(small, tmp_path, n_jobs=2)
    assert (tmp_path / TRIALS).read_bytes() == (undisturbed / TRIALS).read_bytes()


def test_what_is_there_is_not_done_again(small, undisturbed, monkeypatch):
    def refuse(task):
        raise AssertionError(f"{task} is there already")

    monkeypatch.setattr(store, "run_task", refuse)
    trials = run_protocol(replace(small, methods=("K-means",)), undisturbed)
    assert len(trials) == 16


def test_other_settings_are_other_trials(small, undisturbed, tmp_path):
    more = replace(small, n_init=2, methods=("K-means",), overlaps=("published",))
    (tmp_path / TRIALS).write_bytes((undisturbed / TRIALS).read_bytes())
    (tmp_path / "timings.parquet").write_bytes((undisturbed / "timings.parquet").read_bytes())
    trials = run_protocol(more, tmp_path)
    assert {trial.n_init for trial in trials} == {2}
    assert len(load_trials(tmp_path)) == len(small.tasks()) + len(more.tasks())


def test_progress_counts_up_to_all(small, tmp_path):
    seen = []
    tiny = replace(small, n_trials=1, methods=("K-means",))
    run_protocol(tiny, tmp_path, progress=lambda *news: seen.append(news))
    assert seen == [("trials", done, 8) for done in range(9)]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs kill -9")
def test_killed_five_times_it_ends_with_the_same_bytes(small, undisturbed, tmp_path):
    # A server that has everything imported forks quickly, so that moments fall into the work.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["ccot.experiments.store"])
    moments = random.Random(0)
    journal, kills = tmp_path / "journal.jsonl", 0
    for target in sorted(moments.sample(range(1, len(small.tasks()) - 4), 5)):
        process = context.Process(target=run_protocol, args=(small, tmp_path))
        process.start()
        deadline = time.monotonic() + 120
        while len(load_trials(tmp_path)) < target and time.monotonic() < deadline:
            time.sleep(0.005)
        time.sleep(moments.random() / 50)
        if process.is_alive():
            os.kill(process.pid, signal.SIGKILL)
            kills += 1
        process.join()
        assert journal.exists()
    assert kills == 5
    run_protocol(small, tmp_path)
    assert (tmp_path / TRIALS).read_bytes() == (undisturbed / TRIALS).read_bytes()
    assert not journal.exists()
