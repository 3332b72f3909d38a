from collections import Counter

import array_api_compat.torch
import array_api_strict
import numpy as np
import ot
import pytest

from ccot.runtime.run import Checkpoint, Run
from ccot.scalings.kernels import gaussian_kernel, mean_distance
from ccot.transport import gromov
from ccot.transport.gromov import LOSSES, Limits, gromov_barycentre, refine
from ccot.transport.low_rank import LowRank, LowRankKernel
from ccot.transport.sinkhorn import Status
from tests.transport.alignment import align

# No gain is below a negative tolerance: all iterations are made.
TO_THE_END = Limits(max_gromov_iter=200, max_iter=10_000, tol=-1.0, sinkhorn_tol=1e-14)
each_loss = pytest.mark.parametrize("loss", LOSSES)


def make_kernel(size, seed):
    points = np.random.default_rng(seed).normal(size=(size, 3)) + 2 * (np.arange(size) % 2)[:, None]
    return gaussian_kernel(points, points, mean_distance(points))


def value_of(kernel, support, coupling, loss):
    """The Gromov-Wasserstein objective, summed over all four indices."""
    one, other = kernel[:, None, :, None], support[None, :, None, :]
    divergence = one * np.log(one / other) - one + other
    cost = (one - other) ** 2 / 2 if loss == "square" else divergence
    return np.einsum("ikjl,ik,jl->", cost, coupling, coupling)


@each_loss
def test_alignment_is_pots_entropic_gromov_wasserstein(loss):
    """Theirs takes the gradient as cost, twice ours, and a square loss without the half."""
    kernel, support = make_kernel(9, 0), make_kernel(7, 1)
    ours = align(kernel, support, 0.02, LOSSES[loss], TO_THE_END)
    theirs = ot.gromov.entropic_gromov_wasserstein(
        kernel,
        support,
        np.full(9, 1 / 9),
        np.full(7, 1 / 7),
        f"{loss}_loss",
        epsilon=0.02 * (4 if loss == "square" else 2),
        symmetric=True,
        solver="PGD",
        max_iter=200,
        tol=0.0,
        numItermax=10_000,
        stopThr=1e-15,
    )
    assert np.ptp(ours.coupling) > 0.1 / 63  # not the product it started from
    np.testing.assert_allclose(ours.coupling, theirs, rtol=1e-8, atol=1e-14)


@each_loss
def test_coupling_has_its_marginals_and_its_factors(loss):
    kernel, support = make_kernel(12, 0), make_kernel(8, 1)
    found = align(kernel, support, 0.1, LOSSES[loss], Limits(sinkhorn_tol=1e-13, max_iter=10_000))
    assert found.status is Status.CONVERGED
    np.testing.assert_allclose(found.coupling.sum(1), 1 / 12, rtol=1e-11)
    np.testing.assert_allclose(found.coupling.sum(0), 1 / 8, rtol=1e-11)
    log_kernel = (kernel @ found.potential + found.shift) / 0.1
    rebuilt = np.exp(found.log_row[:, None] + log_kernel + found.log_column)
    np.testing.assert_allclose(rebuilt, found.coupling, rtol=1e-12)
    assert log_kernel.max() == pytest.approx(0, abs=1e-12)


@each_loss
def test_value_at_rest_is_the_objective_with_its_entropy(loss):
    kernel, support = make_kernel(6, 0), make_kernel(5, 1)
    found = align(kernel, support, 0.05, LOSSES[loss], TO_THE_END)
    coupling = found.coupling
    entropy = -np.sum(coupling * (np.log(coupling) - 1))
    expected = value_of(kernel, support, coupling, loss) - 0.05 * entropy
    assert found.value == pytest.approx(expected, abs=1e-9)


@each_loss
def test_refinement_gives_a_better_coupling_with_the_same_masses(loss):
    kernel, support = make_kernel(10, 0), make_kernel(8, 1)
    entropic = align(kernel, support, 0.5, LOSSES[loss], Limits()).coupling
    exact, value = refine(kernel, support, entropic, LOSSES[loss], Limits())
    np.testing.assert_allclose(exact.sum(1), 1 / 10, rtol=1e-12)
    np.testing.assert_allclose(exact.sum(0), 1 / 8, rtol=1e-12)
    assert (exact > 0).sum() <= 10 + 8 - 1  # a vertex
    after = value_of(kernel, support, exact, loss)
    assert after < value_of(kernel, support, entropic, loss)
    assert value == pytest.approx(after, abs=1e-12)


