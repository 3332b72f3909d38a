"""What readers add: facts that were not used for fitting, and names of their own."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ccot.report.pack import pack_array, pack_integers

# More categories than this are told apart by nobody.
MAX_CATEGORIES = 40


def pack_annotations(given: Any, side: str, number: int) -> list[dict[str, Any]]:
    """Return facts about rows or columns, a data frame or mapping, ready for the page.

    Each has categories with codes, the last of which is for missing ones, or values.
    """
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
        given = _read_json(Path(os.fspath(given)))
    names: dict[str, Any] = {"view": given.get("view")}
    for side in ("row", "column"):
        listed = given.get(side, {})
        pairs = listed.items() if isinstance(listed, Mapping) else enumerate(listed)
        names[side] = {str(int(cluster)): str(name) for cluster, name in pairs}
    return names


def _read_json(path: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as bad:
        raise ValueError(f"{path} is no JSON file of cluster names: {bad}") from bad
    if not isinstance(found, dict):
        raise ValueError(f"{path} holds no cluster names: expected {{'row': ..., 'column': ...}}")
    return found
