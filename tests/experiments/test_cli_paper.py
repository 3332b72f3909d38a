import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ccot.cli.experiments import app
from ccot.experiments import store
from ccot.experiments.store import TRIALS, load_trials
from tests.conftest import needs_unix

TINY = ["--trials", "1", "--n-init", "1", "--samplings", "3", "--jobs", "1",
        "--methods", "k-means,ITCC,CCOT"]  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("paper")
    answer = CliRunner().invoke(app, ["all", "--out", str(folder), *TINY])
    assert answer.exit_code == 0, answer.output
    return folder


def test_everything_is_written(made):
    stems = ("table1", "table2", "table2_p_values", "table2_right_numbers", "figure2_counts")
    for stem in stems:
        for suffix in ("md", "csv", "tex"):
            assert (made / f"{stem}.{suffix}").stat().st_size > 50
    for stem in ("figure1", "figure2"):
        assert (made / f"{stem}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (made / f"{stem}.svg").read_text()
    assert len(load_trials(made)) == 4 * 2 * 3
    assert not [file for file in made.iterdir() if file.name.endswith((".part", ".jsonl"))]


def test_the_page_needs_no_other_file(made):
    page = (made / "paper.html").read_text()
    assert page.count("data:image/png;base64,") == 2
    assert not re.findall(r'(?:src|href)="(?!data:)', page)
    for row in ("D1, paper", "D1, published", "D1, calibrated"):
        assert row in page
    assert "ITCC need non-negative entries" in page


def test_a_second_time_everything_is_there_and_the_same(made, monkeypatch):
    def refuse(task):
        raise AssertionError("nothing is left to do")

    before = {file.name: file.read_bytes() for file in made.iterdir()}
    monkeypatch.setattr(store, "run_task", refuse)
    answer = CliRunner().invoke(app, ["all", "--out", str(made), *TINY])
    assert answer.exit_code == 0, answer.output
    assert {file.name: file.read_bytes() for file in made.iterdir()} == before


def test_one_overlap_only(tmp_path):
    answer = CliRunner().invoke(
        app, ["table2", "--out", str(tmp_path), *TINY[:-1], "K-means", "--overlap", "calibrated"]
    )
    assert answer.exit_code == 0, answer.output
    page = (tmp_path / "table2.html").read_text()
    assert "D2, calibrated" in page
    assert "D2, published" not in page


@pytest.mark.parametrize("name", ["figure2", "figure3"])
def test_figures_are_numbered_as_in_the_source_and_the_old_name_stays(tmp_path, made, name):
    for file in ("trials.parquet", "timings.parquet"):
        (tmp_path / file).write_bytes((made / file).read_bytes())
    answer = CliRunner().invoke(app, [name, "--out", str(tmp_path), *TINY])
    assert answer.exit_code == 0, answer.output
    assert (tmp_path / "figure2.html").read_text().count("Figure 2: sorted scalings") == 2


def test_an_unknown_method_is_named(tmp_path):
    answer = CliRunner().invoke(app, ["table2", "--out", str(tmp_path), "--methods", "magic"])
    assert answer.exit_code == 2
    assert "magic" in answer.output
    assert list(tmp_path.iterdir()) == []


@needs_unix
def test_a_folder_in_use_is_refused(tmp_path, made):
    with store.TrialStore(tmp_path):
        answer = CliRunner().invoke(app, ["table2", "--out", str(tmp_path), *TINY])
    assert answer.exit_code == 2
    assert "another run is writing" in answer.output


def test_interrupted_it_says_how_to_go_on(tmp_path, monkeypatch):
    def interrupt(*arguments, **keywords):
        raise KeyboardInterrupt

    monkeypatch.setattr(store, "run_protocol", interrupt)
    monkeypatch.setattr(sys, "argv", ["/usr/bin/ccot", "paper", "all", "--out", "a b"])
    answer = CliRunner().invoke(app, ["all", "--out", str(tmp_path)])
    assert answer.exit_code == 130
    assert "ccot paper all --out 'a b'" in answer.output


def start(folder: Path, *options: str, stderr: int = subprocess.DEVNULL) -> subprocess.Popen:
    command = [sys.executable, "-m", "ccot", "paper", "table2", "--out", str(folder)]
    return subprocess.Popen(
        [*command, *options],
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        # Tests that run in the background of a shell would pass on that it ignores Control-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def wait_for(folder: Path, n_trials: int) -> None:
    deadline = time.monotonic() + 300
    while len(load_trials(folder)) < n_trials:
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_control_c_keeps_what_is_done(tmp_path):
    process = start(tmp_path, "--quick", "--jobs", "2", stderr=subprocess.STDOUT)
    try:
        wait_for(tmp_path, 5)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert f"finished trials are kept in {tmp_path}; to continue: " in output
    assert len(load_trials(tmp_path)) >= 5


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_quick_run_killed_five_times_ends_with_the_same_bytes(tmp_path):
    quick = ("--quick", "--trials", "2", "--jobs", "2")
    assert start(tmp_path / "undisturbed", *quick).wait() == 0
    for n_trials in (3, 40, 77, 101, 150):
        process = start(tmp_path / "killed", *quick)
        wait_for(tmp_path / "killed", n_trials)
        process.kill()
        process.wait()
    assert start(tmp_path / "killed", *quick).wait() == 0
    one, other = ((tmp_path / name / TRIALS).read_bytes() for name in ("undisturbed", "killed"))
    assert one == other
