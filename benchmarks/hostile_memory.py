"""Memory of the readers on files made to take much of it, and on honest ones.

Each file is read by a process of its own, which has read a tiny file of the same kind before: what
the peak of its memory gains by the large one is divided by the size of the file, or by what it
unfolds to where it is compressed. Where a reader starts a process, the larger of the two counts.
"""

import argparse
import ctypes
import gc
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import psutil

from benchmarks.hostile_files import (
    annotated,
    archive,
    array,
    counts,
    database,
    digit_rows,
    empty_cells,
    entities,
    far_cell,
    feather,
    gzip_of_much,
    gzipped,
    gzipped_market,
    half_square,
    listed,
    market,
    mostly_digits,
    named_cells,
    named_rows,
    names_alone,
    nearly_constant,
    nested_record,
    nothing,
    one_row,
    own_keys,
    pairs_parquet,
    parquet,
    parquet_of_much,
    ratings,
    real_market,
    real_model,
    real_parquet,
    real_records,
    real_rows,
    real_table,
    real_zarr,
    repeated,
    shared_parts,
    short_rows,
    short_texts,
    sparse_archive,
    square,
    text_rows,
    tree_of,
    workbook,
    zarr_of_much,
    zarr_of_nothing,
)
from benchmarks.record import load, of_this_run, store
from ccot.io import InputError, ModelFileError, read_matrix, read_table
from ccot.persistence.model_file import read_values
from ccot.sources import as_source

PLAIN = {"header": False, "index_col": False}
MOST_BYTES = 8 << 30


# Cases ------------------------------------------------------------------------------------------


def read_rows(path: Path) -> None:
    source = as_source(path)
    for part in source.parts:
        source.read(part)


@dataclass(frozen=True)
class Case:
    """A file, its ending, and how it is read."""

    what: str
    make: Callable[[Path, int], int | None]
    ending: str
    read: Callable[[Path], Any] = read_matrix
    options: dict[str, Any] = field(default_factory=dict)
    honest: bool = False


def _text() -> Iterator[Case]:
    text = partial(Case, ending="csv")
    yield text("CSV: names and real values", real_table, honest=True)
    yield text("CSV: digits", repeated("1,2,3,4,5,6,7,8,9,0\n"), honest=True)
    yield text("CSV: two columns of digits", repeated("1,2\n"))
    yield text("CSV: empty cells", repeated("," * 999 + "\n"), options=PLAIN)
    yield text("CSV: all cells quoted", repeated('"12","34"\n'))
    yield text("CSV: one row", one_row("12"))
    yield text("CSV: one row and an emoji", one_row("12", ",😀"))
    yield text("CSV: one row of many digits and an emoji", one_row("0." + "1" * 19, ",😀"),
               options=PLAIN)  # fmt: skip
    yield text("CSV: a header and nothing else", one_row("ab", "\n"), options={"header": True})
    yield text("CSV: one row on many lines", repeated('","12\n', "1,2\n" * 60 + '"'))
    yield text("CSV: short names, all distinct", named_rows(","), options={"index_col": 0})
    yield text("CSV: short names, twice each", repeated("ab,1\n"), options={"index_col": 0})
    yield text("CSV: short names in Greek", named_rows(",", 3, [chr(k) for k in range(913, 1113)]),
               options={"index_col": 0})  # fmt: skip
    long = {"long": True}
    yield text("long table: ratings", ratings, options=long, honest=True)
    yield text("long table: all names distinct", named_cells, options=long)
    yield text("long table: pairs", repeated("1,2\n", "a,b\n"), options={"long": [0, 1]})


def _packed_text() -> Iterator[Case]:
    yield Case("gzip: digits", gzipped(mostly_digits), "csv.gz")
    yield Case("gzip: real values", gzipped(real_table), "csv.gz", honest=True)
    yield Case("gzip: digits that unfold without end", gzip_of_much, "csv.gz")
    yield Case("Matrix Market: real values", real_market, "mtx", honest=True)
    pattern = "coordinate pattern"
    yield Case("Matrix Market: pattern", market(f"{pattern} general", "1 1\n", listed), "mtx")
    yield Case("Matrix Market: pattern, symmetric", market(f"{pattern} symmetric", "2 1\n", listed),
               "mtx")  # fmt: skip
    yield Case("Matrix Market: dense", market("array integer general", "1\n", square), "mtx")
    yield Case("Matrix Market: dense, symmetric",
               market("array integer symmetric", "1\n", half_square), "mtx")  # fmt: skip
    yield Case("Matrix Market: gzip, pattern", gzipped_market, "mtx.gz")


