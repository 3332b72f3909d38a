import pytest

from ccot.datasets import make_latent_blocks


@pytest.fixture(scope="session")
def blocks():
    """A matrix whose 2 x 3 blocks nobody can miss; more rows than columns."""
    return make_latent_blocks([[4, 0, 2], [1, 5, 1]], 120, 60, sigma=0.05, random_state=0)
