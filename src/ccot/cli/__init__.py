"""The command ``ccot``; modules of commands load no library when imported: help comes at once."""

import signal
import sys
from collections.abc import Iterable
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer.main import get_group

from ccot._version import __version__
from ccot.cli.errors import EXIT_CODES, Commands

# The module of each command: a function of its name, or ``app`` if it has commands of its own.
_MODULES = {
    "fit": "fit",
    "predict": "models",
    "report": "models",
    "simulate": "experiments",
    "fit-ratings": "ratings",
    "recommend": "ratings",
    "serve": "ratings",
    "paper": "experiments",
    "bench": "experiments",
    "demo": "experiments",
}


class LazyCommands(Commands):
    """Commands whose modules are loaded when they are asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        return list(_MODULES)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command; None where there is none of that name."""
        if cmd_name in _MODULES and cmd_name not in self.commands:
            self.commands.update(get_group(all_commands([cmd_name])).commands)
        return super().get_command(ctx, cmd_name)


def all_commands(names: Iterable[str] = _MODULES) -> typer.Typer:
    """Return all commands, or some, in one application; pages that describe them need all."""
    whole = typer.Typer(rich_markup_mode="markdown")
    for name in names:
        module = import_module(f"{__name__}.{_MODULES[name]}")
        command = getattr(module, name.replace("-", "_"), None)
        if command is None:
            whole.add_typer(module.app, name=name)
        else:
            whole.command(name)(command)
    return whole


app = typer.Typer(
    name="ccot",
    cls=LazyCommands,
    epilog=f"Exit codes: {'; '.join(f'{code} {text}' for code, text in EXIT_CODES.items())}.",
    help="Co-clustering through optimal transport: from a file to blocks of rows and columns.\n\n"
    "Begin with `ccot demo`, or with `ccot fit TABLE.csv`; `ccot COMMAND --help` has examples.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def _ccot(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="With --version: also libraries and devices.")
    ] = False,
) -> None:
    if version or verbose:
        typer.echo(f"ccot {__version__}")
        if verbose:
            from ccot.experiments.bench.facts import describe_installation

            typer.echo("\n".join(describe_installation()))
        raise typer.Exit
    # A console that lacks a character of a name shows a question mark for it.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def main() -> None:
    """Run the command line; asked to end, it cleans up as after Ctrl-C."""
    if sys.argv[1:] == ["--version"]:  # without the libraries that parse options
        return print(f"ccot {__version__}")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    app()
