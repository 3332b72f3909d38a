import array_api_compat.torch
import numpy as np
import pytest

from ccot import detect_jumps
from ccot.scalings.jumps import DETECTORS, LEVEL, find_jumps, find_scaling_jumps

LAWS = {
    "normal": lambda rng, size: rng.normal(size=size),
    "uniform": lambda rng, size: rng.uniform(size=size),
    "exponential": lambda rng, size: rng.exponential(size=size),
    "log-normal": lambda rng, size: rng.lognormal(size=size),
    "t3": lambda rng, size: rng.standard_t(3, size=size),
}


def make_steps(sizes, noise=0.05, seed=0, heights=None):
    """Sorted values on steps of these sizes; as many apart as the heights say."""
    heights = np.arange(len(sizes)) if heights is None else heights
    rng = np.random.default_rng(seed)
    return np.sort(
        np.repeat(np.asarray(heights, float), sizes) + noise * rng.normal(size=sum(sizes))
    )


@pytest.mark.parametrize(
    "sizes",
    [
        [50, 50],
        [5, 95],
        [95, 5],
        [5, 90, 5],
        [10] * 4,
        [10] * 10,
        [6, 6],
        [200, 8, 200],
        [5, 295],
        [295, 5],
        [17, 40, 100, 443],
    ],
    ids=str,
)
@pytest.mark.parametrize("seed", range(5))
def test_clusters_of_any_size_are_found_at_any_place(sizes, seed):
    values = make_steps(sizes, noise=0.01, seed=seed)
    np.testing.assert_array_equal(detect_jumps(values), np.cumsum(sizes)[:-1])


@pytest.mark.parametrize("sizes", [[3, 297], [297, 3]], ids=str)
def test_the_smaller_a_cluster_the_wider_its_gap_must_be(sizes):
    assert len(detect_jumps(make_steps(sizes, noise=0.03))) == 0
    np.testing.assert_array_equal(detect_jumps(make_steps(sizes, noise=1e-4)), sizes[:1])


def test_steps_of_very_different_heights_are_all_found():
    values = make_steps([40, 40, 40, 40], noise=0.01, heights=[0, 0.5, 100, 1e4])
    np.testing.assert_array_equal(detect_jumps(values), [40, 80, 120])


def test_steps_of_very_different_spreads_are_all_found():
    rng = np.random.default_rng(0)
    parts = [rng.normal(0, 1e-6, 30), rng.normal(1, 1e-2, 60), rng.normal(9, 0.3, 45)]
    np.testing.assert_array_equal(detect_jumps(np.sort(np.concatenate(parts))), [30, 90])


@pytest.mark.parametrize("size", [50, 100, 200, 400, 600])
@pytest.mark.parametrize("law", LAWS)
def test_smooth_laws_raise_few_false_alarms(law, size):
    samples = LAWS[law](np.random.default_rng(17), (2000, size))
    alarms = find_jumps(np.sort(samples, axis=1)).mask.any(axis=1)
    assert alarms.mean() < 0.01


def test_level_bounds_the_false_alarms():
    samples = np.sort(np.random.default_rng(0).normal(size=(2000, 100)), axis=1)
    share = [find_jumps(samples, level=level).mask.any(axis=1).mean() for level in (1e-3, 0.1, 1)]
    assert share[0] <= 1e-3 + 2e-3
    assert share[0] <= share[1] < share[2]


@pytest.mark.parametrize("method", DETECTORS)
def test_n_jumps_is_obeyed_exactly(method):
    values = make_steps([60, 50, 70])
    detected = detect_jumps(values, method)
    for n_jumps in (0, 1, 2, 3, 10, 179):
        positions = detect_jumps(values, method, n_jumps=n_jumps)
        assert len(positions) == n_jumps
        assert (np.diff(positions) > 0).all()
    if method == "paper":
        # It finds neither of the two, see below; asked for two it takes the widest gaps.
        assert detected.tolist() == []
        detected = detect_jumps(values, method, n_jumps=2)
    # The authors' detector may be off by one: F is large on either side of a gap.
    np.testing.assert_allclose(detected, [60, 110], atol=1 if method == "authors" else 0)
    np.testing.assert_array_equal(detect_jumps(values, method, n_jumps=2), detected)


