"""Table 1: the data sets, as the paper describes them and as they are generated here."""

from collections.abc import Sequence

import numpy as np

from ccot.experiments.protocol import DATA_SETS, OVERLAPS, load_matrix
from ccot.experiments.published import TABLE1
from ccot.experiments.tables import Table, worded_table


def make_table1() -> Table:
    """Return the data sets, the paper's words beside the parameters used here."""
    rows = []
    for name in DATA_SETS:
        paper = TABLE1[name]
        printed = paper.overlapping, paper.proportions, paper.proportions
        rows.append((f"{name}, paper", _product(paper.size), _product(paper.blocks), *printed))
        first, *_ = sets = [load_matrix(name, overlap, 0) for overlap in OVERLAPS]
        sigma = "σ " + " / ".join(f"{blocks.sigma:g}" for blocks in sets)
        shares = _shares(first.row_proportions), _shares(first.column_proportions)
        sizes = _product(first.data.shape), _product(first.block_means.shape)
        rows.append((f"{name}, here", *sizes, sigma, *shares))
    return worded_table("table1", rows, groups=2, overlaps=" / ".join(OVERLAPS))


def _product(numbers: Sequence[int]) -> str:
    return " × ".join(map(str, numbers))


def _shares(proportions: np.ndarray) -> str:
    if np.ptp(proportions) < 1e-12:
        return "equal"
    return " ".join(f"{share:g}".removeprefix("0") for share in proportions)
