"""Pieces of a fit, against slow and obvious versions of them."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

from ccot.blocks import fit
from ccot.blocks.criteria import best_cuts, bic, evidence, icl, is_saturated
from ccot.blocks.fit import BlockSettings
from ccot.blocks.hierarchy import Start, build_hierarchy
from ccot.blocks.preparation import Preparation, choose_preparation, settle_family
from ccot.blocks.problem import information, make_blocks, make_problem, pearson_dispersion
from ccot.blocks.refine import same_partitions
from ccot.blocks.reproducibility import Halves, describe
from ccot.blocks.select import Selection
from ccot.blocks.spectrum import low_rank
from ccot.blocks.sweep import assign, settle, sweep
from ccot.blocks.tap import soft_sweep
from ccot.metrics import error_rate
from ccot.runtime.backends import NUMPY
from ccot.runtime.run import Checkpoint, Run
from tests.blocks.matrices import draw, seeded, solve_blocks


@pytest.mark.parametrize(
    ("shape", "n_starts"),
    [((3, 2), 24), ((160, 100), 24), ((250, 100), 16), ((1000, 100), 12), ((1000, 200), 8),
     ((1000, 400), 4), ((3000, 1000), 3), ((9000, 9000), 3)],
)  # fmt: skip
def test_larger_matrices_have_fewer_starts(shape, n_starts):
    X = np.broadcast_to(0.0, shape)
    assert fit._default_n_init(X) == n_starts


def test_starts_of_sparse_matrices_are_counted_by_their_entries():
    X = sp.random_array(
        (500, 400), density=0.03125, random_state=np.random.default_rng(0), format="csr"
    )
    assert fit._default_n_init(X) == 16
    assert fit._default_n_init(sp.csr_array((5, 4))) == 24


def slow_precision(X):
    """Inverse variances around the low rank approximation, column by column."""
    filled = np.where(np.isfinite(X), X, np.nanmean(X))
    squares = np.where(np.isfinite(X), (X - low_rank(filled)) ** 2, np.nan)
    seen = np.isfinite(X).any(axis=0)
    variance = np.full(X.shape[1], np.nanmean(squares))
    variance[seen] = np.nanmean(squares[:, seen], axis=0)
    precision = 1 / np.maximum(variance, 1e-6 * variance.mean())
    return precision / precision.mean()


@pytest.mark.parametrize("kind", ["all", "gaps", "sparse"])
def test_precision_follows_its_formula(kind):
    rng = np.random.default_rng(0)
    X = draw("gaussian", np.arange(30) % 2, np.arange(20) % 3, rng)
    X += rng.uniform(0.2, 3.0, 20) * rng.normal(size=(30, 20))
    # A column without noise has a finite precision.
    X[:, 4] = 0
    if kind == "gaps":
        X[rng.uniform(size=X.shape) < 0.3] = np.nan
        # A column of nothing, and one of a single entry.
        X[:, 7], X[1:, 9] = np.nan, np.nan
    made = sp.csr_array(X) if kind == "sparse" else X
    problem = fit.prepare_problem(made, Preparation("gaussian"), True)
    np.testing.assert_allclose(problem.axes[0].partner_exposure, slow_precision(X))
    assert problem.shape == (30, 20)


def test_a_matrix_of_zeros_has_equal_precisions():
    problem = fit.prepare_problem(np.zeros((5, 4)), Preparation("gaussian"), True)
    np.testing.assert_array_equal(problem.axes[0].partner_exposure, np.ones(4))


@pytest.mark.parametrize(
    ("family", "heteroscedastic"), [("gaussian", False), ("poisson", True), ("bernoulli", True)]
)
def test_only_real_values_have_precisions_and_only_if_wanted(family, heteroscedastic):
    X = draw(family, np.arange(8) % 2, np.arange(6) % 3, np.random.default_rng(0))
    given = fit.prepare_problem(X, Preparation(family), heteroscedastic).axes[0].partner_exposure
    np.testing.assert_array_equal(given, make_problem(X, family).axes[0].partner_exposure)


def test_logarithms_of_many_entries_are_those_of_few():
    X = sp.csr_array(1.0 + np.arange(2.0**18).reshape(512, 512))
    for backend in (NUMPY, replace(NUMPY, n_jobs=2)):
        problem = fit.prepare_problem(X, Preparation("poisson", logarithm=True), False, backend)
        np.testing.assert_array_equal(problem.axes[0].values.data, np.log1p(X.data))


@pytest.fixture
def small(family):
    """A matrix of 2 x 3 blocks, of which a fit takes a moment."""
    rng = np.random.default_rng(1)
    rows, columns = np.arange(24) % 2, np.arange(18) % 3
    return draw(family, rows, columns, rng), rows, columns


class Kept(Checkpoint):
    """Keeps all pieces, and what they are made of."""

    def __init__(self):
        self.pieces = []

    def piece(self, name, make):
        made = make()
        self.pieces.append((name, make, made))
        return made

    def series(self, name, total, rest, count=len):
        for made in rest(0):
            self.pieces.append((name, partial(rest), made))
            yield made

    def named(self, name):
        return [(make.args, made) for kind, make, made in self.pieces if kind == name]


def begin(X, family, **settings):
    return fit._begin(X, family, BlockSettings(**settings), seeded())


def test_starts_come_with_their_hierarchies_the_most_informed_first(small, family):
    _, problem, starts = begin(small[0], family, n_init=4)
    assert len(starts) == 4
    held = [information(problem, start.fine) for start in starts]
    assert held == sorted(held, reverse=True)
    for start in starts:
        assert start.hierarchy == build_hierarchy(problem, start.fine)


@pytest.mark.parametrize("kind", ["gaussian", "poisson", "bernoulli", "rare"])
def test_values_are_prepared_for_their_family(kind):
    family = "poisson" if kind == "rare" else kind
    X = draw(family, np.arange(24) % 2, np.arange(18) % 3, np.random.default_rng(0))
    X = X * (np.arange(18) < 4) if kind == "rare" else X + 3 * (family == "poisson")
    preparation = begin(X, family, n_init=1)[0]
    assert preparation == choose_preparation(X, family)
    assert preparation.logarithm == (kind == "rare")


def test_there_are_as_many_starts_as_the_size_says(monkeypatch):
    X = draw("bernoulli", np.arange(9) % 2, np.arange(6) % 3, np.random.default_rng(0))
    monkeypatch.setattr(fit, "_default_n_init", lambda X: X.shape[1] - 1)
    assert len(begin(X, "bernoulli")[2]) == 5
    assert len(begin(X, "bernoulli", n_init=2)[2]) == 2


def test_a_fit_is_made_on_the_device(small, family):
    problem = begin(small[0], family, n_init=1, device="cpu")[1]
    assert problem.backend.device == "cpu"
    assert begin(small[0], family, n_init=1)[1].backend.device is None


def test_a_fit_has_the_threads_it_is_given(small, family):
    run = Run(np.random.default_rng(0), n_jobs=2)
    problem = fit._begin(small[0], family, BlockSettings(n_init=1), run)[1]
    assert problem.backend.n_jobs == 2


def test_weights_are_those_asked_for():
    rng = np.random.default_rng(0)
    X = draw("gaussian", np.arange(24) % 2, np.arange(18) % 3, rng) + rng.normal(size=(24, 18))
    equal, weighted = (
        begin(X, "gaussian", n_init=1, heteroscedastic=wanted)[1].axes[0].partner_exposure
        for wanted in (False, True)
    )
    assert np.ptp(equal) == 0
    assert np.ptp(weighted) > 0.1


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_effects_are_taken_out_where_structure_has_no_end(make, monkeypatch):
    rng = np.random.default_rng(0)
    X = np.add.outer(0.6 * rng.normal(size=24), 3 * rng.normal(size=18))
    X += rng.normal(size=(24, 18))
    preparation, problem, starts = begin(make(X), "gaussian", n_init=2)
    assert preparation.row_effect is not None
    assert problem.n_effects == 24 + 18 - 1
    left = X - X.mean(axis=0) - X.mean(axis=1, keepdims=True) + X.mean()
    np.testing.assert_allclose(problem.axes[0].values, left, atol=1e-12)
    assert len(starts) == 2
    # As many cells as are written out at most, and one more.
    for cells, is_plain in ((432, False), (431, make is sp.csr_array)):
        monkeypatch.setattr(fit, "_LARGEST_WRITTEN", cells)
        assert (begin(make(X), "gaussian", n_init=2)[0].row_effect is None) == is_plain


def test_effects_stay_where_one_side_alone_has_no_end():
    """Where columns are few blocks and rows are a line, the gaussian model is not to be trusted."""
    rng = np.random.default_rng(0)
    X = np.linspace(0, 30, 40)[:, None] * np.repeat([0.0, 1.0], 8) + 0.1 * rng.normal(size=(40, 16))
    assert begin(X, "gaussian", n_init=2)[0].column_effect is not None
    assert begin(X - X.min(), "poisson", n_init=2)[0].column_effect is None


def test_levels_of_rows_are_kept_where_they_are_most_of_what_varies():
    rng = np.random.default_rng(0)
    X = np.add.outer(3 * rng.normal(size=24), 3 * rng.normal(size=18)) + rng.normal(size=(24, 18))
    preparation, problem, _ = begin(X, "gaussian", n_init=2)
    assert preparation.row_effect is None
    assert preparation.column_effect is not None
    assert problem.n_effects == 18
    assert "row levels kept (rows differ in level" in preparation.sentence
    np.testing.assert_allclose(problem.axes[0].values, X - X.mean(axis=0))
    np.testing.assert_allclose(preparation.rows(X), X - X.mean(axis=0))


@pytest.mark.parametrize(
    ("center", "taken"), [("none", ""), ("rows", "r"), ("columns", "c"), ("both", "rc")]
)
def test_means_are_taken_out_as_asked(center, taken):
    X = np.add.outer(np.arange(24.0), np.arange(18.0)) + np.random.default_rng(0).normal(
        size=(24, 18)
    )
    preparation, problem, _ = begin(X, "gaussian", n_init=1, center=center)
    values = problem.axes[0].values
    assert np.allclose(values.mean(axis=1), 0) == ("r" in taken)
    assert np.allclose(values.mean(axis=0), 0) == ("c" in taken)
    assert preparation.sentence.endswith("(chosen by the user)")


@pytest.mark.parametrize(("cells", "is_large"), [(432, False), (431, True)])
def test_means_are_not_taken_out_of_sparse_matrices_that_are_too_large(
    cells, is_large, monkeypatch
):
    monkeypatch.setattr(fit, "_LARGEST_WRITTEN", cells)
    X = np.random.default_rng(0).normal(size=(24, 18))
    assert begin(X, "gaussian", n_init=1, center="both")[0].row_effect is not None
    assert begin(sp.csr_array(X), "gaussian", n_init=1, center="none")[0].row_effect is None
    if is_large:
        with pytest.raises(ValueError, match='pass center="none"'):
            begin(sp.csr_array(X), "gaussian", n_init=1, center="both")
    else:
        made = begin(sp.csr_array(X), "gaussian", n_init=1, center="both")[1].axes[0].values
        np.testing.assert_allclose(made.mean(axis=0), 0, atol=1e-12)


@pytest.mark.parametrize(
    ("scale", "spread"),
    [
        ("none", lambda X: np.ones(18)),
        ("standard", lambda X: X.std(axis=0)),
        ("robust", lambda X: np.subtract(*np.quantile(X, (0.75, 0.25), axis=0)) / 1.349),
    ],
)
def test_columns_are_scaled_as_asked(scale, spread):
    X = np.random.default_rng(0).normal(size=(24, 18)) * np.arange(1, 19)
    values = begin(X, "gaussian", n_init=1, scale=scale, center="none")[1].axes[0].values
    expected = X / spread(X)
    np.testing.assert_allclose(values, np.clip(expected, values.min(), values.max()))


def test_scales_that_cannot_be_had_are_refused():
    X = np.random.default_rng(0).normal(size=(24, 18))
    with pytest.raises(ValueError, match="non-negative"):
        begin(X, "gaussian", scale="log")
    with pytest.raises(ValueError, match="sparse"):
        begin(sp.csr_array(X), "gaussian", scale="standard")
    with pytest.raises(ValueError, match="poisson family"):
        begin(np.abs(X), "poisson", scale="robust")


def test_dispersion_is_that_around_the_finest_blocks():
    X = np.random.default_rng(0).poisson(3.0, size=(24, 18)) * 4.0
    settings = BlockSettings(n_init=2)
    found = fit.search_blocks(X, "poisson", settings, seeded())
    assert found.problem.dispersion == pearson_dispersion(found.problem, found.finest)
    assert found.problem.dispersion > 2


def test_what_is_found_is_put_together(small, family):
    X, told = small[0], []

    def report(message, done=0, total=0):
        told.append(message)

    settings = BlockSettings(n_init=2)
    found = fit.search_blocks(X, family, settings, seeded(report))
    problem, answer = solve_blocks(X, family, settings, seeded(report))
    assert told[: len(told) // 2] == told[len(told) // 2 :]
    assert f"2 starts, finest blocks {found.finest.shape}" in told
    assert told[-1] == "2 x 3 clusters"
    assert {"starts", "cuts settled", "candidates refined"} <= set(told)
    assert answer.family == family
    assert answer.finest.shape == found.finest.shape
    assert answer.hierarchy == found.hierarchy
    assert answer.hierarchy.shape == found.finest.shape
    assert answer.candidates == found.candidates
    assert answer.candidates[0].criterion == "icl"
    assert answer.candidates[0].score == icl(problem, found.views[0])
    assert answer.n_iter == max(view.n_sweeps for view in found.views) > 1
    for axis, side in enumerate((answer.row, answer.column)):
        labels, sure = assign(problem, found.views[axis], axis)
        np.testing.assert_array_equal(side.labels, labels)
        np.testing.assert_array_equal(side.confidence, sure)
        assert side.n_clusters == answer.blocks.shape[axis]
        np.testing.assert_array_equal(side.placement.labels(X if axis == 0 else X.T), labels)
        np.testing.assert_array_equal(answer.blocks.labels[axis], labels)
    assert answer.icl == icl(problem, answer.blocks)
    assert answer.bic == bic(problem, answer.blocks)


@pytest.mark.parametrize("balanced", [False, True])
def test_a_fit_ends_with_the_blocks_of_its_search(family, balanced):
    """Three rows of the one kind, nine of the other; one column and eight."""
    X = draw(family, np.arange(12) // 9, np.arange(9) // 8, np.random.default_rng(0))
    X, settings = sp.csr_array(X), BlockSettings(2, 2, n_init=1, balanced=balanced)
    _, expected = solve_blocks(X, family, settings, seeded())
    answer = fit.fit_blocks(X, family, settings, seeded())
    assert answer.family == family
    assert answer.icl == expected.icl
    for side, other in ((answer.row, expected.row), (answer.column, expected.column)):
        np.testing.assert_array_equal(side.labels, other.labels)
        np.testing.assert_array_equal(side.confidence, other.confidence)
    for (k, m), mean in np.ndenumerate(answer.block_means):
        block = X.toarray()[np.ix_(answer.row.labels == k, answer.column.labels == m)]
        assert mean == pytest.approx(block.mean())


@pytest.mark.parametrize("settings", [{}, {"scale": "standard"}, {"center": "none"}], ids=str)
def test_a_fit_chooses_the_family_and_says_why(settings):
    X = draw("poisson", np.arange(24) % 2, np.arange(18) % 3, np.random.default_rng(0))
    settings, told = BlockSettings(2, 3, n_init=1, **settings), []
    name, reason = settle_family(X, "auto", settings.scale, settings.center)
    found = fit.fit_blocks(X, "auto", settings, seeded(lambda message, *_: told.append(message)))
    assert (found.family, found.family_reason) == (name, reason)
    assert told[0] == f"family {name}: {reason}"


def assert_same_fields(one, other):
    for name in vars(other):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_clusters_are_compared_with_the_halves_that_a_search_ends_with():
    X = draw("gaussian", np.arange(24) % 2, np.arange(18) % 3, np.random.default_rng(1))
    kept, rng = Kept(), np.random.default_rng(2)
    settings, run = BlockSettings(criterion="reproducibility", n_init=1), Run(rng, checkpoint=kept)
    found = fit.search_blocks(X, "gaussian", settings, run)
    ((_, selected),) = kept.named("numbers")
    assert found.halves is selected.halves
    # Halves that agree little, and take points in and out of clusters.
    halves = tuple(replace(half, labels=rng.permuted(half.labels, axis=2)) for half in found.halves)
    blocks, sure = (
        make_blocks(found.problem, *found.views[0].labels),
        (rng.random(24), rng.random(18)),
    )
    answer = fit.collect(replace(found, halves=halves), blocks, sure)
    again = answer.reproducibility.row, answer.reproducibility.column
    for axis, side in enumerate((answer.row, answer.column)):
        nodes, _ = found.hierarchy.nodes(axis)
        expected = describe(halves[axis], blocks.labels[axis], found.finest.labels[axis], nodes)
        assert_same_fields(again[axis], expected)
        np.testing.assert_array_equal(side.confidence, sure[axis] * expected.points)
    # One side alone.
    answer = fit.collect(replace(found, halves=(None, halves[1])), blocks, sure)
    assert answer.reproducibility.row is None
    assert_same_fields(answer.reproducibility.column, again[1])
    np.testing.assert_array_equal(answer.row.confidence, sure[0])


def test_sparse_matrices_are_taken_by_rows(small, family):
    kinds = np.asarray, sp.csc_array, sp.csr_matrix
    dense, *sparse = (
        fit.search_blocks(kind(small[0]), family, BlockSettings(n_init=1), seeded())
        for kind in kinds
    )
    assert isinstance(dense.problem.axes[0].values, np.ndarray)
    for found in sparse:
        assert found.problem.axes[0].values.format == "csr"
        assert found.views[0].shape == dense.views[0].shape


def test_the_criterion_settles_what_has_no_end():
    """Smooth structure in three groups: likelihood takes all it is offered, jumps name a scale."""
    rng = np.random.default_rng(0)
    groups = np.repeat([0, 1, 2], 12)
    traits = 6 * rng.normal(size=(3, 5))[groups] + rng.normal(size=(36, 5))
    X, told = traits @ rng.normal(size=(5, 30)) + 0.1 * rng.normal(size=(36, 30)), []
    for criterion in ("icl", "jump"):
        settings = BlockSettings(criterion=criterion, n_init=2)
        run = seeded(lambda message, *_: told.append(message))
        found = fit.search_blocks(X, "gaussian", settings, run)
        assert found.candidates[0].criterion == criterion
        rows, columns = found.views
        assert found.candidates[0].numbers == (rows.shape[0], columns.shape[1])
        assert told[-1] == f"{rows.shape[0]} x {columns.shape[1]} clusters"
        assert (rows is columns) == (criterion == "icl")
    assert rows.shape[0] != columns.shape[0]
    assert f"cut into {rows.shape[0]} row clusters" in told
    assert f"cut into {columns.shape[1]} column clusters" in told


def test_of_several_numbers_the_fit_nearest_to_the_halves_is_taken():
    """Halves find three clusters; others were fitted as well."""
    rng = np.random.default_rng(0)
    rows, columns = np.arange(60) % 3, np.arange(40) % 2
    X = 5 * rng.normal(size=(3, 2))[rows][:, columns] + rng.normal(size=(60, 40))
    _, problem, starts = begin(X, "gaussian", n_init=2)
    cut = partial(fit._fit_side, problem, starts, False, Run())
    halves = Halves(np.array([3]), np.ones((1, 1)), np.stack([[rows], [rows]]))
    for numbers in ((2, 5, 3), (2, 3)):
        views = fit._fit_by_cut(Selection((numbers, (2,)), (), (halves, None)), cut)
        assert views[0].shape[0] == 3
        assert error_rate(rows, views[0].labels[0]) == 0
    first = fit._fit_by_cut(Selection(((2, 5, 3), (2,)), ()), cut)
    assert first[0].shape[0] == 2


def test_clusters_of_equal_size_stay_so_to_the_end(family):
    """Three rows of the one kind, nine of the other."""
    X = draw(family, np.arange(12) // 9, np.arange(9) % 3, np.random.default_rng(0))
    settings = BlockSettings(2, 3, n_init=1, balanced=True)
    answer = solve_blocks(X, family, settings, seeded())[1]
    np.testing.assert_array_equal(np.bincount(answer.row.labels), [6, 6])


def test_a_fit_without_sweeps_counts_as_one(small, family):
    X, rows, columns = small
    found = fit.search_blocks(X, family, BlockSettings(n_init=1), seeded())
    still = make_blocks(found.problem, rows, columns)
    found = replace(found, views=(still, still))
    assert fit.collect(found, still, (np.ones(24), np.ones(18))).n_iter == 1


def cut_both(problem, starts, numbers, settings):
    return [
        fit._fit_side(problem, starts, settings.balanced, Run(), axis, number)
        for axis, number in enumerate(numbers)
    ]


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("n_starts", [2, 8])
def test_sides_are_cut_against_the_finest_clusters_of_the_other(small, family, n_starts, balanced):
    """The most informed cuts are swept, and the most informed of what comes out is kept."""
    X, rows, columns = small
    _, problem, starts = begin(X, family, n_init=n_starts)
    views = cut_both(problem, starts, (2, 3), BlockSettings(balanced=balanced))
    for axis, (view, truth) in enumerate(zip(views, (rows, columns), strict=True)):
        assert error_rate(truth, view.labels[axis]) == 0
        assert view.shape[1 - axis] > 3
        target = (None, 3) if axis else (2, None)
        cuts = [start.cut(target) for start in starts]
        cuts.sort(key=partial(information, problem), reverse=True)
        swept = [
            sweep(problem, cut, max_iter=6, tol=2e-3, balanced=balanced)
            for cut in cuts[: {2: 2 - axis, 8: 3}[n_starts]]
        ]
        best = max(information(problem, blocks) for blocks in swept)
        assert information(problem, view) == pytest.approx(best, rel=1e-9)


def test_cuts_have_the_numbers_even_where_clusters_got_lost(small, family, monkeypatch):
    _, problem, starts = begin(small[0], family, n_init=1)
    options = []

    def watched(*given, **asked):
        options.append(asked)
        return sweep(*given, **asked)

    monkeypatch.setattr(fit, "sweep", watched)
    for balanced in (False, True):
        settings = BlockSettings(balanced=balanced)
        options.clear()
        views = cut_both(problem, starts, (20, 17), settings)
        assert options
        for one in options:
            assert one == {"max_iter": 6, "tol": 2e-3, "balanced": balanced}
        assert (views[0].shape[0], views[1].shape[1]) == (20, 17)
        if balanced:
            for axis, view in enumerate(views):
                assert np.ptp(np.bincount(view.labels[axis])) <= 1


def test_clusters_that_had_to_be_split_are_shared_out_again(small, family):
    """More clusters of equal size than there are finest ones."""
    problem = make_problem(small[0], family)
    fine = make_blocks(problem, *small[1:])
    start = Start(fine, build_hierarchy(problem, fine))
    views = cut_both(problem, [start], (5, 7), BlockSettings(balanced=True))
    np.testing.assert_array_equal(np.sort(np.bincount(views[0].labels[0])), [4, 5, 5, 5, 5])
    np.testing.assert_array_equal(np.sort(np.bincount(views[1].labels[1])), [2, 2, 2, 3, 3, 3, 3])


@pytest.mark.parametrize("criterion", ["jump", "icl"])
def test_refined_blocks_beat_every_cut(small, family, criterion):
    X = small[0]
    _, problem, starts = begin(X, family, n_init=3)
    settings = BlockSettings(criterion=criterion)
    best, same = fit._fit_by_icl(problem, starts, settings, Run())
    assert best is same
    score = icl if criterion == "icl" else evidence
    cuts = [
        settle(problem, start.cut(cut.numbers))
        for start in starts
        for cut in best_cuts(problem, start.fine, start.hierarchy)[:3]
    ]
    assert score(problem, best) >= max(score(problem, cut) for cut in cuts) - 1e-6
    assert best.shape == (2, 3)


@pytest.mark.parametrize("seed", [1, 5])
def test_blocks_of_less_than_two_entries_are_never_the_answer(seed):
    """Few values over three orders of magnitude: the likelihood of single entries has no bound."""
    X = np.round(10 ** np.random.default_rng(seed).uniform(0, 3, size=(4, 4)))
    _, problem, starts = begin(X, "gaussian", n_init=2)
    best, _ = fit._fit_by_icl(problem, starts, BlockSettings(criterion="icl"), Run())
    assert not is_saturated(problem, best.shape)


class Settled(Checkpoint):
    """Has what cuts settle to, and leaves it as it is from there on."""

    def __init__(self, settled):
        self.settled, self.refined = iter(settled), []

    def series(self, name, total, rest, count=len):
        yield from self.settled

    def piece(self, name, make):
        blocks = make.args[1]
        if name == "refined":
            self.refined.append(blocks)
        return blocks


@pytest.mark.parametrize(
    ("entries", "n_refined"), [(1, 1), (2 * 120 - 1, 1), (2 * 120, 2), (5 * 120, 4)]
)
@pytest.mark.parametrize(("criterion", "best"), [("icl", (2, 1)), ("jump", (3, 2))])
def test_the_best_of_each_shape_is_refined_and_at_most_four_of_them(
    criterion, best, entries, n_refined, monkeypatch
):
    """Three kinds of rows and two of columns under noise, where ICL takes fewer."""
    rng = np.random.default_rng(16)
    rows, columns = np.arange(12) % 3, np.arange(10) % 2
    X = rng.normal(size=(3, 2))[rows][:, columns] + rng.normal(size=(12, 10))
    problem = make_problem(X, "gaussian")
    fewer, flat, wrong = np.minimum(rows, 1), (0 * rows, 0 * columns), np.arange(12) // 4
    labels = [
        (fewer, columns),
        (np.minimum(wrong, 1), columns),
        (wrong, columns),
        (rows, columns),
        (rows, flat[1]),
        (fewer, flat[1]),
        (flat[0], columns),
        (np.arange(12), np.arange(10)),
    ]
    settled = [make_blocks(problem, *both) for both in labels]
    # A start of a single block has a single cut.
    start = make_blocks(problem, *flat)
    starts = len(settled) * [Start(start, build_hierarchy(problem, start))]
    kept, told = Settled(settled), []
    settings = BlockSettings(criterion=criterion)
    # Few candidates, if they have many entries together.
    monkeypatch.setattr(fit, "_REFINED_ENTRIES", entries)
    run = Run(progress=lambda *news: told.append(news), checkpoint=kept)
    found, _ = fit._fit_by_icl(problem, starts, settings, run)
    score = partial(icl if criterion == "icl" else evidence, problem)
    leaders = [settled[place] for place in (0, 3, 4, 5, 6)]
    leaders.sort(key=score, reverse=True)
    assert [id(blocks) for blocks in kept.refined] == [id(one) for one in leaders[:n_refined]]
    assert found is leaders[0]
    assert found.shape == best
    assert is_saturated(problem, settled[-1].shape)
    # Equal cuts are one.
    counted = [news[1:] for news in told if news[0] == "cuts settled"]
    assert counted == [(done, 1) for done in range(len(settled) + 1)]


def test_of_cuts_of_one_side_alone_the_best_two_are_settled():
    """Rows of four kinds, and columns of one."""
    rng = np.random.default_rng(3)
    X = 3 * rng.normal(size=(4, 1))[np.arange(24) % 4] + rng.normal(size=(24, 14))
    _, problem, starts = begin(X, "gaussian", n_init=1, center="none")
    cuts = best_cuts(problem, starts[0].fine, starts[0].hierarchy)
    numbers = [cut.numbers for cut in cuts[:6]]
    assert numbers == [(4, 1), (5, 1), (6, 1), (4, 2), (7, 1), (5, 2)]
    kept = Kept()
    fit._fit_by_icl(problem, starts, BlockSettings(), Run(checkpoint=kept))
    expected = [soft_sweep(problem, starts[0].cut(numbers[place])) for place in (0, 1, 3, 5)]
    for (_, given), blocks in zip(kept.named("cut"), expected, strict=True):
        np.testing.assert_array_equal(given.labels[0], blocks.labels[0])
        np.testing.assert_array_equal(given.labels[1], blocks.labels[1])


@pytest.mark.parametrize("criterion", ["jump", "icl"])
@pytest.mark.parametrize("given", [(None, None), (3, None), (None, 4)], ids=str)
def test_the_best_cuts_of_every_start_are_settled_and_the_best_of_them_refined(
    family, criterion, given
):
    X = draw(family, np.arange(16) % 2, np.arange(12) % 3, np.random.default_rng(2))
    X = X[:, ::-1] + X if family != "bernoulli" else X
    _, problem, starts = begin(X, family, n_init=3)
    kept = Kept()
    settings = BlockSettings(*given, criterion, max_iter=7, tol=1e-4)
    best, _ = fit._fit_by_icl(problem, starts, settings, Run(checkpoint=kept))
    score = partial(icl if criterion == "icl" else evidence, problem)
    # Three cuts, or two and then two that split both sides; none of them twice.
    distinct = []
    for start in starts:
        cuts = best_cuts(problem, start.fine, start.hierarchy, given)
        crossed = [cut for cut in cuts[2:] if min(cut.numbers) > 1]
        for cut in cuts[:2] + crossed[:2] if family == "gaussian" else cuts[:3]:
            blocks = start.cut(cut.numbers)
            if not any(same_partitions(blocks, other) for other in distinct):
                distinct.append(blocks)
    settled = kept.named("cut")
    for (_, blocks), cut in zip(settled, distinct, strict=True):
        expected = soft_sweep(problem, cut)
        np.testing.assert_array_equal(blocks.labels[0], expected.labels[0])
        np.testing.assert_array_equal(blocks.labels[1], expected.labels[1])
    leaders = {}
    for _, blocks in settled:
        leaders[blocks.shape] = max(leaders.get(blocks.shape, -np.inf), score(blocks))
    refined = kept.named("refined")
    expected = sorted(leaders.values(), reverse=True)[:4]
    if given == (None, None):
        assert [score(arguments[1]) for arguments, _ in refined] == pytest.approx(expected)
    assert len(refined) == len(expected)
    for arguments, blocks in refined:
        for asked, now in zip(given, arguments[1].shape, strict=True):
            assert asked in (None, now)
        assert score(blocks) >= score(arguments[1])
        # Moves change no number that is given.
        assert arguments[4] == tuple(number is None for number in given)
    ((arguments, last),) = kept.named("settled")
    winner = arguments[-1]
    if given == (None, None):
        assert score(winner) == pytest.approx(max(score(blocks) for _, blocks in refined))
    # Left to settle, it may lose clusters: then it stays as it was.
    assert best is (last if last.shape == winner.shape else winner)
    assert kept.pieces[-1][1].keywords == {"balanced": False, "max_iter": 7, "tol": 1e-4}
