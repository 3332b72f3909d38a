import numpy as np
import pytest
import scipy.sparse as sp

from ccot.blocks import reproducibility, select
from ccot.blocks.criteria import Candidate, best_cuts, jump_scores, mean_costs
from ccot.blocks.hierarchy import Start, build_hierarchy
from ccot.blocks.problem import make_blocks, make_problem
from ccot.blocks.reproducibility import Halves, describe
from ccot.blocks.select import crossed, led_by, select_numbers, trust_icl
from tests.blocks.matrices import draw_noise, seeded


def best(found):
    return tuple(numbers[0] if numbers else None for numbers in found.finalists)


def chosen(problem, starts, given, criterion):
    found = select_numbers(problem, starts, given, criterion, seeded())
    return best(found), found.candidates


def make_start(problem, rows, columns):
    fine = make_blocks(problem, rows, columns)
    return Start(fine, build_hierarchy(problem, fine))


@pytest.fixture
def clear(planted, family):
    """Two over-segmentations of planted blocks, the second one coarser."""
    X, rows, columns = planted
    problem = make_problem(X, family)
    parts = [np.arange(len(labels)) for labels in (rows, columns)]
    return problem, [
        make_start(problem, 10 * rows + parts[0] % n, 10 * columns + parts[1] % n) for n in (5, 3)
    ]


