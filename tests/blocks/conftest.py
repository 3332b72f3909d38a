import numpy as np
import pytest

from tests.blocks.matrices import draw


@pytest.fixture(params=["gaussian", "poisson", "bernoulli"])
def family(request):
    return request.param


@pytest.fixture
def planted(family):
    """A matrix of one family with 2 x 3 blocks, and the labels behind it."""
    rng = np.random.default_rng(0)
    rows, columns = rng.integers(0, 2, 40), rng.integers(0, 3, 30)
    return draw(family, rows, columns, rng), rows, columns
