"""The scalings that CCOT shows, against costs and transport worked out entry by entry."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from ccot import CCOT
from ccot.runtime.backends import choose_backend
from ccot.scalings.costs import CrossedCosts
from ccot.scalings.draws import CCOTSettings, DrawSolver
from ccot.scalings.sampling import cross
from tests.scalings.full_costs import full_costs
from tests.truth.oracles import scale_exactly, scale_in_logs
from tests.truth.problems import examples, seeds

# Random problems may stop at their limit of iterations; what is compared holds there too.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def slow_costs(square):
    """Squared distances between rows and columns, each summed by itself."""
    return cdist(square, square.T, "sqeuclidean")


def draw_square(rng, kind):
    size = int(rng.integers(2, 7))
    X = rng.normal(size=(size, size))
    if kind == "duplicates":
        X = X[rng.integers(0, size, size)]
    if kind == "zero rows":
        X[rng.uniform(size=size) < 0.4] = 0
    if kind == "rank one":
        X = np.outer(X[0], X[:, 0])
    if kind == "far from zero":
        X = X + 1e4
    return X * 10 ** rng.uniform(-4, 4)


def assert_up_to_a_factor(ours, exact, atol):
    """The coupling has one free factor: what rows gain, columns lose."""
    factor = float(np.mean(ours[0] - exact[0]))
    np.testing.assert_allclose(ours[0] - factor, exact[0], rtol=0, atol=atol)
    np.testing.assert_allclose(ours[1] + factor, exact[1], rtol=0, atol=atol)


KINDS = ["plain", "duplicates", "zero rows", "rank one", "far from zero"]


@pytest.mark.parametrize("kind", KINDS)
@examples(5, 200)
@given(seed=seeds)
def test_scalings_are_those_of_the_costs_themselves(kind, seed):
    """One draw of a square matrix: the paper's algorithm without a vote, in fifty digits."""
    rng = np.random.default_rng(seed)
    X = draw_square(rng, kind)
    cost = slow_costs(X)
    assume(cost.max() > 0)
    reg = float(cost.max() * 10 ** rng.uniform(-1, 1))
    model = CCOT(n_samplings=1, reg=reg, scale_cost=None, tol=1e-12, max_iter=5000).fit(X)
    exact = scale_exactly(-cost / reg, np.zeros(len(X)), 300)
    assume(exact.error < 1e-13)
    assert_up_to_a_factor(
        (model.row_log_scaling_, model.column_log_scaling_),
        (exact.log_row, exact.log_column),
        1e-8 if kind == "far from zero" else 1e-9,
    )


@pytest.mark.parametrize("device", [None, "cpu"], ids=["numpy", "torch"])
@pytest.mark.parametrize("tol", [1e-6, 1e-9], ids=["float32", "float64"])
@examples(5, 200)
@given(seed=seeds, reg=st.sampled_from([0.05, 0.2, 1.0]))
def test_every_draw_of_a_batch_is_solved_for_its_own_costs(device, tol, seed, reg):
    """As draws are solved: in chunks, products only, norms added afterwards."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(5, 30))
    X = rng.normal(size=(3 * size, size)) + 3 * rng.integers(0, 2, (3 * size, 1))
    draws = np.array([rng.choice(len(X), size, replace=False) for _ in range(6)])
    settings = CCOTSettings(reg=reg, device=device, max_iter=3000, tol=tol)
    solver = DrawSolver.prepare(X, draws, settings)
    answer = solver.solve(draws)
    fetch = choose_backend(device).fetch
    # The scale is such that the exponent of the kernel is minus half the squared distance.
    resolution = 16 * float(np.finfo(solver.precision).eps)
    for place, draw in enumerate(draws):
        log_kernel = -slow_costs(X[draw]) / (2 * solver.scale**2)
        log_row, log_column = fetch(answer.log_row)[place], fetch(answer.log_column)[place]
        coupling = np.exp(log_row[:, None] + log_kernel + log_column)
        atol = 4 * resolution * (1 + np.abs(log_kernel).max())
        np.testing.assert_allclose(size * coupling.sum(axis=1), 1, rtol=0, atol=atol)
        error = np.abs(coupling.sum(axis=0) - 1 / size).sum()
        assert error <= max(tol, float(fetch(answer.error)[place])) + atol
        # One more exact iteration from the answer moves no column by more than its error.
        after = scale_in_logs(log_kernel, log_row, 1)
        assert np.abs(after.log_column - log_column).max() <= 2 * size * (error + atol)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@examples(5, 200)
@given(seed=seeds)
def test_costs_of_crossings_are_their_own(dtype, seed):
    """Sums of shared products against distances, crossing by crossing."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(5, 40))
    X = rng.normal(size=(2 * size, size)).astype(dtype)
    first, second = np.split(rng.permutation(2 * size), 2)
    costs = CrossedCosts(size, dtype)(X[[first, second]])
    given_costs = np.concatenate([full_costs(part).copy() for part in costs])
    expected = [slow_costs(X[draw].astype(float)) for draw in cross(first, second)]
    resolution = 16 * float(np.finfo(dtype).eps) * np.max(expected)
    np.testing.assert_allclose(given_costs, expected, rtol=0, atol=resolution)
