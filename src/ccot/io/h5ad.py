"""Matrices of ``.h5ad`` files, read where they can do no harm."""

from __future__ import annotations

import json
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ccot.io.binary import damage_explained
from ccot.io.isolated import seconds_of_patience, seconds_of_work, started_as
from ccot.io.matrix import InputError, NamedMatrix, named_matrix, unfolding_limit

_PROGRAM = Path(__file__).with_name("h5ad_process.py")


def read_h5ad(path: Path, layer: str | None = None) -> NamedMatrix:
    """Read the matrix of an ``.h5ad`` file, in a process of its own.

    Parameters
    ----------
    path : pathlib.Path
        The file.
    layer : str, optional
        A layer instead of ``X``.

    Returns
    -------
    NamedMatrix
        The matrix.
    """
    if find_spec("h5py") is None:
        raise ImportError("h5ad files need h5py, which is not installed: pip install 'ccot[io]'")
    with tempfile.TemporaryDirectory(prefix="ccot-") as folder:
        about = _taken_out(path, Path(folder), layer)
        if "refused" in about:
            raise InputError(f"{path}: {about['refused']}")
        with damage_explained(path, "h5ad"):
            if "damaged" in about:
                raise ValueError(about["damaged"])
            how = "AnnData" if layer is None else f"AnnData, layer {layer!r}"
            return named_matrix(_matrix(about, Path(folder)), about["obs"], about["var"], how)


def _taken_out(path: Path, folder: Path, layer: str | None) -> dict[str, Any]:
    """Let the other process write the parts of the matrix into a folder."""
    size = path.stat().st_size
    limits = seconds_of_work(size), unfolding_limit(size)
    command, environment = started_as(_PROGRAM, path, folder, *limits, *([layer] if layer else []))
    try:
        subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds_of_patience(size),
        )
        return json.loads((folder / "about.json").read_text())
    except (subprocess.TimeoutExpired, OSError, ValueError):
        return {"damaged": "HDF5 fell over it"}


def _matrix(about: dict[str, Any], folder: Path) -> Any:
    def part(name: str) -> np.ndarray:
        return np.load(folder / f"{name}.npy", allow_pickle=False)

    if about["format"] == "dense":
        return part("data")
    make = sp.csr_array if about["format"] == "csr" else sp.csc_array
    return make((part("data"), part("indices"), part("indptr")), shape=about["shape"])
