import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import poisson

from ccot.blocks import preparation as prepare
from ccot.blocks.preparation import (
    Preparation,
    _is_scattered,
    _variance_slope,
    choose_family,
    choose_preparation,
    density,
    with_effects,
)
from ccot.blocks.spectrum import low_rank

RNG = np.random.default_rng(0)
COUNTS = RNG.poisson(RNG.choice([2.0, 20.0], size=(60, 1)) * np.ones(40)).astype(float)
REAL = RNG.normal(size=(60, 40))


@pytest.mark.parametrize(
    ("X", "family", "reason"),
    [
        (COUNTS, "poisson", "counts whose variance grows"),
        (1.37 * COUNTS, "poisson", "amounts whose variance grows"),
        (RNG.poisson(0.1, size=(40, 30)), "poisson", "few values differ from zero"),
        ((REAL > 0).astype(float), "bernoulli", "all values are 0 or 1"),
        (REAL, "gaussian", "some values are negative"),
        (REAL + 1e6, "gaussian", "values whose variance does not grow"),
        (REAL + 1e9, "gaussian", "values whose variance does not grow"),
        (np.full((5, 5), 3.0), "gaussian", "values whose variance does not grow"),
        (np.where(REAL > 2, np.nan, COUNTS), "gaussian", "some entries are missing"),
        (np.zeros((5, 5)), "poisson", "few values differ"),
        (np.ones((5, 5)), "bernoulli", "all values are 0 or 1"),
    ],
)
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_the_family_follows_the_values(X, family, reason, make):
    found = choose_family(make(X))
    assert found[0] == family
    assert found[1].startswith(reason)


def slow_slope(X):
    """The power of the mean that the variance follows, bin by bin."""
    mean, noise = low_rank(X), (X - low_rank(X)) ** 2
    bins = np.digitize(mean, np.quantile(mean, np.arange(1, 10) / 10), right=True)
    logs = [[np.log(part[bins == b].mean()) for b in range(10)] for part in (mean, noise)]
    return np.polyfit(*logs, 1)[0]


@pytest.mark.parametrize("scale", [1.0, 1e-3])
@pytest.mark.parametrize("means", [(2.0, 20.0), (20.0, 40.0)])
def test_the_slope_is_that_of_binned_variances(means, scale, monkeypatch):
    rng = np.random.default_rng(0)
    X = scale * rng.poisson(rng.choice(means, size=(60, 1)) * np.ones(40))
    assert _variance_slope(X) == pytest.approx(slow_slope(X), rel=1e-9)
    monkeypatch.setattr(prepare, "_CELLS_AT_ONCE", 100)
    assert _variance_slope(X) == pytest.approx(slow_slope(X), rel=1e-9)


def test_a_slope_within_its_error_is_none():
    X = np.linspace(5, 9, 60)[:, None] + 0.1 * REAL
    assert slow_slope(X) != 0
    assert _variance_slope(X) == 0


def test_counts_are_taken_for_counts_at_a_lower_slope_than_amounts():
    mean = np.geomspace(1e3, 1e6, 60)[:, None]
    X = np.round(mean + 30 * (mean / 1e3) ** 0.15 * REAL)
    assert 0.1 < slow_slope(X) < 0.5
    assert choose_family(X)[0] == "poisson"
    assert choose_family(1.37 * X)[0] == "gaussian"


def test_density_counts_what_is_not_zero():
    X = np.array([[0.0, 1.0], [2.0, 0.0], [0.0, 0.0]])
    stored = sp.csr_array(X)
    stored.data[0] = 0.0
    assert density(X) == pytest.approx(2 / 6)
    assert density(stored) == pytest.approx(1 / 6)
    assert density(np.ones((1, 1))) == 1


