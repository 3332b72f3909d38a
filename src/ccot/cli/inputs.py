"""How commands read their input, and what ``ccot fit`` makes of it: kinds, annotations, gaps."""

import warnings
from collections.abc import Collection, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import typer
from sklearn.utils import gen_batches

from ccot import TransportCoclustering
from ccot.cli.options import COPIES, Reading
from ccot.cli.progress import ConsoleProgress
from ccot.io import InputError, NamedMatrix, Table
from ccot.io.binary import damage_explained
from ccot.io.layout import MISSING, ReadOptions, check_drop
from ccot.io.matrix import align, named_matrix, unique_names
from ccot.io.mixed import as_matrix, as_named, as_table, refuse_table
from ccot.io.read import read_any, read_parts
from ccot.runtime.memory import free_bytes
from ccot.sources import ParquetSource, RowSource, TableParts, as_source

# Tables have few columns; of more, all are taken for one kind.
_FEW_COLUMNS = 100
# A column with this share of the variance leaves nothing to the others; so many values tell.
_OVERWHELMING, _ENOUGH = 0.95, 2**20
# A list of cells has at least so many rows and columns.
_SOME_NAMES = 10


def read_input(
    asked: Reading, source: str, progress: ConsoleProgress, kinds: Any = (), **columns: Any
) -> NamedMatrix:
    """Read the input, or open it to be read by rows; columns of ``as_words`` stay words."""
    stored, by_row, free = _open(asked, source), asked.by_row, free_bytes()
    if by_row and (stored is None or kinds):
        table = _table_parts(source, _options(asked, columns))
        if table.shape[0] > table.sample.shape[0]:
            return NamedMatrix(table, None, tuple(table.sample.columns), "read row by row")
        stored = None
    if stored is not None and by_row is None and free is not None:
        by_row = COPIES * 8 * stored.shape[0] * stored.shape[1] > free
    if stored is not None and by_row:
        rows = unique_names(stored.row_names(), "rows")
        names = rows, unique_names(stored.column_names, "columns")
        return NamedMatrix(stored, *names, "read row by row")
    with progress.step(f"reading {source}") as step:
        if stored is not None and Path(source).is_dir():
            values = stored.rows(np.arange(stored.shape[0]), step)
            names = stored.row_names(), stored.column_names
            return named_matrix(values, *names, "a folder, read as a whole")
        found = read_any(source, _options(asked, columns), step.share)
        return as_matrix(found) if isinstance(found, Table) else found


def _open(asked: Reading, source: str) -> RowSource | None:
    """Return the rows of an input that is kept in a way to be read by rows."""
    path = Path(source)
    if asked.long or asked.long_columns is not None or not _keeps_rows(path):
        return None
    try:
        with damage_explained(path, "matrix"):
            if _is_parquet(path):
                rows = ParquetSource(path, asked.name_column, asked.drop or ())
                return as_source(rows, allow_nan=True)
            check_drop(asked.drop or (), str(path))
            return as_source(path, allow_nan=True)
    except InputError:
        if path.is_dir() or (asked.by_row and not _is_parquet(path)):
            raise
        # Reading the file as a table takes words, or gives a better message.
        return None


def _table_parts(source: str, options: ReadOptions) -> TableParts:
    """Open a table that stays in its file."""
    if options.long is not False or options.index_col or source == "-":
        remedy = "it does not work with --long, --index-col or standard input"
        raise typer.BadParameter(f"--by-row reads a file and numbers its rows: {remedy}")
    return TableParts(partial(read_parts, Path(source), replace(options, index_col=False)))


def _options(asked: Reading, columns: dict[str, Any]) -> ReadOptions:
    """Return the options of the command line as those of readers."""
    given = asdict(asked) | columns
    del given["by_row"]
    listed = given.pop("long_columns")
    if listed is not None:
        given["long"] = [name.strip() for name in listed.split(",")]
    if asked.delimiter in ("tab", "\\t"):
        given["delimiter"] = "\t"
    given |= {"index_col": asked.name_column, "drop": asked.drop or (), "tables": True}
    return ReadOptions(**given)


def _keeps_rows(path: Path) -> bool:
    """Tell whether a path is that of a file or folder that can be read by rows."""
    if not path.is_dir():
        return path.is_file() and (path.suffix == ".npy" or _is_parquet(path))
    return any((path / name).is_file() for name in ("zarr.json", ".zarray")) or _is_parquet(path)


def _is_parquet(path: Path) -> bool:
    return any(path.glob("*.parquet")) if path.is_dir() else path.suffix in (".parquet", ".pq")


def parse_kinds(given: Sequence[str]) -> dict[str, str]:
    """Return kinds by column; a name may hold equals signs, a kind does not."""
    kinds = {}
    for one in given:
        column, _, kind = one.rpartition("=")
        if not column or not kind:
            raise typer.BadParameter(f"--kind {one} is not COLUMN=KIND, as in year=category")
        kinds[column] = kind
    return kinds


