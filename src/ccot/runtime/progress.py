"""Progress of long work in lines of text, with the time left."""

import time
from collections.abc import Callable
from typing import NamedTuple

_SECONDS_BETWEEN_LINES = 5.0


class StageState(NamedTuple):
    """Progress of a stage at the last report, and at the first one."""

    stage: str
    done: float
    total: float
    seen: float
    first: float
    began: float


class TimeLeft:
    """How far a stage is, and how long it will take; one thread may write while another reads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.last: StageState | None = None

    def see(self, stage: str, done: float, total: float) -> None:
        """Record how far a stage is; the first call starts its clock."""
        now, last = self._clock(), self.last
        if last is None or stage != last.stage or done < last.done:
            self.last = StageState(stage, done, total, now, done, now)
        else:
            self.last = last._replace(done=done, total=total, seen=now)

    def __str__(self) -> str:
        """Return one line of text: how far the stage is, and the time left once that is known."""
        last = self.last
        if last is None:
            return ""
        count = f"{last.stage} {last.done:.0f} of {last.total:.0f}"
        if not last.stage:
            count = f"{last.done / last.total:.0%}"
        now = self._clock()
        if last.done <= last.first:
            return count
        share = (last.done - last.first) / (last.total - last.first)
        left = max(0.0, (last.seen - last.began) / share - (now - last.began))
        return f"{count}, {duration(left)} to go"


def duration(seconds: float) -> str:
    """Return a time in words."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


class LineProgress:
    """Prints messages after a name, and progress at most every few seconds."""

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._name, self._clock, self._time_left = name, clock, TimeLeft(clock)
        self._last = clock()

    def __call__(self, message: str, done: float = 0, total: float = 0) -> None:
        """Print a message, or how far a stage is if the last line is old enough."""
        now = self._clock()
        if total:
            self._time_left.see(message, done, total)
            if now - self._last < _SECONDS_BETWEEN_LINES:
                return
            message = str(self._time_left)
        self._last = now
        print(f"[{self._name}] {message}", flush=True)
