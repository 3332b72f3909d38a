"""Arrays that grow at their end and move from memory to a file when they are long."""

import tempfile
from typing import Any

import numpy as np

# Longer columns are kept in a temporary file. Small beside what a fit takes anyway.
MEMORY_BYTES = 2**22


class SpilledArray:
    """One array, written piece by piece; beyond ``MEMORY_BYTES``, to a temporary file."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = np.dtype(dtype)
        self._pieces: list[np.ndarray] = []
        self._held = 0
        self._file: Any = None

    def append(self, values: np.ndarray) -> None:
        """Add values at the end."""
        self._pieces.append(np.asarray(values, self.dtype))
        self._held += self._pieces[-1].nbytes
        if self._held > MEMORY_BYTES:
            self._spill()

    def close(self) -> np.ndarray:
        """Return all values; nothing can be added afterwards."""
        if self._file is None:
            return np.concatenate([np.empty(0, self.dtype), *self._pieces])
        self._spill()
        # "c": whoever writes to the array changes their own copy of that page.
        array = np.memmap(self._file, self.dtype, mode="c")
        self._file.close()
        return array

    def _spill(self) -> None:
        # The file has no name, so nothing is left behind even if the process is killed.
        self._file = self._file or tempfile.TemporaryFile(prefix="ccot-")  # noqa: SIM115
        try:
            for piece in self._pieces:
                self._file.write(np.ascontiguousarray(piece).data)
            # A full disk may show only now.
            self._file.flush()
        except OSError as error:
            full = f"the labels do not fit into {tempfile.gettempdir()} ({error.strerror})"
            raise OSError(f"{full}: set TMPDIR to a folder with more room") from error
        self._pieces, self._held = [], 0
