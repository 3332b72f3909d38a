"""Checks of the fitted attributes that a model file contains."""

import tomllib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from importlib import resources
from typing import Any

import numpy as np

from ccot.io.matrix import held_limit
from ccot.persistence.model_file import fits

_FILE = resources.files("ccot.persistence") / "model_schema.toml"
_SCHEMA = tomllib.loads(_FILE.read_text(encoding="utf-8"))
FITTED: dict[str, str] = _SCHEMA["fitted"]
_PARTS: dict[str, dict[str, str]] = _SCHEMA["parts"]
_TYPES: dict[str, Any] = {
    **{kind.__name__: kind for kind in (int, float, bool, str)},
    "dict of str": dict[str, Any],
    "dict of int to float": dict[int, float],
    "dict of str to str": dict[str, str],
}
# Kinds of NumPy's types; numbers may be whole.
_KINDS = {"f": "fiu", "m": "fiu", "p": "f", "i": "i", "s": "OU"}
# The axes of a side, named by those of the matrix.
_SIDES = {"row": {"p": "n", "w": "d", "c": "k"}, "column": {"p": "d", "w": "n", "c": "l"}}
# Counts in a file are at most this, or the file's size if larger: memory may be allocated by them.
_COUNT = 1_000_000


def check_fitted(fitted: dict[str, Any], size: int) -> None:
    """Refuse a fitted model whose parts do not fit together."""
    sizes = dict[str, int]()
    for name, points, clusters in (("row", "n", "k"), ("column", "d", "l")):
        labels, number = (fitted[key] for key in (f"{name}_labels_", f"n_{name}_clusters_"))
        _require(_is_array(labels, {}, "i", points), f"{name}_labels_")
        _require(fits(number, int) and 1 <= number <= len(labels), f"n_{name}_clusters_")
        sizes |= {points: len(labels), clusters: number, "u": int((labels >= 0).sum())}
    # With kernels instead of a matrix, the features of points are the points of their own side.
    _require(fitted["n_features_in_"] in (sizes["n"], sizes["d"]), "n_features_in_")
    _require(8 * sizes["k"] * sizes["l"] <= held_limit(size), "the table of blocks")
    for name, value in fitted.items():
        _require(name in FITTED and _is(value, FITTED[name], sizes), name)
        _check_parts(value, sizes, max(size, _COUNT))
    kept = fitted.get("_kept_portraits")
    _require(kept is None or [*map(len, kept)] == [sizes["k"], sizes["l"]], "_kept_portraits")
    hierarchy = getattr(fitted.get("_coclustering"), "hierarchy", None)
    _require(fitted.get("hierarchy_", hierarchy) == hierarchy, "hierarchy_")


def _check_parts(part: Any, sizes: dict[str, int], most: int) -> None:
    """Check the arrays and counts in dataclasses, at any depth."""
    kind, sizes = type(part).__name__, dict(sizes)
    if hasattr(part, "width"):
        _require(part.width in (sizes["p"], sizes["w"]), f"{kind}.width")
        sizes["w"] = part.width
    if kind == "Hierarchy":
        _check_hierarchy(part, sizes)
    if hasattr(part, "finest"):
        _require(part.finest.total.shape == part.hierarchy.shape, f"{kind}.finest")
    for name, form in _PARTS.get(kind, {}).items():
        value = getattr(part, name)
        _require(value is None or _is(value, form, sizes), f"{kind}.{name}")
    for name in (field.name for field in (fields(part) if is_dataclass(part) else ())):
        value = getattr(part, name)
        _require(name != "scale" or value != 0, f"{kind}.scale")
        if name.startswith("n_"):
            right = value == sizes["c"] if name == "n_clusters" else 0 <= value <= most
            _require(right, f"{kind}.{name}")
        side = {here: sizes[there] for here, there in _SIDES.get(name, {}).items()}
        _check_parts(value, sizes | side, most)
    for inner in part if isinstance(part, tuple) else ():
        _check_parts(inner, sizes, most)


def _check_hierarchy(hierarchy: Any, sizes: Mapping[str, int]) -> None:
    right = (1 <= n <= sizes[axis] for n, axis in zip(hierarchy.shape, "nd", strict=True))
    _require(all(right), "Hierarchy.shape")
    there = {axis: set(range(length)) for axis, length in enumerate(hierarchy.shape)}
    for merge in hierarchy.merges:
        clusters = {merge.first, merge.second} & there.get(merge.axis, set())
        _require(len(clusters) == 2, "Hierarchy.merges")
        there[merge.axis].remove(merge.second)


def _is(value: Any, form: str, sizes: dict[str, int]) -> bool:
    """Return True if a value has a form of the table; unknown axes get their lengths."""
    if form in _TYPES:
        return fits(value, _TYPES[form])
    if form.startswith("tuple "):
        return isinstance(value, tuple) and all(_is(one, form[6:], sizes) for one in value)
    if form[0].isupper():
        return type(value).__name__ in form.split("|")
    if "+" in form:
        return all(_is(one, part, sizes) for one, part in zip(value, form.split("+"), strict=True))
    return any(_is_array(value, sizes, *one.split()) for one in form.split("|"))


def _is_array(value: Any, sizes: dict[str, int], kind: str, axes: str, counted: str = "") -> bool:
    if kind != "m" and not isinstance(value, np.ndarray):
        return False
    if len(value.shape) != len(axes) or value.dtype.kind not in _KINDS[kind]:
        return False
    if any(sizes.setdefault(axis, n) != n for axis, n in zip(axes, value.shape, strict=True)):
        return False
    if kind == "p":
        return bool(((value >= 0) & (value < 1 + 1e-6)).all())
    low = -1 if axes in "dp" else 0
    return not counted or bool(((value >= low) & (value < sizes[counted])).all())


def _require(right: bool, name: str) -> None:
    if not right:
        raise ValueError(f"{name} is of a wrong type, shape or range")
