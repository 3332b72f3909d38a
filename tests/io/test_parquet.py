"""Parquet files: honest ones are read; what those made to harm do, they do to another process."""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.hostile_files import page_of, parquet_of_much, replace_pages, thrift, zeros
from ccot.io import InputError, parquet, read_matrix
from ccot.sources import as_source, files
from tests.conftest import needs_proc

pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

N = 3000
RNG = np.random.default_rng(0)
VALUES = RNG.integers(0, 50, (N, 3)).astype(float)
VALUES[RNG.random(VALUES.shape) < 0.1] = np.nan
NAMES = [f"row {number} of many" for number in range(N)]
PLAIN = {1: N, 2: 0, 3: 3, 4: 3}
MUCH = 80 << 20


READER = parquet.parquet_reader()


@pytest.fixture(autouse=True)
def one_process(monkeypatch):
    """Let one process read all files that it survives, to save the time of starting others."""
    for module in (parquet, files):
        monkeypatch.setattr(module, "parquet_reader", lambda *what: READER)


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
    pq.write_table(table, tmp_path / "a.parquet", use_dictionary=False)
    assert read_matrix(tmp_path / "a.parquet").row_names == tuple(names)


def test_large_row_groups_are_read_a_few_columns_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "_ARROW_BYTES", 500_000)
    pq.write_table(pa.table({f"c{k}": VALUES[:, k % 3] + k for k in range(7)}), tmp_path / "a.pq")
    expected = np.column_stack([VALUES[:, k % 3] + k for k in range(7)])
    np.testing.assert_array_equal(read_matrix(tmp_path / "a.pq").values, expected)


def test_very_many_columns_or_names_pass(tmp_path):
    """Their description, or their names, take more memory than their values."""
    for shape in ((3, 5000), (300_000, 2)):
        values = RNG.integers(0, 5, shape).astype(np.float32)
        columns = {f"g{k}": values[:, k] for k in range(shape[1])}
        names = [f"cell-{k:08d}" for k in range(shape[0])]
        pq.write_table(pa.table({"name": names, **columns}), tmp_path / "a.parquet")
        np.testing.assert_array_equal(read_matrix(tmp_path / "a.parquet").values, values)


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


def worker_peak():
    """Return the most memory that the process ever took, bytes; 0 if none tells."""
    process = READER._process
    assert process is not None
    status = Path(f"/proc/{process._popen.pid}/status")
    if not process.is_mine() or not status.exists():
        return 0
    return 1024 * int(status.read_text().split("VmHWM:")[1].split()[0])


def refused(path, match=None, reads=(read_matrix, as_rows)):
    READER._process and READER._process.end()
    for read in reads:
        with pytest.raises(InputError, match=match):
            read(path)
        # Python, NumPy and Arrow take half of it.
        assert worker_peak() < (200 << 20)


def refused_or(expected, path):
    """Refuse the file, or read it as Arrow does."""
    for read in (lambda path: read_matrix(path).values, as_rows):
        try:
            np.testing.assert_array_equal(read(path), expected)
        except InputError:
            continue


