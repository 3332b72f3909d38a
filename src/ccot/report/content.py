"""What the page shows, as plain values: a fitted estimator, and what readers add to it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.validation import check_is_fitted

from ccot.blocks.hierarchy import Hierarchy, Merge
from ccot.blocks.tables import TablePreparation
from ccot.describe import Column, Portrait, statistics, with_names
from ccot.describe.statistics import Statistics
from ccot.plotting._shared import SIDES
from ccot.plotting.evidence import SIGNIFICANT, is_tested
from ccot.report.pack import pack_array, pack_integers
from ccot.report.verdict import decisions, warnings_of

# More categories than this cannot be told apart.
MAX_CATEGORIES = 40


@dataclass(frozen=True)
class Seen:
    """What clusters are described by: all columns of the matrix, and some or all of its rows."""

    matrix: Any
    rows: np.ndarray
    row_names: Sequence[str]
    columns: Sequence[Column | str]


def describe_model(name: str, model: Any, seen: Seen | None = None) -> dict[str, Any]:
    """Return everything the page shows of an estimator that has labels, as JSON can hold it."""
    check_is_fitted(model)
    sides = {side: _describe_side(model, side, axis) for axis, side in enumerate(SIDES)}
    if seen is not None:
        for side, described in zip(SIDES, _portraits(model, sides, seen), strict=True):
            sides[side] |= described
    elif hasattr(model, "_made_portraits") and model._made_portraits():
        for side, kept in zip(SIDES, model._portraits(), strict=True):
            sides[side]["portraits"] = [_plain(portrait) for portrait in kept]
    for tree in (side["hierarchy"] for side in sides.values() if side["hierarchy"] is not None):
        tree["finest"] = pack_integers(tree["finest"])
    path = getattr(model, "reg_path_", None)
    if path is not None:
        path = {"reg": list(path.reg), "scores": numbers_or_none(path.scores), "best": path.best}
    return {
        "name": name,
        "estimator": type(model).__name__,
        "sides": sides,
        "means": numbers_or_none(getattr(model, "block_means_", None)),
        "prepared": _prepared(model),
        "candidates": [asdict(one) for one in getattr(model, "candidates_", ())],
        "path": path,
        "decisions": decisions(model),
        "warnings": warnings_of(model),
        "summary": model.summary() if hasattr(model, "summary") else "",
        "parameters": {key: repr(value) for key, value in model.get_params().items()},
    }


def compare_models(models: Mapping[str, Any]) -> dict[str, list[list[float]]] | None:
    """Return how far the partitions of several models agree, by the adjusted Rand index."""
    if len(models) < 2:
        return None
    agreement = {}
    for side in SIDES:
        labels = [_of(model, side, "labels") for model in models.values()]
        agreement[side] = [[adjusted_rand_score(a, b) for b in labels] for a in labels]
    return agreement


def _of(model: Any, side: str, what: str) -> Any:
    return getattr(model, f"{side}_{what}_", None)


def _describe_side(model: Any, side: str, axis: int) -> dict[str, Any]:
    labels, confidence = _of(model, side, "labels"), _of(model, side, "confidence")
    # Columns that were left out of a table are not shown.
    kept = labels >= 0
    labels, confidence = labels[kept], None if confidence is None else confidence[kept]
    within = _of(model, side, "log_scaling")
    scaling = None
    if within is not None:
        scaling = {
            "log": pack_array(np.asarray(within, dtype=np.float32)),
            "jumps": _of(model, side, "jumps").tolist(),
            "strength": numbers_or_none(_of(model, side, "jump_strength")),
            "significant": SIGNIFICANT if is_tested(model) else None,
        }
    else:
        within = np.zeros(len(labels)) if confidence is None else -confidence
    return {
        "labels": pack_integers(labels),
        "n_clusters": int(getattr(model, f"n_{side}_clusters_", labels.max() + 1)),
        # Thousandths: more than anybody reads.
        "confidence": None if confidence is None else pack_integers(np.rint(1000 * confidence)),
        "order": pack_integers(np.argsort(within, kind="stable")),
        "hierarchy": _hierarchy(model, side, axis),
        "scaling": scaling,
        "costs": numbers_or_none(_of(model, side, "merge_costs")),
        "halves": _halves(getattr(getattr(model, "reproducibility_", None), side, None)),
        "votes": {str(k): share for k, share in (_of(model, side, "cluster_votes") or {}).items()},
    }


def _prepared(model: Any) -> dict[str, Any] | None:
    """Return how the fit saw values: factor times what was taken of them, plus shift, less row."""
    done, row, limits = getattr(model, "preparation_", None), None, None
    kept = np.flatnonzero(_of(model, "column", "labels") >= 0)
    if isinstance(done, TablePreparation):
        columns = [done.columns[j] for j in kept.tolist()]
        # Words have no prepared number of their own.
        factor = np.array([1 / c.scale if c.shares is None else np.nan for c in columns])
        shift = -factor * [c.location for c in columns]
        transform: Any = [c.transform for c in columns]
        row = [c.family == "gaussian" for c in columns] if done.center_rows else None
    elif done is None or not done.changes_values:
        return None
    else:
        factor = np.ones(len(kept)) if done.column_scale is None else 1 / done.column_scale
        shift = -(0.0 if done.logarithm else done.floor) * factor
        shift = shift if done.column_effect is None else shift - done.column_effect
        transform, limits = "log1p" if done.logarithm else "none", done.limits
        row = None if done.row_effect is None else pack_array(done.row_effect)
    packed = {"factor": pack_array(factor), "shift": pack_array(shift), "row": row}
    return packed | {"transform": transform, "limits": limits, "how": done.sentence}


def _halves(found: Any) -> dict[str, Any] | None:
    """Return how well halves of the data agree on each number, and on each fitted cluster."""
    if found is None:
        return None
    arrays = ("numbers", "mean", "spread", "clusters", "nodes")
    facts = {"plausible": found.plausible, "comes_back": bool(found.comes_back)}
    return facts | {name: numbers_or_none(getattr(found, name)) for name in arrays}


def _portraits(model: Any, sides: dict[str, Any], seen: Seen) -> Iterator[dict[str, Any]]:
    """Yield for each side what its clusters are, and what the nodes of its tree are."""
    row_labels, column_labels = (_of(model, side, "labels") for side in SIDES)
    kept = np.flatnonzero(column_labels >= 0)
    all_columns, confidence = np.arange(len(kept)), _of(model, "column", "confidence")
    codes, unions = _groups(row_labels, sides["row"], seen.rows)
    rows = statistics.row_statistics(seen.matrix, codes, seen.columns)
    yield _described(rows, unions, [], sides["row"], all_columns)
    codes, unions = _groups(column_labels[kept], sides["column"], all_columns)
    some = statistics.every(len(seen.rows), statistics.MAX_NAMED_ROWS)
    others = statistics.column_statistics(seen.matrix[some], codes, rows, seen.row_names[some])
    order = statistics.typical_order(rows, None if confidence is None else confidence[kept])
    members = [statistics.members_of(rows, order, np.isin(codes, union)) for union in unions]
    yield _described(others, unions, members, sides["column"], seen.rows[some])


def _groups(
    labels: np.ndarray, side: dict[str, Any], points: np.ndarray
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the codes of pairs of fitted and finest cluster, and their unions: clusters, nodes."""
    tree = side["hierarchy"]
    both = np.stack([labels[points], (labels if tree is None else tree["finest"])[points]])
    pairs, codes = np.unique(both, axis=1, return_inverse=True)
    unions = [np.flatnonzero(pairs[0] == k) for k in range(side["n_clusters"])]
    if tree is not None:
        merges = tuple(Merge(0, *pair, cost=0.0) for pair in tree["merges"])
        leaves, _ = Hierarchy((tree["n_finest"], 0), merges).nodes(0)
        unions += [np.flatnonzero(node[pairs[1]]) for node in leaves]
    return codes.ravel(), unions


