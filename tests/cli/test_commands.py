import csv
import io
import json
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from ccot import __version__, load_model
from ccot.baselines import TwoSidedKMeans
from ccot.cli import app
from ccot.cli import progress as news
from ccot.datasets import load_simulated
from ccot.io import read_matrix


def write_table(path, names, columns, values):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["name", *columns])
        writer.writerows([name, *row] for name, row in zip(names, values.tolist(), strict=True))
    return path


def clusters(text):
    return [int(line["cluster"]) for line in csv.DictReader(text.splitlines())]


def test_columns_are_matched_by_name(ccot, blocks, model_file, tmp_path):
    expected = load_model(model_file).row_labels_.tolist()
    order = np.random.default_rng(0).permutation(30)
    columns = [blocks.columns[place] for place in order]
    path = write_table(tmp_path / "a.csv", blocks.rows, columns, blocks.values[:, order])
    assert clusters(ccot("predict", model_file, path).stdout) == expected
    more = np.column_stack([blocks.values[:, order], np.full(40, 1e6)])
    path = write_table(tmp_path / "b.csv", blocks.rows, [*columns, "age"], more)
    outcome = ccot("predict", model_file, path)
    assert clusters(outcome.stdout) == expected
    assert "note: 1 columns that are not in the model are left out (the first: 'age')" in (
        outcome.stderr
    )
    np.save(tmp_path / "c.npy", blocks.values)
    assert clusters(ccot("predict", model_file, "c.npy").stdout) == expected


def test_new_columns_are_placed(ccot, blocks, model_file, tmp_path):
    expected = load_model(model_file).column_labels_[:5].tolist()
    new = blocks.values[::-1, :5]
    path = write_table(tmp_path / "a.csv", blocks.rows[::-1], list("vwxyz"), new)
    told = json.loads(ccot("predict", model_file, path, "--columns", "--json").stdout)
    assert [place["cluster"] for place in told] == expected
    assert [place["name"] for place in told] == list("vwxyz")


def test_rivals_place_nothing(ccot, blocks, tmp_path):
    TwoSidedKMeans(2, 2, n_init=1, random_state=0).fit(blocks.values).save(tmp_path / "m.ccot")
    np.save(tmp_path / "x.npy", blocks.values)
    assert "cannot predict new rows" in ccot("predict", "m.ccot", "x.npy", code=2).stderr


def test_reports_of_one_and_of_several(ccot, table, model_file, tmp_path):
    assert "wrote report.html" in ccot("report", model_file).stdout
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "model.ccot").write_bytes(model_file.read_bytes())
    ccot("report", model_file, "a/model.ccot", "--data", table, "--out", "both.html", "--quiet")
    assert len((tmp_path / "both.html").read_text()) > len((tmp_path / "report.html").read_text())
    (tmp_path / "small.csv").write_text("1,2\n3,4\n")
    told = ccot("report", model_file, "--data", "small.csv", code=2).stderr
    assert "matrix has shape (2, 2), but the first model was fitted to (40, 30)" in told


def test_simulated_sets_come_with_their_truth(ccot, tmp_path):
    ccot("simulate", "D3", "--seed", 1, "--overlap", "calibrated", "--out", "sim/d3.csv")
    truth = load_simulated("D3", random_state=1, overlap="calibrated")
    table = read_matrix(tmp_path / "sim" / "d3.csv")
    np.testing.assert_array_equal(table.values, truth.data)
    for side, labels in (("rows", truth.row_labels), ("columns", truth.column_labels)):
        assert clusters((tmp_path / "sim" / f"d3.{side}.csv").read_text()) == labels.tolist()
    np.testing.assert_array_equal(table.row_names[:2], ["r0", "r1"])


def test_reports_with_names_and_annotations(ccot, table, model_file, tmp_path):
    (tmp_path / "names.json").write_text('{"row": {"0": "Mine"}, "column": {}}')
    n_rows = len(load_model(model_file).row_labels_)
    (tmp_path / "known.csv").write_text("kind\n" + "\n".join(n_rows * ["weed"]) + "\n")
    ccot("report", model_file, "--names", "names.json", "--annotate", "known.csv")
    page = (tmp_path / "report.html").read_text()
    assert '"row":{"0":"Mine"}' in page
    assert '"categories":["weed"]' in page
    (tmp_path / "known.csv").write_text("kind\nweed\n")
    told = ccot("report", model_file, "--annotate", "known.csv", code=2).stderr
    assert f"annotation 'kind' has 1 values for {n_rows} rows" in told
    (tmp_path / "known.csv").write_text("kind\nweed,tall\n")
    told = ccot("report", model_file, "--annotate", "known.csv", code=2).stderr
    assert "lines of known.csv have more cells than its header" in told
    lines = ["kind,who", *(f"weed,{k}th" for k in range(n_rows))]
    (tmp_path / "known.csv").write_text("\n".join(lines))
    ccot("report", model_file, "--annotate", "known.csv")
    for names in ('{"row": {"x": "Mine"}}', '{"column": 3}'):
        (tmp_path / "names.json").write_text(names)
        told = ccot("report", model_file, "--names", "names.json", code=2).stderr
        assert 'clusters are named by number, such as {"0": "Mine"}' in told


@pytest.mark.parametrize("content", ["kind\n" + "x" * 200_000, "kind\n\u00e9".encode("latin-1")])
def test_annotations_that_are_no_csv_file_are_named(content, ccot, model_file, tmp_path):
    is_text = isinstance(content, str)
    (tmp_path / "known.csv").write_bytes(content.encode() if is_text else content)
    told = ccot("report", model_file, "--annotate", "known.csv", code=2).stderr
    assert told.startswith("error: known.csv is not a CSV file in the encoding utf-8-sig: ")
    assert told.count("\n") == 1


