"""What a fitted model in a file must hold for anything to be made of it."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from ccot.io.matrix import held_limit
from ccot.persistence.model_file import fits

# What arrays hold (f numbers, p shares, i whole numbers, s texts, m a matrix that may be sparse),
# their axes, and the axis whose positions whole numbers are. Axes are rows n, columns d (u of them
# in clusters: the others have -1), row clusters k and column clusters l; in the parts of one side
# its points p, the values w of each, and its clusters c. Any other letter is as long as where it
# stands first. A bar parts two forms of an array, a plus sign the two of a pair.
FITTED: dict[str, Any] = {
    "row_labels_": "i n k", "column_labels_": "i d l", "row_confidence_": "p n",
    "column_confidence_": "p d", "row_names_in_": "s n", "feature_names_in_": "s d",
    "block_means_": "f kl", "row_log_scaling_": "f n", "column_log_scaling_": "f d",
    "row_jumps_": "i R n", "column_jumps_": "i S d", "row_jump_strength_": "f R",
    "column_jump_strength_": "f S", "row_merge_costs_": "f A", "column_merge_costs_": "f B",
    "criterion_path_": "f E", "n_row_clusters_": int, "n_column_clusters_": int,
    "n_features_in_": int, "n_iter_": int, "n_samplings_": int, "reg_": float, "icl_": float,
    "bic_": float, "criterion_": float, "_unit": float, "_offset": float, "converged_": bool,
    "_sparse_rows": bool, "family_": str, "family_reason_": str, "_file_options": dict[str, Any],
    "row_cluster_votes_": dict[int, float], "column_cluster_votes_": dict[int, float],
    "_sklearn_output_config": dict[str, str], "candidates_": "tuple Candidate",
    "_kept_portraits": "tuple tuple Portrait", "hierarchy_": "Hierarchy",
    "reproducibility_": "BothSides", "reg_path_": "RegPath", "_beliefs": "Beliefs",
    "_coclustering": "StepCoclustering|BlockCoclustering|TableCoclustering",
}  # fmt: skip
_PARTS: dict[str, dict[str, str]] = {
    "Side": {"labels": "i p c", "confidence": "p p"},
    "StepSide": {"labels": "i p c", "confidence": "p p", "log_scaling": "f p", "jumps": "i j p",
                 "jump_strength": "f j"},
    "DrawPlacement": {"thresholds": "f t", "members": "i m w", "anchors": "m am",
                      "log_anchor_scaling": "f a"},
    "KernelPlacement": {"thresholds": "f t", "log_support_scaling": "f s"},
    "Similarities": {"matrix": "f gg", "points": "m gw"},
    "Landmarks": {"points": "m gw", "weights": "f gh"},
    "BlockPlacement": {"natural": "f cq", "cumulant": "f cq", "marginal": "f c",
                       "partner": "i w q|f wq", "partner_exposure": "f w"},
    "TablePlacement": {"natural": "f cm", "cumulant": "f cm", "marginal": "f c", "alone": "f m"},
    "ScorePlacement": {"means": "f cq", "rows": "i w q"},
    "Preparation": {"column_scale": "f d", "row_effect": "f n", "column_effect": "f d"},
    "Blocks": {"total": "f xy", "exposure": "f xy", "labels": "i n x+i u y", "plans": "f nx+f uy"},
    "Reproducibility": {"numbers": "i g", "mean": "f g", "spread": "f g", "clusters": "f c",
                        "points": "f p", "nodes": "f h"},
    "RegPath": {"scores": "f gh"},
    "TableCoclustering": {"block_means": "f kl", "column_signs": "f d"},
    "BlockCoclustering": {"block_means": "f kl"}, "StepCoclustering": {"block_means": "f kl"},
    "Beliefs": {"means": "f kl", "variances": "f kl"},
    "BeliefSide": {"counts": "f p", "membership": "f pc", "residual": "f p", "uncertainty": "f p"},
    "PreparedColumn": {"shares": "f v"},
}  # fmt: skip
# Kinds of NumPy's types; numbers may be whole.
_KINDS = {"f": "fiu", "m": "fiu", "p": "f", "i": "iu", "s": "OU"}
# The axes of a side by those of the matrix.
_SIDES = {"row": {"p": "n", "w": "d", "c": "k"}, "column": {"p": "d", "w": "n", "c": "l"}}
# Counts in a file may not be larger than this, or its size: somebody may allocate as much.
_COUNT = 1_000_000


def check_fitted(fitted: dict[str, Any], size: int) -> None:
    """Refuse a fitted model whose parts do not go together."""
    sizes = dict[str, int]()
    for name, points, clusters in (("row", "n", "k"), ("column", "d", "l")):
        labels, number = (fitted[key] for key in (f"{name}_labels_", f"n_{name}_clusters_"))
        _require(_is_array(labels, {}, "i", points), f"{name}_labels_")
        _require(fits(number, int) and 1 <= number <= len(labels), f"n_{name}_clusters_")
        sizes |= {points: len(labels), clusters: number, "u": int((labels >= 0).sum())}
    # With kernels instead of a matrix, points are described by those of their own side.
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
    """Check the arrays and counts in dataclasses, however deep."""
    kind, sizes = type(part).__name__, dict(sizes)
    if hasattr(part, "width"):
        _require(part.width in (sizes["p"], sizes["w"]), f"{kind}.width")
        sizes["w"] = part.width
    if kind == "Hierarchy":
        _check_hierarchy(part, sizes)
    if hasattr(part, "finest"):
        _require(part.finest.total.shape == part.hierarchy.shape, f"{kind}.finest")
    for name, told in _PARTS.get(kind, {}).items():
        value = getattr(part, name)
        _require(value is None or _is(value, told, sizes), f"{kind}.{name}")
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


def _is(value: Any, told: Any, sizes: dict[str, int]) -> bool:
    """Return True if a value is as it is told; letters of unknown axes get their lengths."""
    if not isinstance(told, str):
        return fits(value, told)
    if told.startswith("tuple "):
        return isinstance(value, tuple) and all(_is(one, told[6:], sizes) for one in value)
    if told[0].isupper():
        return type(value).__name__ in told.split("|")
    if "+" in told:
        return all(_is(one, part, sizes) for one, part in zip(value, told.split("+"), strict=True))
    return any(_is_array(value, sizes, *form.split()) for form in told.split("|"))


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
