"""Matrices of ``.h5ad`` files."""

from __future__ import annotations

import math
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ccot.io.binary import damage_explained
from ccot.io.isolated.client import FilledArray, IsolatedReader
from ccot.io.matrix import (
    BoundedTexts,
    NamedMatrix,
    check_held,
    check_unfolded,
    named_matrix,
)

# Bytes that a name takes, however short it is.
_NAME_BYTES = 220


def read_h5ad(path: Path, layer: str | None = None) -> NamedMatrix:
    """Read the matrix of an ``.h5ad`` file, in another process."""
    if find_spec("h5py") is None:
        raise ImportError("h5ad files need h5py, which is not installed: pip install 'ccot[io]'")
    reader = IsolatedReader("h5ad", "h5ad file")
    about = reader.open(path, layer=layer)
    n_bytes = _check_declared(about, path)
    parts: dict[str, FilledArray] = {
        name: FilledArray(np.empty(shape, np.float64 if name == "data" else kind))
        for name, (shape, kind) in about["parts"].items()
    }
    texts = BoundedTexts(max(n_bytes, path.stat().st_size))
    names: dict[str, list[str]] = {"obs": [], "var": []}
    for message, arrays in reader.read(path, n_bytes, {"layer": layer}):
        if "axis" in message:
            names[message["axis"]] += texts.shared(message["names"])
        else:
            parts[message["part"]].put(arrays[0])
    how = "AnnData" if layer is None else f"AnnData, layer {layer!r}"
    with damage_explained(path, "h5ad"):
        return named_matrix(_matrix(about, parts), names["obs"], names["var"], how)


def _check_declared(about: dict[str, Any], path: Path) -> int:
    """Hold the declared shapes against the file; return the bytes that the matrix takes."""
    sizes = {name: math.prod(shape) for name, (shape, _) in about["parts"].items()}
    n_rows = (about["shape"] or about["parts"]["data"][0] or [0])[0]
    each = 8 if about["format"] == "dense" else 24
    n_bytes = max(about["stored"], each * sizes["data"] + 8 * n_rows)
    check_unfolded(n_bytes, path)
    check_held(
        n_bytes + _NAME_BYTES * about["n_names"],
        max(n_bytes, path.stat().st_size),
        f"its {about['n_names']} short names",
        "save the matrix alone, by scipy.sparse.save_npz or numpy.save",
    )
    return n_bytes + _NAME_BYTES * about["n_names"]


def _matrix(about: dict[str, Any], parts: dict[str, FilledArray]) -> Any:
    if about["format"] == "dense":
        return parts["data"].whole()
    make = sp.csr_array if about["format"] == "csr" else sp.csc_array
    arrays = tuple(parts[name].whole() for name in ("data", "indices", "indptr"))
    return make(arrays, shape=about["shape"])
