"""Files that are whole or not there: written under another name, then moved into place."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


@contextmanager
def write_atomically(path: str | os.PathLike[str], mode: str = "wb") -> Iterator[IO]:
    """Open a file for writing that takes its name only when all was written.

    Parameters
    ----------
    path : path-like
        The file; one that is there stays as it is until the new one is complete.
    mode : {"wb", "w"}, default="wb"
        Bytes or UTF-8 text.

    Yields
    ------
    file object
        A file in the same folder.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with write_atomically(Path(folder, "a.txt"), "w") as file:
    ...         _ = file.write("all or nothing")
    ...     Path(folder, "a.txt").read_text()
    'all or nothing'
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    text: dict[str, Any] = {} if "b" in mode else {"encoding": "utf-8", "newline": ""}
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, mode, **text) as file:
            yield file
        # mkstemp makes files for the owner alone; ours are for whom the folder's are.
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
