import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import poisson

from ccot.blocks import preparation as prepare
from ccot.blocks.preparation import (
    Preparation,
    _is_scattered,
    _variance_slope,
    are_device_counts,
    choose_effects,
    choose_family,
    choose_preparation,
    density,
    is_mostly_zero,
    settle_family,
    with_effects,
    with_sentence,
)
from ccot.blocks.spectrum import low_rank
from ccot.runtime.backends import choose_backend
from ccot.runtime.device_csr import to_scipy

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


def test_a_slope_counts_where_it_is_more_than_three_standard_errors():
    found = []
    for power in np.linspace(0.0, 1.0, 21):
        mean = np.linspace(5, 9, 60)[:, None]
        X = mean + 0.1 * mean**power * REAL
        log_mean = np.log([np.mean(part) for part in np.split(np.sort(low_rank(X), axis=None), 10)])
        # Of ten bins of 240 entries.
        error = np.sqrt(2 / 240) / np.sqrt(np.sum((log_mean - log_mean.mean()) ** 2))
        slope = slow_slope(X)
        expected = slope if abs(slope) > 3 * error else 0.0
        assert _variance_slope(X) == pytest.approx(expected, rel=1e-9)
        found.append(expected != 0)
    assert 0 < np.mean(found) < 1


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


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_matrices_are_mostly_zero_below_a_quarter(make):
    X = np.zeros((2, 20))
    X[:, :5] = 1
    assert not is_mostly_zero(make(X))
    X[0, 0] = 0
    assert is_mostly_zero(make(X))
    # Zeros that are stored count as zeros.
    stored = sp.csr_array(np.ones((2, 20)))
    assert not is_mostly_zero(stored)
    stored.data[9:] = 0
    assert is_mostly_zero(stored)


def sent(X):
    return choose_backend("cpu", "float64").send(sp.csr_array(X))