def test_n_jumps_are_the_strongest_and_nested():
    values = make_steps([30, 30, 30, 30], heights=[0, 1, 3, 9])
    kept = set()
    for n_jumps, position in enumerate([90, 60, 30], start=1):
        positions = set(detect_jumps(values, n_jumps=n_jumps).tolist())
        assert positions == kept | {position}
        kept = positions


def test_the_widest_gaps_are_taken_where_nothing_speaks_for_any():
    rng = np.random.default_rng(0)
    values = np.cumsum(1 + 0.1 * rng.uniform(size=200))
    widest = np.sort(np.argsort(np.diff(values))[-4:]) + 1
    positions, strength = detect_jumps(values, n_jumps=4, return_strength=True)
    np.testing.assert_array_equal(strength, 0)
    np.testing.assert_array_equal(positions, widest)
    np.testing.assert_array_equal(detect_jumps([0.0, 1.0], n_jumps=1), [1])


def test_after_the_strongest_come_the_widest_gaps_and_of_equal_ones_the_last():
    values = np.cumsum(np.tile([1.0, 2.0, 3.0], 40))
    values[60:] += 1000
    positions, strength = detect_jumps(values, n_jumps=4, return_strength=True)
    np.testing.assert_array_equal(positions, [60, 113, 116, 119])
    np.testing.assert_array_equal(strength > 0, [True, False, False, False])


def test_the_strongest_jump_need_not_be_the_widest():
    rng = np.random.default_rng(0)
    parts = [rng.normal(0, 1e-6, 30), rng.normal(1, 1e-6, 30), rng.normal(9, 0.3, 40)]
    values = np.sort(np.concatenate(parts))
    np.testing.assert_array_equal(detect_jumps(values, n_jumps=1), [30])
    np.testing.assert_array_equal(detect_jumps(values, n_jumps=2), [30, 60])


def test_n_jumps_is_obeyed_where_nothing_is_significant():
    values = np.sort(np.random.default_rng(0).normal(size=50))
    assert len(detect_jumps(values)) == 0
    assert len(detect_jumps(values, n_jumps=4)) == 4
    assert len(detect_jumps(np.zeros(50), n_jumps=4)) == 4


def test_equal_values_have_no_jump_at_any_level():
    assert len(detect_jumps(np.zeros(9), level=1.0)) == 0


def test_strength_is_the_evidence():
    values = make_steps([40, 40, 40], heights=[0, 1, 50])
    positions, strength = detect_jumps(values, return_strength=True)
    np.testing.assert_array_equal(positions, [40, 80])
    assert strength.shape == (2,)
    assert strength[1] > strength[0] > -np.log10(LEVEL)
    stricter = detect_jumps(values, level=10 ** -(strength[0] + 0.01))
    np.testing.assert_array_equal(stricter, [80])


def test_strength_of_the_authors_is_the_relative_height():
    values = make_steps([100, 100], noise=0.01)
    positions, strength = detect_jumps(values, "authors", return_strength=True)
    (place,) = positions
    assert strength[0] == pytest.approx((values[place] - values[place - 1]) / np.ptp(values))


@pytest.mark.parametrize("method", DETECTORS)
@pytest.mark.parametrize("n_values", [0, 1, 2, 3, 5, 15, 16, 50, 200])
def test_constants_and_short_vectors_have_no_jumps(n_values, method):
    positions, strength = detect_jumps(np.full(n_values, 3.7), method, return_strength=True)
    assert positions.dtype == np.int64
    assert len(positions) == len(strength) == 0


@pytest.mark.parametrize("values", [[1.0], [0.0, 1.0], [0.0, 1.0, 1e9], [0.0, 1e-9, 1.0]])
def test_up_to_three_values_prove_nothing(values):
    assert len(detect_jumps(values)) == 0


def test_rounding_is_no_jump():
    # Equal up to the last bit, twice: the gap is 1000 times the others and still nothing.
    values = np.sort(np.r_[np.full(40, 1.0), np.full(40, 1.0 + 4e-16)])
    assert len(detect_jumps(values)) == 0
    assert find_jumps(values - 1, resolution=1e-17).mask.sum() == 1


