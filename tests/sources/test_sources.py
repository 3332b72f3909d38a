"""Every way of keeping a matrix hands out the same rows."""

import dask.array as da
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
import zarr

from ccot import sources
from ccot.io import InputError
from ccot.sources import FunctionSource, as_source, is_source
from ccot.sources.base import add_up, sum_in_tree

MATRIX = np.random.default_rng(0).normal(size=(100, 7)).astype(np.float32)
CHOSEN = np.array([0, 1, 17, 18, 56, 57, 99])


def save_npy(matrix, folder):
    np.save(folder / "matrix.npy", matrix)
    return folder / "matrix.npy"


def save_parquet(matrix, folder):
    table = pa.table({f"c{place}": column for place, column in enumerate(matrix.T)})
    pq.write_table(table, folder / "matrix.parquet", row_group_size=30)
    return str(folder / "matrix.parquet")


def save_parquet_folder(matrix, folder):
    names = [f"c{place}" for place in range(matrix.shape[1])]
    for number, part in enumerate(np.array_split(matrix, 3)):
        frame = pd.DataFrame(
            part, columns=names, index=[f"r{number}_{row}" for row in range(len(part))]
        )
        frame.to_parquet(folder / f"part-{number}.parquet")
    return folder


def save_zarr(matrix, folder):
    path = str(folder / "matrix.zarr")
    stored = zarr.create_array(
        path, shape=matrix.shape, chunks=(16, 4), dtype=matrix.dtype, overwrite=True
    )
    stored[:] = matrix
    return path


KINDS = {
    "ndarray": lambda matrix, folder: matrix,
    "csr": lambda matrix, folder: sp.csr_array(matrix),
    "csc": lambda matrix, folder: sp.csc_matrix(matrix),
    "npy": save_npy,
    "memmap": lambda matrix, folder: np.load(save_npy(matrix, folder), mmap_mode="r"),
    "memmap view": lambda matrix, folder: np.load(
        save_npy(np.repeat(matrix, 2, axis=0), folder), mmap_mode="r"
    )[::2],
    "memmap by columns": lambda matrix, folder: np.load(
        save_npy(np.asfortranarray(matrix), folder), mmap_mode="r"
    ),
    "parquet": save_parquet,
    "folder of parquet": save_parquet_folder,
    "zarr path": save_zarr,
    "zarr array": lambda matrix, folder: zarr.open(save_zarr(matrix, folder), mode="r"),
    "dask": lambda matrix, folder: da.from_array(matrix, chunks=(23, 7)),
    "dask, columns apart": lambda matrix, folder: da.from_array(matrix, chunks=(23, 3)),
    "function": lambda matrix, folder: FunctionSource(
        lambda first, last: matrix[first:last], matrix.shape, part_rows=9
    ),
}


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch):
    monkeypatch.setattr("ccot.sources.base.PART_CELLS", 100)


@pytest.fixture(params=KINDS)
def source(request, tmp_path):
    return as_source(KINDS[request.param](MATRIX, tmp_path))


def dense(rows):
    return rows.toarray() if sp.issparse(rows) else rows


def test_parts_are_all_rows_in_order(source):
    assert source.shape == MATRIX.shape
    assert source.parts[0].start == 0
    assert source.parts[-1].stop == len(MATRIX)
    parts = [dense(source.read(part)) for part in source.parts]
    assert len(parts) > 2
    np.testing.assert_array_equal(np.concatenate(parts), MATRIX.astype(np.float64))
    assert all(part.dtype == np.float64 for part in parts)


@pytest.mark.parametrize("chosen", [CHOSEN, CHOSEN[:0], np.arange(100)], ids=["few", "no", "all"])
def test_chosen_rows_are_those(source, chosen):
    np.testing.assert_array_equal(dense(source.rows(chosen)), MATRIX[chosen].astype(np.float64))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("value", "name"), [(np.nan, "NaN"), (-np.inf, "infinity")])
def test_bad_values_are_named_by_row(kind, value, name, tmp_path):
    matrix = MATRIX.copy()
    matrix[57, 2] = value
    source = as_source(KINDS[kind](matrix, tmp_path))
    for read in (
        lambda: source.rows(CHOSEN),
        lambda: [source.read(part) for part in source.parts],
    ):
        with pytest.raises(ValueError, match=f"contains {name} in row 57: drop"):
            read()
    if name == "NaN":
        missing = as_source(KINDS[kind](matrix, tmp_path), allow_nan=True)
        np.testing.assert_array_equal(dense(missing.rows(CHOSEN)), matrix[CHOSEN])


