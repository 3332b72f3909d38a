"""Parquet tables. Arrow believes what pages say of themselves, and ends the process on some files.

Columns of text are read as references to the texts that a file holds, and sent so: a text that
stands in many rows is sent once for every batch.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as types

from ccot.io.isolated.worker import Answer

_NUMBERS = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
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
    def __init__(self, path: str) -> None:
        about = pq.read_metadata(path)
        groups = [about.row_group(number) for number in range(about.num_row_groups)]
        texts = [
            about.schema.column(place).path
            for place in range(about.num_columns)
            if about.schema.column(place).physical_type == "BYTE_ARRAY"
            and not any(_is_delta(group.column(place)) for group in groups)
        ]
        self._file: Any = pq.ParquetFile(
            path, metadata=about, read_dictionary=texts, buffer_size=_BUFFER
        )
        schema = self._file.schema_arrow
        self.about: dict[str, Any] = {
            "n_rows": about.num_rows,
            "group_rows": [group.num_rows for group in groups],
            "unfolded": sum(group.total_byte_size for group in groups),
            "names": schema.names,
            "types": [_type(kind) for kind in schema.types],
            "kinds": [_kind(kind) for kind in schema.types],
            "index": (schema.pandas_metadata or {}).get("index_columns", []),
        }

    def read(
        self,
        numbers: Sequence[str] = (),
        texts: Sequence[str] = (),
        groups: Sequence[int] | None = None,
    ) -> Iterator[Answer]:
        """Yield batches: a matrix of the numeric columns, and of each text its codes."""
        columns = [*numbers, *texts]
        n_rows = max(_ROWS, _CELLS // len(columns))
        batches = self._file.iter_batches(n_rows, groups, columns, use_threads=False)
        for batch in batches:
            matrix = np.empty((len(batch), len(numbers)))
            for index, name in enumerate(numbers):
                matrix[:, index] = _plain(batch.column(name), "float64", np.nan)
            named = [_coded(batch.column(name)) for name in texts]
            yield {"texts": [known for known, _ in named]}, [matrix, *(codes for _, codes in named)]


def _coded(column: Any) -> tuple[list[str], np.ndarray]:
    """Return the texts of a column, and for each row which of them it is."""
    if not types.is_dictionary(column.type):
        return list(map(str, column.to_pylist())), np.arange(len(column), dtype=np.int32)
    codes = _plain(column.indices, "int64", -1)
    used = np.zeros(len(column.dictionary) + 1, bool)
    used[codes] = True  # the last one: there is none
    known = column.dictionary.take(pa.array(used[:-1].nonzero()[0])).to_pylist()
    return [*map(str, known), "None"], (np.cumsum(used) - 1)[codes].astype(np.int32)


def _plain(column: Any, kind: str, empty: float) -> np.ndarray:
    return column.cast(kind, safe=False).fill_null(empty).to_numpy()


def _is_delta(chunk: Any) -> bool:
    """Tell whether texts are stored by their lengths or beginnings: Arrow has no codes of those."""
    return any(encoding.startswith("DELTA") for encoding in chunk.encodings)


def _kind(kind: Any) -> str:
    if any(test(kind) for test in _NUMBERS):
        return "number"
    nested = types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType)
    return "other" if nested else "text"


def _type(kind: Any) -> str:
    return str(kind.value_type if types.is_dictionary(kind) else kind)[:40]


open_file = _Table
