"""The folder of results: written beside its place, then moved there, all of it or nothing."""

import csv
import os
import secrets
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import gen_batches

from ccot.io.matrix import Table
from ccot.io.rowwise import cell_text
from ccot.persistence.atomic import NO_ROOM, exchange, locked_folder, sync_folder
from ccot.persistence.checkpoint_files import remove_checkpoint
from ccot.plotting._shared import SIDES, sizes_of
from ccot.sources import TableParts

FILES = "row_labels.csv", "column_labels.csv", "blocks.csv", "model.ccot", "report.html", "run.json"
_PART = 2**20
# What spreadsheets take for a formula at the beginning of a cell.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@contextmanager
def result_folder(out: Path) -> Iterator[Path]:
    """Make a folder to write into, which takes the place of another at the end, all at once."""
    if os.path.lexists(out) and not out.is_dir():
        raise ValueError(f"{out} is not a folder, or is a broken link: pass another --out")
    given, out = out, out.resolve()
    # A mount point, and a folder that the working folder is in: only their files can be replaced.
    fixed = out.is_dir() and (os.path.ismount(out) or Path.cwd().is_relative_to(out))
    nearest = out if fixed else next(folder for folder in out.parents if folder.is_dir())
    with _locked(nearest, out.name):
        _sweep_up(nearest, out)
        staged = nearest / f".{out.name}.{secrets.token_hex(4)}.part"
        staged.mkdir(0o700 if out.is_dir() else 0o777)  # not open to more than the old results
        try:
            yield staged
            with _uninterrupted():
                _sync(staged, out)
                (_replace_files if fixed else _replace_folder)(staged, out)
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            raise OSError(
                f"the disk has no room for the results in {given} ({os.strerror(error.errno)}): "
                "free some space, or pass another --out"
            ) from error
        finally:
            with _uninterrupted():
                shutil.rmtree(staged, ignore_errors=True)


@contextmanager
def _locked(folder: Path, name: str) -> Iterator[None]:
    """Let no other run write to the same place; say who does."""
    try:
        import fcntl
    except ImportError:  # Windows has no such lock.
        yield
        return
    path = folder / f".{name}.lock"
    while True:
        if path.is_symlink():
            raise ValueError(f"{path} is a link, and must be the file of a lock: remove it")
        # What is behind a link, even one that was made just now, is not to be emptied.
        file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666), "r+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            other = file.read(100).strip()
            file.close()
            raise BlockingIOError(
                f"another run is writing to {folder / name} ({other}): wait for it, or pass "
                "another --out"
            ) from None
        # The one before may have removed the file when this process had opened it already.
        if path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat()):
            break
        file.close()
    with file:
        file.truncate(0)
        file.write(f"process {os.getpid()}, since {time.strftime('%H:%M:%S')}")
        file.flush()
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def _sweep_up(folder: Path, out: Path) -> None:
    """Remove what runs that were killed have left; the lock tells that none of them lives."""
    for left in folder.glob(f".{out.name}.{'[0-9a-f]' * 8}.*"):
        if left.suffix == ".old" and not out.exists():
            left.rename(out)
        elif left.suffix in (".old", ".part"):
            shutil.rmtree(left)


def _sync(folder: Path, out: Path) -> None:
    """Bring files to the disk before they take the place of others, open to no more users."""
    for path in folder.iterdir():
        with path.open("r+b") as file:  # Windows brings to the disk only what may be written
            os.fsync(file.fileno())
        with suppress(FileNotFoundError):
            path.chmod(path.stat().st_mode & (out / path.name).stat().st_mode & 0o777)
    sync_folder(folder)


def _replace_folder(staged: Path, out: Path) -> None:
    """Let a folder take the place of another, with whatever the other has beside results."""
    if out.is_dir():
        _link_others(out, staged)
        shutil.copymode(out, staged)
        if not exchange(staged, out):
            old = staged.with_suffix(".old")
            out.rename(old)  # killed here, the next run brings it back
            staged.rename(out)
            shutil.rmtree(old, ignore_errors=True)
    else:
        out.parent.mkdir(parents=True, exist_ok=True)
        staged.rename(out)
    sync_folder(out.parent)


def _link_others(out: Path, staged: Path) -> None:
    """Give a folder what another holds beside results: the same files, not copies."""
    for path in out.iterdir():
        if path.name in FILES:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.copytree(path, staged / path.name, symlinks=True, copy_function=_link)
        else:
            _link(path, staged / path.name)


def _link(source: Any, target: Any) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except (OSError, NotImplementedError):  # not on every file system
        shutil.copy2(source, target, follow_symlinks=False)


def _replace_files(staged: Path, out: Path) -> None:
    new = {path.name for path in staged.iterdir()}
    for name in new:
        os.replace(staged / name, out / name)
    for name in set(FILES) - new:
        (out / name).unlink(missing_ok=True)
    sync_folder(out)


