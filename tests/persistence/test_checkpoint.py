"""Pieces of a fit on disk: whatever happens, the stack is one that the fit once had."""

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from ccot.persistence import checkpoint
from ccot.persistence.checkpoint import CheckpointFolder
from ccot.persistence.checkpoint_files import Piece, _differences
from ccot.persistence.digest import digest
from ccot.persistence.model_file import read_values, write_values
from tests.conftest import needs_unix
from tests.faults import no_room

ABOUT = {"estimator": "Fit", "reg": "0.2", "data": "a1", "ccot": "1"}


class Stopped(BaseException):
    """The process is gone."""


class Fit:
    """A fit of all kinds of pieces, made of random numbers; stops before a given step."""

    def __init__(self, folder, stop_at=None, about=ABOUT, seed: int | None = 0):
        self.rng = np.random.default_rng(seed)
        self.kept = CheckpointFolder(folder, about, {}, self.rng, seeded=seed is not None)
        self.stop_at, self.n_steps = stop_at, 0

    def step(self):
        if self.n_steps == self.stop_at:
            raise Stopped
        self.n_steps += 1
        return self.rng.normal(size=3)

    def run(self):
        return self.kept.fit(self.make)

    def make(self):
        begin = self.kept.piece("begin", self.step)
        starts = [self.kept.piece("start", self.nested) for _ in range(2)]
        updates = self.kept.loop("update", (begin, 0, np.zeros(200)), self.update)
        last = next(state for state in updates if state[1] == 3)
        between = self.rng.normal()
        parts = [*self.kept.series("part", 4, self.parts), *self.kept.series("part", 4, self.parts)]
        runs = list(self.kept.series("run", 5, self.runs, len))
        answer = self.kept.piece("end", self.step)
        return np.concatenate([*starts, last[0], [between], *parts, *runs, answer])

    def nested(self):
        halves = [self.kept.piece("half", self.step) for _ in range(2)]
        return halves[0] * halves[1] + self.rng.normal()

    def update(self, state):
        value, number, large = state
        pairs = [self.kept.piece("side", self.step) for _ in range(2)]
        return value + pairs[0] * pairs[1] + self.step(), number + 1, large

    def parts(self, n_kept):
        return (self.step() for _ in range(n_kept, 4))

    def runs(self, n_kept):
        return (self.step()[: min(2, 5 - done)] for done in range(n_kept, 5, 2))


@pytest.fixture(autouse=True)
def every_piece_is_written(monkeypatch):
    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # no power will fail here
    monkeypatch.setattr(checkpoint, "SHARE", np.inf)


@pytest.fixture
def killed(monkeypatch):
    """Nothing is tidied up when a fit stops, as after kill -9."""

    @contextmanager
    def kill():
        with monkeypatch.context() as patch:
            patch.setattr(CheckpointFolder, "_close", lambda self, finished: None)
            with pytest.raises(Stopped):
                yield

    return kill


UNDISTURBED = Fit("nowhere")
with pytest.MonkeyPatch.context() as patch:
    patch.setattr(CheckpointFolder, "fit", lambda self, make: make())
    patch.setattr(CheckpointFolder, "_write", lambda self: None)
    ANSWER = UNDISTURBED.run()
N_STEPS = UNDISTURBED.n_steps


@pytest.mark.parametrize("stop_at", range(N_STEPS))
def test_killed_at_any_step_it_goes_on_where_it_was(tmp_path, killed, stop_at):
    with killed():
        Fit(tmp_path / "kept", stop_at).run()
    again = Fit(tmp_path / "kept")
    again.kept.pause = 1e9
    np.testing.assert_array_equal(again.run(), ANSWER)
    # What is lost is within the pieces that were under way: one step of a loop, or one start.
    assert again.n_steps <= N_STEPS - stop_at + 1


def test_killed_at_every_step_in_turn_it_comes_to_the_same(tmp_path, killed):
    for stop_at in [0, 1, 2, 3, 1, 0, 2] * 3:
        fit = Fit(tmp_path / "kept", stop_at)
        try:
            with killed():
                fit.run()
        except pytest.fail.Exception:
            break
    np.testing.assert_array_equal(Fit(tmp_path / "kept").run(), ANSWER)


def snapshots(folder, store, monkeypatch):
    """Copy the folder before and after everything that changes it."""

    def watch(module, name):
        change = getattr(module, name)

        def watched(*arguments, **options):
            shutil.copytree(folder, store / f"{len(list(store.iterdir())):03d}")
            answer = change(*arguments, **options)
            shutil.copytree(folder, store / f"{len(list(store.iterdir())):03d}")
            return answer

        monkeypatch.setattr(module, name, watched)

    watch(os, "replace")
    watch(os, "fsync")
    watch(Path, "unlink")


