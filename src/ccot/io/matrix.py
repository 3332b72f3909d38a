"""What every reader returns, and the checks that all inputs share."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp

from ccot.runtime.memory import total_bytes

# A file may unfold to so many times its size, and a reader hold so many times what it read;
# whatever is smaller than _ALWAYS bytes may anyway. Text declares no shape: to more than _TEXT
# bytes of it (digits become four times as many of numbers) it may unfold only _HELD times.
_UNFOLDED, _HELD = 100, 10
_ALWAYS, _TEXT = 64 << 20, 512 << 20


class InputError(ValueError):
    """An input that cannot be read as a matrix; the message says what to do."""


@dataclass(frozen=True)
class NamedMatrix:
    """A matrix as it was found in a file.

    Attributes
    ----------
    values : ndarray or CSR array of shape (n_rows, n_columns), or RowSource
        Float64; NaN is a missing value. The command line does not load large matrices.
    row_names, column_names : tuple of str, or None where the file has none
    how : str, how the file was read, in words
    notes : tuple of str, doubtful points, and the options that change them
    is_listed : bool, whether the file was a long table, whose values all have one unit
    """

    values: Any
    row_names: tuple[str, ...] | None
    column_names: tuple[str, ...] | None
    how: str
    notes: tuple[str, ...] = ()
    is_listed: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self.values.shape


@dataclass(frozen=True)
class Table:
    """A table as it was read: columns by name, whose kinds are not recognised yet.

    Attributes
    ----------
    columns : dict of str to ndarray
        One-dimensional arrays of equal length: float64 with NaN for missing values, objects that
        are str or None, or datetime64.
    row_names : list of str or None
    notes : tuple of str, sentences about how it was read
    kinds : dict of str to str, kinds that are known already, as from dtypes of a data frame
    levels : dict of str to tuple of str, levels of ordered categories, in their order
    """

    columns: dict[str, np.ndarray]
    row_names: list[str] | None = None
    notes: tuple[str, ...] = ()
    kinds: dict[str, str] = field(default_factory=dict)
    levels: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return len(next(iter(self.columns.values()), ())), len(self.columns)

    def words(self) -> list[str]:
        """Return the names of the columns that do not hold numbers."""
        return [name for name, column in self.columns.items() if column.dtype.kind != "f"]


Found: TypeAlias = NamedMatrix | Table
Names: TypeAlias = Iterable[Any] | None


def named_matrix(
    values: Any, row_names: Names, column_names: Names, how: str, notes: Iterable[str] = ()
) -> NamedMatrix:
    """Check what was read and put it together."""
    values = _float64(values)
    if 0 in values.shape:
        raise InputError(f"the matrix is empty ({values.shape[0]} x {values.shape[1]}): pass data")
    check_values(values.data if sp.issparse(values) else values)
    rows, columns = unique_names(row_names, "rows"), unique_names(column_names, "columns")
    return NamedMatrix(values, rows, columns, how, tuple(notes))


def check_memory(n_bytes: int, what: str) -> None:
    """Refuse what cannot fit into the machine before it is tried."""
    available = total_bytes()
    if available is not None and n_bytes > available:
        machine = f"the {available / 1e9:.3g} GB of this machine"
        remedy = "pass some of the rows, or a sparse file"
        raise InputError(f"{what} would take {n_bytes / 1e9:.3g} GB, more than {machine}: {remedy}")


def unfolding_limit(size: int) -> int:
    """Return how many bytes a file of a size may unfold to before it is taken for a trap."""
    return max(_ALWAYS, _UNFOLDED * size)


def text_limit(size: int) -> int:
    """Return how many bytes of text a file of a size may unfold to."""
    return max(held_limit(size), min(unfolding_limit(size), _TEXT))


def check_unfolded(n_bytes: int, path: Path, limit: Callable[[int], int] = unfolding_limit) -> None:
    """Refuse a file that announces far more than its size, before anything is allocated."""
    size = path.stat().st_size
    if n_bytes > limit(size):
        remedy = "write it again without compression, or without empty rows and columns"
        unfolds = f"{path} has {size} bytes, but needs {n_bytes:.3g} unpacked"
        raise InputError(f"{unfolds}, so it may be malicious: if you trust it, {remedy}")
    check_memory(n_bytes, str(path))


def held_limit(size: int) -> int:
    """Return how many bytes of memory may come of so many bytes of a file."""
    return max(_ALWAYS, _HELD * size)


def check_held(n_bytes: int, size: int, what: str, remedy: str) -> None:
    """Refuse what would take memory out of proportion to what was read of the file."""
    if n_bytes > held_limit(size):
        taken = f"{n_bytes:.3g} bytes of memory, more than {_HELD} times the input"
        raise InputError(f"{what} would take {taken}, so the file may be malicious: {remedy}")


class BoundedTexts:
    """Texts of a file, each kept once, that may not take far more memory than so many bytes."""

    def __init__(self, size: int) -> None:
        self._size, self._n_characters = size, 0
        self._known: dict[Any, Any] = {}

    def shared(self, texts: Iterable[Any]) -> list[Any]:
        """Return the same texts, or None; those that were here before are the same objects."""
        known = [self._known.setdefault(text, text) for text in texts]
        self._n_characters += sum(len(a or "") for a, b in zip(known, texts, strict=True) if a is b)
        check_held(self._n_characters, self._size, "the names", "shorten them, or leave them out")
        return known


def check_regular(path: Path) -> None:
    """Refuse pipes and devices: they have no size, and may never end."""
    if path.exists() and not path.is_file():
        remedy = "pass a file, or - and the data on standard input"
        raise InputError(f"{path} is not a regular file: {remedy}")


def sorting_bytes(rows: np.ndarray) -> int:
    """Return what SciPy takes to sort the longest row of a matrix, given the row of each entry."""
    return 16 * int(np.bincount(rows).max(initial=0))


def check_sparse(matrix: Any) -> None:
    """Refuse a sparse matrix whose parts contradict each other: SciPy follows them blindly."""
    if matrix.format in ("csr", "csc", "bsr"):
        # Without entries, check_format looks at the last pointer alone; its differences may wrap.
        if np.any(matrix.indptr[1:] < matrix.indptr[:-1]):
            raise ValueError("index pointers of a sparse matrix must not go down")
        matrix.check_format(full_check=True)


def _float64(values: Any) -> Any:
    if not sp.issparse(values):
        values = np.asarray(values)
    if values.ndim != 2:
        raise InputError(f"{values.ndim} dimensions are not a matrix: pass rows x columns")
    if (kind := values.dtype).kind not in "biuf":
        raise InputError(f"values of type {kind} are not numbers: convert them to float64 first")
    if not sp.issparse(values):
        return np.ascontiguousarray(values, dtype=np.float64)
    check_sparse(values)
    matrix = sp.csr_array(values, dtype=np.float64)
    if not matrix.has_canonical_format:
        # The indices may still be the caller's, and would be sorted without their values.
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def check_values(values: np.ndarray, name: str | None = None) -> None:
    """Refuse numbers that are infinite; the message says in which column, if that has a name."""
    if not values.size:
        return
    # fmax and fmin look past NaN without a copy of the matrix.
    if any(np.isinf(one.reduce(values, axis=None)) for one in (np.fmax, np.fmin)):
        remedy = "replace them, or leave the cells empty where they are unknown"
        where = "" if name is None else f" of column {name[:40]!r}"
        raise InputError(f"some values{where} are infinite or too large for a float: {remedy}")


def column_title(names: Sequence[str], place: int) -> str:
    """Return the name of a column, or its position in words that are no other column's name."""
    return names[place] or (f"column {place}" if str(place) in names else str(place))


