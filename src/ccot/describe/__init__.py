"""What a cluster is: the columns that set it apart, and a short name made of them.

A column tells much if its values within the cluster differ from those of all rows. How much is
measured by the Kullback-Leibler divergence between two laws of one value, normal, Poisson or
Bernoulli by the kind of the column, so that columns of different kinds can be ranked together.
Clusters of columns are described by rows in the same way.
"""

from ccot.describe.names import describe_sides, with_names
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
from ccot.describe.words import Portrait, Trait

__all__ = [
    "MAX_NAMED_ROWS", "MAX_ROWS", "TOP", "Column", "Portrait", "Statistics", "Trait",
    "column_statistics", "describe_sides", "every", "members_of", "portray_sides",
    "row_statistics", "typical_order", "with_names",
]  # fmt: skip
