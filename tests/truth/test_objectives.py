"""Objectives that move in the one direction theory allows, on ill-conditioned problems too."""

import numpy as np
import pytest
from hypothesis import assume, given
from scipy.special import entr

from ccot.baselines import (
    DoubleKMeans,
    GaussianLatentBlockModel,
    InformationTheoreticCoclustering,
    ResidualBayesianCoclustering,
    TriNMF,
)
from ccot.blocks.problem import make_blocks, make_problem
from ccot.blocks.sweep import sweep
from ccot.scalings.kernels import gaussian_kernel, mean_distance
from ccot.transport.gromov import LOSSES, Limits, gromov_barycentre, refine
from ccot.transport.sinkhorn import Status, sinkhorn
from tests.transport.alignment import align
from tests.truth.problems import COSTS, draw_matrix, examples, labelled, seeds

# Random problems may stop at their limit of iterations; what is compared holds there too.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
each_loss = pytest.mark.parametrize("loss", LOSSES)


def assert_never_rises(path, scale):
    """Rounding aside, relative to the size of what the objective is computed from."""
    assert np.isfinite(path).all()
    assert np.diff(path).max(initial=0.0) <= 1e-11 * scale


# Transport --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", COSTS)
@examples(5, 200)
@given(seed=seeds)
def test_every_iteration_of_sinkhorn_raises_the_dual(kind, seed):
    """Means of both log scalings less the sum of the coupling: each half step maximises it."""
    rng = np.random.default_rng(seed)
    shape = rng.integers(1, 10, size=2)
    log_kernel = -COSTS[kind](rng, shape)
    path = []
    for n_iter in range(1, 8):
        answer = sinkhorn(
            log_kernel,
            log_row_start=np.zeros(shape[0]),
            max_iter=n_iter,
            tol=1e-300,
        )
        coupling = np.exp(answer.log_row[:, None] + log_kernel + answer.log_column)
        dual = answer.log_row.mean() + answer.log_column.mean()
        path.append(coupling.sum() - dual)
    assert_never_rises(path, 1 + np.abs(log_kernel).max())


# Gromov-Wasserstein -----------------------------------------------------------------------------


def draw_kernel(rng, size):
    points = rng.normal(size=(size, 3)) + 2 * rng.integers(0, 2, size)[:, None]
    return gaussian_kernel(points, points, mean_distance(points) or 1.0)


def linearised(kernel, support, coupling, rule, reg):
    """The objective whose linearisations are solved; concave, since the kernels are Gaussian."""
    cost = -0.5 * float(np.sum((kernel @ coupling @ rule.h2(support)) * coupling))
    return cost - reg * float(entr(coupling).sum())


@each_loss
@examples(10, 300)
@given(seed=seeds)
def test_no_linearisation_of_an_alignment_raises_the_objective(loss, seed):
    rng = np.random.default_rng(seed)
    kernel, support = (draw_kernel(rng, size) for size in rng.integers(2, 12, size=2))
    reg, rule = 10 ** rng.uniform(-2, 0), LOSSES[loss]
    path = []
    for rounds in range(1, 6):
        limits = Limits(max_gromov_iter=rounds, max_iter=2000, tol=-1.0, sinkhorn_tol=1e-12)
        found = align(kernel, support, reg, rule, limits)
        assume(found.status is Status.CONVERGED)
        path.append(linearised(kernel, support, found.coupling, rule, reg))
    assert_never_rises(path, 10.0)


@each_loss
@examples(10, 300)
@given(seed=seeds)
def test_no_round_of_refinement_raises_the_objective(loss, seed):
    rng = np.random.default_rng(seed)
    kernel, support = (draw_kernel(rng, size) for size in rng.integers(2, 12, size=2))
    rule = LOSSES[loss]
    start = np.full((len(kernel), len(support)), 1 / (len(kernel) * len(support)))
    path = [linearised(kernel, support, start, rule, 0.0)]
    for rounds in range(1, 6):
        limits = Limits(max_gromov_iter=rounds, tol=-1.0)
        coupling, _ = refine(kernel, support, start, rule, limits)
        path.append(linearised(kernel, support, coupling, rule, 0.0))
    assert_never_rises(path, 1.0)


