"""What the paper's comparison consists of: tasks, and how one of them is carried out.

A task names a matrix and a method with its settings; a trial is what came of it. Nothing but the
seconds of a trial depends on where, when or beside what it was run.
"""

from __future__ import annotations

import platform
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ccot.baselines import (
    DoubleKMeans,
    GaussianLatentBlockModel,
    InformationTheoreticCoclustering,
    ResidualBayesianCoclustering,
    TriNMF,
    TwoSidedKMeans,
    TwoSidedNMF,
)
from ccot.datasets import load_simulated
from ccot.estimators.ccot import CCOT
from ccot.estimators.ccot_gw import CCOTGW
from ccot.estimators.transport import TransportCoclustering
from ccot.metrics import coclustering_error, error_rate
from ccot.scalings.jumps import find_scaling_jumps

DATA_SETS = ("D1", "D2", "D3", "D4")
OVERLAPS = ("published", "calibrated")
RIVALS: dict[str, Callable[..., Any]] = {
    "K-means": TwoSidedKMeans,
    "NMF": TwoSidedNMF,
    "DKM": DoubleKMeans,
    "Tri-NMF": TriNMF,
    "GLBM": GaussianLatentBlockModel,
    "ITCC": InformationTheoreticCoclustering,
    "RBC": ResidualBayesianCoclustering,
}
METHODS = (*RIVALS, "CCOT", "CCOT-GW", "TransportCoclustering")
# These know no negative numbers: a matrix that has some is shifted for them.
NON_NEGATIVE = frozenset({"NMF", "Tri-NMF", "ITCC"})
_PACKAGES = ("ccot", "numpy", "scipy", "scikit-learn", "POT")


@dataclass(frozen=True)
class Task:
    """One method on one matrix.

    Attributes
    ----------
    data_set, overlap : str
        The simulated set, and how noisy.
    seed : int
        Seed of the matrix and of the method.
    method : str
        One of ``METHODS``.
    n_init : int or None
        Starts; None for methods without.
    n_samplings : int or None
        Draws; None for methods without.
    """

    data_set: str
    overlap: str
    seed: int
    method: str
    n_init: int | None
    n_samplings: int | None


@dataclass(frozen=True)
class Trial:
    """What came of a task, in one line.

    Attributes
    ----------
    data_set, overlap, seed, method, n_init, n_samplings
        The task.
    true_row_clusters, true_column_clusters : int
        Numbers of clusters in the truth, which the rivals are given.
    row_clusters, column_clusters : int
        Numbers of clusters the method ended with.
    row_error, column_error, error : float
        Error rates, and the co-clustering error.
    converged : bool
        Whether the method ended without a warning that it did not converge.
    shifted : bool
        Whether the smallest entry was subtracted from a matrix with negative ones.
    rows_in_order, columns_in_order : bool or None
        Whether the true clusters lie side by side along the sorted scalings, without mixing; None
        for methods without scalings.
    authors_row_clusters, authors_column_clusters : int or None
        Numbers that the authors' detector finds in the same scalings; CCOT-GW only.
    versions : str
        Versions of the packages.
    seconds : float
        Processor time of the fit, which is the time it takes on a machine of its own.
    processor : str
        On which machine.
    """

    data_set: str
    overlap: str
    seed: int
    method: str
    n_init: int | None
    n_samplings: int | None
    true_row_clusters: int
    true_column_clusters: int
    row_clusters: int
    column_clusters: int
    row_error: float
    column_error: float
    error: float
    converged: bool
    shifted: bool
    rows_in_order: bool | None
    columns_in_order: bool | None
    authors_row_clusters: int | None
    authors_column_clusters: int | None
    versions: str
    seconds: float
    processor: str

    @property
    def task(self) -> Task:
        """What was done."""
        return Task(**{field.name: getattr(self, field.name) for field in fields(Task)})

    @property
    def numbers_right(self) -> bool:
        """Whether both numbers of clusters are those of the truth."""
        return self.row_number_right and self.column_number_right

    @property
    def row_number_right(self) -> bool:
        """Whether there are as many row clusters as in the truth."""
        return self.row_clusters == self.true_row_clusters

    @property
    def column_number_right(self) -> bool:
        """Whether there are as many column clusters as in the truth."""
        return self.column_clusters == self.true_column_clusters


