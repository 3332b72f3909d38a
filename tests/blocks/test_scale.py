"""Values or weights in another unit: what has no unit stays, to the last digits or nearly so."""

import numpy as np
import pytest

from ccot.blocks.criteria import _log_prior_of_means, log_likelihood
from ccot.blocks.hierarchy import share_kept
from ccot.blocks.placement import place_side
from ccot.blocks.preparation import Preparation
from ccot.blocks.problem import information, make_blocks, make_problem, pearson_dispersion
from ccot.blocks.refine import _halve, _leading_half
from tests.blocks.matrices import draw

# So small that everything that is summed lies far below one; a power of two costs no digit.
UNIT = 2.0**-30


def matrix(family, n_rows=20, n_columns=15):
    rows, columns = np.arange(n_rows) % 2, np.arange(n_columns) % 3
    return draw(family, rows, columns, np.random.default_rng(0)), rows, columns


@pytest.fixture
def weighted():
    """Problems of real values whose weights are in two units."""
    X, rows, columns = matrix("gaussian")
    weights = np.random.default_rng(1).uniform(0.5, 2.0, 15)
    return [make_problem(X, "gaussian", unit * weights) for unit in (1.0, UNIT)], rows, columns


@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_the_share_that_blocks_keep_has_no_unit(family):
    X, rows, columns = matrix(family)
    shares = []
    for unit in (1.0, UNIT):
        problem = make_problem(unit * X, family)
        finest = make_blocks(problem, np.arange(20), np.arange(15))
        shares.append(share_kept(problem, finest, make_blocks(problem, rows, columns)))
    assert 0 < shares[0] < 1
    assert shares[1] == pytest.approx(shares[0], rel=1e-12)


def test_a_perfect_fit_is_as_perfect_in_another_unit():
    X = np.array([[1.0, 2.0], [5.0, 3.0]])
    one, other = (
        log_likelihood(p, information(p, make_blocks(p, np.arange(2), np.arange(2))))
        for p in (make_problem(unit * X, "gaussian") for unit in (1.0, UNIT))
    )
    # Each of four entries is denser by one over the unit.
    assert other == pytest.approx(one - 4 * np.log(UNIT), rel=1e-12)


def test_means_do_not_depend_on_the_unit_of_weights(weighted):
    one, other = weighted[0]
    assert other.overall == pytest.approx(one.overall, rel=1e-14)


def test_the_prior_of_means_does_not_depend_on_the_unit_of_weights(weighted):
    (one, other), rows, columns = weighted
    priors = [_log_prior_of_means(p, *p.table(rows, columns, (2, 3))) for p in (one, other)]
    assert priors[0] < 0
    assert priors[1] == pytest.approx(priors[0], rel=1e-12)


@pytest.mark.parametrize("split", [_leading_half, _halve])
def test_splits_do_not_depend_on_the_unit_of_weights(weighted, split):
    problems, rows, columns = weighted
    one, other = (split(p, p.axes[0].profiles(columns, 3), 0 * rows, 1) for p in problems)
    assert 0 < one.mean() < 1
    np.testing.assert_array_equal(one, other)


def test_splits_do_not_depend_on_the_unit_of_amounts():
    """Rows of one kind, large and small, are split by what noise makes of each."""
    X, rows, _ = matrix("poisson", n_rows=40)
    X = np.linspace(0.3, 2.0, 20)[:, None] ** 4 * X[rows == 0]
    one, other = (
        _leading_half(p, p.axes[0].profiles(np.arange(15), 15), np.zeros(20, int), 1)
        for p in (make_problem(unit * X, "poisson") for unit in (1.0, UNIT))
    )
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("with_blocks", [False, True])
def test_the_dispersion_of_amounts_has_their_unit(with_blocks):
    X, rows, columns = matrix("poisson")
    one, other = (
        pearson_dispersion(p, make_blocks(p, rows, columns) if with_blocks else None)
        for p in (make_problem(unit * X, "poisson") for unit in (1.0, UNIT))
    )
    assert other == pytest.approx(UNIT * one, rel=1e-9, abs=0)


@pytest.mark.parametrize("axis", [0, 1])
def test_small_amounts_have_the_exposure_of_the_fit(axis):
    X, rows, columns = matrix("poisson")
    problem = make_problem(UNIT * X, "poisson")
    blocks = make_blocks(problem, rows, columns)
    placement = place_side(problem, Preparation("poisson"), blocks, axis)
    axis_view = placement.axis_view(UNIT * (X.T if axis else X))
    np.testing.assert_allclose(axis_view.exposure, problem.axes[axis].exposure, rtol=1e-12)