def test_permuting_points_permutes_scalings():
    kernel, support = make_kernel(15, 0), make_kernel(10, 1)
    rows, points = (np.random.default_rng(0).permutation(size) for size in (15, 10))
    one = align(kernel, support, 0.1, LOSSES["square"], Limits())
    other = align(
        kernel[np.ix_(rows, rows)], support[np.ix_(points, points)], 0.1, LOSSES["square"], Limits()
    )
    np.testing.assert_allclose(other.log_row, one.log_row[rows], atol=1e-10)
    np.testing.assert_allclose(other.log_column, one.log_column[points], atol=1e-10)


@each_loss
def test_barycentre_of_a_kernel_and_itself_is_that_kernel(loss):
    kernel = make_kernel(12, 3)
    answer = gromov_barycentre(
        [kernel, kernel], (0.3, 0.7), kernel, reg=0.05, loss=loss, limits=Limits(max_iter=2000)
    )
    assert answer.status is Status.CONVERGED
    # An exact coupling of equal sizes is a permutation: the same similarities, points renamed.
    np.testing.assert_allclose(
        np.sort(answer.support, axis=None), np.sort(kernel, axis=None), atol=1e-9
    )


def test_weights_choose_between_the_kernels():
    kernels = [make_kernel(10, 0), make_kernel(8, 1) / 3]
    means = [
        gromov_barycentre(kernels, weights, kernels[0], reg=1.0).support.mean()
        for weights in ((1, 0), (0.5, 0.5), (0, 1))
    ]
    # The mean of a support is the weighted mean of the kernels' means, whatever the couplings.
    assert means[0] == pytest.approx(kernels[0].mean())
    assert means[2] == pytest.approx(kernels[1].mean())
    assert means[1] == pytest.approx((means[0] + means[2]) / 2)


@each_loss
@pytest.mark.parametrize("exact_refinement", [True, False])
def test_objective_is_the_weighted_sum_of_the_values(loss, exact_refinement):
    kernels, weights, start = [make_kernel(12, 0), make_kernel(9, 1)], (0.3, 0.7), make_kernel(7, 2)
    told, expected, limits = [], 0.0, Limits()
    answer = gromov_barycentre(
        kernels,
        weights,
        start,
        reg=0.5,
        loss=loss,
        exact_refinement=exact_refinement,
        run=Run(progress=lambda *news: told.append(news)),
    )
    for kernel, weight in zip(kernels, weights, strict=True):
        found = align(kernel, start, 0.5, LOSSES[loss], limits)
        refined = refine(kernel, start, found.coupling, LOSSES[loss], limits)
        expected += weight * (refined[1] if exact_refinement else found.value)
    assert answer.objective[0] == pytest.approx(expected)
    assert told == [("updates", done, 10) for done in range(len(answer.objective) + 1)]


@each_loss
@pytest.mark.parametrize("n_support", [1, 4, 20])
def test_support_may_have_any_size(loss, n_support):
    kernels = [make_kernel(12, 0), make_kernel(9, 1)]
    answer = gromov_barycentre(kernels, (0.5, 0.5), make_kernel(n_support, 2), reg=1.0, loss=loss)
    assert answer.support.shape == (n_support, n_support)
    for kernel, alignment in zip(kernels, answer.alignments, strict=True):
        assert alignment.coupling.shape == (len(kernel), n_support)
        np.testing.assert_allclose(alignment.coupling.sum(1), 1 / len(kernel), rtol=1e-9)
        np.testing.assert_allclose(alignment.coupling.sum(0), 1 / n_support, atol=1e-6)


def test_limits_are_obeyed_and_reported():
    kernels = [make_kernel(12, 0), make_kernel(9, 1)]
    few = gromov_barycentre(kernels, (0.5, 0.5), kernels[0], reg=1.0, limits=Limits(max_updates=2))
    assert len(few.objective) == 2
    assert few.status is Status.MAX_ITER
    hard = gromov_barycentre(kernels, (0.5, 0.5), kernels[0], reg=1e-3, limits=Limits(max_iter=2))
    assert hard.status is Status.MAX_ITER
    easy = gromov_barycentre(kernels, (0.5, 0.5), kernels[0], reg=1.0)
    assert easy.status is Status.CONVERGED
    assert 3 <= len(easy.objective) <= 10


