"""Values in one file, without code: a zip archive of JSON and plain arrays.

Only classes that the reader knows are made. Members are not compressed, so that no file expands to
more than its size.
"""

import json
import math
import os
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from io import BytesIO
from pathlib import Path
from types import UnionType
from typing import Any, BinaryIO, TypeAlias, Union, get_args, get_origin, get_type_hints

import numpy as np
import scipy.sparse as sp

from ccot.io.binary import read_header
from ccot.io.matrix import check_sparse, held_limit
from ccot.persistence.atomic import write_atomically
from ccot.persistence.registry import ModelFileError as ModelFileError
from ccot.persistence.registry import upgraded

StrPath: TypeAlias = str | os.PathLike[str]
FORMAT, VERSION = "ccot-model", 1
_TREE = "model.json"
# A fixed date: the same model makes the same file, byte for byte.
_DATE = (1980, 1, 1, 0, 0, 0)
_ARRAY_KINDS = "biufU"
# Memory of Python's objects made from JSON: bytes for every sign that begins or separates them.
_SIGN_BYTES = {b",": 100, b"[": 160, b"{": 240}
# Sparse matrices may share arrays: together they have at most so many times the file's size.
_SHARED = 4


def write_values(
    path: StrPath, values: Any, types: Mapping[str, type], made_by: str, *, private: bool = False
) -> Path:
    """Write a tree of values to a file, completely or not at all, and return the path."""
    path, writer = Path(path), _Writer(types)
    tree = {"format": FORMAT, "version": VERSION, "ccot": made_by, "values": writer.encode(values)}
    with write_atomically(path, private=private) as file, zipfile.ZipFile(file, "w") as archive:
        # The tree comes first, so that the start of the file shows what it is.
        archive.writestr(zipfile.ZipInfo(_TREE, _DATE), json.dumps(tree, allow_nan=False))
        for number, array in enumerate(writer.arrays):
            buffer = BytesIO()
            np.lib.format.write_array(buffer, array, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(_array_name(number), _DATE), buffer.getbuffer())
    return path


def read_values(path: StrPath, types: Mapping[str, type]) -> Any:
    """Return the tree of values in a file."""
    path = Path(path)
    if path.is_dir():
        raise ModelFileError(f"{path} is a folder: pass the model in it, model.ccot")
    if not path.is_file():
        raise ModelFileError(f"no file at {path}: check the path of the model")
    with path.open("rb") as file, _damage_explained(path, file), zipfile.ZipFile(file) as archive:
        _check_members(archive, path)
        text = archive.read(_TREE)
        _check_tree(text, path)
        tree = json.loads(text)
        if not isinstance(tree, dict) or tree.get("format") != FORMAT:
            raise _foreign(path)
        _check_version(tree.get("version"), tree.get("ccot"), path)
        room = _SHARED * path.stat().st_size
        return _Reader(archive, types, room).decode(tree.get("values"))


def _array_name(number: int) -> str:
    return f"arrays/{number}.npy"


