"""Products in parts on several threads, and profiles that are brought up to date."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_info, threadpool_limits

from ccot import TransportCoclustering
from ccot.blocks import axes
from ccot.blocks import problem as problem_module
from ccot.blocks.axes import degrees, multiply, multiply_transposed
from ccot.blocks.problem import make_blocks, make_problem
from ccot.runtime import host_csr
from ccot.runtime.backends import NUMPY


@pytest.fixture
def matrix(monkeypatch):
    monkeypatch.setattr(host_csr, "_ENTRIES", 60)
    monkeypatch.setattr(host_csr, "CACHE_ENTRIES", 60)
    rng = np.random.default_rng(0)
    return sp.csr_array(rng.poisson(0.3, (90, 40)).astype(float))


def test_products_are_the_same_on_every_number_of_threads(matrix):
    rng = np.random.default_rng(1)
    short, long = rng.normal(size=(40, 5)), rng.normal(size=(90, 5))
    np.testing.assert_allclose(multiply(matrix, short), matrix.toarray() @ short)
    np.testing.assert_allclose(multiply_transposed(matrix, long), matrix.toarray().T @ long)
    for n_jobs in (2, 5):
        threads = replace(NUMPY, n_jobs=n_jobs)
        np.testing.assert_array_equal(multiply(matrix, short, threads), multiply(matrix, short))
        given = multiply_transposed(matrix, long, threads)
        np.testing.assert_array_equal(given, multiply_transposed(matrix, long))
        for other in (matrix.toarray().T, matrix.tocsc().T, matrix.T):
            np.testing.assert_allclose(multiply(other, long, threads), given)


def test_sums_over_long_plans_are_the_same_on_every_number_of_threads(matrix, monkeypatch):
    monkeypatch.setattr(axes, "_CACHE_BYTES", 0)
    view = make_problem(matrix, "poisson").axes[1]
    plan = np.random.default_rng(5).dirichlet(np.ones(4), 90)
    expected = view.profiles(plan, 4).total
    np.testing.assert_allclose(expected, matrix.toarray().T @ plan)
    threads = replace(view, backend=replace(NUMPY, n_jobs=3))
    np.testing.assert_array_equal(threads.profiles(plan, 4).total, expected)


@pytest.mark.parametrize("order", ["C", "F"])
def test_products_of_arrays_are_the_same_on_every_number_of_threads(order):
    rng = np.random.default_rng(2)
    array = np.asarray(rng.normal(size=(90, 40)), order=order)
    short, long = rng.normal(size=(40, 5)), rng.normal(size=(90, 5))
    one = replace(NUMPY, chunk_bytes=2**10)
    np.testing.assert_allclose(multiply(array, short, one), array @ short)
    np.testing.assert_allclose(multiply_transposed(array, long, one), array.T @ long)
    for n_jobs in (2, 5):
        several = replace(one, n_jobs=n_jobs)
        for product, dense in ((multiply, short), (multiply_transposed, long)):
            np.testing.assert_array_equal(
                product(array, dense, several), product(array, dense, one)
            )


def test_sums_of_squares_and_scaled_entries_are_the_same_on_every_number_of_threads(matrix):
    rng = np.random.default_rng(3)
    labels, scales = [(rng.integers(3, size=n), rng.random(n)) for n in matrix.shape], []
    (own, row_scale), (partner, column_scale) = labels
    view, found = make_problem(matrix, "poisson").axes[0], []
    for n_jobs in (1, 2, 3):
        threads = replace(NUMPY, n_jobs=n_jobs)
        found.append(replace(view, backend=threads).squares(own, partner, (3, 3)))
        scales.append(host_csr.scaled(matrix, row_scale, column_scale, threads).toarray())
    outer = np.outer(view.exposure, view.partner_exposure)
    dense = matrix.toarray() ** 2 / np.where(outer > 0, outer, 1.0)
    np.testing.assert_allclose(found[0], np.eye(3)[own].T @ dense @ np.eye(3)[partner])
    np.testing.assert_allclose(scales[0], row_scale[:, None] * matrix.toarray() * column_scale)
    for first, *others in (found, scales):
        for other in others:
            np.testing.assert_array_equal(first, other)


def test_both_views_and_degrees_are_the_same_on_every_number_of_threads(matrix):
    expected, sums = sp.csr_array(matrix.T), degrees(matrix)
    np.testing.assert_allclose(sums[0], matrix.toarray().sum(axis=1))
    np.testing.assert_allclose(sums[1], matrix.toarray().sum(axis=0))
    for n_jobs in (1, 2, 5):
        threads = replace(NUMPY, n_jobs=n_jobs)
        views = make_problem(matrix, "poisson", backend=threads).axes
        assert all(view.backend is threads for view in views)
        columns = views[1].values
        for name in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(columns, name), getattr(expected, name))
        for own, first in zip(degrees(matrix, threads), sums, strict=True):
            np.testing.assert_array_equal(own, first)


@pytest.mark.parametrize("soft", [False, True])
def test_blocks_of_many_entries_are_summed_from_what_was_seen_last(matrix, monkeypatch, soft):
    monkeypatch.setattr(problem_module, "_MANY_ENTRIES", 60)
    rng, problem = np.random.default_rng(4), make_problem(matrix, "poisson")
    rows, columns = rng.integers(3, size=90), rng.integers(4, size=40)
    plan = 0.9 * np.eye(3)[rows] + 0.1 / 3 if soft else rows
    seen = None, problem.axes[1].profiles(plan, 3)
    expected, found = (make_blocks(problem, rows, columns, 0, s) for s in ((None, None), seen))
    np.testing.assert_allclose(found.total, expected.total, rtol=1e-12)
    np.testing.assert_allclose(found.exposure, expected.exposure, rtol=1e-12)
    without = replace(problem, axes=(replace(problem.axes[0], values=None), problem.axes[1]))
    np.testing.assert_array_equal(make_blocks(without, rows, columns, 0, seen).total, found.total)
    # What has not moved is taken over as it was; all shares of the plan have.
    marked = None, replace(seen[1], total=seen[1].total + 1.0)
    others = make_blocks(problem, rows, columns, 0, marked)
    more = 0 if soft else np.bincount(columns, minlength=4)
    np.testing.assert_allclose(others.total, found.total + more, rtol=1e-12)


@pytest.mark.parametrize(
    "kinds", [("hard", "hard"), ("hard", "soft"), ("soft", "soft"), ("soft", "hard")]
)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("grown", [0, 1])
def test_profiles_are_brought_up_to_date(matrix, kinds, axis, grown):
    """Only what has moved is summed again, if that is little; a cluster may be added."""
    rng = np.random.default_rng(2)
    view = make_problem(matrix, "poisson").axes[axis]
    n_partners = matrix.shape[1 - axis]
    before = rng.integers(4, size=n_partners)
    after = before.copy()
    after[:3] = (after[:3] + 1) % (4 + grown)
    if grown:
        after[0] = 4
    shares = {"hard": lambda labels, k: labels, "soft": lambda labels, k: np.eye(k)[labels]}
    last = view.profiles(shares[kinds[0]](before, 4), 4)
    partner = shares[kinds[1]](after, 4 + grown)
    updated = view._updated(last, partner, 4 + grown)
    assert updated is not None
    np.testing.assert_allclose(updated, view._total(partner, 4 + grown), atol=1e-12)
    threads = replace(view, backend=replace(NUMPY, n_jobs=3))
    np.testing.assert_array_equal(threads._updated(last, partner, 4 + grown), updated)
    np.testing.assert_array_equal(view.profiles(partner, 4 + grown, last).total, updated)
    # What has not moved is taken over as it was.
    marked = replace(last, total=last.total + 1.0)
    found = view.profiles(partner, 4 + grown, marked).total - updated
    np.testing.assert_allclose(found, np.outer(np.ones(len(view)), [1.0] * 4 + [0.0] * grown))
    assert view._updated(last, shares["hard"](after[::-1] * 0, 4 + grown), 4 + grown) is None
    assert view._updated(last, shares["hard"](after % 3, 3), 3) is None


@pytest.mark.parametrize("dense", [False, True])
def test_labels_are_the_same_on_every_number_of_threads(matrix, dense):
    matrix = matrix.toarray() if dense else matrix
    one, *others = (
        TransportCoclustering(random_state=0, n_init=3, n_jobs=n_jobs).fit(matrix)
        for n_jobs in (1, 2, 3)
    )
    for other in others:
        np.testing.assert_array_equal(one.row_labels_, other.row_labels_)
        np.testing.assert_array_equal(one.column_labels_, other.column_labels_)
        np.testing.assert_array_equal(one.row_confidence_, other.row_confidence_)
        np.testing.assert_array_equal(one.block_means_, other.block_means_)
        assert one.icl_ == other.icl_


def test_threads_leave_the_warnings_and_blas_as_they_were(matrix):
    before = list(warnings.filters), [one["num_threads"] for one in threadpool_info()]
    TransportCoclustering(random_state=0, n_init=6, n_jobs=3).fit(matrix)
    assert (warnings.filters, [one["num_threads"] for one in threadpool_info()]) == before


def test_a_fit_of_an_array_keeps_products_on_its_own_threads(matrix, monkeypatch):
    def n_threads():
        return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}

    seen = set()
    progress = property(lambda model: lambda *_: seen.update(n_threads()))
    monkeypatch.setattr(TransportCoclustering, "_progress", progress)
    with threadpool_limits(2, user_api="blas"):
        TransportCoclustering(random_state=0, n_init=3).fit(matrix.toarray())
        assert n_threads() == {2}
    assert seen == {1}