def test_whatever_the_disk_has_when_the_power_fails_will_do(tmp_path, monkeypatch):
    store = tmp_path / "snapshots"
    store.mkdir()
    with monkeypatch.context() as patch:
        (tmp_path / "kept").mkdir()
        snapshots(tmp_path / "kept", store, patch)
        Fit(tmp_path / "kept").run()
    assert len(list(store.iterdir())) > 60
    monkeypatch.setattr(checkpoint, "SECONDS", 1e9)
    n_steps = []
    for snapshot in sorted(store.iterdir()):
        fit = Fit(snapshot)
        np.testing.assert_array_equal(fit.run(), ANSWER, str(snapshot))
        n_steps.append(fit.n_steps)
        assert not list(snapshot.glob(".*")), "half a file was left"
    assert n_steps == sorted(n_steps, reverse=True)
    assert n_steps[0] == N_STEPS
    assert n_steps[-1] == 0


def test_finished_pieces_take_the_place_of_their_parts(tmp_path, killed):
    with killed():
        Fit(tmp_path, N_STEPS - 1).run()
    pieces = [
        piece.name
        for path in sorted(tmp_path.glob("*.pieces"))
        for piece in read_values(path, {"_Piece": Piece})
    ]
    assert pieces == ["begin", "start", "start", "update", *["part"] * 8, *["run"] * 3]


def test_a_finished_fit_is_made_again_of_what_is_kept(tmp_path):
    np.testing.assert_array_equal(Fit(tmp_path).run(), ANSWER)
    again = Fit(tmp_path)
    np.testing.assert_array_equal(again.run(), ANSWER)
    assert again.n_steps == 0


def test_a_short_fit_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "SECONDS", 5.0)
    np.testing.assert_array_equal(Fit(tmp_path / "kept").run(), ANSWER)
    with pytest.raises(Stopped):
        Fit(tmp_path / "kept", 5).run()
    assert not (tmp_path / "kept").exists()


def test_an_interrupted_fit_writes_what_waits(tmp_path, monkeypatch):
    with pytest.raises(Stopped):
        Fit(tmp_path, 3).run()
    monkeypatch.setattr(checkpoint, "SECONDS", 1e9)
    with pytest.raises(Stopped):
        Fit(tmp_path, 5).run()
    again = Fit(tmp_path)
    np.testing.assert_array_equal(again.run(), ANSWER)
    assert again.n_steps == N_STEPS - 8


def test_pieces_that_take_much_memory_do_not_wait(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "SECONDS", 1e9)
    monkeypatch.setattr(checkpoint, "WAITING_BYTES", 60)
    rng = np.random.default_rng(0)
    kept = CheckpointFolder(tmp_path, ABOUT, {}, rng)
    counts = []

    def make():
        for _ in range(5):
            kept.piece("three numbers", lambda: rng.normal(size=3))
            counts.append(len(list(tmp_path.glob("*.pieces"))))

    kept.fit(make)
    assert counts == [0, 0, 1, 1, 1]


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({"reg": "0.5"}, r"reg=0.2 instead of 0.5"),
        ({"data": "b2"}, "other data"),
        ({"ccot": "2", "data": "b2"}, "other data, ccot=1 instead of 2"),
    ],
)
def test_an_unfinished_fit_of_another_kind_is_refused(tmp_path, about, message):
    with pytest.raises(Stopped):
        Fit(tmp_path, 5).run()
    with pytest.raises(ValueError, match=message):
        Fit(tmp_path, about=ABOUT | about).run()
    np.testing.assert_array_equal(Fit(tmp_path).run(), ANSWER)
    # A finished one is not worth an argument.
    other = Fit(tmp_path, about=ABOUT | about)
    np.testing.assert_array_equal(other.run(), ANSWER)
    assert other.n_steps == N_STEPS


def test_without_a_seed_the_kept_one_counts(tmp_path):
    with pytest.raises(Stopped):
        Fit(tmp_path, 5, seed=None).run()
    shutil.copytree(tmp_path, tmp_path / "copy", ignore=shutil.ignore_patterns("copy"))
    one, other = Fit(tmp_path, seed=None), Fit(tmp_path / "copy", seed=None)
    np.testing.assert_array_equal(one.run(), other.run())
    assert one.n_steps == N_STEPS - 5


@needs_unix
def test_two_at_once_are_refused(tmp_path):
    first, second = Fit(tmp_path), Fit(tmp_path)

    def meanwhile():
        with pytest.raises(BlockingIOError, match="another run"):
            second.run()

    first.kept.fit(meanwhile)


