"""TransportCoclustering on data frames and tables, and what it does to units and levels."""

import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.compose import ColumnTransformer
from sklearn.metrics import normalized_mutual_info_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ccot import CCOT, TransportCoclustering, load_model, sources
from ccot.blocks import streaming
from ccot.blocks.tables import TablePreparation
from ccot.io import read_table
from ccot.io.matrix import Table
from ccot.metrics import error_rate
from ccot.report import write_report
from ccot.sources import FunctionSource
from tests.blocks.tables import draw_table

RNG = np.random.default_rng(0)
TRUTH = np.repeat([0, 1, 2], 30)
DATA = Path(os.environ.get("CCOT_DATA", Path(__file__).parents[3] / "shared" / "data")) / "tables"


def frame():
    """Three clusters of rows in columns of several kinds, with gaps."""
    columns = pd.DataFrame(
        {
            "name": [f"row {i}" for i in range(90)],
            "height": 170 + 15 * TRUTH + 4 * RNG.normal(size=90),
            "visits": RNG.poisson(4 + 3 * (TRUTH == 1)),
            "colour": np.array(["red", "blue", "green"])[(TRUTH + (RNG.random(90) < 0.1)) % 3],
            "member": np.where(TRUTH == 2, "yes", "no"),
            "growth": [f"{5 * k + RNG.normal():.1f}%" for k in TRUTH],
            "since": pd.to_datetime("2020-01-01") + pd.to_timedelta(100 * TRUTH, unit="D"),
            "unit": "cm",
        }
    )
    gaps = RNG.random(columns.shape) < 0.1
    gaps[:, [0, 7]] = False
    return columns.mask(gaps)


FRAME = frame()


def fit(X, *numbers, **params):
    return TransportCoclustering(*numbers, random_state=0, **params).fit(X)


@pytest.fixture(scope="module")
def model():
    return fit(FRAME)


def test_a_frame_of_words_and_gaps_is_fitted(model):
    assert model.n_row_clusters_ == 3
    assert error_rate(TRUTH, model.row_labels_) < 0.03
    kinds = {column.kind.name: column.kind.kind for column in model.preparation_.columns}
    assert kinds == {
        "name": "identifier",
        "height": "number",
        "visits": "count",
        "colour": "category",
        "member": "yes/no",
        "growth": "share",
        "since": "date",
        "unit": "constant",
    }
    assert model.row_names_in_[4] == "row 4"
    assert model.column_labels_[[0, 7]].tolist() == [-1, -1]
    assert model.column_signs_[[0, 7]].tolist() == [0, 0]
    assert model.block_means_.shape == (3, model.n_column_clusters_)
    # Columns that were left out are in no cluster, and in no doubt about it.
    doubtful = int((model.column_confidence_[model.column_labels_ >= 0] < 0.9).sum()) or "none"
    lines = [line for line in model.summary().splitlines() if "column clusters: sizes" in line]
    assert lines[0].endswith(f"confidence below 0.9: {doubtful}")
    assert ", 6 columns in " in model.summary()
    assert "row levels kept; left out: name (identifier), unit (constant)" in model.summary()
    assert list(model.to_frame("columns")["name"]) == list(FRAME.columns)


def test_means_of_dates_are_dates(tmp_path):
    noise = np.random.default_rng(1).integers(0, 40, len(TRUTH))
    when = {
        "joined": pd.Timestamp("2019-03-01") + pd.to_timedelta(300 * TRUTH + noise, unit="D"),
        "seen": pd.Timestamp("2020-01-01") + pd.to_timedelta(600 * TRUTH + noise, unit="m"),
        "opens": [f"{8 + 4 * k}:{minutes:02d}" for k, minutes in zip(TRUTH, noise, strict=True)],
    }
    frame = FRAME[["height", "colour"]].assign(**when)
    model = fit(frame, 3, None)
    lines = model.describe_clusters().query("side == 'row'").set_index(["column", "cluster"])
    first = model.row_labels_[TRUTH == 0][0]
    members = frame[model.row_labels_ == first]
    told = {name: lines.loc[(name, first)] for name in when}
    assert told["joined"]["mean"] == members["joined"].mean().date()
    assert told["joined"]["overall"] == frame["joined"].mean().date()
    assert told["seen"]["mean"] == members["seen"].mean().round("min")
    assert told["opens"]["mean"].strftime("%H") == "08"
    assert told["joined"]["direction"] == "low"
    assert f"early joined {members['joined'].mean().date()} (-1." in model.summary()
    page = write_report(tmp_path / "page.html", model, matrix=frame).read_text(encoding="utf-8")
    assert f"mean {members['joined'].mean().date()}, of all {frame['joined'].mean().date()}" in page


