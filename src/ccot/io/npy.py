"""Arrays of NumPy, whose headers may not promise more than follows them."""

from __future__ import annotations

import math
from io import BytesIO
from pathlib import Path
from typing import IO

import numpy as np

# How many bytes tell the length of a header, and who reads it.
_HEADERS = {
    (1, 0): (2, np.lib.format.read_array_header_1_0),
    (2, 0): (4, np.lib.format.read_array_header_2_0),
}


def map_array(path: Path) -> np.memmap:
    """Map a file that holds an array."""
    with path.open("rb") as file:
        read_header(file, path.stat().st_size)
    return np.load(path, mmap_mode="r", allow_pickle=False)


def read_header(stream: IO[bytes], size: int) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Read the header of an array, and compare it with the room that the array has.

    Examples
    --------
    >>> from io import BytesIO
    >>> file = BytesIO()
    >>> np.save(file, np.eye(2))
    >>> size = file.tell()
    >>> _ = file.seek(0)
    >>> read_header(file, size)
    ((2, 2), False, dtype('float64'))
    """
    version = np.lib.format.read_magic(stream)
    if version not in _HEADERS:
        raise ValueError(f"an array of version {version} is not known")
    n_digits, reader = _HEADERS[version]
    digits = stream.read(n_digits)
    length = int.from_bytes(digits, "little")
    left = size - len(np.lib.format.MAGIC_PREFIX) - len(version) - n_digits - length
    if left < 0:
        raise ValueError("an array's header is longer than the file")
    shape, fortran, dtype = reader(BytesIO(digits + stream.read(length)))
    if any(axis < 0 for axis in shape):
        raise ValueError(f"an array of shape {shape} cannot be")
    if math.prod(shape) * dtype.itemsize > left:
        raise ValueError("an array is shorter than it says")
    return shape, fortran, dtype
