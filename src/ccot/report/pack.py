"""Arrays as compact text: typed, deflated, in base64; the page's ``decode.js`` is the way back."""

import base64
import json
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from ccot.sources import RowSource

# A page of the largest matrix is about 12 MB.
MAX_ENTRIES = 4_000_000
# From here on four digits have to do: in full they would double the page.
MAX_EXACT = 1_000_000
# A dense matrix with fewer non-zero entries than this share is shorter as a sparse one.
_SPARSE_SHARE = 0.3
_MAX_TABLE = 65_536
# So many values, taken evenly, tell signs, and that there are too many different ones for a table.
_ENOUGH = 2**18
_PIECE = 2**18


def pack_array(
    values: np.ndarray, convert: Callable[[np.ndarray], np.ndarray] = np.asarray
) -> dict[str, Any]:
    """Return an array as its type and its deflated bytes, converted piece by piece."""
    # Bytes of equal weight are kept together: signs and exponents repeat, so they deflate well.
    flat = np.ascontiguousarray(values).ravel()
    dtype = convert(flat[:0]).dtype
    planes = (
        convert(flat[start : start + _PIECE]).view(np.uint8)[weight :: dtype.itemsize].tobytes()
        for weight in range(dtype.itemsize)
        for start in range(0, len(flat), _PIECE)
    )
    return {"type": dtype.name, "bytes": _deflate(planes)}


def pack_integers(values: np.ndarray) -> dict[str, Any]:
    """Return integers, none negative, in the smallest type that holds them."""
    return pack_array(np.asarray(values).astype(np.min_scalar_type(int(np.max(values, initial=0)))))


def pack_text(texts: Sequence[str]) -> str:
    """Return strings as a deflated JSON list in base64."""
    return _deflate([json.dumps(list(texts)).encode("ascii")])


def pack_matrix(
    matrix: Any, row_labels: np.ndarray, column_labels: np.ndarray, max_entries: int = MAX_ENTRIES
) -> dict[str, Any]:
    """Return a matrix, or an even part of it in which every cluster is shown, ready for the page.

    ``rows`` and ``columns`` are those shown (None: all), ``signed`` tells that both signs are
    common, ``amounts`` that nothing is below zero. Of a source no more is read than is shown.
    """
    if not isinstance(matrix, RowSource):
        matrix = _as_sparse(matrix)
    n_entries = getattr(matrix, "nnz", matrix.shape[0] * matrix.shape[1])
    keep = _largest_side(matrix.shape, n_entries, max_entries)
    sides = {"rows": row_labels, "columns": column_labels}
    shown = {side: None if len(of) <= keep else spread(of, keep) for side, of in sides.items()}
    rows, columns = shown.values()
    if isinstance(matrix, RowSource):
        matrix = _as_sparse(matrix.rows(np.arange(matrix.shape[0]) if rows is None else rows))
    elif rows is not None:
        matrix = matrix[rows]
    matrix = matrix if columns is None else matrix[:, columns]
    packed = {side: None if at is None else pack_integers(at) for side, at in shown.items()}
    packed |= {"shape": list(matrix.shape)}
    if not sp.issparse(matrix):
        return packed | _pack_values(matrix)
    matrix = sp.csr_array(matrix)
    matrix.sort_indices()
    # Columns are told by their differences; each row begins anew at its first.
    lengths, gaps = np.diff(matrix.indptr), np.diff(matrix.indices, prepend=0)
    starts = matrix.indptr[:-1][lengths > 0]
    gaps[starts] = matrix.indices[starts]
    packed |= {"lengths": pack_integers(lengths), "gaps": pack_integers(gaps)}
    return packed | _pack_values(matrix.data)


def spread(labels: np.ndarray, keep: int) -> np.ndarray:
    """Return about ``keep`` indices, in order, taken evenly from every cluster."""
    chosen = []
    for cluster in np.unique(labels):
        members = np.flatnonzero(labels == cluster)
        wanted = -(-len(members) * keep // len(labels))
        chosen.append(members[np.arange(wanted) * len(members) // wanted])
    return np.sort(np.concatenate(chosen))


def _deflate(parts: Iterable[bytes]) -> str:
    engine = zlib.compressobj()
    # In one expression: each of these is let go of before the next but one is made.
    return str(base64.b64encode(b"".join([*map(engine.compress, parts), engine.flush()])), "ascii")


def _as_sparse(matrix: Any) -> Any:
    """Return a sparse matrix as CSR, and a dense one as such if it is mostly zeros."""
    if not sp.issparse(matrix):
        matrix = np.asarray(matrix)
        if np.count_nonzero(matrix) > _SPARSE_SHARE * matrix.size:
            return matrix
    matrix = sp.csr_array(matrix, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix


def _largest_side(shape: tuple[int, int], n_entries: int, max_entries: int) -> int:
    """Return the most rows, and columns, that keep the expected entries within the limit."""
    if n_entries <= max_entries:
        return max(shape)
    density = n_entries / (shape[0] * shape[1])
    return int(max(max_entries / (min(shape) * density), (max_entries / density) ** 0.5))


def _pack_values(values: np.ndarray) -> dict[str, Any]:
    """Return few different values as codes into a table, others as 32-bit floats."""
    flat = np.asarray(values, dtype=np.float64).ravel()
    some = flat[:: -(-len(flat) // _ENOUGH) or 1]
    facts = {"signed": _is_signed(some), "amounts": not np.fmin.reduce(flat, initial=0.0) < 0}
    few = min(_MAX_TABLE, max(len(flat) // 4, 256))
    # Sorting a large matrix takes several times its memory: not where some tell that it is vain.
    if len(np.unique(some)) <= few:
        table, codes = np.unique(flat, return_inverse=True)
        if len(table) <= few:
            # NaN, if any, is the last entry, and JSON knows no NaN.
            numbers = [None if np.isnan(value) else value for value in table.tolist()]
            return facts | {"exact": True, "values": pack_integers(codes), "table": numbers}
    exact = len(flat) <= MAX_EXACT
    return facts | {"exact": exact, "values": pack_array(flat, _single if exact else _rounded)}


def _is_signed(values: np.ndarray) -> bool:
    low, high = np.nanquantile(values, (0.05, 0.95)) if np.isfinite(values).any() else (0.0, 0.0)
    # Noise around zero is no sign: what is below must be more than a tenth of what is above.
    return bool(low < 0 < high and min(-low, high) > 0.1 * max(-low, high))


def _single(values: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def _rounded(values: np.ndarray) -> np.ndarray:
    """Return 32-bit floats, rounded to the leading bits of their mantissa."""
    singles = _single(values)
    dropped = 12  # of 24 bits
    bits = singles.view(np.uint32)
    # Half of the last bit that stays; a carry goes into the exponent, where it belongs.
    bits += np.uint32(2 ** (dropped - 1))
    bits &= np.uint32(2**32 - 2**dropped)
    return singles
