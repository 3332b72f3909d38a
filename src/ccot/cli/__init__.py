"""The command ``ccot``: one file a command, put together here.

A module of this package either has a function ``register(app)`` that adds its commands, or a
:class:`typer.Typer` named ``app`` that becomes a group of commands under the module's name.
"""

from __future__ import annotations

import signal
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated

import typer

from ccot._version import __version__
from ccot.cli.errors import EXIT_CODES, Commands

COMMANDS = ("fit", "predict", "report", "simulate", "paper", "recommend", "serve", "bench", "demo")

app = typer.Typer(
    name="ccot",
    cls=Commands,
    epilog="Exit codes: "
    + "; ".join(f"{code} {meaning}" for code, meaning in EXIT_CODES.items())
    + ".",
    help="Co-clustering through optimal transport: from a file to blocks of rows and columns.\n\n"
    "Begin with `ccot demo`, or with `ccot fit TABLE.csv`; `ccot COMMAND --help` has examples.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ccot {__version__}")
        raise typer.Exit


@app.callback()
def _ccot(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    pass


def _mount(name: str) -> None:
    module = f"{__name__}.{name}"
    if find_spec(module) is None:
        return
    commands = import_module(module)
    if hasattr(commands, "register"):
        commands.register(app)
    else:
        app.add_typer(commands.app, name=name)


for _name in COMMANDS:
    _mount(_name)


def main() -> None:
    """Run the command line; asked to end, it cleans up as after Ctrl-C."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    app()
