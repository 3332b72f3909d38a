"""The command as users run it: another process, another folder, a fresh installation."""

import csv
import os
import re
import signal
import subprocess
import sys
import time
import venv
from pathlib import Path

import numpy as np
import pytest

from ccot import load_model
from tests.conftest import PROJECT, needs_unix

pytestmark = pytest.mark.slow

CCOT = Path(sys.executable).parent / "ccot"
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def run(*command, **options):
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True, text=True, env=ONE_THREAD, check=False, **options,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done


def labels_in(path):
    with path.open() as file:
        return [int(line["cluster"]) for line in csv.DictReader(file)]


def install(wheel_folder, environment):
    """Build the wheel and install it, with what it needs, into an empty environment."""
    pip = [sys.executable, "-m", "pip"]
    steps = [
        [*pip, "wheel", "--no-deps", "--wheel-dir", wheel_folder, PROJECT],
        [*pip, "--python", environment / "bin" / "python", "install", None],
    ]
    for step in steps:
        if step[-1] is None:
            step[-1] = next(wheel_folder.glob("ccot-*.whl"))
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        if done.returncode and ("Could not find a version" in done.stderr or "Name" in done.stderr):
            pytest.skip("pip reaches no package index here")
        assert done.returncode == 0, done.stderr


def test_a_fresh_installation_goes_from_file_to_labels(tmp_path):
    environment, work, elsewhere = (tmp_path / name for name in ("env", "work", "elsewhere"))
    venv.create(environment)
    for folder in (work, elsewhere, tmp_path / "wheel"):
        folder.mkdir()
    install(tmp_path / "wheel", environment)
    ccot, python = environment / "bin" / "ccot", environment / "bin" / "python"
    run(ccot, "simulate", "D3", "--overlap", "calibrated", cwd=work)
    run(ccot, "fit", "D3.csv", cwd=work)
    folder = work / "D3-ccot"
    assert (folder / "report.html").exists()
    fitted = labels_in(folder / "row_labels.csv")
    run(ccot, "predict", folder / "model.ccot", work / "D3.csv", "--out", "p.csv", cwd=elsewhere)
    placed = labels_in(elsewhere / "p.csv")
    assert placed == fitted
    code = (
        "import sys, ccot; from ccot.io import read_matrix; "
        "print(*ccot.load_model(sys.argv[1]).predict(read_matrix(sys.argv[2]).values))"
    )
    told = run(python, "-W", "ignore", "-c", code, folder / "model.ccot", work / "D3.csv",
               cwd=elsewhere).stdout  # fmt: skip
    assert [int(label) for label in told.split()] == placed
    # And here, with whatever versions this environment has.
    data = np.loadtxt(work / "D3.csv", delimiter=",", skiprows=1, usecols=range(1, 201))
    with pytest.warns(UserWarning, match="feature names"):
        assert load_model(folder / "model.ccot").predict(data).tolist() == placed


@needs_unix
@pytest.mark.parametrize("request_to_end", [signal.SIGINT, signal.SIGTERM])
def test_who_is_stopped_leaves_nothing_behind(request_to_end, tmp_path):
    np.save(tmp_path / "big.npy", np.random.default_rng(0).normal(size=(4000, 1000)))
    fitting = subprocess.Popen(
        [CCOT, "fit", "big.npy"],
        cwd=tmp_path, env=ONE_THREAD, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        # Shells start what runs in the background deaf to Ctrl-C, and children inherit it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    assert fitting.stdout is not None
    while not list(tmp_path.glob(".big-ccot.*.part")):
        assert fitting.poll() is None
        time.sleep(0.01)
    fitting.send_signal(request_to_end)
    _, complaint = fitting.communicate(timeout=120)
    assert complaint == "interrupted: nothing was written\n"
    assert fitting.returncode == 130
    assert [path.name for path in tmp_path.iterdir()] == ["big.npy"]


@needs_unix
def test_ctrl_c_on_a_terminal_takes_the_bar_away(tmp_path):
    np.save(tmp_path / "big.npy", np.random.default_rng(0).normal(size=(8000, 1000)))
    (tmp_path / "big-ccot").mkdir()
    (tmp_path / "big-ccot" / "run.json").write_text("{}")
    import pty

    child, terminal = pty.fork()
    if child == 0:
        os.chdir(tmp_path)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.execve(CCOT, ["ccot", "fit", "big.npy"], {**ONE_THREAD, "TERM": "xterm"})
    shown = read_until(terminal, rb"fitting .*\d+ s to go")
    os.write(terminal, b"\x03")
    shown += read_until(terminal, None)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 130
    # The cursor is back, and the line of the bar is empty before anything else is said.
    assert re.search(
        rb"\x1b\[\?25h\r\x1b\[1A\x1b\[2Kinterrupted: nothing was written, and big-ccot "
        rb"was not changed(; the finished part [^\r]*)?\r\n$",
        shown,
    )
    # On a slow machine there is something to go on from by now.
    left = {path.name for path in tmp_path.iterdir()} - {"big-ccot.checkpoint"}
    assert left == {"big-ccot", "big.npy"}
    assert (tmp_path / "big-ccot" / "run.json").read_text() == "{}"


def read_until(terminal, pattern):
    """Return what a terminal shows until a pattern is seen, or until the program ends."""
    shown = b""
    while pattern is None or not re.search(pattern, shown):
        try:
            shown += os.read(terminal, 2**16)
        except OSError:
            assert pattern is None, shown
            break
    return shown


# Peak memory of a process before and after it runs the command line.
MEASURE = """
import resource, sys
from ccot.cli import app
import ccot.report
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
before = peak()
app(sys.argv[1:], standalone_mode=False)
print(before, peak())
"""


@needs_unix
def test_a_hundred_megabytes_of_text_fit_into_four_times_their_matrix(tmp_path):
    """The process itself, with the libraries it loads, is not counted."""
    rng = np.random.default_rng(0)
    n_rows, n_columns = 12_500, 1000
    rows, columns = rng.integers(0, 4, n_rows), rng.integers(0, 3, n_columns)
    means = rng.normal(size=(4, 3))
    with (tmp_path / "big.csv").open("w") as file:
        for row in rows:
            values = means[row][columns] + rng.normal(size=n_columns)
            file.write(",".join(f"{value:.5f}" for value in values) + "\n")
    assert (tmp_path / "big.csv").stat().st_size > 100e6
    told = run(sys.executable, "-c", MEASURE, "fit", "big.csv", "--quiet", cwd=tmp_path).stdout
    before, peak = map(int, told.split())
    assert peak - before < 4 * 8 * n_rows * n_columns