def test_frames_of_polars_and_tables_are_the_same(model):
    from ccot.io.frames import table_from_frame

    for same in (pl.from_pandas(FRAME), table_from_frame(FRAME)):
        np.testing.assert_array_equal(fit(same).row_labels_, model.row_labels_)


def test_a_model_remembers_the_table(model, tmp_path):
    again = load_model(model.save(tmp_path / "table.ccot"))
    np.testing.assert_array_equal(again.predict(FRAME), model.row_labels_)
    np.testing.assert_allclose(again.predict_confidence(FRAME), model.row_confidence_)
    assert str(again.preparation_) == str(model.preparation_)
    assert again.cut(2, 2).row_labels.max() == 1
    assert again.summary() == model.summary()
    assert again.score(FRAME) == pytest.approx(model.score(FRAME))


def test_what_new_rows_lack_is_a_gap_and_said(model):
    with pytest.warns(UserWarning, match="2 of 6 fitted columns are not in X.*colour, member"):
        labels = model.predict(FRAME.drop(columns=["colour", "member", "name", "unit"]))
    assert np.mean(labels == model.row_labels_) > 0.9
    with pytest.warns(UserWarning, match="unknown categories or formats.*: 90 of"):
        model.predict(FRAME.assign(colour="violet"))
    with pytest.raises(ValueError, match="none of the fitted columns"):
        model.predict(FRAME[["name"]])


def test_a_row_of_gaps_has_no_confidence(model):
    empty = FRAME.iloc[:1].mask(np.ones((1, 8), dtype=bool))
    assert model.predict(empty)[0] == np.bincount(model.row_labels_).argmax()
    assert model.predict_confidence(empty)[0] == 0


def test_the_order_of_columns_does_not_matter_to_predict(model):
    turned = FRAME[FRAME.columns[::-1]]
    np.testing.assert_array_equal(model.predict(turned), model.row_labels_)


def test_cuts_leave_out_what_was_left_out(model):
    cut = model.cut(3, 1)
    assert cut.column_labels.tolist() == [-1, 0, 0, 0, 0, 0, 0, -1]
    assert 0 < cut.share_kept <= 1
    assert model.cut(*model.hierarchy_.shape).share_kept == 1


def test_kinds_can_be_corrected():
    corrected = fit(FRAME, column_kinds={"visits": "category", "colour": "text"})
    assert corrected.preparation_.dropped == ("name", "colour", "unit")
    assert corrected.preparation_.columns[2].kind.reason == "chosen by the user"
    with pytest.raises(ValueError, match="unknown kind"):
        fit(FRAME, column_kinds={"visits": "words"})


def test_new_columns_are_placed(model):
    labels = model.predict_columns(np.array([TRUTH, -TRUTH], dtype=float))
    assert labels[0] == labels[1] < model.n_column_clusters_


def test_a_checkpoint_holds_a_table(tmp_path):
    first, again = (fit(FRAME, checkpoint=tmp_path / "kept").row_labels_ for _ in range(2))
    np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize(("rows", "columns"), [(1, 8), (90, 1)])
def test_tables_too_small_are_refused(rows, columns):
    with pytest.raises(ValueError, match="at least two of each"):
        fit(FRAME.iloc[:rows, 3 : 3 + columns])