def test_sparse_counts_enter_as_logarithms():
    X = RNG.poisson(0.1, size=(40, 30)).astype(float)
    X[:, -3:] = 0
    preparation = choose_preparation(X, "poisson")
    assert preparation.family == "poisson"
    for values in (preparation.matrix(X), preparation.matrix(sp.csr_array(X)).toarray()):
        np.testing.assert_allclose(values, np.log1p(X))
    np.testing.assert_allclose(preparation.rows(X[:3]), np.log1p(X[:3]))
    np.testing.assert_allclose(preparation.columns(X.T[:3]), np.log1p(X.T[:3]))


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_amounts_lose_the_floor_they_share(make):
    X = np.maximum(RNG.gamma(2.0, 50.0, size=(30, 20)), 20.0)
    assert (X == 20).mean() > 0.01
    np.testing.assert_allclose(choose_preparation(make(X), "poisson").matrix(make(X)), X - 20)
    assert choose_preparation(make(X / 40), "poisson").floor == 0.5
    once = np.abs(REAL) + 1  # a smallest value that is nobody else's
    assert choose_preparation(once, "poisson").floor == 0
    assert choose_preparation(once, "poisson").family == "poisson"
    with_zeros = make(5.0 * (REAL > -1))
    assert choose_preparation(with_zeros, "poisson").floor == 0


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_real_values_far_from_zero_lose_their_mean(make):
    far = make(REAL + 1e8)
    preparation = choose_preparation(far, "gaussian")
    assert abs(preparation.matrix(far).mean()) < 1e-7
    np.testing.assert_allclose(preparation.rows(far), REAL - REAL.mean(), atol=1e-6)
    assert choose_preparation(make(REAL + 5), "gaussian").floor == 0
    assert choose_preparation(make(1e-6 * REAL + 5), "gaussian").floor == pytest.approx(5)
    assert choose_preparation(make(4 * REAL + 5000), "gaussian").floor == pytest.approx(5000, 1e-3)
    assert choose_preparation(make(4 * REAL + 3500), "gaussian").floor == 0
    # Zeros of a sparse matrix stay what they are.
    assert choose_preparation(sp.csr_array((REAL > -1) * 7.0), "gaussian").floor == 0
    assert preparation.family == "gaussian"


def test_zeros_and_ones_stay_as_they_are():
    assert choose_preparation(np.ones((9, 8)), "bernoulli") == Preparation("bernoulli")


def test_tables_of_traits_are_put_on_one_scale():
    X = np.hstack([(REAL[:, :10] > 0).astype(float), 1000 * REAL[:, 10:]])
    X[3, 4] = np.nan
    X[0, 10:], X[1, 10:] = 0, 1
    preparation = choose_preparation(X, "gaussian")
    assert preparation.family == "gaussian"
    np.testing.assert_allclose(np.nanstd(preparation.matrix(X), axis=0), 1.0)
    np.testing.assert_allclose(preparation.rows(X[:5]), preparation.matrix(X)[:5])
    np.testing.assert_allclose(preparation.columns(X.T[:5]), preparation.matrix(X).T[:5])
    assert choose_preparation(1000 * REAL, "gaussian").column_scale is None
    X[:, 0] = 1
    np.testing.assert_array_equal(choose_preparation(X, "gaussian").matrix(X)[:, 0], 1)


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_effects_are_taken_out_to_the_last(share):
    rows, columns = RNG.normal(size=(60, 1)), RNG.normal(size=40)
    X = rows + columns + 7
    X[RNG.uniform(size=X.shape) < share] = np.nan
    preparation = with_effects(Preparation("gaussian"), X)
    np.testing.assert_allclose(np.nan_to_num(preparation.matrix(X)), 0, atol=1e-6)
    np.testing.assert_array_equal(np.isnan(preparation.matrix(X)), np.isnan(X))


