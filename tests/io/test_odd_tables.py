"""Odd and malformed tables: each is read as it is meant, with a note, or refused with a remedy."""

import gzip
import json
import sqlite3
import zipfile
from datetime import datetime

import numpy as np
import pandas as pd
import pytest

from ccot.io import InputError, read_matrix, read_table

YEARS = "country,1952,1957,2007\nSweden,71.9,72.5,80.9\nChile,54.7,56.1,78.6\nMali,33.7,35.3,54.5\n"
MIXED = "k,a,b\nx,1,red\ny,2,blue\nx,3,red\n"
NUMBERS = "".join(f"{i},{i * 7 % 11}\n" for i in range(40))


def text(content, name="in.csv", encoding="utf-8"):
    return name, lambda path: path.write_bytes(content.encode(encoding))


def raw(content, name="in.csv"):
    return name, lambda path: path.write_bytes(content)


def sheet(*sheets, name="in.xlsx"):
    def build(path):
        openpyxl = pytest.importorskip("openpyxl")
        book = openpyxl.Workbook()
        book.remove(book.active)
        for title, rows in sheets:
            one = book.create_sheet(title)
            for row in rows:
                one.append(row)
        book.save(path)

    return name, build


def database(*statements, name="in.sqlite"):
    def build(path):
        base = sqlite3.connect(path)
        for statement in statements:
            base.execute(statement)
        base.commit()
        base.close()

    return name, build


def feather(frame, keep=1.0):
    def build(path):
        pytest.importorskip("pyarrow")
        frame.to_feather(path)
        content = path.read_bytes()
        path.write_bytes(content[: int(keep * len(content))])

    return "in.feather", build


def zipped(size):
    def build(path):
        pytest.importorskip("openpyxl")
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("[Content_Types].xml", b" " * size)

    return "in.xlsx", build


FRAME = pd.DataFrame(
    {
        "size": pd.Categorical(["s", "l", "s"], ["s", "m", "l"], ordered=True),
        "when": pd.to_datetime(["2024-01-31", None, "2024-02-01"]),
        "is_new": [True, False, True],
        "n": [1, 2, 3],
    }
)
RECORDS = [{"a": 1, "b": "x"}, {"b": "y", "a": None}, {"a": 3, "c": True}]