def _arrays() -> Iterator[Case]:
    yield Case("npy: float64", array("f8"), "npy", honest=True)
    yield Case("npy: float64, columns first", array("f8", "F"), "npy", honest=True)
    yield Case("npy: float16", array("f2"), "npy")
    yield Case("npy: int8", array("i1"), "npy")
    yield Case("npy: bool, columns first", array("?", "F"), "npy")
    yield Case("npz: int8, compressed", archive, "npz")
    yield Case("npz: sparse float64", sparse_archive("csr", "f8"), "npz", honest=True)
    for form in ("csr", "bsr", "dia"):
        yield Case(f"npz: sparse int8, {form}", sparse_archive(form, "i1"), "npz")


def _tables() -> Iterator[Case]:
    yield Case("Parquet: names and real values", real_parquet, "parquet", honest=True)
    yield Case("Parquet: runs", parquet, "parquet")
    yield Case("Parquet: runs, few names", partial(parquet, names=["a", "b"], n=1), "parquet")
    yield Case("Parquet: runs, a long name", partial(parquet, names=["a" * 100_000], n=1),
               "parquet")  # fmt: skip
    yield Case("Parquet: nothing but names", names_alone, "parquet")
    yield Case("Parquet: all names distinct", partial(parquet, names=map(str, count(10**6)), n=1),
               "parquet")  # fmt: skip
    yield Case("Parquet: pairs in runs", pairs_parquet, "parquet", options={"long": [0, 1]})
    yield Case("Parquet: pages that unfold without end", parquet_of_much, "parquet")
    yield Case("h5ad: sparse counts", annotated(counts), "h5ad", honest=True)
    yield Case("h5ad: int8, compressed", annotated(nearly_constant), "h5ad")
    yield Case("h5ad: zeros, compressed", annotated(nothing), "h5ad")
    yield Case("h5ad: short names, no values", annotated(short_rows, short_names=True), "h5ad")


def _cells() -> Iterator[Case]:
    book = partial(Case, ending="xlsx", read=read_table)
    yield book("Excel: real values", workbook(real_rows), honest=True)
    yield book("Excel: digits", workbook(digit_rows))
    yield book("Excel: one cell, far away", workbook(far_cell))
    yield book("Excel: one row of empty cells", workbook(empty_cells))
    yield book("Excel: short texts, all distinct", workbook(text_rows, short_texts))
    yield book("Excel: texts by names for names", workbook(text_rows, entities))
    records = partial(Case, ending="json", read=read_table)
    yield records("JSON: real values", real_records, honest=True)
    yield records("JSON: digits", repeated('{"a":1,"b":2}\n'))
    yield records("JSON: a key of its own for each record", own_keys)
    yield records("JSON: lists in lists", nested_record)
    base = partial(Case, ending="sqlite", read=read_table)
    yield base("SQLite: real values", database, honest=True)
    yield base("SQLite: short texts, all distinct", partial(database, text="name"))
    yield Case("Feather: real values", partial(feather, honest=True), "feather", honest=True)
    yield Case("Feather: runs", feather, "feather")


def _models() -> Iterator[Case]:
    model = partial(Case, ending="ccot", read=partial(read_values, types={}))
    yield model("model: names and arrays", real_model, honest=True)
    yield model("model: short texts", tree_of('"ab",', '{"strings": [', '"a"]}'))
    yield model("model: numbers", tree_of("1234,"))
    yield model("model: empty lists", tree_of("[],"))
    yield model("model: small objects", tree_of('{"array":0},'))
    yield model("model: many matrices of the same arrays", shared_parts)


def _by_rows() -> Iterator[Case]:
    rows = partial(Case, read=read_rows)
    yield rows("by rows, npy: int8", array("i1"), "npy")
    yield rows("by rows, Parquet: runs", parquet, "parquet")
    yield rows("by rows, Parquet: pages that unfold without end", parquet_of_much, "parquet")
    yield rows("by rows, Zarr: one chunk, not there", zarr_of_nothing, "zarr")
    yield rows("by rows, Zarr: a chunk that unfolds without end", zarr_of_much, "zarr")
    yield rows("by rows, Zarr: real numbers", real_zarr, "zarr", honest=True)


