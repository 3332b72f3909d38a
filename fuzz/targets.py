"""What is fuzzed: one target a reader, with the errors that it may raise.

A target gets bytes. It returns, or raises one of its documented errors; anything else is a finding.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import hashlib
import io
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from ccot.estimators.models import load_model
from ccot.io import InputError, ModelFileError, read_matrix, read_table
from ccot.recommend import BlockRecommender, load_recommender
from ccot.sources import as_source
from fuzz import mutate, seeds

_SOURCE = Path(__file__).parents[1] / "src" / "ccot"
_LINES = {"delimiter": ";", "decimal": ",", "header": False, "index_col": False}


@dataclass(frozen=True)
class Target:
    """A reader under attack.

    Attributes
    ----------
    read : callable
        Takes the path of a file with the bytes in it.
    name : str
        Name of that file.
    errors : tuple of exception types
        Those that the reader documents.
    seeds : callable
        Returns valid inputs to start from.
    mutators : sequence of callables
        Structure-aware changes, tried beside those of the engine.
    code : sequence of str
        Files that it reads with, below the package.
    seconds : int
        A reader that takes more processor time hangs.
    """

    read: Callable[[Path], Any]
    name: str
    errors: tuple[type[Exception], ...]
    seeds: Callable[[], list[bytes]]
    mutators: Sequence[mutate.Mutator] = ()
    code: Sequence[str] = ()
    seconds: int = 30


def code_of(target: Target) -> str:
    """Return a digest of the code that a target reads with, without comments and docstrings."""
    found = hashlib.sha256()
    for path in sorted({path for name in target.code for path in _SOURCE.glob(name)}):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
                value = body[0].value
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    del body[0]
        found.update(ast.dump(tree).encode())
    return found.hexdigest()[:12]


def read_model(path: Path) -> None:
    """Load a model; one that is accepted must place rows and columns, or say why it does not."""
    model = load_model(path)
    n_columns = model.n_features_in_
    for ask, width in (("predict", n_columns), ("predict_columns", len(model.row_labels_))):
        if hasattr(model, ask):
            with contextlib.suppress(ValueError):
                getattr(model, ask)(np.ones((2, width)))


def load_and_ask(path: Path) -> None:
    """Load a recommender; one that is accepted must answer, or say why it does not."""
    model = load_recommender(path)
    with contextlib.suppress(ValueError):
        model.recommend(0)
    with contextlib.suppress(ValueError):
        model.explain(0, 0)


def read_text(path: Path) -> None:
    """Read a table as found, as told, and with its words."""
    _each(
        lambda: read_matrix(path),
        lambda: read_matrix(path, **_LINES),
        lambda: read_table(path),
    )


def read_long(path: Path) -> None:
    """Read a list of cells in its three ways."""
    _each(
        lambda: read_matrix(path, long=True),
        lambda: read_matrix(path, long=True, unlisted="missing"),
        lambda: read_matrix(path, long=[0, 1]),
    )


def read_parquet(path: Path) -> None:
    """Read a table as numbers, as a list of cells, and with its words."""
    _each(
        lambda: read_matrix(path),
        lambda: read_matrix(path, long=True),
        lambda: read_table(path),
    )


def read_stdin(path: Path) -> None:
    """Read whatever it is from the standard input."""
    given = sys.stdin
    with path.open("rb", buffering=0) as raw:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(raw))
        try:
            read_matrix("-")
        finally:
            sys.stdin = given


def read_rows(path: Path) -> None:
    """Read a file row by row, as fits of large matrices do."""
    source = as_source(path)
    for part in source.parts:
        source.read(part)
    source.rows(np.array([0, source.shape[0] - 1]))


def read_zarr(path: Path) -> None:
    """Read a Zarr array whose files are put one behind the other."""
    folder = path.with_name("folder.zarr")
    contents = mutate.parted(path.read_bytes())
    for name, content in zip_longest(seeds.ZARR_FILES, contents[: len(seeds.ZARR_FILES)]):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        if content:
            file.write_bytes(content)
    read_rows(folder)


def _each(*reads: Callable[[], Any]) -> None:
    """Make every attempt; the last refusal stands for all."""
    refusal = None
    for read in reads:
        try:
            read()
        except InputError as error:
            refusal = error
    if refusal is not None:
        raise refusal


class ServiceError(AssertionError):
    """An answer that the service does not document."""


def ask_service(path: Path) -> None:
    """Send the bytes to every route; each must be answered, and never by a failure."""
    app, loop = _service()
    body = path.read_bytes()
    for route in ("/label", "/recommend", "/explain"):
        status, answer = loop.run_until_complete(_post(app, route, body))
        if status not in (200, 400, 404, 413, 422):
            raise ServiceError(f"{route} answered {status}")
        json.loads(answer)


@cache
def _service() -> tuple[Any, asyncio.AbstractEventLoop]:
    from ccot.recommend.service import make_app

    taste = np.array([[5, 1], [1, 5]])[np.arange(12) % 2][:, np.arange(8) % 2]
    return make_app(BlockRecommender(random_state=0).fit(taste)), asyncio.new_event_loop()


async def _post(app: Any, route: str, body: bytes) -> tuple[int, bytes]:
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST",
        "scheme": "http", "path": route, "raw_path": route.encode(), "query_string": b"",
        "root_path": "", "headers": [(b"content-type", b"application/json")],
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80), "state": {},
    }  # fmt: skip
    messages: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        messages.append(message)

    await app(scope, receive, send)
    return messages[0]["status"], b"".join(one.get("body", b"") for one in messages[1:])


_INPUT = (InputError,)
_ROWS = (ValueError,)
_MODEL = (ModelFileError,)
_ARCHIVE = (mutate.archive, mutate.archive_json, mutate.archive_layout)
# Files whose functions run when a target reads; those of other formats do not count.
_READ = ("io/read.py", "io/matrix.py")
_TEXT = (*_READ, "io/text.py", "io/layout.py", "io/cells.py", "io/mixed.py")
_ROWWISE = (*_TEXT, "io/long.py", "io/rowwise.py")
_PLAIN = (*_READ, "io/binary.py")
_OTHER = tuple(f"io/isolated/{name}.py" for name in ("client", "limits", "worker"))
_ARROW = ("io/matrix.py", "io/binary.py", "io/layout.py", "io/cells.py", *_OTHER, "io/parquet.py",
          "io/isolated/parquet.py")  # fmt: skip
_ARROW_TABLE = (*_ARROW, "io/read.py", "io/long.py", "io/mixed.py")
_KEPT = ("io/binary.py", "io/matrix.py", "persistence/model_*.py", "persistence/registry.py",
         "estimators/models.py")  # fmt: skip
_BY_ROWS = ("io/matrix.py", "io/binary.py", "sources/__init__.py", "sources/base.py",
            "sources/files.py")  # fmt: skip
_RATINGS = tuple(f"recommend/{name}.py" for name in ("names", "ratings", "recommender"))
_SERVICE = tuple(f"recommend/{name}.py" for name in ("guards", "messages", "service", "values"))
TARGETS = {
    "model": Target(read_model, "a.ccot", _MODEL, seeds.models, _ARCHIVE, _KEPT),
    "recommender": Target(
        load_and_ask, "a.ccot", _MODEL, seeds.recommenders, _ARCHIVE,
        (*_KEPT, *_RATINGS, "recommend/persist.py"),
    ),
    "text": Target(read_text, "a.csv", _INPUT, seeds.tables, (mutate.lines,), _TEXT),
    "long": Target(
        read_long, "a.tsv", _INPUT, seeds.long_tables, (mutate.lines,), (*_TEXT, "io/long.py")
    ),
    "gzip": Target(
        read_text, "a.csv.gz", _INPUT, seeds.gzipped, (mutate.gzipped,),
        (*_TEXT, *_PLAIN, "io/isolated/limits.py"),
    ),
    "xlsx": Target(
        read_parquet, "a.xlsx", _INPUT, seeds.workbooks, (mutate.archive, mutate.archive_layout),
        (*_ROWWISE, "io/binary.py", *_OTHER, "io/isolated/excel.py"),
    ),
    "json": Target(
        read_parquet, "a.json", _INPUT, seeds.records, (mutate.json_text, mutate.lines),
        _ROWWISE,
    ),
    "sqlite": Target(
        read_parquet, "a.sqlite", _INPUT, seeds.databases, (mutate.words,),
        (*_ROWWISE, "io/binary.py"),
    ),
    "npy": Target(read_matrix, "a.npy", _INPUT, seeds.arrays, (mutate.array_header,), _PLAIN),
    "npz": Target(read_matrix, "a.npz", _INPUT, seeds.archives, _ARCHIVE, _PLAIN),
    "mtx": Target(
        read_matrix, "a.mtx", _INPUT, seeds.markets, (mutate.lines,),
        (*_PLAIN, *_OTHER, "io/isolated/market.py"),
    ),
    "mtx-gzip": Target(
        read_matrix, "a.mtx.gz", _INPUT, seeds.gzipped_markets, (mutate.gzipped,),
        (*_PLAIN, *_OTHER, "io/isolated/market.py"),
    ),
    "parquet": Target(
        read_parquet, "a.parquet", _INPUT, seeds.parquets, (mutate.footer,), _ARROW_TABLE
    ),
    "feather": Target(
        read_parquet, "a.feather", _INPUT, seeds.feathers, (mutate.words,), _ARROW_TABLE
    ),
    "h5ad": Target(
        read_matrix, "a.h5ad", _INPUT, seeds.anndatas, (mutate.words,),
        (*_PLAIN, *_OTHER, "io/isolated/h5ad.py"), 60,
    ),
    "stdin": Target(
        read_stdin, "a", _INPUT, seeds.anything, (mutate.archive, mutate.lines),
        (*_TEXT, *_PLAIN, *_OTHER),
    ),
    "rows-npy": Target(
        read_rows, "a.npy", _ROWS, seeds.arrays, (mutate.array_header,), _BY_ROWS
    ),
    "rows-parquet": Target(
        read_rows, "a.parquet", _ROWS, seeds.parquets, (mutate.footer,), (*_ARROW, *_BY_ROWS)
    ),
    "zarr": Target(
        read_zarr, "a", _ROWS, seeds.zarr_arrays, (mutate.parts,),
        (*_BY_ROWS, *_OTHER, "io/isolated/zarr.py"), 60,
    ),
    "service": Target(
        ask_service, "a.json", (), seeds.requests, (mutate.json_text,), (*_RATINGS, *_SERVICE)
    ),
}  # fmt: skip