REFUSED = {
    "nothing": (text(""), {}, "is empty"),
    "short line": (text("k,a,b\nx,1,red\ny,2\n"), {}, "line 3 has 2 cells where 3"),
    "trailing commas": (text("a,b,,\n1,x,,\n2,y,,\n"), {}, "no name for 2 columns.*--drop 2"),
    "title alone": (text("Sales\nk,a,b\nx,1,2\n"), {}, "1 cells where 3 .* remove lines above"),
    "title above": (text("Sales,,\nk,a,b\nx,1,2\n"), {}, "remove lines above the table"),
    "same name twice": (text("a,a,b\n1,2,x\n3,4,y\n"), {}, "2 columns are named 'a'"),
    "names with a mistake": (
        text("g,a\n" + "".join(f"g{i % 29},{i}\n" for i in range(30))), {},
        r"Column 'g' cannot name the rows: 2 cells are 'g0'\. Use --index-col NAME, or --index-c",
    ),
    "asked for names that repeat": (
        text(MIXED), {"index_col": "k"},
        r"Column 'k' cannot name the rows: 2 cells are 'x'\. Use --index-col NAME, or omit it",
    ),
    "two decimal points": (text("a;b\n1;1.5\n2;2,5\n"), {}, "pass --decimal"),
    "two delimiters": (text("a,b\n1,2;3\n4,5;6\n"), {}, "for several cells, pass --delimiter"),
    "open quote": (text('a,b\n1,"x\n2,y\n'), {}, "check the file and its quotes"),
    "infinity": (text("a,b\n1,x\ninf,y\n"), {}, "infinite"),
    "other encoding": (text("é,b\n1,x\n", encoding="latin-1"), {}, "pass --encoding"),
    "web page": (text("<!DOCTYPE html>\n<html>"), {}, "is a web page, no table: download"),
    "old excel": (raw(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "in.xlsx"), {}, "old Excel .* as .xlsx"),
    "pickle": (raw(b"\x80\x04\x95\x10", "in.pkl"), {}, "a pickle, which may run code: .* to_csv"),
    "duckdb": (raw(b"\0" * 8 + b"DUCK" + b"\0" * 90, "in.db"), {}, "COPY t TO 't.parquet'"),
    "feather 1": (raw(b"FEA1" + b"\0" * 20, "in.feather"), {}, "version 1: write it again"),
    "truncated feather": (feather(FRAME, 0.6), {}, "not a readable Feather|is none"),
    "zip of the future": (
        raw(b"PK\x03\x04" + b"PK\x01\x02\x14\0\xff" + b"\0" * 39 + b"PK\x05\x06\0\0\0\0\1\0\1\0"
            + (46).to_bytes(4, "little") + (4).to_bytes(4, "little") + b"\0\0", "in.xlsx"), {},
        "not a readable Excel|Excel files need",
    ),
    "text called excel": (text(MIXED, "in.xlsx"), {}, "is named .xlsx but is not such a file"),
    "excel bomb": (zipped(80 << 20), {}, "bytes, but needs .* malicious"),
    "no such sheet": (sheet(("one", [["a", "b"], [1, "x"]])), {"sheet": "two"}, "sheets are 'one'"),
    "formulas": (
        sheet(("one", [["a", "b"], [1, "=A2*2"]])), {}, "1 formulas have no stored values: open",
    ),
    "nested": (
        text(json.dumps([{"a": 1, "t": [1]}, {"a": 2, "u": {}}]), "in.json"), {},
        "'t', 'u' hold lists or objects: .* with --drop t --drop u",
    ),
    "columns of json": (text('{"a": [1, 2], "b": [3, 4]}', "in.json"), {}, "a list of records"),
    "list of lists": (text("[[1, 2], [3, 4]]", "in.json"), {}, "record 1 is not an object"),
    "deep json": (text("[" * 200_000, "in.json"), {}, "record 1 is not JSON"),
    "truncated json": (text('[{"a": 1}, {"a":', "in.json"), {}, "record 2 is not JSON"),
    "more json": (text('[{"a": 1}] {"a": 2}', "in.json"), {}, "has text after its list"),
    "records of nothing": (text("[{}, {}]", "in.json"), {}, "the input is empty"),
    "key twice": (text('{"a": 1, "a": 2}', "in.jsonl"), {}, "a key occurs twice"),
    "several tables": (
        database("CREATE TABLE t (a)", "CREATE TABLE u (a)"), {}, "holds 't', 'u': pass --table",
    ),
    "no such table": (database("CREATE TABLE t (a)"), {"table": "x"}, "there is no table x"),
    "a view": (
        database("CREATE TABLE t (a)", "CREATE VIEW v AS SELECT a, a FROM t"), {"table": "v"},
        "there is no table v",
    ),
    "binary column": (
        database("CREATE TABLE t (a, p)", "INSERT INTO t VALUES (1, x'00')"), {},
        "column 'p' holds binary data: leave it out with --drop p",
    ),
    "truncated sqlite": (raw(b"SQLite format 3\0" + b"\1" * 900, "in.db"), {}, "a readable SQL"),
}  # fmt: skip

