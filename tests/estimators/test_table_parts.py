"""Tables of words, dates and gaps that stay in their files, but for a sample of the rows."""

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from ccot import TransportCoclustering, load_model
from ccot.cli import app
from ccot.io.layout import ReadOptions
from ccot.io.read import read_parts
from ccot.metrics import error_rate
from ccot.sources import TableParts, tables

N_ROWS, N_HELD = 1200, 300
OPTIONS = ReadOptions(index_col=False, tables=True)


@pytest.fixture(autouse=True)
def small_samples(monkeypatch):
    """Make a table of 1200 rows a large one, read in several parts."""
    monkeypatch.setattr(tables, "_FEW_ROWS", 500)
    monkeypatch.setattr(tables, "_SAMPLE_ROWS", N_HELD)
    monkeypatch.setattr("ccot.io.text._PART_CELLS", 200 * 8)


@pytest.fixture
def drawn(tmp_path):
    """A table in a text and a Parquet file, and its three clusters."""
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=N_ROWS)
    frame = pd.DataFrame(
        {
            "id": np.arange(N_ROWS) + 1,
            "height": 170 + 12 * truth + 4 * rng.normal(size=N_ROWS),
            "pay": [f"${1000 * (1 + k) + 200 * x:,.2f}"
                    for k, x in zip(truth, rng.normal(size=N_ROWS), strict=True)],
            "colour": np.array(["red", "blue", "green"])[(truth + (rng.random(N_ROWS) < 0.1)) % 3],
            "visits": rng.poisson(2 + 3 * truth).astype(float),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(50 * truth, unit="D"),
            "member": truth == 1,
        }
    )  # fmt: skip
    frame.loc[rng.random(N_ROWS) < 0.1, ["height", "visits"]] = np.nan
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=500)
    return tmp_path, truth, frame


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_clusters_of_a_sample_are_those_of_all_rows(drawn, name):
    folder, truth, _ = drawn
    model = TransportCoclustering(3, random_state=0).fit(folder / name)
    assert len(model.row_labels_) == N_ROWS
    assert error_rate(truth, model.row_labels_) < 0.02
    assert f"clusters found in {N_HELD} of {N_ROWS} rows, then all assigned" in model.summary()
    assert "left out: id (identifier)" in model.preparation_.sentence
    kinds = [column.kind.kind for column in model.preparation_.columns]
    assert kinds == ["identifier", "number", "money", "category", "count", "date", "yes/no"]
    assert not hasattr(model, "row_names_in_")
    # Clusters are described by the sample and counted by all rows.
    assert f"sizes {', '.join(map(str, np.bincount(model.row_labels_)))}" in model.summary()
    assert {"height", "pay", "since"} & set(model.describe_clusters()["column"])
    np.testing.assert_array_equal(model.predict(folder / name), model.row_labels_)
    np.testing.assert_array_equal(model.predict_confidence(folder / name), model.row_confidence_)
    model.save(folder / "model.ccot")
    again = load_model(folder / "model.ccot").predict(folder / "t.parquet")
    np.testing.assert_array_equal(again, model.row_labels_)


def test_text_and_parquet_have_the_same_sample(drawn):
    folder, _, frame = drawn
    text, parquet = (
        TableParts(lambda name=name: read_parts(folder / name, OPTIONS))
        for name in ("t.csv", "t.parquet")
    )
    assert text.shape == parquet.shape == frame.shape
    for held in (text, parquet):
        assert len(held.rows) == N_HELD
        assert (np.diff(held.rows) > 0).all()
        assert held.rows[0] < 30
        assert held.rows[-1] > N_ROWS - 30
        colours = frame.colour.to_numpy()[held.rows]
        np.testing.assert_array_equal(held.sample.columns["colour"], colours)


def test_kinds_are_corrected_where_rows_stay_in_the_file(drawn):
    folder, _, _ = drawn
    told = {"visits": "category", "colour": "text"}
    model = TransportCoclustering(column_kinds=told, random_state=0).fit(folder / "t.parquet")
    kinds = {column.kind.name: column.kind.kind for column in model.preparation_.columns}
    assert kinds["visits"] == "category"
    assert kinds["colour"] == "text"


def test_words_among_numbers_are_gaps_and_said(drawn):
    folder, truth, frame = drawn
    frame["height"] = frame["height"].astype(object)
    frame.loc[1100, "height"] = "tall"
    held = TableParts(lambda: read_parts(folder / "t.csv", OPTIONS)).rows
    frame.loc[np.setdiff1d(np.arange(N_ROWS), held)[:2], "colour"] = "pink"
    frame.to_csv(folder / "t.csv", index=False)
    with (
        pytest.warns(UserWarning, match=r"'height': 1 of \d+ .*'tall' in line 1102\) .*missing"),
        pytest.warns(UserWarning, match=r"unknown categories or formats .*: 2 of 'colour'"),
    ):
        model = TransportCoclustering(3, random_state=0).fit(folder / "t.csv")
    assert error_rate(truth, model.row_labels_) < 0.02


def test_a_column_that_becomes_words_late_is_one_of_words(tmp_path):
    cells = [str(i % 3) for i in range(1000)] + ["x"] * 200
    lines = [f"{cell},{i % 7}.5,b{i % 2}" for i, cell in enumerate(cells)]
    (tmp_path / "t.csv").write_text("\n".join(["code,size,word", *lines]) + "\n")
    held = TableParts(lambda: read_parts(tmp_path / "t.csv", OPTIONS)).sample.columns["code"]
    assert set(held.tolist()) == {"0", "1", "2", "x"}


def test_large_text_of_one_unit_says_what_to_do(tmp_path):
    pd.DataFrame(np.random.default_rng(0).normal(size=(N_ROWS, 4))).to_csv(tmp_path / "t.csv")
    with pytest.raises(
        ValueError, match=r"numbers in the same unit: store the table as \.npy or Pa"
    ):
        TransportCoclustering(scale="none").fit(tmp_path / "t.csv")


def test_a_table_without_rows_is_refused(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n")
    with pytest.raises(ValueError, match="no rows: pass data"):
        TransportCoclustering().fit(tmp_path / "t.csv")


def test_command_line_reads_large_tables_by_row(drawn, monkeypatch):
    folder, truth, _ = drawn
    monkeypatch.chdir(folder)
    fit = ["fit", "t.csv", "--by-row", "--n-row-clusters", "3", "--kind", "visits=number"]
    told = CliRunner().invoke(app, [*fit, "--out", "out"])
    assert told.exit_code == 0
    assert f"{N_ROWS} x 7; read row by row" in told.stdout
    found = pd.read_csv("out/row_labels.csv")
    assert error_rate(truth, found.cluster.to_numpy()) < 0.02
    height = pd.read_csv("out/blocks.csv").groupby("row_cluster")["mean"].max()
    assert height.notna().any()
    assert Path("out/report.html").exists()
    placed = CliRunner().invoke(app, ["predict", "out/model.ccot", "t.parquet", "--by-row"])
    again = pd.read_csv(io.StringIO(placed.stdout))
    np.testing.assert_array_equal(again.cluster, found.cluster)
    refused = CliRunner().invoke(app, ["fit", "t.csv", "--by-row", "--method", "ccot"])
    assert refused.exit_code == 2
    assert "only TransportCoclustering reads tables" in refused.stderr
