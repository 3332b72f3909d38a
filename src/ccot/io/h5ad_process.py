"""The matrix of an ``.h5ad`` file, taken out by a process of its own.

HDF5 trusts its files: a damaged one can make it crash, or turn in a circle for ever. So
:mod:`ccot.io.h5ad` runs this file as a program that ends by itself, at the latest when its time is
over. It writes arrays and ``about.json`` into a folder. It imports nothing of this package, to
start at once.
"""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np

_LIMITS = runpy.run_path(str(Path(__file__).with_name("resource_limits.py")))
_PARTS = ("data", "indices", "indptr")
# Bytes that a name takes here, and where the matrix becomes float64, however short it is; a file
# may take so many times its size, and hold so many names in any case.
_NAME_BYTES_HERE, _NAME_BYTES_THERE, _HELD, _MOST_SHORT_NAMES = 220, 110, 10, 300_000
_FORMATS = {"csr_matrix": "csr", "csc_matrix": "csc", "csr": "csr", "csc": "csc"}


class Refusal(Exception):
    """A file that is refused; the message says what to do."""


def main(path: str, folder: str, seconds: str, most: str, layer: str | None = None) -> int:
    """Take the matrix out within a time and a number of bytes, or write down why not."""
    try:
        _LIMITS["limit_time"](int(seconds))
        _LIMITS["limit_memory"](_LIMITS["memory_taken"](), 4 * int(most))
        with h5py.File(path, "r") as file:
            about = _take(file, Path(folder), int(most), layer)
    except Refusal as refusal:
        about = {"refused": str(refusal)}
    except Exception as error:  # a damaged file raises whatever its reader stumbles over
        about = {"damaged": " ".join(str(error).split())[:120] or type(error).__name__}
    Path(folder, "about.json").write_text(json.dumps(about))
    return 0


def _take(file: Any, folder: Path, most: int, layer: str | None) -> dict[str, Any]:
    """Write the parts of the matrix into files, and return the rest."""
    size = Path(file.filename).stat().st_size
    layers = list(_inside(file, "layers")) if "layers" in file else []
    if layer is not None and layer not in layers:
        raise Refusal(f"there is no layer {layer!r}: {', '.join(layers) or 'none at all'}")
    if layer is None and "X" not in file:
        raise Refusal(f"X is empty: name a layer, one of {', '.join(layers) or 'none'}")
    values = _inside(file, *(["X"] if layer is None else ["layers", layer]))
    about: dict[str, Any] = {"format": "dense", "shape": None}
    parts = {"data": values}
    if isinstance(values, h5py.Group):
        kind = values.attrs.get("encoding-type", values.attrs.get("h5sparse_format"))
        if kind not in _FORMATS:
            raise Refusal(
                f"{values.name} is no matrix ({str(kind)[:40]}): pass a layer that is one"
            )
        shape = values.attrs.get("shape", values.attrs.get("h5sparse_shape"))
        about = {"format": _FORMATS[kind], "shape": [int(length) for length in shape]}
        parts = {name: _inside(values, name) for name in _PARTS}
    axes = {axis: _index(file, axis) for axis in ("obs", "var")}
    found = [*parts.values(), *(part for index in axes.values() for part in index)]
    promised = sum(part.size * part.dtype.itemsize for part in found)
    n_names = sum(index[-1].size for index in axes.values())
    here = 2 * promised + _NAME_BYTES_HERE * n_names
    there = promised + 8 * parts["data"].size + _NAME_BYTES_THERE * n_names
    if n_names > _MOST_SHORT_NAMES and max(here, there) > _HELD * max(promised, size):
        raise Refusal(
            f"its {n_names} short names would take far more memory than the file, which may be a "
            "trap: save the matrix alone, by scipy.sparse.save_npz or numpy.save"
        )
    if promised > most or 8 * (about["shape"] or values.shape)[0] > most:
        raise Refusal(
            "it would unfold to far more than its size, which may be a trap: if you trust it, "
            "write it again without compression"
        )
    for name, part in parts.items():
        if part.dtype.kind not in "biuf":
            raise Refusal(f"values of type {part.dtype} are no numbers: convert them first")
        np.save(folder / f"{name}.npy", part[...])
    return about | {axis: _names(*index) for axis, index in axes.items()}


def _inside(group: Any, *names: str) -> Any:
    """Return a part of a file that is in the file itself."""
    for name in names:
        link = group.get(name, getlink=True)
        if link is not None and not isinstance(link, h5py.HardLink):
            raise _elsewhere(name)
        group = group[name]
    if isinstance(group, h5py.Dataset) and (group.is_virtual or group.external):
        raise _elsewhere(group.name)
    return group


def _elsewhere(name: str) -> Refusal:
    return Refusal(f"it refers for {name} to another place: copy the data into one file")


def _index(file: Any, axis: str) -> list[Any]:
    """Return the parts that the names of rows or columns are stored in."""
    table = _inside(file, axis)
    if isinstance(table, h5py.Dataset):  # files of before 2020
        return [table]
    stored = _inside(table, str(table.attrs.get("_index", "_index")))
    if isinstance(stored, h5py.Dataset):
        return [stored]
    if "codes" in stored:
        return [_inside(stored, "categories"), _inside(stored, "codes")]
    return [_inside(stored, "values")]


def _names(stored: Any, codes: Any = None) -> list[str]:
    if stored.dtype.names is not None:
        texts = stored["index" if "index" in stored.dtype.names else stored.dtype.names[0]]
    else:
        texts = stored.asstr()[...] if h5py.check_string_dtype(stored.dtype) else stored[...]
    texts = texts if codes is None else texts[codes[...]]
    return [text.decode() if isinstance(text, bytes) else str(text) for text in texts.tolist()]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
