"""Where arrays live and in what chunks they travel; the one place that knows PyTorch."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

T = TypeVar("T")

# A chunk of kernels that stays in a CPU's cache; one that keeps a GPU busy.
_CPU_CHUNK_BYTES = 2**21
_GPU_CHUNK_BYTES = 2**32
# Of the free memory of a GPU a chunk takes this part: its squares, temporaries and scalings follow.
_GPU_SHARE = 6


@dataclass(frozen=True)
class Backend:
    """Where the arithmetic happens: NumPy, or PyTorch on some device.

    Attributes
    ----------
    xp : module
        The array library.
    device : str or None
        Device of PyTorch; None for NumPy.
    chunk_bytes : int
        How much a batch of kernels may take.
    """

    xp: Any
    device: str | None
    chunk_bytes: int

    def send(self, array: np.ndarray) -> Any:
        """Bring a NumPy array to the device."""
        return array if self.device is None else self.xp.asarray(array, device=self.device)

    def fetch(self, array: Any) -> np.ndarray:
        """Bring an array back to NumPy."""
        return array if self.device is None else array.cpu().numpy()

    def dtype(self, name: str) -> Any:
        """Return the library's dtype of that name."""
        return getattr(self.xp, name)


def choose_backend(device: str | None) -> Backend:
    """Return the backend for a device.

    Parameters
    ----------
    device : str or None
        None: NumPy. Anything else is a device of PyTorch: ``"cuda"``, ``"cuda:1"``, ``"mps"``,
        ``"cpu"``. Where there is no such device, a warning says so and NumPy does the work.

    Returns
    -------
    Backend
        Array library, device and chunk size.
    """
    if device is None:
        return Backend(np, None, _CPU_CHUNK_BYTES)
    try:
        torch: Any = importlib.import_module("array_api_compat.torch")
    except ImportError as error:
        raise ImportError(
            f"device={device!r} needs PyTorch: pip install 'ccot[gpu]', or leave device=None"
        ) from error
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        first_line = str(error).splitlines()[0]
        warnings.warn(
            f"device={device!r} cannot be used ({first_line}); computing with NumPy instead",
            RuntimeWarning,
            stacklevel=3,
        )
        return choose_backend(None)
    return Backend(torch, str(device), _chunk_bytes(torch, str(device)))


def _chunk_bytes(torch: Any, device: str) -> int:
    if device.startswith("cpu"):
        return _CPU_CHUNK_BYTES
    if device.startswith("cuda"):
        return min(_GPU_CHUNK_BYTES, torch.cuda.mem_get_info(device)[0] // _GPU_SHARE)
    return _GPU_CHUNK_BYTES // _GPU_SHARE


def in_parts_that_fit(work: Callable[[Any], T], items: Any) -> list[T]:
    """Do some work on all items at once, or on parts of them where memory does not suffice.

    Parameters
    ----------
    work : callable
        Takes items.
    items : sequence
        The items; halved, and halved again, down to one at a time.

    Returns
    -------
    list
        What ``work`` returned for each part, in order.

    Examples
    --------
    >>> def add_up(items):
    ...     if len(items) > 2:
    ...         raise MemoryError
    ...     return sum(items)
    >>> in_parts_that_fit(add_up, [1, 2, 3, 4, 5])
    [3, 3, 9]
    """
    try:
        return [work(items)]
    except (MemoryError, RuntimeError) as error:
        if len(items) < 2 or not _is_lack_of_memory(error):
            raise
    # The error is gone by now, and with it the frames that held what did fit.
    half = len(items) // 2
    return [*in_parts_that_fit(work, items[:half]), *in_parts_that_fit(work, items[half:])]


def _is_lack_of_memory(error: Exception) -> bool:
    """Tell so of NumPy's error and of PyTorch's, which has no type of its own on every device."""
    words = "out of memory", "can't allocate memory", "alloc_failed"
    return isinstance(error, MemoryError) or any(word in str(error).lower() for word in words)


def one_blas_thread() -> AbstractContextManager[Any]:
    """Keep matrix products on the calling thread.

    Workers then do not fight for cores, every ``n_jobs`` does the same arithmetic, and the threads
    of BLAS do not go on spinning after a product while others have work to do.
    """
    return _blas().limit(limits=1, user_api="blas")


@cache
def _blas() -> ThreadpoolController:
    # Looking for the libraries takes milliseconds: once is enough.
    return ThreadpoolController()
