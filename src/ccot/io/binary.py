"""Arrays and sparse matrices from files: NumPy, SciPy, Matrix Market, AnnData, Zarr."""

import gzip
import io
import math
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from ccot.io.isolated.client import FilledArray, IsolatedReader
from ccot.io.isolated.limits import LimitedStream
from ccot.io.matrix import (
    BoundedTexts,
    InputError,
    NamedMatrix,
    check_held,
    check_unfolded,
    named_matrix,
    sorting_bytes,
    text_limit,
    unfolding_limit,
)

# Bytes that a value takes on its way from any sparse format to float64 in rows; an entry in a list
# of places, in the matrix that comes of it and in its text; and a name, however short it is.
_SPARSE_BYTES, _ENTRY_BYTES, _NAME_BYTES = 24, 32, 220
_PASSED = (InputError, MemoryError, ImportError)
_REMEDY = "save only the matrix, with numpy.save or scipy.sparse.save_npz"
# How many bytes tell the length of a header of NumPy, and who reads it.
_HEADERS = {
    (1, 0): (2, np.lib.format.read_array_header_1_0),
    (2, 0): (4, np.lib.format.read_array_header_2_0),
}


@contextmanager
def damage_explained(path: Path, kind: str, passed: Any = _PASSED) -> Iterator[None]:
    """Turn what a damaged file causes in its reader into one message."""
    try:
        yield
    except passed:
        raise
    except Exception as error:  # readers of damaged files raise whatever they stumble over
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        damaged = f"{path} is not a readable {kind} file ({reason})"
        raise InputError(f"{damaged}: write or download it again") from error


def check_installed(package: str, what: str, extra: str, remedy: str = "") -> None:
    """Say what to install where a package is not there."""
    if find_spec(package) is None:
        install = f"pip install 'ccot[{extra}]'{remedy}"
        raise ImportError(f"{what} need {package}, which is not installed: {install}")


def unfolded(path: Path, file: IO[bytes] | None = None) -> io.BufferedReader:
    """Open a gzip file, which may be open already; one that unfolds to too much is refused."""
    limit = text_limit(path.stat().st_size)
    # Closed with the reader that is returned.
    raw = gzip.open(path if file is None else file)  # noqa: SIM115
    return io.BufferedReader(LimitedStream(raw, limit, InputError, str(path)).counted())


def unpacked_size(archive: zipfile.ZipFile, path: Path, limit: Any = unfolding_limit) -> int:
    """Return the bytes of what an archive holds, or refuse one that cannot hold so much."""
    members = archive.infolist()
    if sum(member.compress_size for member in members) > path.stat().st_size:
        raise InputError(f"{path} is incomplete: download it again")
    size = sum(member.file_size for member in members)
    check_unfolded(size, path, limit)
    return size


def map_array(path: Path) -> np.memmap:
    """Map a file that holds an array."""
    with path.open("rb") as file:
        read_header(file, path.stat().st_size)
    return np.load(path, mmap_mode="r", allow_pickle=False)


