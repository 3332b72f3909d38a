"""Fits by the command line that are interrupted, and go on."""

import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest

from ccot.cli import results
from ccot.cli.results import result_folder
from ccot.datasets import load_simulated
from ccot.persistence import atomic, checkpoint
from ccot.persistence.checkpoint import CheckpointFolder
from tests.conftest import needs_unix
from tests.faults import no_room

NAMES = ("row_labels.csv", "column_labels.csv", "blocks.csv", "model.ccot")


@pytest.fixture
def matrix(tmp_path):
    np.save(tmp_path / "noisy.npy", load_simulated("D3", random_state=0, sigma=3.0).data[:30, :24])
    return "noisy.npy"


@pytest.fixture
def stops(monkeypatch):
    """Press Ctrl-C after so many finished pieces."""
    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # no power will fail here
    keep = CheckpointFolder._keep
    left = []

    def keep_and_stop(self, *arguments):
        keep(self, *arguments)
        if left:
            left[0] -= 1
            if left[0] == 0:
                left.clear()
                raise KeyboardInterrupt

    monkeypatch.setattr(CheckpointFolder, "_keep", keep_and_stop)
    return left.append


def contents(folder):
    return [(folder / name).read_bytes() for name in NAMES]


@pytest.mark.parametrize("method", ["transport", "ccot"])
def test_interrupted_a_fit_goes_on(method, ccot, matrix, stops, tmp_path):
    fit = ("fit", matrix, "--method", method, "--no-report")
    ccot(*fit, "--out", "undisturbed")
    stops(1)
    told = ccot(*fit, code=130).stderr
    assert told == (
        "interrupted: nothing was written; the finished part of the fit is in "
        "noisy-ccot.checkpoint: pass --resume to continue it\n"
    )
    assert not (tmp_path / "noisy-ccot").exists()
    told = ccot(*fit, code=2).stderr
    assert "pass --resume to continue it, or --no-resume to start again" in told
    assert "\ncontinuing with noisy-ccot.checkpoint\n" in ccot(*fit, "--resume").stdout
    assert contents(tmp_path / "noisy-ccot") == contents(tmp_path / "undisturbed")
    assert not list(tmp_path.glob("*.checkpoint"))
    assert not list(tmp_path.glob(".*"))


def test_begun_anew_it_is_another_fit(ccot, matrix, stops, tmp_path):
    stops(3)
    ccot("fit", matrix, code=130)
    told = ccot("fit", matrix, "--resume", "--seed", 1, code=2).stderr
    assert "an unfinished fit with random_state=0 instead of 1" in told
    ccot("fit", matrix, "--no-resume", "--seed", 1, "--no-report")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["noisy-ccot", "noisy.npy"]


def test_with_nothing_to_resume_a_fit_begins(ccot, matrix, tmp_path):
    told = ccot("fit", matrix, "--resume", "--no-report").stdout
    assert "\nno noisy-ccot.checkpoint: starting a new fit\n" in told
    assert (tmp_path / "noisy-ccot" / "model.ccot").exists()


def test_results_that_find_no_room_can_be_written_later(ccot, matrix, stops, tmp_path):
    ccot("fit", matrix, "--no-report", "--out", "undisturbed")
    with no_room(20_000):
        told = ccot("fit", matrix, code=2).stderr
    assert "error: the disk has no room for the results in noisy-ccot" in told
    assert "pass --resume to continue it" in told
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "noisy-ccot.checkpoint",
        "noisy.npy",
        "undisturbed",
    ]
    ccot("fit", matrix, "--resume", "--no-report")
    assert contents(tmp_path / "noisy-ccot") == contents(tmp_path / "undisturbed")


def test_what_a_killed_process_left_is_swept_up(tmp_path):
    for name in (".out.0a1b2c3d.part", ".out.mine.part", ".out.0a1b2c3d.old"):
        (tmp_path / name).mkdir()
    (tmp_path / ".out.0a1b2c3d.old" / "kept").touch()
    with result_folder(tmp_path / "out") as staged:
        assert not (tmp_path / ".out.0a1b2c3d.part").exists()
        # Killed between two renames, the old results come back.
        assert (tmp_path / "out" / "kept").exists()
        assert staged.is_dir()
    assert sorted(path.name for path in tmp_path.iterdir()) == [".out.mine.part", "out"]


@needs_unix
def test_two_runs_cannot_write_to_one_folder(tmp_path):
    with result_folder(tmp_path / "out") as staged:
        with (
            pytest.raises(BlockingIOError, match=r"writing to .*out \(process \d+, since"),
            result_folder(tmp_path / "out"),
        ):
            pass
        assert staged.is_dir()


@needs_unix
def test_a_link_in_the_place_of_the_lock_is_refused(tmp_path, monkeypatch):
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / ".out.lock").symlink_to(tmp_path / "mine.txt")
    with pytest.raises(ValueError, match=r"out\.lock is a link"), result_folder(tmp_path / "out"):
        pass
    # The same link, made after somebody has looked.
    monkeypatch.setattr("pathlib.Path.is_symlink", lambda path: False)
    with pytest.raises(OSError, match="symbolic links"), result_folder(tmp_path / "out"):
        pass
    assert (tmp_path / "mine.txt").read_text() == "mine"


