"""Long tables: one line a cell, with the names of its row and column."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable

import numpy as np
import scipy.sparse as sp

from ccot.io.matrix import (
    InputError,
    NamedMatrix,
    check_held,
    check_memory,
    named_matrix,
    sorting_bytes,
)

UNLISTED = ("zero", "missing")
# Bytes that a cell takes until it is in a sparse matrix, and a name until it is in a tuple.
_CELL_BYTES, _NAME_BYTES = 28, 180
_CELLS_BETWEEN_CHECKS = 2**14


def collect_long(
    cells: Iterable[tuple[str, str, float]],
    *,
    counted: bool,
    unlisted: str,
    size: Callable[[], int],
) -> NamedMatrix:
    """Gather cells into a matrix; rows and columns in the order in which they first appear.

    Parameters
    ----------
    cells : iterable of (str, str, float)
        Name of the row, name of the column, value.
    counted : bool
        Whether cells that appear several times are added up; otherwise they are refused.
    unlisted : {"zero", "missing"}
        What the cells are that are not listed.
    size : callable
        Returns how many bytes the cells so far took where they come from.

    Returns
    -------
    NamedMatrix
        Sparse where unlisted cells are zero, dense with NaN where they are missing.

    Examples
    --------
    >>> cells = [("ann", "tea", 2.0), ("bob", "jam", 1.0)]
    >>> table = collect_long(cells, counted=False, unlisted="zero", size=lambda: 20)
    >>> table.values.toarray()
    array([[2., 0.],
           [0., 1.]])
    """
    if unlisted not in UNLISTED:
        raise InputError(f"unlisted={unlisted!r} must be one of {', '.join(UNLISTED)}")
    row_names: dict[str, int] = {}
    column_names: dict[str, int] = {}
    rows, columns, values = array("i"), array("i"), array("d")
    for row, column, value in cells:
        rows.append(row_names.setdefault(row, len(row_names)))
        columns.append(column_names.setdefault(column, len(column_names)))
        values.append(value)
        if len(values) % _CELLS_BETWEEN_CHECKS == 0:
            _check_cells(len(values), len(row_names) + len(column_names), size())
    if not values:
        raise InputError("the input lists no cell: pass lines of row, column and value")
    shape = len(row_names), len(column_names)
    places = np.frombuffer(rows, np.int32), np.frombuffer(columns, np.int32)
    found = np.frombuffer(values, np.float64)
    _check_cells(len(values), sum(shape), size(), sorting_bytes(places[0]))
    if not counted:
        _refuse_twice(places, row_names, column_names)
    if unlisted == "missing":
        check_memory(8 * shape[0] * shape[1], "the matrix with its missing entries")
        matrix = np.full(shape, np.nan)
        matrix[places] = found
    else:
        if np.isnan(found).any():
            raise InputError(
                "some listed values are missing: drop these lines, or pass --unlisted missing"
            )
        matrix = sp.coo_array((found, places), shape=shape).tocsr()
    kind = "pairs, counted" if counted else "row, column, value"
    how = f"long table ({kind}), unlisted cells are {unlisted}"
    return named_matrix(matrix, row_names, column_names, how)


def _check_cells(n_cells: int, n_names: int, size: int, more_bytes: int = 0) -> None:
    check_held(
        _CELL_BYTES * n_cells + _NAME_BYTES * n_names + more_bytes,
        size,
        f"a list of {n_cells} cells with {n_names} names",
        "add up cells that are listed often, leave rows and columns of one cell out",
    )


def _refuse_twice(
    places: tuple[np.ndarray, np.ndarray], row_names: dict[str, int], column_names: dict[str, int]
) -> None:
    flat = places[0].astype(np.int64)
    flat *= len(column_names)
    flat += places[1]
    flat.sort()
    twice = flat[1:][flat[1:] == flat[:-1]]
    if len(twice):
        row, column = divmod(int(twice[0]), len(column_names))
        row_name, column_name = list(row_names)[row], list(column_names)[column]
        raise InputError(
            f"the cell of row {row_name[:40]!r} and column {column_name[:40]!r} is "
            "listed more than once: add up or drop the repeated lines first"
        )