# What is read: names of rows, columns as lists (None: a gap), what the notes say.
READ = {
    "few years may head columns": (
        text("1952,1957,1962\n45,47,50\n60,62,66\n"), {}, None,
        {"0": [1952, 45, 60], "1": [1957, 47, 62], "2": [1962, 50, 66]},
        "1962. is read as a row: pass --header",
    ),
    "years head columns": (
        text(YEARS), {}, ["Sweden", "Chile", "Mali"],
        {"1952": [71.9, 54.7, 33.7], "1957": [72.5, 56.1, 35.3], "2007": [80.9, 78.6, 54.5]},
        "is read as a header: pass --no-header",
    ),
    "a first row of numbers": (
        text("x,5,2\ny,3,7\nz,1,4\n"), {}, list("xyz"), {"0": [5, 3, 1], "1": [2, 7, 4]},
        "is read as a row: pass --header",
    ),
    "words without a header": (
        text("red,s,1\nblue,l,2\nred,s,3\nblue,s,1\n"), {}, None,
        {"0": ["red", "blue", "red", "blue"], "1": ["s", "l", "s", "s"], "2": [1, 2, 3, 1]}, "",
    ),
    "words that repeat name no rows": (
        text(MIXED), {}, None, {"k": list("xyx"), "a": [1, 2, 3], "b": ["red", "blue", "red"]},
        "column 'k' cannot name the rows: 2 cells are 'x'; it is used as a column",
    ),
    "marks around numbers": (
        text("id;p;q;r\n1;12%;$5;1,234\n2;7%;$1,200;2,500\n"), {}, ["1", "2"],
        {"p": ["12%", "7%"], "q": ["$5", "$1,200"], "r": ["1,234", "2,500"]}, "",
    ),
    "decimal commas": (
        text("id;p;k\n1;1,5;x\n2;0,25;y\n"), {}, ["1", "2"],
        {"p": [1.5, 0.25], "k": ["x", "y"]}, "",
    ),
    "gaps": (
        text("id,a,k\n1,NA,x\n2,?,\n3,-,NA\n4,null,y\n5,#DIV/0!,y\n6,2,x\n"), {}, list("123456"),
        {"a": [None, None, None, None, None, 2], "k": ["x", None, "NA", "y", "y", "x"]}, "",
    ),
    "a word among numbers": (
        text("a,b\n" + NUMBERS + "9,tall\n"), {}, None,
        {"a": [*range(40), 9], "b": [*(i * 7 % 11 for i in range(40)), None]},
        r"column 'b': 1 of 41 cells are not numbers \('tall' in line 42\) .* --kind b=category",
    ),
    "the same, kept": (
        text("a,b\n" + NUMBERS + "9,tall\n"), {"as_words": ["b"]}, None,
        {"a": [*range(40), 9], "b": [*(str(i * 7 % 11) for i in range(40)), "tall"]}, "",
    ),
    "words from far down": (
        text("a,b\n" + "1.0,2\n" * 3000 + "x7,3\n" * 3000 + "1,3\n"), {}, None,
        {"a": ["1"] * 3000 + ["x7"] * 3000 + ["1"], "b": [2] * 3000 + [3] * 3001},
        r"column 'a' holds words from line 3002 on \('x7'\).* before it are used as words",
    ),
    "money first": (
        text("price,x\n$5,1\n$7,2\n"), {}, None, {"price": ["$5", "$7"], "x": [1, 2]}, "",
    ),
    "leading zeros": (
        text("zip,a,x\n94110,007,1\n01234,12,2\n02139,0,3\n"), {}, None,
        {"zip": ["94110", "01234", "02139"], "a": ["007", "12", "0"], "x": [1, 2, 3]}, "",
    ),
    "leading zeros from far down": (
        text("zip,x\n" + "94110,2\n" * 3000 + "01234,3\n" + "94110,2\n"), {}, None,
        {"zip": ["94110"] * 3000 + ["01234", "94110"], "x": [2] * 3000 + [3, 2]}, "",
    ),
    "codes, and a few words among them": (
        text("x,zip\n" + "".join(f"{i},0{i}\n" for i in range(100, 140)) + "9,K1A 0B1\n"), {}, None,
        {"zip": [*(f"0{i}" for i in range(100, 140)), "K1A 0B1"], "x": [*range(100, 140), 9]}, "",
    ),
    "numbers with leading zeros and decimals": (
        text("a,b\n" + "".join(f"{i:05.1f},{i:03d}\n" for i in range(40)) + "1.5,-1\n"), {}, None,
        {"a": [*map(float, range(40)), 1.5], "b": [*range(40), -1]}, "",
    ),
    "more digits than a number has": (
        text("card,x\n4111111111111111,1\n4111111111111112,2\n"), {}, None,
        {"card": ["4111111111111111", "4111111111111112"], "x": [1, 2]}, "",
    ),
    "codes of a sheet": (
        sheet(("s", [["zip", "x"], ["01234", 1], [94110, 2]])), {}, None,
        {"zip": ["01234", "94110"], "x": [1, 2]}, "",
    ),
    "windows, tabs, quotes": (
        text('\ufeffk\ta\r\n"x ""y"""\t1\r\nz\t2\r\n\r\n'), {}, ['x "y"', "z"], {"a": [1, 2]}, "",
    ),
    "gzipped": (
        raw(gzip.compress(MIXED.encode()), "in.csv.gz"), {"index_col": False}, None,
        {"k": list("xyx"), "a": [1, 2, 3], "b": ["red", "blue", "red"]}, "",
    ),
    "json records": (
        text(json.dumps(RECORDS), "in.json"), {}, None,
        {"a": [1, None, 3], "b": ["x", "y", None], "c": [None, None, "true"]}, "",
    ),
    "json lines": (
        text("\n".join(map(json.dumps, RECORDS)) + "\n", "in.dat"), {"drop": ["c"]}, None,
        {"a": [1, None, 3], "b": ["x", "y", None]}, "",
    ),
    "sqlite": (
        database('CREATE TABLE "t""x" (a, b)', 'INSERT INTO "t""x" VALUES (1, \'u\'), (NULL, 2)'),
        {}, None, {"a": [1, None], "b": ["u", "2"]}, "",
    ),
    "feather": (
        feather(FRAME), {}, None,
        {"size": ["s", "l", "s"], "when": [datetime(2024, 1, 31), None, datetime(2024, 2, 1)],
         "is_new": [1, 0, 1], "n": [1, 2, 3]}, "",
    ),
    "excel": (
        sheet(("data", [["id", "a", "when", "ok"], [7, 1.5, datetime(2024, 1, 31), True],
                        [None], [8, None, datetime(2024, 2, 1, 12, 30), False]]),
              ("notes", [["x"]])), {}, ["7", "8"],
        {"a": [1.5, None], "when": ["2024-01-31", "2024-02-01T12:30:00"], "ok": ["true", "false"]},
        "sheet 'data' is read, not 'notes': pass --sheet NAME",
    ),
}  # fmt: skip


