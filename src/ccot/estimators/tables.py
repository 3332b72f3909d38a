"""What an estimator was given: a matrix of numbers, or a table of columns of several kinds."""

import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ccot.blocks.columns import NUMBER_KINDS, number_text, read_column, read_levels, recognise
from ccot.blocks.preparation import differ_in_unit
from ccot.blocks.streaming import pool_size
from ccot.blocks.table_problem import TablePlacement
from ccot.blocks.tables import TablePreparation, prepare_table
from ccot.describe import TOP, Column, Portrait, portray_sides
from ccot.estimators.base import LARGE, InductiveCoclustering, as_numbers, check_shape
from ccot.io.anndata import from_anndata
from ccot.io.frames import has_times, is_frame, table_from_frame
from ccot.io.layout import ReadOptions
from ccot.io.matrix import InputError, Table
from ccot.io.read import read_parts
from ccot.persistence.digest import digest
from ccot.runtime.backends import as_device_csr
from ccot.runtime.device_csr import to_scipy
from ccot.runtime.types import Matrix
from ccot.sources import TableParts, as_source, is_source

# A frame of numbers with more columns than this is a matrix; kinds are not recognised.
_MOST_COLUMNS = 100
_FRAMES_TO_BE = {"collect": "collect", "map_partitions": "compute", "column_names": "to_pandas"}
# Two levels of which the second says that a row has what the column is called by.
_HAS = ({"0", "1"}, {"no", "yes"}, {"n", "y"}, {"false", "true"}, {"f", "t"})


@dataclass(frozen=True)
class TableData:
    """A table and how its columns are prepared."""

    table: Table  # all rows, or a sample
    preparation: TablePreparation
    parts: TableParts | None = None  # all rows, where they are not held

    def digest(self) -> str:
        """Return a checksum of names and values, as a checkpoint needs it."""
        columns = self.table.columns
        arrays = (one.astype(str) if one.dtype == object else one for one in columns.values())
        return " ".join([*columns, *map(digest, arrays)])


def as_table(X: Any) -> Table | None:
    """Return a table or a data frame as a table; None for anything else."""
    if isinstance(X, Table):
        return X
    # Lazy frames of polars, frames of Dask and tables of Arrow, told by what only they have.
    for mark, method in _FRAMES_TO_BE.items():
        X = getattr(X, method)() if hasattr(X, mark) else X
    return table_from_frame(X) if is_frame(X) else None


def _is_plain_frame(X: Any) -> bool:
    """Return False where a table has other names or numbers, or has to be read before."""
    held = not any(hasattr(X, mark) for mark in _FRAMES_TO_BE) and is_frame(X)
    return held and len(set(X.columns)) == len(X.columns) and not has_times(X)


def unpack_anndata(X: Any) -> tuple[Any, list[str] | None, list[str] | None]:
    """Return the matrix of annotated data with the names of columns and rows; else X as it is."""
    if not (hasattr(X, "obs_names") and hasattr(X, "var_names")):
        return X, None, None
    values = X.X if is_source(X.X) or as_device_csr(X.X) is not None else from_anndata(X).values
    return values, list(X.var_names), list(X.obs_names)


def as_parts(X: Any, column_kinds: dict[str, str] | None) -> TableParts | None:
    """Return a table that is read in parts; None for a matrix, and for what is held."""
    if isinstance(X, TableParts) or not isinstance(X, str | os.PathLike):
        return X if isinstance(X, TableParts) else None
    path, kinds = Path(X), column_kinds or {}
    if not path.is_file() or path.suffix == ".npy":
        return None
    if path.suffix in (".parquet", ".pq") and not kinds:
        with suppress(InputError):  # words
            as_source(path)
            return None
    words = [name for name, kind in kinds.items() if kind not in NUMBER_KINDS]
    # Whether a column of words names the rows is only known when all of them are read.
    options = ReadOptions(index_col=False, as_words=words, tables=True)
    return TableParts(partial(read_parts, path, options))


def identifiers(table: Table, preparation: TablePreparation) -> list[str] | None:
    """Return the cells of the first column of unique words, which name the rows."""
    for column in preparation.columns:
        values = table.columns[column.kind.name]
        if column.kind.kind == "identifier" and values.dtype == object:
            return ["" if cell is None else cell for cell in values]
    return None


