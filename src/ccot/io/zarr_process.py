"""The rows of a Zarr array, handed out by a process of its own.

Zarr unpacks whatever a chunk holds before it looks how much that is. So :mod:`ccot.io.zarr_folder`
runs this file as a program whose memory and time are limited. It is asked for rows by lines of
JSON, and answers by a line of JSON and the numbers. It imports nothing of this package, to start
at once.
"""

from __future__ import annotations

import json
import runpy
import sys
import threading
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import zarr

_LIMITS = runpy.run_path(str(Path(__file__).with_name("resource_limits.py")))


def main(path: str) -> int:
    """Open the array, then answer until nobody asks."""
    threading.stack_size(1 << 20)
    numcodecs.blosc.use_threads = False
    taken = _LIMITS["memory_taken"]()
    array: Any = None
    for line in sys.stdin.buffer:
        question = json.loads(line)
        _LIMITS["limit_time"](question["seconds"])
        _LIMITS["limit_memory"](taken, question["memory"])
        try:
            if array is None:
                array = zarr.open(path, mode="r")
                _answer(_about(array))
            else:
                first, last = question["rows"]
                rows = np.ascontiguousarray(array[first:last])
                _answer({"shape": rows.shape, "dtype": rows.dtype.str}, rows)
        except MemoryError:
            _answer({"damaged": "it unfolds to far more than it says, which may be a trap"})
        except Exception as error:  # a damaged array raises whatever its reader stumbles over
            reason = " ".join(str(error).split())[:120] or type(error).__name__
            _answer({"damaged": reason})
    return 0


def _about(array: Any) -> dict[str, Any]:
    if not hasattr(array, "shape"):
        return {"group": True}
    return {"shape": array.shape, "chunks": array.chunks, "dtype": np.dtype(array.dtype).str}


def _answer(about: dict[str, Any], rows: np.ndarray | None = None) -> None:
    sys.stdout.buffer.write(json.dumps(about).encode() + b"\n")
    if rows is not None:
        sys.stdout.buffer.write(rows.data)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
