"""Matrices that are read row by row, from memory, files or a cluster.

A :class:`RowSource` returns rows as finite float64, either one part at a time or chosen rows.
"""

import os
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np

from ccot.io.binary import ZarrFolder, damage_explained, map_array
from ccot.io.matrix import InputError, check_regular
from ccot.sources.base import ArraySource, FunctionSource, RowSource
from ccot.sources.files import BackedSource, DaskSource, NpySource, ParquetSource
from ccot.sources.tables import TableParts

__all__ = ["FunctionSource", "RowSource", "TableParts", "as_source", "is_source"]


def is_source(X: Any) -> bool:
    """Return True if a matrix is read row by row, not as a whole."""
    stored = BackedSource.takes(X) or _is_dask(X)
    return stored or isinstance(X, RowSource | TableParts | np.memmap | str | os.PathLike)


def as_source(X: Any, *, allow_nan: bool = False) -> RowSource:
    """Return the source of a matrix's rows.

    Parameters
    ----------
    X : path-like, memmap, Dask, Zarr or HDF5 array, ndarray, sparse matrix, or RowSource
        Also the ``X`` of a backed AnnData. A path is that of a ``.npy`` file, a Parquet file or a
        folder of them, or a Zarr array.
    allow_nan : bool, default=False, accepts NaN

    Returns
    -------
    RowSource, a copy if one was passed

    Examples
    --------
    >>> import numpy as np
    >>> as_source(np.eye(5)).rows(np.array([4]))
    array([[0., 0., 0., 0., 1.]])
    """
    source = copy(_make_source(X))
    source.allow_nan = allow_nan
    return source


def _make_source(X: Any) -> RowSource:
    if isinstance(X, RowSource):
        return X
    if isinstance(X, str | os.PathLike):
        if 0 in (source := _open_path(Path(X))).shape:
            raise InputError(f"the matrix in {X} is empty: pass data")
        return source
    if isinstance(X, TableParts):
        raise InputError("only TransportCoclustering reads tables row by row: omit --by-row")
    if X.dtype.kind not in "biuf":
        raise ValueError(f"X holds values of type {X.dtype} where numbers are expected")
    if isinstance(X, np.memmap):
        return NpySource.of(X)
    if _is_dask(X):
        return DaskSource(X)
    stored = isinstance(X, ZarrFolder) or BackedSource.takes(X)
    return BackedSource.of(X) if stored else ArraySource(X)


def _open_path(path: Path) -> RowSource:
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}: check the path")
    if not path.is_dir():
        check_regular(path)
    if path.suffix == ".npy":
        with damage_explained(path, "NumPy"):
            mapped = map_array(path)
        return _make_source(mapped)
    holds_parquet = path.is_dir() and next(path.rglob("*.parquet"), None)
    if path.suffix in (".parquet", ".pq") or holds_parquet:
        return ParquetSource(path)
    if path.is_dir():
        return _make_source(ZarrFolder(path))
    remedy = "pass ccot.io.read_table(path), or read_matrix(path).values"
    raise ValueError(f"{path} is not a .npy, .parquet or .zarr file: {remedy}")


def _is_dask(X: Any) -> bool:
    return f"{type(X).__module__}.".startswith("dask.array.") and hasattr(X, "shape")
