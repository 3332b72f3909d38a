import gzip
import io
import sys

import anndata
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from ccot.io import InputError, read_matrix
from ccot.io.layout import ReadOptions
from ccot.io.text import read_text

VALUES = np.array([[1.5, -2.0, 0.0], [3.0, np.nan, 1e-3]])


def read(text, **options):
    return read_text(iter(io.StringIO(text)), ReadOptions(**options))


def check(table, values, rows=None, columns=None):
    found = table.values.toarray() if sp.issparse(table.values) else table.values
    np.testing.assert_array_equal(found, values)
    assert found.dtype == np.float64
    assert table.row_names == (None if rows is None else tuple(rows))
    assert table.column_names == (None if columns is None else tuple(columns))


# Text ------------------------------------------------------------------------------------------

SMALL = [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("text", "rows", "columns"),
    [
        ("1,2\n3,4\n", None, None),
        ("1,2\r\n3,4", None, None),
        ("a,b\n1,2\n3,4\n", None, "ab"),
        ("gene,a,b\nx,1,2\ny,3,4\n", "xy", "ab"),
        ("x,1,2\ny,3,4\n", "xy", None),
        (",a,b\n7,1,2\n8,3,4\n", "78", "ab"),
        (",2019,2020\n7,1,2\n8,3,4\n", "78", ("2019", "2020")),
        ("id,a,b\n7,1,2\n8,3,4\n", "78", "ab"),
        ("key,2019\n1,2\n3,4\n", None, ("key", "2019")),
        ("a\tb\nx\t1\t2\ny\t3\t4\n", "xy", "ab"),
        ('"a, b";"c"\n1;2\n3;4\n', None, ("a, b", "c")),
        ("a|b\n1|2\n\n3|4\n\n", None, "ab"),
        ("a b\n1 2\n3 4\n", None, "ab"),
        ("a;b\n1,0;2,0\n3;4,00\n", None, "ab"),
        ("\ufeffgene,a,b\nx,1,2\ny,3,4\n".lstrip("\ufeff"), "xy", "ab"),
    ],
)
def test_layouts_are_found(text, rows, columns):
    check(read(text), SMALL, rows, columns)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("land,1990,1991,1992\nx,1,2,9\ny,3,4,9\n", ("1990", "1991", "1992")),
        ("id,7,3,5\nx,1,2,9\ny,3,4,9\n", "735"),
        ("x,1,2,9\ny,3,4,9\n", None),
    ],
)
def test_numbers_head_columns_where_they_count_up_or_ids_are_beside_them(text, columns):
    check(read(text), [[1, 2, 9], [3, 4, 9]], "xy", columns)


def test_rows_that_all_count_up_are_no_headers():
    check(read("x,1,2,3\ny,4,5,6\n"), [[1, 2, 3], [4, 5, 6]], "xy")


def test_what_is_said_goes_before_what_is_found():
    text = "k,a,b\n1,2,x\n3,4,y\n"
    check(read(text, index_col="b"), SMALL, "xy", "ka")
    check(read(text, index_col="2"), SMALL, "xy", "ka")
    check(read("1,2\n3,4\n", header=True), [[3, 4]], None, "12")
    check(read("9,1,2\n8,3,4\n", index_col=0), SMALL, "98")
    check(read("id,a\n1,2\n3,4\n", index_col=False), SMALL, None, ("id", "a"))
    check(read("1,50;2\n3;4\n", decimal=","), [[1.5, 2], [3, 4]])
    check(read("1~2\n3~4\n", delimiter="~"), SMALL)


@pytest.mark.parametrize(
    ("text", "drop", "rows", "columns"),
    [
        ("a,kind,b\n1,red,2\n3,blue,4\n", ["kind"], None, "ab"),
        ("a,kind,b\n1,red,2\n3,blue,4\n", [1], None, "ab"),
        ("kind,a,b\nred,1,2\nblue,3,4\n", ["0"], None, "ab"),
        ("gene,a,kind,b,more\nx,1,red,2,\ny,3,blue,4,?\n", ["more", "kind"], "xy", "ab"),
        ("a\tkind\tb\nx\t1\tred\t2\ny\t3\tblue\t4\n", ["kind"], "xy", "ab"),
    ],
)
def test_columns_can_be_left_out(text, drop, rows, columns, tmp_path):
    check(read(text, drop=drop), SMALL, rows, columns)


