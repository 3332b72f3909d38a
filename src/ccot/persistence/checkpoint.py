"""Finished pieces of a fit on disk, so that one that was stopped goes on where it was.

Begun again with the same data, parameters and seed, a fit comes to the same pieces in the same
order: batches of draws, sweeps, updates. So it asks for each piece before it makes it, and those
that were finished last time are read instead of made.

The pieces lie on a stack. One that is finished takes the place of those it was made of, and each
state of a loop that of the one before. Every file of the folder holds a run of the stack, is
written beside its place and moved there whole, and says in its name how high it begins: what lies
as high or higher in earlier files is out of date. Whatever moment a process is killed at, the files
make a stack that the fit once had.
"""

from __future__ import annotations

import json
import re
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, is_dataclass, replace
from importlib import import_module
from math import inf
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from array_api_compat import is_array_api_obj, is_torch_array
from scipy.sparse import issparse

from ccot.persistence.atomic import locked_folder, write_atomically
from ccot.persistence.model_file import ModelFileError, read_values, write_values
from ccot.runtime.run import Checkpoint

T = TypeVar("T")

# Written not more often than every so many seconds, nor for more than such a share of the time;
# sooner only where several pieces that wait take more memory than this.
SECONDS, SHARE, WAITING_BYTES = 5.0, 0.01, 2**26
_HEADER, _ENDING = "checkpoint.json", ".pieces"
_KIND = {"format": "ccot-checkpoint", "version": 1}


@dataclass(frozen=True)
class _Piece:
    """A finished piece.

    Attributes
    ----------
    name : str
        What it is, after the names of those it is a part of.
    height : int
        Its place on the stack.
    value : object
        The piece itself.
    generator : dict
        State of the generator when it was finished.
    n_bytes : int
        Memory of its arrays.
    devices : tuple of str
        Devices of PyTorch that its arrays are on, "" for those of NumPy; empty if all are.
    """

    name: str
    height: int
    value: Any
    generator: dict
    n_bytes: int
    devices: tuple[str, ...] = ()


@dataclass(frozen=True)
class _File:
    """A run of the stack on disk: where, the how many-th, and how high it begins."""

    path: Path
    number: int
    lowest: int

    @classmethod
    def at(cls, path: Path) -> _File | None:
        """Return what a file's name says; None: it is not one of ours."""
        parts = re.fullmatch(r"(\d{6,})-(\d{6,})", path.stem)
        return cls(path, int(parts[1]), int(parts[2])) if parts else None

    @classmethod
    def named(cls, folder: Path, number: int, lowest: int) -> _File:
        """Return a file that may not be there yet."""
        return cls(folder / f"{number:06d}-{lowest:06d}{_ENDING}", number, lowest)