def split(
    found: NamedMatrix, annotate: Sequence[str], *, as_table_of: Collection[str] = ()
) -> tuple[NamedMatrix, dict[str, np.ndarray]]:
    """Return the input, a table if kinds of columns are given, and the columns that annotate it."""
    if not annotate and not as_table_of:
        return found, {}
    table = found.values if isinstance(found.values, Table) else as_table(found)
    for option, names in (("--annotate", annotate), ("--kind", as_table_of)):
        for name in names:
            if name not in table.columns:
                known = ", ".join(list(table.columns)[:12]) + ", ..." * (len(table.columns) > 12)
                raise InputError(f"{option} {name} is not a column: the columns are {known}")
    kept = {name: column for name, column in table.columns.items() if name not in annotate}
    rest = replace(table, columns=kept, notes=(found.how, *found.notes))
    taken = {name: table.columns[name] for name in annotate}
    return (as_named(rest) if as_table_of else as_matrix(rest)), taken


def fitted_values(model: Any, table: NamedMatrix) -> Any:
    """Return what is fitted: few columns with names are a table, which may be of many kinds."""
    is_small = isinstance(table.values, np.ndarray) and table.shape[1] <= _FEW_COLUMNS
    takes_kinds = isinstance(model, TransportCoclustering) and not table.is_listed
    return as_table(table) if takes_kinds and is_small and table.column_names else table.values


def _lists_cells(table: Table) -> list[str]:
    """Say if a table looks like a list of cells: two columns of words that come again and again."""
    names, n_rows = list(table.columns), table.shape[0]
    cells, others = [table.columns[name] for name in names[:2]], names[2:]
    words = all(one.dtype.kind == "O" for one in cells)
    # The third column is the value; a fourth, as a rule, says when.
    numbers = all(table.columns[name].dtype.kind == "f" for name in others[:1])
    if len(others) > 2 or not words or not numbers:
        return []
    if not all(_SOME_NAMES <= len(set(one.tolist())) <= n_rows / 2 for one in cells):
        return []
    return [f"if each line is one cell of a matrix, with its row in {names[0]!r} and its column in "
            f"{names[1]!r}, pass --long"]  # fmt: skip


def names_of(fitted: Any) -> str | None:
    """Return which column was asked to name the rows of the file that a model was fitted to."""
    column = getattr(fitted, "_file_options", {}).get("index_col")
    return column if isinstance(column, str) else None


def is_of_table(model: Any) -> bool:
    """Return True for a model of a table, whose columns have names and kinds."""
    return hasattr(getattr(model, "preparation_", None), "names")


def aligned(
    fitted: Any, table: NamedMatrix, known: list[str] | None, columns: bool
) -> tuple[NamedMatrix, np.ndarray | None, list[str]]:
    """Return the input, where a model's names are in it (None: in order), and all other names."""
    takes_table = is_of_table(fitted) and not columns
    if takes_table and known is not None and isinstance(table.values, np.ndarray):
        table = as_named(as_table(table))
    left_out = []
    if isinstance(table.values, TableParts):
        return table, None, left_out
    if isinstance(table.values, Table) and not columns and known is not None:
        given, wanted = table.values.columns, set(known)
        kept = {name: given[name] for name in given if name in wanted}
        left_out = [name for name in given if name not in kept]
        if takes_table:
            return as_named(replace(table.values, columns=kept)), None, left_out
        align(list(kept), known, "columns")
        table = as_matrix(replace(table.values, columns={name: kept[name] for name in known}))
    if isinstance(table.values, Table):
        refuse_table(table.values)
    names = table.row_names if columns else table.column_names
    if left_out or names is None or known is None:
        return table, None, left_out
    places, left_out = align(names, known, "rows" if columns else "columns")
    return table, (None if np.array_equal(places, np.arange(len(names))) else places), left_out


def count_missing(values: Any) -> int:
    """Count the missing entries of a matrix in memory; those of one in its file nobody has seen."""
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
    """Say if a table may list cells, and if one column outweighs others, as units make it."""
    values = table.values
    if isinstance(values, Table):
        return _lists_cells(values)
    normal = getattr(model, "family_", "gaussian") == "gaussian"
    if not isinstance(values, np.ndarray) or not normal or is_of_table(model):
        return []  # columns of a table have scales of their own
    some = values[:: -(-values.size // _ENOUGH)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # columns without any value
        variance = np.nan_to_num(np.nanvar(some / np.nanmax(np.abs(some)), axis=0))
    largest = int(variance.argmax())
    share = variance[largest] / max(variance.sum(), 1e-300)
    if len(variance) < 3 or share < _OVERWHELMING:
        return []
    name = repr(table.column_names[largest]) if table.column_names else str(largest + 1)
    scales = isinstance(model, TransportCoclustering)
    remedy = "pass --scale standard" if scales else "standardise the columns, or omit --method"
    return [
        f"column {name} has {share:.1%} of the variance of all columns, so the others hardly "
        f"matter: if the units differ, {remedy}"
    ]