def read_header(stream: IO[bytes], size: int) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Read the header of an array, and compare it with the room that the array has."""
    version = np.lib.format.read_magic(stream)
    if version not in _HEADERS:
        raise ValueError(f"an array of version {version} is not known")
    n_digits, reader = _HEADERS[version]
    length = int.from_bytes(digits := stream.read(n_digits), "little")
    left = size - len(np.lib.format.MAGIC_PREFIX) - len(version) - n_digits - length
    if left < 0:
        raise ValueError("an array's header is longer than the file")
    shape, fortran, dtype = reader(io.BytesIO(digits + stream.read(length)))
    if any(axis < 0 for axis in shape):
        raise ValueError(f"an array cannot have the shape {shape}")
    if math.prod(shape) * dtype.itemsize > left:
        raise ValueError("an array is shorter than its header says")
    return shape, fortran, dtype


def read_npy(path: Path) -> NamedMatrix:
    """Read an array of NumPy."""
    with damage_explained(path, "NumPy"):
        return named_matrix(map_array(path), None, None, "NumPy array")


def read_npz(path: Path) -> NamedMatrix:
    """Read a sparse matrix of SciPy, or the only array of an archive of NumPy."""
    with damage_explained(path, "NPZ"):
        with zipfile.ZipFile(path) as archive:
            names, size = archive.namelist(), unpacked_size(archive, path)
            for member in archive.infolist():
                with archive.open(member) as stream:
                    read_header(stream, member.file_size)
        if "format.npy" in names:
            found = sp.load_npz(path)
            check_unfolded(8 * sum(found.shape), path)
            what = f"a sparse matrix of format {found.format}"
            check_held(_SPARSE_BYTES * found.data.size, size, what, "save it in CSR format")
            return named_matrix(found, None, None, "SciPy sparse matrix")
        if len(names) != 1:
            shown = ", ".join(names)[:60]
            raise InputError(f"{path} holds {len(names)} arrays ({shown}): {_REMEDY}")
        with np.load(path, allow_pickle=False) as arrays:
            return named_matrix(arrays[arrays.files[0]], None, None, "NumPy array")


def read_matrix_market(path: Path) -> NamedMatrix:
    """Read a Matrix Market file, in another process."""
    size = path.stat().st_size
    text_size = text_limit(size) if path.suffix == ".gz" else size
    reader = IsolatedReader("market", "Matrix Market file", text_limit=text_size)
    about = reader.open(path)
    shape, n_listed = (about["n_rows"], about["n_columns"]), about["n_listed"]
    dense = about["format"] == "array"
    n_entries = n_listed * (1 if dense or about["symmetry"] == "general" else 2)
    # Two characters a number at least, of which half may be left out where it is symmetric.
    words = 1 if dense else 4 if about["field"] == "pattern" else 6
    if words * n_listed > text_size + 1:
        raise InputError(f"{path} is too short for {n_listed} entries: download it again")
    n_bytes = 8 * shape[0] * shape[1] if dense else 24 * n_entries + 8 * sum(shape)
    check_unfolded(n_bytes, path)
    answers = (arrays for _, arrays in reader.read(path, n_bytes))
    if dense:
        values = FilledArray(np.empty(shape))
        for (rows,) in answers:
            values.put(rows)
        return named_matrix(values.whole(), None, None, "Matrix Market")
    entries = f"{n_entries} entries", "add up entries that are listed more than once"
    check_held(_ENTRY_BYTES * n_entries, text_size, *entries)
    kind = np.int32 if max(shape) < 2**31 else np.int64
    parts = [FilledArray(np.empty(n_entries, one)) for one in (kind, kind, np.float64)]
    for arrays in answers:
        for part, array in zip(parts, arrays, strict=True):
            part.put(array)
    rows, columns, values = (part.some() for part in parts)
    check_held(_ENTRY_BYTES * n_entries + sorting_bytes(rows), text_size, *entries)
    matrix = sp.coo_array((values, (rows, columns)), shape=shape)
    return named_matrix(matrix, None, None, "Matrix Market")


def read_h5ad(path: Path, layer: str | None = None) -> NamedMatrix:
    """Read the matrix of an ``.h5ad`` file, in another process."""
    check_installed("h5py", "h5ad files", "io")
    reader = IsolatedReader("h5ad", "h5ad file", layer=layer)
    about = reader.open(path)
    n_bytes = _check_declared(about, path)
    parts: dict[str, FilledArray] = {
        name: FilledArray(np.empty(shape, np.float64 if name == "data" else kind))
        for name, (shape, kind) in about["parts"].items()
    }
    texts = BoundedTexts(max(n_bytes, path.stat().st_size))
    names: dict[str, list[str]] = {"obs": [], "var": []}
    for message, arrays in reader.read(path, n_bytes):
        if "axis" in message:
            names[message["axis"]] += texts.shared(message["names"])
        else:
            parts[message["part"]].put(arrays[0])
    how = "AnnData" if layer is None else f"AnnData, layer {layer!r}"
    with damage_explained(path, "h5ad"):
        matrix, *places = (part.whole() for part in parts.values())
        if about["format"] != "dense":
            make = sp.csr_array if about["format"] == "csr" else sp.csc_array
            matrix = make((matrix, *places), shape=about["shape"])
        return named_matrix(matrix, names["obs"], names["var"], how)


def _check_declared(about: dict[str, Any], path: Path) -> int:
    """Hold the declared shapes against the file; return the bytes that the matrix takes."""
    sizes = {name: math.prod(shape) for name, (shape, _) in about["parts"].items()}
    n_lines = sum(about["shape"] or about["parts"]["data"][0])
    each = 8 if about["format"] == "dense" else 24
    n_bytes = max(about["stored"], each * sizes["data"] + 8 * n_lines)
    check_unfolded(n_bytes, path)
    held, what = n_bytes + _NAME_BYTES * about["n_names"], f"its {about['n_names']} short names"
    check_held(held, max(n_bytes, path.stat().st_size), what, _REMEDY)
    return held


class ZarrFolder:
    """A Zarr array in a folder, with shape, chunks and dtype; another process reads its rows."""

    def __init__(self, path: Path) -> None:
        check_installed("zarr", "Zarr arrays", "zarr")
        self.path, self._reader = path, IsolatedReader("zarr", "Zarr array")
        size = _folder_size(path)
        about = self._reader.open(path, 0)
        if about["group"]:
            raise ValueError(f"{path} is a group of arrays: pass the path of one array")
        self.shape, self.chunks = tuple(about["shape"]), tuple(about["chunks"])
        self.dtype = np.dtype(about["dtype"])
        if 0 in self.chunks and 0 not in self.shape:
            raise InputError(f"{path} has empty chunks: write it again")
        self._chunk_bytes = self.dtype.itemsize * math.prod(self.chunks)
        # What is not there is filled in: a chunk may be far larger than all that is stored, and so
        # may labels of rows and columns, and the list of parts of some 2**20 cells.
        listed = 8 * sum(self.shape) + math.prod(self.shape) // 2**13
        if (most := max(self._chunk_bytes, listed)) > unfolding_limit(size):
            unfolds = f"chunks or rows that need {most:.3g} unpacked, so it may be malicious"
            remedy = "if you trust it, pass zarr.open_array(PATH)"
            raise InputError(f"{path} has {size} bytes and {unfolds}: {remedy}")

    def __getitem__(self, rows: slice) -> np.ndarray:
        """Return a range of rows as they are stored."""
        shape = rows.stop - rows.start, *self.shape[1:]
        n_bytes = max(self.dtype.itemsize * math.prod(shape), self._chunk_bytes)
        answers = self._reader.read(self.path, n_bytes, first=rows.start, last=rows.stop)
        found = [array for _, arrays in answers for array in arrays]
        if len(found) != 1 or found[0].shape != shape or found[0].dtype != self.dtype:
            raise InputError(f"{self.path} holds other rows than its metadata say: write it again")
        return found[0]


def _folder_size(folder: Path) -> int:
    """Return the bytes of all files in a folder; refuse pipes and devices among them."""
    files = [path for path in folder.rglob("*") if not path.is_dir()]
    if odd := next((path for path in files if not path.is_file()), None):
        raise InputError(f"{odd} is not a regular file: remove it")
    return sum(path.stat().st_size for path in files)
