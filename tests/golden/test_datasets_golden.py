"""The simulators make, from a seed, the very matrices the authors' program was run on."""

import numpy as np
import pytest

from ccot.datasets import load_simulated, make_latent_blocks
from tests.golden.cases import RUN_NAMES, load_run


@pytest.mark.parametrize("name", RUN_NAMES)
def test_make_latent_blocks_is_bit_for_bit_the_reference(name):
    run = load_run(name)
    blocks = make_latent_blocks(
        run.stored["mu"],
        *run.matrix.shape,
        row_proportions=run.stored["prop_rows"],
        column_proportions=run.stored["prop_cols"],
        sigma=float(run.stored["sigma_noise"]),
        random_state=int(run.stored["seed"]),
    )
    np.testing.assert_array_equal(blocks.data, run.matrix)
    np.testing.assert_array_equal(blocks.row_labels, run.row_true)
    np.testing.assert_array_equal(blocks.column_labels, run.column_true)


@pytest.mark.parametrize("name", [name for name in RUN_NAMES if name.startswith("D")])
def test_load_simulated_is_bit_for_bit_the_reference(name):
    run = load_run(name)
    blocks = load_simulated(name[:2], random_state=int(run.stored["seed"]))
    np.testing.assert_array_equal(blocks.data, run.matrix)
    np.testing.assert_array_equal(blocks.block_means, run.stored["mu"])
    assert blocks.sigma == float(run.stored["sigma_noise"])
