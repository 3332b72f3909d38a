"""Which code guides the search: its branches are counted.

Functions are instrumented where they are, after everything is imported: an instrumented import of
all that the library loads would take most of a minute. Compiled readers are not counted.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from types import FunctionType, ModuleType

from atheris.instrument_bytecode import instrument_func

_FOLLOWED = (
    "anndata._io", "ccot.estimators.models", "ccot.io", "ccot.recommend", "ccot.sources", "gzip",
    "ccot.persistence", "numpy.lib._format_impl", "numpy.lib._npyio_impl", "openpyxl.reader",
    "openpyxl.worksheet._reader", "pyarrow.parquet.core",
    "scipy.sparse._matrix_io", "scipy.sparse._compressed",
    "scipy.sparse._coo", "zipfile",
)  # fmt: skip


def follow() -> None:
    """Count the branches of every reader, ours and those that we call."""
    for name in _FOLLOWED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for name, module in list(sys.modules.items()):
        if any(f"{name}.".startswith(f"{followed}.") for followed in _FOLLOWED):
            _instrument(module)


def _instrument(module: ModuleType) -> None:
    for holder in (module, *(one for one in vars(module).values() if isinstance(one, type))):
        for found in list(vars(holder).values()):
            function = getattr(found, "__func__", found)
            if isinstance(function, FunctionType) and function.__module__ == module.__name__:
                instrument_func(function)
