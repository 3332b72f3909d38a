"""Losses between similarities that split into products."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from array_api_compat import array_namespace

from ccot.runtime.types import Array
from ccot.transport.low_rank import LowRankKernel

_TINY_IN_COST = 1e-15
_TINY_IN_UPDATE = 1e-10


@dataclass(frozen=True)
class Loss:
    """A loss that splits into products, :math:`L(a, b) = f_1(a) + f_2(b) - h_1(a) h_2(b)`.

    ``h1`` is the identity in both losses offered, so alignments are linear in ``K``. ``average``
    maps weighted means of ``forward(K)`` to the next support, whose ``h2`` are these means
    themselves: the best one for the square loss; for KL, as the authors have it, the best one for
    the divergence taken the other way round. ``mean_f1`` and ``low_rank_forward`` are for
    similarities of low rank.
    """

    f1: Callable[[Array], Array]
    f2: Callable[[Array], Array]
    h2: Callable[[Array], Array]
    forward: Callable[[Array], Array]
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