@needs_unix
@pytest.mark.parametrize("fixed", [False, True])
def test_files_that_take_the_place_of_others_are_open_to_no_more_users(
    fixed, tmp_path, monkeypatch
):
    out = tmp_path / "out"
    out.mkdir()
    for name, mode in (("model.ccot", 0o600), ("run.json", 0o400), ("blocks.csv", 0o666)):
        (out / name).write_text("old")
        (out / name).chmod(mode)
    monkeypatch.chdir(out if fixed else tmp_path)
    with result_folder(out) as staged:
        assert staged.stat().st_mode & 0o777 == 0o700
        for name in ("model.ccot", "run.json", "blocks.csv", "report.html"):
            (staged / name).write_text("new")
            (staged / name).chmod(0o644)
    found = {path.name: path.stat().st_mode & 0o777 for path in out.iterdir()}
    modes = {"model.ccot": 0o600, "run.json": 0o400, "blocks.csv": 0o644, "report.html": 0o644}
    assert found == modes
    assert {(out / name).read_text() for name in modes} == {"new"}


@pytest.mark.parametrize(
    "where", ["ccot.cli.results.sync_folder", "ccot.TransportCoclustering.summary"]
)
def test_interrupted_when_all_is_written_a_fit_says_so(where, ccot, matrix, tmp_path, monkeypatch):
    ccot("fit", matrix, "--no-report")
    model = tmp_path / "noisy-ccot" / "model.ccot"
    before, written = model.stat().st_ino, []

    def stop(*_):
        if model.exists() and model.stat().st_ino != before:
            raise KeyboardInterrupt
        written.append("not yet")
        return ""

    monkeypatch.setattr(where, stop)
    told = ccot("fit", matrix, "--no-report", code=130).stderr
    assert told == "interrupted: the results in noisy-ccot are complete\n"
    assert written
    assert sorted(path.name for path in tmp_path.iterdir()) == ["noisy-ccot", "noisy.npy"]


def publish_until(out, stop_at, way):
    """Publish results in a process that ends at the n-th change of the disk; return how it did."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    left = [stop_at]

    def counted(call):
        def killed(*given, **named):
            if left[0] == 0:
                os._exit(9)
            left[0] -= 1
            return call(*given, **named)

        return killed

    for name in ("replace", "rename", "link", "unlink", "mkdir", "rmdir", "fsync"):
        setattr(os, name, counted(getattr(os, name)))
    results.exchange = counted(atomic.exchange if way == "swap" else lambda first, second: False)
    with result_folder(out) as staged:
        for name in ("row_labels.csv", "model.ccot"):
            (staged / name).write_text("new")
    os._exit(0)


@needs_unix
@pytest.mark.parametrize("way", ["swap", "rename"])
def test_killed_at_any_moment_results_are_old_or_new(tmp_path, way):
    """Files of the user stay there in any case."""
    out = tmp_path / "out"
    seen = set()
    for stop_at in range(100):
        shutil.rmtree(out, ignore_errors=True)
        (out / "sub").mkdir(parents=True)
        for name in ("row_labels.csv", "model.ccot", "run.json"):
            (out / name).write_text("old")
        for name in ("mine.txt", "sub/mine.txt"):
            (out / name).write_text("mine")
        code = publish_until(out, stop_at, way)
        assert code in (0, 9)
        if way == "rename" and not out.exists():
            with pytest.raises(ZeroDivisionError), result_folder(out):
                1 / 0  # noqa: B018
        texts = {path.name: path.read_text() for path in out.glob("*.*")}
        old = {"row_labels.csv": "old", "model.ccot": "old", "run.json": "old", "mine.txt": "mine"}
        new = {"row_labels.csv": "new", "model.ccot": "new", "mine.txt": "mine"}
        assert texts in (old, new), (stop_at, texts)
        assert (out / "sub" / "mine.txt").read_text() == "mine"
        seen.add(texts == new)
        if code == 0:
            break
    assert code == 0
    assert seen == {True, False}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_the_working_folder_gets_results_file_by_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("run.json", "model.ccot", "mine.txt"):
        (tmp_path / name).write_text("old")
    with result_folder(tmp_path) as staged:
        (staged / "model.ccot").write_text("new")
    texts = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert texts == {"model.ccot": "new", "mine.txt": "old"}


# The command line with pieces written all the time.
EAGER = """
from ccot.persistence import checkpoint
from ccot.cli import main
checkpoint.SECONDS, checkpoint.SHARE = 0.0, float("inf")
main()
"""


@needs_unix
@pytest.mark.parametrize("name", ["SIGINT", pytest.param("SIGKILL", marks=pytest.mark.slow)])
def test_really_stopped_a_fit_goes_on(name, ccot, tmp_path):
    np.save(tmp_path / "noisy.npy", load_simulated("D3", random_state=0, sigma=3.0).data[:60])
    fitting = subprocess.Popen(
        [sys.executable, "-c", EAGER, "fit", "noisy.npy", "--no-report"],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    while len(list(tmp_path.glob("noisy-ccot.checkpoint/*.pieces"))) < 3:
        assert fitting.poll() is None
    os.kill(fitting.pid, getattr(signal, name))
    _, told = fitting.communicate()
    if name == "SIGINT":
        assert fitting.returncode == 130
        assert "pass --resume to continue it" in told
        assert not list(tmp_path.glob(".*"))
    ccot("fit", "noisy.npy", "--no-report", "--resume")
    ccot("fit", "noisy.npy", "--no-report", "--out", "undisturbed")
    assert contents(tmp_path / "noisy-ccot") == contents(tmp_path / "undisturbed")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "noisy-ccot",
        "noisy.npy",
        "undisturbed",
    ]
