"""Seconds of an operation and of its reference, in turns."""

import time
from collections.abc import Callable

from .cases import Operation

SHORTEST = 0.02  # seconds; what is faster is repeated until it takes as long


def repeats_of(work: Callable[[], object]) -> int:
    start = time.perf_counter()
    work()
    return max(1, round(SHORTEST / max(time.perf_counter() - start, 1e-6)))


def seconds(work: Callable[[], object], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        work()
    return (time.perf_counter() - start) / repeats


def measure(one: Operation, turns: int) -> dict:
    one.ours(), one.theirs()
    n_ours, n_theirs = repeats_of(one.ours), repeats_of(one.theirs)
    pairs = [(seconds(one.ours, n_ours), seconds(one.theirs, n_theirs)) for _ in range(turns)]
    ours, theirs = (min(times) for times in zip(*pairs, strict=True))
    return {
        "operation": one.name,
        "against": one.against,
        "seconds": round(ours, 6),
        "ratio": round(one.share * ours / theirs, 4),
        "ratios": [round(one.share * mine / other, 4) for mine, other in pairs],
    }
