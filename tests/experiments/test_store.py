from dataclasses import replace
from itertools import product

import pyarrow.parquet as pq
import pytest

from ccot.experiments import store as store_module
from ccot.experiments.store import JOURNAL, TIMINGS, TRIALS, TrialStore, load_trials
from tests.conftest import needs_unix


@pytest.fixture
def trials(a_trial):
    return [replace(a_trial, seed=seed, seconds=seed / 10) for seed in range(5)]


def test_a_trial_is_on_disk_as_soon_as_it_is_added(tmp_path, trials):
    with TrialStore(tmp_path) as store:
        store.add(trials[0])
        assert load_trials(tmp_path) == trials[:1]


def test_a_torn_line_is_forgotten_and_written_over(tmp_path, trials):
    with TrialStore(tmp_path) as store:
        store.add(trials[0])
        store.add(trials[1])
    journal = tmp_path / JOURNAL
    journal.write_bytes(journal.read_bytes()[:-20])
    assert load_trials(tmp_path) == trials[:1]
    with TrialStore(tmp_path) as store:
        store.add(trials[2])
    assert load_trials(tmp_path) == [trials[0], trials[2]]


@pytest.mark.parametrize(
    ("name", "damage"),
    [*product((JOURNAL, TRIALS, TIMINGS), ("garbled", "foreign")), (TIMINGS, "gone")],
)
def test_damaged_files_are_named_and_left_as_they_are(tmp_path, trials, name, damage):
    with TrialStore(tmp_path) as store:
        store.add(trials[0])
        store.checkpoint()
        store.add(trials[1])
    path = tmp_path / name
    content = path.read_bytes()
    path.unlink()
    match damage:
        case "garbled":
            path.write_bytes(content[:10] + bytes(20) + content[30:])
        case "foreign":
            path.write_text('{"something": "else"}\n')
    others = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    for _ in range(2):
        with pytest.raises(ValueError, match=r"cannot be read .* remove them to start again"):
            TrialStore(tmp_path)
    assert others == {file.name: file.read_bytes() for file in tmp_path.iterdir()}


def test_checkpoints_do_not_depend_on_order_or_interruptions(tmp_path, trials):
    with TrialStore(tmp_path / "one") as store:
        for trial in trials:
            store.add(trial)
        store.checkpoint()
    for trial in reversed(trials):
        with TrialStore(tmp_path / "other") as store:
            store.add(replace(trial, seconds=99.0))
            store.checkpoint()
    one, other = ((tmp_path / name / TRIALS).read_bytes() for name in ("one", "other"))
    assert one == other
    assert load_trials(tmp_path / "one") == trials
    assert {trial.seconds for trial in load_trials(tmp_path / "other")} == {99.0}


def test_measured_columns_stand_apart(tmp_path, trials):
    with TrialStore(tmp_path) as store:
        store.add(trials[0])
        store.checkpoint()
    assert not {"seconds", "processor", "commit"} & set(pq.read_schema(tmp_path / TRIALS).names)
    assert {"seconds", "processor", "commit", "seed"} <= set(
        pq.read_schema(tmp_path / TIMINGS).names
    )
    assert sorted(file.name for file in tmp_path.iterdir()) == [TIMINGS, TRIALS]


@pytest.mark.parametrize("moment", ["before timings", "before trials", "before the journal goes"])
def test_a_checkpoint_killed_at_any_moment_loses_nothing(tmp_path, trials, monkeypatch, moment):
    with TrialStore(tmp_path) as store:
        store.add(trials[0])
        store.checkpoint()
        store.add(trials[1])
    writes, write = [], store_module._write

    class KilledError(Exception):
        pass

    def write_or_die(path, *arguments):
        if len(writes) == ["before timings", "before trials"].index(moment):
            raise KilledError
        writes.append(path)
        write(path, *arguments)

    def die(self, *arguments, **keywords):
        raise KilledError

    if moment == "before the journal goes":
        monkeypatch.setattr(store_module.Path, "unlink", die)
    else:
        monkeypatch.setattr(store_module, "_write", write_or_die)
    with pytest.raises(KilledError), TrialStore(tmp_path) as store:
        store.checkpoint()
    monkeypatch.undo()
    assert load_trials(tmp_path) == trials[:2]


@needs_unix
def test_two_runs_cannot_share_a_folder(tmp_path):
    with TrialStore(tmp_path), pytest.raises(BlockingIOError, match="another run is writing"):
        TrialStore(tmp_path)
    with TrialStore(tmp_path):
        pass


def test_trials_can_be_dropped(tmp_path, trials):
    with TrialStore(tmp_path) as store:
        for trial in trials:
            store.add(trial)
        store.trials = {task: t for task, t in store.trials.items() if task.seed < 2}
        store.checkpoint()
    assert load_trials(tmp_path) == trials[:2]


def test_nothing_is_left_where_nothing_happened(tmp_path):
    with TrialStore(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []
