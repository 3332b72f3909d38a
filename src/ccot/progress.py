"""News of long work: those who do it tell how far they are, and leave open who listens."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import NamedTuple, Protocol, TypeVar

T = TypeVar("T")

_SECONDS_BETWEEN_LINES = 5.0


class Report(Protocol):
    """Whoever is told how work gets on."""

    def __call__(self, message: str, done: float = 0, total: float = 0) -> None:
        """Take news.

        Parameters
        ----------
        message : str
            What was found; or, with a total, the stage that is under way.
        done, total : float
            How much of how much of the stage is done. A total may grow while the stage lasts, and
            may not be reached; 0: there is none.
        """
        ...


def silent(message: str, done: float = 0, total: float = 0) -> None:
    """Tell nobody."""


def counted(items: Iterable[T], stage: str, report: Report, total: int = 0) -> Iterator[T]:
    """Yield items, and tell how many of them were dealt with.

    Parameters
    ----------
    items : iterable
        The items.
    stage : str
        What they are.
    report : Report
        Who is told.
    total : int, optional
        How many there are, if they have no length.

    Yields
    ------
    object
        The items.

    Examples
    --------
    >>> list(counted("ab", "letters", print))
    letters 0 2
    letters 1 2
    letters 2 2
    ['a', 'b']
    """
    total = len(items) if isinstance(items, Sized) else total
    done = 0
    report(stage, done, total)
    for item in items:
        yield item
        done += 1
        report(stage, done, total)


class Moment(NamedTuple):
    """What was last told of a stage, when, and how it began."""

    stage: str
    done: float
    total: float
    seen: float
    first: float
    began: float

    def left(self, now: float) -> float | None:
        """Return the seconds to go; None: not known yet."""
        if self.done <= self.first:
            return None
        share = (self.done - self.first) / (self.total - self.first)
        return max(0.0, (self.seen - self.began) / share - (now - self.began))


class Pace:
    """How far a stage is and how long it will still take, by what it took so far.

    One thread may tell while another looks.

    Parameters
    ----------
    clock : callable, optional
        Tells the time in seconds.

    Examples
    --------
    >>> seconds = iter([0.0, 10.0, 13.0])
    >>> pace = Pace(lambda: next(seconds))
    >>> pace.see("draws", 0, 100)
    >>> pace.see("draws", 20, 100)
    >>> str(pace)
    'draws 20 of 100, 37 s to go'
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.last: Moment | None = None

    def see(self, stage: str, done: float, total: float) -> None:
        """Take news of a stage; the first of them starts its clock."""
        now, last = self._clock(), self.last
        if last is None or stage != last.stage or done < last.done:
            self.last = Moment(stage, done, total, now, done, now)
        else:
            self.last = last._replace(done=done, total=total, seen=now)

    def __str__(self) -> str:
        """Return one line for people."""
        last = self.last
        if last is None:
            return ""
        count = f"{last.stage} {last.done:.0f} of {last.total:.0f}"
        if not last.stage:
            count = f"{last.done / last.total:.0%}"
        left = last.left(self._clock())
        return count if left is None else f"{count}, {duration(left)} to go"


def duration(seconds: float) -> str:
    """Return a time in words.

    Examples
    --------
    >>> duration(7), duration(75), duration(7500)
    ('7 s', '1 min 15 s', '2 h 5 min')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


class Lines:
    """Prints news; how far a stage is, not more often than every few seconds.

    Parameters
    ----------
    name : str
        Who works; begins every line.
    clock : callable, optional
        Tells the time in seconds.

    Examples
    --------
    >>> report = Lines("CCOT")
    >>> report("draws", 100, 200)
    >>> report("3 x 3 clusters")
    [CCOT] 3 x 3 clusters
    """

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._name, self._clock, self._pace = name, clock, Pace(clock)
        self._last = clock()

    def __call__(self, message: str, done: float = 0, total: float = 0) -> None:
        """Print news, or keep them to oneself."""
        now = self._clock()
        if total:
            self._pace.see(message, done, total)
            if now - self._last < _SECONDS_BETWEEN_LINES:
                return
            message = str(self._pace)
        self._last = now
        print(f"[{self._name}] {message}", flush=True)
