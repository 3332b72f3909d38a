"""Arrays that grow at their end and move from memory to a file when they are long."""

from tempfile import SpooledTemporaryFile, gettempdir
from typing import Any

import numpy as np

# Larger arrays are kept in a temporary file. A fit needs much more memory than this anyway.
MEMORY_BYTES = 2**22


class SpilledArray:
    """One array, written piece by piece; beyond ``MEMORY_BYTES``, to a temporary file."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = np.dtype(dtype)
        # Open until close(); without a name, so nothing is left behind if the process is killed.
        self._file = SpooledTemporaryFile(MEMORY_BYTES, prefix="ccot-")  # noqa: SIM115

    def append(self, values: np.ndarray) -> None:
        """Add values at the end."""
        try:
            self._file.write(np.ascontiguousarray(values, self.dtype).data)
            # Only this may report that the disk is full.
            self._file.flush()
        except OSError as error:
            full = f"the disk has no room for the labels in {gettempdir()} ({error.strerror})"
            raise OSError(f"{full}: set TMPDIR to another folder") from error

    def close(self) -> np.ndarray:
        """Return all values; nothing can be added afterwards."""
        with self._file as file:
            if file.tell() > MEMORY_BYTES:
                # "c", copy on write: changes of the array do not reach the file.
                return np.memmap(file, self.dtype, mode="c")
            file.seek(0)
            return np.frombuffer(bytearray(file.read()), self.dtype)