def test_equal_values_on_two_steps_are_two_steps():
    values = np.repeat([0.0, 1.0], [7, 13])
    positions, strength = detect_jumps(values, return_strength=True)
    np.testing.assert_array_equal(positions, [7])
    assert np.isfinite(strength).all()


@pytest.mark.parametrize("n_jumps", [None, 3])
@pytest.mark.parametrize("method", DETECTORS)
def test_batch_gives_what_its_vectors_give(method, n_jumps):
    vectors = np.stack([make_steps([70, 60], seed=1), make_steps([20, 90, 20], seed=2)])
    vectors = np.stack([vectors, np.sort(np.random.default_rng(0).normal(size=(2, 130)), axis=1)])
    together = find_jumps(vectors, method, n_jumps=n_jumps)
    assert together.mask.shape == together.strength.shape == (2, 2, 129)
    for index in np.ndindex(2, 2):
        alone = find_jumps(vectors[index], method, n_jumps=n_jumps)
        np.testing.assert_array_equal(together.mask[index], alone.mask)
        np.testing.assert_allclose(together.strength[index], alone.strength)


@pytest.mark.parametrize("n_jumps", [None, 5])
def test_torch_finds_the_same_jumps(n_jumps):
    vectors = np.stack([make_steps([70, 60], seed=1), make_steps([20, 90, 20], seed=2)])
    given = find_jumps(array_api_compat.torch.asarray(vectors), n_jumps=n_jumps)
    expected = find_jumps(vectors, n_jumps=n_jumps)
    np.testing.assert_array_equal(given.mask.numpy(), expected.mask)
    np.testing.assert_allclose(given.strength.numpy(), expected.strength, rtol=1e-9)


@pytest.mark.parametrize("method", DETECTORS)
def test_a_batch_may_be_empty(method):
    jumps = find_jumps(np.empty((0, 9)), method)
    assert jumps.mask.shape == jumps.strength.shape == (0, 8)


@pytest.mark.parametrize("method", DETECTORS)
def test_whole_numbers_are_as_good_as_floats(method):
    values = [*range(40), *range(1000, 1060)]
    found, expected = (
        detect_jumps(given, method, return_strength=True)
        for given in (values, np.array(values, float))
    )
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1])


def test_scalings_are_read_by_their_logarithms_or_as_they_are():
    # On the scalings themselves all steps but the last one vanish.
    log_scaling = make_steps([60, 60, 60], noise=0.01, heights=[-800, -400, 0])
    np.testing.assert_array_equal(
        np.flatnonzero(find_scaling_jumps(log_scaling, "multiscale").mask) + 1, [60, 120]
    )
    modest = make_steps([60, 60, 60], noise=0.01, heights=[0, 0.5, 1])
    for method in ("authors", "paper"):
        expected = find_jumps(np.exp(modest), method).mask
        np.testing.assert_array_equal(find_scaling_jumps(modest, method).mask, expected)
        np.testing.assert_array_equal(find_scaling_jumps(modest + 800, method).mask, expected)
    for method in DETECTORS:
        assert find_scaling_jumps(modest, method, n_jumps=5).mask.sum() == 5
    with pytest.raises(ValueError, match="180 values cannot have 180 jumps"):
        find_jumps(modest, n_jumps=180)
    with pytest.raises(ValueError, match="unknown detector"):
        find_scaling_jumps(modest, "wavelets")


@pytest.mark.parametrize(("n_values", "place"), [(64, 22), (200, 48), (200, 160)])
def test_the_authors_cut_up_to_some_distance_from_the_ends(n_values, place):
    values = make_steps([place, n_values - place], noise=0.01)
    np.testing.assert_allclose(detect_jumps(values, "authors"), [place], atol=1)


