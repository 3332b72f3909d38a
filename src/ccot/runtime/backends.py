"""Array libraries and devices, threads, and the parts in which arrays are processed."""

import importlib
import os
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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

# Size of a chunk of kernels that fits into a CPU's cache; size of one that keeps a GPU busy.
_CPU_CHUNK_BYTES = 2**21
_GPU_CHUNK_BYTES = 2**32
# A chunk takes one of so many parts of a GPU's free memory: temporary arrays need the others.
_GPU_SHARE = 6
# Most chunks of a part of the rows on a CPU; number of equal parts for threads, if each part has at
# least half a chunk: with smaller parts, threads wait for the interpreter lock.
_ROW_CHUNKS, _EVEN_PARTS = 4, 8
# Calls of :meth:`Backend.map` that are running, in all threads.
_AT_WORK: set[object] = set()
# Callers of :func:`one_blas_thread`, and the number of threads that BLAS had before the first one.
_LIMITED, _BEFORE = set[object](), list[Any]()
# Held while threads are started or limited. A forked process would wait for it for ever.
_LOCK = Lock()
if hasattr(os, "register_at_fork"):
    _free = _LOCK.release
    os.register_at_fork(before=_LOCK.acquire, after_in_child=_free, after_in_parent=_free)
# Threads of BLAS whose number belongs to the process; OpenMP has one number for each thread.
_SHARED = ["pthreads", "intel", "gnu", "tbb"]


