"""What the two algorithms of the paper share: scalings, their jumps, and the votes of draws."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ccot.coclustering import Side, StepCoclustering, StepSide
from ccot.estimators.base import BaseCoclustering


class BaseStepCoclustering(BaseCoclustering):
    """Base of the estimators that read clusters off the steps of scaling vectors."""

    def _adopt(self, found: StepCoclustering, X: Any = None):
        self.row_log_scaling_ = found.row.log_scaling
        self.column_log_scaling_ = found.column.log_scaling
        self.row_jumps_, self.column_jumps_ = found.row.jumps, found.column.jumps
        self.row_jump_strength_ = found.row.jump_strength
        self.column_jump_strength_ = found.column.jump_strength
        self.row_cluster_votes_ = found.row.number_votes
        self.column_cluster_votes_ = found.column.number_votes
        # A minority of draws that did not converge is outvoted by those that did.
        if found.share_converged < 0.5:
            warnings.warn(
                f"{1 - found.share_converged:.0%} of the transport problems {found.status.value}",
                ConvergenceWarning,
                stacklevel=3,
            )
        return super()._adopt(found, X)

    def _describe(self, name: str, side: Side, asked: int | None) -> list[str]:
        assert isinstance(side, StepSide)
        lines = super()._describe(name, side, asked)
        if len(side.number_votes) > 1:
            shares = ", ".join(
                f"{number}: {max(share, 0.01):.0%}" for number, share in side.number_votes.items()
            )
            lines.append(f"    number of {name} clusters over the draws: {shares}")
        if asked is None and side.n_clusters == 1 and np.ptp(side.log_scaling) > 0:
            lines.append(f"    the sorted {name} scalings are smooth: no step is significant")
        return lines