@pytest.mark.usefixtures("one_torch_thread")
@pytest.mark.parametrize(
    ("values", "are_counts"),
    [
        ([1.0] * 9, True),
        ([1.0] * 10, False),
        ([1.0] * 9 + [0.0] * 9, True),
        ([0.5] * 5, True),
        ([1.0] * 8 + [-1.0], False),
        ([0.0] * 9, False),
    ],
)
def test_counts_on_a_device_are_few_and_not_negative(values, are_counts):
    """Of forty entries less than ten may differ from zero; others that are stored do not count."""
    place = np.arange(len(values))
    X = sp.csr_array((values, (place // 5, place % 5)), shape=(8, 5))
    assert X.nnz == len(values)
    assert are_device_counts(sent(X)) == are_counts


@pytest.mark.usefixtures("one_torch_thread")
def test_counts_on_a_device_are_prepared_there():
    X = sp.csr_array(RNG.poisson(0.1, size=(40, 30)).astype(float))
    few = "few values differ from zero and none is negative"
    assert settle_family(sent(X), "auto", "auto", "auto") == ("poisson", few)
    assert settle_family(sent(X), "poisson", "none", "auto") == ("poisson", "chosen by the user")
    logarithm = choose_preparation(sent(X), "poisson")
    assert logarithm == Preparation("poisson", logarithm=True)
    assert choose_preparation(sent(X), "poisson", "none") == Preparation("poisson")
    expected = X.toarray()
    np.testing.assert_allclose(
        to_scipy(logarithm.matrix(sent(X))).toarray(), np.log1p(expected), rtol=1e-15
    )
    given = sent(X)
    assert Preparation("poisson").matrix(given) is given


def test_a_family_that_is_given_is_taken():
    for family in ("gaussian", "poisson", "bernoulli"):
        X = (REAL > 0).astype(float)
        assert settle_family(X, family, "auto", "auto") == (family, "chosen by the user")
        assert settle_family(sp.csr_array(X), family, "log", "rows")[0] == family
    assert settle_family(REAL, "gaussian", "auto", "auto")[0] == "gaussian"
    assert settle_family(abs(REAL), "poisson", "auto", "auto")[0] == "poisson"
    assert settle_family(sp.csr_array((5, 4)), "poisson", "auto", "auto")[0] == "poisson"


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_a_family_that_values_do_not_fit_is_refused(make):
    with pytest.raises(ValueError, match="the poisson family needs counts or amounts"):
        settle_family(make(REAL), "poisson", "auto", "auto")
    with pytest.raises(ValueError, match="the bernoulli family needs zeros and ones"):
        settle_family(make(COUNTS), "bernoulli", "auto", "auto")


@pytest.mark.parametrize("family", ["auto", "gaussian"])
def test_a_matrix_without_any_value_is_refused(family):
    with pytest.raises(ValueError, match="X contains NaN only"):
        settle_family(np.full((5, 4), np.nan), family, "auto", "auto")
    X = np.where(np.eye(5) > 0, 1.0, np.nan)
    assert settle_family(X, family, "auto", "auto")[0] == "gaussian"
    assert settle_family(sp.csr_array((5, 4)), family, "auto", "auto")[0] in ("poisson", family)


@pytest.mark.parametrize(
    ("X", "family", "reason"),
    [
        (COUNTS, "poisson", "counts whose variance grows"),
        (1.37 * COUNTS, "gaussian", "rows differ in level (8"),
        (sp.csr_array(1.37 * COUNTS), "poisson", "amounts whose variance grows"),
        (1.37 * COUNTS.T, "poisson", "amounts whose variance grows"),
        (REAL + 4 * np.arange(60)[:, None], "gaussian", "some values are negative"),
        (sp.csr_array(REAL), "gaussian", "some values are negative"),
    ],
    ids=["counts", "amounts", "sparse", "columns", "real", "sparse real"],
)
def test_amounts_of_rows_that_differ_in_level_are_real_values(X, family, reason):
    for scale in ("auto", "none"):
        found = settle_family(X, "auto", scale, "auto")
        assert found[0] == family
        assert found[1].startswith(reason)


@pytest.mark.parametrize(
    ("scale", "center"),
    [("standard", "auto"), ("log", "auto"), ("auto", "none"), ("none", "rows"), ("robust", "both")],
)
def test_a_scale_or_a_center_is_for_real_values(scale, center):
    found = settle_family(COUNTS, "auto", scale, center)
    assert found == ("gaussian", "scale or center was given")


@pytest.mark.parametrize("family", ["gaussian", "poisson"])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_logarithms_are_taken_as_asked(family, make):
    preparation = choose_preparation(make(0.3 * COUNTS), family, "log")
    assert preparation == Preparation(family, logarithm=True)
    assert choose_preparation(sp.csr_array((5, 4)), family, "log").logarithm
    X = COUNTS.copy()
    X[3, 4] = -0.5
    with pytest.raises(ValueError, match="needs non-negative values"):
        choose_preparation(make(X), family, "log")


def test_logarithms_leave_out_what_is_missing():
    X = np.where(REAL > 1, np.nan, COUNTS)
    preparation = choose_preparation(X, "gaussian", "log")
    np.testing.assert_allclose(preparation.matrix(X), np.log1p(X))
    with pytest.raises(ValueError, match="needs non-negative values"):
        choose_preparation(X - 20, "gaussian", "log")


def test_columns_are_divided_by_the_spread_asked_for():
    X = REAL * np.arange(1, 41)
    X[::7, 3] = np.nan
    X[:, 4] = 5.0
    X[1:50, 5] = 2.0
    for scale in ("standard", "robust"):
        preparation = choose_preparation(X, "gaussian", scale)
        expected = np.nanstd(X, axis=0)
        expected[4] = 1
        if scale == "robust":
            low, high = np.nanquantile(X, (0.25, 0.75), axis=0)
            # A column of which most values are equal is divided by its standard deviation.
            assert (np.flatnonzero(high == low) == [4, 5]).all()
            expected = np.where(high > low, (high - low) / 1.349, expected)
        np.testing.assert_allclose(preparation.matrix(X), X / expected, rtol=1e-12)
        assert preparation.family == "gaussian"
        assert preparation.limits is None


@pytest.mark.parametrize("scale", ["standard", "robust"])
def test_scales_of_columns_are_refused_where_there_are_none(scale):
    for X, family, what in (
        (COUNTS, "poisson", "the poisson family"),
        ((REAL > 0) * 1.0, "bernoulli", "the bernoulli family"),
        (sp.csr_array(REAL), "gaussian", "a sparse matrix"),
    ):
        with pytest.raises(ValueError, match=f'^scale="{scale}" does not work with {what}: pass'):
            choose_preparation(X, family, scale)


def test_values_keep_their_scale_where_asked():
    few = RNG.poisson(0.1, size=(40, 30)).astype(float)
    assert choose_preparation(few, "poisson", "none") == Preparation("poisson")
    traits = np.hstack([(REAL[:, :10] > 0).astype(float), 1000 * REAL[:, 10:]])
    assert choose_preparation(traits, "gaussian", "none").column_scale is None
    assert choose_preparation(with_outliers(), "gaussian", "none").limits is not None


@pytest.mark.parametrize(
    ("center", "by_row", "by_column", "done"),
    [
        ("none", False, False, "row and column levels kept"),
        ("rows", True, False, "row means subtracted"),
        ("columns", False, True, "column means subtracted, row levels kept"),
        ("both", True, True, "row and column means subtracted"),
    ],
)
@pytest.mark.parametrize("share", [0.0, 0.2])
def test_the_means_asked_for_are_subtracted(center, by_row, by_column, done, share):
    X = REAL + RNG.normal(size=(60, 1)) + RNG.normal(size=40)
    X[RNG.uniform(size=X.shape) < share] = np.nan
    preparation = with_effects(Preparation("gaussian"), X, center, "so")
    assert preparation.center == center
    assert (preparation.row_effect is not None) == by_row
    assert (preparation.column_effect is not None) == by_column
    values = preparation.matrix(X)
    assert np.allclose(np.nanmean(values, axis=1), 0, atol=1e-6) == by_row
    assert np.allclose(np.nanmean(values, axis=0), 0, atol=1e-6) == by_column
    assert str(preparation) == f"values as they are; {done} (so)"
    assert str(with_effects(Preparation("gaussian"), X, center)) == f"values as they are; {done}"


@pytest.mark.parametrize(
    ("preparation", "sentence"),
    [
        (Preparation("bernoulli"), "values as they are"),
        (
            Preparation("poisson"),
            "values as they are; the poisson family corrects for row and column sums",
        ),
        (
            Preparation("poisson", logarithm=True),
            "values as log(1 + x); the poisson family corrects for row and column sums",
        ),
        (
            Preparation("gaussian", logarithm=True),
            "values as log(1 + x); row and column means subtracted",
        ),
        (
            Preparation("gaussian", column_scale=np.ones(3)),
            "each column divided by its spread; row and column means subtracted",
        ),
    ],
)
def test_what_is_done_to_values_is_said(preparation, sentence):
    assert str(with_sentence(preparation, "both")) == sentence
    reason = " (so)" if preparation.family == "gaussian" else ""
    assert str(with_sentence(preparation, "both", "so")) == sentence + reason


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_levels_of_rows_are_kept_where_they_are_most_of_what_varies(make):
    X = np.abs(REAL + 3 * RNG.normal(size=(60, 1)))
    preparation = Preparation("gaussian", logarithm=True)
    left = np.log1p(X) - np.log1p(X).mean(axis=0)
    share = np.mean(left.mean(axis=1) ** 2) / np.mean(left**2)
    assert 0.4 < share < 1
    kept = f"rows differ in level: {share:.0%} of the variation within columns"
    assert choose_effects(preparation, make(X)) == ("columns", kept)
    otherwise = "otherwise there is structure at every scale"
    assert choose_effects(preparation, make(np.abs(REAL))) == ("both", otherwise)


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
