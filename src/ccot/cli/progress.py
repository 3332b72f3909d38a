"""Progress of long steps: a bar on a terminal after two seconds, else a line now and then."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Column, Table
from rich.text import Text

from ccot.runtime.progress import TimeLeft, duration

# Seconds before a bar is shown; seconds between lines where there is no terminal to draw one on.
_PATIENCE, _BETWEEN_LINES = 2.0, 30.0
_WIDTH = 24


class StepProgress:
    """How far a step is, as it says itself; a :class:`~ccot.runtime.progress.Progress`."""

    def __init__(self, title: str) -> None:
        self.title, self.time_left, self.message = title, TimeLeft(), ""
        self.began = time.monotonic()

    def __call__(self, message: str, done: float = 0, total: float = 0) -> None:
        """Take a message, or how much of how much is done."""
        if total:
            self.time_left.see(message, done, total)
        else:
            self.message = message

    def share(self, done: float) -> None:
        """Say which share of the step is done."""
        self("", done, 1.0)

    def __str__(self) -> str:
        return "; ".join(filter(None, (str(self.time_left), self.message)))


class ConsoleProgress:
    """Shows how far long steps are: on the standard error, or on another console."""

    def __init__(self, quiet: bool = False, console: Console | None = None) -> None:
        self._quiet, self._console = quiet, console or Console(stderr=True)

    @contextmanager
    def step(self, title: str) -> Iterator[StepProgress]:
        """Show a step if it takes long; with the time left once it is told how far it is."""
        step, over = StepProgress(title), threading.Event()
        if self._quiet:
            yield step
            return
        show = _draw_bar if self._console.is_terminal else _print_lines
        watch = threading.Thread(target=show, args=(step, self._console, over), daemon=True)
        watch.start()
        try:
            yield step
        finally:
            over.set()
            watch.join()


def _draw_bar(step: StepProgress, console: Console, over: threading.Event) -> None:
    spinner = Spinner("dots")

    def line() -> Table:
        # The words at the end give way where the terminal is narrow.
        row = Table.grid(*(Column(no_wrap=True) for _ in range(4)), padding=(0, 1))
        last = step.time_left.last
        done, total = (0.0, None) if last is None else (last.done, last.total)
        bar = ProgressBar(total=total, completed=done, width=_WIDTH)
        words = Text(str(step), no_wrap=True, overflow="ellipsis")
        row.add_row(spinner, step.title, bar, duration(time.monotonic() - step.began), words)
        return row

    if not over.wait(_PATIENCE):
        with Live(get_renderable=line, console=console, transient=True, redirect_stdout=False):
            over.wait()


def _print_lines(step: StepProgress, console: Console, over: threading.Event) -> None:
    while not over.wait(_BETWEEN_LINES):
        print(f"{step.title}: {step}", file=console.file, flush=True)