def listed(column):
    if column.dtype.kind == "M":
        return [None if np.isnat(cell) else cell.astype(datetime) for cell in column]
    return [None if cell is None or cell != cell else cell for cell in column.tolist()]


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_table_is_refused_with_a_remedy(name, tmp_path):
    if name == "zip of the future":
        pytest.importorskip("openpyxl")
    (file, build), options, message = REFUSED[name]
    build(tmp_path / file)
    with pytest.raises(InputError, match=message):
        read_table(tmp_path / file, **options)


@pytest.mark.parametrize("name", READ)
def test_odd_tables_are_read_as_they_are_meant(name, tmp_path):
    import re

    (file, build), options, rows, columns, note = READ[name]
    build(tmp_path / file)
    table = read_table(tmp_path / file, **options)
    assert table.row_names == rows
    assert {name: listed(column) for name, column in table.columns.items()} == columns
    doubts = "; ".join(table.notes[1:])
    assert re.search(note, doubts) if note else not doubts, doubts


def test_there_are_forty():
    assert len(REFUSED) + len(READ) >= 40


def test_types_of_files_are_believed(tmp_path):
    pytest.importorskip("pyarrow")
    FRAME.to_feather(tmp_path / "a.feather")
    table = read_table(tmp_path / "a.feather")
    assert table.kinds == {"size": "ordered", "when": "date", "is_new": "yes/no"}
    assert table.levels == {"size": ("s", "m", "l")}
    FRAME.to_parquet(tmp_path / "a.parquet")
    table = read_table(tmp_path / "a.parquet")
    assert table.columns["size"].tolist() == ["s", "l", "s"]
    assert table.columns["when"].dtype.kind == "M"


def test_numbers_of_all_formats_are_matrices(tmp_path):
    FRAME[["n", "is_new"]].to_feather(tmp_path / "a.feather")
    (tmp_path / "a.json").write_text('[{"n": 1, "is_new": 1}, {"n": 2, "is_new": 0}]')
    assert read_matrix(tmp_path / "a.feather").shape == (3, 2)
    assert read_matrix(tmp_path / "a.json").values.tolist() == [[1, 1], [2, 0]]
    FRAME.to_feather(tmp_path / "a.feather")
    with pytest.raises(InputError, match=r"2 of 4 columns hold words .* --drop size --drop when"):
        read_matrix(tmp_path / "a.feather")


