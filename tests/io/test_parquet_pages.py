"""Pages of Parquet files: honest ones pass, and those that Arrow would trust do not."""

import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.hostile_memory import page_of, parquet_of_much, replace_pages, thrift, zeros
from ccot.io import InputError, read_matrix
from ccot.io.parquet_pages import _read_header, _take, read_footer
from ccot.sources import as_source

pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

N = 3000
RNG = np.random.default_rng(0)
VALUES = RNG.integers(0, 50, (N, 3)).astype(float)
VALUES[RNG.random(VALUES.shape) < 0.1] = np.nan
NAMES = [f"row {number} of many" for number in range(N)]
PLAIN = {1: N, 2: 0, 3: 3, 4: 3}
MUCH = 80 << 20


def honest_table():
    columns = {"name": NAMES, **{key: pa.array(VALUES[:, k], from_pandas=True)
                                 for k, key in enumerate(["a", "a.1", "b"])}}  # fmt: skip
    nested = {"list": [["x"] * (k % 3) for k in range(N)],
              "struct": [{"a": k, "b": None} for k in range(N)]}  # fmt: skip
    return pa.table({**columns, **nested})


def as_rows(path):
    source = as_source(path)
    source.allow_nan = True
    return np.vstack([source.read(part) for part in source.parts])


HOW = [
    *({"compression": codec} for codec in ("none", "snappy", "gzip", "zstd", "lz4", "brotli")),
    *({"compression": codec, "data_page_version": "2.0"} for codec in ("none", "zstd", "gzip")),
    {"use_dictionary": False},
    {"use_dictionary": False, "data_page_version": "2.0", "compression": "zstd"},
    {"row_group_size": 700},
    {"data_page_size": 100, "write_batch_size": 10},
    {"data_page_size": 100, "write_batch_size": 10, "data_page_version": "2.0",
     "row_group_size": 999},
    {"dictionary_pagesize_limit": 50, "write_batch_size": 10},
    {"write_statistics": False, "store_schema": False},
    {"write_page_index": True},
    {"write_page_checksum": True},
    {"use_dictionary": False, "use_byte_stream_split": ["a", "a.1", "b"]},
]  # fmt: skip


@pytest.mark.parametrize("how", HOW, ids=str)
def test_honest_files_pass(tmp_path, how):
    path = tmp_path / "a.parquet"
    pq.write_table(honest_table(), path, **how)
    found = read_matrix(path, drop=["list", "struct"])
    np.testing.assert_array_equal(found.values, VALUES)
    assert found.row_names == tuple(NAMES)
    assert found.column_names == ("a", "a.1", "b")
    pq.write_table(honest_table().select(["name", "a", "a.1", "b"]), path, **how)
    np.testing.assert_array_equal(as_rows(path), VALUES)
    assert as_source(path).row_names() == NAMES


@pytest.mark.parametrize("codec", ["uncompressed", "snappy", "gzip", "zstd", "lz4", "brotli"])
def test_files_of_polars_and_pandas_pass(tmp_path, codec):
    path = tmp_path / "a.parquet"
    frame = honest_table().drop(["list", "struct"]).to_pandas()
    pl.DataFrame(frame).write_parquet(path, compression=codec, row_group_size=800)
    np.testing.assert_array_equal(read_matrix(path).values, VALUES)
    frame = frame.set_index("name").astype({"a": "category"}).astype({"a": float})
    frame.to_parquet(path, compression=None if codec == "uncompressed" else codec)
    np.testing.assert_array_equal(read_matrix(path).values, VALUES)


def test_long_headers_pass(tmp_path):
    """Statistics of texts may make a header of any length."""
    names = [f"{k}" + "x" * 2000 for k in range(20)]
    table = pa.table({"name": names, "a": np.ones(20)})
    path = tmp_path / "a.parquet"
    pq.write_table(table, path, use_dictionary=False)
    with path.open("rb") as file:
        assert _read_header(file, 4)[1] > 4000
    assert read_matrix(path).row_names == tuple(names)


@pytest.mark.parametrize(
    "names",
    [
        pa.array([b"a", b"b"]), pa.array(["a", "b"], pa.large_string()),
        pa.array(["a", "b"], pa.string_view()), pa.array(["a", "b"]).dictionary_encode(),
        pa.array([b"a" * 16, b"b" * 16], pa.binary(16)), pa.array([1, 2], pa.timestamp("us")),
        pa.array(["a", None]),
    ],
    ids=lambda names: str(names.type),
)  # fmt: skip
def test_row_names_of_all_kinds(tmp_path, names):
    for schema in (True, False):
        table = pa.table({"name": names, "a": [1.0, 2.0]})
        try:
            pq.write_table(table, tmp_path / "a.parquet", store_schema=schema)
        except pa.ArrowNotImplementedError as missing:
            pytest.skip(str(missing))
        found = read_matrix(tmp_path / "a.parquet", index_col="name").row_names
        assert found is not None
        assert len(set(found)) == 2


