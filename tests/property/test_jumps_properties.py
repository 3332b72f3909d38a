"""What every detection of jumps must satisfy."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ccot import detect_jumps
from ccot.scalings.jumps import DETECTORS, find_jumps

each_detector = pytest.mark.parametrize("method", DETECTORS)


def sorted_integers(min_size, max_size):
    """Integers, so that shifts and powers of two change no bit of a gap."""
    elements = st.integers(-1000, 1000)
    drawn = st.lists(elements, min_size=min_size, max_size=max_size)
    return drawn.map(lambda values: np.sort(np.array(values, dtype=float)))


vectors = st.one_of(sorted_integers(1, 30), sorted_integers(60, 200))


@st.composite
def stepped(draw):
    """Steps of 6 to 60 values whose gaps tower over the spacing on them."""
    sizes = draw(st.lists(st.integers(6, 60), min_size=1, max_size=6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    parts = [np.sort(rng.uniform(size=size)) + 1000.0 * step for step, size in enumerate(sizes)]
    return np.concatenate(parts), np.cumsum(sizes)[:-1]


def is_peak(heights, place):
    return heights[place] == max(heights[max(place - 1, 0) : place + 2])


def slow_strength(values):
    """The test of the module's docstring, gap by gap."""
    n_values, gaps = len(values), np.diff(values)
    n_links = max(1, int(np.log2(n_values)) - 1)
    costs = []
    for link in range(n_links):
        means = [values[at : at + 2**link].mean() for at in range(0, n_values, 2**link)]
        steps = np.r_[0, np.diff(means), 0]
        costs.append(steps[:-1] + steps[1:])
    strength = np.zeros(len(gaps))
    for place in np.flatnonzero(gaps):
        if not is_peak(gaps, place):
            continue
        log_chance = np.zeros(2)
        for link in range(n_links):
            beside = place >> link, (place + 1) >> link
            if link and not any(is_peak(costs[link], at) for at in beside):
                break
            for window in (2 * 2**link, 3 * 2**link):
                parts = gaps[max(place - window, 0) : place], gaps[place + 1 :][:window]
                for side, part in enumerate(parts):
                    ratio = gaps[place] / max(part.sum(), 1e-15 * gaps[place])
                    log_chance[side] = min(log_chance[side], -len(part) * np.log1p(ratio))
        log_bound = log_chance.max() + np.log(len(gaps) * 2 * n_links)
        strength[place] = max(-log_bound, 0) / np.log(10)
    return strength


@given(values=st.one_of(sorted_integers(2, 40), stepped().map(lambda case: case[0])))
@example(values=np.repeat([0.0, 9.0], 3))
@example(values=np.repeat([0.0, 1.0, 4.0], [11, 17, 9]) + np.linspace(0, 0.1, 37))
def test_strength_is_that_of_the_slow_test(values):
    np.testing.assert_allclose(find_jumps(values).strength, slow_strength(values), atol=1e-9)


@pytest.mark.parametrize("place", [5, 150, 293])
def test_strength_is_that_of_the_slow_test_among_gaps_of_all_sizes(place):
    """Far from zero, with a wide gap at this place, and of a length that halves to odd ones."""
    gaps = np.random.default_rng(place).pareto(0.7, size=299)
    gaps[place] = gaps.sum()
    values = 1e6 + np.cumsum(np.r_[0, gaps])
    strength = find_jumps(values).strength
    assert strength[place] > 2
    np.testing.assert_allclose(strength, slow_strength(values), atol=1e-6)


def printed(values):
    """Section 3.5 of the paper, word by word, for 2**k values."""
    n_values, suspicious = len(values), []
    while len(values):
        differences = [0, *(b - a for a, b in pairwise(values)), 0]
        costs = [before + after for before, after in pairwise(differences)]
        suspicious.append({i for i in range(len(costs)) if is_peak(costs, i)})
        if len(values) == n_values:
            gaps = differences
        values = [(a + b) / 2 for a, b in zip(values[::2], values[1::2], strict=False)]
    chained = (
        i
        for i in range(n_values)
        if all(i >> scale in some for scale, some in enumerate(suspicious))
    )
    jumps = {i + 1 if gaps[i + 1] >= gaps[i] else i for i in chained}
    return sorted(place for place in jumps if gaps[place] > 0)


@given(
    values=st.integers(1, 6).flatmap(
        lambda k: st.one_of(
            st.lists(st.integers(0, 5), min_size=2**k, max_size=2**k),
            st.lists(st.integers(0, 10**6), min_size=2**k, max_size=2**k),
        )
    )
)
@example(values=[0] * 8 + [3] * 8 + [5] * 16)
def test_the_printed_detector_is_the_text_word_by_word(values):
    values = np.sort(np.array(values, dtype=float))
    assert detect_jumps(values, "paper").tolist() == printed(values.tolist())


@given(sizes=st.tuples(st.integers(1, 150), st.integers(1, 150)), height=st.integers(1, 99))
def test_the_printed_detector_finds_one_clean_step_anywhere(sizes, height):
    values = np.repeat([0.0, height], sizes)
    assert detect_jumps(values, "paper").tolist() == [sizes[0]]


@each_detector
@given(values=vectors, shift=st.integers(-(2**20), 2**20), power=st.integers(-30, 30))
def test_shift_and_scale_change_nothing(method, values, shift, power):
    expected = detect_jumps(values, method)
    np.testing.assert_array_equal(detect_jumps((values + shift) * 2.0**power, method), expected)


@given(values=sorted_integers(2, 7))
def test_both_sides_of_a_gap_are_tested_alike(values):
    """Turning a short vector round, of which no averages are taken, turns the strengths."""
    strength, turned = (find_jumps(given).strength for given in (values, np.sort(-values)))
    np.testing.assert_allclose(turned[::-1], strength, atol=1e-12)


@each_detector
@given(values=vectors)
def test_positions_are_increasing_and_lie_at_real_gaps(method, values):
    positions = detect_jumps(values, method)
    assert (np.diff(positions) > 0).all()
    assert (values[positions] > values[positions - 1]).all()


@each_detector
@given(values=vectors)
def test_as_many_jumps_as_were_found_are_those(method, values):
    found = detect_jumps(values, method)
    np.testing.assert_array_equal(detect_jumps(values, method, n_jumps=len(found)), found)


@given(case=stepped())
def test_clear_steps_are_found_all_and_nothing_else(case):
    values, positions = case
    np.testing.assert_array_equal(detect_jumps(values), positions)


@given(case=stepped(), data=st.data())
def test_fewer_jumps_are_a_subset_of_more(case, data):
    values, positions = case
    more = data.draw(st.integers(0, len(values) - 1))
    fewer = data.draw(st.integers(0, more))
    assert set(detect_jumps(values, n_jumps=fewer)) <= set(detect_jumps(values, n_jumps=more))
    np.testing.assert_array_equal(detect_jumps(values, n_jumps=len(positions)), positions)


@given(values=vectors, levels=st.tuples(st.floats(1e-9, 1), st.floats(1e-9, 1)))
def test_a_stricter_level_keeps_fewer_jumps(values, levels):
    strict, lax = sorted(levels)
    assert set(detect_jumps(values, level=strict)) <= set(detect_jumps(values, level=lax))
