"""What a fitted model in a file must hold for anything to be made of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from ccot.io.matrix import held_limit

# Shapes by the numbers of rows (n), columns (d), row clusters (k) and column clusters (l).
_SHAPES = {
    "row_labels_": "n",
    "column_labels_": "d",
    "row_confidence_": "n",
    "column_confidence_": "d",
    "row_log_scaling_": "n",
    "column_log_scaling_": "d",
    "row_names_in_": "n",
    "feature_names_in_": "d",
    "block_means_": "kl",
}
_NUMBERS = ("n_row_clusters_", "n_column_clusters_", "n_features_in_")
_TEXTS = ("row_names_in_", "feature_names_in_")
# Counts in a file may not be larger than this, or its size: somebody may allocate as much.
_COUNT = 1_000_000


def check_fitted(fitted: Mapping[str, Any], size: int) -> None:
    """Refuse a fitted model whose parts do not go together."""
    for name in ("row_labels_", "column_labels_"):
        _require(_is_integers(fitted.get(name)), name, "must be whole numbers")
    sizes = {"n": len(fitted["row_labels_"]), "d": len(fitted["column_labels_"])}
    for name in _NUMBERS:
        _require(_is_count(fitted.get(name)), name, "must be a number")
    sizes |= {"k": fitted["n_row_clusters_"], "l": fitted["n_column_clusters_"]}
    # With kernels instead of a matrix, points are described by those of their own side.
    right = fitted["n_features_in_"] in (sizes["n"], sizes["d"])
    _require(right, "n_features_in_", "is of another matrix")
    for clusters, points in ("kn", "ld"):
        right = 1 <= sizes[clusters] <= sizes[points]
        _require(right, "the number of clusters", "must be between 1 and that of the points")
    _require(8 * sizes["k"] * sizes["l"] <= held_limit(size), "the table of blocks", "is too large")
    for name, axes in _SHAPES.items():
        if fitted.get(name) is not None:
            _check_array(name, fitted[name], tuple(sizes[axis] for axis in axes))
    for name, clusters in (("row_labels_", "k"), ("column_labels_", "l")):
        _check_labels(name, fitted[name], sizes[clusters])
    _require(isinstance(fitted.get("_file_options", {}), dict), "_file_options", "must be options")
    _check_inner(fitted.get("_coclustering"), sizes)
    for holder, name in ((fitted.get("_coclustering"), "hierarchy"), (None, "hierarchy_")):
        _check_hierarchy(getattr(holder, name, fitted.get(name)), sizes)
    for name, value in _counts(list(fitted.values())):
        _require(0 <= value <= max(size, _COUNT), name, "is out of range")


def _check_array(name: str, value: Any, shape: tuple[int, ...]) -> None:
    right = isinstance(value, np.ndarray) and value.shape == shape
    _require(right, name, f"must be an array of shape {shape}")
    kinds = "OU" if name in _TEXTS else "iu" if name.endswith("labels_") else "f"
    _require(value.dtype.kind in kinds, name, f"must not be of type {value.dtype}")


def _check_labels(name: str, labels: np.ndarray, n_clusters: int) -> None:
    # Columns that are left out of a table are in no cluster.
    least = -1 if name.startswith("column") else 0
    within = labels.min() >= least and labels.max() < n_clusters
    _require(within, name, f"must be between 0 and {n_clusters - 1}")


def _check_inner(coclustering: Any, sizes: Mapping[str, int]) -> None:
    """Compare the result of the fit with the attributes made of it."""
    if coclustering is None:
        return
    for name, points, clusters in (("row", "n", "k"), ("column", "d", "l")):
        side = getattr(coclustering, name, None)
        labels = getattr(side, "labels", None)
        _require(_is_integers(labels), name, "has no labels")
        _check_array(f"{name}_labels_", labels, (sizes[points],))
        _require(getattr(side, "n_clusters", None) == sizes[clusters], name, "contradicts itself")
        _check_labels(name, np.asarray(labels), sizes[clusters])
        width = getattr(getattr(side, "placement", None), "width", None)
        _require(width in (sizes["n"], sizes["d"]), name, "places points of another width")


def _check_hierarchy(hierarchy: Any, sizes: Mapping[str, int]) -> None:
    if hierarchy is None:
        return
    shape: Any = getattr(hierarchy, "shape", ())
    right = len(shape) == 2 and all(map(_is_count, shape)) and min(shape, default=0) > 0
    right = right and shape[0] <= sizes["n"] and shape[1] <= sizes["d"]
    _require(right, "hierarchy_", "must begin with no more clusters than points")
    there = {axis: set(range(length)) for axis, length in enumerate(shape)}
    for merge in hierarchy.merges:
        clusters = {merge.first, merge.second} & there.get(merge.axis, set())
        _require(len(clusters) == 2, "hierarchy_", "merges clusters that are not there")
        there[merge.axis].remove(merge.second)


def _counts(values: list[Any]) -> Iterator[tuple[str, int]]:
    """Yield the counts and widths in dataclasses, however deep."""
    while values:
        value = values.pop()
        if is_dataclass(value):
            for field in fields(value):
                inner = getattr(value, field.name)
                if field.name.startswith("n_") or field.name == "width":
                    if isinstance(inner, int):
                        yield field.name, inner
                else:
                    values.append(inner)
        elif isinstance(value, list | tuple):
            values.extend(value)
        elif isinstance(value, dict):
            values.extend(value.values())


def _is_integers(value: Any) -> bool:
    is_vector = isinstance(value, np.ndarray) and value.ndim == 1 and value.size > 0
    return is_vector and value.dtype.kind in "iu"


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _require(right: bool, name: str, problem: str) -> None:
    if not right:
        raise ValueError(f"{name} {problem}")
