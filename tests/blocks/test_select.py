import numpy as np
import pytest

from ccot.blocks import select
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
def test_noise_whose_halves_disagree_stays_one_block(family, criterion):
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


def test_one_block_is_not_for_clusters_that_come_back():
    """Short texts of two topics: too few words for ICL, yet halves of the words agree on them."""
    rng = np.random.default_rng(0)
    topics, words = np.arange(120) % 2, np.arange(800) // 400
    rates = np.where(topics[:, None] == words, 0.06, 0.02)
    problem = make_problem(rng.poisson(rates).astype(float), "poisson")
    start = make_start(problem, 8 * topics + np.arange(120) % 4, np.arange(800) // 100)
    assert chosen(problem, [start], (None, None), "jump")[0] == (1, 1)
    found = select_numbers(problem, [start], (None, None), "auto", seeded())
    assert found.finalists[0][0] == 2
    assert found.halves[0].highest() > found.halves[0].expected + 0.1


def test_halves_name_the_numbers_where_structure_has_every_scale(smooth):
    problem, starts = smooth
    found = select_numbers(problem, starts, (None, None), "auto", seeded())
    assert {candidate.criterion for candidate in found.candidates} == {"reproducibility"}
    for numbers, halves in zip(found.finalists, found.halves, strict=True):
        assert set(numbers) <= set(halves.numbers)
    assert len(found.finalists[1]) == 1
    given = select_numbers(problem, starts, (None, 9), "auto", seeded())
    assert given.finalists[1] == (9,)
    assert given.halves[1] is None
    looked_into = select_numbers(problem, starts, (None, 9), "reproducibility", seeded())
    assert looked_into.halves[1] is not None


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


def test_icl_is_trusted_up_to_a_quarter_of_the_finest_or_two(clear):
    problem, starts = clear
    limit, trusted = trust_icl(problem, starts)
    assert limit == (2, 3)
    assert starts[0].fine.shape == (10, 15)
    assert trusted == (True, True)
    # Of six and nine fine clusters, two are few and three are many.
    assert starts[1].fine.shape == (6, 9)
    assert trust_icl(problem, starts[1:]) == ((2, 3), (True, False))


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