def test_every_sinkhorn_has_its_limit():
    kernel, support = make_kernel(12, 0), make_kernel(8, 1)
    few, many = (
        align(kernel, support, 0.05, LOSSES["square"], Limits(max_gromov_iter=1, max_iter=max_iter))
        for max_iter in (1, 1000)
    )
    assert few.status is Status.MAX_ITER
    assert many.status is Status.CONVERGED
    assert np.abs(few.coupling.sum(axis=0) - 1 / 8).max() > 1e-4


@each_loss
def test_an_update_goes_on_from_the_support_before_it(loss):
    # Similarities of zero show the constant that is added to them before logarithms are taken.
    kernels, weights = [np.eye(9), make_kernel(7, 1)], (0.9, 0.1)

    def update(start, n_updates):
        limits = Limits(max_updates=n_updates)
        return gromov_barycentre(
            kernels, weights, start, reg=0.05, loss=loss, exact_refinement=False, limits=limits
        )

    once, twice = (update(make_kernel(8, 2), n_updates) for n_updates in (1, 2))
    again = update(once.support, 1)
    assert again.objective[0] == pytest.approx(twice.objective[1], rel=1e-13)
    np.testing.assert_allclose(again.support, twice.support, rtol=1e-13)


def test_equal_similarities_are_at_rest_at_once():
    kernels = [np.ones((6, 6)), np.ones((5, 5))]
    answer = gromov_barycentre(kernels, (0.5, 0.5), np.ones((4, 4)), reg=1.0)
    assert answer.status is Status.CONVERGED
    assert len(answer.objective) == Limits().min_rounds
    np.testing.assert_allclose(answer.objective, 0, atol=1e-15)


def test_gains_are_compared_with_the_first_value():
    assert gromov._at_rest([10.0, 1.0, 0.9995], Limits(tol=1e-4))
    assert not gromov._at_rest([10.0, 1.0, 0.998], Limits(tol=1e-4))
    assert gromov._at_rest([0.0, 0.0, 0.0], Limits())
    # What matters is the gain over the best value so far.
    assert gromov._at_rest([10.0, 1.0, 5.0, 1.0], Limits(tol=1e-4))


class Witness(Checkpoint):
    """Keeps nothing but the names of the pieces."""

    def __init__(self):
        self.names = Counter()

    def piece(self, name, make):
        self.names[name] += 1
        return super().piece(name, make)

    def loop(self, name, state, step):
        self.names[name] += 1
        return super().loop(name, state, step)


def test_pieces_of_a_barycentre_are_named():
    kernels, seen = [make_kernel(9, 0), make_kernel(7, 1)], Witness()
    answer = gromov_barycentre(kernels, (0.5, 0.5), kernels[0], reg=1.0, run=Run(checkpoint=seen))
    n_updates = len(answer.objective)
    assert seen.names["update"] == 1
    assert seen.names["alignment"] == seen.names["refinement"] == 2 * n_updates
    assert seen.names["linearisation"] == 4 * n_updates


@each_loss
@pytest.mark.parametrize("reg", [1e-3, 1e-2, 1.0, 1e3])
def test_no_entropy_weight_breaks_the_arithmetic(reg, loss):
    kernels = [make_kernel(20, 0), make_kernel(15, 1)]
    answer = gromov_barycentre(kernels, (0.5, 0.5), kernels[0], reg=reg, loss=loss)
    assert np.isfinite(answer.support).all()
    assert all(np.isfinite(alignment.log_row).all() for alignment in answer.alignments)


@each_loss
@pytest.mark.parametrize("exact_refinement", [True, False])
@pytest.mark.parametrize("xp", [array_api_compat.torch, array_api_strict], ids=["torch", "strict"])
def test_every_array_library_gives_the_same_barycentre(xp, loss, exact_refinement):
    kernels = [make_kernel(12, 0), make_kernel(9, 1)]
    expected, given = (
        gromov_barycentre(
            [module.asarray(kernel) for kernel in kernels],
            (0.5, 0.5),
            module.asarray(kernels[0]),
            reg=0.1,
            loss=loss,
            exact_refinement=exact_refinement,
        )
        for module in (np, xp)
    )
    np.testing.assert_allclose(np.asarray(given.support), expected.support, rtol=1e-9)
    for one, other in zip(given.alignments, expected.alignments, strict=True):
        np.testing.assert_allclose(np.asarray(one.log_row), other.log_row, atol=1e-9)


