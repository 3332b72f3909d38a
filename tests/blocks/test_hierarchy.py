import numpy as np
import pytest

from ccot.blocks.hierarchy import Start, build_hierarchy, pair_costs, share_kept
from ccot.blocks.problem import information, make_blocks, make_problem
from ccot.metrics import error_rate


@pytest.fixture
def fine(planted, family):
    """An over-segmentation whose clusters are parts of the planted ones."""
    X, rows, columns = planted
    problem = make_problem(X, family)
    rng = np.random.default_rng(1)
    parts = [4 * labels + rng.integers(0, 4, len(labels)) for labels in (rows, columns)]
    return problem, make_blocks(problem, *parts)


def test_pair_costs_are_differences_of_information(fine):
    problem, blocks = fine
    costs = pair_costs(problem, blocks.total, blocks.exposure)
    before = information(problem, blocks)
    for first, second in [(0, 1), (2, 7), (5, 3)]:
        labels = np.where(blocks.labels[0] == second, first, blocks.labels[0])
        merged = make_blocks(problem, labels, blocks.labels[1])
        lost = before - information(problem, merged)
        assert costs[first, second] == pytest.approx(lost, rel=1e-6, abs=1e-6)
        assert costs[second, first] == pytest.approx(costs[first, second], rel=1e-9)
    assert np.isinf(np.diag(costs)).all()


@pytest.mark.parametrize("axis", [0, 1])
def test_costs_add_up_to_all_information(fine, axis):
    problem, blocks = fine
    hierarchy = build_hierarchy(problem, blocks)
    labels = list(blocks.labels)
    labels[axis] = np.zeros_like(labels[axis])
    lost = information(problem, blocks) - information(problem, make_blocks(problem, *labels))
    assert hierarchy.costs(axis).sum() == pytest.approx(lost, rel=1e-6)
    assert len(hierarchy.costs(axis)) == blocks.shape[axis] - 1
    assert (hierarchy.costs(axis) >= 0).all()
    # The last merge, of two clusters into one, comes first.
    assert hierarchy.costs(axis)[0] == hierarchy.side(axis)[-1].cost


@pytest.mark.parametrize("axis", [0, 1])
def test_first_merge_is_the_cheapest_pair(fine, axis):
    problem, blocks = fine
    first = build_hierarchy(problem, blocks).side(axis)[0]
    costs = pair_costs(problem, *blocks.table(axis))
    assert first.cost == pytest.approx(costs.min(), abs=1e-9)
    assert costs[first.first, first.second] == costs.min()


@pytest.mark.parametrize("axis", [0, 1])
def test_cuts_have_their_number_and_nest(fine, axis):
    problem, blocks = fine
    hierarchy = build_hierarchy(problem, blocks)
    finer = hierarchy.cut(axis, blocks.shape[axis])
    np.testing.assert_array_equal(finer, np.arange(blocks.shape[axis]))
    for number in range(blocks.shape[axis] - 1, 0, -1):
        cut = hierarchy.cut(axis, number)
        np.testing.assert_array_equal(np.unique(cut), np.arange(number))
        # Every finer cluster lies in one coarser cluster.
        assert len(set(zip(finer, cut, strict=True))) == number + 1
        finer = cut
    np.testing.assert_array_equal(hierarchy.cut(axis, 99), np.arange(blocks.shape[axis]))


def test_parts_of_planted_clusters_are_put_together(planted, fine):
    problem, blocks = fine
    hierarchy = build_hierarchy(problem, blocks)
    for axis, number in ((0, 2), (1, 3)):
        found = hierarchy.cut(axis, number)[blocks.labels[axis]]
        assert error_rate(planted[1 + axis], found) == 0


def test_nodes_hold_the_leaves_of_their_parts(fine):
    hierarchy = build_hierarchy(*fine)
    for axis in (0, 1):
        members, parts = hierarchy.nodes(axis)
        n_leaves = hierarchy.shape[axis]
        assert members.shape == (2 * n_leaves - 1, n_leaves)
        np.testing.assert_array_equal(members[-1], 1)
        for step, (one, other) in enumerate(parts):
            np.testing.assert_array_equal(members[n_leaves + step], members[one] + members[other])
            assert members[n_leaves + step].max() == 1


def test_share_kept_goes_from_one_to_nothing(fine):
    problem, blocks = fine
    single = make_blocks(problem, *(np.zeros_like(labels) for labels in blocks.labels))
    assert share_kept(problem, blocks, blocks) == pytest.approx(1)
    assert share_kept(problem, blocks, single) == pytest.approx(0, abs=1e-9)
    hierarchy = build_hierarchy(problem, blocks)
    row_cut, column_cut = (
        hierarchy.cut(axis, number)[blocks.labels[axis]] for axis, number in ((0, 2), (1, 3))
    )
    assert 0.8 < share_kept(problem, blocks, make_blocks(problem, row_cut, column_cut)) < 1
    assert share_kept(problem, single, single) == 1
    assert share_kept(problem, make_blocks(problem, row_cut, column_cut), blocks) == 1


@pytest.mark.parametrize("family", ["gaussian", "poisson"], indirect=True)
@pytest.mark.parametrize("seed", range(6))
def test_rounding_is_nothing_to_keep(family, seed):
    rng = np.random.default_rng(seed)
    level = 1e8 + rng.normal(size=(40, 30))
    product = np.outer(rng.uniform(1, 9, 40), rng.uniform(1, 9, 30))
    problem = make_problem(level if family == "gaussian" else product, family)
    blocks = make_blocks(problem, np.arange(40) % 4, np.arange(30) % 3)
    single = make_blocks(problem, np.zeros(40, int), np.zeros(30, int))
    assert share_kept(problem, blocks, single) == 1


@pytest.mark.parametrize("numbers", [(2, 3), (None, 3), (2, None), (None, None)])
def test_a_start_is_cut_where_a_number_is_given(fine, numbers):
    problem, blocks = fine
    start = Start(blocks, build_hierarchy(problem, blocks))
    wanted = [blocks.shape[axis] if n is None else n for axis, n in enumerate(numbers)]
    cut = start.cut(numbers)
    assert cut.shape == tuple(wanted)
    for axis, number in enumerate(wanted):
        expected = start.hierarchy.cut(axis, number)[blocks.labels[axis]]
        np.testing.assert_array_equal(cut.labels[axis], expected)


def test_merged_blocks_are_those_of_the_merged_labels(fine):
    problem, blocks = fine
    hierarchy = build_hierarchy(problem, blocks)
    rows, columns = hierarchy.cut(0, 2), hierarchy.cut(1, 3)
    merged = blocks.merged(rows, columns)
    direct = make_blocks(problem, rows[blocks.labels[0]], columns[blocks.labels[1]])
    for axis in (0, 1):
        np.testing.assert_array_equal(merged.labels[axis], direct.labels[axis])
    np.testing.assert_allclose(merged.total, direct.total, rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(merged.exposure, direct.exposure, rtol=1e-12)
