"""Trials in, cells of the comparison out: means, spreads, tests."""

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
class Score:
    """Co-clustering errors of some trials of a method on a data set."""

    n_trials: int
    mean: float | None = None
    sd: float | None = None
    p_value: float | None = None  # of a test against the best method; None: it is the best
    bold: bool = False  # the best, and those that do not differ from it significantly


@dataclass(frozen=True)
class Cell:
    """A method on a data set, over all matrices: scores, numbers of trials, median seconds."""

    data_set: str
    overlap: str
    method: str
    every: Score  # of all trials, as the paper's text has it
    right: Score  # of those with the true numbers of clusters, as the authors' program has it
    rows_right: int
    columns_right: int
    shifted: int
    converged: int
    seconds: float

    @property
    def n_trials(self) -> int:
        """Number of matrices."""
        return self.every.n_trials

    @property
    def found(self) -> bool:
        """Whether at least half of the trials have the true numbers; else it is the paper's "-"."""
        return 2 * self.right.n_trials >= self.n_trials


def summarise(trials: Sequence[Trial]) -> list[Cell]:
    """Return one cell for each data set, overlap and method, in the order of the trials."""
    rows: dict[tuple[str, str], dict[str, list[Trial]]] = defaultdict(lambda: defaultdict(list))
    for trial in trials:
        rows[trial.overlap, trial.data_set][trial.method].append(trial)
    return [cell for methods in rows.values() for cell in _compare(methods)]


def paired_p_value(one: Sequence[Trial], other: Sequence[Trial]) -> float | None:
    """Return the p-value of Wilcoxon's signed-rank test on the matrices that both have."""
    errors = [{trial.seed: trial.error for trial in trials} for trials in (one, other)]
    shared = sorted(errors[0].keys() & errors[1].keys())
    if not shared:
        return None
    # Rounded, so that equal differences are ties.
    differences = np.round([errors[0][seed] - errors[1][seed] for seed in shared], 12)
    if not differences.any():
        return 1.0
    return float(wilcoxon(differences, method="auto").pvalue)


def _compare(methods: dict[str, list[Trial]]) -> list[Cell]:
    """Return the cells of one data set at one overlap, each tested against the best of them."""
    right = {m: [t for t in trials if t.numbers_right] for m, trials in methods.items()}
    enough = {m for m, trials in methods.items() if 2 * len(right[m]) >= len(trials)}
    scores, scores_right = _score(methods, set(methods)), _score(right, enough)
    return [
        Cell(
            data_set=trials[0].data_set,
            overlap=trials[0].overlap,
            method=method,
            every=scores[method],
            right=scores_right[method],
            rows_right=sum(t.row_clusters == t.true_row_clusters for t in trials),
            columns_right=sum(t.column_clusters == t.true_column_clusters for t in trials),
            shifted=sum(trial.shifted for trial in trials),
            converged=sum(trial.converged for trial in trials),
            seconds=float(np.median([trial.seconds for trial in trials])),
        )
        for method, trials in methods.items()
    ]


def _score(methods: dict[str, list[Trial]], ranked: set[str]) -> dict[str, Score]:
    """Return means and tests; the best is one of the ranked methods, and only these are bold."""
    scores = dict.fromkeys(methods, Score(0))
    for method, trials in methods.items():
        if errors := [trial.error for trial in trials]:
            sd = float(np.std(errors, ddof=1)) if len(errors) > 1 else 0.0
            scores[method] = Score(len(errors), float(np.mean(errors)), sd)
    means = {m: s.mean for m, s in scores.items() if m in ranked and s.mean is not None}
    if not means:
        return scores
    best = min(means, key=means.__getitem__)
    for method in scores.keys() - {best}:
        p_value = paired_p_value(methods[method], methods[best])
        bold = method in ranked and p_value is not None and p_value >= SIGNIFICANT
        scores[method] = replace(scores[method], p_value=p_value, bold=bold)
    return scores | {best: replace(scores[best], bold=True)}
