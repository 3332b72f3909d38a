"""Who takes part: our estimators, POT, scikit-learn, CGC, sparsebm and the paper's rivals."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import islice
from math import ceil
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import SpectralBiclustering, SpectralCoclustering

from ccot.estimators.ccot import CCOT
from ccot.estimators.ccot_gw import CCOTGW
from ccot.estimators.transport import TransportCoclustering
from ccot.experiments.bench.facts import installed_version
from ccot.experiments.protocol import NON_NEGATIVE, RIVALS
from ccot.scalings.ccot import AUTO_FLOOR
from ccot.scalings.kernels import gaussian_kernel, mean_distance
from ccot.scalings.sampling import draw_indices

REG = 0.2
N_INIT = 10
_MAX_ITER, _TOL = 1000, 1e-6
Labels = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Job:
    """What a rival is asked to do; the numbers are the true ones, draws are None if it chooses."""

    matrix: Any
    numbers: tuple[int, int]
    seed: int
    n_draws: int | None = None


@dataclass(frozen=True)
class Rival:
    """One way to co-cluster a matrix; POT solves the transport problems alone, without labels."""

    name: str
    fit: Callable[[Job], Labels | None]
    package: str = "ccot"  # the distribution that does the work
    informed: bool = True  # whether it is given the true numbers
    kinds: tuple[str, ...] = ("real",)  # of matrices that it takes

    @property
    def version(self) -> str | None:
        """Version of the package that is installed; None: it is not."""
        return installed_version(self.package)


def rivals() -> dict[str, Rival]:
    """Return all rivals by name, whether installed or not."""
    both = ("real", "counts")
    every_rival = [
        Rival("CCOT", _ccot, kinds=both, informed=False),
        Rival("CCOTGW", partial(_ccot_gw, True), kinds=both, informed=False),
        Rival("CCOTGW, no refinement", partial(_ccot_gw, False), kinds=both, informed=False),
        Rival("TransportCoclustering", partial(fit_transport, False), kinds=both, informed=False),
        Rival("TransportCoclustering, given", partial(fit_transport, True), kinds=both),
        Rival("POT, plain loop", partial(_pot_loop, "sinkhorn"), "POT", informed=False),
        Rival("POT, log-domain loop", partial(_pot_loop, "sinkhorn_log"), "POT", informed=False),
        Rival("POT, barycentre", _pot_barycentre, "POT", informed=False),
        Rival("SpectralCoclustering", _spectral_coclustering, "scikit-learn", kinds=both),
        Rival("SpectralBiclustering", _spectral_biclustering, "scikit-learn", kinds=both),
        Rival("CGC", _cgc, "clustering-geodata-cubes"),
        Rival("sparsebm", _sparsebm, "sparsebm", kinds=("counts",)),
        *(
            Rival(name, partial(_baseline, name), kinds=both if name != "RBC" else ("real",))
            for name in RIVALS
        ),
    ]
    return {rival.name: rival for rival in every_rival}


def _labels(model: Any, matrix: Any) -> Labels:
    model.fit(matrix)
    return model.row_labels_, model.column_labels_


def _ccot(job: Job) -> Labels:
    draws = job.n_draws or "auto"
    return _labels(CCOT(reg=REG, n_samplings=draws, random_state=job.seed), job.matrix)


def _ccot_gw(refined: bool, job: Job) -> Labels:
    return _labels(CCOTGW(exact_refinement=refined, random_state=job.seed), job.matrix)


def fit_transport(with_numbers: bool, job: Job) -> Labels:
    """Fit TransportCoclustering, given the true numbers or not."""
    numbers = job.numbers if with_numbers else (None, None)
    return _labels(TransportCoclustering(*numbers, random_state=job.seed), job.matrix)


def _pot_loop(method: str, job: Job) -> None:
    """As many draws as CCOT makes at least, one after the other."""
    import ot

    tall = job.matrix if job.matrix.shape[0] >= job.matrix.shape[1] else job.matrix.T
    n_rows, n_columns = tall.shape
    n_draws = job.n_draws or AUTO_FLOOR * ceil(n_rows / n_columns)
    mass = np.full(n_columns, 1 / n_columns)
    draws = draw_indices(n_rows, n_columns, "cover", np.random.default_rng(job.seed))
    for draw in islice(draws, n_draws):
        square = tall[draw]
        cost = ot.dist(square, np.ascontiguousarray(square.T))
        ot.sinkhorn(mass, mass, cost, REG * np.median(cost), method=method, numItermax=_MAX_ITER,
                    stopThr=_TOL)  # fmt: skip


def _pot_barycentre(job: Job) -> None:
    """The barycentre of CCOTGW without refinement: same support, limits and tolerances."""
    import ot

    sides = job.matrix, np.ascontiguousarray(job.matrix.T)
    kernels = [gaussian_kernel(side, side, mean_distance(side)) for side in sides]
    masses = [np.full(len(kernel), 1 / len(kernel)) for kernel in kernels]
    ot.gromov.entropic_gromov_barycenters(
        len(kernels[0]), kernels, masses, masses[0], [0.5, 0.5], loss_fun="square_loss",
        epsilon=1.0, max_iter=10, tol=1e-4, init_C=kernels[0], symmetric=True, numItermax=100,
        stopThr=1e-6,
    )  # fmt: skip


def _spectral_coclustering(job: Job) -> Labels:
    # It has one number for both sides.
    matrix = without_negative(job.matrix)
    return _labels(SpectralCoclustering(max(job.numbers), random_state=job.seed), matrix)


def _spectral_biclustering(job: Job) -> Labels:
    sparse = sp.issparse(job.matrix)
    # Logarithms want positive entries, and would fill a sparse matrix.
    matrix = job.matrix if sparse else job.matrix - job.matrix.min() + 1.0
    method = "bistochastic" if sparse else "log"
    return _labels(SpectralBiclustering(job.numbers, method=method, random_state=job.seed), matrix)


def _cgc(job: Job) -> Labels:
    from cgc.coclustering_numpy import coclustering  # pyright: ignore[reportMissingImports]

    np.random.seed(job.seed)  # noqa: NPY002 - CGC draws its starts from the global generator
    matrix = without_negative(job.matrix)
    positive = matrix + 1e-8 * matrix.mean()
    runs = [coclustering(positive, *job.numbers, errobj=1e-5, niters=300) for _ in range(N_INIT)]
    best = min(runs, key=lambda run: run[-1])
    return best[2], best[3]


def _sparsebm(job: Job) -> Labels:
    from sparsebm import LBM  # pyright: ignore[reportMissingImports]

    np.random.seed(job.seed)  # noqa: NPY002 - so does sparsebm
    # A Bernoulli model: it sees which entries there are, not how large they are.
    pattern = sp.csr_matrix((job.matrix != 0).astype(float))
    model = LBM(*job.numbers, verbosity=0)
    model.fit(pattern)
    return model.row_labels, model.column_labels


def _baseline(name: str, job: Job) -> Labels:
    matrix = without_negative(job.matrix) if name in NON_NEGATIVE else job.matrix
    return _labels(RIVALS[name](*job.numbers, n_init=N_INIT, random_state=job.seed), matrix)


def without_negative(matrix: Any) -> Any:
    """Shift a matrix that has negative entries until it has none."""
    lowest = 0.0 if sp.issparse(matrix) else matrix.min()
    return matrix - lowest if lowest < 0 else matrix
