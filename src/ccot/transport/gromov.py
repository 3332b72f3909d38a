r"""Entropic Gromov-Wasserstein alignment and the barycentre of two similarity matrices.

An alignment couples the points of a similarity ``K`` with the points of a support ``S`` so that
similar pairs meet similar pairs:

.. math:: \min_T \sum_{ijkl} L(K_{ij}, S_{kl}) T_{ik} T_{jl} - \lambda E(T).

With :math:`L(a, b) = f_1(a) + f_2(b) - h_1(a) h_2(b)` each step is one entropic transport with the
linear cost :math:`-h_1(K) T h_2(S)`; the terms that depend on one index only do not change the
coupling and are left out, as the paper's authors do. (A solver that keeps them returns the same
couplings and other scaling vectors.) The barycentre alternates between alignments of all
similarities with the current support and the support that is best for these alignments.

Arrays may come from any library with the array API; the exact refinement is POT's and NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import ot
from array_api_compat import array_namespace

from ccot.transport.sinkhorn import Status, sinkhorn

Array = Any

_TINY_IN_COST = 1e-15
_TINY_IN_UPDATE = 1e-10


@dataclass(frozen=True)
class Loss:
    """A loss that splits into products, :math:`L(a, b) = f_1(a) + f_2(b) - h_1(a) h_2(b)`.

    ``h1`` is the identity in both losses offered, so alignments are linear in ``K``. ``average``
    maps weighted means of ``forward(K)`` to the best support.
    """

    f1: Callable[[Array], Array]
    f2: Callable[[Array], Array]
    h2: Callable[[Array], Array]
    forward: Callable[[Array], Array]
    average: Callable[[Array], Array]


def _log(array: Array) -> Array:
    return array_namespace(array).log(array)


LOSSES = {
    "square": Loss(
        f1=lambda a: a**2 / 2,
        f2=lambda b: b**2 / 2,
        h2=lambda b: b,
        forward=lambda a: a,
        average=lambda m: m,
    ),
    "kl": Loss(
        f1=lambda a: a * _log(a + _TINY_IN_COST) - a,
        f2=lambda b: b,
        h2=lambda b: _log(b + _TINY_IN_COST),
        forward=lambda a: _log(a + _TINY_IN_UPDATE),
        average=lambda m: array_namespace(m).exp(m),
    ),
}


@dataclass(frozen=True)
class Limits:
    """When the three nested loops of a barycentre stop.

    Attributes
    ----------
    max_updates : int
        Updates of the barycentre.
    max_gromov_iter : int
        Linearisations of each alignment.
    max_iter : int
        Sinkhorn iterations of each linearisation.
    tol : float
        Gain, relative to the first value, below which updates and linearisations stop.
    sinkhorn_tol : float
        Marginal error at which Sinkhorn stops.
    min_rounds : int
        Updates and linearisations made at least; the authors' program makes three.
    """

    max_updates: int = 10
    max_gromov_iter: int = 100
    max_iter: int = 100
    tol: float = 1e-4
    sinkhorn_tol: float = 1e-6
    min_rounds: int = 3


@dataclass(frozen=True)
class Alignment:
    """A coupling of data points and support points, with what made it.

    The coupling is ``exp(log_row + log_kernel + log_column)`` with
    ``log_kernel = (K @ potential + shift) / reg``: linear in ``K``, so that unseen points can be
    scaled with their similarities to the data.

    Attributes
    ----------
    log_row : array of shape (n,)
        Logarithm of the scaling on the data side.
    log_column : array of shape (n_support,)
        Logarithm of the scaling on the support side.
    potential : array of shape (n, n_support)
        The coupling of the previous linearisation times ``h2`` of the support.
    shift : float
        Smallest entry of the linear cost.
    coupling : array of shape (n, n_support)
        The coupling itself.
    value : float
        The objective of the last linearisation.
    status : Status
        Whether the last Sinkhorn converged.
    """

    log_row: Array
    log_column: Array
    potential: Array
    shift: float
    coupling: Array
    value: float
    status: Status


@dataclass(frozen=True)
class Barycentre:
    """The barycentre of several similarities.

    Attributes
    ----------
    alignments : tuple of Alignment
        Entropic alignments of the last update, made with the support before it.
    kernels, weights, couplings : tuples
        The similarities, their weights, and the couplings that update the barycentre last.
    loss : str
        How similarities were compared.
    objective : tuple of float
        Weighted sum of the alignments' values at each update.
    status : Status
        Whether the updates came to rest and every Sinkhorn of the last one converged.
    """

    alignments: tuple[Alignment, ...]
    kernels: tuple[Array, ...]
    weights: tuple[float, ...]
    couplings: tuple[Array, ...]
    loss: str
    objective: tuple[float, ...]
    status: Status

    @cached_property
    def support(self) -> Array:
        """The barycentre after the last update, of shape (n_support, n_support)."""
        return _best_support(self.kernels, self.couplings, self.weights, LOSSES[self.loss])


def gromov_barycentre(
    kernels: Sequence[Array],
    weights: Sequence[float],
    start: Array,
    *,
    reg: float,
    loss: str = "square",
    exact_refinement: bool = True,
    limits: Limits | None = None,
) -> Barycentre:
    r"""Compute the entropic Gromov-Wasserstein barycentre of similarity matrices [1]_.

    .. math:: \min_{S, T_s} \sum_s \varepsilon_s \Gamma_{S, K_s}(T_s) - \lambda E(T_s)

    Parameters
    ----------
    kernels : sequence of arrays of shape (n_s, n_s)
        Similarities to average; their points have equal masses.
    weights : sequence of float
        Weight of each similarity.
    start : array of shape (n_support, n_support)
        The barycentre to start from.
    reg : float
        Weight of the entropy.
    loss : {"square", "kl"}, default="square"
        How similarities are compared.
    exact_refinement : bool, default=True
        Refine every entropic coupling by exact transport before it updates the barycentre, as the
        paper's authors do.
    limits : Limits, optional
        Iteration limits and tolerances.

    Returns
    -------
    Barycentre
        Alignments, support, objective and status.

    References
    ----------
    .. [1] Peyré, G., Cuturi, M. and Solomon, J. (2016). Gromov-Wasserstein averaging of kernel and
       distance matrices. ICML.
    """
    limits = limits or Limits()
    rule = LOSSES[loss]
    support, objective, alignments, couplings = start, [], (), ()
    at_rest = False
    for update in range(limits.max_updates):
        if update:
            support = _best_support(kernels, couplings, weights, rule)
        alignments = tuple(align(kernel, support, reg, rule, limits) for kernel in kernels)
        couplings, values = zip(
            *(
                refine(kernel, support, a.coupling, rule, limits)
                if exact_refinement
                else (a.coupling, a.value)
                for kernel, a in zip(kernels, alignments, strict=True)
            ),
            strict=True,
        )
        objective.append(sum(w * v for w, v in zip(weights, values, strict=True)))
        at_rest = _at_rest(objective, limits)
        if at_rest:
            break
    converged = at_rest and all(a.status is Status.CONVERGED for a in alignments)
    status = Status.CONVERGED if converged else Status.MAX_ITER
    return Barycentre(
        alignments,
        tuple(kernels),
        tuple(weights),
        tuple(couplings),
        loss,
        tuple(objective),
        status,
    )


def align(kernel: Array, support: Array, reg: float, rule: Loss, limits: Limits) -> Alignment:
    """Align a similarity with a support by entropic Gromov-Wasserstein, from the product start."""
    xp = array_namespace(kernel)
    support_side = rule.h2(support)
    constant = _constant(kernel, support, rule)
    # The product coupling has a potential of rank one: no matrix product is needed.
    potential = xp.zeros_like(kernel[:, :1]) + xp.mean(support_side, axis=0) / kernel.shape[0]
    cost = -(xp.sum(kernel, axis=1)[:, None] * potential[:1, :])
    log_row = xp.zeros_like(kernel[:, 0])
    values: list[float] = []
    while True:
        shift = float(xp.min(cost))
        log_kernel = (shift - cost) / reg
        scalings = sinkhorn(
            log_kernel, log_row_start=log_row, max_iter=limits.max_iter, tol=limits.sinkhorn_tol
        )
        log_row = scalings.log_row
        log_coupling = log_row[:, None] + log_kernel + scalings.log_column[None, :]
        coupling = xp.astype(xp.exp(log_coupling), kernel.dtype)
        entropy = -float(xp.sum(coupling * (log_coupling - 1)))
        values.append(constant + float(xp.sum(cost * coupling)) - reg * entropy)
        if _at_rest(values, limits) or len(values) == limits.max_gromov_iter:
            break
        potential = coupling @ support_side
        cost = -(kernel @ potential)
    return Alignment(
        log_row, scalings.log_column, potential, shift, coupling, values[-1], scalings.status
    )


def refine(
    kernel: Array, support: Array, coupling: Array, rule: Loss, limits: Limits
) -> tuple[Array, float]:
    """Continue an alignment without entropy: each linearisation is solved exactly."""
    xp = array_namespace(kernel)
    n_points, n_support = coupling.shape
    row_mass, column_mass = np.full(n_points, 1 / n_points), np.full(n_support, 1 / n_support)
    support_side = rule.h2(support)
    constant = _constant(kernel, support, rule)
    values: list[float] = []
    while not _at_rest(values, limits) and len(values) < limits.max_gromov_iter:
        cost = -(kernel @ (coupling @ support_side))
        on_host = np.asarray(cost.cpu() if hasattr(cost, "cpu") else cost)
        exact = ot.emd(row_mass, column_mass, on_host - on_host.min(), numItermax=10_000_000)
        coupling = xp.asarray(exact, device=getattr(cost, "device", None))
        values.append(constant + float(xp.sum(cost * coupling)))
    return coupling, values[-1]


def _constant(kernel: Array, support: Array, rule: Loss) -> float:
    """The part of the objective that no coupling changes, all points having equal masses."""
    xp = array_namespace(kernel)
    return float(xp.mean(rule.f1(kernel))) + float(xp.mean(rule.f2(support)))


def _best_support(
    kernels: Sequence[Array], couplings: Sequence[Array], weights: Sequence[float], rule: Loss
) -> Array:
    n_support = couplings[0].shape[1]
    total = sum(
        weight * (coupling.T @ rule.forward(kernel) @ coupling)
        for weight, kernel, coupling in zip(weights, kernels, couplings, strict=True)
    )
    return rule.average(total * n_support**2)


def _at_rest(values: Sequence[float], limits: Limits) -> bool:
    """Tell whether there are enough values and the last gain over the best earlier one is small."""
    if len(values) < limits.min_rounds:
        return False
    # Equality counts: where all similarities are equal every value is zero.
    return min(values[:-1]) - values[-1] <= limits.tol * abs(values[0])
