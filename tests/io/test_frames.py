import datetime
from datetime import time

import numpy as np
import pandas as pd
import polars as pl
import pytest

from ccot.io.frames import is_frame, table_from_frame

DAYS = [datetime.date(2020, 1, 1), None, datetime.date(2020, 1, 3)]


def pandas_frame():
    return pd.DataFrame(
        {
            "whole": [1, 2, 3],
            "gaps": pd.array([1, None, 3], dtype="Int64"),
            "flag": pd.array([True, None, False], dtype="boolean"),
            "word": ["a", None, "c"],
            "level": pd.Categorical(["x", "y", None]),
            "grade": pd.Categorical(["lo", "hi", None], categories=["lo", "hi"], ordered=True),
            "day": pd.to_datetime(["2020-01-01", None, "2020-01-03"]),
            "zone": pd.to_datetime(["2020-01-01", None, "2020-01-03"], utc=True),
        }
    )


def polars_frame():
    return pl.DataFrame(
        {
            "whole": [1, 2, 3],
            "gaps": [1, None, 3],
            "flag": [True, None, False],
            "word": ["a", None, "c"],
            "level": pl.Series(["x", "y", None], dtype=pl.Categorical),
            "grade": pl.Series(["lo", "hi", None], dtype=pl.Enum(["lo", "hi"])),
            "day": DAYS,
        }
    )


@pytest.mark.parametrize("make", [pandas_frame, polars_frame])
def test_dtypes_of_frames_are_believed(make):
    table = table_from_frame(make())
    kinds = {"flag": "yes/no", "level": "category", "grade": "ordered", "day": "date"}
    assert {name: table.kinds.get(name) for name in kinds} == kinds
    assert table.levels == {"grade": ("lo", "hi")}
    assert table.columns["word"].tolist() == ["a", None, "c"]
    assert table.columns["level"].tolist() == ["x", "y", None]
    np.testing.assert_array_equal(table.columns["whole"], [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(table.columns["gaps"], [1.0, np.nan, 3.0])
    np.testing.assert_array_equal(table.columns["flag"], [1.0, np.nan, 0.0])
    assert np.isnat(table.columns["day"]).tolist() == [False, True, False]
    assert {values.dtype.kind for values in table.columns.values()} <= set("fOM")


@pytest.mark.parametrize("library", [pd, pl])
def test_whole_numbers_beyond_float64_are_names(library):
    ids = [2**60 + 1, 2**60 + 3]
    table = table_from_frame(library.DataFrame({"id": ids, "n": [2**50, 1]}))
    assert table.columns["id"].tolist() == list(map(str, ids))
    assert table.columns["n"].tolist() == [2.0**50, 1.0]
    empty = table_from_frame(pd.DataFrame({"n": pd.array([None, None], dtype="Int64")}))
    assert np.isnan(empty.columns["n"]).all()
    mixed = table_from_frame(pd.DataFrame({"id": pd.Series([*ids, None], dtype=object)}))
    assert mixed.columns["id"].tolist() == [*map(str, ids), None]


@pytest.mark.filterwarnings("error")
def test_times_with_a_zone_are_those_of_greenwich():
    zone = table_from_frame(pandas_frame()).columns["zone"]
    np.testing.assert_array_equal(zone, table_from_frame(pandas_frame()).columns["day"])


def test_objects_are_looked_at():
    frame = pd.DataFrame({"n": [1, None], "b": [True, None], "s": [1, "a"], "d": DAYS[:2]})
    table = table_from_frame(frame.astype(object))
    assert [values.dtype.kind for values in table.columns.values()] == list("ffOM")
    assert table.columns["s"].tolist() == ["1", "a"]


def test_rows_keep_their_names_and_columns_of_one_name_stay_apart():
    frame = pd.DataFrame([[1, 2], [3, 4]], index=["x", "y"], columns=["a", "a"])
    table = table_from_frame(frame)
    assert table.row_names == ["x", "y"]
    assert list(table.columns) == ["a", "a (2)"]
    assert is_frame(frame)
    assert not is_frame(frame.to_numpy())


def test_times_and_dates_of_arrow_are_what_they_are():
    pa = pytest.importorskip("pyarrow")
    days = pd.Series(pd.date_range("2020-01-01", periods=3))
    hours = [time(1), time(2, 30), None]
    frame = pd.DataFrame(
        {
            "at": days.astype(pd.ArrowDtype(pa.timestamp("us"))),
            "on": days.astype(pd.ArrowDtype(pa.timestamp("us"))).astype(pd.ArrowDtype(pa.date32())),
            "hour": hours,
        }
    )
    table = table_from_frame(frame)
    # The first one names the rows: no two of its dates are the same.
    assert table.kinds == {"at": "identifier", "on": "date"}
    np.testing.assert_array_equal(table.columns["at"], days.to_numpy().astype("datetime64[us]"))
    np.testing.assert_array_equal(table.columns["on"], table.columns["at"])
    for hour in (table.columns["hour"], table_from_frame(pl.DataFrame({"h": hours})).columns["h"]):
        assert hour.tolist() == ["01:00:00", "02:30:00", None]
