"""Parquet and Feather tables. Arrow believes what files say, and ends the process on some."""

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as types

from ccot.io.isolated.worker import Answer

_NUMBERS = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
Names = Sequence[str]
# Cells that are read at once, and rows at least.
_CELLS, _ROWS = 1 << 18, 1024
# Bytes of a column that are read from the file at once.
_BUFFER = 1 << 16


class _NoPandas:
    """Arrow would load pandas to make arrays, which takes longer than to read most files."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name=name)


sys.meta_path.insert(0, _NoPandas)  # type: ignore[arg-type]


class _Table:
    """What both formats have in common; ``names_rows`` tells whether the first column does so."""

    def __init__(
        self, schema: Any, kinds: list[str], plain: Any, names_rows: bool, **more: Any
    ) -> None:
        kept = (schema.pandas_metadata or {}).get("index_columns", [])
        index = schema.names[0] if names_rows else None
        if len(kept) == 1 and kept[0] in schema.names:
            index = kept[0]
        shown = [str(kind)[:40] for kind in plain]
        self.about = {"names": schema.names, "kinds": kinds, "types": shown, "index": index, **more}

    _batches: Callable[..., Iterator[Any]]

    def read(
        self, numbers: Names = (), texts: Names = (), dates: Names = (), groups: Any = None
    ) -> Iterator[Answer]:
        """Yield batches: a matrix of the numeric columns, codes of texts, microseconds of dates."""
        columns = [*numbers, *texts, *dates]
        for batch in self._batches(columns, max(_ROWS, _CELLS // len(columns)), groups):
            matrix = np.empty((len(batch), len(numbers)))
            for index, name in enumerate(numbers):
                matrix[:, index] = _plain(batch.column(name), "float64", np.nan)
            named = [_coded(batch.column(name)) for name in texts]
            moments = [_moments(batch.column(name)) for name in dates]
            codes = [codes for _, codes in named]
            yield {"texts": [known for known, _ in named]}, [matrix, *codes, *moments]


class _Parquet(_Table):
    def __init__(self, path: str) -> None:
        about = pq.read_metadata(path)
        groups = [about.row_group(number) for number in range(about.num_row_groups)]
        texts = [
            about.schema.column(place).path
            for place in range(about.num_columns)
            if about.schema.column(place).physical_type == "BYTE_ARRAY"
            # Arrow has no codes of texts that are stored by their lengths or beginnings.
            and not any("DELTA" in str(group.column(place).encodings) for group in groups)
        ]
        options = {"read_dictionary": texts, "buffer_size": _BUFFER}
        self._file: Any = pq.ParquetFile(path, metadata=about, **options)
        schema = self._file.schema_arrow
        kinds = [_kind(kind) for kind in schema.types]
        plain = [kind.value_type if types.is_dictionary(kind) else kind for kind in schema.types]
        unfolded = sum(group.total_byte_size for group in groups)
        rows = {"n_rows": about.num_rows, "group_rows": [group.num_rows for group in groups]}
        names_rows = kinds[:1] not in ([], ["number"])
        super().__init__(schema, kinds, plain, names_rows, unfolded=unfolded, levels={}, **rows)

    def _batches(self, columns: list[str], n_rows: int, groups: Any) -> Iterator[Any]:
        return self._file.iter_batches(n_rows, groups, columns, use_threads=False)


class _Feather(_Table):
    def __init__(self, path: str) -> None:
        self._path = path
        schema, group_rows, unfolded = self._open().schema, [], 0
        levels: dict[str, list[str]] = {}
        for batch in self._stored():
            batch.validate(full=True)
            group_rows.append(len(batch))
            unfolded += batch.nbytes
            levels = levels or {
                name: column.dictionary.to_pylist()
                for name, column in zip(schema.names, batch.columns, strict=True)
                if getattr(column.type, "ordered", False)
            }
        kinds = [_feather_kind(kind) for kind in schema.types]
        names_rows = kinds[:1] == ["text"] and _is_text(schema.types[0])
        more = {"n_rows": sum(group_rows), "group_rows": group_rows, "unfolded": unfolded}
        super().__init__(schema, kinds, schema.types, names_rows, levels=levels, **more)

    def _open(self, columns: Sequence[int] | None = None) -> Any:
        options = pa.ipc.IpcReadOptions(included_fields=columns, use_threads=False)
        return pa.ipc.open_file(pa.memory_map(self._path), options=options)

    def _stored(self, columns: Sequence[int] | None = None) -> Iterator[Any]:
        file = self._open(columns)
        return map(file.get_batch, range(file.num_record_batches))

    def _batches(self, columns: list[str], n_rows: int, groups: Any) -> Iterator[Any]:
        for batch in self._stored([self.about["names"].index(name) for name in columns]):
            yield from (batch.slice(first, n_rows) for first in range(0, len(batch), n_rows))


def open_file(path: str) -> _Table:
    """Open a file of either format."""
    with open(path, "rb") as file:
        return _Feather(path) if file.read(6) == b"ARROW1" else _Parquet(path)


def _coded(column: Any) -> tuple[list[str | None], np.ndarray]:
    """Return the texts of a column, and for each row which of them it is."""
    if not types.is_dictionary(column.type):
        return _texts(column), np.arange(len(column), dtype=np.int32)
    codes = _plain(column.indices, "int64", -1)
    used = np.zeros(len(column.dictionary) + 1, bool)
    used[codes] = True  # the last one: there is none
    known = column.dictionary.take(pa.array(used[:-1].nonzero()[0]))
    return [*_texts(known), None], (np.cumsum(used) - 1)[codes].astype(np.int32)


def _texts(column: Any) -> list[str | None]:
    return [None if value is None else str(value) for value in column.to_pylist()]


def _plain(column: Any, kind: str, empty: float) -> np.ndarray:
    return column.cast(kind, safe=False).fill_null(empty).to_numpy(zero_copy_only=False)


def _moments(column: Any) -> np.ndarray:
    """Return microseconds since 1970, of UTC; the lowest number is a gap, as in NumPy."""
    moments = column.cast(pa.timestamp("us"), safe=False)
    return _plain(moments, "int64", np.iinfo(np.int64).min)


def _kind(kind: Any) -> str:
    if any(test(kind) for test in _NUMBERS):
        return "number"
    if types.is_timestamp(kind) or types.is_date(kind):
        return "date"
    nested = types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType)
    return "other" if nested else "text"


def _feather_kind(kind: Any) -> str:
    """Tell categories too, which the types of these files declare; no bytes are cells."""
    if types.is_dictionary(kind) and _is_text(kind.value_type):
        return "ordered" if kind.ordered else "category"
    cells = types.is_temporal(kind) or _is_text(kind) or _kind(kind) == "number"
    return _kind(kind) if cells else "other"


def _is_text(kind: Any) -> bool:
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