def unique_names(names: Names, what: str) -> tuple[str, ...] | None:
    """Return names as text, or refuse those that name several."""
    if names is None:
        return None
    names = tuple(map(str, names))
    if repeated := most_repeated(names):
        remedy = "rename them, or leave one out by its position from 0, as in --drop 3"
        if what == "rows":
            remedy = "name another --index-col, or pass --index-col none to number them"
        raise InputError(f"{repeated.times} {what} are named {repeated.name[:40]!r}: {remedy}")
    return names


class Repeated(NamedTuple):
    """The name that is there most often, how often, and how many distinct names there are."""

    name: str
    times: int
    n_distinct: int


def most_repeated(names: Sequence[str]) -> Repeated | None:
    """Return the name that is there most often; None if all are there once."""
    # A set of many short names takes several times their room; hashes take eight bytes each.
    hashes = np.fromiter(map(hash, names), np.int64, len(names))
    hashes.sort()
    again, counts = np.unique(hashes[1:][hashes[1:] == hashes[:-1]], return_counts=True)
    if not len(again):
        return None
    most = again[counts == counts.max()]
    name = next(n for n in names if most[np.searchsorted(most, hash(n)) % len(most)] == hash(n))
    return Repeated(name, names.count(name), len(names) - int(counts.sum()))


def align(names: Sequence[str], wanted: Sequence[str], what: str) -> tuple[np.ndarray, list[str]]:
    """Find the places of wanted names."""
    where = {name: place for place, name in enumerate(names)}
    if missing := [name for name in wanted if name not in where]:
        lacking = f"{len(missing)} of the model's {len(wanted)} {what} are not in the input"
        remedy = f"pass data with the {what} of the fitted matrix"
        raise InputError(f"{lacking} (the first: {missing[0][:40]!r}): {remedy}")
    known = set(wanted)
    return np.array([where[name] for name in wanted]), [n for n in names if n not in known]
