"""Table 1: the data sets, as the paper describes them and as they are generated here."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ccot.datasets import load_simulated
from ccot.experiments.protocol import DATA_SETS, OVERLAPS
from ccot.experiments.published import TABLE1
from ccot.experiments.tables import Table


def make_table1() -> Table:
    """Return the data sets, the paper's words beside the parameters used here.

    Examples
    --------
    >>> from ccot.experiments.table1 import make_table1
    >>> make_table1().rows[1][:3]
    ('D1, here', '600 × 300', '3 × 3')
    """
    rows = []
    for name in DATA_SETS:
        paper = TABLE1[name]
        rows.append(
            (
                f"{name}, paper",
                _product(paper.size),
                _product(paper.blocks),
                paper.overlapping,
                paper.proportions,
                paper.proportions,
            )
        )
        sets = [load_simulated(name, random_state=0, overlap=overlap) for overlap in OVERLAPS]
        rows.append(
            (
                f"{name}, here",
                _product(sets[0].data.shape),
                _product(sets[0].block_means.shape),
                "σ " + " / ".join(f"{blocks.sigma:g}" for blocks in sets),
                _shares(sets[0].row_proportions),
                _shares(sets[0].column_proportions),
            )
        )
    return Table(
        name="table1",
        caption="Table 1: the simulated data sets",
        heads=("data set", "size", "blocks", "overlap", "row proportions", "column proportions"),
        rows=rows,
        notes=(
            "Overlap: the paper marks well-separated [+] and ill-separated [++] blocks; here it is "
            f"the standard deviation of the noise, {' / '.join(OVERLAPS)}.",
        ),
        groups=2,
    )


def _product(numbers: Sequence[int]) -> str:
    return " × ".join(map(str, numbers))


def _shares(proportions: np.ndarray) -> str:
    if np.ptp(proportions) < 1e-12:
        return "equal"
    return " ".join(f"{share:g}".removeprefix("0") for share in proportions)
