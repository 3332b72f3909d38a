"""Long tables: one line a cell, with the names of its row and column."""

from array import array
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from ccot.io.layout import ReadOptions
from ccot.io.matrix import Found, InputError, check_held, check_memory, named_matrix, sorting_bytes

Cell = tuple[str, str, float]
Places = tuple[np.ndarray, np.ndarray]
UNLISTED = ("zero", "missing")
AGGREGATES = {"sum": "summed", "mean": "averaged", "count": "counted", "last": "the last is used"}
# Bytes that a cell takes until it is in a sparse matrix, and a name until it is in a tuple.
_CELL_BYTES, _NAME_BYTES = 28, 180
_CELLS_BETWEEN_CHECKS = 2**14


def collect_long(
    cells: Iterable[Cell], options: ReadOptions, *, counted: bool, size: Callable[[], int]
) -> Found:
    """Gather cells, ones if ``counted``, into a matrix; ``size`` tells the bytes read so far."""
    unlisted, aggregate = options.unlisted, options.aggregate
    if unlisted not in UNLISTED:
        raise InputError(f"unlisted={unlisted!r} must be one of {', '.join(UNLISTED)}")
    if aggregate not in (None, *AGGREGATES):
        raise InputError(f"aggregate={aggregate!r} must be one of {', '.join(AGGREGATES)}")
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
        raise InputError("the input has no cells: pass lines of row, column and value")
    shape = len(row_names), len(column_names)
    places = np.frombuffer(rows, np.int32), np.frombuffer(columns, np.int32)
    found = np.frombuffer(values, np.float64)
    _check_cells(len(values), sum(shape), size(), sorting_bytes(places[0]))
    # Amounts add up; ratings and measurements do not.
    amounts = unlisted == "zero" and bool(np.all((found >= 0) & (np.floor(found) == found)))
    how = aggregate or ("count" if counted else "sum" if amounts else "mean")
    # SciPy adds up what is there twice: that takes no sorting.
    by_scipy = unlisted == "zero" and how in ("sum", "count") and not np.isnan(found).any()
    if how == "count":
        found = np.ones_like(found)
    notes: tuple[str, ...] = ()
    if not by_scipy or not counted:
        places, found, notes = _combined(places, found, shape, how, bool(aggregate), by_scipy)
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
    described = f"long table ({kind}), unlisted cells are {unlisted}"
    named = named_matrix(matrix, row_names, column_names, described, notes)
    return replace(named, is_listed=True)


def _combined(
    places: Places, found: np.ndarray, shape: tuple[int, int], how: str, asked: bool, by_scipy: bool
) -> tuple[Places, np.ndarray, tuple[str, ...]]:
    """Return cells that are there once each, and what to say if some were not."""
    ranked = np.ravel_multi_index(places, shape)
    ranked.sort()
    n_again = int((ranked[1:] == ranked[:-1]).sum())
    if not n_again:
        return places, found, ()
    others = ", ".join(name for name in AGGREGATES if name != how)
    note = f"{n_again} lines repeat a cell of an earlier line: {AGGREGATES[how]}"
    note += "" if asked else f" (to change this: --aggregate {others})"
    if by_scipy:
        return places, found, (note,)
    order = np.argsort(np.ravel_multi_index(places, shape), kind="stable")
    starts = np.flatnonzero(np.r_[True, ranked[1:] != ranked[:-1]])
    sizes = np.diff(np.r_[starts, len(ranked)])
    if how == "last":
        combined = found[order[starts + sizes - 1]]
    else:
        combined = np.add.reduceat(found[order], starts)
        combined = combined / sizes if how == "mean" else combined
    first = order[starts]
    return (places[0][first], places[1][first]), combined, (note,)


def _check_cells(n_cells: int, n_names: int, size: int, more_bytes: int = 0) -> None:
    n_bytes = _CELL_BYTES * n_cells + _NAME_BYTES * n_names + more_bytes
    remedy = "add up repeated cells, and leave out rows and columns with a single cell"
    check_held(n_bytes, size, f"a long table of {n_cells} cells with {n_names} names", remedy)