class CheckpointFolder(Checkpoint):
    """Keeps the finished pieces of one fit in a folder.

    Parameters
    ----------
    folder : path-like
        Where they are kept; made if it is not there.
    about : mapping of str to str
        What tells this fit from others: data, parameters, versions. Pieces of another one are not
        taken, and only replaced if that one was finished.
    types : mapping of str to type
        Dataclasses and enums that the pieces may hold, by their names in the files.
    rng : numpy.random.Generator
        Whatever the fit draws from; with every piece that is kept it is put to where it stood.
    seeded : bool, default=True
        Whether the user said how the generator begins; if not, a fit goes on with the kept one.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from ccot.persistence import checkpoint
    >>> def fit(kept):
    ...     return kept.fit(lambda: kept.piece("sum", lambda: print("adds up") or 42))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for _ in range(2):
    ...         kept = CheckpointFolder(folder, {"data": "a"}, {}, np.random.default_rng(0))
    ...         kept.pause = 0.0
    ...         print(fit(kept))
    adds up
    42
    42
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
        self._about, self._rng, self._seeded = dict(about), rng, seeded
        self._types = {**types, _Piece.__name__: _Piece}
        self._first_state = rng.bit_generator.state
        # Names of the pieces that are being made, and where the next finished one goes.
        self._inside: list[str] = []
        self._height = 0
        # On disk: files, those among them that are still to be read, and pieces read from them.
        self._files: list[_File] = []
        self._unread: deque[_File] = deque()
        self._found: deque[_Piece] = deque()
        # In memory: pieces that wait to be written.
        self._waiting: list[_Piece] = []
        self._full = False
        self._written = time.monotonic()

    # What a fit asks for ----------------------------------------------------------------------

    def fit(self, make: Callable[[], T]) -> T:
        """Return what the fit as a whole comes to."""
        with _claimed(self.folder):
            self._open()
            self._written = time.monotonic()
            try:
                found = make()
            except BaseException:
                self._close(finished=False)
                raise
            self._close(finished=True)
        return found

    def piece(self, name: str, make: Callable[[], T]) -> T:
        """Return one piece; it takes the place of those it was made of."""
        if self._has(name):
            return self._take()
        height = self._height
        with self._making(name):
            value = make()
        self._keep(height, name, value)
        return value

    def series(
        self,
        name: str,
        total: int,
        rest: Callable[[int], Iterable[T]],
        count: Callable[[T], int] = lambda piece: 1,
    ) -> Iterator[T]:
        """Yield pieces that are made one after the other, and all needed."""
        n_kept = 0
        while n_kept < total and self._has(name):
            value = self._take()
            n_kept += count(value)
            yield value
        for value in rest(n_kept) if n_kept < total else ():
            self._keep(self._height, name, value)
            yield value

    def loop(self, name: str, state: T, step: Callable[[T], T]) -> Iterator[T]:
        """Yield the states of a loop; each takes the place of the one before."""
        height = self._height
        if self._has(name):
            state = self._take()
            yield state
        while True:
            with self._making(name):
                state = step(state)
            self._keep(height, name, state)
            yield state

    @contextmanager
    def _making(self, name: str) -> Iterator[None]:
        """Let the pieces that are asked for be parts of another one."""
        self._inside.append(name)
        try:
            yield
        finally:
            self._inside.pop()

    # The stack --------------------------------------------------------------------------------

    def _has(self, name: str) -> bool:
        """Tell whether the next piece that is kept has this name."""
        piece = self._next()
        return piece is not None and piece.name == "/".join([*self._inside, name])

    def _take(self) -> Any:
        """Return the next piece that is kept."""
        piece = self._found.popleft()
        self._height = piece.height + 1
        self._rng.bit_generator.state = piece.generator
        return piece.value if not piece.devices else _sent_back(piece.value, piece.devices)

    def _keep(self, height: int, name: str, value: Any) -> None:
        """Put a finished piece on the stack, in the place of all that is as high or higher."""
        self._forget_unread()
        self._height = height + 1
        if self._full:
            return
        full_name = "/".join([*self._inside, name])
        state = dict(self._rng.bit_generator.state)
        piece = _Piece(full_name, height, value, state, _count_bytes(value))
        self._waiting = [lower for lower in self._waiting if lower.height < height] + [piece]
        # A single large piece, and one more, are no burden: the fit itself has them too.
        sizes = [piece.n_bytes for piece in self._waiting]
        if self._is_time() or sum(sizes) > max(WAITING_BYTES, 2 * max(sizes)):
            self._write()

    def _is_time(self) -> bool:
        return time.monotonic() - self._written >= self.pause

    def _next(self) -> _Piece | None:
        """Return the next piece that is kept, without taking it."""
        if not self._found and self._unread:
            try:
                self._found.extend(self._read(self._unread[0]))
                self._unread.popleft()
            except (ModelFileError, OSError) as error:
                self._warn(error, "the fit goes on from the piece before it")
                self._forget_unread()
        return self._found[0] if self._found else None

    def _read(self, file: _File) -> list[_Piece]:
        """Return the pieces of a file that are not out of date."""
        limit = self._unread[1].lowest if len(self._unread) > 1 else inf
        pieces = read_values(file.path, self._types)
        if not isinstance(pieces, list) or not all(isinstance(one, _Piece) for one in pieces):
            raise ModelFileError(f"{file.path} holds something else than pieces")
        pieces = [piece for piece in pieces if piece.height < limit]
        if [piece.height for piece in pieces] != [self._height + n for n in range(len(pieces))]:
            raise ModelFileError(f"pieces are missing before or in {file.path}")
        return pieces

    def _forget_unread(self) -> None:
        """Drop what is kept and cannot be used."""
        self._found.clear()
        while self._unread:
            file = self._unread.pop()
            self._files.remove(file)
            file.path.unlink(missing_ok=True)

    # The folder -------------------------------------------------------------------------------

    def _open(self) -> None:
        """Look at what is kept, and refuse pieces of another fit."""
        for pattern in (f".*{_ENDING}.*.part", f".{_HEADER}.*.part"):
            for half in self.folder.glob(pattern):
                half.unlink()
        header = self._header()
        if header is None or self._is_another(header):
            _clear(self.folder)
            return
        if not self._seeded:
            self._rng.bit_generator.state = self._first_state = header["generator"]
        for file in sorted(_files_in(self.folder), key=lambda file: file.number):
            self._push(file)
        self._unread.extend(self._files)

    def _header(self) -> dict[str, Any] | None:
        """Return what the folder says of itself; None: nothing, or nothing that can be read."""
        path = self.folder / _HEADER
        try:
            header = json.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            return self._warn(f"{path} cannot be read ({error})", "the fit begins anew")
        whole = {"about", "finished", "generator"}
        if isinstance(header, dict) and _KIND.items() <= header.items() and whole <= header.keys():
            return header
        raise ValueError(f"{path} is not of a checkpoint of this version: pass another folder")

    def _is_another(self, header: Mapping[str, Any]) -> bool:
        """Tell whether a finished fit is another one; refuse one that is not finished."""
        others = _differences(header["about"], self._about)
        if others and not header["finished"]:
            raise ValueError(
                f"{self.folder} holds an unfinished fit with {others}: fit as then to go on with "
                "it, pass another checkpoint, or remove this one"
            )
        return bool(others)

    def _push(self, file: _File) -> None:
        """Put a file on top; those it makes out of date go."""
        while self._files and self._files[-1].lowest >= file.lowest:
            self._files.pop().path.unlink(missing_ok=True)
        self._files.append(file)

    def _write(self) -> None:
        """Bring the pieces that wait to the disk; where there is no room, keep no more of them."""
        if not self._waiting:
            return
        begun = time.monotonic()
        number = self._files[-1].number + 1 if self._files else 0
        file = _File.named(self.folder, number, self._waiting[0].height)
        pieces = [_brought(piece) for piece in self._waiting]
        try:
            if not self._files:
                self._write_header(finished=False)
            write_values(file.path, pieces, self._types, self._about.get("ccot", ""))
        except OSError as error:
            self._full, self._waiting = True, []
            self._warn(error, "the fit goes on, and no more of it is kept")
            return
        self._push(file)
        self._waiting, self._written = [], time.monotonic()
        self.pause = max(SECONDS, (self._written - begun) / SHARE)

    def _write_header(self, finished: bool) -> None:
        header = {
            **_KIND,
            "finished": finished,
            "about": self._about,
            "generator": None if self._seeded else self._first_state,
        }
        with write_atomically(self.folder / _HEADER, "w") as file:
            file.write(json.dumps(header, indent=1) + "\n")

    def _close(self, finished: bool) -> None:
        """Write what waits, unless the fit was so short that there is nothing to spare."""
        if self._files or self._is_time():
            self._write()
        if not self._files:
            _clear(self.folder)
        elif finished and not self._full:
            with suppress(OSError):
                self._write_header(finished=True)

    def _warn(self, problem: Any, consequence: str) -> None:
        warnings.warn(f"checkpoint: {problem}; {consequence}", UserWarning, stacklevel=2)


def remove_checkpoint(folder: Path) -> None:
    """Remove a checkpoint; whatever else is in its folder stays.

    Parameters
    ----------
    folder : pathlib.Path
        The folder; it need not be there.
    """
    if folder.is_dir():
        with _claimed(folder):
            _clear(folder)


def _clear(folder: Path) -> None:
    for path in (folder / _HEADER, *(file.path for file in _files_in(folder))):
        path.unlink(missing_ok=True)


def _files_in(folder: Path) -> list[_File]:
    return [file for path in folder.glob(f"*{_ENDING}") if (file := _File.at(path))]


@contextmanager
def _claimed(folder: Path) -> Iterator[None]:
    """Claim a folder, and remove it if nothing is left in it."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file: a checkpoint is a folder")
    with locked_folder(folder):
        try:
            yield
        finally:
            with suppress(OSError):
                folder.rmdir()


