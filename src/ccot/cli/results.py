"""The folder of results: written beside its place, then moved there, all of it or nothing."""

from __future__ import annotations

import csv
import json
import os
import secrets
import shutil
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import gen_batches

from ccot.io.rowwise import cell_text
from ccot.persistence.atomic import NO_ROOM, locked_folder
from ccot.persistence.checkpoint import remove_checkpoint

FILES = (
    "row_labels.csv",
    "column_labels.csv",
    "blocks.csv",
    "model.ccot",
    "report.html",
    "run.json",
)
_PART = 2**20


@contextmanager
def result_folder(out: Path) -> Iterator[Path]:
    """Make a folder to write into, whose files go to their place at the end.

    Parameters
    ----------
    out : pathlib.Path
        The place; made if it is not there. Earlier results in it are replaced, and other files
        left alone.

    Yields
    ------
    pathlib.Path
        The folder to write into.
    """
    if out.exists() and not out.is_dir():
        raise ValueError(f"{out} is a file: pass another --out")
    nearest = next(folder for folder in out.absolute().parents if folder.is_dir())
    _sweep_up(nearest, out.name)
    staged = nearest / f".{out.name}.{secrets.token_hex(4)}.part"
    try:
        with locked_folder(staged):
            yield staged
        with _uninterrupted():
            out.mkdir(parents=True, exist_ok=True)
            for name in FILES:
                (out / name).unlink(missing_ok=True)
            for path in staged.iterdir():
                os.replace(path, out / path.name)
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        raise OSError(
            f"there is no room for the results in {out} ({os.strerror(error.errno)}): make some, "
            "or pass another --out"
        ) from error
    finally:
        with _uninterrupted():
            shutil.rmtree(staged, ignore_errors=True)


def _sweep_up(folder: Path, name: str) -> None:
    """Remove what processes that were killed have left; those that live hold on to theirs."""
    for left in folder.glob(f".{name}.{'[0-9a-f]' * 8}.part"):
        with suppress(OSError), locked_folder(left):
            shutil.rmtree(left)


@contextmanager
def checkpoint_beside(out: Path, resume: bool | None, say: Callable[[str], None]) -> Iterator[Path]:
    """Keep the pieces of a fit until its results are written, and say so if they never are.

    Parameters
    ----------
    out : pathlib.Path
        The folder of the results.
    resume : bool or None
        Go on with a fit that was interrupted, or begin anew; None: refuse to decide.
    say : callable
        Told which of the two it is, where the fit was to go on.

    Yields
    ------
    pathlib.Path
        The folder of the checkpoint.
    """
    kept = out.parent / f"{out.resolve().name}.checkpoint"
    if resume is None and kept.exists():
        raise ValueError(
            f"{kept} is of a fit that was interrupted: pass --resume to go on with it, or "
            "--no-resume to begin anew"
        )
    if resume is False:
        remove_checkpoint(kept)
    if resume:
        say(f"going on with {kept}" if kept.exists() else f"there is no {kept}: beginning anew")
    before = f", and what was in {out} before is as it was" if out.exists() else ""
    try:
        yield kept
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"nothing was written{before}{_way_on(kept)}") from None
    except OSError as error:
        if not kept.exists():
            raise
        raise OSError(f"{error}{_way_on(kept)}") from error
    remove_checkpoint(kept)


def _way_on(kept: Path) -> str:
    if not kept.exists():
        return ""
    return f"; what was finished of the fit is in {kept}, and --resume goes on with it"


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Take no request to end: moving files takes no time, and half of it is neither old nor new."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {one: signal.signal(one, signal.SIG_IGN) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def write_rows(file: Any, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table to an open file."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)


def _write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        write_rows(file, header, rows)


def write_labels(
    path: Path,
    names: Sequence[str] | None,
    labels: np.ndarray,
    confidence: np.ndarray,
    annotations: Mapping[str, np.ndarray] | None = None,
) -> None:
    """Write names (or positions), clusters and confidence, and columns that annotate them."""
    places: Sequence[Any] = range(len(labels)) if names is None else names
    annotations = annotations or {}
    # Part by part: as objects of Python, long labels would take many times their memory.
    rows = (
        (name, label, f"{share:.4f}", *more)
        for part in gen_batches(len(labels), _PART)
        for name, label, share, *more in zip(
            places[part],
            labels[part].tolist(),
            confidence[part].tolist(),
            *(map(cell_text, column[part].tolist()) for column in annotations.values()),
            strict=True,
        )
    )
    _write_csv(path, ("name", "cluster", "confidence", *annotations), rows)


def write_blocks(path: Path, model: Any) -> None:
    """Write one line a block: its clusters, its size, its mean."""
    row_sizes = _sizes(model.row_labels_, model.n_row_clusters_)
    column_sizes = _sizes(model.column_labels_, model.n_column_clusters_)
    rows = (
        (i, j, int(row_sizes[i]), int(column_sizes[j]), float(mean))
        for (i, j), mean in np.ndenumerate(model.block_means_)
    )
    _write_csv(path, ("row_cluster", "column_cluster", "rows", "columns", "mean"), rows)


def _sizes(labels: np.ndarray, n_clusters: int) -> np.ndarray:
    parts = gen_batches(len(labels), _PART)
    counts = [np.bincount(labels[part], minlength=n_clusters) for part in parts]
    return np.sum(counts, axis=0)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file that people can read."""
    path.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")
