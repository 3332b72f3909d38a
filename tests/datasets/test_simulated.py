import numpy as np
import pytest
from sklearn.cluster import KMeans

from ccot.datasets import load_simulated, make_latent_blocks
from ccot.metrics import error_rate

SETS = {
    "D1": ((600, 300), (3, 3), 0.010, 10.5),
    "D2": ((600, 300), (3, 3), 0.015, 8.0),
    "D3": ((300, 200), (2, 4), 0.020, 12.0),
    "D4": ((300, 300), (5, 4), 0.015, 2.2),
}
each_set = pytest.mark.parametrize("name", SETS)


@each_set
def test_sizes_blocks_and_noise_are_those_of_the_paper(name):
    shape, n_clusters, published, calibrated = SETS[name]
    blocks = load_simulated(name, random_state=0)
    assert blocks.data.shape == shape
    assert blocks.row_labels.shape == (shape[0],)
    assert blocks.column_labels.shape == (shape[1],)
    assert blocks.block_means.shape == n_clusters
    assert blocks.sigma == published
    assert load_simulated(name, 0, overlap="calibrated").sigma == calibrated
    assert load_simulated(name, 0, overlap="calibrated", sigma=3).sigma == 3.0
    assert blocks.name == name
    assert name in blocks.DESCR


@each_set
def test_overlap_changes_the_noise_and_nothing_else(name):
    published = load_simulated(name, 5)
    calibrated = load_simulated(name, 5, overlap="calibrated")
    np.testing.assert_array_equal(published.row_labels, calibrated.row_labels)
    np.testing.assert_array_equal(published.column_labels, calibrated.column_labels)
    noise = [
        (blocks.data - blocks.block_means[blocks.row_labels][:, blocks.column_labels])
        / blocks.sigma
        for blocks in (published, calibrated)
    ]
    np.testing.assert_allclose(*noise, atol=1e-10)


@each_set
def test_published_noise_is_no_challenge_to_k_means(name):
    blocks = load_simulated(name, 1)
    k_means = KMeans(len(blocks.block_means), n_init=10, random_state=0)
    assert error_rate(blocks.row_labels, k_means.fit_predict(blocks.data)) == 0.0


def test_noise_has_the_promised_mean_and_deviation():
    blocks = make_latent_blocks([[1, -2], [3, 0]], 400, 500, sigma=2.5, random_state=0)
    noise = blocks.data - blocks.block_means[blocks.row_labels][:, blocks.column_labels]
    assert noise.mean() == pytest.approx(0, abs=5 * 2.5 / np.sqrt(noise.size))
    assert noise.std() == pytest.approx(2.5, rel=0.01)


def test_proportions_are_followed_and_scaled():
    blocks = make_latent_blocks(
        np.zeros((3, 2)),
        20_000,
        50,
        row_proportions=[1, 2, 7],
        column_proportions=[1, 0],
        random_state=0,
    )
    np.testing.assert_allclose(blocks.row_proportions, [0.1, 0.2, 0.7])
    np.testing.assert_allclose(np.bincount(blocks.row_labels) / 20_000, [0.1, 0.2, 0.7], atol=0.02)
    assert not blocks.column_labels.any()


def test_without_noise_the_blocks_are_constant():
    blocks = make_latent_blocks([[1, 2], [3, 4]], 10, 8, sigma=0, random_state=0)
    expected = blocks.block_means[blocks.row_labels][:, blocks.column_labels]
    np.testing.assert_array_equal(blocks.data, expected)


def test_a_seed_is_a_promise():
    first, second = (load_simulated("D3", 7).data for _ in range(2))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first, load_simulated("D3", np.random.default_rng(7)).data)
    np.testing.assert_array_equal(first, load_simulated("D3", np.int64(7)).data)
    assert not np.array_equal(first, load_simulated("D3", 8).data)


def test_generators_move_on_and_none_is_random():
    rng = np.random.default_rng(7)
    assert not np.array_equal(load_simulated("D3", rng).data, load_simulated("D3", rng).data)
    assert not np.array_equal(load_simulated("D3").data, load_simulated("D3").data)


def test_legacy_random_states_are_welcome():
    first, second = (load_simulated("D3", np.random.RandomState(7)).data for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("rng", [7, np.random.SeedSequence(7), np.random.PCG64(7)])
def test_rng_is_another_name_of_random_state(rng):
    np.testing.assert_array_equal(
        load_simulated("D3", rng=rng).data, load_simulated("D3", random_state=7).data
    )
    with pytest.raises(TypeError, match="pass one of them"):
        load_simulated("D3", 7, rng=7)


def test_the_recipes_cannot_be_changed_through_a_result():
    load_simulated("D1", 0).block_means[:] = 0
    assert load_simulated("D1", 0).block_means.all()


def test_unknown_names_get_the_known_ones():
    with pytest.raises(ValueError, match="'D5': choose one of D1, D2, D3, D4"):
        load_simulated("D5")
    with pytest.raises(ValueError, match="overlap must be 'published' or 'calibrated', not 'big'"):
        load_simulated("D1", overlap="big")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"block_means": [1, 2]}, r"block_means must be a table.*\(2,\)"),
        ({"block_means": [[]]}, "block_means must be a table"),
        ({"block_means": [[1, np.nan]]}, "block_means must be finite"),
        ({"n_rows": 0}, "n_rows must be a positive integer, not 0"),
        ({"n_columns": 2.5}, "n_columns must be a positive integer, not 2.5"),
        ({"row_proportions": [1, 2, 3]}, "row_proportions must have one entry for each of the 2"),
        ({"column_proportions": [-1, 2]}, "column_proportions must be finite, not negative"),
        ({"column_proportions": [0, 0]}, "column_proportions must be finite, not negative"),
        ({"sigma": -1}, "sigma must be finite and not negative, not -1"),
        ({"sigma": np.nan}, "sigma must be finite"),
        ({"sigma": "1"}, "sigma must be finite"),
        ({"random_state": "x"}, "random_state must be an integer"),
    ],
)
def test_bad_parameters_are_named(change, message):
    good = {"block_means": [[0, 1], [1, 0]], "n_rows": 4, "n_columns": 4}
    with pytest.raises(ValueError, match=message):
        make_latent_blocks(**(good | change))
