"""Zarr arrays in folders."""

from __future__ import annotations

import math
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from ccot.io.isolated.client import IsolatedReader
from ccot.io.matrix import InputError, unfolding_limit


class ZarrFolder:
    """A Zarr array in a folder, with shape, chunks and dtype; another process reads its rows."""

    def __init__(self, path: Path) -> None:
        if find_spec("zarr") is None:
            raise ImportError(
                "Zarr arrays need zarr, which is not installed: pip install 'ccot[zarr]'"
            )
        self.path, self._reader = path, IsolatedReader("zarr", "Zarr array")
        size = _folder_size(path)
        about = self._reader.open(path, 0)
        if about["group"]:
            raise ValueError(f"{path} is a group of arrays: pass the path of one of them")
        self.shape = tuple(about["shape"])
        self.chunks = tuple(about["chunks"])
        self.dtype = np.dtype(about["dtype"])
        self._chunk_bytes = self.dtype.itemsize * math.prod(self.chunks)
        # What is not there is filled in: a chunk may be far larger than all that is stored.
        if self._chunk_bytes > unfolding_limit(size):
            raise InputError(
                f"{path} has {size} bytes and chunks that would unfold to "
                f"{self._chunk_bytes:.3g}, which may be a trap: if you trust it, write it again "
                "in smaller chunks"
            )

    def __getitem__(self, rows: slice) -> np.ndarray:
        """Return a range of rows as they are stored."""
        shape = rows.stop - rows.start, *self.shape[1:]
        n_bytes = max(self.dtype.itemsize * math.prod(shape), self._chunk_bytes)
        answers = self._reader.read(self.path, n_bytes, first=rows.start, last=rows.stop)
        found = [array for _, arrays in answers for array in arrays]
        if len(found) != 1 or found[0].shape != shape or found[0].dtype != self.dtype:
            raise InputError(f"{self.path} holds other rows than it says: write it again")
        return found[0]

    def __reduce__(self) -> tuple[type[ZarrFolder], tuple[Path]]:
        """Leave the process behind; the copy starts one of its own."""
        return ZarrFolder, (self.path,)


def _folder_size(folder: Path) -> int:
    """Return the bytes of all files in a folder; refuse pipes and devices among them."""
    size = 0
    for path in folder.rglob("*"):
        if path.is_file():
            size += path.stat().st_size
        elif not path.is_dir():
            raise InputError(f"{path} is no regular file: remove it")
    return size
