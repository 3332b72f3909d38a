"""What ``ccot fit`` makes of its input: kinds, annotations, gaps, and what is said of them."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import typer
from sklearn.utils import gen_batches

from ccot import TransportCoclustering
from ccot.io import InputError, NamedMatrix, Table
from ccot.io.layout import MISSING
from ccot.io.mixed import as_matrix, as_named, as_table

# Kinds of columns that hold numbers, whatever stands between them.
NUMBER_KINDS = ("number", "count", "share", "money")
# Tables have few columns; of more, all are taken for one kind.
_FEW_COLUMNS = 100
# A column with this share of the variance leaves nothing to the others; so many values tell.
_OVERWHELMING, _ENOUGH = 0.95, 2**20


def parse_kinds(given: Sequence[str]) -> dict[str, str]:
    """Return kinds by column; a name may hold equals signs, a kind does not."""
    pairs = [one.rpartition("=") for one in given]
    for whole, (column, _, kind) in zip(given, pairs, strict=True):
        if not column or not kind:
            raise typer.BadParameter(f"--kind {whole} is not COLUMN=KIND, as in year=category")
    return {column: kind for column, _, kind in pairs}


def split(
    found: NamedMatrix, annotate: Sequence[str], *, as_table_of: Collection[str] = ()
) -> tuple[NamedMatrix, dict[str, np.ndarray]]:
    """Return the input without the columns that only annotate it, and those columns."""
    if not annotate and not as_table_of:
        return found, {}
    table = found.values if isinstance(found.values, Table) else as_table(found)
    for option, names in (("--annotate", annotate), ("--kind", as_table_of)):
        for name in names:
            if name not in table.columns:
                known = ", ".join(table.columns)[:80]
                raise InputError(f"{option} {name} is no column: columns are {known}")
    kept = {name: column for name, column in table.columns.items() if name not in annotate}
    rest = replace(table, columns=kept, notes=(found.how, *found.notes))
    taken = {name: table.columns[name] for name in annotate}
    return (as_named(rest) if as_table_of else as_matrix(rest)), taken


def fitted_values(model: Any, table: NamedMatrix) -> Any:
    """Return what is fitted: few columns with names are a table, which may be of many kinds."""
    tells = isinstance(model, TransportCoclustering) and "column_kinds" in model.get_params()
    is_small = isinstance(table.values, np.ndarray) and table.shape[1] <= _FEW_COLUMNS
    return as_table(table) if tells and is_small and table.column_names else table.values


def preparation_line(model: Any) -> str:
    """Return in one line what was done to the values before they were fitted."""
    preparation = getattr(model, "preparation_", None)
    return str(getattr(preparation, "sentence", preparation or ""))


def count_missing(values: Any) -> int:
    """Count the missing entries of a matrix in memory; those of one in its file nobody has seen.

    Examples
    --------
    >>> count_missing(np.array([[1, np.nan], [np.nan, 2]]))
    2
    """
    if isinstance(values, Table):
        return sum(_count_gaps(column) for column in values.columns.values())
    if not isinstance(values, np.ndarray):
        return 0
    parts = gen_batches(len(values), max(1, _ENOUGH // values.shape[1]))
    return sum(int(np.isnan(values[part]).sum()) for part in parts)


def _count_gaps(column: np.ndarray) -> int:
    if column.dtype.kind == "O":
        return sum(cell is None or cell.lower() in MISSING for cell in column.tolist())
    return int((np.isnat(column) if column.dtype.kind == "M" else np.isnan(column)).sum())


def doubts(model: Any, table: NamedMatrix) -> list[str]:
    """Say if one column outweighs all others, as it does where units differ."""
    values = table.values
    if not isinstance(values, np.ndarray) or getattr(model, "family_", "gaussian") != "gaussian":
        return []
    if hasattr(getattr(model, "preparation_", None), "names"):  # columns have scales of their own
        return []
    some = values[:: -(-values.size // _ENOUGH)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # columns without any value
        variance = np.nan_to_num(np.nanvar(some, axis=0))
    largest = int(variance.argmax())
    share = variance[largest] / max(variance.sum(), 1e-300)
    if len(variance) < 3 or share < _OVERWHELMING:
        return []
    name = repr(table.column_names[largest]) if table.column_names else str(largest + 1)
    return [
        f"column {name} has {share:.1%} of the variance of all columns, and the others hardly "
        "count: if units differ, pass --scale standard"
    ]