# Harm -------------------------------------------------------------------------------------------


def required(path, codec="zstd", n_rows=N, **how):
    """Write numbers that cannot be compressed, so that there is room for other pages."""
    numbers = np.random.default_rng(0).integers(-(2**60), 2**60, n_rows)
    schema = pa.schema([pa.field(name, pa.int64(), nullable=False) for name in ("a", "b")])
    table = pa.table([numbers, numbers[::-1]], schema=schema)
    pq.write_table(table, path, compression=codec, use_dictionary=False, **how)
    return path


def refused(path, match):
    for read in (read_matrix, as_rows):
        with pytest.raises(InputError, match=match):
            read(path)


@pytest.mark.parametrize("codec", ["zstd", "gzip"])
def test_pages_that_unfold_to_very_much(tmp_path, codec):
    path = tmp_path / "a.parquet"
    parquet_of_much(path, MUCH // 20, codec)
    summary = pq.read_metadata(path).row_group(0)
    assert summary.total_byte_size < 1e6 > path.stat().st_size
    refused(path, "trap")
    with pytest.raises(InputError, match="trap"):
        read_matrix(path, long=["a", "b"])
    parquet_of_much(path, 1000, codec)  # Arrow is content with it
    assert not read_matrix(path, index_col=False).values[:, 0].any()


PROGRAM = """
import sys
import pyarrow as pa
from ccot.io import InputError, binary, read_matrix

for checked in (True, False):
    if not checked:
        binary.check_pages = lambda *_: None
    try:
        read_matrix(sys.argv[1])
    except InputError:
        assert checked
    print(pa.default_memory_pool().max_memory())
"""


def test_pages_are_refused_before_memory_is_taken(tmp_path):
    parquet_of_much(tmp_path / "a.parquet", MUCH // 20)
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "a.parquet")]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    refused, believed = map(int, ended.stdout.split())
    assert refused < 1 << 20
    assert believed > MUCH


def test_pages_of_other_kinds_that_unfold_to_very_much(tmp_path):
    path, much = required(tmp_path / "a.parquet", n_rows=20_000), zeros(MUCH, "zstd")
    n = 20_000
    values = page_of(zeros(8 * n, "zstd"), 0, 8 * n, {5: {**PLAIN, 1: n}})
    second = page_of(much, 3, MUCH, {8: {1: n, 2: 0, 3: n, 4: 0, 5: 0, 6: 0, 7: True}})
    for pages in (second, page_of(much, 2, MUCH, {7: {1: 1, 2: 0}}) + values, second + values):
        required(path, n_rows=n)
        replace_pages(path, pages)
        refused(path, "trap|values in pages")


def test_pages_of_row_names_that_unfold_to_very_much(tmp_path):
    path = tmp_path / "a.parquet"
    schema = pa.schema([pa.field("name", pa.string(), nullable=False), ("a", pa.float64())])
    names = [f"{number:06d}" for number in RNG.permutation(10**6)[:9000]]
    pq.write_table(pa.table([names, np.ones(9000)], schema=schema), path,
                   compression="none", use_dictionary=False)  # fmt: skip
    replace_pages(path, page_of(zeros(100, "zstd"), 0, MUCH, {5: {**PLAIN, 1: 9000}}))
    with pytest.raises(InputError, match="trap"):
        read_matrix(path)
    with pytest.raises(InputError, match="trap"):
        as_source(path).row_names()


@pytest.mark.parametrize(
    "changed",
    [
        {5: {**PLAIN, 1: N + 1}},
        {5: {**PLAIN, 1: N - 1}},
        {5: {**PLAIN, 1: -N}},
        {5: {1: N}},
        {2: -1, 5: PLAIN},
        {3: -1, 5: PLAIN},
        {3: 2**31 - 1, 5: {**PLAIN, 1: N - 1}},
        {1: 3, 5: PLAIN},
        {},
        {5: 1},
        {2: {}, 5: PLAIN},
        {1: 2, 7: {1: 8 * N + 1, 2: 0}},
    ],
    ids=str,
)
def test_headers_that_contradict_the_file(tmp_path, changed):
    path = required(tmp_path / "a.parquet")
    body = zeros(8 * N, "zstd")
    fields = {1: 0, 2: 8 * N, 3: len(body), **changed}
    replace_pages(path, thrift(dict(sorted(fields.items()))) + body)
    refused(path, "no readable Parquet")


