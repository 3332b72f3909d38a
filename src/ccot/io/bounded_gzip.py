"""Compressed text that may not unfold without end."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import IO, Any

from ccot.io.matrix import InputError, unfolding_limit


def unfolded(path: Path, file: IO[bytes] | None = None) -> io.BufferedReader:
    """Open a gzip file; more than it may unfold to is not read."""
    raw = gzip.open(path if file is None else file)  # noqa: SIM115
    return io.BufferedReader(_Limited(raw, unfolding_limit(path.stat().st_size), path))


class _Limited(io.RawIOBase):
    """A stream that is refused where it goes beyond a limit."""

    def __init__(self, stream: Any, limit: int, path: Path) -> None:
        self._stream, self._left, self._path = stream, limit, path

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self._stream.read1(len(buffer))
        self._left -= len(content)
        if self._left < 0:
            raise InputError(
                f"{self._path} unfolds to very much more than its size, which may be a trap: if "
                "you trust it, unpack it first"
            )
        buffer[: len(content)] = content
        return len(content)

    def close(self) -> None:
        self._stream.close()
        super().close()