# Numbers ---------------------------------------------------------------------------------------


def measurements():
    X = RNG.normal(size=(90, 5)) + 3 * RNG.normal(size=(3, 5))[TRUTH]
    return X * [1, 1e3, 0.1, 1e5, 10] + [0, 1e4, 50, 0, 500]


@pytest.mark.parametrize("wrap", [np.asarray, pd.DataFrame])
@pytest.mark.filterwarnings("error")
def test_columns_of_different_units_are_scaled_and_rows_keep_their_level(wrap):
    X = wrap(measurements())
    found = fit(X, 3)
    assert "columns have different units" in found.summary()
    assert error_rate(TRUTH, found.row_labels_) < 0.03
    np.testing.assert_array_equal(found.predict(X), found.row_labels_)
    assert not hasattr(found, "feature_names_in_")


def test_no_scale_leaves_units_as_they_are():
    assert not isinstance(fit(measurements(), scale="none").preparation_, TablePreparation)


@pytest.mark.parametrize("scale", ["standard", "robust", "log"])
@pytest.mark.parametrize("center", ["none", "columns", "rows", "both"])
def test_scales_and_centres_are_as_asked_and_said(scale, center):
    X = np.abs(RNG.normal(size=(40, 12)))
    found = fit(X, 2, 2, scale=scale, center=center)
    assert "(chosen by the user)" in found.preparation_.sentence
    np.testing.assert_array_equal(found.predict(X), found.row_labels_)
    assert (found.family_, found.family_reason_[:17]) == ("gaussian", "scale or center w")


def test_levels_of_rows_are_kept_where_they_are_what_varies():
    """Life expectancy by country and year: countries differ in level first of all."""
    level = np.array([40.0, 58.0, 76.0])[TRUTH][:, None] + RNG.normal(size=(90, 1))
    X = level + np.linspace(0, 8, 12) * RNG.uniform(0.5, 1.5, (90, 1)) + RNG.normal(size=(90, 12))
    years = [str(year) for year in range(1952, 2012, 5)]
    found = fit(pd.DataFrame(X, columns=years), 3)
    assert error_rate(TRUTH, found.row_labels_) == 0
    assert "row levels kept (rows differ in level" in found.summary()


def test_a_table_of_numbers_is_a_matrix_with_names():
    X = RNG.normal(size=(40, 12))
    table = Table({f"c{j}": X[:, j] for j in range(12)}, [f"r{i}" for i in range(40)])
    found = fit(table, 2, 2)
    assert (found.feature_names_in_[3], found.row_names_in_[7]) == ("c3", "r7")
    np.testing.assert_array_equal(found.row_labels_, fit(X, 2, 2).row_labels_)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        turned = Table(dict(reversed(table.columns.items())))
        np.testing.assert_array_equal(found.predict(turned), found.row_labels_)
    with pytest.raises(ValueError, match="are missing, the first one 'c1'"):
        found.predict(Table({"c0": X[:, 0]}))


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_annotated_data_bring_their_names(make):
    anndata = pytest.importorskip("anndata")
    X = RNG.poisson(3, size=(40, 12)).astype(float)
    found = fit(anndata.AnnData(make(X)), 2, 2)
    assert (found.feature_names_in_[3], found.row_names_in_[7]) == ("3", "7")
    np.testing.assert_array_equal(found.predict(anndata.AnnData(make(X))), found.row_labels_)


def test_pipelines_prepare_as_before():
    prepared = ColumnTransformer(
        [("n", StandardScaler(), ["height"]), ("c", OneHotEncoder(), ["member", "colour"])],
        sparse_threshold=0,
    )
    pipe = make_pipeline(prepared, TransportCoclustering(3, random_state=0))
    whole = FRAME.dropna()
    assert pipe.fit(whole).predict(whole).shape == (len(whole),)