@pytest.mark.parametrize("encoding", [6, 7])
def test_texts_that_unfold_by_their_lengths(tmp_path, encoding):
    name = {6: "DELTA_LENGTH_BYTE_ARRAY", 7: "DELTA_BYTE_ARRAY"}[encoding]
    table = pa.table({"name": NAMES, "a": VALUES[:, 0]})
    for version in ("1.0", "2.0"):
        pq.write_table(table, tmp_path / "a.parquet", use_dictionary=False,
                       data_page_version=version, column_encoding={"name": name})  # fmt: skip
        with pytest.raises(InputError, match=name):
            read_matrix(tmp_path / "a.parquet")
        assert read_matrix(tmp_path / "a.parquet", drop=["name"]).shape == (N, 1)


@pytest.mark.parametrize("kind", ["list", "struct", "json"])
def test_row_names_that_take_more_than_a_value_each(tmp_path, kind):
    names = {"list": pa.array([["a"], []]), "struct": pa.array([{"s": "a"}, {"s": "b"}])}
    if hasattr(pa, "json_"):
        names["json"] = pa.ExtensionArray.from_storage(pa.json_(), pa.array(["1", "2"]))
    if kind not in names:
        pytest.skip(f"pyarrow {pa.__version__} has no such type")
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"name": names[kind], "a": [1.0, 2.0], "b": [1.0, 2.0]}), path)
    for long in (False, True):
        with pytest.raises(InputError, match="neither text nor numbers"):
            read_matrix(path, long=long)
    with pytest.raises(InputError, match="neither text nor numbers"):
        as_source(path).row_names()
    assert read_matrix(path, drop=["name"]).shape == (2, 2)


def test_structs_that_are_read_by_the_name_of_a_column(tmp_path):
    path = tmp_path / "a.parquet"
    for inner in ({"b": {"c": "x"}}, {"b": ["x"]}, {"b": {"b.c": 1}}):
        pq.write_table(pa.table({"a": [inner], "a.b": [1.0]}), path)
        with pytest.raises(InputError, match="begins with the name of a column"):
            as_rows(path)
    pq.write_table(pa.table({"a": [1.0], "a.b": [2.0], "a.b.c": [3.0], "a.c": [["x"]]}), path)
    assert read_matrix(path, drop=["a.c"]).values.tolist() == [[1, 2, 3]]


def test_bytes_that_are_the_same_in_each_row(tmp_path):
    """Without its own schema, Arrow would unfold them to 20 GB."""
    codes = pa.array(np.zeros(200_000, np.int32))
    names = pa.DictionaryArray.from_arrays(codes, pa.array([b"x" * 100_000]))
    table = pa.table({"name": names, "a": np.ones(200_000)})
    pq.write_table(table, tmp_path / "a.parquet", store_schema=False)
    with pytest.raises(InputError, match="rows are named"):
        read_matrix(tmp_path / "a.parquet")


def test_values_of_any_width_in_each_row(tmp_path):
    names = pa.array([b"x" * 1_000_000] * 80, pa.binary(1_000_000))
    table = pa.table({"name": names, "a": np.ones(80)})
    pq.write_table(table, tmp_path / "a.parquet", use_dictionary=["name"], compression="zstd")
    with pytest.raises(InputError, match="trap"):
        read_matrix(tmp_path / "a.parquet")


def test_columns_that_share_their_pages(tmp_path):
    """A summary may name the same pages for many columns, to be walked again and again."""
    path = required(tmp_path / "a.parquet")
    content = path.read_bytes()
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    chunk = pq.read_metadata(path).row_group(0).column(0)
    lengths = chunk.total_compressed_size, start - chunk.data_page_offset
    said, longer = (thrift({1: length})[1:-1] for length in lengths)
    path.write_bytes(content[:start] + content[start:].replace(said, longer, 1))
    assert pq.read_metadata(path).row_group(0).column(0).total_compressed_size == lengths[1]
    replace_pages(path, page_of(zeros(8 * N, "zstd"), 0, 8 * N, {5: PLAIN}))
    refused(path, "announces more than it holds")


# The end of the file ----------------------------------------------------------------------------


@pytest.mark.parametrize("how", HOW, ids=str)
def test_the_end_is_read_as_arrow_reads_it(tmp_path, how):
    path = tmp_path / "a.parquet"
    pq.write_table(honest_table(), path, **how)
    about, found = pq.read_metadata(path), read_footer(path)
    assert len(found) == about.num_row_groups
    for number, (chunks, n_rows) in enumerate(found):
        group = about.row_group(number)
        columns = [group.column(place) for place in range(group.num_columns)]
        assert n_rows == group.num_rows
        assert chunks == [
            (c.num_values, c.total_compressed_size, c.dictionary_page_offset or c.data_page_offset)
            for c in columns
        ]


def test_tables_without_rows_are_empty_and_not_damaged(tmp_path):
    for how in ({}, {"use_dictionary": False}):
        pq.write_table(honest_table()[:0].select(["a", "b"]), tmp_path / "a.parquet", **how)
        refused(tmp_path / "a.parquet", "is empty")


