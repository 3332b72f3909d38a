"""Small examples of the functions that readers are made of."""

import datetime
from io import BytesIO

import numpy as np
import pytest
import scipy.sparse as sp

from ccot.io.binary import read_header
from ccot.io.cells import find_formats, is_gap, read_numbers
from ccot.io.frames import make_frame, row_names, table_from_frame
from ccot.io.layout import ReadOptions, find_column, guess_decimal, guess_delimiter
from ccot.io.long import collect_long
from ccot.io.matrix import (
    BoundedTexts,
    align,
    check_sparse,
    held_limit,
    most_repeated,
    named_matrix,
    sorting_bytes,
    text_limit,
    unfolding_limit,
)
from ccot.io.mixed import as_text
from ccot.io.rowwise import cell_text
from ccot.io.text import read_text
from ccot.sources.base import split_by_part


def test_header_of_an_array():
    file = BytesIO()
    np.save(file, np.eye(2))
    size = file.tell()
    file.seek(0)
    assert read_header(file, size) == ((2, 2), False, np.dtype("float64"))


def test_cells():
    gaps = [is_gap(cell) for cell in (None, " ", "NA", "?", "none", "0")]
    assert gaps == [True, True, True, True, False, False]
    assert find_formats(["1,234.50", "12"]) == ["thousands"]
    assert find_formats(["12,5", "3"]) == ["decimal comma"]
    assert find_formats(["a"]) == []
    assert find_formats(["03/04/2020"]) == ["%m/%d/%Y", "%d/%m/%Y"]
    numbers = read_numbers(np.array(["12%", None, "x"], dtype=object), "percent")
    np.testing.assert_array_equal(numbers, [0.12, np.nan, np.nan])
    assert [as_text(number) for number in (7.0, 0.5, float("nan"))] == ["7", "0.5", ""]
    assert [cell_text(value) for value in (2.0, None, True)] == ["2", "", "true"]
    assert cell_text(datetime.datetime(2024, 1, 31)) == "2024-01-31"


def test_frames():
    pd = pytest.importorskip("pandas")
    names = row_names(pd.DataFrame({"a": [1, 2]}, index=["x", "y"]))
    assert names is not None
    assert names.tolist() == ["x", "y"]
    assert row_names(pd.DataFrame({"a": [1, 2]})) is None
    frame = pd.DataFrame({"a": [1, 2], "b": [True, None]}, dtype=object)
    assert table_from_frame(frame).shape == (2, 2)
    pytest.importorskip("polars")
    assert make_frame({"name": ["a", "b"], "cluster": [0, 1]}, "polars").shape == (2, 2)


def test_layout_of_text():
    assert guess_delimiter(["a;b", "1,5;2,5"]) == ";"
    assert guess_decimal([["a", "b"], ["1,5", "2"]]) == ","
    assert guess_decimal([["1.5", "2"]]) == "."
    assert find_column("b", ["a", "b"], 2, "--index-col") == 1
    assert find_column("0", None, 2, "--index-col") == 0


def test_tables():
    cells = [("ann", "tea", 2.0), ("bob", "jam", 1.0)]
    table = collect_long(cells, ReadOptions(), counted=False, size=lambda: 20)
    assert table.values.toarray().tolist() == [[2, 0], [0, 1]]
    table = read_text(iter(["gene,a,b", "x,1,2", "y,3,"]), ReadOptions())
    np.testing.assert_array_equal(table.values, [[1, 2], [3, np.nan]])
    assert (table.row_names, table.column_names) == (("x", "y"), ("a", "b"))
    named = named_matrix([[1, 2], [3, 4]], ["a", "b"], None, "by hand")
    assert named.values.dtype == np.float64


def test_limits():
    assert (unfolding_limit(10), unfolding_limit(10**9)) == (64 << 20, 100 * 10**9)
    assert [text_limit(n) for n in (10, 10**6, 10**7, 10**8)] == [
        64 << 20, 10**8, 512 << 20, 10**9
    ]  # fmt: skip
    assert (held_limit(10), held_limit(10**9)) == (64 << 20, 10**10)
    texts = BoundedTexts(10)
    first, second = texts.shared(["a" * 5, None]), texts.shared(["a" * 5])
    assert first[0] is second[0]
    assert sorting_bytes(np.array([0, 2, 2])) == 32
    check_sparse(sp.eye_array(3, format="csr"))


def test_names():
    repeated = most_repeated(["a", "b", "a"])
    assert repeated is not None
    assert (repeated.name, repeated.times, repeated.n_distinct) == ("a", 2, 2)
    places, others = align(["c", "a", "b"], ["a", "b"], "columns")
    assert (places.tolist(), others) == ([1, 2], ["c"])


def test_parts_of_rows():
    parts = (slice(0, 4), slice(4, 8), slice(8, 12))
    split = split_by_part(np.array([1, 2, 9]), parts)
    assert [(part, within.tolist()) for part, within in split] == [
        (parts[0], [1, 2]),
        (parts[2], [1]),
    ]
