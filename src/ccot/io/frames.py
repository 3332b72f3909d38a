"""Names from data frames, and data frames from results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

LIBRARIES = ("pandas", "polars")


def row_names(X: Any) -> np.ndarray | None:
    """Return the row names that an input brings along; None where rows are only counted.

    Parameters
    ----------
    X : object
        A pandas DataFrame has an index; nothing else has row names.

    Returns
    -------
    ndarray of str objects, or None
        The names.

    Examples
    --------
    >>> import pandas as pd
    >>> row_names(pd.DataFrame({"a": [1, 2]}, index=["x", "y"]))
    array(['x', 'y'], dtype=object)
    >>> row_names(pd.DataFrame({"a": [1, 2]})) is None
    True
    """
    if not hasattr(X, "iloc") or type(X.index).__name__ == "RangeIndex":
        return None
    return np.array([str(name) for name in X.index], dtype=object)


def make_frame(columns: Mapping[str, Sequence[Any] | np.ndarray], library: str = "pandas") -> Any:
    """Return a data frame of the wanted library.

    Parameters
    ----------
    columns : mapping of str to sequence
        The columns.
    library : {"pandas", "polars"}, default="pandas"
        Whose frame.

    Returns
    -------
    pandas.DataFrame or polars.DataFrame
        The frame.

    Examples
    --------
    >>> make_frame({"name": ["a", "b"], "cluster": [0, 1]}, "polars").shape
    (2, 2)
    """
    if library not in LIBRARIES:
        raise ValueError(f"library={library!r} must be one of {', '.join(LIBRARIES)}")
    try:
        return import_module(library).DataFrame(dict(columns))
    except ImportError as missing:
        raise ImportError(
            f"to_frame needs {library}, which is not installed: pip install {library}"
        ) from missing