CASES = {
    case.what: case
    for cases in (_text, _packed_text, _arrays, _tables, _cells, _models, _by_rows)
    for case in cases()
}


# Measuring --------------------------------------------------------------------------------------


def peak_of(process: psutil.Process | str) -> int:
    """Return the highest resident memory that the system saw of a process, bytes."""
    number = process if isinstance(process, str) else process.pid
    status = Path(f"/proc/{number}/status").read_text()
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


@contextmanager
def watched_children() -> Iterator[list[int]]:
    """Collect the peaks of processes that are started meanwhile."""
    peaks, over = [0], threading.Event()

    def watch() -> None:
        itself = psutil.Process()
        while not over.wait(0.01):
            for child in itself.children():
                try:
                    peaks[0] = max(peaks[0], peak_of(child))
                except (OSError, IndexError):  # it has ended
                    continue

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peaks
    finally:
        over.set()
        thread.join()


def read(case: Case, path: Path) -> str:
    try:
        case.read(path, **case.options)
    except (InputError, ModelFileError) as refusal:
        return " ".join(str(refusal).replace(str(path), "it").split())
    except ValueError as refusal:
        if "by rows" not in case.what:
            raise
        return str(refusal)
    return ""


def in_this_process(what: str, tiny: Path, path: Path) -> dict:
    """Read both files; return what the second one added to the peak."""
    import resource

    case = CASES[what]
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, resource.RLIM_INFINITY))
    with watched_children() as first:
        read(case, tiny)
    # What was freed for the tiny file may be used again, and would hide as much.
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    before = peak_of("self")
    began = time.process_time()
    with watched_children() as second:
        refusal = read(case, path)
    grown = max(peak_of("self") - before, second[0] - first[0])
    return {"megabytes_more": round(grown / 1e6, 1), "refused": refusal,
            "seconds": round(time.process_time() - began, 1)}  # fmt: skip


def size_of(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def measure(what: str, size: int, folder: Path) -> dict:
    """Write the files of a case and have them read by a process of its own."""
    case = CASES[what]
    tiny, path = folder / f"tiny.{case.ending}", folder / f"large.{case.ending}"
    case.make(tiny, 2000)
    unfolded = case.make(path, size) or path.stat().st_size
    command = [sys.executable, "-m", "benchmarks.hostile_memory", "--child", what, tiny, path]
    ended = subprocess.run(command, capture_output=True, text=True)
    seen = json.loads(ended.stdout) if not ended.returncode else {
        "megabytes_more": None, "refused": ended.stderr[-300:], "crashed": True
    }  # fmt: skip
    told = {"what": what, "honest": case.honest, "file_megabytes": size_of(path) / 1e6,
            "unfolded_megabytes": unfolded / 1e6}  # fmt: skip
    told = {key: round(v, 2) if isinstance(v, float) else v for key, v in told.items()}
    for made in (tiny, path):
        if made.is_file():
            made.unlink()
    if seen["megabytes_more"] is None:
        return told | seen
    return told | seen | {"times": round(1e6 * seen["megabytes_more"] / unfolded, 2)}


def stored_cells() -> dict[str, dict]:
    try:
        return {cell["what"]: cell for cell in load("hostile_memory")["cells"]}
    except FileNotFoundError:
        return {}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--megabytes", type=float, default=30)
    parser.add_argument(
        "--only", default="", help="files whose description holds this; others stay as stored"
    )
    parser.add_argument("--dry", action="store_true", help="print what was seen, store nothing")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        what, *paths = arguments.child
        print(json.dumps(in_this_process(what, *map(Path, paths))))
        return
    cells = stored_cells()
    for what in CASES:
        if arguments.only in what:
            with tempfile.TemporaryDirectory(prefix="ccot-") as folder:
                seen = measure(what, int(1e6 * arguments.megabytes), Path(folder))
            cells[what] = of_this_run(seen)
            print(cells[what], flush=True)
    if not arguments.dry:
        known = [cells[what] for what in CASES if what in cells]
        print(f"stored {store('hostile_memory', {'cells': known})}")


if __name__ == "__main__":
    main()
