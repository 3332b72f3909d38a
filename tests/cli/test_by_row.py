"""Large files are left where they are, and read row by row."""

import csv
import json

import numpy as np
import pandas as pd
import pytest
import zarr

from ccot import CCOT, TransportCoclustering, load_model
from ccot.cli import fitting, inputs


def column(path, name):
    with path.open() as file:
        return [line[name] for line in csv.DictReader(file)]


@pytest.fixture
def stored(blocks, tmp_path):
    """The same matrix as files of every kind that has rows."""
    frame = pd.DataFrame(blocks.values, index=blocks.rows, columns=blocks.columns)
    np.save(tmp_path / "array.npy", blocks.values)
    frame.to_parquet(tmp_path / "table.parquet")
    (tmp_path / "tables").mkdir()
    frame[:25].to_parquet(tmp_path / "tables" / "a.parquet")
    frame[25:].to_parquet(tmp_path / "tables" / "b.parquet")
    zarr.save_array(str(tmp_path / "array.zarr"), blocks.values)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "estimator"),
    [
        ("array.npy", CCOT),
        ("array.zarr", CCOT),
        ("tables", CCOT),
        ("table.parquet", CCOT),
        ("table.parquet", TransportCoclustering),
    ],
)
def test_reading_by_row_changes_nothing(name, estimator, ccot, stored, blocks):
    method = "ccot" if estimator is CCOT else "transport"
    told = ccot("fit", name, "--method", method, "--no-report", "--out", "rows", "--by-row").stdout
    assert "40 x 30; read row by row" in told
    whole = estimator(random_state=0).fit(blocks.values)
    for file, labels in (("row", whole.row_labels_), ("column", whole.column_labels_)):
        found = column(stored / "rows" / f"{file}_labels.csv", "cluster")
        assert [int(label) for label in found] == labels.tolist()
    named = name.startswith("table")
    names = blocks.rows if named else [str(place) for place in range(40)]
    assert column(stored / "rows" / "row_labels.csv", "name") == names
    model = load_model(stored / "rows" / "model.ccot")
    assert hasattr(model, "row_names_in_") == named
    assert hasattr(model, "feature_names_in_") == named


def test_files_that_would_fill_the_memory_are_read_by_row(ccot, stored, monkeypatch):
    enough = inputs.COPIES * 8 * 40 * 30
    monkeypatch.setattr(inputs, "free_bytes", lambda: enough)
    assert "NumPy array" in ccot("fit", "array.npy", "--dry-run").stdout
    monkeypatch.setattr(inputs, "free_bytes", lambda: enough - 1)
    told = ccot("fit", "array.npy", "--dry-run").stdout
    assert "read row by row" in told
    assert "and is read part by part" in told
    assert "NumPy array" in ccot("fit", "array.npy", "--dry-run", "--in-memory").stdout
    assert "NumPy array" in ccot("fit", "array.npy", "--dry-run", "--method", "ccot-gw").stdout


@pytest.mark.parametrize("name", ["tables", "array.zarr"])
def test_folders_can_be_read_as_a_whole(name, ccot, stored, blocks):
    told = ccot("fit", name, "--method", "ccot-gw", "--out", "out", "--json", "--no-report").stdout
    assert json.loads(told)["input"]["how"] == "a folder, read as a whole"
    assert len(column(stored / "out" / "row_labels.csv", "name")) == 40


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        (("array.npy", "--method", "ccot-gw"), "--method transport and ccot"),
        (("table.parquet", "--long"), "does not work with --long"),
        (("genes.csv", "--index-col", "0"), "numbers its rows"),
        (("-",), "standard input"),
    ],
)
def test_not_everything_has_rows(options, remedy, ccot, stored, table):
    outcome = ccot("fit", *options, "--by-row", code=2)
    assert remedy in outcome.stderr


def test_damaged_files_are_refused_by_row_too(ccot, stored):
    whole = (stored / "table.parquet").read_bytes()
    (stored / "bad.parquet").write_bytes(whole[: len(whole) // 2])
    (stored / "bad.npy").write_bytes(b"")
    (stored / "bad.zarr").mkdir()
    (stored / "bad.zarr" / "zarr.json").write_text("{")
    for name in ("bad.parquet", "bad.npy", "bad.zarr"):
        complaint = ccot("fit", name, "--by-row", code=2).stderr
        assert len(complaint.splitlines()) == 1
        assert "again" in complaint


def test_the_report_of_rows_shows_them(ccot, stored):
    ccot("fit", "table.parquet", "--by-row", "--out", "rows")
    ccot("fit", "table.parquet", "--in-memory", "--out", "whole")
    rows, whole = ((stored / folder / "report.html").read_text() for folder in ("rows", "whole"))
    assert rows == whole
    ccot("report", "rows/model.ccot", "--data", "table.parquet", "--by-row", "--title", "table")
    assert (stored / "report.html").read_text() == rows


def test_no_report_of_more_rows_than_a_browser_bears(ccot, stored, monkeypatch):
    monkeypatch.setattr(fitting, "MAX_MEMBERS", 39)
    outcome = ccot("fit", "array.npy", "--out", "out")
    assert "no report.html: it can show at most 39 rows, and the matrix has 40" in outcome.stderr
    assert not (stored / "out" / "report.html").exists()
    assert (stored / "out" / "model.ccot").exists()


def test_columns_are_left_out_by_row_too(ccot, stored, blocks):
    frame = pd.read_parquet(stored / "table.parquet").assign(kind="x")
    frame.to_parquet(stored / "kinds.parquet")
    told = ccot("fit", "kinds.parquet", "--drop", "kind", "--by-row", "--dry-run").stdout
    assert "40 x 30; read row by row" in told


def test_new_rows_are_placed_by_row(ccot, stored, blocks, model_file):
    expected = ccot("predict", model_file, "table.parquet", "--in-memory").stdout
    assert ccot("predict", model_file, "table.parquet", "--by-row").stdout == expected
    turned = pd.read_parquet(stored / "table.parquet")[blocks.columns[::-1]]
    turned.to_parquet(stored / "turned.parquet")
    assert ccot("predict", model_file, "turned.parquet", "--by-row").stdout == expected
    outcome = ccot("predict", model_file, "array.npy", "--by-row", "--columns", code=2)
    assert "does not work with --columns" in outcome.stderr


@pytest.mark.parametrize("name", ["units.npy", "units.parquet"])
def test_units_are_seen_and_new_rows_placed_whichever_way_a_file_is_read(name, ccot, tmp_path):
    rng = np.random.default_rng(0)
    truth = np.arange(120) % 3
    means = rng.normal(size=(3, 6)) * 4
    values = (means[truth] + rng.normal(size=(120, 6))) * 10.0 ** np.arange(6) + 5
    np.save(tmp_path / "units.npy", values)
    pd.DataFrame(values, columns=list("abcdef")).to_parquet(tmp_path / "units.parquet")
    found = set()
    for way in ("--by-row", "--in-memory"):
        told = ccot("fit", name, way, "--out", way[2:]).stdout
        assert "columns have different units" in told
        found.add((tmp_path / way[2:] / "row_labels.csv").read_text())
        for again in ("--by-row", "--in-memory"):
            placed = ccot("predict", f"{way[2:]}/model.ccot", name, again, "--quiet").stdout
            labels = [line.split(",")[1] for line in placed.splitlines()[1:]]
            assert labels == column(tmp_path / way[2:] / "row_labels.csv", "cluster")
    assert len(found) == 1