def fitted_columns(table: Table, names: Any) -> np.ndarray:
    """Return the columns of new rows that a matrix was fitted to, in its order."""
    names = list(table.columns) if names is None else names
    if missing := [name for name in names if name not in table.columns]:
        problem = f"{len(missing)} of the fitted columns are missing, the first one {missing[0]!r}"
        raise ValueError(problem)
    return np.column_stack([table.columns[name] for name in names])


def numbers_beside_names(table: Table, column_kinds: dict[str, str] | None) -> Table | None:
    """Return a table of numbers without the first column, which names its rows; None if not so."""
    first = next(iter(table.columns), "")
    if table.kinds.get(first) != "identifier" or first in (column_kinds or {}):
        return None
    names = table.columns[first]
    cells = [number_text(one) if names.dtype.kind == "f" else one for one in names.tolist()]
    numbers = {name: one for name, one in table.columns.items() if name != first}
    rest = replace(table, columns=numbers, row_names=["" if c is None else str(c) for c in cells])
    return None if rest.words() or len(numbers) < 2 else rest


def named_columns(X: Any, names: Any = None) -> Table:
    """Return a matrix as a table; columns without names are called by their positions."""
    names = [f"x{index}" for index in range(X.shape[1])] if names is None else names
    return Table({str(name): X[:, index] for index, name in enumerate(names)})


def match_columns(table: Table, preparation: TablePreparation) -> Table:
    """Return new rows of a table; warn of columns and cells that count as missing."""
    used = [preparation.names[position] for position in preparation.used]
    missing = [name for name in used if name not in table.columns]
    if len(missing) == len(used):
        raise ValueError(f"X has none of the fitted columns: {', '.join(used[:10])}")
    if missing:
        problem = f"{len(missing)} of {len(used)} fitted columns are not in X and count as missing"
        warnings.warn(f"{problem}: {', '.join(missing[:10])}", stacklevel=4)
    warn_unread(preparation.unread(table))
    return table


def as_fitted_table(X: Any, preparation: TablePreparation, n_rows: int) -> TableData:
    """Return the fitted table, which is given again to be described or shown."""
    names = preparation.names
    table = as_table(X) or Table(dict(zip(names, as_numbers(X).T, strict=False)))
    if missing := [name for name in names if name not in table.columns]:
        raise ValueError(f"X lacks fitted columns: {', '.join(missing[:10])}")
    if table.shape[0] != n_rows:
        raise ValueError(f"X has {table.shape[0]} rows, but {n_rows} were fitted")
    return TableData(replace(table, columns={n: table.columns[n] for n in names}), preparation)


def numbers_shown(model: Any, matrix: Any) -> tuple[Any, bool]:
    """Return the matrix, or the numbers that stand for a table's words, and whether it was one."""
    preparation = getattr(model, "preparation_", None)
    if isinstance(preparation, TablePreparation) and (table := as_table(matrix)) is not None:
        return preparation.shown_values(table), True
    return matrix, False


def warn_unread(unread: Mapping[str, int]) -> None:
    """Warn of cells that count as missing because they cannot be read as fitted ones, by column."""
    if shown := [f"{count} of {name!r}" for name, count in unread.items() if count]:
        problem = "unknown categories or formats count as missing values"
        warnings.warn(f"{problem}: {', '.join(shown[:10])}", stacklevel=5)


def described_cells(data: TableData) -> tuple[np.ndarray, list[Column], np.ndarray]:
    """Return numbers and levels of a table as one matrix, its columns, and where they are from."""
    parts, columns, origin = [], [], []
    pairs = zip(data.preparation.columns, data.table.columns.values(), strict=True)
    for position, (prepared, values) in enumerate(pairs):
        kind = prepared.kind
        if prepared.family == "multinomial":
            codes = read_levels(values, kind)[:, None].astype(np.float64)
            has = {level.lower() for level in kind.levels} in _HAS
            cells = np.where(codes < 0, np.nan, codes == np.arange(len(kind.levels))[has:])
            levels = [Column(kind.name, "level", level) for level in kind.levels]
            columns += [Column(kind.name, "binary")] if has else levels
        elif prepared.family != "none":
            cells = read_column(values, kind)[:, None]
            date = "rank" if kind.format == "plain" else "date"  # numbers may be said to be dates
            unit = {"ordered": "rank", "date": date}.get(kind.kind, "number")
            columns.append(Column(kind.name, unit))
        else:
            continue
        parts.append(cells)
        origin += [position] * cells.shape[1]
    return np.hstack(parts), columns, np.array(origin)


