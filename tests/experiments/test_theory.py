"""What the algorithms solve, beside what the paper prints: the statements of the docs, checked."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from ccot.datasets import load_simulated
from ccot.estimators.ccot import CCOT
from ccot.estimators.ccot_gw import CCOTGW
from ccot.scalings.kernels import gaussian_kernel, mean_distance
from ccot.transport.gromov import LOSSES, Limits, LowRank, gromov_barycentre
from ccot.transport.sinkhorn import sinkhorn

EXACT = Limits(
    max_updates=1, max_gromov_iter=300, max_iter=2000, tol=0.0, sinkhorn_tol=1e-13, min_rounds=40
)
REG = 0.1
LOSS = {
    "square": lambda a, b: (a - b) ** 2 / 2,
    "kl": lambda a, b: a * np.log(a / b) - a + b,
}


@pytest.fixture(scope="module")
def kernels():
    matrix = load_simulated("D3", random_state=0).data[:30, :20]
    sides = matrix, np.ascontiguousarray(matrix.T)
    return [gaussian_kernel(side, side, mean_distance(side)) for side in sides]


def align(kernels, loss="square", weights=(0.5, 0.5)):
    found = gromov_barycentre(
        kernels, weights, kernels[0], reg=REG, loss=loss, exact_refinement=False, limits=EXACT
    )
    couplings = [alignment.coupling for alignment in found.alignments]
    return [c.dense() if isinstance(c, LowRank) else c for c in couplings], found


def losses_of_pairs(kernel, support, loss):
    """The printed loss of every quadruple, as a matrix: pairs (i, k) by pairs (j, l)."""
    pairs = loss(kernel[:, None, :, None], support[None, :, None, :])
    return pairs.reshape(kernel.shape[0] * support.shape[0], -1)


def steepest(gradient):
    """The largest slope along changes of a coupling that keep its marginals."""
    kept = gradient - gradient.mean(axis=0) - gradient.mean(axis=1, keepdims=True)
    return np.abs(kept + gradient.mean()).max()


def entropy(coupling):
    return -(coupling * np.log(coupling)).sum()


def slope(kernel, support, coupling, loss, share, weight):
    """The steepest slope of share * Gamma - weight * E at a coupling."""
    gradient = 2 * losses_of_pairs(kernel, support, LOSS[loss]) @ coupling.ravel()
    return steepest(share * gradient.reshape(coupling.shape) + weight * np.log(coupling))


@pytest.mark.parametrize("loss", ["square", "kl"])
def test_an_alignment_is_stationary_with_twice_the_entropy(kernels, loss):
    couplings, _ = align(kernels, loss)
    for kernel, coupling in zip(kernels, couplings, strict=True):
        assert slope(kernel, kernels[0], coupling, loss, 1, 2 * REG) < 1e-6
        assert slope(kernel, kernels[0], coupling, loss, 1, REG) > 1e-3


def test_weights_do_not_enter_the_alignments(kernels):
    one, _ = align(kernels, weights=(0.5, 0.5))
    other, _ = align(kernels, weights=(0.9, 0.1))
    for first, second in zip(one, other, strict=True):
        assert np.array_equal(first, second)


def test_with_equal_weights_it_is_the_printed_problem_with_lambda_equal_to_reg(kernels):
    couplings, _ = align(kernels)
    for kernel, coupling in zip(kernels, couplings, strict=True):
        assert slope(kernel, kernels[0], coupling, "square", 0.5, REG) < 1e-6
        assert slope(kernel, kernels[0], coupling, "square", 0.9, REG) > 1e-3


@pytest.mark.parametrize(
    ("loss", "minimised"), [("square", LOSS["square"]), ("kl", lambda a, b: LOSS["kl"](b, a))]
)
def test_the_update_minimises_over_the_barycentre_for_kl_the_other_way_round(
    kernels, loss, minimised
):
    couplings, found = align(kernels, loss, weights=(0.7, 0.3))

    def objective(support):
        return sum(
            weight * t.ravel() @ losses_of_pairs(kernel, support, minimised) @ t.ravel()
            for weight, kernel, t in zip((0.7, 0.3), kernels, couplings, strict=True)
        )

    least, rng = objective(found.support), np.random.default_rng(0)
    for size in (1e-3, 1e-2, 1e-1):
        change = size * rng.normal(size=found.support.shape)
        assert objective(found.support * np.exp(change)) > least


def test_the_square_loss_is_half_the_square():
    a, b = np.array(0.3), np.array(0.8)
    for name, rule in LOSSES.items():
        assert rule.f1(a) + rule.f2(b) - a * rule.h2(b) == pytest.approx(LOSS[name](a, b))


# Section 3.3 ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def draw():
    """The log kernel of one square draw of D3, and its scalings."""
    matrix = load_simulated("D3", random_state=0, sigma=0.5).data[:60, :60]
    cost = ((matrix[:, None, :] - matrix.T[None, :, :]) ** 2).sum(axis=2)
    log_kernel = -5 * cost / np.median(cost)
    found = sinkhorn(log_kernel, max_iter=20_000, tol=1e-14)
    return log_kernel, found.log_row, found.log_column


def coupling_of(draw):
    log_kernel, log_row, log_column = draw
    return np.exp(log_row[:, None] + log_kernel + log_column)


def divergence(coupling, log_kernel):
    return (coupling * (np.log(coupling) - log_kernel)).sum()


def test_transport_is_the_projection_of_the_kernel(draw):
    log_kernel, coupling = draw[0], coupling_of(draw)
    least = divergence(coupling, log_kernel)
    # The objective of transport, times lambda, is the divergence.
    assert least == pytest.approx(-(coupling * log_kernel).sum() - entropy(coupling))
    assert steepest(np.log(coupling) - log_kernel) < 1e-9
    rng = np.random.default_rng(0)
    change = rng.normal(size=coupling.shape)
    change -= change.mean(axis=0) + change.mean(axis=1, keepdims=True) - change.mean()
    change *= coupling.min() / np.abs(change).max() / 2
    assert divergence(coupling + change, log_kernel) > least


def test_without_the_marginals_the_bound_is_tight_and_nothing_is_learnt(draw):
    log_kernel = draw[0]
    posterior = np.exp(log_kernel - logsumexp(log_kernel))
    assert divergence(posterior, log_kernel - logsumexp(log_kernel)) == pytest.approx(0, abs=1e-12)


def test_marginals_are_uniform_and_the_scaling_is_the_reciprocal_of_a_mixture_density(draw):
    log_kernel, log_row, log_column = draw
    size = len(log_row)
    assert np.allclose(coupling_of(draw).sum(axis=1), 1 / size)
    mixture = logsumexp(log_kernel + log_column, axis=1)
    assert np.allclose(log_row, -np.log(size) - mixture)


def test_column_scalings_minimise_what_a_mixing_distribution_maximises(draw):
    log_kernel, _, log_column = draw
    size = len(log_column)

    def mean_log_density(weights):
        return logsumexp(log_kernel + weights, axis=1).mean()

    def dual(weights):
        value = mean_log_density(weights) - weights.mean()
        share = np.exp(log_kernel + weights - logsumexp(log_kernel + weights, axis=1)[:, None])
        return value, share.mean(axis=0) - 1 / size

    found = minimize(dual, np.zeros(size), jac=True, method="L-BFGS-B",
                     options={"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-12})  # fmt: skip
    assert np.allclose(found.x - found.x.mean(), log_column - log_column.mean(), atol=1e-4)
    scaled = log_column - logsumexp(log_column)
    likeliest = fit_mixing_weights(log_kernel)
    uniform = np.full(size, -np.log(size))
    assert mean_log_density(scaled) < mean_log_density(uniform) < mean_log_density(likeliest)


def fit_mixing_weights(log_kernel, n_iter=2000):
    """The mixing weights of largest likelihood, by the EM algorithm."""
    weights = np.full(log_kernel.shape[1], -np.log(log_kernel.shape[1]))
    for _ in range(n_iter):
        joint = log_kernel + weights
        shares = np.exp(joint - logsumexp(joint, axis=1)[:, None])
        weights = np.log(np.maximum(shares.mean(axis=0), 1e-300))
    return weights


# Nothing depends on a start ---------------------------------------------------------------------


def test_ccot_gw_has_no_start_to_choose():
    matrix = load_simulated("D3", random_state=0).data[::3]
    one, other = (CCOTGW(random_state=seed).fit(matrix) for seed in (0, 1))
    np.testing.assert_array_equal(one.row_log_scaling_, other.row_log_scaling_)
    np.testing.assert_array_equal(one.column_log_scaling_, other.column_log_scaling_)


def test_new_rows_change_every_scaling_of_ccot_gw():
    """There is no part of its coupling that stays while rows arrive."""
    matrix = load_simulated("D3", random_state=0).data[::3]
    before, after = (CCOTGW().fit(rows).row_log_scaling_ for rows in (matrix[:80], matrix))
    # A constant in all of them means nothing.
    moved = (after[:80] - after[:80].mean()) - (before - before.mean())
    assert np.quantile(np.abs(moved), 0.05) > 1e-3 * np.ptp(before)


def test_other_draws_of_ccot_give_the_same_partitions():
    matrix = load_simulated("D3", random_state=0).data
    one, *others = (CCOT(n_samplings=32, random_state=seed).fit(matrix) for seed in range(4))
    for other in others:
        np.testing.assert_array_equal(one.row_labels_, other.row_labels_)
        np.testing.assert_array_equal(one.column_labels_, other.column_labels_)