class _Writer:
    """Turns values into JSON, and collects the arrays that JSON refers to."""

    def __init__(self, types: Mapping[str, type]) -> None:
        self._names = {known: name for name, known in types.items()}
        self.arrays: list[np.ndarray] = []
        # The number of each array by its id; with the array, so that no other one gets this id.
        self._known: dict[int, tuple[int, np.ndarray]] = {}

    def encode(self, value: Any) -> Any:
        """Return a JSON value."""
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, Enum):
            return {"enum": self._name(value), "name": value.name}
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": str(value)}
        if isinstance(value, list):
            return [self.encode(item) for item in value]
        if isinstance(value, tuple):
            return {"tuple": [self.encode(item) for item in value]}
        if isinstance(value, dict):
            return {"dict": [[self.encode(k), self.encode(v)] for k, v in value.items()]}
        if isinstance(value, np.ndarray):
            return self._array(value)
        if sp.issparse(value):
            return self._sparse(value)
        if is_dataclass(value) and not isinstance(value, type):
            content = {f.name: self.encode(getattr(value, f.name)) for f in fields(value)}
            return {"type": self._name(value), "fields": content}
        reason = "a model file can hold numbers, text and arrays, but no code"
        raise ModelFileError(f"{value!r} cannot be saved: {reason}")

    def _name(self, value: Any) -> str:
        if type(value) not in self._names:
            raise ModelFileError(f"a value of type {type(value).__name__} cannot be saved")
        return self._names[type(value)]

    def _array(self, array: np.ndarray) -> Any:
        if array.dtype == object:
            if not all(isinstance(item, str) for item in array.flat) or array.ndim != 1:
                raise ModelFileError("an array of Python objects cannot be saved")
            return {"strings": array.tolist()}
        if array.dtype.kind not in _ARRAY_KINDS:
            raise ModelFileError(f"an array of type {array.dtype} cannot be saved")
        # An array that several values share is written once, and shared again when read.
        if id(array) not in self._known:
            self._known[id(array)] = len(self.arrays), array
            self.arrays.append(array.astype(array.dtype.newbyteorder("<"), copy=False))
        return {"array": self._known[id(array)][0]}

    def _sparse(self, matrix: Any) -> Any:
        kind = matrix.format if matrix.format in ("csr", "csc") else "csr"
        matrix = matrix.asformat(kind)
        return {
            "sparse": kind,
            "as": "array" if isinstance(matrix, sp.sparray) else "matrix",
            "shape": list(matrix.shape),
            "parts": [self._array(part) for part in (matrix.data, matrix.indices, matrix.indptr)],
        }


class _Reader:
    """Turns JSON back into values of known types."""

    def __init__(self, archive: zipfile.ZipFile, types: Mapping[str, type], room: int) -> None:
        self._archive, self._types, self._room = archive, types, room
        self._arrays: dict[int, np.ndarray] = {}

    def decode(self, tree: Any) -> Any:
        """Return the value of a JSON value."""
        match tree:
            case None | bool() | int() | float() | str():
                return tree
            case list():
                return [self.decode(item) for item in tree]
            case {"float": str(text)}:
                return float(text)
            case {"tuple": list(items)}:
                return tuple(self.decode(item) for item in items)
            # Larger integers could all have the same hash, which makes dictionaries slow.
            case {"dict": list(pairs)} if all(
                isinstance(key, str) or (isinstance(key, int) and abs(key) < 2**60)
                for key, _ in pairs
            ):
                return {self.decode(key): self.decode(value) for key, value in pairs}
            case {"strings": list(items)}:
                return np.array([str(item) for item in items], dtype=object)
            case {"array": int(number)}:
                return self._array(number)
            case {"sparse": "csr" | "csc" as kind, "as": str(style), "shape": [int(n), int(d)],
                  "parts": [data, indices, indptr]}:  # fmt: skip
                parts = tuple(self.decode(part) for part in (data, indices, indptr))
                self._room -= sum(part.nbytes for part in parts)
                if self._room < 0:
                    raise _Damage("more sparse matrices than fit into its size")
                matrix = getattr(sp, f"{kind}_{style}")(parts, shape=(n, d))
                check_sparse(matrix)
                return matrix
            case {"enum": str(name), "name": str(member)}:
                return self._type(name)[member]  # type: ignore[index]
            case {"type": str(name), "fields": dict(content)}:
                known = self._type(name)
                decoded = {key: self.decode(part) for key, part in content.items()}
                return _dataclass(known, upgraded(known, decoded))
        raise _Damage(f"a value of unknown kind: {str(tree)[:60]}")

    def _type(self, name: str) -> type:
        if name not in self._types:
            raise _Damage(f"the unknown type {name[:60]!r}")
        return self._types[name]

    def _array(self, number: int) -> np.ndarray:
        """Return an array; its header must fit exactly to the data that follow."""
        if number not in self._arrays:
            content = self._archive.read(_array_name(number))
            stream = BytesIO(content)
            shape, fortran, dtype = read_header(stream, len(content))
            if dtype.kind not in _ARRAY_KINDS:
                raise _Damage(f"an array of type {dtype}")
            flat = np.frombuffer(content, dtype, offset=stream.tell())
            flat = flat.reshape(shape, order="F" if fortran else "C")
            self._arrays[number] = flat.copy(order="K")
        return self._arrays[number]


