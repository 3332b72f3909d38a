"""Checkpoints: an interrupted fit continues from its finished pieces.

If a fit is started again, it asks for the same pieces in the same order, and reads finished ones.
They are on a stack: a piece replaces those it was made of, a state of a loop the one before.
"""

import json
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ccot._version import __version__
from ccot.persistence.checkpoint_files import Piece, PieceFiles, claimed, clear, count_bytes, warn
from ccot.persistence.digest import digest
from ccot.persistence.model_file import ModelFileError
from ccot.persistence.registry import stored_types
from ccot.runtime.run import Checkpoint

T = TypeVar("T")

# Pieces are written at most every so many seconds, and for at most such a share of the time; sooner
# only if several waiting pieces take more memory than this.
SECONDS, SHARE, WAITING_BYTES = 5.0, 0.01, 2**26
# Parameters that do not change the result, and the seed, which is compared separately.
_WITHOUT_EFFECT = ("checkpoint", "n_jobs", "random_state", "verbose")
_LIBRARIES = ("numpy", "scipy", "scikit-learn", "POT")


class CheckpointFolder(Checkpoint):
    """Keeps the finished pieces of one fit in a folder, with the states of the generator.

    ``about`` identifies this fit. Pieces of another fit are never used, and only replaced if it was
    finished. A fit that is not ``seeded`` by the user continues with the stored generator.
    """

    def __init__(
        self,
        folder: Any,
        about: Mapping[str, str],
        types: Mapping[str, type],
        rng: np.random.Generator,
        *,
        seeded: bool = True,
    ) -> None:
        self.folder = Path(folder)
        self.patience = self.pause = SECONDS
        self._files = PieceFiles(self.folder, about, types)
        self._rng, self._seeded = rng, seeded
        # The first state of the generator, stored if the user gives no seed.
        self._first_state = None if seeded else rng.bit_generator.state
        # Names of the pieces that are being made; height of the next finished one on the stack.
        self._inside: list[str] = []
        self._height = 0
        # Pieces that were read but not asked for yet; pieces that were made but not written yet.
        self._read: deque[Piece] = deque()
        self._waiting: list[Piece] = []
        self._full, self._written = False, time.monotonic()

    def fit(self, make: Callable[[], T]) -> T:
        """Return the result of the whole fit."""
        with claimed(self.folder):
            header = self._files.open()
            if header is not None and not self._seeded:
                self._rng.bit_generator.state = self._first_state = header["generator"]
            self._written = time.monotonic()
            try:
                result = make()
            except BaseException:
                self._close(finished=False)
                raise
            self._close(finished=True)
        return result

    def piece(self, name: str, make: Callable[[], T]) -> T:
        """Return one piece; it replaces the pieces it was made of."""
        if self._has(name):
            return self._take()
        height, value = self._height, self._make(name, make)
        self._keep(height, name, value)
        return value

    def series(
        self,
        name: str,
        total: int,
        rest: Callable[[int], Iterable[T]],
        count: Callable[[T], int] = lambda piece: 1,
    ) -> Iterator[T]:
        """Yield pieces that are made one after the other, all of which are kept."""
        n_kept = 0
        while n_kept < total and self._has(name):
            value = self._take()
            n_kept += count(value)
            yield value
        for value in rest(n_kept) if n_kept < total else ():
            self._keep(self._height, name, value)
            yield value

    def loop(self, name: str, state: T, step: Callable[[T], T]) -> Iterator[T]:
        """Yield the states of a loop; each replaces the one before."""
        height = self._height
        if self._has(name):
            state = self._take()
            yield state
        while True:
            state = self._make(name, step, state)
            self._keep(height, name, state)
            yield state

    def _make(self, name: str, make: Callable[..., T], *state: T) -> T:
        """Return a new piece; pieces that are asked for meanwhile are parts of it."""
        self._inside.append(name)
        try:
            return make(*state)
        finally:
            self._inside.pop()

    def _has(self, name: str) -> bool:
        """Return True if the next stored piece has this name."""
        if not self._read:
            try:
                self._read.extend(self._files.read_next(self._height))
            except (ModelFileError, OSError) as error:
                warn(error, "the fit continues from the piece before it")
                self._files.drop_unread()
        return bool(self._read) and self._read[0].name == "/".join([*self._inside, name])

    def _take(self) -> Any:
        """Return the value of the next stored piece."""
        piece = self._read.popleft()
        self._height = piece.height + 1
        self._rng.bit_generator.state = piece.generator
        return piece.loaded()

    def _keep(self, height: int, name: str, value: Any) -> None:
        """Put a finished piece on the stack; it replaces all pieces at its height or above."""
        self._read.clear()
        self._files.drop_unread()
        self._height = height + 1
        if self._full:
            return
        state, full_name = dict(self._rng.bit_generator.state), "/".join([*self._inside, name])
        piece = Piece(full_name, height, value, state, count_bytes(value))
        self._waiting = [lower for lower in self._waiting if lower.height < height] + [piece]
        # Twice the largest piece may wait: the fit itself needs as much memory.
        sizes = [piece.n_bytes for piece in self._waiting]
        if self._is_time() or sum(sizes) > max(WAITING_BYTES, 2 * max(sizes)):
            self._write()

    def _is_time(self) -> bool:
        return time.monotonic() - self._written >= self.pause

    def _write(self) -> None:
        """Write the waiting pieces; after an error, such as a full disk, keep no further ones."""
        if not self._waiting:
            return
        begun = time.monotonic()
        try:
            self._files.write(self._waiting, self._first_state)
        except OSError as error:
            self._full, self._waiting = True, []
            warn(error, "the fit continues, but no further pieces are kept")
            return
        self._waiting, self._written = [], time.monotonic()
        self.pause = max(SECONDS, (self._written - begun) / SHARE)

    def _close(self, finished: bool) -> None:
        """Write the waiting pieces, unless the fit was so short that they are not needed."""
        if self._files or self._is_time():
            self._write()
        if not self._files:
            clear(self.folder)
        elif finished and not self._full:
            with suppress(OSError):
                self._files.write_header(finished=True, generator=self._first_state)


def open_checkpoint(
    estimator: Any, data: tuple[Any, ...], rng: np.random.Generator
) -> CheckpointFolder:
    """Return the checkpoint of a fit; it refuses to continue a different fit."""
    given = estimator.get_params(deep=False)
    code = [name for name, value in given.items() if callable(value) and name != "verbose"]
    if code:
        remedy = "use one of its named choices, or pass checkpoint=None"
        raise ValueError(f"{code[0]} is a function, which a checkpoint cannot store: {remedy}")
    digests = [one.digest() if hasattr(one, "digest") else digest(one) for one in data]
    about = {
        "estimator": type(estimator).__name__,
        **{name: str(value) for name, value in given.items() if name not in _WITHOUT_EFFECT},
        "random_state": _seed(given["random_state"], rng),
        "data": sha256(" ".join(digests).encode()).hexdigest(),
        "ccot": __version__,
        **{name: version(name) for name in _LIBRARIES},
    }
    if given.get("device") is not None:
        about["torch"] = version("torch")
    seeded = given["random_state"] is not None
    return CheckpointFolder(given["checkpoint"], about, stored_types(), rng, seeded=seeded)


def _seed(random_state: Any, rng: np.random.Generator) -> str:
    """Return a text that identifies the first state of a generator."""
    if random_state is None or isinstance(random_state, int | np.integer):
        return str(random_state)
    state = json.dumps(rng.bit_generator.state, default=np.ndarray.tolist)
    return f"a generator at {sha256(state.encode()).hexdigest()[:12]}"
