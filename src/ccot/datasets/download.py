"""Downloads: resumed after interruptions, checked, and moved into place when complete."""

import hashlib
import os
import time
import warnings
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from ccot.persistence.atomic import NO_ROOM

# Status codes after which another attempt may succeed; other errors of the server are final.
_PASSING = {408, 425, 429, 500, 502, 503, 504}
_BEYOND_THE_END = 416


def download(
    url: str, path: Path, *, md5: str, n_tries: int = 5, delay: float = 1.0, timeout: float = 30.0
) -> Path:
    """Download a file unless it is there already, as it should be."""
    if path.exists():
        with suppress(OSError):
            if _md5(path) == md5:
                return path
        warnings.warn(f"{path} is damaged and will be downloaded again", UserWarning, stacklevel=2)
    path.parent.mkdir(parents=True, exist_ok=True)
    # What has arrived is kept here, and only the rest is asked for next time.
    part = path.with_name(f"{path.name}.part")
    reason = ""
    for attempt in range(n_tries):
        if attempt:
            time.sleep(delay * 2 ** (attempt - 1))
        reason = _fetch_rest(url, part, timeout)
        if not reason:
            if (found := _md5(part)) == md5:
                os.replace(part, path)
                return path
            part.unlink()
            reason = f"the checksum of the download is {found}, not {md5}"
    raise OSError(
        f"could not download {url} in {n_tries} tries, the last time because {reason}. Try again "
        f"later (the part downloaded so far is kept), or put the file at {path} yourself"
    )


def _fetch_rest(url: str, part: Path, timeout: float) -> str:
    """Append the missing bytes to ``part``; return why some are missing still, "" if none are."""
    have = part.stat().st_size if part.exists() else 0
    request = Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        with urlopen(request, timeout=timeout) as answer:
            if answer.status != 206:  # the server sends everything from the start
                have = 0
            length = answer.headers.get("Content-Length")
            with part.open("ab" if have else "wb") as file:
                while chunk := answer.read1(1 << 16):  # what is there, not a full chunk
                    file.write(chunk)
                arrived = file.tell()
    except HTTPError as error:
        if error.code == _BEYOND_THE_END:
            # Either the file is complete or it is another file; the checksum decides.
            return ""
        if error.code not in _PASSING:
            raise OSError(f"{url} answers {error.code} {error.reason}") from error
        return f"the server answered {error.code} {error.reason}"
    except (OSError, HTTPException) as error:
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            raise OSError(
                error.errno,
                f"the disk has no room for {part} ({error.strerror}): free some space, or choose "
                "another folder; the part downloaded so far is kept",
            ) from error
        return f"the connection failed ({error})"
    if length is not None and arrived < have + int(length):
        return f"the connection broke after {arrived} of {have + int(length)} bytes"
    return ""


def _md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "md5").hexdigest()
