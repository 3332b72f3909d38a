"""Progress of long steps: a bar on a terminal after two seconds, else a line now and then."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Column

from ccot.runtime.progress import TimeLeft

# Seconds before a bar is shown, and between looks at the step; seconds between lines where there is
# no terminal to draw a bar on.
_PATIENCE, _BETWEEN_LOOKS, _BETWEEN_LINES = 2.0, 0.1, 30.0
_WIDTH = 24


class StepProgress:
    """How far a step is, as it says itself; a :class:`~ccot.runtime.progress.Progress`."""

    def __init__(self, title: str) -> None:
        self.title, self.time_left, self.message = title, TimeLeft(), ""

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
    # The words at the end give way where the terminal is narrow.
    rest = Column(no_wrap=True, ratio=1)
    words = TextColumn("{task.fields[step]}", markup=False, table_column=rest)
    title = TextColumn("{task.description}", markup=False)
    columns = SpinnerColumn(), title, BarColumn(_WIDTH), TimeElapsedColumn(), words
    options = {"console": console, "transient": True, "redirect_stdout": False, "expand": True}
    bar = Progress(*columns, **options)
    task = bar.add_task(step.title, total=None, step=step)  # whose time runs from here
    if over.wait(_PATIENCE):
        return
    with bar:
        while not over.wait(_BETWEEN_LOOKS):
            if last := step.time_left.last:
                bar.update(task, completed=last.done, total=last.total)


def _print_lines(step: StepProgress, console: Console, over: threading.Event) -> None:
    while not over.wait(_BETWEEN_LINES):
        print(f"{step.title}: {step}", file=console.file, flush=True)
