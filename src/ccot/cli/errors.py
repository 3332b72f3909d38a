"""Messages and exit codes when something goes wrong."""

from typing import Any

import typer
from typer.core import TyperGroup

# Some versions of Typer bring a click of their own: this class is of the one in use.
_UsageError: Any = typer.BadParameter.__mro__[1]

REFUSED, INTERRUPTED = 2, 130

EXIT_CODES = {
    0: "done",
    1: "an internal error: please report it",
    REFUSED: "an error in the command, a file or its content; the message says what to do",
    INTERRUPTED: "stopped by Ctrl-C or a termination signal",
}


class Commands(TyperGroup):
    """A group of commands whose refusals are one line and an exit code, not a traceback."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Read the options that stand before a command."""
        asks_for_help = not args  # by giving nothing
        try:
            return super().parse_args(ctx, args)
        except _UsageError as error:
            if asks_for_help:
                raise
            raise _refused(_misused(error)) from None

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        code = REFUSED
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise
        except _UsageError as error:
            message = _misused(error)
        except KeyboardInterrupt as stop:
            code, message = INTERRUPTED, stop.args[0] if stop.args else "stopped before the end"
        except MemoryError:
            message = "not enough memory: fit some of the rows, or pass a sparse file"
        except (ValueError, ImportError, OSError) as error:
            message = one_line(error)
        raise _refused(message, code)


def _refused(message: str, code: int = REFUSED) -> typer.Exit:
    typer.echo(f"{'interrupted' if code == INTERRUPTED else 'error'}: {message}", err=True)
    return typer.Exit(code)


def _misused(error: Any) -> str:
    """Return what is wrong with a command, and who knows better."""
    help_of = error.ctx.command_path if error.ctx else "ccot"
    message = one_line(error.format_message()).replace("Value error, ", "")
    return f"{message[:1].lower()}{message[1:].rstrip('.')} (try {help_of} --help)"


def one_line(error: BaseException | str) -> str:
    """Return the message of an error without line breaks."""
    return " ".join(str(error).split()) or type(error).__name__
