"""What the stored comparison has beyond the paper's protocol: other readings, starts and matrices.

A variant is named by its method and, behind a comma, by what is done differently. A set may have
other proportions, and a noise may be named by its standard deviation.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from sklearn.utils import Bunch

from benchmarks.printed import PrintedVote
from ccot.datasets import load_simulated, make_latent_blocks
from ccot.estimators.ccot import CCOT
from ccot.estimators.ccot_gw import CCOTGW
from ccot.experiments import protocol
from ccot.experiments.protocol import MAKERS, RIVALS, Task, Trial

# The paper's table calls the proportions of D3 equal, the published parameters make them unequal.
D3_EQUAL = "D3 equal"
_CCOT, _BY_STEP = (partial(make, sampling="uniform") for make in (CCOT, PrintedVote))
VARIANTS: dict[str, Callable[..., Any]] = {
    "CCOT, authors' detector": partial(_CCOT, detector="authors"),
    "CCOT, printed detector": partial(_CCOT, detector="paper"),
    "CCOT, vote by step number": _BY_STEP,
    "CCOT, authors' detector, vote by step number": partial(_BY_STEP, detector="authors"),
    "CCOT, with replacement": partial(CCOT, sampling="replacement"),
    "CCOT-GW, authors' detector": partial(CCOTGW, detector="authors"),
    "CCOT-GW, printed detector": partial(CCOTGW, detector="paper"),
    "CCOT-GW, KL loss": partial(CCOTGW, loss="kl"),
    "CCOT-GW, KL loss, authors' detector": partial(CCOTGW, loss="kl", detector="authors"),
}
# RBC is started by K-means in the paper, too.
RANDOM_STARTS = {
    f"{name}, random starts": partial(make, init="random")
    for name, make in RIVALS.items()
    if name != "RBC"
}
ALL_MAKERS: dict[str, Callable[..., Any]] = {**MAKERS, **VARIANTS, **RANDOM_STARTS}
ALL_METHODS = tuple(ALL_MAKERS)
_SIGMA = "sigma "


def at_sigma(sigma: float) -> str:
    """Return the name of an overlap with noise of this standard deviation."""
    return f"{_SIGMA}{sigma:.4g}"


def sigma_of(overlap: str) -> float | None:
    """Return the noise of an overlap that is named by it."""
    return float(overlap.removeprefix(_SIGMA)) if overlap.startswith(_SIGMA) else None


def load_matrix(data_set: str, overlap: str, seed: int) -> Bunch:
    """Draw a matrix of a set, with its truth, at any noise and also with equal proportions."""
    sigma = sigma_of(overlap)
    noise: dict[str, Any] = {"overlap": overlap} if sigma is None else {"sigma": sigma}
    drawn = load_simulated(data_set.split()[0], random_state=seed, **noise)
    if data_set != D3_EQUAL:
        return drawn
    return make_latent_blocks(
        drawn.block_means, *drawn.data.shape, sigma=drawn.sigma, random_state=seed
    )


def run_task(task: Task) -> Trial:
    """Run a task of the protocol, or one with a method, a set or a noise of this module."""
    return protocol.run_task(task, load_matrix, ALL_MAKERS)
