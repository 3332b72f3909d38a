import json
import os
import zipfile
from dataclasses import dataclass
from enum import Enum

import numpy as np
import pytest
import scipy.sparse as sp

from ccot.persistence.model_file import VERSION, ModelFileError, read_values, write_values
from ccot.persistence.registry import stored, stored_types


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True)
class Point:
    place: tuple[float, ...]
    weight: float = 1.0


TYPES = {"Colour": Colour, "Point": Point}


def write(path, values):
    return write_values(path, values, TYPES, "0")


def read(path):
    return read_values(path, TYPES)


@pytest.mark.parametrize(
    "value",
    [None, True, 3, 2**80, 0.1, -1e-308, float("inf"), "naïve\n", [1, [2]], (1, "a", ()),
     {1: 0.5, "b": (2,)}, Colour.RED, Point((1.0, 2.0), 3.0), [Point(()), None]],
)  # fmt: skip
def test_values_return(tmp_path, value):
    back = read(write(tmp_path / "a.ccot", value))
    assert back == value
    assert type(back) is type(value)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6).reshape(2, 3),
        np.asfortranarray(np.random.default_rng(0).normal(size=(3, 4))),
        np.array([np.nan, np.inf]),
        np.array(3.5),
        np.empty((0, 5)),
        np.array([True, False]),
        np.array(["a", "bcd"]),
        np.array(["a", "bcd"], dtype=object),
        np.arange(4, dtype=">i4"),
        np.arange(5, dtype=np.float32),
    ],
)
def test_arrays_return(tmp_path, array):
    back = read(write(tmp_path / "a.ccot", array))
    np.testing.assert_array_equal(back, array)
    assert back.dtype == array.dtype.newbyteorder("=")
    assert back.flags.writeable


@pytest.mark.parametrize("kind", ["csr_array", "csc_array", "csr_matrix", "csc_matrix"])
def test_sparse_matrices_return(tmp_path, kind):
    matrix = getattr(sp, kind)(np.diag([1.0, 0, 2]))
    back = read(write(tmp_path / "a.ccot", matrix))
    assert type(back) is type(matrix)
    np.testing.assert_array_equal(back.toarray(), matrix.toarray())


def test_shared_arrays_are_written_once(tmp_path):
    array = np.arange(1000.0)
    path = write(tmp_path / "a.ccot", [array, array])
    first, second = read(path)
    assert first is second
    assert path.stat().st_size < 1.2 * array.nbytes


def test_the_same_values_make_the_same_bytes(tmp_path):
    values = {"a": np.arange(3), "b": Point((1.0,))}
    one, two = (write(tmp_path / name, values).read_bytes() for name in ("1", "2"))
    assert one == two


@pytest.mark.parametrize(
    "value",
    [print, object(), np.array([object()]), np.array([1j]), {1, 2}, b"code",
     dataclass(frozen=True)(type("Stranger", (), {}))()],
)  # fmt: skip
def test_what_is_no_value_is_not_written(tmp_path, value):
    path = tmp_path / "a.ccot"
    path.write_text("precious")
    with pytest.raises(ModelFileError, match="cannot be saved"):
        write(path, [value])
    assert path.read_text() == "precious"
    assert os.listdir(tmp_path) == ["a.ccot"]


# Files that must not be read -------------------------------------------------------------------


def forge(path, tree, arrays=(), members=(), **zip_options):
    """Write a file by hand."""
    with zipfile.ZipFile(path, "w", **zip_options) as archive:
        if tree is not None:
            archive.writestr("model.json", tree if isinstance(tree, str) else json.dumps(tree))
        for number, content in enumerate(arrays):
            archive.writestr(f"arrays/{number}.npy", content)
        for name, content in members:
            archive.writestr(name, content)
    return path


def tree_of(values, version=VERSION):
    return {"format": "ccot-model", "version": version, "ccot": "9.9", "values": values}


@pytest.mark.parametrize(
    "values",
    [
        {"type": "os.system", "fields": {}},
        {"type": "Point", "fields": {"place": 1.0}},
        {"type": "Point", "fields": {"place": {"tuple": ["x"]}}},
        {"type": "Point", "fields": {}},
        {"type": "Point", "fields": {"place": {"tuple": []}, "more": 1}},
        {"type": "Colour", "fields": {}},
        {"enum": "Colour", "name": "BLUE"},
        {"enum": "Point", "name": "x"},
        {"array": 0},
        {"array": -1},
        {"unheard": "of"},
        {"float": "one"},
        {"dict": [1]},
        {"dict": [[[1], 2]]},
        {"sparse": "csr", "as": "array", "shape": [2, 2], "parts": [1, 2, 3]},
        {"sparse": "csr", "as": "array", "shape": [2, 2], "parts": [[1.0], [7], [0, 1, 1]]},
        {"sparse": "coo", "as": "array", "shape": [2, 2], "parts": [1, 2, 3]},
    ],
)
def test_strange_values_are_refused(tmp_path, values):
    path = forge(tmp_path / "a.ccot", tree_of(values))
    with pytest.raises(ModelFileError, match="is damaged"):
        read(path)