@pytest.mark.parametrize("damage", ["cut", "emptied", "garbled", "gone", "foreign", "a model"])
def test_a_damaged_file_costs_what_is_in_it_and_above(tmp_path, damage):
    with pytest.raises(Stopped):
        Fit(tmp_path, N_STEPS - 1).run()
    files = sorted(tmp_path.glob("*.pieces"))
    content = files[2].read_bytes()
    match damage:
        case "cut":
            files[2].write_bytes(content[: len(content) // 2])
        case "emptied":
            files[2].write_bytes(b"")
        case "garbled":
            files[2].write_bytes(content[:-300] + bytes(200) + content[-100:])
        case "gone":
            files[2].unlink()
        case "foreign":
            files[2].write_text("something else")
        case "a model":
            write_values(files[2], {"estimator": "CCOT"}, {}, "1")
    again = Fit(tmp_path)
    with pytest.warns(UserWarning, match="continues from the piece before"):
        np.testing.assert_array_equal(again.run(), ANSWER)
    assert 0 < again.n_steps < N_STEPS - 2


def test_without_a_readable_header_the_fit_begins_anew(tmp_path):
    with pytest.raises(Stopped):
        Fit(tmp_path, 5).run()
    (tmp_path / "checkpoint.json").write_text('{"format": "ccot-che')
    again = Fit(tmp_path)
    with pytest.warns(UserWarning, match="starts from the beginning"):
        np.testing.assert_array_equal(again.run(), ANSWER)
    assert again.n_steps == N_STEPS


def test_files_of_others_are_left_alone(tmp_path):
    for name in ("notes.pieces", "data.csv", ".csv.part"):
        (tmp_path / name).write_text("mine")
    Fit(tmp_path).run()
    Fit(tmp_path, about=ABOUT | {"reg": "0.5"}).run()
    assert [(tmp_path / name).read_text() for name in ("notes.pieces", "data.csv")] == ["mine"] * 2
    (tmp_path / "checkpoint.json").write_text(json.dumps({"format": "of someone else"}))
    with pytest.raises(ValueError, match="pass another folder"):
        Fit(tmp_path).run()
    assert (tmp_path / ".csv.part").exists()


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "kept").write_text("mine")
    with pytest.raises(ValueError, match="is a file"):
        Fit(tmp_path / "kept").run()


@pytest.mark.parametrize("n_bytes", [0, 150, 400, 1500])
def test_on_a_full_disk_the_fit_goes_on_and_says_so(tmp_path, n_bytes):
    with (
        no_room(n_bytes),
        pytest.warns(UserWarning, match="no room .* no further pieces are kept") as warned,
    ):
        np.testing.assert_array_equal(Fit(tmp_path / "kept").run(), ANSWER)
    assert len(warned) == 1
    kept = tmp_path / "kept"
    assert not kept.exists() or not list(kept.glob(".*")), "half a file was left"
    np.testing.assert_array_equal(Fit(kept).run(), ANSWER)


def test_a_folder_that_cannot_be_made_is_said_before_the_fit(tmp_path):
    (tmp_path / "file").write_text("mine")
    fit = Fit(tmp_path / "file" / "kept")
    with pytest.raises(OSError, match="file"):
        fit.run()
    assert fit.n_steps == 0


KILLED = """
import sys, time
from pathlib import Path
from tests.persistence.test_checkpoint import Fit, checkpoint
checkpoint.SECONDS, checkpoint.SHARE = 0.0, float("inf")
fit = Fit(sys.argv[1])
step = fit.step
def slow():
    time.sleep(0.05)
    return step()
fit.step = slow
print("begins", flush=True)
fit.run()
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs kill -9")
def test_really_killed_it_goes_on_where_it_was(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path / "kept")],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    assert process.stdout is not None
    process.stdout.readline()
    while not list(tmp_path.glob("kept/*.pieces")):
        assert process.poll() is None
    process.kill()
    process.wait()
    process.stdout.close()
    again = Fit(tmp_path / "kept")
    np.testing.assert_array_equal(again.run(), ANSWER)
    assert 0 < again.n_steps < N_STEPS


def test_a_piece_is_made_once(tmp_path):
    made = []

    def fit():
        kept = CheckpointFolder(tmp_path, {"data": "a"}, {}, np.random.default_rng(0))
        kept.pause = 0.0
        return kept.fit(lambda: kept.piece("sum", lambda: made.append(1) or 42))

    assert (fit(), fit(), len(made)) == (42, 42, 1)


def test_differences_of_fits_are_named():
    said = _differences({"reg": "0.2", "tol": "1"}, {"reg": "0.5", "tol": "1"})
    assert said == "reg=0.2 instead of 0.5"
    assert _differences({"data": "e01f"}, {"data": "77ab"}) == "other data"


def test_digests_tell_matrices_from_one_another():
    assert digest(np.eye(2)) == digest(np.eye(2)) != digest(-np.eye(2))