@pytest.mark.parametrize(
    ("text", "options", "told"),
    [
        ("gene,a,b\nx,1,2\ny,3,4\n", {}, "row names from column 'gene'"),
        (",a,b\nx,1,2\ny,3,4\n", {}, "row names from column 0"),
        ("1,2,x\n3,4,y\n", {"index_col": 2, "header": False}, "column 2"),
        ("k,a,b,l\nx,1,2,p\n", {"drop": ["k", "l"]}, "no row names, without 'k', 'l'"),
        ("a,b,c,d,e,f,g,h\n" + "1,2,3,4,5,6,7,8\n" * 2, {"drop": [*range(6)]}, "6 columns left"),
    ],
)
def test_how_a_table_was_read_is_said(text, options, told):
    assert told in read(text, **options).how


def test_columns_of_parquet_can_be_left_out(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 3], "kind": ["x", "y"], "b": [2.0, 4]}, index=["r", "s"])
    frame.to_parquet(tmp_path / "t.parquet")
    check(read_matrix(tmp_path / "t.parquet", drop=["kind"]), SMALL, "rs", "ab")
    with pytest.raises(InputError, match="leave it out with --drop"):
        read_matrix(tmp_path / "t.parquet")


def test_not_everything_has_columns_to_leave_out(tmp_path):
    np.save(tmp_path / "x.npy", np.eye(3))
    with pytest.raises(InputError, match="a npy file has no columns to leave out"):
        read_matrix(tmp_path / "x.npy", drop=["a"])
    with pytest.raises(InputError, match="a long table has no columns to leave out"):
        read("a,b,1\n", long=True, drop=[0])


@pytest.mark.parametrize("mark", ["", "NA", "nan", "NaN", "null", "?", "  ", "n/a"])
def test_missing_cells_are_nan(mark):
    check(read(f"a,b\n1,{mark}\n3,4\n"), [[1, np.nan], [3, 4]], None, "ab")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the input is empty"),
        ("\n\n", "the input is empty"),
        ("a\n1\n2\n", "only one column was found with the delimiter ',': pass --delimiter, or"),
        ("a,b\n", r"the matrix is empty \(0 x 2\)"),
        ("a,b\n1,2\n3\n", "line 3 has 1 cells where 2 are expected: complete"),
        ("a,b\n1,2\n3,x\n", r"line 3, column 'b': 'x' is not a number: leave the column out"),
        ("1,2\n3,1_000\n", "line 2, value 2: '1_000' is not a number: .* with --drop 1, "),
        ("g,a,b c,d\nx,1,p,q\n", r"column 'b c': .* columns out with --drop 'b c' --drop d, "),
        ("g" + ",a b c d e f".replace(" ", ",") + "\nx" + 6 * ",p", "with --drop a .* --drop f, "),
        ("a;b\n2;1.5\n2;1,5\n", "pass --decimal ,"),
        ("a,b,c\n1,2;3,4\n5,6;7,8\n", "for several cells, pass --delimiter"),
        ("a,a\n1,2\n3,4\n", "2 columns are named 'a'"),
        ("g,a,b\nx,1,2\nx,3,4\n", "Column 'g' cannot name the rows: 2 cells are 'x'. Use --ind"),
        ("1,2\n3," + "9" * 400 + "\n", "too large for a float"),
        ("1,2\n3,inf\n", "some values are infinite"),
        ('1,2\n3,"4\n', "line 2 cannot be read as a table .*check the file and its quotes"),
    ],
)
def test_what_is_wrong_is_said(text, message):
    with pytest.raises(InputError, match=message):
        read(text)


def test_any_finite_number_is_read():
    check(read("a,b\n1e200,-1.7e308\n5e-324,0\n"), [[1e200, -1.7e308], [5e-324, 0]], None, "ab")


def test_digits_with_leading_zeros_are_numbers_of_a_matrix():
    check(read("a,b\n007,01\n012,10\n"), [[7, 1], [12, 10]], None, "ab")


@pytest.mark.parametrize("text", ["a;b\n1;2\n3;4\n", "1;2\n"])
def test_another_delimiter_is_named_where_it_would_fit(text):
    with pytest.raises(InputError, match=r"one column was found .* ',': pass --delimiter ';', or"):
        read(text, delimiter=",")


def test_columns_that_are_not_there():
    with pytest.raises(
        InputError, match=r"--index-col c is not a column: the columns are a, b; posit"
    ):
        read("a,b\n1,2\n", index_col="c")
    with pytest.raises(InputError, match=r"positions go from 0 to 1"):
        read("1,2\n3,4\n", index_col=5)
    with pytest.raises(InputError, match="single character"):
        read("1,2\n", delimiter="::")


