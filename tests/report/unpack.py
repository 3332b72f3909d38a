"""What the page does with packed arrays, in Python."""

import base64
import zlib

import numpy as np


def unpack_array(packed):
    """Return the array that was packed, flat."""
    dtype = np.dtype(packed["type"])
    planes = np.frombuffer(zlib.decompress(base64.b64decode(packed["bytes"])), dtype=np.uint8)
    return np.ascontiguousarray(planes.reshape(dtype.itemsize, -1).T).view(dtype).ravel()
