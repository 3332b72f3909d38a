"""Entropic Gromov-Wasserstein alignment and the barycentre of two similarity matrices.

For a loss ``f1(a) + f2(b) - h1(a) h2(b)``, each linearisation has the cost ``-h1(K) T h2(S)``, see
docs/method.md. Terms of the row alone or the column alone are left out, as in the authors' program.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device

from ccot.persistence.registry import stored
from ccot.runtime.run import NO_CHECKPOINT, Checkpoint, Run
from ccot.runtime.types import Array
from ccot.transport.low_rank import LowRank, LowRankKernel, join_low_rank, transport_product
from ccot.transport.sinkhorn import Status, sinkhorn

_TINY_IN_COST = 1e-15
_TINY_IN_UPDATE = 1e-10

AnyMatrix = Array | LowRank


@dataclass(frozen=True)
class Loss:
    """A loss ``f1(a) + f2(b) - a h2(b)``; the last two functions are for low rank."""

    f1: Callable[[Array], Array]
    f2: Callable[[Array], Array]
    h2: Callable[[Array], Array]
    forward: Callable[[Array], Array]
    # The best support, given weighted means of ``forward(K)``. For KL, as in the authors' program,
    # it is the best for the divergence with its arguments exchanged.
    average: Callable[[Array], Array]
    mean_f1: Callable[[LowRankKernel], float]
    low_rank_forward: Callable[[LowRankKernel], Any]


def _log(array: Array) -> Array:
    return array_namespace(array).log(array)


LOSSES = {
    "square": Loss(
        f1=lambda a: a**2 / 2,
        f2=lambda b: b**2 / 2,
        h2=lambda b: b,
        forward=lambda a: a,
        average=lambda m: m,
        mean_f1=lambda kernel: kernel.mean_square() / 2,
        low_rank_forward=lambda kernel: kernel,
    ),
    "kl": Loss(
        f1=lambda a: a * _log(a + _TINY_IN_COST) - a,
        f2=lambda b: b,
        h2=lambda b: _log(b + _TINY_IN_COST),
        forward=lambda a: _log(a + _TINY_IN_UPDATE),
        average=lambda m: array_namespace(m).exp(m),
        mean_f1=lambda kernel: kernel.mean_entropy() - kernel.mean(),
        low_rank_forward=lambda kernel: kernel.logarithm,
    ),
}


@dataclass(frozen=True)
class Limits:
    """When the three nested loops of a barycentre stop: updates, linearisations, Sinkhorn."""

    max_updates: int = 10
    max_gromov_iter: int = 100
    max_iter: int = 100
    tol: float = 1e-4  # gain of updates and linearisations, relative to the first value
    sinkhorn_tol: float = 1e-6  # error of the marginals
    min_rounds: int = 3  # updates and linearisations, as in the authors' program


@stored()
@dataclass(frozen=True)
class Alignment:
    """A coupling of data and support points, ``exp(log_row + log_kernel + log_column)``."""

    # log_kernel = (K @ potential + shift) / reg is linear in K, so new points have scalings too.
    log_row: Array
    log_column: Array
    potential: AnyMatrix  # the last coupling times ``h2`` of the support
    shift: float
    coupling: AnyMatrix
    value: float
    status: Status

    @property
    def potential_factors(self) -> tuple[Array, ...]:
        """Matrices whose product is the potential."""
        if isinstance(self.potential, LowRank):
            return self.potential.left, self.potential.right.T
        return (self.potential,)


@stored()
@dataclass(frozen=True)
class Update:
    """The state after an update of a barycentre: all that the next update needs."""

    alignments: tuple[Alignment, ...] = ()  # with the support before the update
    couplings: tuple[Any, ...] = ()  # determine the next support
    objective: tuple[float, ...] = ()  # weighted sum of the couplings' values in each update


@dataclass(frozen=True, kw_only=True)
class Barycentre(Update):
    """The last update, with the similarities and their weights."""

    kernels: tuple[Array, ...]
    weights: tuple[float, ...]
    loss: str
    status: Status

    @cached_property
    def support(self) -> Array:
        """The barycentre after the last update, of shape (n_support, n_support)."""
        rule = LOSSES[self.loss]
        mean = _weighted_mean(self.kernels, self.couplings, self.weights, rule)
        return rule.average(_dense(mean))


def gromov_barycentre(
    kernels: Sequence[Array],
    weights: Sequence[float],
    start: Array,
    *,
    reg: float,
    loss: str = "square",
    exact_refinement: bool = True,
    limits: Limits | None = None,
    run: Run | None = None,
) -> Barycentre:
    """Return the entropic Gromov-Wasserstein barycentre of similarity matrices.

    Each update aligns the similarities with the support; the next support is the best one for these
    alignments (Peyré, Cuturi and Solomon, 2016, ICML). ``exact_refinement``, as in the authors'
    program, first refines the alignments by exact transport.
    """
    limits, run = limits or Limits(), run or Run()
    checkpoint = run.checkpoint
    rule = LOSSES[loss]
    constants = [_mean_f1(kernel, rule) for kernel in kernels]

    def update(last: Update) -> Update:
        side: AnyMatrix
        support, side = start, rule.h2(start)
        if last.couplings:
            side = _weighted_mean(kernels, last.couplings, weights, rule)
            support = rule.average(_dense(side))
            side = side if isinstance(side, LowRank) else rule.h2(support)
        mean_f2 = _mean(rule.f2(support))
        options = reg, limits, not exact_refinement, checkpoint
        alignments = tuple(
            checkpoint.piece("alignment", partial(_align, kernel, side, c + mean_f2, *options))
            for kernel, c in zip(kernels, constants, strict=True)
        )
        ends = [(alignment.coupling, alignment.value) for alignment in alignments]
        if exact_refinement:
            given = rule, limits, checkpoint
            ends = [
                checkpoint.piece("refinement", partial(refine, kernel, support, start, *given))
                for kernel, (start, _) in zip(kernels, ends, strict=True)
            ]
        couplings, values = zip(*ends, strict=True)
        value = sum(w * v for w, v in zip(weights, values, strict=True))
        return Update(alignments, couplings, (*last.objective, value))

    run.progress("updates", 0, limits.max_updates)
    for last in checkpoint.loop("update", Update(), update):
        at_rest = _at_rest(last.objective, limits)
        run.progress("updates", len(last.objective), limits.max_updates)
        if at_rest or len(last.objective) == limits.max_updates:
            break
    converged = at_rest and all(a.status is Status.CONVERGED for a in last.alignments)
    status = Status.CONVERGED if converged else Status.MAX_ITER
    given = {"kernels": tuple(kernels), "weights": tuple(weights), "loss": loss, "status": status}
    return Barycentre(**vars(last), **given)


def _align(
    kernel: Array | LowRankKernel,
    side: AnyMatrix,
    constant: float,
    reg: float,
    limits: Limits,
    products: bool,
    checkpoint: Checkpoint = NO_CHECKPOINT,
) -> Alignment:
    """Return an alignment by repeated linearisation, by low-rank products while the rank is low."""
    # The first coupling is the product of the marginals: its potential has rank one.
    column_means = _column_means(side)
    xp = array_namespace(column_means)
    zeros = xp.zeros(kernel.shape[0], dtype=column_means.dtype, device=device(column_means))
    first = LowRank((zeros + 1 / kernel.shape[0])[:, None], column_means[:, None])

    def linearise(last: tuple[Alignment | None, tuple[float, ...]]) -> Any:
        before, values = last
        log_row, potential = zeros, first
        if before is not None:
            log_row, potential = before.log_row, _potential(before.coupling, side)
        if isinstance(potential, LowRank):
            cost = LowRank(-(kernel @ potential.left), potential.right)
        else:
            cost = -(kernel @ potential)
        given = cost, potential, reg, log_row, limits
        found = (_solve_product(*given) if products else None) or _solve_written(*given)
        value = constant + found.value
        return replace(found, value=value), (*values, value)

    states = checkpoint.loop("linearisation", (None, ()), linearise)
    return next(last for last, values in states if last and _is_over(values, limits))


def _solve_written(
    cost: AnyMatrix, potential: AnyMatrix, reg: float, log_row: Array, limits: Limits
) -> Alignment:
    """Return the solution of one linearisation, computed with full matrices."""
    written = _dense(cost)
    xp = array_namespace(written)
    shift = float(xp.min(written))
    log_kernel = (shift - written) / reg
    scalings = sinkhorn(
        log_kernel, log_row_start=log_row, max_iter=limits.max_iter, tol=limits.sinkhorn_tol
    )
    log_coupling = scalings.log_row[:, None] + log_kernel + scalings.log_column[None, :]
    coupling = xp.astype(xp.exp(log_coupling), written.dtype)
    entropy = -float(xp.sum(coupling * (log_coupling - 1)))
    value = float(xp.sum(written * coupling)) - reg * entropy
    scaled = scalings.log_row, scalings.log_column
    return Alignment(*scaled, potential, shift, coupling, value, scalings.status)


def _solve_product(
    cost: AnyMatrix, potential: AnyMatrix, reg: float, log_row: Array, limits: Limits
) -> Alignment | None:
    """Return the solution by low-rank products; None if :func:`transport_product` returns None."""
    if not isinstance(cost, LowRank):
        return None
    log_kernel = LowRank(cost.left / -reg, cost.right)
    plan = transport_product(log_kernel, log_row, limits.max_iter, limits.sinkhorn_tol)
    if plan is None:
        return None
    value = cost.inner(plan.coupling) + reg * plan.negative_entropy
    scaled = plan.log_row, plan.log_column
    return Alignment(*scaled, potential, 0.0, plan.coupling, value, plan.status)


def _potential(coupling: AnyMatrix, side: AnyMatrix) -> AnyMatrix:
    if isinstance(coupling, LowRank):
        return LowRank(coupling.left, side @ coupling.right)
    # ``side`` is symmetric.
    return (side @ coupling.T).T if isinstance(side, LowRank) else coupling @ side


def refine(
    kernel: Array,
    support: Array,
    coupling: Array,
    rule: Loss,
    limits: Limits,
    checkpoint: Checkpoint = NO_CHECKPOINT,
) -> tuple[Array, float]:
    """Return coupling and value of an alignment continued without entropy, by exact transport."""
    # Imported when needed: POT loads every array library it finds.
    import ot

    xp = array_namespace(coupling)
    n_points, n_support = coupling.shape
    row_mass, column_mass = np.full(n_points, 1 / n_points), np.full(n_support, 1 / n_support)
    support_side = rule.h2(support)
    constant = _mean_f1(kernel, rule) + _mean(rule.f2(support))

    def linearise(last: tuple[Array, tuple[float, ...]]) -> tuple[Array, tuple[float, ...]]:
        coupling, values = last
        cost = -(kernel @ (coupling @ support_side))
        on_host = np.asarray(cost.cpu() if hasattr(cost, "cpu") else cost)
        exact = ot.emd(row_mass, column_mass, on_host - on_host.min(), numItermax=10_000_000)
        coupling = xp.asarray(exact, device=getattr(cost, "device", None))
        return coupling, (*values, constant + float(xp.sum(cost * coupling)))

    states = checkpoint.loop("linearisation", (coupling, ()), linearise)
    return next((exact, values[-1]) for exact, values in states if _is_over(values, limits))


def _mean_f1(kernel: Array | LowRankKernel, rule: Loss) -> float:
    return rule.mean_f1(kernel) if isinstance(kernel, LowRankKernel) else _mean(rule.f1(kernel))


def _mean(matrix: Array) -> float:
    return float(array_namespace(matrix).mean(matrix))


def _dense(matrix: AnyMatrix) -> Array:
    return matrix.dense() if isinstance(matrix, LowRank) else matrix


def _column_means(side: AnyMatrix) -> Array:
    if isinstance(side, LowRank):
        return side.right @ array_namespace(side.left).mean(side.left, axis=0)
    return array_namespace(side).mean(side, axis=0)


def _weighted_mean(
    kernels: Sequence[Array | LowRankKernel],
    couplings: Sequence[AnyMatrix],
    weights: Sequence[float],
    rule: Loss,
) -> AnyMatrix:
    """Return ``h2`` of the support that is best for these couplings."""
    parts = []
    for weight, kernel, coupling in zip(weights, kernels, couplings, strict=True):
        low_rank = isinstance(kernel, LowRankKernel)
        forward = rule.low_rank_forward(kernel) if low_rank else rule.forward(kernel)
        scale = weight * coupling.shape[1] ** 2
        if isinstance(coupling, LowRank):
            inner = coupling.left.T @ (forward @ coupling.left)
            parts.append(LowRank(coupling.right, coupling.right @ (scale * inner)))
        else:
            parts.append(scale * (coupling.T @ (forward @ coupling)))
    if all(isinstance(part, LowRank) for part in parts):
        return join_low_rank(parts)
    return sum(map(_dense, parts))


def _is_over(values: Sequence[float], limits: Limits) -> bool:
    """Return True if linearisations have converged or reached their limit."""
    return _at_rest(values, limits) or len(values) == limits.max_gromov_iter


def _at_rest(values: Sequence[float], limits: Limits) -> bool:
    """Return True if the last value improves little over the best earlier one."""
    if len(values) < limits.min_rounds:
        return False
    # <= and not <: if all similarities are equal, every value is zero.
    return min(values[:-1]) - values[-1] <= limits.tol * abs(values[0])
