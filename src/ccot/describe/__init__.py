"""What a cluster is: the columns that set it apart, and a short name made of them.

How much a column tells is the Kullback-Leibler divergence of its law (normal, Poisson, Bernoulli)
in the cluster from that of all rows. Rows describe clusters of columns in the same way.
"""

from ccot.describe.statistics import (
    MAX_NAMED_ROWS,
    MAX_ROWS,
    TOP,
    Column,
    Statistics,
    column_statistics,
    every,
    members_of,
    portray_sides,
    row_statistics,
    typical_order,
)
from ccot.describe.words import BY_SPREAD, Portrait, Trait, with_names

__all__ = [
    "BY_SPREAD", "MAX_NAMED_ROWS", "MAX_ROWS", "TOP", "Column", "Portrait", "Statistics", "Trait",
    "column_statistics", "every", "members_of", "portray_sides",
    "row_statistics", "typical_order", "with_names",
]  # fmt: skip
