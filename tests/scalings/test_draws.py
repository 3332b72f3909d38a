from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
import scipy.sparse as sp

from ccot.datasets import load_simulated, make_latent_blocks
from ccot.scalings.draws import CCOTSettings, DrawSolver
from ccot.scalings.sampling import draw_indices
from ccot.scalings.steps import join


def make_draws(shape, n_draws, seed=0, crossed=False):
    draws = draw_indices(*shape, "cover", np.random.default_rng(seed), crossed)
    return np.array(list(islice(draws, n_draws)))


def make_solver(matrix, draws, **changes):
    return DrawSolver.prepare(matrix, draws, CCOTSettings(**changes))


@pytest.fixture
def blocks():
    return make_latent_blocks([[4, 0, 2], [1, 5, 1]], 60, 40, sigma=0.05, random_state=0)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", ["D1", "D2", "D3", "D4"])
def test_single_precision_gives_the_labels_of_double(name, seed):
    matrix = load_simulated(name, random_state=seed).data
    draws = make_draws(matrix.shape, 10, seed)
    solver = make_solver(matrix, draws)
    assert solver.precision == "float32"
    fast = solver.partitions(draws)
    double = (matrix - solver.offset) / solver.scale
    slow = replace(solver, precision="float64", products=double).partitions(draws)
    for one, other in ((fast.row, slow.row), (fast.column, slow.column)):
        np.testing.assert_array_equal(one.n_clusters, other.n_clusters)
        np.testing.assert_array_equal(one.labels, other.labels)


def test_precision_follows_the_range_of_the_kernel(blocks):
    draws = make_draws(blocks.data.shape, 4)
    assert make_solver(blocks.data, draws, reg=1.0).precision == "float32"
    assert make_solver(blocks.data, draws, reg=1e-3).precision == "float64"


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_scalings_solve_the_transport_of_the_paper(blocks, make):
    """Scalings of the shifted, scaled problem are those of the plain one, up to a factor."""
    matrix = np.where(blocks.data > 1.5, blocks.data, 0.0)
    draw = make_draws(matrix.shape, 1)[0]
    solver = make_solver(make(matrix), draw[None], reg=300.0, scale_cost=None, tol=1e-12)
    answer = solver.solve(draw[None], "float64")
    square = matrix[draw]
    cost = ((square[:, None, :] - square.T[None, :, :]) ** 2).sum(-1)
    coupling = np.exp(answer.log_row[0][:, None] - cost / 300.0 + answer.log_column[0])
    np.testing.assert_allclose(coupling.sum(1), coupling.sum(1)[0], rtol=1e-9)
    np.testing.assert_allclose(coupling.sum(0), coupling.sum(0)[0], rtol=1e-9)


def test_median_cost_is_the_unit_of_reg(blocks):
    draws = make_draws(blocks.data.shape, 1)
    square = blocks.data[draws[0]]
    median = np.median(((square[:, None, :] - square.T[None, :, :]) ** 2).sum(-1))
    one = make_solver(blocks.data, draws, reg=0.5)
    other = make_solver(blocks.data, draws, reg=0.5 * median, scale_cost=None)
    assert one.scale == pytest.approx(other.scale, rel=1e-9)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_placements_reproduce_the_scalings_they_were_made_from(blocks, make):
    matrix = make(np.where(blocks.data > 1.5, blocks.data, 0.0))
    draws = make_draws(matrix.shape, 3)
    solver = make_solver(matrix, draws, tol=1e-12, max_iter=10_000)
    row_placement, column_placement = solver.placements(draws[1])
    answer = solver.solve(draws[1][None], "float64")
    np.testing.assert_allclose(
        row_placement.scaling(matrix[draws[1]]), answer.log_row[0], rtol=0, atol=1e-8
    )
    np.testing.assert_allclose(
        column_placement.scaling(matrix.T), answer.log_column[0], rtol=0, atol=1e-8
    )


def test_sparse_and_dense_draws_give_the_same_partitions(blocks):
    matrix = np.where(blocks.data > 1.5, blocks.data, 0.0)
    draws = make_draws(matrix.shape, 6)
    dense, sparse = (
        make_solver(given, draws).partitions(draws) for given in (matrix, sp.csr_array(matrix))
    )
    np.testing.assert_array_equal(dense.row.labels, sparse.row.labels)
    np.testing.assert_array_equal(dense.column.labels, sparse.column.labels)


@pytest.mark.parametrize("change", [lambda x: x + 1000, lambda x: -3 * x, lambda x: 1e120 * x])
def test_shift_and_scale_of_the_matrix_change_nothing(blocks, change):
    draws = make_draws(blocks.data.shape, 6)
    one = make_solver(blocks.data, draws).partitions(draws)
    other = make_solver(change(blocks.data), draws).partitions(draws)
    np.testing.assert_array_equal(one.row.labels, other.row.labels)
    np.testing.assert_array_equal(one.column.labels, other.column.labels)


def test_chunks_and_threads_change_no_bit(blocks):
    draws = make_draws(blocks.data.shape, 40)
    solver = make_solver(blocks.data, draws)
    small = replace(solver, backend=replace(solver.backend, chunk_bytes=1), n_jobs=2)
    whole, parts = (one.partitions(draws) for one in (solver, small))
    np.testing.assert_array_equal(whole.row.labels, parts.row.labels)
    np.testing.assert_array_equal(whole.n_iter, parts.n_iter)
    first, second = (solver.partitions(part) for part in (draws[:15], draws[15:]))
    joined = join([first, second])
    for name in ("members", "n_iter", "converged"):
        np.testing.assert_array_equal(getattr(joined, name), getattr(whole, name))
    np.testing.assert_array_equal(joined.column.labels, whole.column.labels)


@pytest.mark.parametrize("name", ["D1", "D3", "D4"])
def test_crossings_that_share_products_give_what_each_gives_alone(name):
    matrix = load_simulated(name, random_state=2).data
    draws = make_draws(matrix.shape, 72, crossed=True)
    solver = make_solver(matrix, draws)
    assert [len(chunk) for task in solver.tasks(draws, 1) for chunk in task] == [32, 32, 8]
    shared = solver.partitions(draws)
    # One draw at a time has nobody to share with.
    alone = join([solver.partitions(draw[None]) for draw in draws])
    for one, other in ((shared.row, alone.row), (shared.column, alone.column)):
        np.testing.assert_array_equal(one.n_clusters, other.n_clusters)
        np.testing.assert_array_equal(one.labels, other.labels)


def test_numbers_asked_for_are_found_in_every_draw(blocks):
    draws = make_draws(blocks.data.shape, 5)
    numbers = {"n_row_clusters": 4, "n_column_clusters": 2}
    partitions = make_solver(blocks.data, draws, **numbers).partitions(draws)
    assert (partitions.row.n_clusters == 4).all()
    assert (partitions.column.n_clusters == 2).all()
    assert all(len(np.unique(labels)) == 4 for labels in partitions.row.labels)
