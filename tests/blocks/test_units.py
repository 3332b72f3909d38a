import numpy as np
import pytest

from ccot.blocks import preparation as prepare
from ccot.blocks.preparation import _overlap, differ_in_unit, row_level_share
from ccot.datasets import load_simulated

RNG = np.random.default_rng(0)
SCALES = 10.0 ** np.arange(6)


@pytest.mark.parametrize("name", ["D1", "D2", "D3", "D4"])
@pytest.mark.parametrize("overlap", ["published", "calibrated"])
def test_simulated_matrices_have_one_unit(name, overlap):
    assert not differ_in_unit(load_simulated(name, random_state=0, overlap=overlap).data)


def test_unlike_measurements_differ_in_unit():
    X = RNG.normal(size=(80, 6))
    assert differ_in_unit(X * SCALES)
    assert differ_in_unit(X + 10 * np.arange(6))
    assert not differ_in_unit(X * RNG.uniform(0.5, 2, 6))


@pytest.mark.parametrize(("n_rows", "differ"), [(4, False), (5, True)])
def test_a_few_rows_tell_nothing_about_units(n_rows, differ):
    assert differ_in_unit(RNG.normal(size=(n_rows, 6)) * SCALES) is differ


def test_amounts_that_overlap_as_logarithms_share_a_unit():
    assert not differ_in_unit(np.exp(3 * RNG.normal(size=(200, 6))) * RNG.uniform(0.2, 5, 6))


def test_gaps_and_constant_columns_are_passed_over():
    X = RNG.normal(size=(80, 6)) * SCALES
    X[::3] = np.nan
    X[:, 5] = 1.0
    assert differ_in_unit(X)
    assert not differ_in_unit(np.full((5, 3), np.nan))


def slow_overlap(X):
    """The mean over pairs of columns, one pair at a time."""
    ranges = []
    for column in X.T:
        column = column[np.isfinite(column)]
        if len(np.unique(column)) > 1:
            low, high = np.quantile(column, (0.05, 0.95))
            ranges.append((low, high) if low < high else (column.min(), column.max()))
    shares = []
    for i, (low, high) in enumerate(ranges):
        for other_low, other_high in ranges[:i]:
            shared = max(min(high, other_high) - max(low, other_low), 0)
            shares.append(shared / max(high - low, other_high - other_low))
    return np.mean(shares) if shares else 1.0


@pytest.mark.parametrize("kind", ["real", "amounts", "gaps", "hardly any differ", "one", "none"])
def test_the_overlap_is_that_of_every_pair(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 6)) * rng.uniform(0.2, 3, 6) + rng.normal(size=6)
    if kind == "amounts":
        X = np.exp(X)
    if kind == "gaps":
        X[rng.random(X.shape) < 0.3] = np.nan
        X[1:, 2] = np.nan
        X[:, 4] = np.nan
    if kind == "hardly any differ":
        X[2:, 1:3] = 0.5
        X[:, 5] = 0.5
    if kind == "one":
        X[:, 1:] = 3.0
    if kind == "none":
        X[:] = 3.0
    assert _overlap(X) == pytest.approx(slow_overlap(X), rel=1e-12)


def shifted(overlap, n_rows=400):
    """Two columns of equal spread whose ranges share this much, all below zero."""
    x = np.linspace(0, 1, n_rows) / 0.9 - 5
    return np.column_stack([x, x + 1 - overlap])


@pytest.mark.parametrize(("overlap", "differ"), [(0.0, True), (0.29, True), (0.31, False)])
def test_units_differ_where_ranges_hardly_overlap(overlap, differ):
    X = shifted(overlap)
    assert _overlap(X) == pytest.approx(overlap, abs=1e-9)
    assert differ_in_unit(X) == differ


@pytest.mark.parametrize(
    ("n_kinds", "n_columns", "differ"), [(4, 100, True), (4, 101, False), (6, 101, True)]
)
def test_many_columns_differ_less_easily(n_kinds, n_columns, differ):
    X = np.linspace(0, 1, 50)[:, None] + 2 * (np.arange(n_columns) % n_kinds) - 100
    # As many pairs of columns overlap as are of one kind.
    assert _overlap(X) == pytest.approx(0.24 if n_kinds == 4 else 0.16, abs=0.01)
    assert differ_in_unit(X) == differ


@pytest.mark.parametrize(("n_columns", "differ"), [(6, False), (101, True)])
@pytest.mark.parametrize("with_zeros", [False, True])
def test_few_amounts_are_compared_as_logarithms(n_columns, differ, with_zeros):
    """They overlap as logarithms, hardly as they are."""
    rng = np.random.default_rng(0)
    X = 1e-6 * np.exp(8 * rng.normal(size=(100, 1)) + 2 * (np.arange(n_columns) % 10))
    if with_zeros:
        X[::4] = 0.0
    assert _overlap(X) < 0.2
    assert differ_in_unit(X) == differ
    assert differ_in_unit(-X)


def test_logarithms_of_amounts_may_differ_as_well():
    X = 1e-6 * 10.0 ** (np.linspace(0, 1, 80)[:, None] + 2 * np.arange(4))
    assert differ_in_unit(X)


def test_of_many_rows_some_are_looked_at(monkeypatch):
    X = np.repeat(shifted(1.0, 40), 2, axis=0)
    X[::2, 0] += 9.0
    X[1::2, 1] += 9.0
    # Ranges are the same, but for those of every second row.
    assert differ_in_unit(X[::2])
    assert not differ_in_unit(X)
    monkeypatch.setattr(prepare, "_UNIT_ROWS", len(X) // 2)
    assert differ_in_unit(X)


def test_of_many_columns_always_the_same_are_looked_at(monkeypatch):
    X = np.random.default_rng(0).normal(size=(20, 50)) * np.arange(1, 51)
    monkeypatch.setattr(prepare, "_UNIT_COLUMNS", 5)
    assert len({_overlap(X) for _ in range(5)}) == 1


def test_ranges_that_no_number_holds_are_passed_over():
    assert not differ_in_unit(1.7e308 * np.linspace(-1, 1, 80)[:, None] * np.ones(4))


@pytest.mark.parametrize("unit", [1e-6, 1.0])
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_the_level_of_rows_is_summed_over_what_is_observed(share, unit):
    rng = np.random.default_rng(0)
    X = unit * (rng.normal(size=(30, 1)) + rng.normal(size=(30, 20)) + 5)
    X[rng.random(X.shape) < share] = np.nan
    left = X - np.nanmean(X, axis=0)
    levels = np.where(np.isnan(X), np.nan, np.nanmean(left, axis=1)[:, None])
    expected = np.nansum(levels**2) / np.nansum(left**2)
    assert row_level_share(X) == pytest.approx(expected, rel=1e-12)


def test_the_level_of_rows_is_a_share_of_the_variance():
    level = RNG.normal(size=(200, 1))
    X = level + RNG.normal(size=(200, 50))
    X[RNG.random(X.shape) < 0.2] = np.nan
    assert row_level_share(X) == pytest.approx(0.5, abs=0.07)
    assert row_level_share(RNG.normal(size=(200, 50))) < 0.05
    assert row_level_share(np.ones((4, 3))) == 0
