"""What a cluster is: the columns that set it apart, and a short name made of them.

A column tells much if its values within the cluster differ from those of all rows. How much is
measured by the Kullback-Leibler divergence between two laws of one value, normal, Poisson or
Bernoulli by the kind of the column, so that columns of different kinds can be ranked together.
Clusters of columns are described by rows in the same way.
"""

from ccot.describe.portraits import (
    MAX_NAMED_ROWS,
    MAX_ROWS,
    describe_sides,
    every,
    members_of,
    portraits,
    typical_order,
)
from ccot.describe.statistics import Statistics, column_statistics, row_statistics
from ccot.describe.words import Column, Portrait, Trait

__all__ = [
    "MAX_NAMED_ROWS",
    "MAX_ROWS",
    "Column",
    "Portrait",
    "Statistics",
    "Trait",
    "column_statistics",
    "describe_sides",
    "every",
    "members_of",
    "portraits",
    "row_statistics",
    "typical_order",
]
