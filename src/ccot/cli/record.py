"""What ``run.json`` holds: how the results of a fit came about."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from ccot import __version__
from ccot.cli.inputs import preparation_line
from ccot.io import NamedMatrix

_LIBRARIES = ("numpy", "scipy", "scikit-learn")


def record(
    model: Any,
    reason: str,
    source: str,
    table: NamedMatrix,
    seen: list[str],
    times: Mapping[str, float],
) -> dict[str, Any]:
    """Return what run.json holds: how these results came about."""
    parameters = model.get_params()
    del parameters["checkpoint"], parameters["verbose"]
    return {
        "command": sys.argv,
        "input": {
            "source": source,
            "shape": list(table.shape),
            "how": table.how,
            "notes": list(table.notes),
        },
        "preparation": preparation_line(model) or None,
        "method": {
            "estimator": type(model).__name__,
            "reason": reason,
            "parameters": parameters,
        },
        "seed": model.random_state,
        "result": {
            "row_clusters": model.n_row_clusters_,
            "column_clusters": model.n_column_clusters_,
            "summary": model.summary().splitlines(),
            "warnings": seen,
        },
        "seconds": {step: round(seconds, 3) for step, seconds in times.items()},
        "versions": _versions(),
    }


def _versions() -> dict[str, str]:
    libraries = {library: version(library) for library in _LIBRARIES}
    return {
        "ccot": __version__,
        "python": platform.python_version(),
        **libraries,
        "platform": platform.platform(),
    }