@dataclass(kw_only=True, eq=False, repr=False)
class TableInput(InductiveCoclustering):
    """Base of estimators that take tables of mixed columns beside matrices of numbers."""

    family: str = "auto"
    scale: str = "auto"
    center: str = "auto"
    column_kinds: dict[str, str] | None = None
    heteroscedastic: bool = False

    def _check_rows(self, X: Any) -> Matrix | TableData:
        """Return a matrix, or a table where columns differ in unit or kind."""
        X, column_names, row_names = unpack_anndata(X)
        if column_names is not None and is_source(X):
            rows = self._check_source(X)
            self._name(column_names, row_names)
            return rows
        on_device = as_device_csr(X)
        if on_device is not None:
            self._name(column_names, row_names)
            return self._check_device(on_device)
        table = as_table(X)
        X = X if table is None or _is_plain_frame(X) else table
        if isinstance(X, Table):
            column_names, row_names = list(X.columns), X.row_names
        numbers = None if table is None else numbers_beside_names(table, self.column_kinds)
        if table is not None and table.words() and numbers is None:
            self._name(list(table.columns), table.row_names)
            return self._check_table(table, "columns are of different kinds")
        if numbers is not None:
            X, column_names, row_names = numbers, list(numbers.columns), numbers.row_names
        checked = self._check_matrix(fitted_columns(X, None) if isinstance(X, Table) else X)
        self._name(column_names, row_names)
        if not (why := self._why_table(checked, numbers or table)):
            return checked
        if numbers is not None and table is not None:
            self._name(list(table.columns), None)
        given = table or named_columns(self._as_given(checked))
        self.__dict__.pop("_unit", None)  # tables divide each column by its own
        return self._check_table(given, why)

    def _check_device(self, X: Any) -> Any:
        """Return a matrix on a device, or in memory what cannot be fitted there."""
        values = X.values()
        plain = bool(values.isfinite().all()) and 0 < float(values.abs().max()) < LARGE
        if not plain or getattr(self, "checkpoint", None) is not None:
            return self._check_matrix(to_scipy(X))
        check_shape(*X.shape)
        self._check_numbers(*X.shape)
        self.n_features_in_ = X.shape[1]
        return X

    def _check_source(self, X: Any) -> Any:
        """Return rows to be read in parts; few rows as any matrix or table in memory."""
        if (table := as_parts(X, self.column_kinds)) is not None:
            return self._check_parts(table)
        source = super()._check_source(X)
        names = source.column_names
        if pool_size(source) == source.shape[0]:
            rows = source.rows(np.arange(source.shape[0]))
            return self._check_rows(rows if names is None else named_columns(rows, names))
        if not self._why_table(source.read(source.parts[0]), None):
            return source

        def parts() -> Iterator[Table]:
            return (named_columns(source.read(part), names) for part in source.parts)

        return self._check_parts(TableParts(parts))

    def _check_parts(self, parts: TableParts) -> Any:
        """Return a table of which a sample is held; few rows as any matrix or table in memory."""
        for note in parts.sample.notes[1:]:
            warnings.warn(note, stacklevel=5)
        checked = self._check_rows(parts.sample)
        if parts.shape[0] == parts.sample.shape[0]:
            return checked
        if not isinstance(checked, TableData):
            remedy = "store the table as .npy or Parquet, which can be read row by row"
            raise ValueError(f"all columns are numbers in the same unit: {remedy}")
        self.__dict__.pop("row_names_in_", None)  # of the sample
        return replace(checked, parts=parts)

    def _why_table(self, X: Matrix, table: Table | None) -> str:
        """Return why a matrix is to be taken for a table of unlike columns; "" if it is not."""
        if self.family != "auto" or self.heteroscedastic:
            return ""
        if self.column_kinds:
            return "kinds of columns are given"
        if not isinstance(X, np.ndarray):
            return ""
        if self.scale != "none" and differ_in_unit(X):
            return "columns have different units"
        if table is not None and X.shape[1] <= _MOST_COLUMNS:
            kinds = {kind.kind for kind in recognise(table) if kind.is_used}
            if len(kinds) > 1 and kinds & {"yes/no", "category", "ordered", "date"}:
                return "columns are of different kinds"
        return ""

    def _check_table(self, table: Table, why: str) -> TableData:
        """Return a table with its preparation, or say what is wrong with it and what to do."""
        n_rows, n_columns = table.shape
        check_shape(n_rows, n_columns)
        given = table.columns.items()
        if wrong := [name for name, x in given if x.dtype.kind == "f" and np.isinf(x).any()]:
            raise ValueError(f"column {wrong[0]!r} contains infinity: replace it, e.g. by NaN")
        preparation = prepare_table(table, self.column_kinds, self.scale, self.center, why)
        self._check_numbers(n_rows, len(preparation.used))
        self.n_features_in_ = n_columns
        if not hasattr(self, "row_names_in_"):
            self._name(None, identifiers(table, preparation))
        return TableData(table, preparation)

    def _name(self, columns: Any, rows: Any) -> None:
        """Keep the names of columns and rows, where there are any."""
        if columns is not None:
            self.feature_names_in_ = np.array([str(name) for name in columns], dtype=object)
        if rows is not None:
            self.row_names_in_ = np.array([str(name) for name in rows], dtype=object)

    def _describe_given(self, X: Any, columns: Any) -> Any:
        preparation = getattr(self, "preparation_", None)
        if isinstance(preparation, TablePreparation) and columns is None:
            return self._describe_fitted(as_fitted_table(X, preparation, len(self.row_labels_)))
        return super()._describe_given(X, columns)

    def _describe_fitted(self, matrix: Any) -> Any:
        """Return what sets the clusters apart; a table is described by its levels and numbers."""
        if not isinstance(matrix, TableData):
            return super()._describe_fitted(matrix)
        values, columns, origin = described_cells(matrix)
        labels, confidence = self.column_labels_[origin], self.column_confidence_[origin]
        row_labels, row_names = self.row_labels_, self._row_names()
        if matrix.parts is not None:
            held = matrix.parts.rows
            row_labels, row_names = row_labels[held], [f"row {row}" for row in held]
        rows, others = portray_sides(values, row_labels, labels, columns, row_names, confidence)
        sizes = np.bincount(self.row_labels_).tolist()
        rows = tuple(replace(one, size=size) for one, size in zip(rows, sizes, strict=True))
        # Whole columns belong to a cluster, not their levels, which in every row add up to one.
        names = np.array(matrix.preparation.names)
        order = np.argsort(-self.column_confidence_, kind="stable")
        leveled = {k for k, column in zip(labels, columns, strict=True) if column.kind == "level"}
        members = [names[order[self.column_labels_[order] == k]] for k in range(len(others))]
        traits = [() if k in leveled else other.traits for k, other in enumerate(others)]
        described = (
            Portrait(len(own), "", each, tuple(own[:TOP].tolist()))
            for own, each in zip(members, traits, strict=True)
        )
        return rows, tuple(described)

    def _say(self, what: str, X: Any) -> np.ndarray:
        """Return what the placement of rows says of new ones; what is not held is read in parts."""
        check_is_fitted(self)
        matrix = X.X if hasattr(X, "obs_names") else None
        say, is_table = super()._say, isinstance(self._coclustering.row.placement, TablePlacement)
        table = as_parts(X, self.column_kinds) if is_table else None
        parts = [matrix if is_source(matrix) else X] if table is None else table.parts()
        return np.concatenate([say(what, part) for part in parts])

    def _check_new_rows(self, X: Any) -> Any:
        """Return new rows with the fitted columns: a matrix, or a table if one was fitted."""
        X, names, _ = unpack_anndata(X)
        on_device = as_device_csr(X)
        X = X if on_device is None else to_scipy(on_device)
        table = as_table(X)
        placement = self._coclustering.row.placement
        if not isinstance(placement, TablePlacement):
            more = table is not None and len(table.columns) > self.n_features_in_
            if table is not None and (more or not _is_plain_frame(X)):
                X = fitted_columns(table, names := getattr(self, "feature_names_in_", None))
            with warnings.catch_warnings():
                # Scikit-learn sees names in data frames only.
                if names is not None:
                    warnings.filterwarnings("ignore", "X does not have valid feature names")
                return super()._check_new_rows(X)
        if table is None:
            table = named_columns(super()._check_new_rows(X), placement.preparation.names)
        return match_columns(table, placement.preparation)
