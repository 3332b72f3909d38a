"""Matrices of ``.h5ad`` files. A damaged one can make HDF5 crash, or run for ever."""

from collections.abc import Iterator
from typing import Any

import h5py

from ccot.io.isolated.worker import BLOCK, Answer, Refusal, blocks_of

_PARTS = ("data", "indices", "indptr")
_FORMATS = {"csr_matrix": "csr", "csc_matrix": "csc", "csr": "csr", "csc": "csc"}
_NAMES = 4096


class _Annotated:
    def __init__(self, path: str, layer: str | None) -> None:
        file = h5py.File(path, "r")
        values = _find(file, layer)
        self._parts = {"data": values}
        self.about: dict[str, Any] = {"format": "dense", "shape": None}
        if isinstance(values, h5py.Group):
            kind = values.attrs.get("encoding-type", values.attrs.get("h5sparse_format"))
            if kind not in _FORMATS:
                problem = f"{values.name} is not a matrix ({str(kind)[:40]})"
                raise Refusal(f"{problem}: name a layer that is a matrix")
            shape = values.attrs.get("shape", values.attrs.get("h5sparse_shape"))
            self.about = {"format": _FORMATS[kind], "shape": [int(length) for length in shape]}
            self._parts = {name: _inside(values, name) for name in _PARTS}
        for part in self._parts.values():
            if part.dtype.kind not in "biuf":
                raise Refusal(f"values of type {part.dtype} are not numbers: convert them first")
        self._axes = {axis: _index(file, axis) for axis in ("obs", "var")}
        stored = [*self._parts.values(), *(part for axis in self._axes.values() for part in axis)]
        self.about |= {
            "parts": {name: [p.shape, p.dtype.str] for name, p in self._parts.items()},
            "n_names": sum(axis[-1].size for axis in self._axes.values()),
            "stored": sum(part.size * part.dtype.itemsize for part in stored),
        }

    def read(self) -> Iterator[Answer]:
        """Yield the parts of the matrix, then the names, in blocks."""
        for name, part in self._parts.items():
            width = part.shape[1] if part.ndim > 1 else 1
            chunk = part.chunks[0] if part.chunks else 1
            # Whole chunks: none is unpacked twice.
            step = chunk * max(1, BLOCK // max(chunk * width, 1))
            for block in blocks_of(part, step):
                yield {"part": name}, [block]
        for axis, index in self._axes.items():
            for names in _names(*index):
                yield {"axis": axis, "names": names}, []


def _find(file: Any, layer: str | None) -> Any:
    layers = list(_inside(file, "layers")) if "layers" in file else []
    if layer is not None and layer not in layers:
        raise Refusal(f"there is no layer {layer!r}: {', '.join(layers) or 'none at all'}")
    if layer is None and "X" not in file:
        raise Refusal(f"X is empty: name a layer, one of {', '.join(layers) or 'none'}")
    return _inside(file, *(["X"] if layer is None else ["layers", layer]))


def _inside(group: Any, *names: str) -> Any:
    """Return a part of a file that is in the file itself."""
    for name in names:
        link = group.get(name, getlink=True)
        if link is not None and not isinstance(link, h5py.HardLink):
            raise _elsewhere(name)
        group = group[name]
    if isinstance(group, h5py.Dataset) and (group.is_virtual or group.external):
        raise _elsewhere(group.name)
    return group


def _elsewhere(name: str) -> Refusal:
    return Refusal(f"its {name} is a link to another file or place: copy the data into one file")


def _index(file: Any, axis: str) -> list[Any]:
    """Return the parts that the names of rows or columns are stored in."""
    table = _inside(file, axis)
    if isinstance(table, h5py.Dataset):  # files of before 2020
        return [table]
    stored = _inside(table, str(table.attrs.get("_index", "_index")))
    if isinstance(stored, h5py.Dataset):
        return [stored]
    if "codes" in stored:
        return [_inside(stored, "categories"), _inside(stored, "codes")]
    return [_inside(stored, "values")]


def _names(stored: Any, codes: Any = None) -> Iterator[list[str]]:
    if stored.dtype.names is not None:
        stored = stored.fields("index" if "index" in stored.dtype.names else stored.dtype.names[0])
    elif h5py.check_string_dtype(stored.dtype):
        stored = stored.asstr()
    if codes is not None:
        known = stored[...]
        yield from ([str(text) for text in known[part]] for part in blocks_of(codes, _NAMES))
        return
    for texts in blocks_of(stored, _NAMES):
        yield [text.decode() if isinstance(text, bytes) else str(text) for text in texts.tolist()]


open_file = _Annotated
