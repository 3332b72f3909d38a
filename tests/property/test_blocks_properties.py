"""What every block model, sweep and hierarchy must satisfy."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st

from ccot.blocks.axes import Profiles
from ccot.blocks.hierarchy import build_hierarchy, pair_costs, share_kept
from ccot.blocks.problem import information, make_blocks, make_problem
from ccot.blocks.sweep import balanced_plan, log_marginal, share_out, soft_plan, sweep
from tests.blocks.matrices import sum_blocks

FAMILIES = ["gaussian", "poisson", "bernoulli"]
each_family = pytest.mark.parametrize("family", FAMILIES)
seeds = st.integers(0, 2**32 - 1)


@st.composite
def cases(draw):
    """A generator, a shape and labels of both sides."""
    rng = np.random.default_rng(draw(seeds))
    shape = draw(st.integers(3, 15)), draw(st.integers(3, 15))
    numbers = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    labels = [rng.integers(0, k, size) for k, size in zip(numbers, shape, strict=True)]
    return rng, shape, labels


def fill(family, shape, rng):
    if family == "gaussian":
        return rng.normal(size=shape) * rng.choice([0.1, 1.0, 30.0])
    if family == "poisson":
        return rng.poisson(rng.gamma(1.0, 2.0, size=shape)).astype(float)
    return (rng.uniform(size=shape) < rng.uniform()).astype(float)


@each_family
@given(case=cases())
def test_merging_never_adds_information(family, case):
    rng, shape, labels = case
    problem = make_problem(fill(family, shape, rng), family)
    blocks = make_blocks(problem, *labels)
    scale = 1 + abs(information(problem, blocks))
    for axis in (0, 1):
        costs = pair_costs(problem, *blocks.table(axis))
        assert (costs >= -1e-9 * scale).all()


def objective(problem, labels, shape):
    """Likelihood over noise at the blocks' own means, plus the marginal term.

    Means of counts are smoothed by half an entry at the overall mean in every block; counted as
    data, it makes the smoothed mean the maximum.
    """
    table = problem.table(*labels, shape)
    natural, cumulant = problem.terms(*table)
    more = 0.0 if problem.family == "gaussian" else 0.5 * problem.unit
    total, exposure = table[0] + more * problem.overall, table[1] + more
    likelihood = float(np.sum(total * natural - exposure * cumulant))
    marginal = sum(
        float(log_marginal(own, k)[own].sum()) for own, k in zip(labels, shape, strict=True)
    )
    if problem.family != "gaussian":
        return likelihood / problem.dispersion + marginal
    # The noise is learned along with the means.
    return -0.5 * problem.n_observed * np.log(problem.noise(*table)) + marginal


@each_family
@given(case=cases())
def test_hard_sweeps_never_lower_the_objective(family, case):
    rng, shape, labels = case
    problem = make_problem(fill(family, shape, rng), family)
    blocks = make_blocks(problem, *labels)
    for _ in range(4):
        after = sweep(problem, blocks, max_iter=1)
        if after.shape != blocks.shape or np.array_equal(after.total, blocks.total):
            break
        before, now = (objective(problem, b.labels, b.shape) for b in (blocks, after))
        assert now >= before - 1e-8 * (1 + abs(before))
        blocks = after


# Corrected for degrees, single clusters tie, and rounding decides: no poisson here.
@pytest.mark.parametrize("family", ["gaussian", "bernoulli"])
@given(case=cases())
def test_sweeps_follow_permutations(family, case):
    rng, shape, labels = case
    # Values without ties: where two clusters are worth the same, rounding decides.
    X = rng.normal(size=shape) if family == "gaussian" else rng.uniform(size=shape)
    rows, columns = rng.permutation(shape[0]), rng.permutation(shape[1])
    plain, moved = make_problem(X, family), make_problem(X[rows][:, columns], family)
    one = sweep(plain, make_blocks(plain, *labels), max_iter=1)
    other = sweep(moved, make_blocks(moved, labels[0][rows], labels[1][columns]), max_iter=1)
    np.testing.assert_array_equal(other.labels[0], one.labels[0][rows])
    np.testing.assert_array_equal(other.labels[1], one.labels[1][columns])


@each_family
@given(case=cases())
def test_sparse_statistics_are_dense_ones(family, case):
    rng, shape, labels = case
    X = fill(family, shape, rng) * (rng.uniform(size=shape) < 0.5)
    dense, sparse = make_problem(X, family), make_problem(sp.csr_array(X), family)
    one, other = (make_blocks(problem, *labels) for problem in (dense, sparse))
    np.testing.assert_allclose(one.total, other.total, atol=1e-9)
    np.testing.assert_allclose(one.exposure, other.exposure, atol=1e-9)
    for axis in (0, 1):
        partner, k = labels[1 - axis], 5
        plan = rng.dirichlet(np.ones(k), size=len(partner))
        for assignment in (partner, plan):
            profiles = [p.axes[axis].profiles(assignment, k) for p in (dense, sparse)]
            np.testing.assert_allclose(profiles[0].total, profiles[1].total, atol=1e-9)


@given(case=cases(), share=st.floats(0, 0.9))
def test_missing_entries_are_left_out(case, share):
    rng, shape, labels = case
    X = fill("gaussian", shape, rng)
    X[rng.uniform(size=shape) < share] = np.nan
    problem = make_problem(X, "gaussian")
    blocks = make_blocks(problem, *labels)
    ones = np.where(np.isnan(X), np.nan, 1.0)
    np.testing.assert_allclose(blocks.total, sum_blocks(X, *blocks.labels, blocks.shape), atol=1e-9)
    np.testing.assert_allclose(
        blocks.exposure, sum_blocks(ones, *blocks.labels, blocks.shape), atol=1e-9
    )
    gain = (
        problem.axes[0]
        .profiles(blocks.labels[1], blocks.shape[1])
        .gain(*problem.terms(blocks.total, blocks.exposure))
    )
    mean = np.where(blocks.exposure > 0, blocks.total / np.maximum(blocks.exposure, 1), 0.0)
    for i, k in np.ndindex(gain.shape):
        target = mean[k, blocks.labels[1]]
        expected = np.nansum(X[i] * target - 0.5 * target**2 * ones[i])
        assert gain[i, k] == pytest.approx(expected, rel=1e-9, abs=1e-7)


@each_family
@given(case=cases())
def test_factored_exposures_equal_full_ones(family, case):
    rng, shape, labels = case
    problem = make_problem(fill(family, shape, rng), family)
    profiles = problem.axes[0].profiles(labels[1], 5)
    full = Profiles(profiles.total, profiles.full_exposure(), None)
    for assignment in (labels[0], rng.dirichlet(np.ones(5), size=shape[0])):
        for one, other in zip(
            profiles.blocks(assignment, 5), full.blocks(assignment, 5), strict=True
        ):
            np.testing.assert_allclose(one, other, atol=1e-9)
    terms = problem.terms(*profiles.blocks(labels[0], 5))
    np.testing.assert_allclose(profiles.gain(*terms), full.gain(*terms), rtol=1e-9, atol=1e-6)


@each_family
@given(case=cases())
def test_hierarchies_lose_information_step_by_step(family, case):
    rng, shape, labels = case
    problem = make_problem(fill(family, shape, rng), family)
    blocks = make_blocks(problem, *labels)
    hierarchy = build_hierarchy(problem, blocks)
    for axis in (0, 1):
        assert (hierarchy.costs(axis) >= 0).all()
        kept = []
        for number in range(1, blocks.shape[axis] + 1):
            cut = hierarchy.cut(axis, number)
            assert len(np.unique(cut)) == number
            coarse = blocks.relabelled(axis, cut[blocks.labels[axis]])
            kept.append(share_kept(problem, blocks, make_blocks(problem, *coarse)))
        assert min(kept) >= 0
        assert max(kept) <= 1
        assert kept[-1] == pytest.approx(1)
        assert (np.diff(kept) >= -1e-6).all()


@given(seed=seeds, n=st.integers(2, 30), k=st.integers(1, 6), scale=st.floats(0.01, 1e3))
def test_plans_have_their_marginals(seed, n, k, scale):
    gain = np.random.default_rng(seed).normal(size=(n, k))
    plan = soft_plan(scale * gain)
    np.testing.assert_allclose(plan.sum(axis=1), 1)
    balanced = balanced_plan(gain)
    np.testing.assert_allclose(balanced.sum(axis=1), 1)
    np.testing.assert_allclose(balanced.sum(axis=0), n / k, rtol=1e-2)
    sizes = np.bincount(share_out(plan), minlength=k)
    assert sizes.max() - sizes.min() <= 1


@given(case=cases())
def test_poisson_information_is_mutual_information(case):
    rng, shape, labels = case
    X = fill("poisson", shape, rng)
    assume(X.any())
    problem = make_problem(X, "poisson")
    blocks = make_blocks(problem, *labels)
    joint = sum_blocks(X, *blocks.labels, blocks.shape) / X.sum()
    product = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    some = joint > 0
    mutual = float(np.sum(joint[some] * np.log(joint[some] / product[some])))
    assert information(problem, blocks) == pytest.approx(X.sum() * mutual, rel=1e-9, abs=1e-9)
