"""The process that reads: it imports nothing of the package but the readers.

A reader's ``open_file`` returns what has ``about``, a dict, and ``read``, which yields answers.
"""

import json
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, BinaryIO

import numpy as np

from ccot.io.isolated import limits

# A message and the arrays that go with it.
Answer = tuple[dict[str, Any], Sequence[np.ndarray]]
# Numbers that are sent at once.
BLOCK = 1 << 18


class Refusal(Exception):
    """A file that is whole and not read; the message says what to do."""


def main(kind: str, parent: str) -> None:
    """Answer until nobody asks."""
    # Nothing that a library prints may get between the answers.
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    threading.stack_size(1 << 20)
    limits.end_with_parent(int(parent))
    open_file = import_module(f"ccot.io.isolated.{kind}").open_file
    taken = limits.memory_taken()
    reader: Any = None
    for line in sys.stdin.buffer:
        question = json.loads(line)
        limits.limit(question.pop("seconds"), taken, question.pop("memory"))
        try:
            if "path" in question:
                reader = open_file(**question)
                _send(out, reader.about)
            else:
                for message, arrays in reader.read(**question):
                    _send(out, message, arrays)
                _send(out, {"end": True})
        except Refusal as refusal:
            _send(out, {"refused": str(refusal)})
        except MemoryError:
            _send(out, {"damaged": "it unpacks to far more than it says, so it may be malicious"})
        except Exception as error:  # a damaged file raises whatever its reader comes across
            _send(out, {"damaged": " ".join(str(error).split())[:120] or type(error).__name__})


def blocks_of(values: Any, step: int = BLOCK) -> Iterator[np.ndarray]:
    """Yield a long array in parts."""
    for first in range(0, len(values), step):
        yield values[first : first + step]


def _send(out: BinaryIO, message: dict[str, Any], arrays: Sequence[np.ndarray] = ()) -> None:
    arrays = [np.ascontiguousarray(array) for array in arrays]
    described = [[array.dtype.str, array.shape] for array in arrays]
    out.write(json.dumps({**message, "arrays": described}).encode() + b"\n")
    for array in arrays:
        out.write(array.reshape(-1).view(np.uint8).data)
    out.flush()