@pytest.fixture(scope="module")
def smooth():
    """Structure at every scale: the finer the blocks, the better."""
    rng = np.random.default_rng(0)
    rows, columns = np.repeat(np.arange(12), 5), np.repeat(np.arange(10), 5)
    heights = np.where(rows < 4, 0.0, 60.0) + rows, np.where(columns < 6, 0.0, 40.0) + columns
    X = np.add.outer(*heights) + 0.1 * rng.normal(size=(60, 50))
    problem = make_problem(X, "gaussian")
    return problem, [make_start(problem, rows, columns), make_start(problem, rows // 2, columns)]


@pytest.fixture
def few_halves(monkeypatch):
    """Halves are made twice, and compared with one noise matrix: enough for these, and quick."""
    monkeypatch.setattr(reproducibility, "_MOST_SPLITS", 2)
    monkeypatch.setattr(reproducibility, "_N_NULLS", 1)


def test_clear_blocks_are_left_to_icl(clear, family):
    problem, starts = clear
    for criterion in ("auto", "jump", "icl"):
        numbers, candidates = chosen(problem, starts, (None, None), criterion)
        assert numbers == (None, None)
        assert candidates[0].numbers == (2, 3)
    scores = [candidate.score for candidate in candidates]
    assert scores == sorted(scores, reverse=True)
    assert len({candidate.numbers for candidate in candidates}) == len(candidates) == 10
    cuts = [best_cuts(problem, start.fine, start.hierarchy) for start in starts]
    for candidate in candidates:
        found = [cut.score for start in cuts for cut in start if cut.numbers == candidate.numbers]
        assert candidate.score == max(found)


def test_given_numbers_are_all_that_icl_is_asked_about(clear):
    problem, starts = clear
    _, candidates = chosen(problem, starts, (4, None), "icl")
    assert {candidate.numbers[0] for candidate in candidates} == {4}


@pytest.mark.parametrize(
    ("given", "flat"), [((None, None), (1, 1)), ((3, None), (3, 1)), ((None, 2), (1, 2))]
)
def test_noise_has_the_numbers_it_was_given_or_one(family, given, flat):
    problem = make_problem(draw_noise(family, (50, 40), np.random.default_rng(3)), family)
    starts = [make_start(problem, np.arange(50) % 8, np.arange(40) % 8)]
    numbers, candidates = chosen(problem, starts, given, "jump")
    assert numbers == flat
    assert candidates == (Candidate(*flat, 0.0, "icl"),)


@pytest.mark.parametrize("criterion", ["auto", "reproducibility"])
def test_noise_whose_halves_disagree_stays_one_block(family, criterion, few_halves):
    problem = make_problem(draw_noise(family, (50, 40), np.random.default_rng(3)), family)
    starts = [make_start(problem, np.arange(50) % 8, np.arange(40) % 8)]
    found = select_numbers(problem, starts, (None, None), criterion, seeded())
    assert best(found) == (1, 1)
    assert found.halves == (None, None)
    asked = select_numbers(problem, starts, (3, None), criterion, seeded())
    assert best(asked) == (3, 1)
    assert asked.halves[1] is None
    rows = np.arange(50) % 3
    assert not describe(asked.halves[0], rows, rows, np.eye(3)).comes_back


@pytest.mark.parametrize(("n_fine", "given"), [(8, 7), (3, 2)])
def test_a_given_number_beyond_the_jumps_is_looked_into(family, n_fine, given, few_halves):
    problem = make_problem(draw_noise(family, (50, 40), np.random.default_rng(3)), family)
    starts = [make_start(problem, np.arange(50) % n_fine, np.zeros(40, int))]
    found = select_numbers(problem, starts, (given, None), "auto", seeded())
    assert best(found) == (given, 1)
    assert given in found.halves[0].numbers
    # Columns are one fine cluster: there is nothing to find again.
    assert found.halves[1] is None


def test_one_block_is_not_for_clusters_that_come_back(few_halves):
    """Short texts of two topics: too few words for ICL, yet halves of the words agree on them."""
    rng = np.random.default_rng(0)
    topics, words = np.arange(120) % 2, np.arange(800) // 400
    rates = np.where(topics[:, None] == words, 0.065, 0.02)
    problem = make_problem(rng.poisson(rates).astype(float), "poisson")
    start = make_start(problem, 8 * topics + np.arange(120) % 4, np.arange(800) // 100)
    assert chosen(problem, [start], (None, None), "jump")[0] == (1, 1)
    found = select_numbers(problem, [start], (None, None), "auto", seeded())
    assert found.finalists[0][0] == 2
    assert found.halves[0].highest() > found.halves[0].expected + 0.1
    assert {candidate.criterion for candidate in found.candidates} == {"reproducibility"}


def test_halves_name_the_numbers_where_structure_has_every_scale(smooth, few_halves):
    problem, starts = smooth
    found = select_numbers(problem, starts, (None, None), "auto", seeded())
    assert {candidate.criterion for candidate in found.candidates} == {"reproducibility"}
    for numbers, halves in zip(found.finalists, found.halves, strict=True):
        assert set(numbers) <= set(halves.numbers)
    assert len(found.finalists[1]) == 1
    costs = [mean_costs([start.hierarchy for start in starts], axis) for axis in (0, 1)]
    scores = [
        halves.scores(jump_scores(side, limit))
        for halves, side, limit in zip(found.halves, costs, (12, 10), strict=True)
    ]
    for candidate in found.candidates:
        expected = sum(side[k] for side, k in zip(scores, candidate.numbers, strict=True))
        assert candidate.score == pytest.approx(expected)


def test_given_numbers_are_looked_into_on_request(smooth, few_halves):
    problem, starts = smooth
    given = select_numbers(problem, starts, (None, 9), "auto", seeded())
    assert given.finalists[1] == (9,)
    assert given.halves[1] is None
    looked_into = select_numbers(problem, starts, (None, 9), "reproducibility", seeded())
    assert 9 in looked_into.halves[1].numbers
    # One cluster need not be found again; two do.
    looked_into = select_numbers(problem, starts, (2, 1), "reproducibility", seeded())
    assert looked_into.finalists == ((2,), (1,))
    assert 2 in looked_into.halves[0].numbers
    assert looked_into.halves[1] is None


def test_halves_are_asked_on_request_where_icl_is_trusted(clear, few_halves):
    """About all numbers up to half of the fine clusters, also those that ICL would not take."""
    problem, starts = clear
    found = select_numbers(problem, starts[:1], (None, None), "reproducibility", seeded())
    assert [halves.numbers.tolist() for halves in found.halves] == [
        [2, 3, 4, 5],
        [2, 3, 4, 5, 6, 7],
    ]


def test_jumps_decide_where_halves_reach_no_number(few_halves):
    """One column tells rows apart: by the halves without it they are all the same."""
    X = np.zeros((40, 10))
    X[:, 0] = np.arange(40) // 5 + 10.0 * (np.arange(40) // 20)
    problem = make_problem(X, "gaussian")
    start = make_start(problem, np.arange(40) // 5, (np.arange(10) > 0).astype(int))
    found = select_numbers(problem, [start], (None, None), "reproducibility", seeded())
    assert best(found) == (2, 2)
    assert found.halves[0] is None


def test_numbers_that_halves_do_not_find_are_not_taken(smooth, monkeypatch):
    """Two clusters are nearest to everything; halves agree at four."""
    problem, starts = smooth
    agreement = np.array([[0.1, 0.2, 0.9]] * 2)
    labels = np.stack([starts[0].cut((k, None)).labels[0] for k in (2, 3, 4)])
    halves = Halves(np.array([2, 3, 4]), agreement, np.stack([labels] * 4))
    monkeypatch.setattr(select, "fit_halves", lambda *given: halves)
    monkeypatch.setattr(Halves, "distance", lambda self, cut: float(cut.max()))
    found = select_numbers(problem, starts, (None, 2), "auto", seeded())
    assert found.finalists[0] == (4,)


def test_few_of_the_numbers_that_are_as_near_are_fitted(smooth, monkeypatch):
    """As many as the entries allow that all fits may have together, one at least."""
    problem, starts = smooth
    numbers = np.arange(2, 12)
    labels = np.stack([starts[0].cut((k, None)).labels[0] for k in numbers])
    halves = Halves(numbers, np.ones((2, 10)), np.stack([labels] * 4))
    monkeypatch.setattr(select, "fit_halves", lambda *given: halves)
    monkeypatch.setattr(Halves, "distance", lambda self, cut: 0.0)
    cells = 60 * 50
    for entries, n_fits in ((100 * cells, 6), (3 * cells, 3), (cells - 1, 1)):
        monkeypatch.setattr(select, "_FINALIST_ENTRIES", entries)
        found = select_numbers(problem, starts, (None, 2), "auto", seeded())
        assert found.finalists[0] == tuple(range(2, 2 + n_fits))


def test_structure_may_show_only_once_it_is_swept():
    """Every fifth row and column is in the wrong fine cluster, under noise that hides the rest."""
    rng = np.random.default_rng(2)
    rows, columns = np.arange(60) % 2, np.arange(50) % 2
    X = np.array([[0.8, 0.0], [0.0, 0.8]])[rows][:, columns] + rng.normal(size=(60, 50))
    problem = make_problem(X, "gaussian")
    spoiled = [np.where(np.arange(len(k)) % 5 == 0, 1 - k, k) for k in (rows, columns)]
    start = make_start(problem, *(2 * k + np.arange(len(k)) % 4 // 2 for k in spoiled))
    assert best_cuts(problem, start.fine, start.hierarchy)[0].numbers == (1, 1)
    assert chosen(problem, [start], (None, None), "jump")[0] == (None, None)


def test_jumps_name_the_scale_of_smooth_structure(smooth):
    problem, starts = smooth
    limit, trusted = trust_icl(problem, starts)
    assert limit == (12, 10)
    assert trusted == (False, False)
    numbers, candidates = chosen(problem, starts, (None, None), "jump")
    assert numbers == (2, 2)
    assert candidates[0].numbers == (2, 2)
    assert {candidate.criterion for candidate in candidates} == {"jump"}
    scores = [
        jump_scores(mean_costs([start.hierarchy for start in starts], axis), limit[axis])
        for axis in (0, 1)
    ]
    for candidate in candidates:
        expected = sum(side[k] for side, k in zip(scores, candidate.numbers, strict=True))
        assert candidate.score == pytest.approx(expected)
    rest = [candidate.score for candidate in candidates[1:]]
    assert rest == sorted(rest, reverse=True)
    assert len(candidates) == len(scores[0]) * len(scores[1])


def test_a_side_of_three_fine_clusters_has_no_jumps(smooth):
    (rows, columns), values = smooth[1][0].fine.labels, smooth[0].axes[0].values
    problem = make_problem(values[:, columns < 3], "gaussian")
    start = make_start(problem, rows, columns[columns < 3])
    numbers, candidates = chosen(problem, [start], (None, None), "jump")
    assert numbers == (2, 3)
    scores = jump_scores(start.hierarchy.costs(0), 12)
    for candidate in candidates:
        assert candidate.score == pytest.approx(scores[candidate.numbers[0]])


def test_a_given_number_leads_whatever_the_jumps_say(smooth):
    problem, starts = smooth
    numbers, candidates = chosen(problem, starts, (None, 9), "jump")
    assert numbers == (2, 9)
    assert candidates[0].numbers == (2, 9)
    # Nine is beyond the upper half of the tree: no jump speaks for or against it.
    alone = [
        jump_scores(mean_costs([start.hierarchy for start in starts], axis), 12) for axis in (0, 1)
    ]
    assert candidates[0].score == pytest.approx(alone[0][2])
    numbers, candidates = chosen(problem, starts, (11, None), "jump")
    assert numbers == candidates[0].numbers == (11, 2)
    assert candidates[0].score == pytest.approx(alone[1][2])
    assert chosen(problem, starts, (None, None), "icl")[0] == (None, None)


def test_where_icl_is_trusted_on_one_side_only_that_side_is_its(clear):
    problem, starts = clear
    assert trust_icl(problem, starts[1:])[1] == (True, False)
    numbers, candidates = chosen(problem, starts[1:], (None, None), "jump")
    scores = jump_scores(starts[1].hierarchy.costs(1), 3)
    assert numbers == (2, max(scores, key=lambda k: scores[k]))
    assert {candidate.numbers[0] for candidate in candidates} == {2}
    for candidate in candidates:
        assert candidate.score == pytest.approx(scores[candidate.numbers[1]])
    assert chosen(problem, starts[1:], (4, None), "jump")[0] == (4, numbers[1])


def test_icl_is_trusted_up_to_a_quarter_of_the_finest_or_two(clear):
    problem, starts = clear
    limit, trusted = trust_icl(problem, starts)
    assert limit == (2, 3)
    assert starts[0].fine.shape == (10, 15)
    assert trusted == (True, True)
    # Of six and nine fine clusters, two are few and three are many.
    assert starts[1].fine.shape == (6, 9)
    assert trust_icl(problem, starts[1:]) == ((2, 3), (True, False))


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize(("change", "trusted"), [(0.0, True), (1e-12, True), (1e-6, False)])
def test_icl_is_trusted_on_few_fine_clusters_of_equal_points(make, change, trusted):
    """Where four rows are all there are, no finer clusters are to be had."""
    rows, columns = np.arange(40) % 4, np.arange(30) % 15
    X = 1e3 * np.random.default_rng(0).normal(size=(4, 15))[rows][:, columns]
    X[0] *= 1 + change
    problem = make_problem(make(X), "gaussian")
    limit, found = trust_icl(problem, [make_start(problem, rows, columns)])
    assert limit[0] == 4
    assert found[0] is trusted


def test_icl_is_not_trusted_where_every_point_is_a_fine_cluster():
    X = np.add.outer(10.0 * np.arange(12), np.arange(30.0))
    problem = make_problem(X, "gaussian")
    limit, trusted = trust_icl(problem, [make_start(problem, np.arange(12), np.arange(30) // 3)])
    assert limit[0] == 12
    assert not trusted[0]


def test_crossed_cuts_split_both_sides():
    cuts = [Candidate(g, m, 0.0, "icl") for g, m in [(1, 3), (2, 2), (3, 1), (5, 2), (2, 7)]]
    assert [cut.numbers for cut in crossed(cuts)] == [(2, 2), (5, 2)]
    assert [cut.numbers for cut in crossed(cuts, 3)] == [(2, 2), (5, 2), (2, 7)]


def test_what_the_search_ended_at_leads_and_is_not_named_twice():
    others = tuple(Candidate(2, m, -float(m), "icl") for m in range(1, 13))
    found = Candidate(2, 5, 7.0, "icl")
    led = led_by(found, others)
    assert led[0] is found
    assert [candidate.numbers[1] for candidate in led] == [5, 1, 2, 3, 4, 6, 7, 8, 9, 10]
