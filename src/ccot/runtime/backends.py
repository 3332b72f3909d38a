"""Where arrays live and in what chunks they travel; with ``device_csr``, what knows PyTorch."""

import importlib
import os
import sys
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cache, reduce
from math import ceil
from operator import add
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, TypeGuard, TypeVar

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace
from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

T = TypeVar("T")

# A chunk of kernels that stays in a CPU's cache; one that keeps a GPU busy.
_CPU_CHUNK_BYTES = 2**21
_GPU_CHUNK_BYTES = 2**32
# Of the free memory of a GPU a chunk takes this part: its squares, temporaries and scalings follow.
_GPU_SHARE = 6
# Chunks that a part of the rows may take on a CPU, and equal parts that threads share out where
# each has half a chunk or more: small parts keep many threads waiting for the interpreter.
_ROW_CHUNKS, _EVEN_PARTS = 4, 8
# The calls of :meth:`Backend.map` that are being worked on, of all threads.
_AT_WORK: set[object] = set()


@dataclass(frozen=True)
class Backend:
    """Where the arithmetic happens: NumPy (``device`` is None), or PyTorch on some device."""

    xp: Any
    device: str | None
    chunk_bytes: int  # what a batch of kernels may take
    n_jobs: int = 1  # threads of :meth:`map`

    def map(self, work: Callable[[Any], T], items: Sequence[Any]) -> list[T]:
        """Do some work on every item, on several threads where there are; results in order."""
        if min(self.n_jobs, len(items)) < 2:
            return [work(item) for item in items]
        results: list[Any] = [None] * len(items)
        left, ended = iter(range(len(items))), SimpleQueue()

        def take_turns() -> None:
            n_done = 0
            try:
                for index in left:
                    results[index] = work(items[index])
                    n_done += 1
                ended.put(n_done)
            except BaseException as error:
                deque(left, maxlen=0)  # nobody begins another item
                ended.put(error)

        asked = object()
        _AT_WORK.add(asked)
        try:
            # Calls at the same time share the threads: more threads would only wait for each other.
            n_helpers = min(-(-self.n_jobs // len(_AT_WORK)), len(items)) - 1
            threads = _threads(self.n_jobs - 1, os.getpid())
            for _ in range(n_helpers):
                threads.put(take_turns)
            take_turns()
            # Threads that have not begun by now are not waited for: they find nothing left to do.
            n_left = len(items)
            while n_left:
                answer = ended.get()
                if isinstance(answer, BaseException):
                    raise answer
                n_left -= answer
        finally:
            _AT_WORK.discard(asked)
        return results

    def by_rows(self, work: Callable[..., Any], *arrays: Any, width: int | None = None) -> Any:
        """Do some work on parts of the rows of arrays that fit a cache or a device; joined."""
        parts, joined, allocating = self._row_parts(arrays, width), [], Lock()
        if len(parts) == 1:
            return work(*arrays)

        def fill(part: slice) -> None:
            made = work(*(array[part] for array in arrays))
            with allocating:  # by whoever is first to know what is made
                if not joined:
                    shape = (arrays[0].shape[0], *made.shape[1:])
                    joined.append(self.xp.empty(shape, dtype=made.dtype, device=made.device))
            joined[0][part] = made

        self.map(fill, parts)
        return joined[0]

    def sum_by_rows(self, work: Callable[..., Any], *arrays: Any, width: int) -> Any:
        """Do some work on parts of the rows of arrays; summed, in their order."""
        parts = self._row_parts(arrays, width)
        return reduce(add, self.map(lambda part: work(*(a[part] for a in arrays)), parts))

    def _row_parts(self, arrays: Sequence[Any], width: int | None) -> list[slice]:
        """Cut the rows of arrays, of ``width`` values each, into parts that fit."""
        n_rows, row_bytes = arrays[0].shape[0], 8 * width if width else arrays[0][:1].nbytes
        n_chunks = n_rows * row_bytes / self.chunk_bytes
        n_parts = n_chunks
        if self.device is None:
            n_parts = max(n_chunks / _ROW_CHUNKS, min(int(2 * n_chunks), _EVEN_PARTS))
        step = max(-(-n_rows // max(ceil(n_parts), 1)), 1)
        return [slice(first, first + step) for first in range(0, max(n_rows, 1), step)]

    def send(self, array: Any) -> Any:
        """Bring a NumPy array or a CSR matrix to the device; what is there already stays."""
        if self.device is None:
            return array
        if sp.issparse(array):
            starts, columns, values = map(self.send, (array.indptr, array.indices, array.data))
            return make_csr(starts, columns, values, array.shape)
        if hasattr(array, "is_sparse_csr"):
            return array.to(self.device)
        if isinstance(array, np.ndarray):
            # PyTorch wants to write to what it shares, and cannot go backwards through it.
            shared = array.flags.writeable and min(array.strides, default=0) >= 0
            array = array if shared else array.copy()
        return self.xp.asarray(array, device=self.device)

    def fetch(self, array: Any) -> np.ndarray:
        """Bring an array back to NumPy."""
        return array if self.device is None else to_numpy(array)

    def free_bytes(self) -> int | None:
        """Return how much more the device can hold; None where it does not say."""
        if self.device is None or not self.device.startswith("cuda"):
            return None
        cuda = self.xp.cuda
        kept = cuda.memory_reserved(self.device) - cuda.memory_allocated(self.device)
        return cuda.mem_get_info(self.device)[0] + kept


NUMPY = Backend(np, None, _CPU_CHUNK_BYTES)


def namespace(array: Any) -> Any:
    """Return the library of an array, which is looked for once for every type."""
    if type(array) not in _LIBRARIES:
        _LIBRARIES[type(array)] = np if isinstance(array, np.ndarray) else array_namespace(array)
    return _LIBRARIES[type(array)]


_LIBRARIES: dict[type, Any] = {}


def to_numpy(array: Any) -> np.ndarray:
    """Bring an array of any library to NumPy."""
    return array if isinstance(array, np.ndarray) else array.cpu().numpy()


def is_device_csr(X: Any) -> TypeGuard[Any]:
    """Tell whether something is a CSR tensor of PyTorch."""
    return bool(getattr(X, "is_sparse_csr", False))


def as_device_csr(X: Any) -> Any | None:
    """Return a CSR matrix of PyTorch or CuPy as a tensor where it is; None for anything else."""
    if is_device_csr(X):
        return X
    if not type(X).__module__.startswith("cupyx.scipy.sparse"):
        return None
    torch: Any = importlib.import_module("torch")
    rows = X.tocsr()
    starts, columns, values = map(torch.from_dlpack, (rows.indptr, rows.indices, rows.data))
    return make_csr(starts, columns, values, rows.shape)


def make_csr(starts: Any, columns: Any, values: Any, shape: Any) -> Any:
    """Return a CSR tensor of its parts."""
    torch: Any = importlib.import_module("torch")
    with warnings.catch_warnings():
        # PyTorch warns that its sparse matrices are experimental.
        warnings.simplefilter("ignore", UserWarning)
        return torch.sparse_csr_tensor(starts, columns, values, size=tuple(shape))


def with_values(matrix: Any, values: Any) -> Any:
    """Return a matrix with other values in the same places, which are shared."""
    return make_csr(matrix.crow_indices(), matrix.col_indices(), values, matrix.shape)


@cache
def _threads(n_threads: int, process: int) -> SimpleQueue[Callable[[], None]]:
    """Return the queue of threads that do whatever is put there."""
    # An executor needs ten times as long to hand out work, and parts of work are short.
    queue: SimpleQueue[Callable[[], None]] = SimpleQueue()

    def do_work() -> None:
        while True:
            queue.get()()

    for _ in range(n_threads):
        Thread(target=do_work, daemon=True).start()
    return queue


def choose_backend(
    device: str | None, dtype: str = "float32", n_jobs: int | None = None
) -> Backend:
    """Return the backend for a device."""
    if device is None:
        return replace(NUMPY, n_jobs=effective_n_jobs(n_jobs))
    try:
        torch: Any = importlib.import_module("array_api_compat.torch")
    except ImportError as error:
        raise ImportError(
            f"device={device!r} needs PyTorch: pip install 'ccot[gpu]', or leave device=None"
        ) from error
    try:
        torch.zeros(1, device=device, dtype=getattr(torch, dtype))
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:
        return fall_back(f"device={device!r} cannot be used ({str(error).splitlines()[0]})")
    return Backend(torch, str(device), _chunk_bytes(torch, str(device)))


def fall_back(reason: str) -> Backend:
    """Warn the line that called into the package, and return NumPy."""
    frame, level = sys._getframe(), 1
    while frame.f_back and f"{frame.f_globals.get('__name__')}.".startswith("ccot."):
        frame, level = frame.f_back, level + 1
    warnings.warn(f"{reason}; computing with NumPy instead", RuntimeWarning, stacklevel=level)
    return NUMPY


def _chunk_bytes(torch: Any, device: str) -> int:
    if device.startswith("cpu"):
        return _CPU_CHUNK_BYTES
    if device.startswith("cuda"):
        return min(_GPU_CHUNK_BYTES, torch.cuda.mem_get_info(device)[0] // _GPU_SHARE)
    return _GPU_CHUNK_BYTES // _GPU_SHARE


def in_parts_that_fit(work: Callable[[Any], T], items: Any) -> list[T]:
    """Do some work on all items at once, or on parts of them where memory does not suffice."""
    try:
        return [work(items)]
    except (MemoryError, RuntimeError) as error:
        # PyTorch's error has no type of its own on every device.
        words = "out of memory", "can't allocate memory", "alloc_failed"
        no_room = isinstance(error, MemoryError) or any(w in str(error).lower() for w in words)
        if len(items) < 2 or not no_room:
            raise
    # The error is gone by now, and with it the frames that held what did fit.
    half = len(items) // 2
    return [*in_parts_that_fit(work, items[:half]), *in_parts_that_fit(work, items[half:])]


def one_blas_thread() -> AbstractContextManager[Any]:
    """Keep products and K-means on the calling thread: all ``n_jobs`` do the same arithmetic."""
    return _blas().limit(limits=1)


# Looking for the libraries takes milliseconds: once is enough.
_blas = cache(ThreadpoolController)