@dataclass(frozen=True)
class Backend:
    """The library that computes: NumPy (``device`` is None), or PyTorch on a device."""

    xp: Any
    device: str | None
    chunk_bytes: int  # most memory of a batch of kernels
    n_jobs: int = 1  # threads of :meth:`map`

    def map(self, work: Callable[[Any], T], items: Sequence[Any]) -> list[T]:
        """Return ``work(item)`` for every item, in order, computed by ``n_jobs`` threads."""
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
            except BaseException as error:
                deque(left, maxlen=0)  # no thread begins another item
                ended.put(error)
            else:
                ended.put(n_done)

        asked = object()
        try:
            _AT_WORK.add(asked)
            # Calls at the same time share the threads: more threads would only wait for each other.
            n_helpers = min(-(-self.n_jobs // len(_AT_WORK)), len(items)) - 1
            with _LOCK:
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
            answer = None  # an error refers to this frame: together they would stay in memory
        return results

    def by_rows(self, work: Callable[..., Any], *arrays: Any, width: int | None = None) -> Any:
        """Return the joined results of ``work`` on parts of the rows that fit a cache or device."""
        parts, joined, allocating = self._row_parts(arrays, width), [], Lock()
        if len(parts) == 1:
            return work(*arrays)

        def fill(part: slice) -> None:
            made = work(*(array[part] for array in arrays))
            with allocating:  # the first result shows shape and type
                if not joined:
                    shape = (arrays[0].shape[0], *made.shape[1:])
                    joined.append(self.xp.empty(shape, dtype=made.dtype, device=made.device))
            joined[0][part] = made

        self.map(fill, parts)
        return joined[0]

    def sum_by_rows(self, work: Callable[..., Any], *arrays: Any, width: int) -> Any:
        """Return the results of ``work`` on parts of the rows of arrays, summed in order."""
        parts = self._row_parts(arrays, width)
        if len(parts) == 1:
            return work(*arrays)
        return reduce(add, self.map(lambda part: work(*(a[part] for a in arrays)), parts))

    def _row_parts(self, arrays: Sequence[Any], width: int | None) -> list[slice]:
        """Return parts of the rows, with ``width`` values each, that fit a cache or a device."""
        n_rows, row_bytes = arrays[0].shape[0], 8 * width if width else arrays[0][:1].nbytes
        n_chunks = n_rows * row_bytes / self.chunk_bytes
        if n_chunks < 0.5:
            return [slice(0, n_rows)]
        n_parts = n_chunks
        if self.device is None:
            n_parts = max(n_chunks / _ROW_CHUNKS, min(int(2 * n_chunks), _EVEN_PARTS))
        step = max(-(-n_rows // max(ceil(n_parts), 1)), 1)
        return [slice(first, first + step) for first in range(0, max(n_rows, 1), step)]

    def send(self, array: Any) -> Any:
        """Return a NumPy array or CSR matrix on the device; not copied if it is already there."""
        if self.device is None:
            return array
        if sp.issparse(array):
            starts, columns, values = map(self.send, (array.indptr, array.indices, array.data))
            return make_csr(starts, columns, values, array.shape)
        if hasattr(array, "is_sparse_csr"):
            return array.to(self.device)
        if isinstance(array, np.ndarray):
            # PyTorch shares only writeable arrays, and has no negative strides.
            shared = array.flags.writeable and min(array.strides, default=0) >= 0
            array = array if shared else array.copy()
        return self.xp.asarray(array, device=self.device)

    def fetch(self, array: Any) -> np.ndarray:
        """Return an array of this backend as a NumPy array."""
        return array if self.device is None else to_numpy(array)

    def free_bytes(self) -> int | None:
        """Return the free memory of the device; None if it is unknown."""
        if self.device is None or not self.device.startswith("cuda"):
            return None
        cuda = self.xp.cuda
        kept = cuda.memory_reserved(self.device) - cuda.memory_allocated(self.device)
        return cuda.mem_get_info(self.device)[0] + kept


NUMPY = Backend(np, None, _CPU_CHUNK_BYTES)


def namespace(array: Any) -> Any:
    """Return the library of an array, which is looked up once per type."""
    if type(array) not in _LIBRARIES:
        _LIBRARIES[type(array)] = np if isinstance(array, np.ndarray) else array_namespace(array)
    return _LIBRARIES[type(array)]


_LIBRARIES: dict[type, Any] = {}


def to_numpy(array: Any) -> np.ndarray:
    """Return an array of any library as a NumPy array."""
    return array if isinstance(array, np.ndarray) else array.cpu().numpy()


def is_device_csr(X: Any) -> TypeGuard[Any]:
    """Return True if something is a CSR tensor of PyTorch."""
    return bool(getattr(X, "is_sparse_csr", False))


def as_device_csr(X: Any) -> Any | None:
    """Return a CSR matrix of PyTorch or CuPy as a tensor on its device; None for other types."""
    if is_device_csr(X):
        return X
    if not type(X).__module__.startswith("cupyx.scipy.sparse"):
        return None
    torch: Any = importlib.import_module("torch")
    rows = X.tocsr()
    starts, columns, values = map(torch.from_dlpack, (rows.indptr, rows.indices, rows.data))
    return make_csr(starts, columns, values, rows.shape)


def make_csr(starts: Any, columns: Any, values: Any, shape: Any) -> Any:
    """Return the CSR tensor with these parts."""
    torch: Any = importlib.import_module("torch")
    with warnings.catch_warnings():
        # PyTorch warns that its sparse matrices are experimental.
        warnings.simplefilter("ignore", UserWarning)
        return torch.sparse_csr_tensor(starts, columns, values, size=tuple(shape))


def with_values(matrix: Any, values: Any) -> Any:
    """Return a matrix with other values; index arrays are shared."""
    return make_csr(matrix.crow_indices(), matrix.col_indices(), values, matrix.shape)


@cache
def _threads(n_threads: int, process: int) -> SimpleQueue[Callable[[], None]]:
    """Return a queue; its threads call the functions that are put into it."""
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
    """Return NumPy, after a warning at the line that called the package."""
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
    """Return the results of ``work`` on all items at once, or on parts if memory is too small."""
    try:
        return [work(items)]
    except (MemoryError, RuntimeError) as error:
        # On some devices, PyTorch has no own type for this error.
        words = "out of memory", "can't allocate memory", "alloc_failed"
        no_room = isinstance(error, MemoryError) or any(w in str(error).lower() for w in words)
        if len(items) < 2 or not no_room:
            raise
    # Here, outside ``except``, the error no longer holds the frames and arrays of the failed call.
    half = len(items) // 2
    return [*in_parts_that_fit(work, items[:half]), *in_parts_that_fit(work, items[half:])]


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Return a context with one BLAS thread, so that all ``n_jobs`` do the same arithmetic."""
    # OpenBLAS has one number of threads for the whole process. Of several fits at the same time,
    # the first one remembers that number, and the last one restores it.
    asked = object()
    with _LOCK:
        if not _LIMITED:
            _BEFORE.append(_blas().select(threading_layer=_SHARED).limit(limits=1))
        _LIMITED.add(asked)
    try:
        with _blas().limit(limits=1):
            yield
    finally:
        with _LOCK:
            _LIMITED.discard(asked)
            if not _LIMITED:
                with _BEFORE.pop():
                    pass  # leaving the context restores the number


# Looking for the libraries takes milliseconds: once is enough.
_blas = cache(ThreadpoolController)
