"""Seconds of an operation and of its reference, in turns."""

import statistics
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
    ratios = [one.share * ours / theirs for ours, theirs in pairs]
    return {
        "operation": one.name,
        "against": one.against,
        "seconds": statistics.median(ours for ours, _ in pairs),
        "ratio": round(statistics.median(ratios), 4),
        "ratios": [round(ratio, 4) for ratio in ratios],
    }