def npy(header_shape, body, dtype="<f8"):
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {header_shape}, }}\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + body


@pytest.mark.parametrize(
    "content",
    [npy((10**12,), b"\0" * 8), npy((2,), b"\0" * 8), npy((-1,), b""), npy((1,), b"\0" * 8, "|O"),
     npy("__import__('os')", b""), b"junk", b"", b"\x93NUMPY\x09\x00"],
)  # fmt: skip
def test_arrays_that_lie_are_refused(tmp_path, content):
    path = forge(tmp_path / "a.ccot", tree_of({"array": 0}), [content])
    with pytest.raises(ModelFileError, match="is damaged"):
        read(path)


@pytest.mark.parametrize("name", ["../evil", "/etc/passwd", "arrays/../0.npy", "code.py"])
def test_other_members_are_refused(tmp_path, name):
    path = forge(tmp_path / "a.ccot", tree_of(1), members=[(name, "x")])
    with pytest.raises(ModelFileError, match="unexpected member"):
        read(path)
    assert os.listdir(tmp_path) == ["a.ccot"]


def test_bombs_are_refused_before_they_are_read(tmp_path):
    path = forge(
        tmp_path / "a.ccot", tree_of({"array": 0}), [b"\0" * 10**7],
        compression=zipfile.ZIP_DEFLATED,
    )  # fmt: skip
    assert path.stat().st_size < 10**5
    with pytest.raises(ModelFileError, match="compressed"):
        read(path)


def test_declared_sizes_must_fit_the_file(tmp_path):
    content = npy((100,), b"\0" * 800)
    path = forge(tmp_path / "a.ccot", tree_of({"array": 0}), [content])
    small, huge = (size.to_bytes(4, "little") for size in (len(content), 2**31))
    path.write_bytes(path.read_bytes().replace(small, huge))
    with pytest.raises(ModelFileError, match="is damaged"):
        read(path)


def test_later_versions_say_how_to_read_them(tmp_path):
    path = forge(tmp_path / "a.ccot", tree_of(1, version=VERSION + 1))
    with pytest.raises(ModelFileError, match=r"later ccot \(9\.9; .*pip install --upgrade"):
        read(path)


@pytest.mark.parametrize("version", [0, -1, "1", None, True, 1.0])
def test_versions_are_positive_integers(tmp_path, version):
    path = forge(tmp_path / "a.ccot", tree_of(1, version=version))
    with pytest.raises(ModelFileError, match="is damaged"):
        read(path)


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", b"\x89PNG\r\n" + b"\0" * 100])
def test_foreign_files_are_named_so(tmp_path, content):
    path = tmp_path / "a.ccot"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="not a model file of ccot"):
        read(path)


@pytest.mark.parametrize("tree", [None, "[]", '{"format": "other"}'])
def test_foreign_archives_are_named_so(tmp_path, tree):
    path = forge(tmp_path / "a.ccot", tree)
    with pytest.raises(ModelFileError, match="not a model file of ccot"):
        read(path)


@pytest.mark.parametrize("tree", ["{", "[" * 10**5, '{"format": "ccot-model"}'])
def test_broken_trees_are_damage(tmp_path, tree):
    path = forge(tmp_path / "a.ccot", tree)
    with pytest.raises(ModelFileError, match="is damaged"):
        read(path)


def test_an_absent_file_is_named(tmp_path):
    with pytest.raises(ModelFileError, match=r"no file at .*nowhere\.ccot"):
        read(tmp_path / "nowhere.ccot")


def test_no_damaged_byte_goes_unnoticed(tmp_path):
    """Every changed or missing byte gives the same values or an error of ours, nothing else."""
    values = {"point": Point((1.0, 2.0)), "array": np.arange(20.0), "text": "abc"}
    path = write(tmp_path / "a.ccot", values)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for place in range(len(whole)):
        broken = bytearray(whole)
        broken[place] ^= int(rng.integers(1, 256))
        path.write_bytes(broken)
        try:
            back = read(path)
        except ModelFileError:
            continue
        assert back["point"] == values["point"]
        np.testing.assert_array_equal(back["array"], values["array"])
    for length in range(0, len(whole), 37):
        path.write_bytes(whole[:length])
        with pytest.raises(ModelFileError):
            read(path)


def test_classes_are_known_by_their_names_and_former_ones():
    @stored("Dot")
    @dataclass(frozen=True)
    class PointOnPaper:
        x: float

    assert stored_types()["Dot"] is stored_types()["PointOnPaper"] is PointOnPaper
