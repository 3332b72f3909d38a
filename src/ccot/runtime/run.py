"""What a fit is given beside data and settings: random numbers, progress, a checkpoint, workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from math import inf
from numbers import Integral
from typing import Protocol, TypeVar

import numpy as np

T = TypeVar("T")
RandomState = int | np.random.Generator | np.random.RandomState | None


def as_generator(random_state: RandomState) -> np.random.Generator:
    """Return a generator for a seed, a generator, a legacy RandomState or None.

    Examples
    --------
    >>> int(as_generator(0).integers(100))
    85
    """
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    if random_state is None or isinstance(random_state, Integral | np.random.Generator):
        return np.random.default_rng(random_state)
    raise ValueError(
        "random_state must be an integer, a numpy Generator or RandomState, or None, "
        f"not {random_state!r}"
    )


class Progress(Protocol):
    """Whoever is told how work gets on."""

    def __call__(self, message: str, done: float = 0, total: float = 0) -> None:
        """Take news."""
        ...


def no_progress(message: str, done: float = 0, total: float = 0) -> None:
    """Tell nobody."""


class Checkpoint:
    """Has every piece of a fit made that it is asked for: this one keeps nothing.

    Examples
    --------
    >>> from itertools import islice
    >>> nowhere = Checkpoint()
    >>> nowhere.piece("answer", lambda: 42)
    42
    >>> list(nowhere.series("letters", 3, lambda n_kept: "abc"[n_kept:]))
    ['a', 'b', 'c']
    >>> list(islice(nowhere.loop("powers", 1, lambda state: 2 * state), 3))
    [2, 4, 8]
    """

    # Seconds of work that nobody minds to lose: larger pieces had better be cut up.
    patience = inf

    def fit(self, make: Callable[[], T]) -> T:
        """Return what the fit as a whole comes to."""
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

        Whoever takes them stops by what they hold, not by how many came.
        """
        while True:
            state = step(state)
            yield state


NO_CHECKPOINT = Checkpoint()


@dataclass(frozen=True)
class Run:
    """One run of an algorithm, as far as it is not data or settings.

    Attributes
    ----------
    rng : numpy.random.Generator
        Where random numbers come from.
    progress : Progress
        Told how far the run is.
    checkpoint : Checkpoint
        Keeps finished pieces.
    n_jobs : int or None
        Workers, as joblib counts them.
    """

    rng: np.random.Generator = field(default_factory=np.random.default_rng)
    progress: Progress = no_progress
    checkpoint: Checkpoint = NO_CHECKPOINT
    n_jobs: int | None = None

    def quiet(self, rng: np.random.Generator | None = None) -> Run:
        """Return a run for a small part of the work: no progress, nothing kept."""
        return replace(self, rng=rng or self.rng, progress=no_progress, checkpoint=NO_CHECKPOINT)
