"""What is fuzzed: one target a reader, with the errors that it may raise.

A target gets bytes. It returns, or raises one of its documented errors; anything else is a finding.
"""

from __future__ import annotations

import asyncio
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
from ccot.io import InputError, ModelFileError, read_matrix
from ccot.recommend import BlockRecommender, load_recommender
from ccot.sources import as_source
from fuzz import mutate, seeds

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
    seconds : int
        A reader that takes longer hangs.
    """

    read: Callable[[Path], Any]
    name: str
    errors: tuple[type[Exception], ...]
    seeds: Callable[[], list[bytes]]
    mutators: Sequence[mutate.Mutator] = ()
    seconds: int = 10


def read_text(path: Path) -> None:
    """Read a table as found, and as told."""
    _each(lambda: read_matrix(path), lambda: read_matrix(path, **_LINES))


def read_long(path: Path) -> None:
    """Read a list of cells in its three ways."""
    _each(
        lambda: read_matrix(path, long=True),
        lambda: read_matrix(path, long=True, unlisted="missing"),
        lambda: read_matrix(path, long=[0, 1]),
    )


def read_parquet(path: Path) -> None:
    """Read a table, and the same as a list of cells."""
    _each(lambda: read_matrix(path), lambda: read_matrix(path, long=True))


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
_ARCHIVE = (mutate.archive, mutate.archive_json, mutate.archive_layout)
TARGETS = {
    "model": Target(load_model, "a.ccot", (ModelFileError,), seeds.models, _ARCHIVE),
    "recommender": Target(
        load_recommender, "a.ccot", (ModelFileError,), seeds.recommenders, _ARCHIVE
    ),
    "text": Target(read_text, "a.csv", _INPUT, seeds.tables, (mutate.lines,)),
    "long": Target(read_long, "a.tsv", _INPUT, seeds.long_tables, (mutate.lines,)),
    "gzip": Target(read_text, "a.csv.gz", _INPUT, seeds.gzipped, (mutate.gzipped,)),
    "npy": Target(read_matrix, "a.npy", _INPUT, seeds.arrays, (mutate.array_header,)),
    "npz": Target(read_matrix, "a.npz", _INPUT, seeds.archives, _ARCHIVE),
    "mtx": Target(read_matrix, "a.mtx", _INPUT, seeds.markets, (mutate.lines,)),
    "mtx-gzip": Target(read_matrix, "a.mtx.gz", _INPUT, seeds.gzipped_markets, (mutate.gzipped,)),
    "parquet": Target(read_parquet, "a.parquet", _INPUT, seeds.parquets, (mutate.footer,)),
    "h5ad": Target(read_matrix, "a.h5ad", _INPUT, seeds.anndatas, (mutate.words,), 60),
    "stdin": Target(read_stdin, "a", _INPUT, seeds.anything, (mutate.archive, mutate.lines)),
    "rows-npy": Target(read_rows, "a.npy", (ValueError,), seeds.arrays, (mutate.array_header,)),
    "rows-parquet": Target(read_rows, "a.parquet", (ValueError,), seeds.parquets, (mutate.footer,)),
    "zarr": Target(read_zarr, "a", (ValueError,), seeds.zarr_arrays, (mutate.parts,), 60),
    "service": Target(ask_service, "a.json", (), seeds.requests, (mutate.json_text,)),
}