def _described(
    sums: Statistics, unions: list[np.ndarray], members: list, side: dict, places: np.ndarray
) -> dict[str, Any]:
    """Return what the fitted clusters are, and what the nodes are: names differ within each."""
    described, number = {}, side["n_clusters"]
    for what, part in (("portraits", slice(number)), ("nodes", slice(number, None))):
        found = with_names(sums.portraits(unions[part], members[part]))
        described[what] = [_plain(one, places) for one in found]
    return described


def _plain(portrait: Portrait, places: np.ndarray | None = None) -> dict[str, Any]:
    """Return what a cluster is, as JSON; without places, traits have titles instead of indices."""
    traits = [
        [
            one.title if places is None else int(places[one.index]),
            one.amount,
            round(one.share, 3),
            1 if one.effect > 0 else -1,
            "mean {:{f}}, of all {:{f}}".format(*one.means, f="" if one.kind == "date" else ".4g"),
        ]
        for one in portrait.traits
    ]
    return {"name": portrait.name, "members": portrait.members, "traits": traits}


def _hierarchy(model: Any, side: str, axis: int) -> dict[str, Any] | None:
    """Return the finest clusters of one side, their merges, and the share each cut keeps."""
    if hasattr(model, "hierarchy_"):
        shape = model.hierarchy_.shape
        finest = getattr(model.cut(*shape), f"{side}_labels")
        cuts = [(k, shape[1]) if axis == 0 else (shape[0], k) for k in range(1, shape[axis] + 1)]
        return {
            "finest": finest[finest >= 0],
            "n_finest": shape[axis],
            "merges": [[merge.first, merge.second] for merge in model.hierarchy_.side(axis)],
            "kept": [model.cut(*cut).share_kept for cut in cuts],
        }
    strengths = _of(model, side, "jump_strength")
    if strengths is None or not len(strengths):
        return None
    # Steps are ordered: without its weakest jump a staircase has one step less.
    return {
        "finest": _of(model, side, "labels"),
        "n_finest": len(strengths) + 1,
        "merges": _joined_steps(np.asarray(strengths)),
        "kept": None,
    }


