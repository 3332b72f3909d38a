"""Arrays and sparse matrices from files."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from ccot.io.isolated.client import FilledArray, IsolatedReader
from ccot.io.matrix import (
    InputError,
    NamedMatrix,
    check_held,
    check_unfolded,
    named_matrix,
    sorting_bytes,
    unfolding_limit,
)
from ccot.io.npy import map_array, read_header

# Bytes that a value takes on its way from any sparse format to float64 in rows.
_SPARSE_BYTES = 24
# Bytes that an entry takes in a list of places and in the sparse matrix that comes of it, and
# those of its text.
_ENTRY_BYTES = 32


@contextmanager
def damage_explained(path: Path, kind: str) -> Iterator[None]:
    """Turn what a damaged file causes in its reader into one message."""
    try:
        yield
    except (InputError, MemoryError, ImportError):
        raise
    except Exception as error:  # readers of damaged files raise whatever they stumble over
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        raise InputError(
            f"{path} is no readable {kind} file ({reason}): write or download it again"
        ) from error


def read_npy(path: Path) -> NamedMatrix:
    """Read an array of NumPy."""
    with damage_explained(path, "NumPy"):
        return named_matrix(map_array(path), None, None, "NumPy array")


def read_npz(path: Path) -> NamedMatrix:
    """Read a sparse matrix of SciPy, or the only array of an archive of NumPy."""
    with damage_explained(path, "NPZ"):
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if sum(member.compress_size for member in archive.infolist()) > path.stat().st_size:
                raise InputError(f"{path} announces more than it holds: download it again")
            size = sum(member.file_size for member in archive.infolist())
            check_unfolded(size, path)
            for member in archive.infolist():
                with archive.open(member) as stream:
                    read_header(stream, member.file_size)
        if "format.npy" in names:
            found = sp.load_npz(path)
            check_unfolded(8 * found.shape[0], path)
            check_held(
                _SPARSE_BYTES * found.data.size, size, f"a sparse matrix of format {found.format}",
                "save it in the format csr",
            )  # fmt: skip
            return named_matrix(found, None, None, "SciPy sparse matrix")
        if len(names) != 1:
            raise InputError(
                f"{path} holds {len(names)} arrays ({', '.join(names)[:60]}): save the matrix "
                "alone, by numpy.save or scipy.sparse.save_npz"
            )
        with np.load(path, allow_pickle=False) as arrays:
            return named_matrix(arrays[arrays.files[0]], None, None, "NumPy array")


def read_matrix_market(path: Path) -> NamedMatrix:
    """Read a Matrix Market file, in another process."""
    reader, size = IsolatedReader("market", "Matrix Market file"), path.stat().st_size
    text_size = unfolding_limit(size) if path.suffix == ".gz" else size
    options = {"text_limit": text_size}
    about = reader.open(path, **options)
    shape, n_listed = (about["n_rows"], about["n_columns"]), about["n_listed"]
    dense = about["format"] == "array"
    n_entries = n_listed * (1 if dense or about["symmetry"] == "general" else 2)
    # Two characters a number at least, of which half may be left out where it is symmetric.
    words = 1 if dense else 4 if about["field"] == "pattern" else 6
    if words * n_listed > text_size + 1:
        raise InputError(
            f"{path} announces {n_listed} entries and is too short for them: download it again"
        )
    n_bytes = 8 * shape[0] * shape[1] if dense else 24 * n_entries + 8 * shape[0]
    check_unfolded(n_bytes, path)
    answers = (arrays for _, arrays in reader.read(path, n_bytes, options))
    if dense:
        values = FilledArray(np.empty(shape))
        for (rows,) in answers:
            values.put(rows)
        return named_matrix(values.whole(), None, None, "Matrix Market")
    _check_entries(_ENTRY_BYTES * n_entries, n_entries, text_size)
    kind = np.int32 if max(shape) < 2**31 else np.int64
    parts = [FilledArray(np.empty(n_entries, one)) for one in (kind, kind, np.float64)]
    for arrays in answers:
        for part, array in zip(parts, arrays, strict=True):
            part.put(array)
    rows, columns, values = (part.some() for part in parts)
    _check_entries(_ENTRY_BYTES * n_entries + sorting_bytes(rows), n_entries, text_size)
    matrix = sp.coo_array((values, (rows, columns)), shape=shape)
    return named_matrix(matrix, None, None, "Matrix Market")


def _check_entries(n_bytes: int, n_entries: int, size: int) -> None:
    check_held(n_bytes, size, f"{n_entries} entries", "add up those that are listed more than once")