@given(
    st.lists(
        st.lists(st.floats(-1e99, 1e99) | st.just(np.nan), min_size=3, max_size=3),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from(",;\t|"),
)
def test_numbers_return_to_the_last_bit(values, delimiter):
    text = "".join(delimiter.join(map(repr, row)) + "\n" for row in values)
    np.testing.assert_array_equal(read("a,b,c\n".replace(",", delimiter) + text).values, values)


# Long tables -----------------------------------------------------------------------------------


def test_long_tables_become_matrices():
    text = "who,what,much\nann,tea,2\nbob,jam,1\nann,jam,4\n"
    check(read(text, long=True), [[2, 4], [0, 1]], ("ann", "bob"), ("tea", "jam"))
    found = read(text, long=True, unlisted="missing").values
    np.testing.assert_array_equal(found, [[2, 4], [np.nan, 1]])
    swapped = read(text, long=["what", "who", "much"])
    assert swapped.row_names == ("tea", "jam")
    rated = "1\t9\t5\t8811\n2\t9\t3\t8812\n"
    check(read(rated, long=True), [[5], [3]], "12", "9")
    check(read(rated, long=[0, 1, 2]), [[5], [3]], "12", "9")


def test_pairs_are_counted():
    text = "who,what\nann,tea\nann,tea\nbob,jam\n"
    check(read(text, long=True), [[2, 0], [0, 1]], ("ann", "bob"), ("tea", "jam"))


@pytest.mark.parametrize(
    ("values", "options", "cell", "said"),
    [
        ((1, 2, 4), {}, 7, "summed (to change this: --aggregate mean, count, last)"),
        ((1, 2, 4.5), {}, 2.5, "averaged (to change this: --aggregate sum, count, last)"),
        ((1, 2, 3), {"unlisted": "missing"}, 2, "averaged"),
        ((1, 2, 4.5), {"aggregate": "sum"}, 7.5, "summed"),
        ((1, 2, 4.5), {"aggregate": "count"}, 3, "counted"),
        ((1, 2, 4.5), {"aggregate": "count", "unlisted": "missing"}, 3, "counted"),
        ((1, 4, 2), {"aggregate": "last"}, 2, "the last is used"),
        ((1, 2, 3), {"aggregate": "mean"}, 2, "averaged"),
    ],
)
def test_cells_that_are_listed_again_are_put_together(values, options, cell, said):
    lines = [f"ann,tea,{value}" for value in values]
    lines[1:1] = ["bob,jam,9", "ann,jam,8"]
    table = read("\n".join(["who,what,much", *lines]), long=True, **options)
    found = table.values.toarray() if sp.issparse(table.values) else table.values
    others = (1, 1) if options.get("aggregate") == "count" else (8, 9)
    np.testing.assert_array_equal(found[0], [cell, others[0]])
    assert found[1, 1] == others[1]
    assert table.notes[0].startswith("2 lines repeat a cell")
    assert said in table.notes[0]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a,b,1\na,b,2\n", {"aggregate": "most"}, "must be one of sum, mean, count, last"),
        ("a,b,1\na,c,x\n", {}, "line 2: value 'x' is not a number"),
        ("a,b,1\na,c\n", {}, "line 2 has 2 cells where at least 3"),
        ("a,b,1\na,c,\n", {}, "some listed values are missing"),
        ("r,c,v\n", {}, "has no cells"),
        ("abc\n", {}, "a long table has columns"),
        ("r,c,v\na,b,1\n", {"long": ["r", "c", "x"]}, "--long-columns x is not a column"),
        ("a,b,1\n", {"unlisted": "nil"}, "must be one of zero, missing"),
    ],
)
def test_long_tables_that_are_none(text, options, message):
    with pytest.raises(InputError, match=message):
        read(text, **{"long": True, **options})


# Files -----------------------------------------------------------------------------------------

FRAME = pd.DataFrame(VALUES, index=["x", "y"], columns=["a", "b", "c"])
NAMES = (("x", "y"), ("a", "b", "c"))


def write_h5ad(path, values=VALUES):
    anndata.AnnData(values, FRAME[[]], FRAME.T[[]]).write_h5ad(path)


