"""Matrices with very many points on one side are searched by a sample."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from ccot import TransportCoclustering
from ccot.blocks import fit as sampled
from ccot.blocks.fit import BlockSettings, search_blocks
from ccot.blocks.placement import place_side
from ccot.blocks.preparation import choose_preparation, settle_family, with_effects
from ccot.blocks.problem import make_blocks
from ccot.blocks.sweep import sweep
from ccot.metrics import error_rate
from ccot.runtime.run import Run
from tests.blocks.matrices import draw, seeded


@pytest.fixture
def few_are_many(monkeypatch):
    monkeypatch.setattr(sampled, "MANY_POINTS", 1000)
    monkeypatch.setattr(sampled, "SAMPLE", 300)


def lopsided(n_points=3000, n_values=6, level=False):
    rng = np.random.default_rng(0)
    truth = np.arange(n_points) % 3
    X = rng.normal(size=(n_points, n_values)) + 6 * rng.normal(size=(3, n_values))[truth]
    return X + (5 * rng.normal(size=(n_points, 1)) if level else 0), truth


@pytest.mark.parametrize("turn", [np.asarray, np.transpose], ids=["rows", "columns"])
def test_all_points_are_placed(few_are_many, turn):
    X, truth = lopsided()
    model = TransportCoclustering(random_state=0).fit(turn(X))
    labels = model.row_labels_ if turn is np.asarray else model.column_labels_
    assert error_rate(truth, labels) < 0.01
    np.testing.assert_array_equal(model.predict(turn(X)), model.row_labels_)
    cut = model.cut(2, 1) if turn is np.asarray else model.cut(1, 2)
    assert len(cut.row_labels) == turn(X).shape[0]
    assert model.block_means_.shape == (model.n_row_clusters_, model.n_column_clusters_)


def test_counts_are_placed_too(few_are_many):
    rng = np.random.default_rng(0)
    truth = np.arange(2000) % 2
    X = rng.poisson(np.array([[9, 9, 1, 1, 4], [1, 1, 9, 9, 4]])[truth]).astype(float)
    model = TransportCoclustering(family="poisson", random_state=0).fit(X)
    assert error_rate(truth, model.row_labels_) < 0.01


@pytest.mark.parametrize(
    ("shape", "expected"),
    [((1001, 256), True), ((256, 1001), True), ((1000, 5), False), ((1001, 257), False)],
)
def test_long_and_narrow_arrays_are_searched_by_a_sample(few_are_many, shape, expected):
    X = np.ones(shape)
    assert sampled.is_lopsided(X, BlockSettings()) == expected
    assert not sampled.is_lopsided(X, BlockSettings(balanced=True))
    assert not sampled.is_lopsided(sp.csr_array(X), BlockSettings())


@pytest.mark.parametrize("axis", [0, 1], ids=["rows", "columns"])
def test_as_many_clusters_as_the_sample_has_points_can_be_found_in_it(few_are_many, axis):
    X = turned(np.ones((1001, 200)), axis)
    for given, expected in ((300, True), (301, False)):
        settings = BlockSettings(*turned_pair(given, None, axis))
        assert sampled.is_lopsided(X, settings) == expected
        # The other side is not sampled.
        settings = BlockSettings(*turned_pair(None, given, axis))
        assert sampled.is_lopsided(X, settings)


def counts(n_points):
    rows, columns = np.arange(n_points) % 2, np.arange(6) % 3
    return draw("poisson", rows, columns, np.random.default_rng(0))


def turned(X, axis):
    """Points of the longer side as rows, or as columns."""
    return X.T if axis else X


def turned_pair(points, values, axis):
    """Labels of points and of their values as labels of rows and of columns."""
    return (values, points) if axis else (points, values)


@pytest.fixture
def sample_of_fifty(monkeypatch):
    monkeypatch.setattr(sampled, "MANY_POINTS", 100)
    monkeypatch.setattr(sampled, "SAMPLE", 50)


@pytest.mark.parametrize("axis", [0, 1], ids=["rows", "columns"])
@pytest.mark.parametrize(
    "settings",
    [{}, {"scale": "standard"}, {"center": "rows"}, {"heteroscedastic": True}],
    ids=str,
)
def test_the_sample_is_searched_and_its_blocks_are_brought_to_all(sample_of_fifty, axis, settings):
    X, told = turned(counts(120), axis), []
    settings = BlockSettings(*turned_pair(2, 3, axis), n_init=1, **settings)
    run = seeded(lambda message, *_: told.append(message))
    answer = sampled.fit_matrix(X, "auto", settings, run)
    assert told[0] == f"50 of 120 {('rows', 'columns')[axis]} are used to find blocks"
    assert told[-1] == f"{answer.row.n_clusters} x {answer.column.n_clusters} clusters"
    rng = np.random.default_rng(0)
    chosen = np.sort(rng.choice(120, 50, replace=False))
    sample = np.take(X, chosen, axis)
    name, reason = settle_family(sample, "auto", settings.scale, settings.center)
    found = search_blocks(sample, name, settings, Run(rng))
    expected = sampled.finish(X, sampled._bring_all(X, axis, chosen, found, settings), settings)
    assert (answer.family, answer.family_reason) == (name, reason)
    assert answer.icl == expected.icl
    for side, other in ((answer.row, expected.row), (answer.column, expected.column)):
        np.testing.assert_array_equal(side.labels, other.labels)
        np.testing.assert_array_equal(side.confidence, other.confidence)
    np.testing.assert_array_equal(answer.block_means, expected.block_means)


def test_other_matrices_are_searched_whole(sample_of_fifty):
    settings = BlockSettings(n_init=1)
    for X in (counts(100), sp.csr_array(counts(110))):
        answer = sampled.fit_matrix(X, "poisson", settings, seeded())
        expected = sampled.fit_blocks(X, "poisson", settings, seeded())
        assert answer.icl == expected.icl
        np.testing.assert_array_equal(answer.row.labels, expected.row.labels)
        np.testing.assert_array_equal(answer.column.labels, expected.column.labels)


@pytest.mark.parametrize("axis", [0, 1], ids=["rows", "columns"])
@pytest.mark.parametrize(
    ("family", "settings"),
    [
        ("poisson", {}),
        ("gaussian", {"scale": "standard", "center": "both"}),
        ("gaussian", {"heteroscedastic": True, "center": "columns"}),
    ],
    ids=str,
)
def test_others_go_where_the_sample_says_and_all_are_swept(axis, family, settings, monkeypatch):
    X, rng, asked = turned(counts(120), axis), np.random.default_rng(1), []
    settings = BlockSettings(n_init=1, **settings)
    chosen = np.sort(rng.choice(120, 50, replace=False))
    found = search_blocks(np.take(X, chosen, axis), family, settings, seeded())
    found = replace(found, problem=found.problem.with_dispersion(1.25))
    # Some points of the sample are in the wrong cluster.
    points, values = (chosen + (rng.uniform(size=50) < 0.2)) % 2, np.arange(6) % 3
    first, second, finest = (
        make_blocks(found.problem, *turned_pair(*pair, axis))
        for pair in ((points, values), (points, values % 2), (rng.integers(0, 4, 50), values))
    )
    found = replace(found, views=(first, second), finest=finest)

    def watched(*given, **options):
        asked.append(options)
        return sweep(*given, **options)

    monkeypatch.setattr(sampled, "sweep", watched)
    whole = sampled._bring_all(X, axis, chosen, found, settings)
    assert asked == 2 * [{"max_iter": 4, "tol": 1e-3}]
    preparation = with_effects(
        choose_preparation(X, family, settings.scale), X, found.preparation.center
    )
    problem = sampled.prepare_problem(X, preparation, settings.heteroscedastic)
    problem = problem.with_dispersion(1.25)
    assert whole.preparation.sentence == found.preparation.sentence
    np.testing.assert_array_equal(whole.preparation.matrix(X), preparation.matrix(X))
    np.testing.assert_array_equal(whole.problem.axes[0].values, problem.axes[0].values)
    assert (whole.problem.family, whole.problem.dispersion) == (family, 1.25)

    def brought(blocks):
        """The points of the sample stay where they are."""
        labels = place_side(found.problem, found.preparation, blocks, axis).labels(turned(X, axis))
        assert (labels[chosen] != blocks.labels[axis]).any()
        labels[chosen] = blocks.labels[axis]
        return make_blocks(problem, *blocks.relabelled(axis, labels))

    swept = [sweep(problem, brought(blocks), max_iter=4, tol=1e-3) for blocks in found.views]
    pairs = zip((*whole.views, whole.finest), (*swept, brought(finest)), strict=True)
    for given, expected in pairs:
        np.testing.assert_array_equal(given.labels[0], expected.labels[0])
        np.testing.assert_array_equal(given.labels[1], expected.labels[1])
        np.testing.assert_array_equal(given.total, expected.total)
    # Rows and columns that share a view are brought and swept once.
    shared = sampled._bring_all(X, axis, chosen, replace(found, views=(second, second)), settings)
    assert shared.views[0] is shared.views[1]
    np.testing.assert_array_equal(shared.views[0].total, whole.views[1].total)
    assert len(asked) == 3


def test_clusters_that_all_points_would_leave_stay():
    """Equal points go to the larger cluster."""
    X = np.repeat(np.random.default_rng(0).normal(size=(1, 6)), 40, axis=0)
    chosen, settings = np.arange(0, 40, 2), BlockSettings(1, 2, n_init=1)
    found = search_blocks(X[chosen], "gaussian", settings, seeded())
    rows, columns = np.repeat([0, 1], [15, 5]), np.arange(6) % 2
    view = make_blocks(found.problem, rows, columns)
    whole = sampled._bring_all(X, 0, chosen, replace(found, views=(view, view)), settings)
    assert whole.views[0].shape == (2, 2)
    np.testing.assert_array_equal(whole.views[0].labels[0][chosen], rows)
    np.testing.assert_array_equal(whole.views[0].labels[0][1::2], np.zeros(20))


def test_all_points_are_swept_by_all_threads():
    X, chosen, settings = counts(120), np.arange(50), BlockSettings(2, 3, n_init=1)
    one, two = (
        sampled._bring_all(
            X, 0, chosen, search_blocks(X[chosen], "poisson", settings, run), settings
        )
        for run in (seeded(), replace(seeded(), n_jobs=2))
    )
    assert (one.problem.backend.n_jobs, two.problem.backend.n_jobs) == (1, 2)
    np.testing.assert_array_equal(two.views[0].labels[0], one.views[0].labels[0])


def test_all_points_are_swept_on_the_device():
    X, chosen = counts(120), np.arange(50)
    settings = BlockSettings(2, 3, n_init=1, device="cpu")
    found = search_blocks(X[chosen], "poisson", settings, seeded())
    whole = sampled._bring_all(X, 0, chosen, found, settings)
    assert whole.problem.backend.device == "cpu"
    expected = sampled._bring_all(X, 0, chosen, found, replace(settings, device=None))
    for given, other in zip(whole.views[0].labels, expected.views[0].labels, strict=True):
        np.testing.assert_array_equal(given, other)
