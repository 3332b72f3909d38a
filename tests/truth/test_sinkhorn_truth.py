"""Every path through Sinkhorn's loop against the rule itself, in fifty digits or in logarithms."""

from dataclasses import dataclass

import array_api_compat.torch
import array_api_strict
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccot.transport.sinkhorn import Scalings, Status, sinkhorn
from tests.truth.oracles import Scaled, scale_exactly, scale_in_logs
from tests.truth.problems import COSTS, examples, seeds

LIBRARIES = {"numpy": np, "torch": array_api_compat.torch, "strict": array_api_strict}
each_library = pytest.mark.parametrize("library", LIBRARIES)
each_precision = pytest.mark.parametrize("dtype", ["float32", "float64"])
kinds = st.sampled_from(sorted(COSTS))


@dataclass(frozen=True)
class Problem:
    """A kernel in its precision, a start and when to stop."""

    log_kernel: np.ndarray
    log_start: np.ndarray
    max_iter: int
    tol: float

    @classmethod
    def draw(cls, kind, seed, dtype, shape=None):
        rng = np.random.default_rng(seed)
        shape = rng.integers(1, 7, size=2) if shape is None else shape
        log_kernel = (-COSTS[kind](rng, shape)).astype(dtype)
        start = -log_kernel.max(axis=1).astype(float)
        if rng.uniform() < 0.5:
            start = rng.choice([0.0, 1.0, 30.0, 1000.0]) * rng.normal(size=shape[0])
        return cls(log_kernel, start, int(rng.integers(1, 30)), 10 ** rng.uniform(-12, -1))

    def oracle(self, n_iter) -> Scaled:
        """What the rule gives after so many iterations."""
        return scale_exactly(self.log_kernel, self.log_start, n_iter)

    @property
    def resolution(self) -> float:
        """What the precision resolves of numbers as large as those that are added up here."""
        sizes = self.log_kernel, self.log_start, np.log(self.log_kernel.shape).sum()
        largest = sum(float(np.abs(size).max()) for size in sizes)
        return 8 * float(np.finfo(self.log_kernel.dtype).eps) * (1 + largest)


def assert_true(given: Scaled, expected: Scaled, resolution):
    """Equal scalings and errors, as far as the precision goes."""
    for ours, exact in (
        (given.log_row, expected.log_row),
        (given.log_column, expected.log_column),
    ):
        np.testing.assert_allclose(ours, exact, rtol=0, atol=resolution)
    assert given.error == pytest.approx(expected.error, rel=0, abs=resolution)


def one_of(answer: Scalings, place=...) -> tuple[Scaled, int]:
    """Return one problem's answer as NumPy has it, and its iterations."""
    row, column, error, n_iter = (
        np.asarray(array)[place]
        for array in (answer.log_row, answer.log_column, answer.error, answer.n_iter)
    )
    return Scaled(row, column, float(error)), int(n_iter)


@each_precision
@each_library
@examples(25, 1000)
@given(kind=kinds, seed=seeds)
def test_one_problem_is_solved_by_the_rule(library, dtype, kind, seed):
    xp, problem = LIBRARIES[library], Problem.draw(kind, seed, dtype)
    answer = sinkhorn(
        xp.asarray(problem.log_kernel),
        log_row_start=xp.asarray(problem.log_start),
        max_iter=problem.max_iter,
        tol=problem.tol,
    )
    ours, n_iter = one_of(answer)
    assert_true(ours, problem.oracle(n_iter), problem.resolution)
    converged = answer.status is Status.CONVERGED
    assert converged == (ours.error <= problem.tol)
    assert converged or n_iter == problem.max_iter


@each_precision
@each_library
@examples(15, 500)
@given(chosen=st.lists(kinds, min_size=1, max_size=4), seed=seeds)
def test_a_batch_is_solved_problem_by_problem(library, dtype, chosen, seed):
    """Narrow kernels beside wide ones, each with its own start."""
    xp, rng = LIBRARIES[library], np.random.default_rng(seed)
    shape = rng.integers(1, 7, size=2)
    problems = [Problem.draw(kind, rng.integers(2**32), dtype, shape) for kind in chosen]
    answer = sinkhorn(
        xp.asarray(np.stack([p.log_kernel for p in problems])),
        log_row_start=xp.asarray(np.stack([p.log_start for p in problems])),
        max_iter=problems[0].max_iter,
        tol=problems[0].tol,
    )
    for place, problem in enumerate(problems):
        ours, n_iter = one_of(answer, place)
        assert_true(ours, problem.oracle(n_iter), problem.resolution)
        assert ours.error <= problems[0].tol or n_iter == problems[0].max_iter


def either_start(log_kernel, oracle, n_iter) -> list[Scaled]:
    """Answers of the rule from the two starts that the loop may choose from by itself."""
    starts = np.zeros(len(log_kernel)), -log_kernel.max(axis=1).astype(float)
    return [oracle(log_kernel, start, n_iter) for start in starts]


