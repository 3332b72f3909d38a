"""Figures of a fitted co-clustering: the blocks, the steps behind them, how sure they are."""

from ccot.plotting._shared import PALETTE as PALETTE
from ccot.plotting._shared import new_figure
from ccot.plotting.blocks import plot_blocks
from ccot.plotting.dots import plot_dots
from ccot.plotting.evidence import (
    plot_block_means,
    plot_confidence,
    plot_merge_costs,
    plot_reg_path,
    plot_reproducibility,
    plot_scalings,
)

__all__ = [
    "new_figure",
    "plot_block_means",
    "plot_blocks",
    "plot_confidence",
    "plot_dots",
    "plot_merge_costs",
    "plot_reg_path",
    "plot_reproducibility",
    "plot_scalings",
]