def test_the_authors_compare_short_vectors_with_the_two_gaps_that_follow():
    def jumps_after(*gaps):
        return detect_jumps(np.cumsum([0.0, *gaps]), "authors").tolist()

    assert jumps_after(1, 1, 1, 1, 1, 1, 1, 1, 9, 1, 1) == [9]
    assert jumps_after(1, 1, 1, 1, 1, 5, 1, 9, 1, 1, 1) == [8]
    assert jumps_after(1, 1, 1, 1, 1, 5, 9, 1, 1, 1, 1) == [7]
    assert jumps_after(1, 1, 1, 1, 1, 5, 5, 1, 1, 1, 1) == [7]
    assert jumps_after(1, 1, 1, 5, 1, 1, 9, 1, 1, 1, 1) == [4, 7]


@pytest.mark.parametrize("sizes", [[16] * 4, [64] * 4, [64] * 2, [5, 95], [95, 5], [30, 41]])
def test_the_printed_detector_finds_a_clean_staircase(sizes):
    values = np.repeat(np.arange(len(sizes), dtype=float), sizes)
    positions, strength = detect_jumps(values, "paper", return_strength=True)
    np.testing.assert_array_equal(positions, np.cumsum(sizes)[:-1])
    np.testing.assert_allclose(strength, 1 / np.ptp(values))


def test_the_printed_detector_finds_equal_steps_far_from_zero():
    values = 2.0**52 + np.repeat(np.arange(4.0), 16)
    assert detect_jumps(values, "paper").tolist() == [16, 32, 48]


def test_the_printed_detector_by_hand():
    def jumps(*values):
        return detect_jumps(np.array(values, dtype=float), "paper").tolist()

    # F is 1 6 6 1, then 6.5 6.5 of the averages, then nothing: both intervals, one gap.
    assert jumps(0, 1, 6, 7) == [2]
    # F is 1 3 3 1, of equal gaps the second one: the cut is after the interval.
    assert jumps(0, 1, 3, 4) == [2]
    assert jumps(0, 1, 2, 3) == [2, 3]
    # Of five values the last one stays alone: the averages are 0.5, 2.5, 9 and then 1.5, 9.
    assert jumps(0, 1, 2, 3, 9) == [4]
    assert jumps(0, 0, 9, 9, 9) == [2]


def test_the_printed_chain_leaves_jumps_in_a_part_of_the_vector():
    """Of three or four averages one is the local maximum of F, as soon as nothing is equal."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        sizes = rng.integers(20, 60, size=5)
        values = make_steps(sizes, noise=0.001, heights=np.cumsum(rng.uniform(1, 3, size=5)))
        positions = detect_jumps(values, "paper")
        assert len(detect_jumps(values)) == 4 > len(positions)
        interval = 2 ** (int(np.log2(len(values))) - 1)
        assert len(positions) == 0 or np.ptp(positions) <= interval


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        ([2.0, 1.0, 3.0], {}, r"not in ascending order: pass numpy.sort\(values\)"),
        ([0.0, np.nan, 3.0], {}, "NaN or infinity: remove them"),
        ([0.0, 1.0, np.inf], {}, "NaN or infinity: remove them"),
        ([[0.0, 1.0], [2.0, 3.0]], {}, r"one vector of values, got an array of shape \(2, 2\)"),
        (3.0, {}, r"one vector of values, got an array of shape \(\)"),
        ([0.0, 1.0], {"method": "wavelets"}, "'wavelets': choose one of multiscale, authors"),
        ([0.0, 1.0, 2.0], {"n_jumps": 3}, "3 values cannot have 3 jumps: pass 0 to 2"),
        ([0.0, 1.0, 2.0], {"n_jumps": -1}, "cannot have -1 jumps"),
        ([0.0, 1.0, 2.0], {"level": 0}, "level is 0: pass a probability, more than 0"),
        ([0.0, 1.0, 2.0], {"level": 1.5}, "level is 1.5: pass a probability"),
    ],
)
def test_bad_input_is_named(values, options, message):
    with pytest.raises(ValueError, match=message):
        detect_jumps(values, **options)


@pytest.mark.parametrize("values", [[], [1.0]])
@pytest.mark.parametrize("options", [{"method": "wavelets"}, {"n_jumps": 1}, {"level": 2}])
def test_bad_input_is_named_for_short_vectors_too(values, options):
    problem = r"choose one of|cannot have 1 jumps: pass 0 to 0|pass a probability"
    with pytest.raises(ValueError, match=problem):
        detect_jumps(values, **options)
