"""Descriptions of clusters: the columns (or rows) that distinguish them, and short names."""

from ccot.describe.statistics import MAX_NAMED_ROWS, MAX_ROWS, TOP, Column, portray_sides
from ccot.describe.words import Portrait, with_names

__all__ = ["MAX_NAMED_ROWS", "MAX_ROWS", "TOP", "Column", "Portrait", "portray_sides", "with_names"]
