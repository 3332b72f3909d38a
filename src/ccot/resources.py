"""What a fit will take, before it is started.

Products of matrices and entries gone over one by one are counted from the shape; how long either
takes is measured on the spot. Numbers of iterations are taken to be what simulated blocks need.
"""

import math
from dataclasses import dataclass
from functools import cache
from timeit import repeat

import numpy as np
from joblib import effective_n_jobs

from ccot.blocks import streaming
from ccot.runtime.backends import one_blas_thread
from ccot.runtime.memory import free_bytes
from ccot.runtime.spilled import MEMORY_BYTES
from ccot.scalings.ccot import AUTO_CEILING, AUTO_FLOOR
from ccot.scalings.kernels import bytes_needed, rank_of
from ccot.scalings.large import pool_size
from ccot.sources.base import PART_CELLS

METHODS = ("ccot", "ccot-gw", "transport")
# Labels, confidence and scalings: what is more than this is kept in files.
_ANSWER = 4 * MEMORY_BYTES


@dataclass(frozen=True)
class Estimate:
    """Expected memory and time of a fit, with advice if there is too little memory.

    Memory includes the matrix, unless it is read row by row, but not Python and its libraries.
    Seconds are for this machine, without reading from disk; half or twice as much is usual, ten
    times as much is possible.
    """

    memory_bytes: int
    seconds: float
    advice: str

    def __str__(self) -> str:
        line = f"about {_readable_bytes(self.memory_bytes)} and {_readable_time(self.seconds)}"
        return f"{line}; {self.advice}" if self.advice else line


def estimate_resources(
    shape: tuple[int, int],
    nnz: int | None = None,
    method: str = "transport",
    *,
    n_samplings: int | str = "auto",
    n_support: int | None = None,
    kernel_rank: int | str | None = "auto",
    exact_refinement: bool = True,
    n_jobs: int | None = None,
    out_of_core: bool = False,
) -> Estimate:
    """Estimate memory and time of a fit.

    Parameters
    ----------
    shape : tuple of int
        Numbers of rows and columns.
    nnz : int, optional
        Entries that a sparse matrix stores; None: the matrix is dense.
    method : {"ccot", "ccot-gw", "transport"}, default="transport"
        Which estimator.
    n_samplings, n_support, kernel_rank, exact_refinement, n_jobs
        Parameters of the estimators.
    out_of_core : bool, default=False
        The matrix is read row by row, with the default ``max_passes``.

    Returns
    -------
    Estimate
        ``memory_bytes``, ``seconds`` and ``advice``.

    Examples
    --------
    >>> from ccot import estimate_resources
    >>> estimate_resources((10**8, 100), method="ccot").memory_bytes > 80e9
    True
    >>> estimate_resources((10**8, 100), method="ccot", out_of_core=True).memory_bytes < 1e9
    True
    """
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}: choose one of {', '.join(METHODS)}")
    if min(shape) < 1:
        raise ValueError(f"shape={shape} must be two positive numbers")
    stored = 8 * math.prod(shape) if nnz is None else 12 * nnz + 4 * shape[0]
    if method == "ccot":
        memory, seconds, advice = _ccot(shape, nnz, n_samplings, effective_n_jobs(n_jobs))
    elif method == "ccot-gw":
        rank = rank_of(kernel_rank, n_support, shape)
        memory, seconds, advice = _ccot_gw(shape, n_support, rank, exact_refinement)
    else:
        memory, seconds, advice = _transport(shape, nnz, out_of_core)
    memory += 0 if out_of_core else stored
    free = free_bytes()
    if free is not None and memory > free:
        by_rows = "pass the path of the file, which is then read row by row"
        way_out = "fit some of the rows" if out_of_core else by_rows
        way_out = "pass n_support=100" if method == "ccot-gw" else way_out
        advice = f"only {_readable_bytes(free)} are free: {way_out}"
    return Estimate(int(memory), float(seconds), advice)


_Cost = tuple[float, float, str]


def _ccot(shape: tuple[int, int], nnz: int | None, n_samplings: int | str, n_jobs: int) -> _Cost:
    n_rows, size = max(shape), min(shape)
    pool = pool_size((n_rows, size), n_samplings)
    auto = n_samplings == "auto"
    n_draws = AUTO_FLOOR * math.ceil(pool / size) if auto else int(n_samplings)
    product_rate, entry_rate = measure_machine()
    a_draw = 5e-5 + 4 * size**3 / product_rate + 8 * size**2 / entry_rate
    a_row = 4 * size**2 / product_rate + 24 * size / entry_rate
    # The rows that vote, as they are and in single precision; their partitions; two chunks of
    # draws for each thread.
    voters = pool * size if nnz is None else 2 * nnz * pool // n_rows
    memory = 12 * voters + 48 * n_draws * size + min(16 * n_rows, _ANSWER)
    memory += n_jobs * (2**22 + 16 * size**2)
    most = AUTO_CEILING // AUTO_FLOOR
    hard = f"up to {most} times as long if draws disagree: n_samplings limits their number"
    return memory, (n_draws * a_draw + n_rows * a_row) / n_jobs, hard if auto else ""


def _ccot_gw(
    shape: tuple[int, int], n_support: int | None, rank: int | None, exact_refinement: bool
) -> _Cost:
    support = n_support or shape[0]
    product_rate, entry_rate = measure_machine()
    ranks = [size if rank is None else min(size, rank) for size in shape]
    sides = list(zip(shape, ranks, strict=True))
    products = sum(2 * n * k * (support + shape[1]) + 2 * k * support**2 for n, k in sides)
    cells = support * sum(shape)
    passes = 3200 if exact_refinement else 200
    seconds = 0.01 + 10 * products / product_rate + passes * cells / entry_rate
    # Without exact refinement most of it is in single precision; Python 3.14 takes more.
    return (1.0 if exact_refinement else 0.75) * bytes_needed(shape, n_support, rank), seconds, ""


def _transport(shape: tuple[int, int], nnz: int | None, out_of_core: bool) -> _Cost:
    entries = math.prod(shape) if nnz is None else nnz
    least = max(streaming.POOL_ENTRIES, streaming.POOL_ROWS * entries // shape[0])
    share = min(1.0, least / max(entries, 1)) if out_of_core else 1.0
    held, points = share * entries, share * shape[0] + shape[1]
    work = 1500 * held + 150 * (entries - held) + 5000 * points
    memory = ((32 if nnz is None else 48) + 8 * out_of_core) * held + 1200 * points
    if share < 1:
        # A part with its gains, and labels, confidence and degree of every row.
        part = min(shape[0], PART_CELLS * shape[0] // entries)
        memory += part * (32 * entries // shape[0] + 600) + 60 * shape[0]
    return memory, 0.4 + work / measure_machine()[1], ""


@cache
def measure_machine() -> tuple[float, float]:
    """Measure once how many operations of a matrix product and exponentials a thread does a second.

    Exponentials are a measure of going over entries one by one.
    """
    square = np.random.default_rng(0).normal(size=(384, 384)).astype(np.float32)
    entries = np.random.default_rng(0).normal(size=2**18)
    with one_blas_thread():
        product = min(repeat(lambda: square @ square, number=1))
        exponentials = min(repeat(lambda: np.exp(entries), number=1))
    return 2 * len(square) ** 3 / product, len(entries) / exponentials


def _readable_bytes(number: float) -> str:
    return f"{number / 1e9:.1f} GB" if number >= 1e9 else f"{max(1, round(number / 1e6))} MB"


def _readable_time(seconds: float) -> str:
    if seconds < 60:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{seconds / 3600:.0f} h"