@contextmanager
def checkpoint_beside(out: Path, resume: bool | None, say: Callable[[str], None]) -> Iterator[Path]:
    """Keep the pieces of a fit until its results are written, and say so if they never are."""
    kept = out.parent / f"{Path(os.path.realpath(out)).name}.checkpoint"
    if kept.exists():
        # A fit that is still under way is not to be resumed.
        with locked_folder(kept):
            pass
    if resume is None and kept.exists():
        raise ValueError(
            f"{kept} is from an interrupted fit: pass --resume to continue it, or "
            "--no-resume to start again"
        )
    if resume is False:
        remove_checkpoint(kept)
    if resume:
        say(f"continuing with {kept}" if kept.exists() else f"no {kept}: starting a new fit")
    before = f", and {out} was not changed" if out.exists() else ""
    run = out / "run.json"
    found = run.exists() and run.stat().st_ino
    try:
        yield kept
    except KeyboardInterrupt:
        if (run.exists() and run.stat().st_ino) != found:
            remove_checkpoint(kept)
            raise KeyboardInterrupt(f"the results in {out} are complete") from None
        raise KeyboardInterrupt(f"nothing was written{before}{_way_on(kept)}") from None
    except OSError as error:
        if not kept.exists():
            raise
        raise OSError(f"{error}{_way_on(kept)}") from error
    remove_checkpoint(kept)


def _way_on(kept: Path) -> str:
    if not kept.exists():
        return ""
    return f"; the finished part of the fit is in {kept}: pass --resume to continue it"


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


def harmless(name: Any) -> Any:
    """Return a name that no spreadsheet runs as a formula: a quote is put before it."""
    if not isinstance(name, str) or not name.startswith(_FORMULA):
        return name
    try:
        float(name)
    except ValueError:
        return f"'{name}"
    return name


def write_rows(
    file: Any, header: Sequence[str], rows: Iterable[Sequence[Any]], *, raw_names: bool = False
) -> None:
    """Write a table to an open file; no text in it is a formula, unless names are to be raw."""
    writer = csv.writer(file, lineterminator="\n")
    clean = (lambda name: name) if raw_names else harmless
    writer.writerows([clean(cell) for cell in row] for row in chain([header], rows))


def write_labels(
    path: Path, names: Any, found: Sequence[np.ndarray], more: dict[str, Any], raw_names: bool
) -> None:
    """Write names (or positions), what was found (clusters, confidence), and more columns."""
    n_points = len(found[0])
    given = range(n_points) if names is None else names
    # Part by part: as objects of Python, long labels would take many times their memory.
    rows = (
        (name, label, f"{share:.4f}", *map(cell_text, others))
        for part in gen_batches(n_points, _PART)
        for name, label, share, *others in zip(
            given[part],
            *(column[part].tolist() for column in (*found, *more.values())),
            strict=True,
        )
    )
    with path.open("w", newline="", encoding="utf-8") as file:
        write_rows(file, ("name", "cluster", "confidence", *more), rows, raw_names=raw_names)


def write_blocks(path: Path, model: Any, values: Any) -> None:
    """Write one line a block: its clusters, its size, its mean as read and as prepared."""
    row_sizes, column_sizes = (sizes_of(model, side) for side in SIDES)
    means = model.block_means_
    prepared = getattr(model, "prepared_block_means_", np.full_like(means, np.nan))
    if hasattr(getattr(model, "preparation_", None), "shown_values"):
        means = _means_as_read(model, values)
    rows = (
        (i, j, int(row_sizes[i]), int(column_sizes[j]),
         *("" if np.isnan(one) else float(one) for one in (means[i, j], prepared[i, j])))
        for i, j in np.ndindex(means.shape)
    )  # fmt: skip
    header = "row_cluster", "column_cluster", "rows", "columns", "mean", "prepared_mean"
    with path.open("w", newline="", encoding="utf-8") as file:
        write_rows(file, header, rows)


def _means_as_read(model: Any, values: Any) -> np.ndarray:
    """Return means of a table's blocks; NaN where several columns, or words, have no common one."""
    means, labels = np.full(model.block_means_.shape, np.nan), model.row_labels_
    if isinstance(values, TableParts):
        values, labels = values.sample, labels[values.rows]
    columns, named = model.preparation_.columns, model.preparation_.names
    table = values if isinstance(values, Table) else Table(dict(zip(named, values.T, strict=True)))
    for j in range(model.n_column_clusters_):
        place, *others = np.flatnonzero(model.column_labels_ == j)
        if not others and columns[place].family != "multinomial":
            column = columns[place].shown(table)
            held = np.isfinite(column)
            total = np.bincount(labels[held], column[held], len(means))
            means[:, j] = total / np.maximum(np.bincount(labels[held], minlength=len(means)), 1)
    return means
