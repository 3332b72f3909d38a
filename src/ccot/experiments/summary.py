"""Trials in, cells of the comparison out: means, spreads, tests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import wilcoxon

from ccot.experiments.protocol import Trial

SIGNIFICANT = 0.05
# Fewer differences can all have one sign by chance more often than the level allows.
FEWEST = 6


@dataclass(frozen=True)
class Cell:
    """A method on a data set, over all matrices.

    A trial counts if it ended with the true numbers of clusters: the rivals were asked for them,
    and the authors' program averages the errors of such trials only.

    Attributes
    ----------
    data_set, overlap, method : str
        Where we are.
    n_trials, n_counted : int
        Matrices, and those that count.
    mean, sd : float or None
        Co-clustering error of those that count; None if there are none.
    mean_of_all, sd_of_all : float
        Co-clustering error of all trials, whatever numbers of clusters they ended with.
    rows_right, columns_right : int
        Trials with the true number of row (column) clusters.
    p_value : float or None
        Of Wilcoxon's signed-rank test against the best method on the matrices that count for
        both; None for the best, and where there is nothing to compare.
    bold : bool
        The best method, and those that do not differ from it significantly.
    shifted : int
        Trials whose matrix was shifted to have no negative entries.
    converged : int
        Trials that converged.
    seconds : float
        Median time of a trial.
    """

    data_set: str
    overlap: str
    method: str
    n_trials: int
    n_counted: int
    mean: float | None
    sd: float | None
    mean_of_all: float
    sd_of_all: float
    rows_right: int
    columns_right: int
    p_value: float | None
    bold: bool
    shifted: int
    converged: int
    seconds: float

    @property
    def found(self) -> bool:
        """Whether at least half of the trials count; otherwise the cell is the paper's "-"."""
        return 2 * self.n_counted >= self.n_trials


def summarise(trials: Sequence[Trial]) -> list[Cell]:
    """Return one cell for each data set, overlap and method, in the order of the trials.

    Examples
    --------
    >>> from ccot.experiments.protocol import Task, run_task
    >>> from ccot.experiments.summary import summarise
    >>> tasks = [Task("D3", "published", 0, name, 2, None) for name in ("K-means", "DKM")]
    >>> [(cell.method, cell.mean, cell.bold) for cell in summarise([run_task(t) for t in tasks])]
    [('K-means', 0.0, True), ('DKM', 0.0, True)]
    """
    rows: defaultdict[tuple[str, str], defaultdict[str, list[Trial]]]
    rows = defaultdict(lambda: defaultdict(list))
    for trial in trials:
        rows[trial.overlap, trial.data_set][trial.method].append(trial)
    return [cell for methods in rows.values() for cell in _compare(methods)]


def paired_p_value(one: Sequence[Trial], other: Sequence[Trial]) -> float | None:
    """Return the p-value of Wilcoxon's signed-rank test on matrices that count for both."""
    errors = [{t.seed: t.error for t in trials if t.numbers_right} for trials in (one, other)]
    shared = sorted(errors[0].keys() & errors[1].keys())
    if not shared:
        return None
    differences = np.array([errors[0][seed] - errors[1][seed] for seed in shared])
    if not differences.any():
        return 1.0
    return float(wilcoxon(differences, method="auto").pvalue)


def _compare(methods: dict[str, list[Trial]]) -> list[Cell]:
    """Return the cells of one data set at one overlap, tested against the best of them."""
    cells = {method: _cell(trials) for method, trials in methods.items()}
    means = {m: cell.mean for m, cell in cells.items() if cell.found and cell.mean is not None}
    if not means:
        return list(cells.values())
    best = min(means, key=means.__getitem__)
    tested = []
    for method, cell in cells.items():
        p_value = None if method == best else paired_p_value(methods[method], methods[best])
        bold = cell.found and (method == best or (p_value is not None and p_value >= SIGNIFICANT))
        tested.append(replace(cell, p_value=p_value, bold=bold))
    return tested


def _cell(trials: list[Trial]) -> Cell:
    counted = [trial.error for trial in trials if trial.numbers_right]
    errors = [trial.error for trial in trials]
    return Cell(
        data_set=trials[0].data_set,
        overlap=trials[0].overlap,
        method=trials[0].method,
        n_trials=len(trials),
        n_counted=len(counted),
        mean=float(np.mean(counted)) if counted else None,
        sd=_spread(counted) if counted else None,
        mean_of_all=float(np.mean(errors)),
        sd_of_all=_spread(errors),
        rows_right=sum(trial.row_number_right for trial in trials),
        columns_right=sum(trial.column_number_right for trial in trials),
        p_value=None,
        bold=False,
        shifted=sum(trial.shifted for trial in trials),
        converged=sum(trial.converged for trial in trials),
        seconds=float(np.median([trial.seconds for trial in trials])),
    )


def _spread(errors: Sequence[float]) -> float:
    return float(np.std(errors, ddof=1)) if len(errors) > 1 else 0.0
