"""What the suite fits: planted blocks, of the paper's sizes and growing along one axis each."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from ccot.datasets import make_latent_blocks
from ccot.experiments.protocol import DATA_SETS, OVERLAPS, load_matrix, load_shape

# Growing matrices are crisp: every method is right, and times compare at equal answers.
_CRISP = ((4.0, 0.5, 1.5), (1.8, 4.5, 1.1), (1.5, 1.5, 5.5))
_SIGMA = 0.01
# Each row cluster of the counts has a column cluster of its own, which gets this part of them.
_COUNT_CLUSTERS, _OWN_SHARE = 4, 0.7
ENTRIES_A_ROW = 20


@dataclass(frozen=True)
class Planted:
    """A matrix, its true clusters, of the rows at least, and how many there are."""

    matrix: Any
    row_labels: np.ndarray
    column_labels: np.ndarray | None
    numbers: tuple[int, int]


@dataclass(frozen=True)
class Case:
    """One matrix that rivals are asked to co-cluster."""

    name: str
    axis: str  # what grows from case to case
    size: int
    shape: tuple[int, int]
    kind: str  # "real" (dense), "counts" (sparse), or "labelled" (rows have classes)
    make: Callable[[int], Planted]
    warm_up: Callable[[int], Planted]  # makes a matrix that takes no time
    n_draws: int | None = None  # of CCOT and of POT's loops; None lets CCOT decide
    only: tuple[str, ...] = ()  # the rivals that are asked; none named: all


def paper_cases() -> list[Case]:
    """Return the paper's simulated sets at both overlaps."""
    return [
        _real(f"{name} {overlap}", "paper", 0, load_shape(name), partial(_simulated, name, overlap))
        for overlap in OVERLAPS
        for name in DATA_SETS
    ]


def draws_case(n_draws: int) -> Case:
    """Return D1 with a fixed number of draws: CCOT beside the same draws with POT."""
    make = partial(_simulated, "D1", "published")
    case = _real(f"D1, {n_draws} draws", "draws", n_draws, load_shape("D1"), make)
    return replace(case, n_draws=n_draws, only=("CCOT", "POT, plain loop", "POT, log-domain loop"))


def row_cases(sizes: tuple[int, ...], n_columns: int) -> list[Case]:
    """Return matrices whose rows grow in number."""
    return [_growing("rows", size, (size, n_columns)) for size in sizes]


def column_cases(sizes: tuple[int, ...], n_rows: int) -> list[Case]:
    """Return matrices whose columns grow in number."""
    return [_growing("columns", size, (n_rows, size)) for size in sizes]


def _growing(axis: str, size: int, shape: tuple[int, int]) -> Case:
    return _real(f"{size} {axis}", axis, size, shape, partial(_crisp, *shape))


def nonzero_cases(sizes: tuple[int, ...], n_columns: int = 1000) -> list[Case]:
    """Return sparse counts whose entries grow in number, and their rows with them."""
    return [
        Case(
            f"{size} entries", "nonzeros", size, (size // ENTRIES_A_ROW, n_columns), "counts",
            partial(_counts, size, n_columns), partial(_counts, 1000, 24),
        )
        for size in sizes
    ]  # fmt: skip


def _real(
    name: str, axis: str, size: int, shape: tuple[int, int], make: Callable[[int], Planted]
) -> Case:
    return Case(name, axis, size, shape, "real", make, partial(_crisp, 30, 20))


def _simulated(name: str, overlap: str, seed: int) -> Planted:
    return _planted(load_matrix(name, overlap, seed))


def _crisp(n_rows: int, n_columns: int, seed: int) -> Planted:
    return _planted(make_latent_blocks(_CRISP, n_rows, n_columns, sigma=_SIGMA, random_state=seed))


def _planted(drawn: Any) -> Planted:
    return Planted(drawn.data, drawn.row_labels, drawn.column_labels, drawn.block_means.shape)


def _counts(nnz: int, n_columns: int, seed: int) -> Planted:
    """Every row throws the same number of entries, most of them at its own columns."""
    rng = np.random.default_rng(seed)
    n_rows = nnz // ENTRIES_A_ROW
    rows = rng.integers(_COUNT_CLUSTERS, size=n_rows)
    # In turns, so that no column cluster is empty and every column can be hit.
    columns = rng.permutation(np.arange(n_columns) % _COUNT_CLUSTERS)
    members = np.argsort(columns, kind="stable").reshape(_COUNT_CLUSTERS, -1)
    own = rng.random((n_rows, ENTRIES_A_ROW)) < _OWN_SHARE
    clusters = np.where(own, rows[:, None], rng.integers(_COUNT_CLUSTERS, size=own.shape))
    entries = members[clusters, rng.integers(members.shape[1], size=own.shape)]
    ends = np.arange(0, n_rows * ENTRIES_A_ROW + 1, ENTRIES_A_ROW)
    matrix = sp.csr_array(
        (np.ones(entries.size), entries.ravel().astype(np.int32), ends.astype(np.int32)),
        shape=(n_rows, n_columns),
    )
    matrix.sum_duplicates()
    return Planted(matrix, rows, columns, (_COUNT_CLUSTERS, _COUNT_CLUSTERS))