def _joined_steps(strengths: np.ndarray) -> list[list[int]]:
    """Return merges of neighbouring steps, across the weakest jump first."""
    names = np.arange(len(strengths) + 1)
    merges = []
    for jump in np.argsort(strengths, kind="stable").tolist():
        first, second = int(names[jump]), int(names[jump + 1])
        merges.append([first, second])
        names[names == second] = first
    return merges


def numbers_or_none(values: Any) -> Any:
    """Return an array as a list, or a list of lists, in which what is not finite is None."""
    if values is None:
        return None
    return np.where(np.isfinite(values), values, np.array(None)).tolist()


def pack_annotations(given: Any, side: str, number: int) -> list[dict[str, Any]]:
    """Return facts about rows or columns, each as categories (the last: missing) or values."""
    if given is None:
        return []
    columns = given if isinstance(given, Mapping) else {name: given[name] for name in given.columns}
    packed = []
    for name, values in columns.items():
        listed = list(values)
        if len(listed) != number:
            raise ValueError(f"annotation {name!r} has {len(listed)} values for {number} {side}s")
        packed.append({"name": str(name)} | _pack(str(name), listed))
    return packed


def colourable(columns: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the facts that colours can tell apart, and why others cannot be shown."""
    shown, notes = dict(columns), []
    for name, values in columns.items():
        try:
            _pack(name, list(values))
        except ValueError as error:
            notes.append(f"{error}: the page does not show it")
            del shown[name]
    return shown, notes


def _pack(name: str, values: Sequence[Any]) -> dict[str, Any]:
    known = [None if value is None or value != value else value for value in values]
    texts = [None if value is None else str(value) for value in known]
    categories = sorted({text for text in texts if text is not None})
    if len(categories) <= MAX_CATEGORIES:
        code_of = {text: code for code, text in enumerate([*categories, None])}
        codes = np.array([code_of[text] for text in texts])
        return {"categories": categories, "codes": pack_integers(codes)}
    try:
        numbers = np.array([np.nan if value is None else value for value in known])
        return {"values": pack_array(numbers.astype(np.float32))}
    except (TypeError, ValueError):
        raise ValueError(
            f"annotation {name!r} has {len(categories)} different words: at most {MAX_CATEGORIES} "
            "can be told apart by colour"
        ) from None


def read_cluster_names(given: Any) -> dict[str, Any]:
    """Return names of clusters, and the view if there is one, from a mapping or a saved file."""
    if given is None:
        return {"row": {}, "column": {}, "view": None}
    if not isinstance(given, Mapping):
        path = Path(given)
        try:
            given = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as bad:
            raise ValueError(f"{path} is not a JSON file of cluster names: {bad}") from bad
        if not isinstance(given, dict):
            form = "{'row': ..., 'column': ...}"
            raise ValueError(f"{path} holds no cluster names: expected {form}")
    names: dict[str, Any] = {"view": given.get("view")}
    for side in SIDES:
        listed = given.get(side, {})
        listed = dict(enumerate(listed)) if isinstance(listed, list | tuple) else listed
        if not isinstance(listed, Mapping) or not all(str(one).isdigit() for one in listed):
            raise ValueError(f'{side} clusters are named by number, such as {{"0": "Mine"}}')
        names[side] = {str(cluster): str(name) for cluster, name in listed.items()}
    return names
