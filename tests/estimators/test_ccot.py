"""What is CCOT's own: draws, votes, threads, sparse matrices of any height."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from ccot import CCOT
from ccot.datasets import load_simulated, make_latent_blocks
from ccot.metrics import coclustering_error, error_rate
from ccot.scalings.ccot import REG_GRID
from ccot.scalings.jumps import DETECTORS
from ccot.scalings.sampling import SAMPLINGS


@pytest.mark.parametrize("name", ["D1", "D2", "D3", "D4"])
def test_the_sets_of_the_paper_are_partitioned(name):
    blocks = load_simulated(name, random_state=0)
    model = CCOT(random_state=0).fit(blocks.data)
    error = coclustering_error(
        blocks.row_labels, blocks.column_labels, model.row_labels_, model.column_labels_
    )
    assert (model.n_row_clusters_, model.n_column_clusters_) == blocks.block_means.shape
    assert error < 0.001


def test_rows_of_the_transposed_matrix_are_its_columns(blocks):
    model, turned = (CCOT(random_state=0).fit(X) for X in (blocks.data, blocks.data.T))
    np.testing.assert_array_equal(turned.row_labels_, model.column_labels_)
    np.testing.assert_array_equal(turned.column_labels_, model.row_labels_)
    np.testing.assert_array_equal(turned.row_confidence_, model.column_confidence_)
    np.testing.assert_allclose(turned.block_means_, model.block_means_.T, rtol=1e-12)
    np.testing.assert_array_equal(turned.predict(blocks.data.T), model.column_labels_)


def test_numbers_are_turned_with_the_matrix(blocks):
    model = CCOT(n_row_clusters=4, n_column_clusters=2, random_state=0).fit(blocks.data.T)
    assert (model.n_row_clusters_, model.n_column_clusters_) == (4, 2)


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("shape", [(120, 60), (60, 120), (50, 50)], ids=str)
def test_all_ways_of_drawing_find_the_blocks(sampling, shape):
    blocks = make_latent_blocks([[4, 0, 2], [1, 5, 1]], *shape, sigma=0.05, random_state=4)
    model = CCOT(sampling=sampling, random_state=0).fit(blocks.data)
    assert error_rate(blocks.row_labels, model.row_labels_) == 0
    assert error_rate(blocks.column_labels, model.column_labels_) == 0


def test_paper_way_of_drawing_labels_even_those_never_drawn(blocks):
    """A single draw sees half of the rows; the closed form places the others."""
    model = CCOT(sampling="uniform", n_samplings=1, random_state=0).fit(blocks.data)
    assert error_rate(blocks.row_labels, model.row_labels_) == 0
    assert (model.row_confidence_ == 0).sum() == 60
    assert (model.column_confidence_ == 1).all()


@pytest.mark.parametrize("detector", DETECTORS)
def test_draws_with_replacement_do_not_depend_on_the_workers(blocks, detector):
    one, three = (
        CCOT(sampling="replacement", detector=detector, random_state=0, n_jobs=n).fit(blocks.data)
        for n in (1, 3)
    )
    np.testing.assert_array_equal(one.row_labels_, three.row_labels_)
    np.testing.assert_array_equal(one.row_confidence_, three.row_confidence_)
    np.testing.assert_array_equal(one.column_labels_, three.column_labels_)


def test_copies_of_a_row_are_no_step():
    """Rows of noise: a row drawn three times, next to another such one, would look like a step."""
    noise = np.random.default_rng(0).normal(size=(120, 100))
    votes = CCOT(sampling="replacement", n_samplings=60, random_state=0).fit(noise)
    assert votes.row_cluster_votes_[1] > 0.9


@pytest.mark.parametrize("detector", DETECTORS)
@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_given_numbers_are_honoured_by_every_draw_and_detector(blocks, sampling, detector):
    options = {"sampling": sampling, "detector": detector, "random_state": 0}
    model = CCOT(4, 5, n_samplings=6, **options).fit(blocks.data)
    assert (model.n_row_clusters_, model.n_column_clusters_) == (4, 5)
    # Draws of three rows, often fewer different ones.
    small = CCOT(3, 2, n_samplings=6, **options).fit(blocks.data[:7, :3])
    assert (small.n_row_clusters_, small.n_column_clusters_) == (3, 2)


@pytest.mark.parametrize("n_samplings", [1, 2, 7, 100])
def test_as_many_draws_as_asked_for(blocks, n_samplings):
    assert CCOT(n_samplings=n_samplings).fit(blocks.data).n_samplings_ == n_samplings
    assert CCOT(n_samplings=n_samplings).fit(blocks.data.T).n_samplings_ == n_samplings


@pytest.mark.parametrize(("shape", "per_pass"), [((120, 60), 2), ((121, 60), 3), ((70, 70), 1)])
def test_auto_stops_at_the_floor_where_all_agree(shape, per_pass):
    blocks = make_latent_blocks([[4, 0, 2], [1, 5, 1]], *shape, sigma=0.05, random_state=0)
    assert CCOT(random_state=0).fit(blocks.data).n_samplings_ == 16 * per_pass


def test_auto_stops_at_the_ceiling_where_nobody_agrees():
    noise = np.random.default_rng(0).normal(size=(60, 30))
    model = CCOT(n_row_clusters=6, n_column_clusters=6, random_state=0).fit(noise)
    assert model.n_samplings_ == 128 * 2
    assert model.row_confidence_.mean() < 0.9


def test_votes_tell_how_often_each_number_was_found():
    blocks = make_latent_blocks([[4, 0, 2], [1, 5, 1]], 60, 30, sigma=0.6, random_state=0)
    model = CCOT(n_samplings=50, random_state=0).fit(blocks.data)
    votes = model.row_cluster_votes_
    assert len(votes) > 1
    assert sum(votes.values()) == pytest.approx(1)
    assert all(share * 50 == pytest.approx(round(share * 50)) for share in votes.values())
    # Only draws that found the winning number add to confidence.
    assert model.row_confidence_.max() <= votes[model.n_row_clusters_] + 0.2
    assert "number of row clusters over the draws" in model.summary()


@pytest.mark.parametrize("sparse", [False, True])
def test_labels_do_not_depend_on_the_number_of_threads(sparse):
    blocks = make_latent_blocks([[4, 0, 2], [1, 5, 1]], 90, 40, sigma=0.6, random_state=0)
    X = sp.csr_array(np.where(blocks.data > 1, blocks.data, 0)) if sparse else blocks.data
    one, two, all_, again = (
        CCOT(n_samplings=60, n_jobs=n_jobs, random_state=5).fit(X) for n_jobs in (1, 2, -1, None)
    )
    for other in (two, all_, again):
        np.testing.assert_array_equal(other.row_labels_, one.row_labels_)
        np.testing.assert_array_equal(other.column_labels_, one.column_labels_)
        np.testing.assert_array_equal(other.row_confidence_, one.row_confidence_)
        np.testing.assert_array_equal(other.row_log_scaling_, one.row_log_scaling_)


def test_a_seed_is_a_promise_and_generators_move_on():
    noise = np.random.default_rng(0).normal(size=(50, 20))

    def confidence(random_state):
        return CCOT(3, 3, n_samplings=10, random_state=random_state).fit(noise).row_confidence_

    np.testing.assert_array_equal(confidence(1), confidence(1))
    np.testing.assert_array_equal(confidence(1), confidence(np.random.default_rng(1)))
    np.testing.assert_array_equal(
        confidence(np.random.RandomState(1)), confidence(np.random.RandomState(1))
    )
    assert not np.array_equal(confidence(1), confidence(2))
    rng = np.random.default_rng(1)
    assert not np.array_equal(confidence(rng), confidence(rng))


def test_reg_is_counted_in_median_costs_or_as_it_is(blocks):
    in_medians = CCOT(n_samplings=2, random_state=0)
    plain = CCOT(reg=200.0, scale_cost=None, n_samplings=2, random_state=0)
    scaled = CCOT(reg=200.0 * 9, scale_cost=None, n_samplings=2, random_state=0)
    np.testing.assert_allclose(
        in_medians.fit(blocks.data).row_log_scaling_,
        in_medians.fit(3 * blocks.data).row_log_scaling_,
        atol=1e-6,
    )
    # Scaling the matrix and the regularisation together changes nothing.
    np.testing.assert_allclose(
        plain.fit(blocks.data).row_log_scaling_,
        scaled.fit(3 * blocks.data).row_log_scaling_,
        atol=1e-6,
    )


def test_reg_is_chosen_by_what_is_reproduced(blocks):
    model = CCOT(reg="cv", random_state=0).fit(blocks.data)
    path = model.reg_path_
    assert set(path.reg) == set(REG_GRID)
    assert path.scores.shape == (len(REG_GRID), 12)
    assert model.reg_ == path.best
    assert path.scores.mean(axis=1).max() > 0.5
    assert error_rate(blocks.row_labels, model.row_labels_) == 0
    again = CCOT(reg="cv", random_state=0).fit(blocks.data)
    np.testing.assert_array_equal(again.reg_path_.scores, path.scores)


def test_reg_cannot_be_chosen_on_a_few_rows():
    with pytest.raises(ValueError, match=r"at least 4 rows and 4 columns, got 30 x 3: set reg"):
        CCOT(reg="cv").fit(np.random.default_rng(0).normal(size=(30, 3)))


def test_no_draw_can_have_more_clusters_than_its_side(blocks):
    with pytest.raises(ValueError, match="=61 is more than the 60 rows in each square draw: pass"):
        CCOT(n_row_clusters=61).fit(blocks.data)
    assert CCOT(n_row_clusters=60, n_samplings=1).fit(blocks.data).n_row_clusters_ == 60


@pytest.mark.parametrize("turned", [False, True], ids=["tall", "wide"])
def test_sparse_matrices_are_never_made_dense(turned):
    n_rows, n_columns = 100_000, 200
    rng = np.random.default_rng(0)
    X = sp.random_array((n_rows, n_columns), density=0.005, random_state=rng, format="csr")
    X = X.T if turned else X
    dense_bytes = 8 * n_rows * n_columns
    model = CCOT(2, 2, n_samplings=4, random_state=0)
    tracemalloc.start()
    try:
        model.fit(X)
        model.predict(X)
        model.predict_columns(X.T)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 0.5 * dense_bytes
    assert len(model.row_labels_) == X.shape[0]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_samplings": 0}, "'n_samplings' parameter"),
        ({"n_samplings": "many"}, "'n_samplings' parameter .*'auto'"),
        ({"sampling": "sobol"}, "'sampling' parameter .* must be a str among"),
        ({"scale_cost": "mean"}, "'scale_cost' parameter .*'median'"),
        ({"n_jobs": 1.5}, "'n_jobs' parameter"),
        ({"random_state": "x"}, "random_state must be an integer"),
    ],
)
def test_bad_parameters_are_named(blocks, params, message):
    with pytest.raises(ValueError, match=message):
        CCOT(**params).fit(blocks.data)