@each_loss
@pytest.mark.parametrize(("reg", "n_support"), [(5.0, None), (50.0, 100)])
def test_products_give_what_written_couplings_give(loss, reg, n_support, monkeypatch):
    kernels = [make_kernel(240, 0), make_kernel(200, 1)]
    start = kernels[0] if n_support is None else make_kernel(n_support, 2)

    def solve():
        return gromov_barycentre(
            kernels, (0.5, 0.5), start, reg=reg, loss=loss, exact_refinement=False
        )

    products = solve()
    assert all(isinstance(alignment.coupling, LowRank) for alignment in products.alignments)
    monkeypatch.setattr(gromov, "transport_product", lambda *_: None)
    written = solve()
    np.testing.assert_allclose(products.objective, written.objective, rtol=1e-11)
    np.testing.assert_allclose(products.support, written.support, rtol=1e-10)
    assert products.status is written.status
    for one, other in zip(products.alignments, written.alignments, strict=True):
        assert one.shift == 0
        np.testing.assert_allclose(one.log_row, other.log_row, atol=1e-11)
        np.testing.assert_allclose(one.coupling.dense(), other.coupling, rtol=1e-10)
        # The last linearisation began with the coupling before.
        potential = one.potential.dense() if isinstance(one.potential, LowRank) else one.potential
        np.testing.assert_allclose(potential, other.potential, rtol=1e-9)
        # The shift of the cost is in the scaling of the support or beside it.
        np.testing.assert_allclose(one.log_column, other.log_column + other.shift / reg, atol=1e-11)


@each_loss
def test_products_give_way_where_their_rank_grows(loss, monkeypatch):
    """The first linearisations have products, later ones and the other kernel need not."""
    kernels, ranks, solve = [make_kernel(240, 0), make_kernel(60, 1)], [], gromov._solve_product

    def spy(*arguments):
        step = solve(*arguments)
        ranks.append(step is not None)
        return step

    monkeypatch.setattr(gromov, "_solve_product", spy)
    options = {"reg": 0.5, "loss": loss, "exact_refinement": False, "limits": Limits(max_updates=3)}
    mixed = gromov_barycentre(kernels, (0.5, 0.5), kernels[0], **options)
    assert set(ranks) == {True, False}
    monkeypatch.setattr(gromov, "_solve_product", lambda *_: None)
    written = gromov_barycentre(kernels, (0.5, 0.5), kernels[0], **options)
    np.testing.assert_allclose(mixed.objective, written.objective, rtol=1e-11)
    for one, other in zip(mixed.alignments, written.alignments, strict=True):
        np.testing.assert_allclose(one.log_row, other.log_row, atol=1e-10)


@pytest.mark.parametrize("product", [True, False], ids=["product", "written"])
def test_the_potential_is_the_coupling_times_the_support(product):
    rng = np.random.default_rng(0)
    factor, left, right = (rng.uniform(size=(size, 3)) for size in (7, 5, 7))
    support, coupling = LowRank(factor, factor), LowRank(left, right)
    found = gromov._potential(coupling if product else coupling.dense(), support)
    found = found.dense() if product else found
    np.testing.assert_allclose(found, coupling.dense() @ support.dense())


@each_loss
@pytest.mark.parametrize("reg", [1.0, 0.01], ids=["products", "written"])
@pytest.mark.parametrize("exact_refinement", [True, False])
def test_low_rank_kernels_are_as_good_as_their_matrices(loss, reg, exact_refinement):
    rng = np.random.default_rng(0)
    factors = [rng.uniform(0.2, 0.6, size=(size, 3)) for size in (40, 30)]
    matrices = [factor @ factor.T for factor in factors]
    low_rank = [
        LowRankKernel(factor, factor, np.log(matrix))
        for factor, matrix in zip(factors, matrices, strict=True)
    ]
    few, full = (
        gromov_barycentre(
            kernels,
            (0.5, 0.5),
            make_kernel(25, 2),
            reg=reg,
            loss=loss,
            exact_refinement=exact_refinement,
            limits=Limits(max_updates=2),
        )
        for kernels in (low_rank, matrices)
    )
    np.testing.assert_allclose(few.objective, full.objective, rtol=1e-8)
    for one, other in zip(few.alignments, full.alignments, strict=True):
        np.testing.assert_allclose(one.log_row, other.log_row, atol=1e-7)
