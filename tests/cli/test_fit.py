import csv
import json
import re

import numpy as np
import pytest
import scipy.sparse as sp

from ccot import CCOT, TransportCoclustering, load_model
from ccot.cli.results import FILES
from ccot.datasets import load_simulated
from ccot.estimators import described


def labels_in(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def test_a_table_becomes_a_folder(ccot, table, blocks, tmp_path):
    told = ccot("fit", table).stdout
    folder = tmp_path / "genes-ccot"
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["genes-ccot", "genes.csv"]
    python = TransportCoclustering(random_state=0).fit(blocks.values)
    rows = labels_in(folder / "row_labels.csv")
    assert [line["name"] for line in rows] == blocks.rows
    assert [int(line["cluster"]) for line in rows] == python.row_labels_.tolist()
    np.testing.assert_allclose(
        [float(line["confidence"]) for line in rows], python.row_confidence_, atol=1e-4
    )
    columns = labels_in(folder / "column_labels.csv")
    assert [line["name"] for line in columns] == blocks.columns
    assert [int(line["cluster"]) for line in columns] == python.column_labels_.tolist()
    means = [float(line["mean"]) for line in labels_in(folder / "blocks.csv")]
    np.testing.assert_array_equal(means, python.block_means_.ravel())
    run = json.loads((folder / "run.json").read_text())
    assert run["input"]["shape"] == [40, 30]
    assert run["seed"] == 0
    assert run["seconds"].keys() == {"read", "fit", "write"}
    assert run["versions"].keys() >= {"ccot", "python", "numpy"}
    assert python.summary().splitlines()[0] in told
    assert re.search(r"    0: (high|low) s\d+ [\d.]+ \([+-]\d\.\d sd\), ", told)
    assert "works with noisy data" in told
    assert "row names from column 'gene'" in told
    assert "genes" in (folder / "report.html").read_text()


def test_gaps_are_counted(ccot, tmp_path):
    cells = np.random.default_rng(0).normal(size=(8, 6)).round(2).astype(str)
    cells[[0, 3, 3], [1, 2, 4]] = ["", "NA", ""]
    (tmp_path / "gaps.csv").write_text("\n".join(map(",".join, cells)))
    told = ccot("fit", "gaps.csv", "--dry-run").stdout
    assert told.startswith("gaps.csv: 8 x 6, 3 values missing; ")
    whole = ccot("fit", "-", "--dry-run", stdin="1,2\n3,4\n").stdout
    assert whole.startswith("standard input: 2 x 2; ")


def test_fit_predict_and_python_agree(ccot, table, blocks, tmp_path):
    ccot("fit", table, "--out", "out/deep", "--no-report")
    model_file = tmp_path / "out" / "deep" / "model.ccot"
    fitted = [int(line["cluster"]) for line in labels_in(model_file.parent / "row_labels.csv")]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    new = elsewhere / "new.csv"
    ccot("predict", model_file, table, "--out", new)
    placed = labels_in(new)
    assert [line["name"] for line in placed] == blocks.rows
    assert [int(line["cluster"]) for line in placed] == fitted
    model = load_model(model_file)
    with pytest.warns(UserWarning, match="feature names"):
        np.testing.assert_array_equal(model.predict(blocks.values), fitted)
    assert model.verbose == 0
    assert list(model.row_names_in_) == blocks.rows


@pytest.mark.parametrize("method", ["ccot", "ccot-gw", "transport"])
def test_methods_and_numbers(method, ccot, table, tmp_path):
    told = ccot("fit", table, "--method", method, "--rows", 2, "--columns", 3, "--json",
                "--no-report", "--jobs", 1).stdout  # fmt: skip
    run = json.loads(told)
    assert (run["result"]["row_clusters"], run["result"]["column_clusters"]) == (2, 3)
    assert run["method"]["reason"] == "given by --method"
    assert run["folder"] == "genes-ccot"
    model = load_model(tmp_path / "genes-ccot" / "model.ccot")
    assert (model.n_row_clusters, model.n_column_clusters) == (2, 3)


def test_options_reach_the_estimator(ccot, table, tmp_path):
    ccot("fit", table, "--method", "ccot", "--reg", "0.5", "--seed", 7, "--no-report")
    model = load_model(tmp_path / "genes-ccot" / "model.ccot")
    assert isinstance(model, CCOT)
    assert (model.reg, model.random_state) == (0.5, 7)
    run = json.loads(ccot("fit", table, "--family", "gaussian", "--json", "--no-report").stdout)
    assert run["method"]["parameters"]["family"] == "gaussian"
    assert "family gaussian: chosen by the user" in run["result"]["summary"][1]


@pytest.mark.parametrize(
    "options",
    [("--reg", "1"), ("--method", "ccot", "--reg", "much"), ("--method", "kmeans"),
     ("--method", "ccot", "--family", "gaussian"), ("--rows", "0"), ("--unheard",)],
)  # fmt: skip
def test_options_that_make_no_sense(options, ccot, table):
    outcome = ccot("fit", table, *options, code=2)
    assert options[-2 if len(options) > 1 else -1] in outcome.output
    assert "Traceback" not in outcome.output


def test_sparse_and_long_inputs(ccot, tmp_path, blocks):
    counts = np.random.default_rng(0).poisson(np.where(blocks.values > 4, 2.0, 0.05))
    matrix = sp.csr_array(counts)
    sp.save_npz(tmp_path / "words.npz", matrix)
    ccot("fit", "words.npz", "--quiet", "--no-report")
    lines = ["who,what,much"]
    lines += [f"u{i},w{j},{counts[i, j]}" for i, j in np.argwhere(counts)]
    ccot("fit", "-", "--long", "--out", "piped", "--no-report", stdin="\n".join(lines))
    rows = {line["name"]: line["cluster"] for line in labels_in(tmp_path / "piped/row_labels.csv")}
    assert rows.keys() == {f"u{i}" for i in range(40)}
    positions = labels_in(tmp_path / "words-ccot" / "row_labels.csv")
    assert [line["name"] for line in positions] == [str(i) for i in range(40)]


def test_quiet_says_nothing_and_dry_runs_do_nothing(ccot, table, tmp_path):
    assert ccot("fit", table, "--quiet", "--no-report").output == ""
    before = sorted(tmp_path.rglob("*"))
    told = ccot("fit", table, "--dry-run", "--out", "new").stdout
    assert "40 x 30" in told
    assert "would write" in told
    assert "the fit will take about" in told
    assert sorted(tmp_path.rglob("*")) == before


def test_results_replace_results_and_nothing_else(ccot, table, tmp_path):
    folder = tmp_path / "genes-ccot"
    ccot("fit", table)
    (folder / "notes.txt").write_text("mine")
    ccot("fit", table, "--no-report", "--rows", 2)
    names = {path.name for path in folder.iterdir()}
    assert names == {*FILES, "notes.txt"} - {"report.html"}
    assert load_model(folder / "model.ccot").n_row_clusters == 2


def stop(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.parametrize("where", ["ccot.TransportCoclustering.fit", "ccot.report.write_report"])
def test_interruptions_leave_what_was_there(where, ccot, table, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "ccot.persistence.checkpoint.SECONDS", np.inf
    )  # no checkpoint, be the machine slow
    ccot("fit", table, "--no-report", "--out", "old")
    before = {path: path.read_bytes() for path in (tmp_path / "old").iterdir()}
    monkeypatch.setattr(where, stop)
    first = ccot("fit", table, "--out", "fresh", code=130)
    assert first.stderr == "interrupted: nothing was written\n"
    again = ccot("fit", table, "--out", "old", code=130)
    assert "and old was not changed" in again.stderr
    assert {path: path.read_bytes() for path in (tmp_path / "old").iterdir()} == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["genes.csv", "old"]


def test_warnings_are_told_and_kept(ccot, table, tmp_path, monkeypatch):
    import warnings

    fit = TransportCoclustering.fit

    def warn(self, X, y=None):
        warnings.warn("take care:\n mind the step", UserWarning, stacklevel=1)
        return fit(self, X)

    monkeypatch.setattr(TransportCoclustering, "fit", warn)
    outcome = ccot("fit", table, "--no-report")
    assert "warning: take care: mind the step\n" in outcome.stderr
    run = json.loads((tmp_path / "genes-ccot" / "run.json").read_text())
    assert run["result"]["warnings"] == ["take care: mind the step"]
    ccot("fit", table, "--out", "shown")
    assert "take care: mind the step" in (tmp_path / "shown" / "report.html").read_text()


@pytest.mark.parametrize(("factor", "told"), [(1, False), (100, True)])
def test_a_column_that_outweighs_the_others_is_named(factor, told, ccot, blocks, tmp_path):
    values = blocks.values[:, :5].copy()
    values[:, 3] *= factor
    lines = ["age,height,hue,income,kind,size", *(",".join([*map(str, row[:4]), "x", str(row[4])])
             for row in values.tolist())]  # fmt: skip
    (tmp_path / "units.csv").write_text("\n".join(lines))
    outcome = ccot("fit", "units.csv", "--drop", "kind", "--no-report")
    scaled = "divided by its standard deviation" in outcome.stdout
    assert ("warning: column 'income' has " in outcome.stderr or scaled) == told


def test_folders_that_cannot_be_written(ccot, table, tmp_path):
    (tmp_path / "taken").write_text("mine")
    outcome = ccot("fit", table, "--out", "taken", code=2)
    assert "taken is not a folder, or is a broken link" in outcome.stderr
    assert (tmp_path / "taken").read_text() == "mine"


def test_names_that_a_spreadsheet_would_run(ccot, tmp_path):
    matrix = load_simulated("D3", random_state=0).data[:30, :20]
    names = ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(1)", "-1.5", *map(str, range(25))]
    lines = [",".join(["gene", *(f"@c{k}" for k in range(20))])]
    lines += [",".join([name, *map(str, row)]) for name, row in zip(names, matrix, strict=True)]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    fit = ("fit", "a.csv", "--index-col", "gene", "--out", "out", "--jobs", 100_000)
    for option, mark in ((), "'"), (("--raw-names",), ""):
        ccot(*fit, *option)
        for what, expected in (("row", names[:4]), ("column", ["@c0"])):
            written = (tmp_path / "out" / f"{what}_labels.csv").read_text().splitlines()[1:]
            found = [line.rpartition(",")[0].rpartition(",")[0] for line in written]
            assert found[: len(expected)] == [mark + name for name in expected]
        assert "\n-1.5," in (tmp_path / "out" / "row_labels.csv").read_text()
        out = ccot("predict", "out/model.ccot", "a.csv", "--index-col", "gene", *option).stdout
        assert f"\n{mark}=cmd" in out
        ccot("report", "out/model.ccot", "--out", "out/again.html", *option)
        for page in ("report.html", "again.html"):
            told = f'"raw_names":{"true" if option else "false"}'
            assert told in (tmp_path / "out" / page).read_text(encoding="utf-8")


def test_clusters_are_described_once_and_by_names(ccot, table, tmp_path, monkeypatch):
    # As a matrix that is too large to be copied.
    monkeypatch.setattr("ccot.estimators.described._COPIED", 0)
    seen, portray = [], described.portray_sides
    monkeypatch.setattr(described, "portray_sides", lambda *args: seen.append(1) or portray(*args))
    ccot("fit", table, "--method", "ccot", "--no-report")
    assert len(seen) == 1
    rows, columns = load_model(tmp_path / "genes-ccot" / "model.ccot")._portraits()
    assert rows[0].traits[0].name.startswith("s")
    assert columns[0].traits[0].name.startswith("gene_")


def test_units_differ_and_nothing_has_a_name(ccot, tmp_path):
    rng = np.random.default_rng(0)
    centres = np.outer(np.arange(60) % 2, [3000, 3, 0.04, 0])
    values = rng.normal(size=(60, 4)) * [1000, 1, 0.01, 0] + centres
    np.savetxt(tmp_path / "units.csv", values, delimiter=",")
    told = ccot("fit", "units.csv", "--n-row-clusters", 2).stdout
    assert "left out: x3" in told
    assert (tmp_path / "units-ccot" / "report.html").exists()
