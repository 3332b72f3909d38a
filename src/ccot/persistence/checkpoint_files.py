"""The folder of a checkpoint: a header, and files of finished pieces that follow one another.

A file's name contains the height on the stack at which it begins. It replaces earlier files that
begin at this height or above.
"""

import json
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, is_dataclass, replace
from importlib import import_module
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj, is_torch_array
from scipy.sparse import issparse

from ccot.persistence.atomic import locked_folder, write_file
from ccot.persistence.model_file import ModelFileError, read_values, write_values

_HEADER, _ENDING, _NAME = "checkpoint.json", ".pieces", re.compile(r"\d{6,}-\d{6,}")
_KIND = {"format": "ccot-checkpoint", "version": 1}


@dataclass(frozen=True)
class Piece:
    """A finished piece of a fit, with the state of the generator when it was finished."""

    name: str  # after the names of the pieces that it is a part of
    height: int  # its index on the stack
    value: Any
    generator: dict
    n_bytes: int
    devices: tuple[str, ...] = ()  # for each array, of PyTorch, or "" for NumPy; () if all are ""

    def loaded(self) -> Any:
        """Return the value, its arrays on the devices that they were on."""
        if not self.devices:
            return self.value
        devices, send = iter(self.devices), import_module("torch").as_tensor

        def send_back(array: np.ndarray) -> Any:
            device = next(devices)
            return send(array, device=device) if device else array

        return _with_arrays(self.value, send_back)


class PieceFiles:
    """The files of one fit."""

    def __init__(self, folder: Path, about: Mapping[str, str], types: Mapping[str, type]) -> None:
        self.folder, self._about = folder, dict(about)
        # Name of the class in files of earlier versions.
        self._types = {**types, "_Piece": Piece}
        self._files: list[Path] = []
        self._n_read = 0

    def __bool__(self) -> bool:
        """Return True if there are files with pieces."""
        return bool(self._files)

    def open(self) -> dict[str, Any] | None:
        """Return the header of this fit, None if there is none; refuse another unfinished fit."""
        for pattern in (f".*{_ENDING}.*.part", f".{_HEADER}.*.part"):
            for half in self.folder.glob(pattern):
                half.unlink()
        header = self._header()
        others = header and _differences(header["about"], self._about)
        if header and others and not header["finished"]:
            remedy = "use these again to continue it, pass another checkpoint, or remove this one"
            raise ValueError(f"{self.folder} holds an unfinished fit with {others}: {remedy}")
        if header is None or others:
            clear(self.folder)
            return None
        for file in sorted(_files_in(self.folder), key=_number):
            self._push(file)
        return header

    def _header(self) -> dict[str, Any] | None:
        path = self.folder / _HEADER
        try:
            header = json.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            return warn(f"{path} cannot be read ({error})", "the fit starts from the beginning")
        whole = {"about", "finished", "generator"}
        if isinstance(header, dict) and _KIND.items() <= header.items() and whole <= header.keys():
            return header
        raise ValueError(f"{path} is from another version of ccot: pass another folder")

    def read_next(self, height: int) -> list[Piece]:
        """Return the pieces of the next file, which begin at ``height``; none after the last."""
        if self._n_read == len(self._files):
            return []
        file, *later = self._files[self._n_read :]
        pieces = read_values(file, self._types)
        if not isinstance(pieces, list) or not all(isinstance(one, Piece) for one in pieces):
            raise ModelFileError(f"{file} is not a file of a checkpoint")
        limit = _lowest(later[0]) if later else inf
        pieces = [piece for piece in pieces if piece.height < limit]
        if [piece.height for piece in pieces] != [height + n for n in range(len(pieces))]:
            raise ModelFileError(f"pieces are missing before or in {file}")
        self._n_read += 1
        return pieces

    def drop_unread(self) -> None:
        """Remove the files that were not read."""
        while len(self._files) > self._n_read:
            self._files.pop().unlink(missing_ok=True)

    def write(self, pieces: Iterable[Piece], generator: Any) -> None:
        """Write pieces to a new file, on top of the others."""
        pieces = [_brought(piece) for piece in pieces]
        if not self._files:
            self.write_header(finished=False, generator=generator)
        number = _number(self._files[-1]) + 1 if self._files else 0
        file = self.folder / f"{number:06d}-{pieces[0].height:06d}{_ENDING}"
        write_values(file, pieces, self._types, self._about.get("ccot", ""))
        self._push(file)
        self._n_read = len(self._files)

    def write_header(self, *, finished: bool, generator: Any) -> None:
        """Write which fit this is, and whether it is finished."""
        header = {**_KIND, "finished": finished, "about": self._about, "generator": generator}
        write_file(self.folder / _HEADER, json.dumps(header, indent=1) + "\n")

    def _push(self, file: Path) -> None:
        """Put a file on top, and remove the files that it replaces."""
        while self._files and _lowest(self._files[-1]) >= _lowest(file):
            self._files.pop().unlink(missing_ok=True)
        self._files.append(file)


def warn(problem: Any, consequence: str) -> None:
    """Warn of a problem with a checkpoint, and of its consequence."""
    warnings.warn(f"checkpoint: {problem}; {consequence}", UserWarning, stacklevel=2)


def remove_checkpoint(folder: Path) -> None:
    """Remove a checkpoint; other files in its folder stay."""
    if folder.is_dir():
        with claimed(folder):
            clear(folder)


def clear(folder: Path) -> None:
    """Remove the files of a checkpoint."""
    for path in (folder / _HEADER, *_files_in(folder)):
        path.unlink(missing_ok=True)


def _files_in(folder: Path) -> list[Path]:
    return [path for path in folder.glob(f"*{_ENDING}") if _NAME.fullmatch(path.stem)]


def _number(file: Path) -> int:
    return int(file.stem.split("-")[0])


def _lowest(file: Path) -> int:
    """Return how high on the stack a file begins."""
    return int(file.stem.split("-")[1])


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Lock a folder while the context is open, then remove the folder if it is empty."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file: pass a folder")
    with locked_folder(folder):
        try:
            yield
        finally:
            with suppress(OSError):
                folder.rmdir()


def _differences(there: Mapping[str, str], here: Mapping[str, str]) -> str:
    """Return in words how another fit differs from this one."""
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


def _brought(piece: Piece) -> Piece:
    """Return a piece with arrays of NumPy, and the devices that they were on."""
    devices: list[str] = []

    def bring(array: Any) -> np.ndarray:
        devices.append(str(array.device) if is_torch_array(array) else "")
        return array.cpu().numpy() if is_torch_array(array) else array

    value = _with_arrays(piece.value, bring)
    return replace(piece, value=value, devices=tuple(devices) if any(devices) else ())


def count_bytes(value: Any) -> int:
    """Return the memory of the arrays in a tree of values."""
    if hasattr(value, "nbytes"):
        return value.nbytes
    if issparse(value):
        return count_bytes((value.data, value.indices, value.indptr))
    if is_dataclass(value):
        return sum(count_bytes(getattr(value, field.name)) for field in fields(value))
    parts = value.values() if isinstance(value, dict) else value
    return sum(map(count_bytes, parts)) if isinstance(value, dict | list | tuple) else 0
