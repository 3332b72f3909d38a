import pytest

from ccot.datasets import make_latent_blocks


@pytest.fixture(scope="session")
def blocks():
    """A matrix without negative entries whose 3 x 3 blocks nobody can miss."""
    means = [[9, 1, 2], [1, 8, 1], [3, 1, 7]]
    return make_latent_blocks(means, 60, 45, sigma=0.1, random_state=0)