def test_names_in_lists_without_end_are_refused(ccot, model_file, tmp_path):
    (tmp_path / "deep.json").write_text("[" * 100_000)
    told = ccot("report", model_file, "--names", "deep.json", code=2).stderr
    assert told.startswith("error: deep.json is not a JSON file of cluster names: ")


def test_a_folder_is_no_file_to_write(ccot, model_file, table, tmp_path):
    told = ccot("predict", model_file, table, "--out", tmp_path, code=2).stderr
    assert told == f"error: {tmp_path} is a folder: pass the name of a file to write\n"
    assert [path.name for path in tmp_path.parent.glob(".*.part")] == []


def test_an_interruption_does_not_say_that_nothing_was_written(ccot, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("ccot.experiments.demo.run_demo", stop)
    assert ccot("demo", code=130).stderr == "interrupted: stopped before the end\n"


def test_the_demo_is_mounted(ccot, monkeypatch):
    seen = []
    monkeypatch.setattr("ccot.experiments.demo.run_demo", lambda *given: seen.append(given))
    ccot("demo", "--out", "there", "--seed", 3)
    assert seen == [(Path("there"), 3)]


def test_help_and_version(ccot):
    assert ccot("--version").stdout == f"ccot {__version__}\n"
    told = ccot("--version", "--verbose").stdout
    for part in (f"ccot {__version__}\n", "python ", "numpy ", "cores", "devices: "):
        assert part in told
    told = ccot("--help").stdout
    assert "Exit codes" in told
    assert "130" in told
    for command in ("fit", "predict", "report", "simulate", "fit-ratings", "recommend", "serve",
                    "bench", "demo", "paper"):  # fmt: skip
        assert command in told
        shown = ccot(command, "--help").stdout
        assert "For example:" in shown, command
        assert f"ccot {command} " in shown.split("For example:")[1], command


@pytest.mark.parametrize(
    ("typed", "offered"), [("ccot pre", "predict"), ("ccot fit --met", "--method")]
)
def test_shells_complete_commands_and_options(typed, offered, ccot, monkeypatch):
    """As bash asks: the program is called with the line so far in its environment."""
    monkeypatch.setenv("_CCOT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split()) - 1))
    outcome = CliRunner().invoke(app, prog_name="ccot")
    assert offered in outcome.stdout.split()


def test_help_loads_no_library():
    code = (
        "import sys; from ccot.cli import all_commands; all_commands(); "
        "print(*{'numpy', 'scipy', 'sklearn', 'pandas', 'matplotlib'} & sys.modules.keys())"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []


def test_options_of_the_paper_without_a_command_are_those_of_all(ccot):
    outcome = ccot("paper", "--quick", "--methods", "nothing", code=2)
    assert "unknown method nothing" in outcome.stderr


# Progress --------------------------------------------------------------------------------------


@pytest.fixture
def console(monkeypatch):
    monkeypatch.setattr(news, "_PATIENCE", 0.05)
    monkeypatch.setattr(news, "_BETWEEN_LINES", 0.05)
    return lambda terminal: Console(file=io.StringIO(), force_terminal=terminal, width=120)


def wait_for(pattern, console):
    deadline = time.monotonic() + 60
    while not re.search(pattern, console.file.getvalue()):
        assert time.monotonic() < deadline, console.file.getvalue()
        time.sleep(0.01)


def test_long_steps_show_a_bar_with_the_time_left(console):
    terminal = console(True)
    with news.ConsoleProgress(console=terminal).step("reading") as step:
        step.share(0.2)
        step.share(0.4)
        wait_for(r"reading .*━.* 40%, \d+ s to go", terminal)
        step("draws", 10, 20)
        step("draws", 15, 20)
        step("3 x 3 clusters")
        wait_for(r"draws 15 of 20, \d+ s to go; 3 x 3 clusters", terminal)


def test_the_time_beside_the_bar_is_that_since_the_step_began(console, monkeypatch):
    terminal = console(True)
    monkeypatch.setattr(news, "_PATIENCE", 1.0)
    with news.ConsoleProgress(console=terminal).step("fitting"):
        wait_for("0:00:01", terminal)
    assert "0:00:00" not in terminal.file.getvalue()


def test_without_a_terminal_a_line_now_and_then(console):
    log = console(False)
    with news.ConsoleProgress(console=log).step("fitting") as step:
        step("draws", 0, 20)
        wait_for("^fitting: draws 0 of 20\n", log)
        step("draws", 10, 20)
        wait_for(r"\nfitting: draws 10 of 20, \d+ s to go\n$", log)


def test_short_steps_and_quiet_ones_show_nothing(console, monkeypatch):
    terminal = console(True)
    with news.ConsoleProgress(quiet=True, console=terminal).step("reading"):
        time.sleep(0.1)
    monkeypatch.setattr(news, "_PATIENCE", 60)
    with news.ConsoleProgress(console=terminal).step("reading"):
        pass
    assert terminal.file.getvalue() == ""


def test_a_fit_tells_how_far_it_is(ccot, table, monkeypatch):
    told = []
    monkeypatch.setattr(news.StepProgress, "__call__", lambda self, *what: told.append(what))
    ccot("fit", table, "--method", "ccot", "--no-report")
    assert ("draws", 0, 32) in told