@pytest.mark.parametrize(
    "kind", ["ndarray", "csr", "npy", "memmap", "memmap view", "dask", "dask, columns apart"]
)
def test_some_sources_can_be_turned(kind, tmp_path):
    turned = as_source(KINDS[kind](MATRIX, tmp_path)).transposed()
    assert turned.shape == MATRIX.shape[::-1]
    np.testing.assert_array_equal(dense(turned.rows(np.array([2, 5]))), MATRIX.T[[2, 5]])


@pytest.mark.parametrize("kind", ["parquet", "zarr path", "function"])
def test_others_say_that_they_cannot(kind, tmp_path):
    with pytest.raises(
        ValueError, match=r"more columns \(7\) than rows .* store and fit the transposed"
    ):
        as_source(KINDS[kind](MATRIX, tmp_path)).transposed()


def test_a_file_is_read_without_being_mapped(tmp_path):
    path = save_npy(MATRIX, tmp_path)
    assert isinstance(as_source(path), sources.NpySource)
    assert isinstance(as_source(np.load(path, mmap_mode="r")), sources.NpySource)


def test_changes_that_are_in_no_file_are_seen(tmp_path):
    mapped = np.load(save_npy(MATRIX, tmp_path), mmap_mode="c")
    mapped[3] = 5
    assert (as_source(mapped).rows(np.array([3])) == 5).all()


def test_columns_keep_their_names(tmp_path):
    names = [f"c{place}" for place in range(7)]
    assert as_source(save_parquet(MATRIX, tmp_path)).column_names == names
    (tmp_path / "matrix.parquet").unlink()
    assert as_source(save_parquet_folder(MATRIX, tmp_path)).column_names == names


def test_folders_may_hold_tables_without_rows(tmp_path):
    save_parquet_folder(MATRIX, tmp_path)
    empty = pd.read_parquet(tmp_path / "part-1.parquet")[:0]
    empty.to_parquet(tmp_path / "part-0-empty.parquet")
    np.testing.assert_array_equal(as_source(tmp_path).rows(np.arange(100)), MATRIX)


def test_what_is_taken_whole_is_no_source():
    frame = pd.DataFrame(MATRIX)
    assert not any(is_source(X) for X in (MATRIX, sp.csr_array(MATRIX), frame, MATRIX.tolist()))
    assert is_source(da.from_array(MATRIX))
    assert is_source("matrix.npy")


def test_problems_are_named_with_a_way_out(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file .*absent.npy: check the path"):
        as_source(tmp_path / "absent.npy")
    (tmp_path / "table.csv").write_text("1,2\n")
    with pytest.raises(ValueError, match=r"table.csv is not a .npy.*read_table"):
        as_source(tmp_path / "table.csv")
    zarr.open_group(str(tmp_path / "group.zarr"), mode="w")
    with pytest.raises(ValueError, match="group of arrays: pass the path of one"):
        as_source(tmp_path / "group.zarr")
    np.save(tmp_path / "text.npy", np.array([["a", "b"]]))
    with pytest.raises(ValueError, match="type <U1 where numbers are expected"):
        as_source(tmp_path / "text.npy")
    np.save(tmp_path / "cube.npy", np.zeros((2, 3, 4)))
    with pytest.raises(ValueError, match=r"two axes, got an array of shape \(2, 3, 4\)"):
        as_source(tmp_path / "cube.npy")
    unknown = da.from_array(MATRIX)[da.from_array(MATRIX[:, 0] > 0)]
    with pytest.raises(ValueError, match=r"X\.compute_chunk_sizes"):
        as_source(unknown)
    pq.write_table(pa.table({"a": [1.0]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"b": [1.0]}), tmp_path / "b.parquet")
    told = r"b.parquet has other columns than .*a.parquet: 'b' instead of 'a'"
    with pytest.raises(ValueError, match=told):
        as_source(tmp_path)


def test_parquet_files_whose_rows_are_named_by_other_columns_are_refused(tmp_path):
    for file, names in (("a", "gene"), ("b", "sample")):
        columns = {names: ["x", "y"], "value": [1.0, 2.0]}
        pq.write_table(pa.table(columns), tmp_path / f"{file}.parquet")
    with pytest.raises(InputError, match=r"b.parquet has .*: 'sample' instead of 'gene'"):
        as_source(tmp_path)


@pytest.mark.parametrize("n_items", [1, 7, 8, 9, 64, 65, 600])
def test_sums_in_a_tree_take_every_item_once_and_in_order_and_hold_few(n_items):
    held, most = 0, 0

    def made():
        nonlocal held, most
        for item in range(n_items):
            held += 1
            most = max(most, held)
            yield [item]

    def add_group(group):
        nonlocal held
        assert len(group) <= 8
        held -= len(group) - 1
        return add_up(group)

    assert sum_in_tree(made(), n_items, add_group) == list(range(n_items))
    assert held == 1
    assert most <= 24