def _differences(there: Mapping[str, str], here: Mapping[str, str]) -> str:
    """Say in which way another fit is not this one.

    Examples
    --------
    >>> _differences({"reg": "0.2", "tol": "1"}, {"reg": "0.5", "tol": "1"})
    'reg=0.2 instead of 0.5'
    >>> _differences({"data": "e01f"}, {"data": "77ab"})
    'other data'
    """
    names = [name for name in {**there, **here} if there.get(name) != here.get(name)]
    return ", ".join(
        "other data" if name == "data" else f"{name}={there.get(name)} instead of {here.get(name)}"
        for name in names
    )


def _with_arrays(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a tree of values with every array changed."""
    if is_array_api_obj(value):
        return change(value)
    if is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: getattr(value, field.name) for field in fields(value)}
        return replace(value, **{k: _with_arrays(part, change) for k, part in parts.items()})
    if isinstance(value, dict):
        return {key: _with_arrays(part, change) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_with_arrays(part, change) for part in value)
    return value


def _brought(piece: _Piece) -> _Piece:
    """Bring the arrays of a piece to NumPy, and say where they were."""
    devices: list[str] = []

    def bring(array: Any) -> np.ndarray:
        devices.append(str(array.device) if is_torch_array(array) else "")
        return array.cpu().numpy() if is_torch_array(array) else array

    value = _with_arrays(piece.value, bring)
    return replace(piece, value=value, devices=tuple(devices) if any(devices) else ())


def _sent_back(value: Any, devices: Iterable[str]) -> Any:
    """Send arrays to the devices of PyTorch that they were on."""
    where, send = iter(devices), import_module("torch").as_tensor

    def send_back(array: np.ndarray) -> Any:
        device = next(where)
        return send(array, device=device) if device else array

    return _with_arrays(value, send_back)


def _count_bytes(value: Any) -> int:
    """Return the memory of the arrays in a tree of values."""
    if hasattr(value, "nbytes"):
        return value.nbytes
    if issparse(value):
        return _count_bytes((value.data, value.indices, value.indptr))
    if is_dataclass(value):
        return sum(_count_bytes(getattr(value, field.name)) for field in fields(value))
    parts = value.values() if isinstance(value, dict) else value
    return sum(map(_count_bytes, parts)) if isinstance(value, dict | list | tuple) else 0
