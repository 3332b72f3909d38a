"""Ten operations, and beside each of them one of another library that does comparable work.

Seconds belong to a machine; the ratio of the two, taken in turns in one process, hardly does. Only
public names are used, so that the same file times an older commit.
"""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import joblib
import numpy as np
import ot
from scipy import sparse
from sklearn.cluster import KMeans, SpectralBiclustering, SpectralCoclustering

from ccot import CCOT, CCOTGW, TransportCoclustering, load_model
from ccot.datasets import load_simulated
from ccot.io import read_matrix
from ccot.report import write_report

REG = 0.2
DRAWS, POT_DRAWS = 200, 20


@dataclass(frozen=True)
class Operation:
    """One thing to time, what it is compared with, and how much of the work each does."""

    name: str
    ours: Callable[[], object]
    against: str
    theirs: Callable[[], object]
    share: float = 1.0  # of our work that theirs does


@cache
def crisp() -> np.ndarray:
    return load_simulated("D1", random_state=1).data


@cache
def noisy() -> np.ndarray:
    return load_simulated("D1", random_state=0, overlap="calibrated").data


@cache
def many_rows() -> np.ndarray:
    rng = np.random.default_rng(0)
    means = np.array([[0.0, 4.0], [3.0, 1.0], [6.0, 2.0]])
    blocks = means[rng.integers(3, size=20_000)][:, rng.integers(2, size=50)]
    return blocks + 0.05 * rng.normal(size=blocks.shape)


@cache
def counts() -> sparse.csr_array:
    """Four by four blocks of rare counts."""
    rng = np.random.default_rng(0)
    rows, columns = rng.integers(4, size=3000), rng.integers(4, size=1000)
    rates = np.where(np.eye(4, dtype=bool), 0.12, 0.01)
    return sparse.csr_array(rng.poisson(rates[rows][:, columns]).astype(float))


@cache
def folder() -> Path:
    kept = tempfile.TemporaryDirectory(prefix="ccot-operations-")
    _FOLDERS.append(kept)
    path = Path(kept.name)
    np.savetxt(path / "table.csv", crisp(), delimiter=",", fmt="%.6g")
    return path


_FOLDERS: list[tempfile.TemporaryDirectory] = []  # removed when the process ends


@cache
def steps_model() -> CCOT:
    return CCOT(n_samplings=DRAWS, random_state=0).fit(crisp())


@cache
def blocks_model() -> TransportCoclustering:
    return TransportCoclustering(3, 3, random_state=0).fit(noisy())


@cache
def k_means() -> KMeans:
    return KMeans(3, n_init=1, random_state=0).fit(noisy())


def pot_draws() -> None:
    """The draws of CCOT and their transport by POT: no jumps, no vote."""
    matrix, rng = crisp(), np.random.default_rng(0)
    mass = np.full(matrix.shape[1], 1 / matrix.shape[1])
    for _ in range(POT_DRAWS):
        square = matrix[rng.choice(len(matrix), matrix.shape[1], replace=False)]
        cost = ot.dist(square, np.ascontiguousarray(square.T))
        ot.sinkhorn(mass, mass, cost, REG * np.median(cost))


def pot_barycentre() -> None:
    sides = (crisp(), np.ascontiguousarray(crisp().T))
    kernels = [gaussian(side) for side in sides]
    masses = [np.full(len(kernel), 1 / len(kernel)) for kernel in kernels]
    ot.gromov.entropic_gromov_barycenters(
        len(kernels[0]), kernels, masses, masses[0], [0.5, 0.5], loss_fun="square_loss",
        epsilon=1.0, max_iter=10, tol=1e-4, init_C=kernels[0], symmetric=True, numItermax=100,
        stopThr=1e-6,
    )  # fmt: skip


def gaussian(side: np.ndarray) -> np.ndarray:
    distances = ot.dist(side, side)
    return np.exp(-distances / (2 * np.sqrt(distances).mean() ** 2))


def save_and_load() -> None:
    path = folder() / "model.ccot"
    blocks_model().save(path)
    load_model(path)


def dump_and_load() -> None:
    path = folder() / "model.joblib"
    joblib.dump(k_means(), path)
    joblib.load(path)


def write_a_report() -> None:
    write_report(folder() / "report.html", blocks_model(), matrix=noisy())


OPERATIONS = (
    Operation(
        "CCOT.fit",
        lambda: CCOT(reg=REG, n_samplings=DRAWS, random_state=0, n_jobs=1).fit(crisp()),
        "POT, plain loop", pot_draws, POT_DRAWS / DRAWS,
    ),
    Operation(
        "CCOT.fit, 20,000 rows",
        lambda: CCOT(n_samplings=DRAWS, random_state=0, n_jobs=1).fit(many_rows()),
        "scikit-learn KMeans", lambda: KMeans(3, n_init=10, random_state=0).fit(many_rows()),
    ),
    Operation(
        "CCOTGW.fit, no refinement",
        lambda: CCOTGW(exact_refinement=False).fit(crisp()),
        "POT, barycentre", pot_barycentre,
    ),
    Operation(
        "TransportCoclustering.fit, noisy",
        lambda: TransportCoclustering(random_state=0).fit(noisy()),
        "scikit-learn SpectralBiclustering",
        lambda: SpectralBiclustering(3, random_state=0).fit(noisy()),
    ),
    Operation(
        "TransportCoclustering.fit, sparse counts",
        lambda: TransportCoclustering(random_state=0).fit(counts()),
        "scikit-learn SpectralCoclustering",
        lambda: SpectralCoclustering(4, random_state=0).fit(counts()),
    ),
    Operation(
        "CCOT.predict", lambda: steps_model().predict(crisp()),
        "scikit-learn KMeans.predict", lambda: k_means().predict(noisy()),
    ),
    Operation(
        "TransportCoclustering.predict", lambda: blocks_model().predict(noisy()),
        "scikit-learn KMeans.predict", lambda: k_means().predict(noisy()),
    ),
    Operation(
        "read_matrix, CSV", lambda: read_matrix(folder() / "table.csv"),
        "NumPy loadtxt", lambda: np.loadtxt(folder() / "table.csv", delimiter=","),
    ),
    Operation(
        "save and load_model", save_and_load, "joblib dump and load, KMeans", dump_and_load
    ),
    Operation(
        "write_report", write_a_report,
        "scikit-learn KMeans", lambda: KMeans(3, n_init=10, random_state=0).fit(noisy()),
    ),
)  # fmt: skip
