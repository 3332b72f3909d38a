"""The tasks of the paper's comparison, and their trials, of which only the seconds vary."""

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache, partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Bunch

from ccot import baselines
from ccot.datasets import load_simulated
from ccot.estimators.ccot import CCOT
from ccot.estimators.ccot_gw import CCOTGW
from ccot.estimators.transport import TransportCoclustering
from ccot.experiments.bench.facts import commit, processor, versions
from ccot.metrics import coclustering_error, error_rate
from ccot.scalings.jumps import find_scaling_jumps

DATA_SETS = ("D1", "D2", "D3", "D4")
OVERLAPS = ("published", "calibrated")
Makers = Mapping[str, Callable[..., Any]]
RIVALS: Makers = {
    "K-means": baselines.TwoSidedKMeans,
    "NMF": baselines.TwoSidedNMF,
    "DKM": baselines.DoubleKMeans,
    "Tri-NMF": baselines.TriNMF,
    "GLBM": baselines.GaussianLatentBlockModel,
    "ITCC": baselines.InformationTheoreticCoclustering,
    "RBC": baselines.ResidualBayesianCoclustering,
}
MAKERS: Makers = {
    **RIVALS,
    "CCOT": partial(CCOT, sampling="uniform"),
    "CCOT-GW": CCOTGW,
    "TransportCoclustering": TransportCoclustering,
}
METHODS = tuple(MAKERS)
# These know no negative numbers: a matrix that has some is shifted for them.
NON_NEGATIVE = frozenset({"NMF", "Tri-NMF", "ITCC"})


@dataclass(frozen=True)
class Task:
    """One method on one matrix; the seed is that of both."""

    data_set: str
    overlap: str
    seed: int
    method: str
    n_init: int | None  # None for methods without
    n_samplings: int | None


@dataclass(frozen=True)
class Trial(Task):
    """What came of a task."""

    true_row_clusters: int
    true_column_clusters: int
    row_clusters: int
    column_clusters: int
    row_error: float
    column_error: float
    error: float
    converged: bool
    shifted: bool  # whether the smallest entry was subtracted, because it is negative
    rows_in_order: bool | None  # whether true clusters do not mix along the sorted scalings
    columns_in_order: bool | None
    authors_row_clusters: int | None  # by the authors' detector, of the scalings of CCOT-GW
    authors_column_clusters: int | None
    versions: str
    seconds: float  # processor time of the fit
    processor: str
    commit: str | None = None

    @property
    def task(self) -> Task:
        """What was done."""
        return Task(**{field.name: getattr(self, field.name) for field in fields(Task)})

    @property
    def numbers_right(self) -> bool:
        """Whether both numbers of clusters are those of the truth."""
        found = self.row_clusters, self.column_clusters
        return found == (self.true_row_clusters, self.true_column_clusters)


@dataclass(frozen=True)
class Protocol:
    """How the comparison is made; the defaults are the paper's."""

    n_trials: int = 100  # matrices of each set and overlap
    n_samplings: int = 1000  # draws of CCOT; a square matrix is solved once
    n_init: int = 50
    overlaps: Sequence[str] = OVERLAPS
    methods: Sequence[str] = METHODS
    seed: int = 0  # of the first matrix
    data_sets: Sequence[str] = DATA_SETS

    def tasks(self) -> list[Task]:
        """Return all tasks, seed by seed: a run cut short has seen all sets about equally often."""
        return [
            self._task(data_set, overlap, self.seed + number, method)
            for number in range(self.n_trials)
            for data_set in self.data_sets
            for overlap in self.overlaps
            for method in self.methods
        ]

    def _task(self, data_set: str, overlap: str, seed: int, method: str) -> Task:
        n_init = self.n_init if base_of(method) in RIVALS else None
        n_samplings = None
        if base_of(method) == "CCOT":
            n_rows, n_columns = load_shape(data_set)
            n_samplings = 1 if n_rows == n_columns else self.n_samplings
        return Task(data_set, overlap, seed, method, n_init, n_samplings)


def base_of(method: str) -> str:
    """Return the method that a variant is one of, which stands before the comma."""
    return method.split(",")[0]


@cache
def load_shape(data_set: str) -> tuple[int, int]:
    """Return the numbers of rows and columns of a set; words behind its name change neither."""
    return load_simulated(data_set.split()[0], random_state=0).data.shape


def load_matrix(data_set: str, overlap: str, seed: int) -> Bunch:
    """Draw a matrix of a set, with its truth."""
    noise: Any = overlap
    return load_simulated(data_set, random_state=seed, overlap=noise)


def run_task(task: Task, load: Callable[..., Any] = load_matrix, makers: Makers = MAKERS) -> Trial:
    """Make the matrix, run the method, compare with the truth."""
    truth = load(task.data_set, task.overlap, task.seed)
    matrix, labels = truth.data, (truth.row_labels, truth.column_labels)
    shifted = base_of(task.method) in NON_NEGATIVE and bool(matrix.min() < 0)
    if shifted:
        matrix = matrix - matrix.min()
    true_numbers = truth.block_means.shape
    model = make_estimator(task, true_numbers, makers)
    start = time.process_time()
    converged = _fit(model, matrix)
    seconds = time.process_time() - start
    return Trial(
        **asdict(task),
        true_row_clusters=true_numbers[0],
        true_column_clusters=true_numbers[1],
        row_clusters=int(model.n_row_clusters_),
        column_clusters=int(model.n_column_clusters_),
        row_error=float(error_rate(labels[0], model.row_labels_)),
        column_error=float(error_rate(labels[1], model.column_labels_)),
        error=float(coclustering_error(*labels, model.row_labels_, model.column_labels_)),
        converged=converged,
        shifted=shifted,
        rows_in_order=_in_order(getattr(model, "row_log_scaling_", None), labels[0]),
        columns_in_order=_in_order(getattr(model, "column_log_scaling_", None), labels[1]),
        authors_row_clusters=_authors_number(model, "row"),
        authors_column_clusters=_authors_number(model, "column"),
        versions=versions(),
        seconds=round(seconds, 4),
        processor=processor(),
        commit=commit(),
    )


def make_estimator(task: Task, true_numbers: tuple[int, int], makers: Makers = MAKERS) -> Any:
    """Return the estimator of a task; rivals are given the true numbers, the others find them."""
    if task.method not in makers:
        raise ValueError(f"unknown method {task.method!r}; choose from {', '.join(makers)}")
    make = partial(makers[task.method], random_state=task.seed)
    if base_of(task.method) in RIVALS:
        return make(*true_numbers, n_init=task.n_init)
    return make() if task.n_samplings is None else make(n_samplings=task.n_samplings)


def _fit(model: Any, matrix: np.ndarray) -> bool:
    """Fit, and say whether nothing was left unconverged."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(matrix)
    return not any(issubclass(warning.category, ConvergenceWarning) for warning in caught)


def _in_order(log_scaling: np.ndarray | None, labels: np.ndarray) -> bool | None:
    """Whether each cluster is one run of neighbours along the sorted scalings."""
    if log_scaling is None:
        return None
    sorted_labels = labels[np.argsort(log_scaling, kind="stable")]
    return int((np.diff(sorted_labels) != 0).sum()) == len(np.unique(labels)) - 1


def _authors_number(model: Any, side: str) -> int | None:
    if not isinstance(model, CCOTGW):
        return None
    log_scaling = np.sort(getattr(model, f"{side}_log_scaling_"))
    return int(find_scaling_jumps(log_scaling, "authors").mask.sum()) + 1
