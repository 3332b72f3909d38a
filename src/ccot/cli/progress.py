"""News of long steps: a bar on the terminal once a step takes more than two seconds."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from io import TextIOBase

from rich.console import Console
from rich.progress import (
    BarColumn,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars

_PATIENCE = 2.0


class News:
    """How a step gets on."""

    def __init__(self, bars: Bars, task: TaskID) -> None:
        self._bars, self._task = bars, task

    def share(self, done: float) -> None:
        """Say which share of the step is done."""
        self._bars.update(self._task, completed=done, total=1.0)

    def message(self, text: str) -> None:
        """Say what is going on."""
        self._bars.update(self._task, message=text)


class Progress:
    """Shows steps on a terminal, and nothing where there is none or the user wants silence."""

    def __init__(self, quiet: bool = False, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._shown = not quiet and self._console.is_terminal

    @contextmanager
    def step(self, title: str) -> Iterator[News]:
        """Show a bar during a step that takes long; with the time left once shares are told."""
        bars = Bars(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TimeElapsedColumn(),
            TimeRemainingColumn(elapsed_when_finished=True),
            TextColumn("{task.fields[message]}"),
            console=self._console,
            transient=True,
            redirect_stdout=False,
        )
        task = bars.add_task(title, total=None, message="")
        timer = threading.Timer(_PATIENCE, bars.start)
        timer.daemon = True
        if self._shown:
            timer.start()
        try:
            yield News(bars, task)
        finally:
            timer.cancel()
            if self._shown:
                # A timer that went off at this very moment must not outlive the bar.
                timer.join()
                bars.stop()


class _Lines(TextIOBase):
    """Hands what is printed to the news, line by line."""

    def __init__(self, news: News) -> None:
        self._news, self._rest = news, ""

    def write(self, text: str, /) -> int:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._news.message(line.strip())
        return len(text)


@contextmanager
def printed_as_news(news: News) -> Iterator[None]:
    """Show as news what an estimator prints when it is verbose."""
    with redirect_stdout(_Lines(news)):
        yield
