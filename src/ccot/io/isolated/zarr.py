"""Rows of a Zarr array. Zarr unpacks a chunk before it looks how much is in it."""

from collections.abc import Iterator
from typing import Any

import numcodecs
import numpy as np
import zarr

from ccot.io.isolated.worker import Answer

numcodecs.blosc.use_threads = False


class _Rows:
    def __init__(self, path: str) -> None:
        self._array: Any = zarr.open(path, mode="r")
        self.about: dict[str, Any] = {"group": not hasattr(self._array, "shape")}
        if not self.about["group"]:
            kind = np.dtype(self._array.dtype).str
            self.about |= {"shape": self._array.shape, "chunks": self._array.chunks, "dtype": kind}

    def read(self, first: int, last: int) -> Iterator[Answer]:
        yield {}, [self._array[first:last]]


open_file = _Rows
