"""Files that are complete or not there: written under another name, then renamed."""

import ctypes
import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

# Errors of systems if a disk, or a user's share of it, is full.
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def write_atomically(
    path: str | os.PathLike[str], mode: str = "wb", *, private: bool = False
) -> Iterator[IO]:
    """Open a file for writing that gets its name only when it is complete.

    If ``private``, a new file is only for its owner. If a file is replaced, the new one has at most
    the old one's permissions.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: pass the name of a file to write")
    path.parent.mkdir(parents=True, exist_ok=True)
    text: dict[str, Any] = {} if "b" in mode else {"encoding": "utf-8", "newline": ""}
    name = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    # The system applies the umask to the mode; reading the umask would change it.
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    handle = os.open(name, flags, 0o600 if private else 0o666)
    try:
        with os.fdopen(handle, mode, **text) as file:
            yield file
            # Before the file is renamed, so that a power cut leaves the old or the new one.
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileNotFoundError):
            os.chmod(name, name.stat().st_mode & path.stat().st_mode & 0o777)
        os.replace(name, path)
    except BaseException as error:
        name.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            full = f"{path} was not written: the disk has no room ({error.strerror})"
            raise OSError(error.errno, full) from error
        raise
    sync_folder(path.parent)


def write_file(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a whole file atomically, of text or of bytes."""
    with write_atomically(path, "w" if isinstance(content, str) else "wb") as file:
        file.write(content)


@contextmanager
def locked_folder(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Make a folder and lock it while the context is open, so that no other run writes to it."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        import fcntl
    except ImportError:  # Windows has no such lock.
        yield folder
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            remedy = "wait for it, or choose another folder"
            raise BlockingIOError(f"another run is writing to {folder}: {remedy}") from None
        yield folder
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Write the names in a folder to the disk, if the system can."""
    if hasattr(os, "O_DIRECTORY"):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def exchange(first: Path, second: Path) -> bool:
    """Exchange the names of two folders in one step; return False if the system cannot."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):  # not Linux
        return False
    here, swap = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return rename(here, os.fsencode(first), here, os.fsencode(second), swap) == 0
