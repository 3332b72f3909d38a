"""Excel files. openpyxl keeps every element of XML that it meets, whatever it is."""

import re
import zipfile
from collections.abc import Iterator
from typing import Any

import openpyxl

from ccot.io.isolated.worker import Answer, Refusal
from ccot.io.rowwise import cell_text

# Rows of a sheet, cells that are sent at once, and formulas that no program has computed.
_SHEET_ROWS, _CELLS = 1 << 20, 1 << 16
_NOT_COMPUTED = re.compile(rb"(</f>|<f[^<>]*/>)\s*(<v\s*/>|<v>\s*</v>|</c>)")


class _Book:
    def __init__(self, path: str) -> None:
        self._path = path
        self._book: Any = openpyxl.load_workbook(path, read_only=True, data_only=True)
        self.about: dict[str, Any] = {"sheets": [one.title for one in self._book.worksheets]}

    def read(self, sheet: str) -> Iterator[Answer]:
        found = self._book[sheet]
        with zipfile.ZipFile(self._path) as archive:
            n_open = len(_NOT_COMPUTED.findall(archive.read(found._worksheet_path.lstrip("/"))))
        if n_open:
            remedy = "open the file in a spreadsheet program and save it, or save the sheet as CSV"
            raise Refusal(f"{n_open} formulas have no stored values: {remedy}")
        found.reset_dimensions()
        rows: list[list[str]] = []
        for number, values in enumerate(found.iter_rows(values_only=True)):
            if number == _SHEET_ROWS:
                raise ValueError("it has more rows than a sheet can have")
            row = list(map(cell_text, values))
            while row and not row[-1]:
                row.pop()
            rows += [row] if row else []
            if len(rows) * len(row) > _CELLS:
                yield {"rows": rows}, []
                rows = []
        yield {"rows": rows}, []


open_file = _Book