def test_any_byte_of_the_end_may_be_wrong(tmp_path):
    """Arrow would end the process where lengths of lists are."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": [1, 2, None], "b": [1.0, 2.0, 3.0]}), path)
    content = path.read_bytes()
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    n_refused = 0
    for place in range(start, len(content)):
        for change in (1, 0x10, 0x80):
            wrong = bytes([content[place] ^ change])
            path.write_bytes(content[:place] + wrong + content[place + 1 :])
            try:
                read_matrix(path)
            except InputError:
                n_refused += 1
    assert n_refused > 100


def ends_with(footer, path):
    path.write_bytes(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    return path


@pytest.mark.parametrize(
    ("footer", "match"),
    [
        (b"", "lacks a field"),
        (b"\x49\x1c\x00\x00", "lacks a field"),
        (b"\x49\xfc\xff\xff\x01\x00", "longer than the file"),
        (b"\x1c" * 20 + bytes(21), "too deep"),
        (b"\x19" * 2000, "too deep"),
        (b"\x1b\x00\x00", "unknown type"),
        (b"\x05\x02\x02\x00", "out of order"),
        (b"\x18\xff\xff\xff\xff\x7f", "lacks a field"),
    ],
)
def test_ends_that_nobody_writes(tmp_path, footer, match):
    refused(ends_with(footer, tmp_path / "a.parquet"), match)


def test_ends_that_describe_very_much(tmp_path):
    n = 110_000
    columns = b"\x19\xfc" + bytes([n & 127 | 128, n >> 7 & 127 | 128, n >> 14]) + n * b"\x3c\0\0"
    path = ends_with(b"\x49\x1c" + columns + b"\0\0", tmp_path / "a.parquet")
    refused(path, "so many columns and row groups .* trap")


@pytest.mark.parametrize("content", [b"PAR1", b"PAR1\x00\x00\x00\x00PARE", b"PAR1" + bytes(8)])
def test_files_without_an_end(tmp_path, content):
    (tmp_path / "a.parquet").write_bytes(content)
    refused(tmp_path / "a.parquet", "does not end like one that is whole")


# Headers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "match"),
    [
        (b"\x15\x00\x05\x02\x00\x00", "out of order"),
        (b"\xf5\x00" * 20 + b"\x00", "out of order"),
        (b"\x15" + b"\x80" * 11, "no end"),
        (b"\x1b\x00\x00", "unknown type"),
        (b"\x1c" * 20 + bytes(21), "too deep"),
    ],
)
def test_headers_that_nobody_writes(header, match):
    with pytest.raises(ValueError, match=match):
        _take(header, 0, {}, [0])


FIELDS = st.dictionaries(
    st.integers(1, 14),
    st.integers(-(2**31), 2**31 - 1) | st.booleans() | st.binary(max_size=20),
    max_size=5,
)


@given(FIELDS, FIELDS, st.binary(max_size=5))
def test_headers_are_read_as_they_were_written(outer, inner, after):
    fields = dict(sorted(outer.items())) | {15: dict(sorted(inner.items()))}
    written = thrift(fields)
    wanted = dict.fromkeys(range(1, 15))
    found, end = _take(written + after, 0, {**wanted, 15: wanted}, [2])
    assert end == len(written)
    assert found.pop(15) == numbers(inner)
    assert found == numbers(outer)


def numbers(fields):
    """Return the numbers of a struct as they are stored: 0, -1, 1, -2 become 0, 1, 2, 3."""
    plain = {k: v for k, v in fields.items() if not isinstance(v, bool | bytes)}
    return {k: 2 * v if v >= 0 else -2 * v - 1 for k, v in plain.items()}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Return a small file, and where the pages of each are."""
    path = tmp_path_factory.mktemp("small") / "a.parquet"
    table = pa.table({"name": ["a", "b", "c"], "a": [1.0, 2.0, None]})
    pq.write_table(table, path, compression="gzip", write_page_checksum=True)
    group = pq.read_metadata(path).row_group(0)
    chunks = [group.column(k) for k in range(2)]
    return path, [c.dictionary_page_offset for c in chunks] + [c.data_page_offset for c in chunks]


@given(st.integers(0, 3), st.binary(min_size=1, max_size=3), st.integers(0, 40))
def test_damaged_headers_are_refused_or_read(small, which, put, shift):
    path, places = small
    content = path.read_bytes()
    place = places[which] + shift
    damaged = path.with_name("damaged.parquet")
    damaged.write_bytes(content[:place] + put + content[place + len(put) :])
    for read in (read_matrix, as_rows):
        try:
            read(damaged)
        except ValueError:  # InputError is one
            continue
