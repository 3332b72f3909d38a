import numpy as np
import pytest
import scipy.sparse as sp

from ccot.blocks import fit
from ccot.blocks.criteria import bic, icl
from ccot.blocks.fit import BlockSettings, fit_blocks
from ccot.metrics import error_rate
from ccot.runtime.run import Run
from tests.blocks.matrices import draw, draw_noise, seeded, solve_blocks


@pytest.mark.parametrize("criterion", ["jump", "icl"])
def test_planted_blocks_and_their_numbers_are_found(planted, family, criterion):
    X, rows, columns = planted
    found = fit_blocks(X, family, BlockSettings(criterion=criterion), seeded())
    assert (found.row.n_clusters, found.column.n_clusters) == (2, 3)
    assert error_rate(rows, found.row.labels) == 0
    assert error_rate(columns, found.column.labels) == 0
    assert found.candidates[0].numbers == (2, 3)


@pytest.mark.parametrize(
    ("numbers", "balanced"),
    [
        ((2, 3), False),
        ((4, None), False),
        ((None, 5), False),
        ((1, 1), False),
        ((9, 8), False),
        ((40, 30), False),
        ((2, 3), True),
        ((9, 7), True),
        ((40, 30), True),
    ],
)
def test_given_numbers_are_met_and_lead_the_candidates(planted, family, numbers, balanced):
    X = planted[0]
    settings = BlockSettings(*numbers, balanced=balanced, n_init=3, max_iter=10)
    found = solve_blocks(X, family, settings, seeded())[1]
    shape = found.row.n_clusters, found.column.n_clusters
    assert all(asked in (None, now) for asked, now in zip(numbers, shape, strict=True))
    assert found.candidates[0].numbers == shape
    assert len({c.numbers for c in found.candidates}) == len(found.candidates)
    for side in (found.row, found.column):
        sizes = np.bincount(side.labels)
        assert len(sizes) == side.n_clusters
        assert sizes.min() > 0
        if balanced:
            assert sizes.max() - sizes.min() <= 1


def test_criteria_are_those_of_the_blocks(planted, family):
    problem, found = solve_blocks(planted[0], family, BlockSettings(), seeded())
    assert found.icl == icl(problem, found.blocks)
    assert found.bic == bic(problem, found.blocks)
    assert found.blocks.shape == (found.row.n_clusters, found.column.n_clusters)
    assert found.hierarchy.shape == found.finest.shape


def test_noise_is_one_block_unless_numbers_are_given(family):
    rng = np.random.default_rng(3)
    X = draw_noise(family, (50, 40), rng)
    free = fit_blocks(X, family, BlockSettings(), Run(rng))
    assert (free.row.n_clusters, free.column.n_clusters) == (1, 1)
    asked = fit_blocks(X, family, BlockSettings(n_row_clusters=3), Run(rng))
    assert (asked.row.n_clusters, asked.column.n_clusters) == (3, 1)


def test_jumps_name_the_scale_where_icl_takes_all_it_is_offered():
    """Smooth structure inside crisp groups: no number of blocks is the end of it."""
    rng = np.random.default_rng(0)
    groups = np.repeat([0, 1, 2], 40)
    centres = 6 * rng.normal(size=(3, 8))
    traits = centres[groups] + rng.normal(size=(120, 8))
    X = traits @ rng.normal(size=(8, 80)) + 0.3 * rng.normal(size=(120, 80))
    found = fit_blocks(X, "gaussian", BlockSettings(), seeded())
    assert found.candidates[0].criterion == "reproducibility"
    assert found.candidates[0].numbers == (found.row.n_clusters, found.column.n_clusters)
    assert 2 <= found.row.n_clusters < found.finest.shape[0] / 2
    told = fit_blocks(X, "gaussian", BlockSettings(n_row_clusters=3), seeded())
    assert error_rate(groups, told.row.labels) == 0


def test_blocks_are_found_under_effects_that_are_removed():
    rng = np.random.default_rng(0)
    rows, columns = rng.integers(0, 2, 80), rng.integers(0, 3, 60)
    X = draw("gaussian", rows, columns, rng)
    plain, _ = solve_blocks(X, "gaussian", BlockSettings(), seeded())
    tilted = X + 5 * rng.normal(size=(80, 1)) + 5 * rng.normal(size=60)
    problem, found = solve_blocks(tilted, "gaussian", BlockSettings(center="both"), seeded())
    assert plain.n_effects == 0
    assert problem.n_effects == 139
    assert error_rate(rows, found.row.labels) == 0
    # Without their effects the first and the last column cluster are the same.
    assert error_rate(columns == 1, found.column.labels) == 0


@pytest.mark.parametrize("missing", [False, True])
def test_precision_is_the_inverse_variance_of_columns(missing):
    """Missing entries must not make a column look calm."""
    rng = np.random.default_rng(0)
    sigma = np.where(np.arange(60) < 30, 0.5, 2.0)
    X = draw("gaussian", np.arange(80) % 2, np.arange(60) % 3, rng) + sigma * rng.normal(
        size=(80, 60)
    )
    if missing:
        X[20:, 45:] = np.nan
        X[:, 59] = np.nan
    problem, _ = solve_blocks(X, "gaussian", BlockSettings(heteroscedastic=True), Run(rng))
    precision = problem.axes[0].partner_exposure
    assert precision.mean() == pytest.approx(1)
    assert precision[:30].mean() > 2 * precision[45:59].mean()
    assert precision[:30].min() > precision[59]


def test_reports_tell_the_stages(planted, family):
    told, seen = [], set()

    def report(message, done=0, total=0):
        seen.add(message) if total else told.append(message)

    fit_blocks(planted[0], family, BlockSettings(), seeded(report))
    assert "starts" in seen
    assert "family" in told[0]
    assert "starts, finest blocks" in told[1]
    assert told[-1] == "2 x 3 clusters"


def test_sparse_and_dense_matrices_are_the_same(planted, family):
    X = planted[0]
    dense, sparse = (
        fit_blocks(make(X), family, BlockSettings(), seeded())
        for make in (np.asarray, sp.csc_array)
    )
    assert error_rate(dense.row.labels, sparse.row.labels) == 0
    assert error_rate(dense.column.labels, sparse.column.labels) == 0


def test_sparse_matrices_too_large_to_write_out_keep_their_effects(monkeypatch):
    rng = np.random.default_rng(0)
    effects = np.add.outer(3 * rng.normal(size=60), 3 * rng.normal(size=40))
    X = sp.csr_array(effects + rng.normal(size=(60, 40)))

    def taken_out():
        found = fit_blocks(X, "gaussian", BlockSettings(n_init=2), seeded())
        return found.row.placement.preparation.column_effect is not None

    assert taken_out()
    monkeypatch.setattr(fit, "_LARGEST_WRITTEN", 1000)
    assert not taken_out()
