"""What a fit needs besides data and settings: random numbers, progress, a checkpoint, workers."""

from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from math import inf
from numbers import Integral
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from joblib import effective_n_jobs

T = TypeVar("T")
RandomState = int | np.random.Generator | np.random.RandomState | None


def as_generator(random_state: RandomState, rng: Any = None) -> np.random.Generator:
    """Return a generator for a seed, generator, legacy RandomState or None; ``rng``: see SPEC 7."""
    if rng is not None:
        if random_state is not None:
            raise TypeError("random_state and rng are the same parameter: pass one of them")
        return np.random.default_rng(rng)
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    if random_state is None or isinstance(random_state, Integral | np.random.Generator):
        return np.random.default_rng(random_state)
    kinds = "an integer, a numpy Generator or RandomState, or None"
    raise ValueError(f"random_state must be {kinds}, not {random_state!r}")


class Progress(Protocol):
    """Receives messages, and how far a stage is."""

    def __call__(self, message: str, done: float = 0, total: float = 0) -> None:
        """Take a message, or the name of a stage, how much is done and of how much."""
        ...


def no_progress(message: str, done: float = 0, total: float = 0) -> None:
    """Receive everything and show nothing."""


def counted(items: Iterable[T], stage: str, progress: Progress, total: int = 0) -> Iterator[T]:
    """Yield items, and report to ``progress`` how many are done."""
    total = len(items) if isinstance(items, Sized) else total
    progress(stage, 0, total)
    for done, item in enumerate(items, 1):
        yield item
        progress(stage, done, total)


class Checkpoint:
    """Computes every piece of a fit when it is needed; this one stores nothing."""

    # Seconds between two writes: longer pieces are split.
    patience = inf

    def fit(self, make: Callable[[], T]) -> T:
        """Return the result of the whole fit."""
        return make()

    def piece(self, name: str, make: Callable[[], T]) -> T:
        """Return one piece."""
        return make()

    def series(
        self,
        name: str,
        total: int,
        rest: Callable[[int], Iterable[T]],
        count: Callable[[T], int] = lambda piece: 1,
    ) -> Iterator[T]:
        """Yield pieces that are made one after the other, all of which are kept."""
        yield from rest(0)

    def loop(self, name: str, state: T, step: Callable[[T], T]) -> Iterator[T]:
        """Yield the states of an endless loop; the caller stops it by a state, not by a count."""
        while True:
            state = step(state)
            yield state


NO_CHECKPOINT = Checkpoint()


def in_threads(work: Callable[[Any], T], items: Iterable[Any], n_jobs: int | None) -> Iterator[T]:
    """Yield ``work(item)`` for every item, in order, computed by ``n_jobs`` threads."""
    n_threads = effective_n_jobs(n_jobs)
    if n_threads == 1:
        yield from map(work, items)
        return
    # joblib asks its threads only a hundred times a second whether they are done.
    with ThreadPoolExecutor(n_threads) as threads:
        yield from threads.map(work, items)


@dataclass(frozen=True)
class Run:
    """One run of an algorithm, apart from its data and settings; ``n_jobs`` is as in joblib."""

    rng: np.random.Generator = field(default_factory=np.random.default_rng)
    progress: Progress = no_progress
    checkpoint: Checkpoint = NO_CHECKPOINT
    n_jobs: int | None = None

    def each(self, name: str, work: Callable[[Any], T], items: Sequence[Any]) -> Iterator[T]:
        """Yield ``work(item)`` for every item, in order; a checkpoint keeps each result."""

        def rest(n_kept: int) -> Iterable[T]:
            return in_threads(work, items[n_kept:], self.n_jobs)

        yield from self.checkpoint.series(name, len(items), rest)

    def quiet(self, rng: np.random.Generator | None = None) -> Self:
        """Return a run for a small part of the work, without progress and checkpoint."""
        return replace(self, rng=rng or self.rng, progress=no_progress, checkpoint=NO_CHECKPOINT)
