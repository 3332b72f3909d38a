"""What a cluster is: the columns (or rows) that set it apart, and a short name made of them."""

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
