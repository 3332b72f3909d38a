import numpy as np
import pytest

from ccot.scalings import kernels
from ccot.scalings.kernels import (
    AUTO_FULL,
    AUTO_RANK,
    LowRankSimilarities,
    bytes_needed,
    check_memory,
    compare_points,
    free_bytes,
    rank_of,
)


@pytest.mark.parametrize(
    ("asked", "n_support", "rows", "rank"),
    [
        ("auto", None, AUTO_FULL + 1, None),
        ("auto", 10, AUTO_FULL, None),
        ("auto", 10, AUTO_FULL + 1, AUTO_RANK),
        (None, 10, AUTO_FULL + 1, None),
        (7, None, 20, 7),
    ],
)
def test_landmarks_are_taken_where_they_are_asked_for_or_needed(asked, n_support, rows, rank):
    assert rank_of(asked, n_support, (rows, 30)) == rank
    assert rank_of(asked, n_support, (30, rows)) == rank


def test_memory_is_that_of_all_pairs_or_linear():
    assert bytes_needed((10_000, 50), None, None) > 8 * 10_000**2
    one, ten = (bytes_needed((size, 50), 100, 256) for size in (10_000, 100_000))
    assert ten < 10 * one


@pytest.mark.parametrize(
    ("n_support", "rank", "way_out"),
    [
        (None, None, "pass n_support=100, which makes time and memory linear"),
        (100, None, 'pass kernel_rank="auto"'),
        (100, 256, "pass n_support below 100 or kernel_rank below 256"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_way_out(n_support, rank, way_out, monkeypatch):
    needed = bytes_needed((100_000, 2_000), n_support, rank)
    monkeypatch.setattr(kernels, "free_bytes", lambda: needed)
    check_memory((100_000, 2_000), n_support, rank)
    monkeypatch.setattr(kernels, "free_bytes", lambda: needed - 1)
    with pytest.raises(MemoryError, match=rf"{needed} bytes.*{way_out}"):
        check_memory((100_000, 2_000), n_support, rank)


def test_free_memory_is_less_than_all_and_more_than_none():
    free = free_bytes()
    assert free is None or 2**20 < free < 2**50


def test_landmarks_of_all_points_give_all_similarities():
    points = np.random.default_rng(0).normal(size=(30, 4))
    few = LowRankSimilarities.of(points, np.arange(30), "rbf")
    full = compare_points(points, "rbf", None, np.random.default_rng(1))
    np.testing.assert_allclose(few.degrees(), full.degrees(), atol=1e-9)
    np.testing.assert_allclose(few.features @ few.features.T, full.matrix, atol=1e-8)
    chosen = np.array([3, 7, 20])
    np.testing.assert_allclose(few.among(chosen), full.among(chosen), rtol=1e-9)
    np.testing.assert_allclose(few.among(None), full.among(None), rtol=1e-9)
    np.testing.assert_allclose(few.landmarks.to(points), few.features, atol=1e-8)