def assert_true_up_to_a_factor(ours: Scaled, candidates: list[Scaled], resolution):
    """Scalings have one free factor; without a start nothing decides it."""
    gaps = []
    for exact in candidates:
        factor = float(np.mean(ours.log_row - exact.log_row))
        gaps.append(
            max(
                np.abs(ours.log_row - factor - exact.log_row).max(),
                np.abs(ours.log_column + factor - exact.log_column).max(),
                abs(ours.error - exact.error),
            )
        )
    assert min(gaps) <= resolution


def resolution_of(log_kernel):
    size = 1 + float(np.abs(log_kernel).max()) + np.log(log_kernel.shape).sum()
    return 8 * float(np.finfo(log_kernel.dtype).eps) * size


# Memory used again, errors seldom looked at, a bound on the kernel known: all the same numbers.
SHORT_CUTS = {
    "none": lambda kernels: {},
    "overwrite": lambda kernels: {"overwrite": True},
    "check_every": lambda kernels: {"check_every": 3},
    "reach": lambda kernels: {"reach": float(np.abs(kernels).max()), "overwrite": True},
}
# The memory of strict arrays cannot be used again.
ALLOWED = [
    (library, short_cut)
    for library in LIBRARIES
    for short_cut in SHORT_CUTS
    if library != "strict" or short_cut in ("none", "check_every")
]


@each_precision
@pytest.mark.parametrize(("library", "short_cut"), ALLOWED)
@examples(12, 400)
@given(chosen=st.lists(kinds, min_size=1, max_size=4), seed=seeds)
def test_no_start_and_short_cuts_change_nothing(library, dtype, short_cut, chosen, seed):
    rng = np.random.default_rng(seed)
    shape = rng.integers(1, 7, size=2)
    kernels = np.stack([-COSTS[kind](rng, shape) for kind in chosen]).astype(dtype)
    if rng.uniform() < 0.3:
        kernels = kernels * 10 / (np.abs(kernels).max() + 1)  # narrow ones, all of them
    max_iter, tol = int(rng.integers(1, 40)), 10 ** rng.uniform(-6, -1)
    how = SHORT_CUTS[short_cut](kernels)
    given_kernels = LIBRARIES[library].asarray(kernels.copy())
    answer = sinkhorn(given_kernels, max_iter=max_iter, tol=tol, **how)
    for place, log_kernel in enumerate(kernels):
        ours, n_iter = one_of(answer, place)
        candidates = either_start(log_kernel, scale_exactly, n_iter)
        assert_true_up_to_a_factor(ours, candidates, resolution_of(log_kernel))
        assert ours.error <= tol or n_iter == max_iter


@each_precision
@pytest.mark.parametrize("library", ["numpy", "torch"])
@examples(6, 100)
@given(kind=kinds, seed=seeds)
def test_larger_batches_are_those_of_the_log_domain(library, dtype, kind, seed):
    rng = np.random.default_rng(seed)
    n_problems, *shape = rng.integers((1, 8, 8), (9, 70, 70))
    kernels = np.stack([-COSTS[kind](rng, shape) for _ in range(n_problems)]).astype(dtype)
    given_kernels = LIBRARIES[library].asarray(kernels.copy())
    answer = sinkhorn(given_kernels, max_iter=int(rng.integers(1, 40)), tol=1e-6, overwrite=True)
    for place, log_kernel in enumerate(kernels):
        ours, n_iter = one_of(answer, place)
        candidates = either_start(log_kernel, scale_in_logs, n_iter)
        assert_true_up_to_a_factor(ours, candidates, resolution_of(log_kernel))


@each_precision
@examples(25, 1000)
@given(seed=seeds)
def test_a_kernel_of_rank_one_gives_the_product_of_the_masses(dtype, seed):
    """The one coupling that is known in closed form, whatever the factors."""
    rng = np.random.default_rng(seed)
    shape = rng.integers(1, 20, size=2)
    sides = [rng.choice([1.0, 100.0, 1e4]) * rng.normal(size=size) for size in shape]
    log_kernel = np.add.outer(*sides).astype(dtype)
    answer = sinkhorn(log_kernel, tol=resolution_of(log_kernel))
    coupling = np.exp(answer.log_row[:, None] + log_kernel + answer.log_column)
    assert answer.status is Status.CONVERGED
    assert answer.n_iter <= 2
    np.testing.assert_allclose(coupling, 1 / shape.prod(), rtol=8 * resolution_of(log_kernel))


@each_precision
@examples(25, 1000)
@given(seed=seeds)
def test_equal_rows_have_equal_scalings(dtype, seed):
    rng = np.random.default_rng(seed)
    distinct, copies = rng.integers(1, 5, size=2)
    rows = rng.permutation(np.repeat(np.arange(distinct), copies))
    log_kernel = -COSTS["twelve orders of magnitude"](rng, (distinct, 6))[rows].astype(dtype)
    answer = sinkhorn(log_kernel, max_iter=20)
    for cluster in range(distinct):
        alike = answer.log_row[rows == cluster]
        np.testing.assert_allclose(alike, alike[0], rtol=0, atol=resolution_of(log_kernel))
