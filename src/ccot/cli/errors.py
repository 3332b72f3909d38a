"""Messages and exit codes when something goes wrong."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

REFUSED, INTERRUPTED = 2, 130

EXIT_CODES = {
    0: "done",
    1: "a failure that is not the input's: please report it",
    REFUSED: "the command, a file or its content was refused; the message says what to do",
    INTERRUPTED: "stopped by Ctrl-C or a request to end",
}


class Commands(TyperGroup):
    """A group of commands whose refusals are one line and an exit code, not a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise
        except KeyboardInterrupt as stop:
            code, message = INTERRUPTED, stop.args[0] if stop.args else "nothing was written"
        except MemoryError:
            code = REFUSED
            message = "not enough memory: pass a part of the matrix, or a sparse file"
        except (ValueError, ImportError, OSError) as error:
            code, message = REFUSED, one_line(error)
        typer.echo(f"{'interrupted' if code == INTERRUPTED else 'error'}: {message}", err=True)
        raise typer.Exit(code)


def one_line(error: BaseException | str) -> str:
    """Return the message of an error without line breaks."""
    return " ".join(str(error).split()) or type(error).__name__