# Real tables -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_eleven_tables():
    if not DATA.is_dir():
        pytest.skip("no real tables here: set CCOT_DATA to the folder that holds them")
    found, given = {}, {}
    for path in sorted(set(DATA.glob("*.csv")) - set(DATA.glob("*.labels.csv"))):
        X = pd.read_csv(path, na_values=["?"])
        y = pd.read_csv(path.with_suffix(".labels.csv")).label.astype(str)
        found[path.stem] = normalized_mutual_info_score(y, fit(X).row_labels_)
        given[path.stem] = normalized_mutual_info_score(y, fit(X, y.nunique()).row_labels_)
    assert len(found) == 11
    assert np.mean(list(found.values())) >= 0.46
    assert np.mean(list(given.values())) >= 0.46
    assert found["penguins"] >= 0.75


def test_planted_tables_through_frames():
    table, truth = draw_table(2)
    found = fit(pd.DataFrame(table.columns))
    assert found.n_row_clusters_ == 5
    assert error_rate(truth, found.row_labels_) < 0.03


@pytest.mark.usefixtures("one_torch_thread")
@pytest.mark.parametrize("wanted", [None, 4])
def test_rows_of_a_table_are_moved_alike_on_a_device(wanted):
    pytest.importorskip("torch")
    table = draw_table(0, n_rows=200)[0]
    here, there = (
        TransportCoclustering(wanted, random_state=0, device=device).fit(table)
        for device in (None, "cpu")
    )
    np.testing.assert_array_equal(here.row_labels_, there.row_labels_)
    np.testing.assert_array_equal(here.column_labels_, there.column_labels_)
    np.testing.assert_array_equal(here.predict(table), there.predict(table))


def test_frames_of_numbers_are_fitted_however_their_columns_are_held():
    days = np.random.default_rng(0).integers(1, 40, (60, 6)).astype(float)
    days[:30, :3] += 80
    plain = pd.DataFrame(days, columns=list("abcdef"))
    labels = TransportCoclustering(random_state=0).fit(plain).row_labels_
    durations = plain.assign(b=pd.to_timedelta(plain["b"], unit="D"))
    for same in (durations, pl.from_pandas(durations), pl.from_pandas(plain).lazy()):
        model = TransportCoclustering(random_state=0).fit(same)
        np.testing.assert_array_equal(model.row_labels_, labels)
        np.testing.assert_array_equal(model.predict(same), labels)
    for frame in (durations, pl.from_pandas(durations), plain.assign(b=pd.Timestamp(2026, 1, 1))):
        with pytest.raises(ValueError, match=r"dates or times|are not numeric"):
            CCOT().fit(frame)


def test_intervals_are_categories():
    frame = pd.DataFrame({"age": pd.IntervalIndex.from_breaks([0, 9, 20]).repeat(20), "x": 1.0})
    frame["x"] = np.random.default_rng(0).normal(size=40)
    model = TransportCoclustering(random_state=0).fit(frame)
    assert model.preparation_.columns[0].kind.levels == ("(0, 9]", "(9, 20]")


def test_a_column_alone_is_no_table():
    with pytest.raises(ValueError, match=r"2-dimensional|2D"):
        TransportCoclustering().fit(pd.Series(np.arange(9.0)))


def test_paths_and_frames_that_are_to_be_read_are_the_same_table(tmp_path):
    da, pa = pytest.importorskip("dask.dataframe"), pytest.importorskip("pyarrow")
    mixed = pd.DataFrame(draw_table(1, n_rows=200)[0].columns)
    labels = TransportCoclustering(random_state=0).fit(mixed).row_labels_
    lazy = pl.from_pandas(mixed).lazy()
    for same in (lazy, da.from_pandas(mixed, npartitions=3), pa.Table.from_pandas(mixed)):
        found = TransportCoclustering(random_state=0).fit(same)
        np.testing.assert_array_equal(found.row_labels_, labels)
        np.testing.assert_array_equal(found.predict(same), labels)
    numbers = mixed.filter(like="number")
    numbers.to_parquet(tmp_path / "numbers.parquet")
    np.save(tmp_path / "numbers.npy", numbers.to_numpy())
    labels = TransportCoclustering(random_state=0).fit(numbers).row_labels_
    for path in (tmp_path / "numbers.parquet", tmp_path / "numbers.npy"):
        model = TransportCoclustering(random_state=0).fit(path)
        assert "columns have different units" in model.summary()
        np.testing.assert_array_equal(model.row_labels_, labels)
        np.testing.assert_array_equal(model.predict(path), labels)
    mixed.to_parquet(tmp_path / "mixed.parquet")
    mixed.to_csv(tmp_path / "mixed.csv", index=False)
    labels = TransportCoclustering(random_state=0).fit(mixed).row_labels_
    for path in (tmp_path / "mixed.parquet", tmp_path / "mixed.csv"):
        model = TransportCoclustering(random_state=0).fit(path)
        np.testing.assert_array_equal(model.row_labels_, labels)
        np.testing.assert_array_equal(model.predict(path), labels)


