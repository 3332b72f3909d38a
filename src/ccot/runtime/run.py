"""What a fit is given beside data and settings: random numbers, progress, a checkpoint, workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass, field, replace
from math import inf
from numbers import Integral
from typing import Any, Protocol, TypeVar

import numpy as np
from joblib import Parallel, delayed

T = TypeVar("T")
RandomState = int | np.random.Generator | np.random.RandomState | None


def as_generator(random_state: RandomState) -> np.random.Generator:
    """Return a generator for a seed, a generator, a legacy RandomState or None."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    if random_state is None or isinstance(random_state, Integral | np.random.Generator):
        return np.random.default_rng(random_state)
    raise ValueError(
        "random_state must be an integer, a numpy Generator or RandomState, or None, "
        f"not {random_state!r}"
    )


class Progress(Protocol):
    """Receives messages, and how far a stage is."""

    def __call__(self, message: str, done: float = 0, total: float = 0) -> None:
        """Take a message, or the name of a stage, how much is done and of how much."""
        ...


def no_progress(message: str, done: float = 0, total: float = 0) -> None:
    """Receive everything and show nothing."""


def counted(items: Iterable[T], stage: str, progress: Progress, total: int = 0) -> Iterator[T]:
    """Yield items, and tell how many of them were dealt with."""
    total = len(items) if isinstance(items, Sized) else total
    done = 0
    progress(stage, done, total)
    for item in items:
        yield item
        done += 1
        progress(stage, done, total)


class Checkpoint:
    """Makes every piece of a fit when it is asked for; this one keeps nothing."""

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
        """Yield pieces that are made one after the other, and all needed."""
        yield from rest(0)

    def loop(self, name: str, state: T, step: Callable[[T], T]) -> Iterator[T]:
        """Yield the states of a loop without end, of which the last is enough to go on.

        The caller decides by a state, not by a count, when to stop.
        """
        while True:
            state = step(state)
            yield state


NO_CHECKPOINT = Checkpoint()


def in_threads(work: Callable[[Any], T], items: Iterable[Any], n_jobs: int | None) -> Iterable[T]:
    """Yield what some work makes of every item, in order, on so many threads."""
    tasks = (delayed(lambda item: work(item))(item) for item in items)
    return Parallel(n_jobs, require="sharedmem", return_as="generator")(tasks)


@dataclass(frozen=True)
class Run:
    """One run of an algorithm, apart from its data and settings.

    ``progress`` receives messages, ``checkpoint`` keeps finished pieces, and ``n_jobs`` counts
    workers as joblib does.
    """

    rng: np.random.Generator = field(default_factory=np.random.default_rng)
    progress: Progress = no_progress
    checkpoint: Checkpoint = NO_CHECKPOINT
    n_jobs: int | None = None

    def each(self, name: str, work: Callable[[Any], T], items: Sequence[Any]) -> Iterator[T]:
        """Yield what some work makes of every item, in order; each is a piece that is kept."""

        def rest(n_kept: int) -> Iterable[T]:
            return in_threads(work, items[n_kept:], self.n_jobs)

        yield from self.checkpoint.series(name, len(items), rest)

    def quiet(self, rng: np.random.Generator | None = None) -> Run:
        """Return a run for a small part of the work: no progress, nothing kept."""
        return replace(self, rng=rng or self.rng, progress=no_progress, checkpoint=NO_CHECKPOINT)
