"""Products of CSR matrices with narrow dense ones, faster than those of PyTorch.

Written in Triton, which comes with PyTorch for GPUs; elsewhere this module cannot be imported.
"""

from __future__ import annotations

from typing import Any

# The CPU build of PyTorch comes without Triton.
import triton  # type: ignore[import-not-found]
import triton.language as tl  # type: ignore[import-not-found]

# Fewest entries and fewest values of a block; entries of a row per program; most programs per row.
_BLOCK, _LEAST_HELD, _ENTRIES, _MOST_SPLITS = 32, 256, 512, 64


@triton.jit
def _sum_rows(
    starts, columns, values, other, out, n_rows, width, n_splits,
    HARD: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Sum one of n_splits parts of a row's entries, times the other matrix or by its labels."""
    row, split = tl.program_id(0), tl.program_id(1)
    first, end = tl.load(starts + row), tl.load(starts + row + 1)
    k = tl.arange(0, WIDTH)
    total = tl.zeros((BLOCK, WIDTH), dtype=tl.float64)
    for begin in range(first + split * BLOCK, end, n_splits * BLOCK):
        entry = begin + tl.arange(0, BLOCK)
        held = entry < end
        column = tl.load(columns + entry, mask=held, other=0).to(tl.int64)
        value = tl.load(values + entry, mask=held, other=0.0)[:, None]
        if HARD:
            label = tl.load(other + column, mask=held, other=-1)
            total += tl.where(label[:, None] == k[None, :], value, 0.0).to(tl.float64)
        else:
            there = other + column[:, None] * width + k[None, :]
            factor = tl.load(there, mask=held[:, None] & (k[None, :] < width), other=0.0)
            total += (value * factor).to(tl.float64)
    place = out + (split.to(tl.int64) * n_rows + row) * width + k
    tl.store(place, tl.sum(total, axis=0), mask=k < width)


def collapse(matrix: Any, other: Any, width: int) -> Any:
    """Return the columns of a CSR tensor summed by labels, or its product with a dense matrix."""
    import torch

    # Sums are in float64, and always in the same order.
    n_rows, is_hard = matrix.shape[0], other.ndim == 1
    n_splits = min(max(matrix.values().shape[0] // (_ENTRIES * n_rows), 1), _MOST_SPLITS)
    padded = triton.next_power_of_2(width)
    parts = matrix.values().new_empty((n_splits, n_rows, width), dtype=torch.float64)
    # Type checkers see a function; for Triton it is a kernel, indexed by its grid.
    _sum_rows[(n_rows, n_splits)](  # type: ignore[index]
        matrix.crow_indices(), matrix.col_indices(), matrix.values(),
        other.int() if is_hard else other.contiguous(), parts, n_rows, width, n_splits,
        HARD=is_hard, WIDTH=padded, BLOCK=max(_BLOCK, _LEAST_HELD // padded), num_warps=1,
    )  # fmt: skip
    return (parts.sum(dim=0) if n_splits > 1 else parts[0]).to(matrix.dtype)
