"""Pieces of a pass over rows that are read and not kept, against the matrix in memory."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.utils import gen_batches

from ccot.blocks import streaming as stream
from ccot.blocks.criteria import bic, icl
from ccot.blocks.fit import BlockSettings, Search, fit_blocks
from ccot.blocks.hierarchy import build_hierarchy
from ccot.blocks.placement import place_side
from ccot.blocks.preparation import (
    Preparation,
    choose_preparation,
    settle_family,
    with_effects,
)
from ccot.blocks.problem import BlockProblem, Blocks, make_blocks, make_problem
from ccot.blocks.sweep import excess_share, log_marginal, soft_plan
from ccot.persistence.registry import upgraded
from ccot.runtime.run import Run
from ccot.sources import FunctionSource
from ccot.sources.base import sum_in_tree
from tests.blocks.matrices import MEANS, draw, seeded


def in_parts(X, step):
    source = FunctionSource(lambda first, last: X[first:last], X.shape, part_rows=step)
    source.allow_nan = True
    return source


def with_gaps(X):
    X = X.copy()
    X[np.random.default_rng(3).uniform(size=X.shape) < 0.2] = np.nan
    X[3], X[:, 2] = np.nan, np.nan
    return X


def tilted(X):
    rng = np.random.default_rng(4)
    return X + 3 * rng.normal(size=len(X))[:, None] + 3 * rng.normal(size=X.shape[1])


def read_parts(placements, parts):
    kept, sums = zip(*(stream._read(placements, part) for part in parts), strict=True)
    return stream._join(kept, sum_in_tree(sums, len(sums)))


@dataclass
class Read:
    """A matrix in memory with two co-clusterings, a coarse one and a fine one, read in parts.

    What was found is that of its first twenty rows.
    """

    X: np.ndarray
    problem: BlockProblem
    effect: np.ndarray | None
    found: Search
    views: tuple[Blocks, Blocks]
    rows: stream.Rows

    def moved(self, place):
        """What rows gain in a view."""
        view, axis_view = self.views[place], self.problem.axes[0]
        profiles = axis_view.profiles(view.labels[1], view.shape[1])
        table = profiles.blocks(view.labels[0], view.shape[0])
        marginal = log_marginal(view.labels[0], view.shape[0])
        return profiles.gain(*self.problem.terms_in_nats(*table), marginal)


READ = [
    *("gaussian", "poisson", "bernoulli", "sparse", "small"),
    *("gaps", "weights", "gaps, weights", "effects"),
]


@pytest.fixture(params=READ)
def read(request):
    """Rows that were read in three parts past the blocks of all of them."""
    kind, rng = request.param, np.random.default_rng(0)
    family = kind if kind in MEANS else "gaussian"
    family = "poisson" if kind in ("sparse", "small") else family
    labels = rng.integers(0, 2, 30), rng.integers(0, 3, 12)
    X = draw(family, *labels, rng)
    X = with_gaps(X) if "gaps" in kind else tilted(X) if kind == "effects" else X
    X = X * 2.0**-30 if kind == "small" else X
    if kind == "sparse":
        X[np.random.default_rng(1).uniform(size=X.shape) < 0.8] = 0
        X[3], X[:, 2], X = 0, 0, sp.csr_array(X)
    precision = rng.uniform(0.5, 2.0, 12) if "weights" in kind else None
    preparation = choose_preparation(X, family)
    if kind == "effects":
        preparation = with_effects(preparation, X)
    values, effect = preparation.matrix(X), preparation.row_effect
    problem, sample = (make_problem(part, family, precision) for part in (values, values[:20]))
    sample = replace(sample, n_effects=7)
    finer = labels[0] + 2 * (np.arange(30) % 3), labels[1] + 3 * (np.arange(12) % 2)
    views = make_blocks(problem, *labels, n_sweeps=3), make_blocks(problem, *finer)
    coarse, fine = (make_blocks(sample, v.labels[0][:20], v.labels[1], v.n_sweeps) for v in views)
    known = preparation if effect is None else replace(preparation, row_effect=effect[:20])
    hierarchy = build_hierarchy(sample, fine)
    found = Search(known, sample, (coarse, coarse), fine, hierarchy, ())
    placements = [place_side(problem, preparation, v, 0) for v in views]
    rows = read_parts(placements, [X[part] for part in gen_batches(30, 11)])
    return Read(X.toarray() if kind == "sparse" else X, problem, effect, found, views, rows)


def test_rows_go_where_they_gain_most(read):
    for place, labels in enumerate(read.rows.labels):
        np.testing.assert_array_equal(labels, read.moved(place).argmax(axis=1))
        assert labels.dtype == np.int32
    assert len(read.rows.labels) == 2
    sizes = read.rows.sizes(1)
    np.testing.assert_array_equal(sizes, np.bincount(read.rows.labels[1], minlength=6))
    expected = excess_share(
        soft_plan(read.moved(0)), read.rows.labels[0], read.problem.axes[0].is_empty()
    )
    np.testing.assert_allclose(read.rows.confidence, expected, atol=1e-12)


def test_sums_of_the_parts_are_those_of_the_matrix(read):
    rows, axis_view = read.rows, read.problem.axes[0]
    values = axis_view.values.toarray() if sp.issparse(axis_view.values) else axis_view.values
    np.testing.assert_allclose(rows.degree, values.sum(axis=1), atol=1e-12)
    missing = np.isnan(read.X)
    for place, labels in enumerate(rows.labels):
        for given, cells in ((rows.sums.total[place], values), (rows.sums.missing[place], missing)):
            n_clusters = read.views[place].shape[0]
            expected = np.array([cells[labels == k].sum(axis=0) for k in range(n_clusters)])
            np.testing.assert_allclose(given + 0 * expected, expected, atol=1e-12)
            assert np.ndim(given) == 2 or not missing.any()
    raw = np.nan_to_num(read.X)
    np.testing.assert_allclose(
        rows.sums.raw, [raw[rows.labels[0] == k].sum(axis=0) for k in (0, 1)]
    )
    assert (rows.effect is None) == (read.effect is None)
    if read.effect is not None:
        np.testing.assert_allclose(rows.effect, read.effect, atol=1e-12)


def test_the_problem_of_rows_that_were_read_is_that_of_the_matrix(read):
    sample = read.found.problem
    whole = stream._whole_problem(sample, read.rows)
    for given, expected in zip(whole.axes, read.problem.axes, strict=True):
        assert len(given) == len(expected)
        assert given.values.shape == expected.values.shape
        np.testing.assert_allclose(given.exposure, expected.exposure)
        np.testing.assert_allclose(given.partner_exposure, expected.partner_exposure)
    assert whole.overall == pytest.approx(read.problem.overall)
    assert whole.n_observed == read.problem.n_observed
    assert isinstance(whole.n_observed, int)
    assert whole.sum_squares == pytest.approx(read.problem.sum_squares)
    assert (whole.family, whole.dispersion, whole.unit, whole.n_effects) == (
        *(sample.family, sample.dispersion, sample.unit, sample.n_effects),
    )


def test_columns_move_as_in_a_sweep(read):
    whole = stream._whole_problem(read.problem, read.rows)
    for place, view in enumerate(read.views):
        own, (n_rows, n_columns) = read.rows.labels[place], view.shape
        expected = read.problem.axes[1].profiles(own, n_rows)
        profiles = stream._column_profiles(whole, read.rows, place)
        np.testing.assert_allclose(profiles.total, expected.total, atol=1e-12)
        np.testing.assert_allclose(profiles.full_exposure(), expected.full_exposure(), atol=1e-12)
        blocks, sure = stream._move_columns(whole, view, read.rows, place)
        table = expected.blocks(view.labels[1], n_columns)
        marginal = log_marginal(view.labels[1], n_columns)
        gain = expected.gain(*read.problem.terms_in_nats(*table), marginal)
        best = gain.argmax(axis=1)
        labels = best if len(np.unique(best)) == n_columns else view.labels[1]
        np.testing.assert_array_equal(blocks.labels[1], labels)
        np.testing.assert_array_equal(blocks.labels[0], own)
        total, exposure = read.problem.table(own, labels, view.shape)
        np.testing.assert_allclose(blocks.total, total, atol=1e-12)
        np.testing.assert_allclose(blocks.exposure, exposure, atol=1e-12)
        assert blocks.n_sweeps == view.n_sweeps + 1
        is_empty = read.problem.axes[1].is_empty()
        np.testing.assert_allclose(
            sure, excess_share(soft_plan(gain), labels, is_empty), atol=1e-12
        )
        assert (sure[is_empty] == 0).all()


def test_a_cluster_of_columns_that_all_would_leave_stays():
    """Equal columns go to the larger cluster."""
    X = np.repeat(np.random.default_rng(0).normal(size=(20, 1)), 6, axis=1)
    problem, own = make_problem(X, "gaussian"), np.array([0, 0, 1, 0, 0, 0])
    view = make_blocks(problem, np.arange(20) % 2, own)
    placement = place_side(problem, Preparation("gaussian"), view, 0)
    rows = read_parts([placement], [X])
    blocks, sure = stream._move_columns(problem, view, rows, 0)
    np.testing.assert_array_equal(blocks.labels[1], own)
    total, _ = problem.table(rows.labels[0], own, (2, 2))
    np.testing.assert_allclose(blocks.total, total)
    # Five shares in six, beyond one in two; the other cluster has less than its chance.
    np.testing.assert_allclose(sure, np.where(own == 0, 2 / 3, 0.0))


def test_what_is_collected_is_what_blocks_of_the_matrix_are(read):
    before, told = stream.Sweep((read.found.views[0], read.found.finest)), []
    assert before.problem(read.found.problem) is read.found.problem
    swept = stream._sweep(in_parts(read.X, 11), read.found, Run(), before)
    run = Run(progress=lambda *news: told.append(news))
    again = stream._sweep(in_parts(read.X, 11), read.found, run, swept)
    assert len(told) >= 3
    assert (swept.n_passes, again.n_passes) == (1, 2)
    assert swept.share_moved == 1
    moved = stream._share_moved(swept.views, [view.labels for view in again.views])
    assert again.share_moved == moved
    answer = stream._collect(read.found, again)
    found, labels = answer, again.views[0].labels
    np.testing.assert_array_equal(found.row.labels, labels[0])
    np.testing.assert_array_equal(found.column.labels, labels[1])
    np.testing.assert_array_equal(found.finest.labels[0], again.views[1].labels[0])
    np.testing.assert_array_equal(found.row.confidence, again.rows.confidence)
    np.testing.assert_array_equal(found.column.confidence, again.column_confidence[0])
    expected = make_blocks(read.problem, *labels)
    np.testing.assert_allclose(found.blocks.total, expected.total, atol=1e-12)
    np.testing.assert_allclose(found.blocks.exposure, expected.exposure, atol=1e-12)
    whole = again.problem(read.found.problem)
    assert whole.n_observed == read.problem.n_observed
    assert found.icl == pytest.approx(icl(whole, expected))
    assert found.bic == pytest.approx(bic(whole, expected))
    assert found.n_iter == again.views[0].n_sweeps
    for (k, m), mean in np.ndenumerate(answer.block_means):
        block = read.X[np.ix_(labels[0] == k, labels[1] == m)]
        assert mean == pytest.approx(np.nanmean(block))
    effect = found.row.placement.preparation.row_effect
    np.testing.assert_array_equal(effect, again.rows.effect)


def test_blocks_that_hold_nothing_have_no_mean():
    labels = np.array([0, 1]), np.array([0, 1])
    X = np.array([[1.0, np.nan], [2.0, 3.0]])
    problem = make_problem(X, "gaussian")
    view = make_blocks(problem, *labels)
    found = Search(
        Preparation("gaussian"), problem, (view, view), view, build_hierarchy(problem, view), ()
    )
    swept = stream._sweep(in_parts(X, 1), found, Run(), stream.Sweep((view, view)))
    np.testing.assert_array_equal(stream._collect(found, swept).block_means, X)


def test_share_moved_is_the_largest_but_for_the_finest_view():
    def view(rows, columns):
        return Blocks((np.array(rows), np.array(columns)), np.zeros((2, 2)), np.zeros((2, 2)))

    still, one, all_ = view([0, 0, 1], [0, 1]), view([0, 1, 1], [0, 1]), view([1, 1, 0], [1, 0])
    share = stream._share_moved((still, still, still), (still.labels, one.labels, all_.labels))
    assert share == 1 / 5
    assert stream._share_moved((still, still), (all_.labels, still.labels)) == 1
    # Where one view is all there is, it counts.
    assert stream._share_moved((still,), (one.labels,)) == 1 / 5


def test_rows_of_clusters_that_get_other_numbers_have_not_moved():
    X = np.repeat([[5.0, 0.0], [0.0, 5.0], [5.0, 5.0]], (1, 30, 20), axis=0)
    problem, rows = make_problem(X, "gaussian"), np.repeat([0, 1, 2], (1, 30, 20))
    view = make_blocks(problem, rows, np.array([0, 1]))
    found = Search(
        Preparation("gaussian"), problem, (view, view), view, build_hierarchy(problem, view), ()
    )
    first = stream._sweep(in_parts(X, 10), found, Run(), stream.Sweep((view, view)))
    assert first.views[0].shape == (3, 2)
    # The row that is the first cluster goes to the third: the other rows stay.
    X[0] = X[-1]
    second = stream._sweep(in_parts(X, 10), found, Run(), first)
    assert second.views[0].shape == (2, 2)
    assert second.share_moved == 1 / 53


def test_empty_clusters_are_dropped_from_every_sum_of_their_view():
    labels = np.array([2, 2, 0]), np.array([0, 0, 0]), np.array([1, 1, 1])
    table = np.arange(6.0).reshape(3, 2)
    total, missing = (table, table[:2] + 10, table[:2]), (table + 20, table[:2] + 30, 0.0)
    sums = stream.RowSums(total, missing, 1.0, table + 40)
    rows = stream.Rows(labels, np.ones(3), np.ones(3), None, sums)
    kept = stream._without_empty(rows)
    for given, expected in zip(kept.labels, ([1, 1, 0], [0, 0, 0], [1, 1, 1]), strict=True):
        np.testing.assert_array_equal(given, expected)
    assert kept.labels[0].dtype == np.int32
    used = [0, 2]
    expected = (table[used], table[:1] + 10, table[:2]), (table[used] + 20, table[:1] + 30, 0.0)
    check_sums(kept.sums, expected, table[used] + 40)


def check_sums(sums, expected, raw):
    for given, wanted in zip((sums.total, sums.missing), expected, strict=True):
        for one, other in zip(given, wanted, strict=True):
            np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(sums.raw, raw)
    assert sums.squares == 1.0


def test_a_view_without_empty_clusters_is_left_as_it_is():
    labels = np.array([1, 0]), np.array([2, 0]), np.array([0, 0])
    table = np.arange(6.0).reshape(3, 2)
    sums = stream.RowSums((table[:2], table, table), (0.0, 0.0, 0.0), 1.0, table[:2])
    kept = stream._without_empty(stream.Rows(labels, np.ones(2), np.ones(2), None, sums))
    for given, expected in zip(kept.labels, ([1, 0], [1, 0], [0, 0]), strict=True):
        np.testing.assert_array_equal(given, expected)
    check_sums(kept.sums, ((table[:2], table[[0, 2]], table), (0.0, 0.0, 0.0)), table[:2])


def test_columns_have_profiles_over_empty_clusters_too():
    problem = make_problem(np.ones((2, 4)), "gaussian")
    sums = stream.RowSums((np.ones((3, 4)),), (0.0,), 1.0, np.ones((3, 4)))
    rows = stream.Rows((np.array([0, 1]),), np.ones(2), np.ones(2), None, sums)
    profiles = stream._column_profiles(problem, rows, 0)
    np.testing.assert_array_equal(profiles.full_exposure(), np.repeat([[1, 1, 0]], 4, axis=0))


def test_degrees_are_double_whatever_the_precision_of_the_rows():
    X = draw("poisson", np.arange(9) % 2, np.arange(6) % 3, np.random.default_rng(0))
    problem = make_problem(X, "poisson")
    view = make_blocks(problem, np.arange(9) % 2, np.arange(6) % 3)
    placement = place_side(problem, Preparation("poisson"), view, 0)
    rows = read_parts([placement], [X.astype(np.float32)])
    assert rows.degree.dtype == np.float64
    np.testing.assert_allclose(rows.degree, X.sum(axis=1), rtol=1e-6)


def test_sums_that_an_earlier_version_wrote_get_their_names():
    total, missing, raw = (np.zeros((2, 3)), np.ones((4, 3))), (np.ones((2, 3)), 0.0), np.eye(3)
    fields = {"labels": (np.arange(2), np.arange(4)), "sums": (*total, *missing, 1.5, raw)}
    named = upgraded(stream.Rows, fields)
    assert named["labels"] is fields["labels"]
    sums = named["sums"]
    for given, expected in zip((*sums.total, *sums.missing), (*total, *missing), strict=True):
        assert given is expected
    assert sums.squares == 1.5
    assert sums.raw is raw
    assert upgraded(stream.Rows, named) == named


def test_rows_that_are_all_in_the_sample_are_fitted_as_in_memory():
    X = draw("bernoulli", np.arange(24) % 2, np.arange(18) % 3, np.random.default_rng(0))
    settings = BlockSettings(2, 3, n_init=1)
    here = fit_blocks(X, "bernoulli", settings, seeded())
    there = stream.fit_block_source(in_parts(X, 7), "bernoulli", settings, seeded())
    np.testing.assert_array_equal(there.row.labels, here.row.labels)
    np.testing.assert_array_equal(there.column.labels, here.column.labels)
    assert there.icl == here.icl


def test_no_more_row_clusters_than_the_sample_has_rows(monkeypatch):
    X = draw("bernoulli", np.arange(24) % 2, np.arange(18) % 3, np.random.default_rng(0))
    monkeypatch.setattr(stream, "POOL_ROWS", 20)
    monkeypatch.setattr(stream, "POOL_ENTRIES", 1)
    settings = BlockSettings(20, 3, n_init=1, max_passes=1)
    found = stream.fit_block_source(in_parts(X, 7), "bernoulli", settings, seeded())
    assert 1 <= found.row.n_clusters <= 20
    settings = replace(settings, n_row_clusters=21)
    with pytest.raises(ValueError, match="n_row_clusters=21 is more than the 20 rows"):
        stream.fit_block_source(in_parts(X, 7), "bernoulli", settings, seeded())


@pytest.mark.parametrize("settings", [{}, {"scale": "standard"}, {"center": "none"}], ids=str)
def test_the_sample_chooses_the_family_and_says_why(monkeypatch, settings):
    X = draw("poisson", np.arange(50) % 2, np.arange(30) % 3, np.random.default_rng(0))
    monkeypatch.setattr(stream, "POOL_ROWS", 40)
    monkeypatch.setattr(stream, "POOL_ENTRIES", 1)
    sample = X[np.sort(np.random.default_rng(0).choice(50, 40, replace=False))]
    settings = BlockSettings(2, 3, n_init=1, max_passes=1, **settings)
    expected = settle_family(sample, "auto", settings.scale, settings.center)
    found = stream.fit_block_source(in_parts(X, 20), "auto", settings, seeded())
    assert (found.family, found.family_reason) == expected


@pytest.mark.parametrize(
    ("n_moving", "settings", "n_passes"),
    [
        (1, {}, 2),
        (2, {}, 3),
        (9, {}, 4),
        (9, {"max_passes": 1}, 1),
        (5, {"max_passes": None, "tol": stream._TOL}, 6),
        (1, {"max_passes": None, "tol": stream._TOL / 2, "max_iter": 7}, 7),
    ],
)
def test_passes_end_when_little_moves_or_at_their_limit(monkeypatch, n_moving, settings, n_passes):
    X = draw("gaussian", np.arange(50) % 2, np.arange(30) % 3, np.random.default_rng(0))
    problem = make_problem(X, "gaussian")
    by_rows, by_columns, finest = (
        make_blocks(problem, np.arange(50) % g, np.arange(30) % m)
        for g, m in ((2, 5), (4, 3), (8, 6))
    )
    hierarchy = build_hierarchy(problem, finest)
    found = Search(Preparation("gaussian"), problem, (by_rows, by_columns), finest, hierarchy, ())
    told, asked = [], []

    def search(*arguments):
        asked.append(arguments)
        return found

    def one_pass(source, search, given, before):
        assert given is run
        share = 0.5 if before.n_passes < n_moving else stream._TOL
        return replace(whole_pass(source, search, Run(), before), share_moved=share)

    whole_pass = stream._sweep
    monkeypatch.setattr(stream.fit, "search_blocks", search)
    monkeypatch.setattr(stream, "_sweep", one_pass)
    monkeypatch.setattr(stream, "POOL_ROWS", 40)
    monkeypatch.setattr(stream, "POOL_ENTRIES", 1)
    settings, run = BlockSettings(**settings), seeded(lambda message, *_: told.append(message))
    found = answer = stream.fit_block_source(in_parts(X, 20), "gaussian", settings, run)
    assert told.pop(0) == "40 of 50 rows are used to find blocks"
    passes = [message for message in told if message.startswith("pass ")]
    assert len(passes) == n_passes
    assert passes[0] == "pass 1 over 50 rows: 50.00% moved"
    ((sample, *others),) = asked
    drawn = np.sort(np.random.default_rng(0).choice(50, 40, replace=False))
    np.testing.assert_array_equal(sample, X[drawn])
    assert others == ["gaussian", settings, run]
    assert found.n_iter == len(passes)
    # Rows of one view, columns of the other, and the finest clusters of both under them.
    assert (found.row.n_clusters, found.column.n_clusters) == answer.block_means.shape
    assert answer.block_means.shape[1] == 3
    assert found.finest.shape == (8, 6)
    for (k, m), mean in np.ndenumerate(answer.block_means):
        block = X[np.ix_(found.row.labels == k, found.column.labels == m)]
        assert mean == pytest.approx(block.mean())


def test_the_sample_has_the_entries_it_may_have(monkeypatch):
    monkeypatch.setattr(stream, "POOL_ROWS", 5)
    monkeypatch.setattr(stream, "POOL_ENTRIES", 125)
    X = np.ones((40, 10))
    for step in (7, 40):
        assert stream.pool_size(in_parts(X, step)) == 12
    # Two entries a row: five times as many rows.
    sparse = sp.csr_array(X * (np.arange(10) < 2))
    assert stream.pool_size(in_parts(sparse, 7)) == 40
    assert stream.pool_size(in_parts(sp.csr_array(X * (np.arange(10) < 4)), 7)) == 31
    assert stream.pool_size(in_parts(sp.csr_array((40, 10)), 7)) == 40
    monkeypatch.setattr(stream, "POOL_ENTRIES", 4)
    single = sp.csr_array(([1.0], ([0], [0])), shape=(40, 10))
    assert stream.pool_size(in_parts(single, 7)) == 28
    monkeypatch.setattr(stream, "POOL_ENTRIES", 30)
    assert stream.pool_size(in_parts(X, 7)) == 5