def test_header_with_more_names_than_cells_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text("a,b,c\n1,2\n3,4\n")
    for read in (read_matrix, read_table):
        with pytest.raises(InputError, match="line 2 has 2 cells where 3 are expected"):
            read(tmp_path / "a.csv")


@pytest.mark.parametrize("ending", ["feather", "parquet"])
def test_columns_without_values_are_gaps_and_the_word_none_is_a_word(tmp_path, ending):
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"x": [1.0, 2.0], "empty": pa.array([None, None]), "pain": ["None", None]})
    path = tmp_path / f"a.{ending}"
    if ending == "feather":
        pytest.importorskip("pyarrow.feather").write_feather(table, str(path))
    else:
        pytest.importorskip("pyarrow.parquet").write_table(table, path)
    columns = read_table(path).columns
    assert np.isnan(columns["empty"]).all()
    assert columns["pain"].tolist() == ["None", None]


def test_long_feather_table(tmp_path):
    frame = pd.DataFrame({"who": ["ann", "bob"], "what": ["tea", "jam"], "much": [2.0, 1.0]})
    frame.to_feather(tmp_path / "a.feather")
    table = read_matrix(tmp_path / "a.feather", long=True)
    assert table.values.toarray().tolist() == [[2, 0], [0, 1]]
    assert table.row_names == ("ann", "bob")


def test_a_sheet_of_one_column_names_the_other_sheets(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.title = "README"
    book.active.append(["see the other sheet"])
    book.create_sheet("data").append(["a", "b"])
    book.save(tmp_path / "a.xlsx")
    with pytest.raises(
        InputError, match=r"sheet 'README' has only one column: .*'data': pass --sh"
    ):
        read_table(tmp_path / "a.xlsx")


@pytest.mark.parametrize("text", ['{"data": [{"a": 1}], "n": 1}', '{"a": {"0": 1}, "b": {"0": 2}}'])
def test_one_object_is_no_list_of_records(tmp_path, text):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(InputError, match=r"hold lists or objects: write a list of records, \[\{"):
        read_table(tmp_path / "a.json")


def test_comments_above_a_table_are_named(tmp_path):
    (tmp_path / "a.tsv").write_text("# exported\n# by hand\na\tb\n1\t2\n3\t4\n")
    with pytest.raises(InputError, match="remove the lines of '#' above the table"):
        read_table(tmp_path / "a.tsv")


@pytest.mark.parametrize(
    ("first", "is_header"),
    [("1952,1957,1962,1967,1972", True), ("0,1,2,3,4", True), ("1,2,3,4,5", True),
     ("5,6,7,8,9", False), ("1972,1952,1957,1962,1967", False), ("0,1,2", False)],
)  # fmt: skip
def test_a_line_of_numbers_that_counts_the_columns_is_a_header(tmp_path, first, is_header):
    width = first.count(",") + 1
    rows = [",".join(f"{10 * i + j * j}.5" for j in range(width)) for i in range(6)]
    (tmp_path / "a.csv").write_text("\n".join([first, *rows]))
    table = read_matrix(tmp_path / "a.csv")
    assert len(table.values) == 6 + (not is_header)
    assert any("is read as a header: pass --no-header" in n for n in table.notes) == is_header
    # A line is no header where others are like it.
    (tmp_path / "a.csv").write_text("\n".join([first, first, *rows]))
    assert len(read_matrix(tmp_path / "a.csv").values) == 8


def test_a_column_without_a_name_takes_no_other_place(tmp_path):
    path = tmp_path / "index.csv"
    for last in ("7", "x"):
        path.write_text(f",0,1\n5,2,{last}\n6,3,{last}\n7,4,{last}\n")
        table = read_table(path, index_col=False)
        assert [*table.columns] == ["column 0", "0", "1"]
        assert table.columns["column 0"].tolist() == [5, 6, 7]
