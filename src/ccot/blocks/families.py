"""Families of block models behind one Bregman interface: docs/blocks.md has the mathematics.

A block's log-likelihood, times the dispersion, is ``total * natural - exposure * cumulant``, up to
a constant.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

from ccot.runtime.backends import namespace
from ccot.runtime.types import Array

# Exposure at the overall mean that is added to a block, so that its mean stays inside its range.
_SMOOTHING = 0.5

Terms = tuple[Array, Array]


@dataclass(frozen=True)
class Family:
    """One family, as functions of the totals and exposures of blocks."""

    name: str
    # Natural parameters and cumulants, given the overall mean too.
    terms: Callable[[Array, Array, float], Terms]
    # Maximised log-likelihoods, without constants.
    information: Callable[[Array, Array], Array]


def ratio(total: Array, exposure: Array) -> Array:
    """Return totals over exposures, 0 where there is no exposure."""
    xp, held = namespace(total), exposure > 0
    return xp.where(held, total / xp.where(held, exposure, 1.0), 0.0)


def _smooth_mean(total: Array, exposure: Array, overall: float) -> Array:
    return (total + _SMOOTHING * overall) / (exposure + _SMOOTHING)


def _gaussian_terms(total: Array, exposure: Array, overall: float) -> Terms:
    mean = ratio(total, exposure)
    return mean, 0.5 * mean**2


def _gaussian_information(total: Array, exposure: Array) -> Array:
    return 0.5 * ratio(total**2, exposure)


def _poisson_terms(total: Array, exposure: Array, overall: float) -> Terms:
    # The mean of a matrix of zeros has no logarithm.
    xp = namespace(total)
    mean = xp.clip(_smooth_mean(total, exposure, overall), 1e-300, None)
    return xp.log(mean), mean


def _poisson_information(total: np.ndarray, exposure: np.ndarray) -> np.ndarray:
    return xlogy(total, ratio(total, exposure))


def _bernoulli_terms(total: Array, exposure: Array, overall: float) -> Terms:
    xp = namespace(total)
    mean = xp.clip(_smooth_mean(total, exposure, overall), 1e-12, 1 - 1e-12)
    return xp.log(mean) - xp.log1p(-mean), -xp.log1p(-mean)


def _bernoulli_information(total: np.ndarray, exposure: np.ndarray) -> np.ndarray:
    # Rounding can put a total outside its range, where logarithms are infinite or undefined.
    total = np.clip(total, 0.0, exposure)
    mean = ratio(total, exposure)
    return xlogy(total, mean) + xlogy(exposure - total, 1.0 - mean)


FAMILIES = {
    "gaussian": Family("gaussian", _gaussian_terms, _gaussian_information),
    "poisson": Family("poisson", _poisson_terms, _poisson_information),
    "bernoulli": Family("bernoulli", _bernoulli_terms, _bernoulli_information),
}
