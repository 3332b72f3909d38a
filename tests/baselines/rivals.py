"""The seven rivals, and what several tests ask of them."""

import numpy as np
import pytest

from ccot.baselines import (
    DoubleKMeans,
    GaussianLatentBlockModel,
    InformationTheoreticCoclustering,
    ResidualBayesianCoclustering,
    TriNMF,
    TwoSidedKMeans,
    TwoSidedNMF,
)
from ccot.metrics import error_rate

RIVALS = [
    TwoSidedKMeans,
    TwoSidedNMF,
    DoubleKMeans,
    TriNMF,
    GaussianLatentBlockModel,
    InformationTheoreticCoclustering,
    ResidualBayesianCoclustering,
]
NON_NEGATIVE = [TwoSidedNMF, TriNMF, InformationTheoreticCoclustering]
each_rival = pytest.mark.parametrize("rival", RIVALS)


def assert_never_rises(path, scale):
    """A criterion may rise by rounding only, relative to the size of what it is computed from."""
    assert np.isfinite(path).all()
    assert np.diff(path).max(initial=0.0) <= 1e-11 * scale


def assert_same_partition(labels, others):
    assert len(labels) == len(others)
    assert error_rate(others, labels) == 0