def test_units_of_rows_that_are_read_in_parts_are_seen(monkeypatch):
    monkeypatch.setattr(streaming, "POOL_ENTRIES", 2**14)
    monkeypatch.setattr(streaming, "POOL_ROWS", 2**9)
    table, truth = draw_table(3, n_rows=4000, gaps=0)
    X = np.column_stack([values for name, values in table.columns.items() if name[0] != "w"])
    source = FunctionSource(lambda first, last: X[first:last], X.shape)
    monkeypatch.setattr(sources.tables, "_FEW_ROWS", 1000)
    monkeypatch.setattr(sources.tables, "_SAMPLE_ROWS", 600)
    model = TransportCoclustering(random_state=0).fit(source)
    assert "each column of numbers divided by its" in model.summary()
    assert "clusters found in 600 of 4000 rows, then all assigned" in model.summary()
    assert error_rate(truth, model.row_labels_) < 0.05
    told = TransportCoclustering(column_kinds={"x0": "text"}, random_state=0).fit(source)
    assert told.column_labels_[0] == -1


@pytest.mark.parametrize("library", [pd, pl])
def test_estimators_for_numbers_name_the_columns_of_words(library):
    mixed = library.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["x", "y", "z"], "c": [1.0, 0.0, 2.0]})
    with pytest.raises(ValueError, match=r"columns \['b'\] are not numeric: drop them, or"):
        CCOT().fit(mixed)


def test_dates_and_truth_that_a_type_declares_are_also_written_as_text(tmp_path):
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(100 * TRUTH, unit="D")
    typed = FRAME.assign(since=days, member=TRUTH == 2)
    typed.to_csv(tmp_path / "text.csv", index=False)
    text = read_table(tmp_path / "text.csv")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for fitted, new in ((typed.drop(columns="member"), text), (text, typed)):
            model = fit(fitted)
            np.testing.assert_array_equal(model.predict(new), model.row_labels_)


def test_columns_of_one_name_are_told_apart():
    twice = pd.DataFrame(np.column_stack([TRUTH, 100 * TRUTH + RNG.normal(size=90), TRUTH]))
    model = fit(twice.set_axis(["a", "b", "a"], axis=1))
    assert model.feature_names_in_.tolist() == ["a", "b", "a (3)"]


def test_infinity_is_no_gap():
    with pytest.raises(ValueError, match="column 'height' contains infinity: replace it"):
        fit(FRAME.assign(height=np.inf))


def test_a_number_that_noise_is_asked_for_is_warned_about():
    rng = np.random.default_rng(0)
    noise = pd.DataFrame({"a": rng.normal(size=200), "b": rng.choice(list("xyz"), 200)})
    with pytest.warns(UserWarning, match="one row cluster describes the table better than"):
        model = fit(noise, 3)
    assert model.n_row_clusters_ == 3
    assert fit(noise).n_row_clusters_ == 1


def test_summaries_say_which_row_clusters_of_a_table_come_back(model):
    assert "all clusters are found again with half of the data" in model.summary()
    assert (model.reproducibility_.row.points > 0.5).mean() > 0.9