@dataclass(frozen=True)
class Protocol:
    """How the comparison is made; the defaults are the paper's.

    Attributes
    ----------
    n_trials : int
        Matrices of each set and overlap.
    n_samplings : int
        Draws of CCOT from a matrix that is not square; a square one is solved once, as it is.
    n_init : int
        Starts of each rival.
    overlaps, methods : sequence of str
        Which ones.
    seed : int
        Seed of the first matrix; the others follow.

    Examples
    --------
    >>> from ccot.experiments.protocol import Protocol
    >>> len(Protocol().tasks())
    8000
    >>> Protocol(n_trials=1, methods=("CCOT",)).tasks()[3]
    Task(data_set='D2', overlap='calibrated', seed=0, method='CCOT', n_init=None, n_samplings=1000)
    """

    n_trials: int = 100
    n_samplings: int = 1000
    n_init: int = 50
    overlaps: Sequence[str] = OVERLAPS
    methods: Sequence[str] = METHODS
    seed: int = 0

    def tasks(self) -> list[Task]:
        """Return all tasks, all of one seed before those of the next.

        A run that is cut short has then seen every set and method about equally often.
        """
        return [
            self._task(data_set, overlap, self.seed + number, method)
            for number in range(self.n_trials)
            for data_set in DATA_SETS
            for overlap in self.overlaps
            for method in self.methods
        ]

    def _task(self, data_set: str, overlap: str, seed: int, method: str) -> Task:
        n_init = self.n_init if method in RIVALS else None
        n_samplings = None
        if method == "CCOT":
            n_rows, n_columns = load_shape(data_set)
            n_samplings = 1 if n_rows == n_columns else self.n_samplings
        return Task(data_set, overlap, seed, method, n_init, n_samplings)


@cache
def load_shape(data_set: str) -> tuple[int, int]:
    """Return the numbers of rows and columns of a simulated set."""
    return load_simulated(data_set, random_state=0).data.shape


def run_task(task: Task) -> Trial:
    """Make the matrix, run the method, compare with the truth.

    Examples
    --------
    >>> from ccot.experiments.protocol import Task, run_task
    >>> trial = run_task(Task("D3", "published", 0, "CCOT", None, 8))
    >>> trial.row_clusters, trial.column_clusters, trial.error
    (2, 4, 0.0)
    """
    truth = load_simulated(task.data_set, random_state=task.seed, overlap=_overlap(task))
    matrix = truth.data
    shifted = task.method in NON_NEGATIVE and bool(matrix.min() < 0)
    if shifted:
        matrix = matrix - matrix.min()
    true_numbers = truth.block_means.shape
    model = make_estimator(task, true_numbers)
    start = time.process_time()
    converged = _fit(model, matrix)
    seconds = time.process_time() - start
    errors = (
        error_rate(truth.row_labels, model.row_labels_),
        error_rate(truth.column_labels, model.column_labels_),
        coclustering_error(
            truth.row_labels, truth.column_labels, model.row_labels_, model.column_labels_
        ),
    )
    row_order, column_order = _orders(model, truth)
    return Trial(
        **asdict(task),
        true_row_clusters=true_numbers[0],
        true_column_clusters=true_numbers[1],
        row_clusters=int(model.n_row_clusters_),
        column_clusters=int(model.n_column_clusters_),
        row_error=float(errors[0]),
        column_error=float(errors[1]),
        error=float(errors[2]),
        converged=converged,
        shifted=shifted,
        rows_in_order=row_order,
        columns_in_order=column_order,
        authors_row_clusters=_authors_number(model, "row"),
        authors_column_clusters=_authors_number(model, "column"),
        versions=versions(),
        seconds=round(seconds, 4),
        processor=processor(),
    )


def make_estimator(task: Task, true_numbers: tuple[int, int]) -> Any:
    """Return the estimator of a task; rivals are given the true numbers, the others find them."""
    if task.method in RIVALS:
        return RIVALS[task.method](*true_numbers, n_init=task.n_init, random_state=task.seed)
    if task.method == "CCOT":
        return CCOT(n_samplings=task.n_samplings or 1, sampling="uniform", random_state=task.seed)
    if task.method == "CCOT-GW":
        return CCOTGW(random_state=task.seed)
    if task.method == "TransportCoclustering":
        return TransportCoclustering(random_state=task.seed)
    raise ValueError(f"no method is called {task.method!r}; there are {', '.join(METHODS)}")


@cache
def versions() -> str:
    """Return the versions that results may depend on."""
    return " ".join(
        [f"python={platform.python_version()}", *(f"{name}={version(name)}" for name in _PACKAGES)]
    )


@cache
def processor() -> str:
    """Return the name of the processor."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _overlap(task: Task) -> Any:
    return task.overlap


def _fit(model: Any, matrix: np.ndarray) -> bool:
    """Fit, and say whether nothing was left unconverged."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(matrix)
    return not any(issubclass(warning.category, ConvergenceWarning) for warning in caught)


def _orders(model: Any, truth: Any) -> tuple[bool | None, bool | None]:
    if not hasattr(model, "row_log_scaling_"):
        return None, None
    return (
        _in_order(model.row_log_scaling_, truth.row_labels),
        _in_order(model.column_log_scaling_, truth.column_labels),
    )


def _in_order(log_scaling: np.ndarray, labels: np.ndarray) -> bool:
    """Whether each cluster is one run of neighbours along the sorted scalings."""
    sorted_labels = labels[np.argsort(log_scaling, kind="stable")]
    return int((np.diff(sorted_labels) != 0).sum()) == len(np.unique(labels)) - 1


def _authors_number(model: Any, side: str) -> int | None:
    if not isinstance(model, CCOTGW):
        return None
    log_scaling = np.sort(getattr(model, f"{side}_log_scaling_"))
    return int(find_scaling_jumps(log_scaling, "authors").mask.sum()) + 1