@pytest.mark.parametrize("codec", ["zstd", "gzip"])
def test_pages_that_unfold_to_very_much(tmp_path, codec):
    path = tmp_path / "a.parquet"
    parquet_of_much(path, MUCH // 20, codec)
    summary = pq.read_metadata(path).row_group(0)
    assert summary.total_byte_size < 1e6 > path.stat().st_size
    refused(path)
    refused(path, reads=[lambda path: read_matrix(path, long=["a", "b"])])
    parquet_of_much(path, 1000, codec)  # Arrow is content with it
    assert not read_matrix(path, index_col=False).values[:, 0].any()


def test_pages_of_other_kinds_that_unfold_to_very_much(tmp_path):
    path, much = required(tmp_path / "a.parquet", n_rows=20_000), zeros(MUCH, "zstd")
    n = 20_000
    values = page_of(zeros(8 * n, "zstd"), 0, 8 * n, {5: {**PLAIN, 1: n}})
    second = page_of(much, 3, MUCH, {8: {1: n, 2: 0, 3: n, 4: 0, 5: 0, 6: 0, 7: True}})
    for pages in (second, page_of(much, 2, MUCH, {7: {1: 1, 2: 0}}) + values, second + values):
        required(path, n_rows=n)
        replace_pages(path, pages)
        refused(path)


def test_pages_of_row_names_that_unfold_to_very_much(tmp_path):
    path = tmp_path / "a.parquet"
    schema = pa.schema([pa.field("name", pa.string(), nullable=False), ("a", pa.float64())])
    names = [f"{number:06d}" for number in RNG.permutation(10**6)[:9000]]
    pq.write_table(pa.table([names, np.ones(9000)], schema=schema), path,
                   compression="none", use_dictionary=False)  # fmt: skip
    replace_pages(path, page_of(zeros(100, "zstd"), 0, MUCH, {5: {**PLAIN, 1: 9000}}))
    refused(path, reads=[read_matrix, lambda path: as_source(path).row_names()])


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
    numbers = (
        pq.read_table(required(path.with_name("b.parquet"))).to_pandas().to_numpy(float, copy=True)
    )
    numbers[:, 0] = 0
    refused_or(numbers, path)


@pytest.mark.parametrize("name", ["DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"])
def test_texts_by_their_lengths(tmp_path, name):
    table = pa.table({"name": NAMES, "a": VALUES[:, 0]})
    for version in ("1.0", "2.0"):
        pq.write_table(table, tmp_path / "a.parquet", use_dictionary=False,
                       data_page_version=version, column_encoding={"name": name})  # fmt: skip
        assert read_matrix(tmp_path / "a.parquet").row_names == tuple(NAMES)


def test_texts_that_unfold_by_their_beginnings(tmp_path):
    """Each of them is the one before and another end: 200 MB."""
    names = ["x" * 100_000 + f"{k:05d}" for k in range(2_000)]
    table = pa.table({"name": names, "a": np.ones(2_000)})
    pq.write_table(table, tmp_path / "a.parquet", use_dictionary=False, compression="zstd",
                   column_encoding={"name": "DELTA_BYTE_ARRAY"},
                   write_statistics=False)  # fmt: skip
    assert (tmp_path / "a.parquet").stat().st_size < 1e6
    refused(tmp_path / "a.parquet", reads=[read_matrix])


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


def test_structs_whose_fields_are_named_like_columns(tmp_path):
    path = tmp_path / "a.parquet"
    for inner in ({"b": {"c": "x"}}, {"b": ["x"]}, {"b": {"b.c": 1}}):
        pq.write_table(pa.table({"a": [inner], "a.b": [1.0]}), path)
        assert read_matrix(path, drop=["a"]).values.tolist() == [[1]]
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
    refused(tmp_path / "a.parquet", reads=[read_matrix])


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
    numbers = (
        pq.read_table(required(path.with_name("b.parquet"))).to_pandas().to_numpy(float, copy=True)
    )
    refused_or(numbers * [0, 1], path)


# The end of the file ----------------------------------------------------------------------------


def test_tables_without_rows_are_empty_and_not_damaged(tmp_path):
    for how in ({}, {"use_dictionary": False}):
        pq.write_table(honest_table()[:0].select(["a", "b"]), tmp_path / "a.parquet", **how)
        refused(tmp_path / "a.parquet", "is empty")


CHANGES = st.tuples(st.floats(0, 1, exclude_max=True), st.sampled_from([1, 0x10, 0x80]))


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(CHANGES)
def test_any_byte_of_the_end_may_be_wrong(small, change):
    """Arrow ends its process where lengths of lists are."""
    path, _ = small
    content = path.read_bytes()
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    place = start + int(change[0] * (len(content) - start))
    wrong = bytes([content[place] ^ change[1]])
    damaged = path.with_name("damaged.parquet")
    damaged.write_bytes(content[:place] + wrong + content[place + 1 :])
    try:
        read_matrix(damaged)
    except InputError:
        return


def ends_with(footer, path):
    path.write_bytes(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    return path


@pytest.mark.parametrize(
    "footer",
    [
        b"",
        b"\x49\x1c\x00\x00",
        b"\x49\xfc\xff\xff\x01\x00",
        b"\x1c" * 20 + bytes(21),
        b"\x19" * 2000,
        b"\x1b\x00\x00",
        b"\x05\x02\x02\x00",
        b"\x18\xff\xff\xff\xff\x7f",
    ],
)
def test_ends_that_nobody_writes(tmp_path, footer):
    refused(ends_with(footer, tmp_path / "a.parquet"))


def test_ends_that_describe_very_much(tmp_path):
    n = 110_000
    columns = b"\x19\xfc" + bytes([n & 127 | 128, n >> 7 & 127 | 128, n >> 14]) + n * b"\x3c\0\0"
    path = ends_with(b"\x49\x1c" + columns + b"\0\0", tmp_path / "a.parquet")
    refused(path)


@pytest.mark.parametrize("content", [b"PAR1", b"PAR1\x00\x00\x00\x00PARE", b"PAR1" + bytes(8)])
def test_files_without_an_end(tmp_path, content):
    (tmp_path / "a.parquet").write_bytes(content)
    refused(tmp_path / "a.parquet", "not a readable Parquet file")


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Return a small file, and where the pages of each are."""
    path = tmp_path_factory.mktemp("small") / "a.parquet"
    table = pa.table({"name": ["a", "b", "c"], "a": [1.0, 2.0, None]})
    pq.write_table(table, path, compression="gzip", write_page_checksum=True)
    group = pq.read_metadata(path).row_group(0)
    chunks = [group.column(k) for k in range(2)]
    return path, [c.dictionary_page_offset for c in chunks] + [c.data_page_offset for c in chunks]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
        except InputError:
            continue


def test_an_honest_file_after_a_crash(tmp_path):
    refused(ends_with(b"\x49\xfc\xff\xff\x01\x00", tmp_path / "a.parquet"))
    test_honest_files_pass(tmp_path, {})


@needs_proc
def test_the_worker_ends_with_its_parent(tmp_path):
    program = (
        "import os, sys; from ccot.io import parquet; from pathlib import Path\n"
        "table = parquet.ArrowTable(Path(sys.argv[1]), parquet.parquet_reader())\n"
        "print(table.reader._process._popen.pid, flush=True); os.kill(os.getpid(), 9)"
    )
    pq.write_table(honest_table(), tmp_path / "a.parquet")
    ended = subprocess.run([sys.executable, "-c", program, str(tmp_path / "a.parquet")],
                           capture_output=True, text=True, timeout=100)  # fmt: skip
    worker, began = Path("/proc", ended.stdout.strip()), time.monotonic()
    while worker.exists() and "zombie" not in (worker / "status").read_text():
        assert time.monotonic() - began < 20
        time.sleep(0.1)