def test_unseen_points_have_effects_of_their_own():
    X = REAL + 5 * RNG.normal(size=(60, 1)) + 5 * RNG.normal(size=40)
    preparation = with_effects(Preparation("gaussian"), X)
    prepared = preparation.matrix(X)
    np.testing.assert_allclose(prepared.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(prepared.mean(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(preparation.rows(X), prepared, atol=1e-12)
    np.testing.assert_allclose(preparation.rows(X + 100), prepared, atol=1e-12)
    centred = prepared.T - prepared.T.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(
        preparation.columns(X.T + 50) - preparation.columns(X.T), 0, atol=1e-11
    )
    found = preparation.columns(X.T)
    np.testing.assert_allclose(found - found.mean(axis=1, keepdims=True), centred, atol=1e-12)


def test_effects_of_rows_are_what_is_taken_out_of_them():
    X = REAL + 5 * RNG.normal(size=(60, 1)) + 5 * RNG.normal(size=40)
    X[0, 1:] = np.nan
    preparation = with_effects(Preparation("gaussian"), X)
    effects = preparation.effects_of(X)
    np.testing.assert_allclose(
        preparation.rows(X) + effects[:, None], X - preparation.column_effect, atol=1e-12
    )
    # The effect of a single entry is all of it.
    assert effects[0] == pytest.approx(X[0, 0] - preparation.column_effect[0])
    assert Preparation("gaussian").effects_of(X) is None


def test_effects_of_sparse_matrices_are_those_of_dense_ones():
    X = np.where(REAL > 0, REAL, 0.0)
    dense, sparse = (with_effects(Preparation("gaussian"), given) for given in (X, sp.csr_array(X)))
    np.testing.assert_allclose(sparse.row_effect, dense.row_effect)
    np.testing.assert_allclose(sparse.matrix(sp.csr_array(X)), dense.matrix(X))
    np.testing.assert_allclose(sparse.rows(sp.csr_array(X)), dense.rows(X))


def with_outliers(n_outliers=20, size=50.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 40))
    X.flat[rng.choice(X.size, n_outliers, replace=False)] = size
    return X


@pytest.mark.parametrize("size", [50.0, -50.0])
def test_few_values_that_are_scattered_far_out_are_brought_in(size, monkeypatch):
    X = with_outliers(size=size)
    X[0, :3] = np.nan
    preparation = choose_preparation(X, "gaussian")
    centre = np.nanmedian(X)
    reach = 5 * 1.4826 * np.nanmedian(np.abs(X - centre))
    np.testing.assert_allclose(preparation.limits, (centre - reach, centre + reach), rtol=1e-12)
    expected = np.where(size == X, centre + np.sign(size) * reach, X)
    np.testing.assert_array_equal(preparation.matrix(X), expected)
    np.testing.assert_array_equal(preparation.rows(X[:5]), expected[:5])
    np.testing.assert_array_equal(preparation.columns(X.T[:5]), expected.T[:5])
    filled = np.nan_to_num(X[:5])
    np.testing.assert_array_equal(preparation.rows(sp.csr_array(filled)), preparation.rows(filled))
    monkeypatch.setattr(prepare, "_CELLS_AT_ONCE", X.size // 2 + 1)
    low, high = choose_preparation(X, "gaussian").limits
    assert -6 < low < -4 < 4 < high < 6


@pytest.mark.parametrize("unit", [1e-3, 1.0])
def test_a_single_value_is_brought_in_whatever_the_unit_and_the_centre(unit):
    X = with_outliers(n_outliers=1)
    limits = choose_preparation(X, "gaussian").limits
    moved = choose_preparation(unit * (X + 20), "gaussian").limits
    np.testing.assert_allclose(moved, unit * (np.array(limits) + 20), rtol=1e-12)


def test_limits_of_a_large_matrix_are_about_those_of_all_its_entries(monkeypatch):
    X = np.random.default_rng(0).normal(size=(400, 300))
    X[:, ::2] *= 0.6
    X.flat[::4001] = 50.0
    every = choose_preparation(X, "gaussian").limits
    monkeypatch.setattr(prepare, "_CELLS_AT_ONCE", X.size // 10)
    some = choose_preparation(X, "gaussian").limits
    np.testing.assert_allclose(some, every, rtol=0.05)
    assert choose_preparation(np.asfortranarray(X), "gaussian").limits == some


@pytest.mark.parametrize("cells_at_once", [100, 2**20])
@pytest.mark.parametrize(
    "why",
    [
        "none",
        "many",
        "a row",
        "a column",
        "half are equal",
        "nearly all are equal",
        "traits",
        "sparse",
        "counts",
    ],
)
def test_values_far_out_stay_where_they_are_no_outliers(why, cells_at_once, monkeypatch):
    monkeypatch.setattr(prepare, "_CELLS_AT_ONCE", cells_at_once)
    X = with_outliers(n_outliers=60 if why == "many" else 0 if why == "none" else 4)
    if why == "a row":
        X[5, :20] = 50.0
    if why == "a column":
        X[:30, 5] = 50.0
    if why == "half are equal":
        X[:, ::2] = X[:31, 1] = 0.0
    if why == "nearly all are equal":
        X = np.where(X == 50, X, 3.0)
    if why == "traits":
        X[:, :10] = X[:, :10] > 0
    if why == "counts":
        X = np.round(np.abs(X))
    family = "poisson" if why == "counts" else "gaussian"
    given = sp.csr_array(X) if why == "sparse" else X
    assert choose_preparation(given, family).limits is None


@pytest.mark.parametrize("mean", [0.01, 0.1, 1.0, 20.0, 400.0])
def test_counts_are_scattered_as_far_as_a_poisson_law_gives_such_a_largest_one(mean):
    for largest in range(int(mean) + 1, int(mean + 10 * mean**0.5) + 9):
        counts = np.full(100_000, mean)
        counts[7] = largest
        chance = poisson.sf(largest - 1, mean)
        if not 1e-8 < chance < 1e-5:
            assert _is_scattered(counts) == (chance > 1e-5)


def test_blocks_far_from_most_of_the_matrix_stay_apart():
    """What is rare but not scattered is structure: a hundredth of the matrix, in two blocks."""
    X = 0.01 * np.random.default_rng(0).normal(size=(160, 140))
    X[:16, :7] += 10
    X[:16, 7:14] += 20
    assert np.mean(X > 1) == pytest.approx(0.01)
    assert choose_preparation(X, "gaussian").limits is None
