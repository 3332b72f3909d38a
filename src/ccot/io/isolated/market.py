"""Matrix Market files. SciPy's reader crashes on damaged ones."""

import gzip
import io
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np
from scipy.io import _fast_matrix_market

from ccot.io.isolated.limits import LimitedStream
from ccot.io.isolated.worker import BLOCK, Answer, Refusal, blocks_of

# Threads would take room of their own.
_fast_matrix_market.PARALLELISM = 1
_FIELDS = ("real", "double", "integer", "unsigned-integer", "pattern")


class _Market:
    def __init__(self, path: str, text_limit: int) -> None:
        self._path, self._limit = path, text_limit
        # SciPy's header is read from the text alone: its numbers may be larger than any file.
        names = ("n_rows", "n_columns", "n_listed", "format", "field", "symmetry")
        header = _fast_matrix_market.mminfo(self._open())
        self.about: dict[str, Any] = dict(zip(names, header, strict=True))
        if self.about["field"] not in _FIELDS:
            raise Refusal(f"it holds {self.about['field'][:20]} values: save their real parts")
        if self.about["symmetry"] != "general" and self.about["n_rows"] != self.about["n_columns"]:
            raise ValueError("a symmetric matrix must be square")

    def _open(self) -> Any:
        # Open until the worker, which reads one file, ends.
        file: BinaryIO = open(self._path, "rb")  # noqa: SIM115
        stream = gzip.GzipFile(fileobj=file) if self._path.endswith(".gz") else file
        return io.BufferedReader(_Text(stream, self._limit, Refusal, "it"), 1 << 16)

    def read(self) -> Iterator[Answer]:
        found = _fast_matrix_market.mmread(self._open())
        if isinstance(found, np.ndarray):
            step = max(1, BLOCK // max(found.shape[1], 1))
            for rows in blocks_of(found, step):
                yield {}, [rows.astype(np.float64)]
            return
        parts = map(blocks_of, (*found.coords, found.data))
        for rows, columns, values in zip(*parts, strict=True):
            yield {}, [rows, columns, values.astype(np.float64)]


class _Text(LimitedStream):
    """Text of limited length without zeros, where SciPy would stop."""

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer, and return how much."""
        n_bytes = super().readinto(buffer)
        if b"\0" in bytes(buffer[:n_bytes]):
            raise ValueError("it holds bytes that are not text")
        return n_bytes


open_file = _Market