WRITERS = {
    "a.csv": lambda path: FRAME.to_csv(path),
    "a.txt": lambda path: FRAME.to_csv(path, sep="\t"),
    "a.csv.gz": lambda path: FRAME.to_csv(path),
    "a.parquet": lambda path: FRAME.to_parquet(path),
    "polars.parquet": lambda path: pl.DataFrame(FRAME.reset_index(names="k")).write_parquet(path),
    "a.h5ad": write_h5ad,
    "a.npy": lambda path: np.save(path, VALUES),
    "a.npz": lambda path: np.savez_compressed(path, VALUES),
    "sparse.npz": lambda path: sp.save_npz(path, sp.csc_array(VALUES)),
    "a.mtx": lambda path: scipy.io.mmwrite(path, sp.coo_array(VALUES), precision=17),
    "dense.mtx": lambda path: scipy.io.mmwrite(path, VALUES, precision=17),
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_matrix(name, tmp_path):
    path = tmp_path / name
    WRITERS[name](path)
    named = name.split(".")[-1] in ("csv", "txt", "gz", "parquet", "h5ad")
    table = read_matrix(path)
    check(table, VALUES, *(NAMES if named else (None, None)))
    assert sp.issparse(table.values) == (name in ("sparse.npz", "a.mtx"))


class Piped:
    """A standard input that cannot be wound back."""

    def __init__(self, content):
        reading = io.BytesIO(content)
        reading.seekable = lambda: False
        self.buffer = io.BufferedReader(reading)


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_comes_by_standard_input(name, tmp_path, monkeypatch):
    path = tmp_path / name
    WRITERS[name](path)
    monkeypatch.setattr(sys, "stdin", Piped(path.read_bytes()))
    table, piped = read_matrix(path), read_matrix("-")
    check(piped, VALUES, table.row_names, table.column_names)


def test_parquet_columns_of_all_kinds(tmp_path):
    path = tmp_path / "a.parquet"
    kinds = {"i": [1, None, 3], "b": [True, False, None], "f": [0.5, 1.5, 2.5]}
    pl.DataFrame(kinds, schema_overrides={"f": pl.Float32}).write_parquet(path)
    nan = np.nan
    check(read_matrix(path), [[1, 1, 0.5], [nan, 0, 1.5], [3, nan, 2.5]], None, "ibf")
    assert read_matrix(path, index_col="f").row_names == ("0.5", "1.5", "2.5")
    pl.DataFrame({"a": [1, 2], "t": ["x", "y"]}).write_parquet(path)
    with pytest.raises(InputError, match="column 't' is of type"):
        read_matrix(path)


def test_long_parquet(tmp_path):
    path = tmp_path / "a.parquet"
    pl.DataFrame({"v": [2.0, 1.0], "r": ["ann", "bob"], "c": [7, 8]}).write_parquet(path)
    table = read_matrix(path, long=["r", "c", "v"])
    check(table, [[2, 0], [0, 1]], ("ann", "bob"), "78")
    with pytest.raises(InputError, match="not numeric"):
        read_matrix(path, long=["c", "v", "r"])


def test_h5ad_layers(tmp_path):
    path = tmp_path / "a.h5ad"
    adata = anndata.AnnData(VALUES, layers={"counts": sp.csr_matrix(np.abs(VALUES))})
    adata.write_h5ad(path)
    assert sp.issparse(read_matrix(path, layer="counts").values)
    with pytest.raises(InputError, match="no layer 'raw': counts"):
        read_matrix(path, layer="raw")


def test_other_encodings(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("é,b\n1,2\n3,4\n", encoding="latin-1")
    with pytest.raises(InputError, match=r"not text in the encoding utf-8-sig .* pass --encoding"):
        read_matrix(path)
    check(read_matrix(path, encoding="latin-1"), SMALL, None, "éb")
    path.write_text("a,b\n1,2\n3,4\n", encoding="utf-8-sig")
    check(read_matrix(path), SMALL, None, "ab")


def test_progress_is_told(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("1,2\n" * 20_000)
    told = []
    read_matrix(path, progress=told.append)
    assert told == sorted(told)
    assert 0 < told[1] < 0.5 < told[-1] <= 1


def test_the_name_must_fit_the_content(tmp_path):
    for name in ("a.npy", "a.npz", "a.parquet", "a.mtx", "a.h5ad"):
        path = tmp_path / name
        path.write_text("1,2\n3,4\n")
        with pytest.raises(InputError, match=r"is named .* but is not such a file"):
            read_matrix(path)
    np.save(tmp_path / "b.npy", VALUES)
    (tmp_path / "b.npy").rename(tmp_path / "b.dat")
    check(read_matrix(tmp_path / "b.dat"), VALUES)
    with gzip.open(tmp_path / "c.xlsx", "w") as file:
        file.write(b"")
    with pytest.raises(InputError, match=r"is named \.xlsx but is not such a file"):
        read_matrix(tmp_path / "c.xlsx")
