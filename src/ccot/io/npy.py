"""Headers of arrays of NumPy, which must promise exactly what follows them."""

from __future__ import annotations

import math
from typing import IO

import numpy as np

_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def read_header(stream: IO[bytes], size: int) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Read the header of an array, and compare it with the room that the array has.

    Parameters
    ----------
    stream : binary file
        At its beginning; read up to the first value.
    size : int
        Bytes in the stream.

    Returns
    -------
    shape : tuple of int
        Of the array.
    fortran : bool
        Whether columns are stored one after the other.
    dtype : dtype
        Of its values.

    Raises
    ------
    ValueError
        If the values take more or fewer bytes than there are.

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
    shape, fortran, dtype = _HEADERS[version](stream)
    if any(length < 0 for length in shape):
        raise ValueError(f"an array of shape {shape} cannot be")
    if math.prod(shape) * dtype.itemsize != size - stream.tell():
        raise ValueError("an array is longer or shorter than it says")
    return shape, fortran, dtype
