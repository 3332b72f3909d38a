"""Start the process that reads a file, ask it in lines of JSON, end it if it takes too much."""

import json
import math
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ccot.io.isolated.worker import Answer
from ccot.io.matrix import InputError

# Seconds of work that any file may take, and bytes that are good for one second more.
_SECONDS, _BYTES_A_SECOND = 5, 1_000_000
# Seconds on the clock for every second of work: other programs want to run as well.
_PATIENCE = 60
# Bytes that reading may take beside twice what the declared shape needs.
_BESIDE = 64 << 20
# One of these is in the last message of an answer.
_LAST = {"end", "damaged", "refused"}
_PACKAGE = Path(__file__).parents[2]
# The worker is imported without the modules above it, which would take most of its time.
_PROGRAM = """
import sys, types
for name, path in zip(("ccot", "ccot.io"), sys.argv[3:]):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [path]
from ccot.io.isolated.worker import main
main(*sys.argv[1:3])
"""
# Few threads, which would reserve addresses ahead; memory is asked for from the system.
_ENVIRONMENT = {
    **dict.fromkeys(("MALLOC_ARENA_MAX", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}


class IsolatedReader:
    """Reads files of one kind, by the module of that name, in a process that ends with it."""

    def __init__(self, kind: str, what: str, **options: Any) -> None:
        self.kind, self.what, self._options = kind, what, options
        self._lock = threading.Lock()
        self._process: _Process | None = None
        self._opened: Path | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave the process behind; the copy starts one of its own."""
        return partial(IsolatedReader, self.kind, self.what, **self._options), ()

    def open(self, path: Path, n_bytes: int | None = None) -> dict[str, Any]:
        """Return what a file declares of itself; opening may take so many bytes, or its size."""
        with self._lock:
            return self._open(path, _size(path) if n_bytes is None else n_bytes)

    def _open(self, path: Path, n_bytes: int) -> dict[str, Any]:
        if self._process is None or not self._process.is_mine():
            self._process = _Process(self.kind)
        self._opened = path.absolute()
        about, _ = self._process.ask({"path": str(self._opened), **self._options}, n_bytes)
        self._check(about, path)
        return about

    def read(self, path: Path, n_bytes: int, **question: Any) -> Iterator[Answer]:
        """Yield the messages of an answer, with their arrays; the declared shape takes so much."""
        with self._lock:
            known = self._opened == path.absolute()
            if self._process is None or not (known and self._process.is_mine()):
                self._open(path, max(n_bytes, _size(path)))
            process: Any = self._process
            message: dict[str, Any] = {}
            try:
                message, arrays = process.ask(question, n_bytes)
                while "end" not in message:
                    self._check(message, path)
                    yield message, arrays
                    message, arrays = process.receive(n_bytes)
            finally:
                if not message.keys() & _LAST:  # half an answer is left in the pipe
                    process.end()

    def _check(self, message: dict[str, Any], path: Path) -> None:
        if "refused" in message:
            raise InputError(f"{path}: {message['refused']}")
        if "damaged" in message:
            damaged = f"{path} is not a readable {self.what} ({message['damaged']})"
            raise InputError(f"{damaged}: write or download it again")


class FilledArray:
    """An array of a declared shape that is filled by the blocks of an answer."""

    def __init__(self, values: np.ndarray) -> None:
        self._values, self._n_filled = values, 0

    def put(self, block: np.ndarray) -> None:
        """Add rows."""
        end = self._n_filled + len(block)
        if end > len(self._values):
            raise InputError("the file holds more rows than its metadata say: download it again")
        self._values[self._n_filled : end] = block
        self._n_filled = end

    def some(self) -> np.ndarray:
        """Return what was put."""
        return self._values[: self._n_filled]

    def whole(self) -> np.ndarray:
        """Return the array, if all of it was put."""
        if self._n_filled != (n_rows := len(self._values)):
            rows = f"{n_rows} rows but has {self._n_filled}"
            raise InputError(f"the file should have {rows}: download it again")
        return self._values


class _Process:
    """The worker."""

    def __init__(self, kind: str) -> None:
        self._fell = {"damaged": f"the reader of {kind} files crashed"}
        paths = os.pathsep.join(place for place in sys.path if place)
        folders = map(str, (_PACKAGE, _PACKAGE / "io"))
        # A session of its own: an interruption is for the one who asks.
        self._popen = subprocess.Popen(
            [sys.executable, "-S", "-P", "-c", _PROGRAM, kind, str(os.getpid()), *folders],
            env=os.environ | {"PYTHONPATH": paths} | _ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._owner = os.getpid()
        self.end = weakref.finalize(self, _end, self._popen, self._owner)

    def is_mine(self) -> bool:
        """Tell whether it runs, and was not started before this process was forked."""
        return self.end.alive and self._owner == os.getpid()

    def ask(self, question: dict[str, Any], n_bytes: int) -> Answer:
        """Return the first message of an answer that may take so many bytes."""
        limits = {"seconds": _seconds(n_bytes), "memory": _BESIDE + 2 * n_bytes}
        stdin: Any = self._popen.stdin
        try:
            stdin.write(json.dumps(question | limits).encode() + b"\n")
            stdin.flush()
        except OSError:
            self.end()
            return self._fell, []
        return self.receive(n_bytes)

    def receive(self, n_bytes: int) -> Answer:
        """Return the next message, and its arrays; a worker that failed is a damaged file."""
        patience = threading.Timer(_PATIENCE * _seconds(n_bytes), self._popen.kill)
        patience.start()
        try:
            stdout: Any = self._popen.stdout
            message = json.loads(stdout.readline())
            room = _BESIDE + 2 * n_bytes
            described = [(np.dtype(kind), shape) for kind, shape in message.pop("arrays")]
            if sum(kind.itemsize * math.prod(shape) for kind, shape in described) > room:
                raise ValueError("the answer is too long")
            arrays = [np.empty(shape, kind) for kind, shape in described]
            for array in arrays:
                if array.size and stdout.readinto(array.reshape(-1).view(np.uint8)) != array.nbytes:
                    raise ValueError("the answer ends too early")
            return message, arrays
        except (OSError, ValueError):
            self.end()
            return self._fell, []
        except BaseException:  # an interruption: half an answer is left in the pipe
            self.end()
            raise
        finally:
            patience.cancel()


def _seconds(n_bytes: int) -> int:
    return _SECONDS + n_bytes // _BYTES_A_SECOND


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _end(process: subprocess.Popen[bytes], owner: int) -> None:
    """Close the pipes, and wait where the process is a child of this one."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()
    if owner == os.getpid():
        process.kill()
        process.wait()