@examples(10, 300)
@given(seed=seeds)
def test_no_other_support_is_better_for_the_couplings(seed):
    rng = np.random.default_rng(seed)
    sizes, n_support = rng.integers(2, 10, size=2), int(rng.integers(1, 10))
    kernels, start = [draw_kernel(rng, size) for size in sizes], draw_kernel(rng, n_support)
    weight = float(rng.uniform())
    weights = weight, 1 - weight
    found = gromov_barycentre(kernels, weights, start, reg=1.0, limits=Limits(max_updates=1))

    def loss_of(support):
        return sum(
            share
            * np.einsum(
                "ijkl,ij,kl->", (k[:, None, :, None] - support[:, None, :]) ** 2, coupling, coupling
            )
            for share, k, coupling in zip(weights, kernels, found.couplings, strict=True)
        )

    best = loss_of(found.support)
    for size in (1e-3, 1e-1):
        change = size * rng.normal(size=found.support.shape)
        assert loss_of(found.support + change) >= best - 1e-12


# Blocks -----------------------------------------------------------------------------------------


def free_energy(problem, plans):
    """Likelihood at the means of soft blocks, plus what the plans' marginals and entropy give.

    Means of counts are smoothed by half an entry at the overall mean in every block; counted as
    data, it makes the smoothed mean the maximum.
    """
    total, exposure = problem.table(*plans, (plans[0].shape[1], plans[1].shape[1]))
    shares = [plan.mean(axis=0) for plan in plans]
    marginal = sum(
        float(plan.sum(axis=0) @ np.log(np.maximum(share, 1e-300)))
        for plan, share in zip(plans, shares, strict=True)
    )
    marginal += sum(float(entr(plan).sum()) for plan in plans)
    if problem.family == "gaussian":
        # The noise is learned along with the means.
        return -0.5 * problem.n_observed * np.log(problem.noise(total, exposure)) + marginal
    natural, cumulant = problem.terms(total, exposure)
    more = 0.5 * problem.unit
    likelihood = np.sum((total + more * problem.overall) * natural - (exposure + more) * cumulant)
    return float(likelihood) / problem.dispersion + marginal


@pytest.mark.parametrize("family", ["gaussian", "poisson", "bernoulli"])
@examples(15, 500)
@given(case=labelled())
def test_no_soft_sweep_lowers_the_free_energy(family, case):
    rng, shape, labels = case
    X = draw_matrix(family, rng, shape)
    problem = make_problem(X, family)
    start = make_blocks(problem, *labels)
    ends = [sweep(problem, start, temperatures=(1.0,), max_iter=n, tol=-1.0) for n in range(1, 7)]
    path = [-free_energy(problem, end.plans) for end in ends if end.plans is not None]
    assert len(path) == 6
    scale = 1 + np.abs(path).max() + np.abs(X).sum()
    if family == "gaussian":
        # Near the floor of the noise a residual is what rounding left of the squares.
        noise = min(problem.noise(end.total, end.exposure) for end in ends)
        scale += 1e-4 * problem.sum_squares / noise
    assert_never_rises(path, scale)


# Rivals -----------------------------------------------------------------------------------------

RIVALS = {
    "DoubleKMeans": (DoubleKMeans, {}),
    "TriNMF": (TriNMF, {}),
    "GaussianLatentBlockModel, soft": (GaussianLatentBlockModel, {"assignment": "soft"}),
    "GaussianLatentBlockModel, hard": (GaussianLatentBlockModel, {"assignment": "hard"}),
    "InformationTheoreticCoclustering": (InformationTheoreticCoclustering, {}),
    "ResidualBayesianCoclustering": (ResidualBayesianCoclustering, {}),
}


@pytest.mark.parametrize("name", RIVALS)
@examples(10, 300)
@given(case=labelled())
def test_no_step_of_a_rival_worsens_its_criterion(name, case):
    rival, params = RIVALS[name]
    rng, shape, _ = case
    X = np.abs(draw_matrix(str(rng.choice(["gaussian", "poisson", "bernoulli"])), rng, shape))
    numbers = [int(rng.integers(1, min(4, size) + 1)) for size in shape]
    model = rival(*numbers, n_init=1, max_iter=25, tol=0, random_state=0, **params).fit(X)
    path = np.array(model.criterion_path_)
    if rival._larger_is_better:
        # A sum of squares is divided by variances as small as 1e-8 of it.
        assert_never_rises(-path, np.abs(path).max() + 1e4 * X.size)
    elif rival is InformationTheoreticCoclustering:
        assert_never_rises(path, 1.0)
    else:
        assert_never_rises(path, np.square(X).sum() + 1e-300)