def _dataclass(known: type, content: dict[str, Any]) -> Any:
    """Return a dataclass; fields that are newer than the file have defaults."""
    if not is_dataclass(known):
        raise _Damage(f"{known.__name__} with fields")
    own = {one.name: one for one in fields(known)}
    required = {name for name, one in own.items() if one.default is one.default_factory is MISSING}
    if not required <= content.keys() <= own.keys():
        raise _Damage(f"{known.__name__} with other fields than it has")
    hints = get_type_hints(known)
    for name, value in content.items():
        if not fits(value, hints[name]):
            raise _Damage(f"{known.__name__} whose {name} is of the wrong type")
    return known(**content)


def fits(value: Any, hint: Any) -> bool:
    """Return True if a value is of an annotated type; an exact integer may stand for a float."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, UnionType):
        return any(fits(value, one) for one in inner)
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        each = inner[:1] * len(value) if inner[-1] is Ellipsis else inner
        return len(each) == len(value) and all(map(fits, value, each))
    if origin is dict:
        return isinstance(value, dict) and all(
            fits(k, inner[0]) and fits(v, inner[1]) for k, v in value.items()
        )
    if hint is float:
        return isinstance(value, float) or (isinstance(value, int) and abs(value) < 2**53)
    kind = origin or hint
    return isinstance(value, kind) if isinstance(kind, type) else True


class _Damage(Exception):
    """A fault inside a file."""


def _foreign(path: Path) -> ModelFileError:
    remedy = "pass a file written by `ccot fit` or by save()"
    return ModelFileError(f"{path} is not a model file of ccot: {remedy}")


def _check_members(archive: zipfile.ZipFile, path: Path) -> None:
    """Refuse members that our writer does not make, before anything is read."""
    members = archive.infolist()
    expected = {_TREE, *(_array_name(number) for number in range(len(members) - 1))}
    names = [member.filename for member in members]
    if _TREE not in names:
        raise _foreign(path)
    if set(names) != expected or len(names) != len(expected):
        odd = next((name for name in names if name not in expected), names[0])
        raise _Damage(f"the unexpected member {odd[:60]!r}")
    for member in members:
        if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 0x1:
            raise _Damage(f"{member.filename} compressed or encrypted")
    for size in ("file_size", "compress_size"):
        if sum(getattr(member, size) for member in members) > path.stat().st_size:
            raise _Damage("more than fits into its size")


def _check_tree(text: bytes, path: Path) -> None:
    """Refuse a description whose many small values would take far more memory than the file."""
    n_bytes = (2 if text.isascii() else 5) * len(text)
    n_bytes += sum(each * text.count(sign) for sign, each in _SIGN_BYTES.items())
    if n_bytes > held_limit(path.stat().st_size):
        raise _Damage(f"a description that would take {n_bytes:.3g} bytes of memory")


def _check_version(version: Any, made_by: Any, path: Path) -> None:
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise _Damage(f"the version {str(version)[:20]}")
    if version > VERSION:
        formats = f"{str(made_by)[:20]}; format {version}, this one reads up to {VERSION}"
        later = f"{path} was written by a later ccot ({formats})"
        raise ModelFileError(f"{later}: run pip install --upgrade ccot")


@contextmanager
def _damage_explained(path: Path, file: BinaryIO) -> Iterator[None]:
    """Turn every error that a damaged file causes into one message."""
    try:
        yield
    except (ModelFileError, MemoryError):
        raise
    except EOFError as error:
        raise _damaged(path, "it ends too early") from error
    except zipfile.BadZipFile as error:
        file.seek(0)
        if file.read(4) == b"PK\x03\x04":
            raise _damaged(path, str(error)) from error
        raise _foreign(path) from error
    except _Damage as damage:
        raise _damaged(path, f"it holds {damage}") from damage
    except Exception as error:  # readers of damaged files can raise any error
        raise _damaged(path, f"{type(error).__name__}: {error}") from error


def _damaged(path: Path, why: str) -> ModelFileError:
    return ModelFileError(f"{path} is damaged ({why}): copy it again, or fit and save again")
