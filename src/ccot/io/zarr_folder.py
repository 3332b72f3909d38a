"""Zarr arrays in folders, read where they can do no harm."""

from __future__ import annotations

import json
import math
import os
import subprocess
import threading
import weakref
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ccot.io.isolated import seconds_of_patience, seconds_of_work, started_as
from ccot.io.matrix import InputError, unfolding_limit

_PROGRAM = Path(__file__).with_name("zarr_process.py")
# Bytes that reading may take beside so many times the rows asked for, or the largest chunk.
_BESIDE, _COPIES = 128 << 20, 4


class ZarrFolder:
    """A Zarr array in a folder; its rows are read by a process of its own.

    Parameters
    ----------
    path : pathlib.Path
        The folder.

    Attributes
    ----------
    shape, chunks : tuple of int
        Of the array, and of its chunks.
    dtype : numpy.dtype
        Of its numbers.
    """

    def __init__(self, path: Path) -> None:
        if find_spec("zarr") is None:
            raise ImportError(
                "Zarr arrays need zarr, which is not installed: pip install 'ccot[zarr]'"
            )
        self.path = path
        self._lock = threading.Lock()
        about = self._start()
        self.shape = tuple(about["shape"])
        self.chunks = tuple(about["chunks"])
        self.dtype = np.dtype(about["dtype"])
        self._check_chunks()

    def __getitem__(self, rows: slice) -> np.ndarray:
        """Return a range of rows as they are stored."""
        found = np.empty((rows.stop - rows.start, *self.shape[1:]), self.dtype)
        n_bytes = max(found.nbytes, self._chunk_bytes)
        with self._lock:
            if not self._process.is_mine():
                self._start()
            about = self._process.ask({"rows": [rows.start, rows.stop]}, n_bytes, found)
        if "damaged" in about:
            raise self._refusal(about)
        return found

    def __reduce__(self) -> tuple[type[ZarrFolder], tuple[Path]]:
        """Leave the process behind; the copy starts one of its own."""
        return ZarrFolder, (self.path,)

    @property
    def _chunk_bytes(self) -> int:
        return self.dtype.itemsize * math.prod(self.chunks)

    def _start(self) -> dict[str, Any]:
        """Start the process, and return what it says of the array."""
        self._process = _Process(self.path)
        about = self._process.ask({}, sum(map(_size, self.path.glob("*"))))
        if "group" in about:
            raise ValueError(f"{self.path} is a group of arrays: pass the path of one of them")
        if "damaged" in about:
            raise self._refusal(about)
        return about

    def _refusal(self, about: dict[str, Any]) -> InputError:
        reason = about["damaged"]
        return InputError(
            f"{self.path} is no readable Zarr array ({reason}): write or download it again"
        )

    def _check_chunks(self) -> None:
        """Refuse chunks far larger than all that is stored: what is not there is filled in."""
        if self._chunk_bytes <= unfolding_limit(0):
            return
        size = sum(map(_size, self.path.rglob("*")))
        if self._chunk_bytes > unfolding_limit(size):
            raise InputError(
                f"{self.path} has {size} bytes and chunks that would unfold to "
                f"{self._chunk_bytes:.3g}, which may be a trap: if you trust it, write it again "
                "in smaller chunks"
            )


class _Process:
    """The program that reads; it ends when nobody can ask it any more."""

    def __init__(self, path: Path) -> None:
        command, environment = started_as(_PROGRAM, path)
        # A session of its own: an interruption is for the one who asks.
        self._popen = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._owner = os.getpid()
        self._end = weakref.finalize(self, _end, self._popen, self._owner)

    def is_mine(self) -> bool:
        """Tell whether it runs, and was not started before this process was forked."""
        return self._end.alive and self._owner == os.getpid()

    def ask(
        self, question: dict[str, Any], n_bytes: int, into: np.ndarray | None = None
    ) -> dict[str, Any]:
        """Return the answer to a question that may take so many bytes; the numbers go `into`."""
        limits = {"seconds": seconds_of_work(n_bytes), "memory": _BESIDE + _COPIES * n_bytes}
        patience = threading.Timer(seconds_of_patience(n_bytes), self._popen.kill)
        patience.start()
        try:
            return self._talk(question | limits, into)
        except (OSError, ValueError):
            self._end()
            return {"damaged": "zarr fell over it"}
        except BaseException:  # an interruption: half an answer is left in the pipe
            self._end()
            raise
        finally:
            patience.cancel()

    def _talk(self, question: dict[str, Any], into: np.ndarray | None) -> dict[str, Any]:
        stdin: Any = self._popen.stdin
        stdout: Any = self._popen.stdout
        stdin.write(json.dumps(question).encode() + b"\n")
        stdin.flush()
        about = json.loads(stdout.readline())
        if into is not None and "damaged" not in about:
            expected = {"shape": list(into.shape), "dtype": into.dtype.str}
            if about != expected or stdout.readinto(into.data) != into.nbytes:
                raise ValueError("the rows are not what they should be")
        return about


def _end(process: subprocess.Popen[bytes], owner: int) -> None:
    """Close the pipes, and wait where the process is a child of this one."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    if owner == os.getpid():
        process.kill()
        process.wait()


def _size(file: Path) -> int:
    return file.stat().st_size if file.is_file() else 0
