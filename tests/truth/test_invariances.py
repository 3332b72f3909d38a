"""What must not change: the order of rows and columns, the unit, the origin, the side.

Two kinds of promises. Where nothing is random, scalings follow their rows to the last digits,
whatever the matrix. Where starts or draws are random they depend on the order of rows, so an
answer may; but where blocks are plain to see the partition is the same, and it is the planted one.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccot import CCOT, CCOTGW, TransportCoclustering, detect_jumps
from ccot.metrics import error_rate
from ccot.scalings.draws import CCOTSettings, DrawSolver
from tests.baselines.rivals import NON_NEGATIVE, RIVALS
from tests.truth.problems import examples, seeds

# Random problems may stop at their limit of iterations; what is compared holds there too.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
ESTIMATORS = {
    "CCOT": lambda: CCOT(random_state=0),
    "CCOTGW, square": lambda: CCOTGW(exact_refinement=False),
    "CCOTGW, kl": lambda: CCOTGW(loss="kl"),
    "TransportCoclustering": lambda: TransportCoclustering(n_init=3, random_state=0),
    **{
        rival.__name__: lambda rival=rival: rival(3, 3, n_init=5, random_state=0)
        for rival in RIVALS
    },
}
each_estimator = pytest.mark.parametrize("name", ESTIMATORS)
# A shift would make negative values of some, and another family of the others.
SHIFTS = [name for name in ESTIMATORS if name not in {rival.__name__ for rival in NON_NEGATIVE}]
MEANS = np.array([[9.0, 1.0, 2.0], [1.0, 6.0, 1.0], [3.0, 1.0, 4.0]])
SIZES = (24, 15, 9), (8, 14, 8)


def plant(seed):
    """Return a matrix whose 3 x 3 blocks nobody can miss, and the two partitions."""
    rng = np.random.default_rng(seed)
    rows, columns = (rng.permutation(np.repeat(np.arange(3), sizes)) for sizes in SIZES)
    return MEANS[rows][:, columns] + 0.01 * rng.normal(size=(48, 30)), rows, columns


def assert_finds(name, X, rows, columns, **params):
    model = ESTIMATORS[name]().set_params(**params).fit(X)
    assert error_rate(rows, model.row_labels_) == 0
    assert error_rate(columns, model.column_labels_) == 0


# Partitions that are plain to see ---------------------------------------------------------------


@each_estimator
@examples(1, 100)
@given(seed=seeds)
def test_partitions_do_not_depend_on_the_order_of_rows_and_columns(name, seed):
    X, rows, columns = plant(seed)
    assert_finds(name, X, rows, columns)
    rng = np.random.default_rng(seed)
    p, q = (rng.permutation(size) for size in X.shape)
    assert_finds(name, X[p][:, q], rows[p], columns[q])


@each_estimator
@examples(1, 100)
@given(seed=seeds, power=st.floats(-30, 30))
def test_partitions_do_not_depend_on_the_unit(name, seed, power):
    X, rows, columns = plant(seed)
    assert_finds(name, 10**power * X, rows, columns)


@pytest.mark.parametrize("name", SHIFTS)
@examples(1, 100)
@given(seed=seeds, power=st.floats(0, 9), sign=st.sampled_from([-1, 1]))
def test_partitions_do_not_depend_on_the_origin(name, seed, power, sign):
    X, rows, columns = plant(seed)
    family = {"family": "gaussian"} if name == "TransportCoclustering" else {}
    assert_finds(name, X + sign * 10**power, rows, columns, **family)


@each_estimator
@examples(1, 100)
@given(seed=seeds)
def test_rows_and_columns_may_change_sides(name, seed):
    X, rows, columns = plant(seed)
    assert_finds(name, X.T, columns, rows)


# Scalings, whatever the matrix ------------------------------------------------------------------


def unstructured(rng, shape):
    """Return a matrix without blocks, in any unit."""
    return 10 ** rng.uniform(-3, 3) * rng.normal(size=shape)


def one_draw(**params):
    """CCOT of a square matrix as it stands: nothing is random."""
    return CCOT(n_samplings=1, tol=1e-11, max_iter=2000, **{"reg": 1.0, **params})


def assert_same_scalings(one, other, rows=slice(None), columns=slice(None), atol=1e-6):
    np.testing.assert_allclose(other.row_log_scaling_, one.row_log_scaling_[rows], atol=atol)
    np.testing.assert_allclose(
        other.column_log_scaling_, one.column_log_scaling_[columns], atol=atol
    )


@examples(15, 500)
@given(seed=seeds)
def test_scalings_of_a_draw_follow_rows_and_columns_that_move_together(seed):
    rng = np.random.default_rng(seed)
    X = unstructured(rng, (int(rng.integers(2, 30)),) * 2)
    p = rng.permutation(len(X))
    assert_same_scalings(one_draw().fit(X), one_draw().fit(X[p][:, p]), p, p)


@examples(15, 500)
@given(seed=seeds, power=st.floats(-6, 6), shift=st.floats(-100, 100))
def test_scalings_of_a_draw_do_not_depend_on_unit_and_origin(seed, power, shift):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(int(rng.integers(2, 30)),) * 2)
    assert_same_scalings(one_draw().fit(X), one_draw().fit(10**power * (X + shift)))


@examples(15, 500)
@given(seed=seeds, power=st.floats(-3, 3))
def test_costs_as_they_are_want_reg_in_their_unit(seed, power):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(int(rng.integers(2, 20)),) * 2)
    reg = float(rng.uniform(5, 50))
    one = one_draw(reg=reg, scale_cost=None).fit(X)
    other = one_draw(reg=10 ** (2 * power) * reg, scale_cost=None).fit(10**power * X)
    assert_same_scalings(one, other)


@examples(10, 300)
@given(seed=seeds)
def test_a_wide_matrix_is_a_tall_one_turned(seed):
    rng = np.random.default_rng(seed)
    X = unstructured(rng, (int(rng.integers(11, 30)), int(rng.integers(3, 10))))
    tall, wide = (CCOT(n_samplings=6, random_state=0).fit(given) for given in (X, X.T))
    np.testing.assert_array_equal(wide.column_labels_, tall.row_labels_)
    np.testing.assert_array_equal(wide.row_labels_, tall.column_labels_)
    np.testing.assert_array_equal(wide.column_log_scaling_, tall.row_log_scaling_)


@pytest.mark.parametrize("loss", ["square", "kl"])
@examples(8, 200)
@given(seed=seeds)
def test_scalings_of_a_barycentre_follow_rows_and_columns(loss, seed):
    rng = np.random.default_rng(seed)
    X = unstructured(rng, rng.integers(3, 25, size=2))
    p, q = (rng.permutation(size) for size in X.shape)
    one, other = (
        CCOTGW(loss=loss, exact_refinement=False, max_iter=5000, sinkhorn_tol=1e-12).fit(given)
        for given in (X, X[p][:, q])
    )
    assert_same_scalings(one, other, p, q)


@pytest.mark.parametrize("loss", ["square", "kl"])
@examples(8, 200)
@given(seed=seeds, power=st.floats(-6, 6), shift=st.floats(-100, 100))
def test_scalings_of_a_barycentre_do_not_depend_on_unit_and_origin(loss, seed, power, shift):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=rng.integers(3, 25, size=2))
    one, other = (
        CCOTGW(loss=loss, exact_refinement=False, max_iter=5000, sinkhorn_tol=1e-12).fit(given)
        for given in (X, 10**power * (X + shift))
    )
    assert_same_scalings(one, other)


@examples(10, 300)
@given(seed=seeds)
def test_ballots_know_rows_by_what_they_hold_not_by_where_they_stand(seed):
    """The same rows in the same draws: the same votes, bit by bit."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(int(rng.integers(12, 40)), 8))
    p = rng.permutation(len(X))
    draws = np.array([rng.choice(len(X), 8, replace=False) for _ in range(5)])
    place = np.argsort(p)
    # The mean of a matrix depends on the order of its rows in the last bit; let it be zero.
    whole = np.round(X * 2**20)
    whole[0, 0] -= whole.sum()
    one, other = (
        DrawSolver.prepare(matrix, chosen, CCOTSettings()).partitions(chosen)
        for matrix, chosen in ((whole, draws), (whole[p], place[draws]))
    )
    np.testing.assert_array_equal(p[other.members], one.members)
    for side in ("row", "column"):
        np.testing.assert_array_equal(getattr(other, side).labels, getattr(one, side).labels)
        np.testing.assert_array_equal(
            getattr(other, side).n_clusters, getattr(one, side).n_clusters
        )


# Jumps ------------------------------------------------------------------------------------------


@examples(30, 1000)
@given(seed=seeds, power=st.floats(-200, 200), shift=st.floats(-1e6, 1e6))
def test_steps_are_found_in_any_unit_and_around_any_origin(seed, power, shift):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(6, 60, size=rng.integers(1, 6))
    steps = [np.sort(rng.uniform(size=size)) + 1000.0 * step for step, size in enumerate(sizes)]
    values = np.concatenate(steps)
    # Rarely, a gap within a step is taken for a jump: then in every unit.
    found = detect_jumps(values)
    assert {*np.cumsum(sizes)[:-1]} <= {*found}
    np.testing.assert_array_equal(detect_jumps(10**power * (values + shift)), found)
