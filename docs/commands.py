"""The parts of ``cli.md`` that the program itself tells: its commands, options and exit codes."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from inspect import Parameter, cleandoc, signature
from typing import Any, get_args, get_type_hints

import typer
from stored import listed
from typer.models import ArgumentInfo, ParameterInfo

from ccot.cli import all_commands
from ccot.cli.errors import EXIT_CODES
from ccot.cli.fit import fit
from ccot.cli.results import FILES

READING = "Reading the input"
PRODUCES = {
    "row_labels.csv": "name, cluster and confidence (0 to 1) of every row",
    "column_labels.csv": "name, cluster and confidence of every column",
    "blocks.csv": "one line for each block: its clusters, its size, its mean",
    "model.ccot": "the fitted model, for `ccot predict`, `ccot report` and `ccot.load_model`",
    "report.html": "an interactive page for the browser ([the report](report.md))",
    "run.json": "command, input, parameters, warnings, seconds, versions",
}


def plain(text: str | None) -> str:
    return " ".join((text or "").replace("|", "\\|").split())


@dataclass(frozen=True)
class Option:
    """One parameter of a command, as its function declares it."""

    name: str
    kind: Any
    info: Any
    default: Any

    @property
    def form(self) -> str:
        """How it is written."""
        if isinstance(self.info, ArgumentInfo):
            return f"`{self.info.metavar or self.name.upper()}`"
        # Inside Annotated, typer keeps the first name where a default would be.
        names = [self.info.default, *(self.info.param_decls or ())]
        flags = [name for name in names if isinstance(name, str) and name.startswith("-")]
        flags = flags or [f"--{self.name.replace('_', '-')}"]
        if self.kind is bool and len(flags) == 1 and self.default is True:
            flags = [f"{flags[0]}/--no-{flags[0][2:]}"]
        value = "" if self.kind is bool else " " + (self.info.metavar or self._value())
        return ", ".join(f"`{flag}{value}`" for flag in flags).replace("|", "\\|")

    @property
    def meaning(self) -> str:
        """What it says about itself, with its default."""
        text, default = plain(self.info.help), self.default
        if any(default is one for one in (None, False, Parameter.empty)) or "[default" in text:
            return text
        if default is True:
            return f"{text} [default: yes]"
        return f"{text} [default: {default.value if isinstance(default, Enum) else default}]"

    def _value(self) -> str:
        if isinstance(self.kind, type) and issubclass(self.kind, Enum):
            return "|".join(member.value for member in self.kind)
        return {int: "N", float: "X"}.get(self.kind, "TEXT" if self.kind is str else "PATH")


def options_of(command: Callable, panel: bool) -> str:
    hints = get_type_hints(command, include_extras=True)
    found = []
    for parameter in signature(command).parameters.values():
        kind, info = hints[parameter.name], parameter.default
        default = getattr(info, "default", info)
        if not isinstance(info, ParameterInfo):  # it is in the annotation, beside the default
            kind, info = get_args(kind)
        if getattr(info, "hidden", False):
            continue
        # Of "int | None" and "list[Path]" the reader wants to know int and Path.
        while get_args(kind):
            kind = get_args(kind)[0]
        found.append(Option(parameter.name, kind, info, default))
    rows = [
        (one.form, one.meaning) for one in found if (one.info.rich_help_panel == READING) == panel
    ]
    return listed(("option", "meaning"), rows)


def described(name: str, command: Callable) -> str:
    text = cleandoc(command.__doc__ or "")
    reads = "delimiter" in signature(command).parameters
    more = "\n\nAnd the options of [reading](#reading)." if reads else ""
    return f"### `{name}`\n\n{text}\n\n{options_of(command, panel=False)}{more}"


def group(name: str, inner: typer.Typer) -> str:
    rows = [
        (f"`{name} {one.name}`", plain(one.help or cleandoc(one.callback.__doc__ or "")))
        for one in inner.registered_commands
    ]
    text = plain(inner.info.help)
    return f"### `{name}`\n\n{text}\n\n{listed(('command', 'what it does'), rows)}"


def commands() -> str:
    app = all_commands()
    parts = [described(f"ccot {one.name}", one.callback) for one in app.registered_commands]
    parts += [group(f"ccot {one.name}", one.typer_instance) for one in app.registered_groups]
    return "\n\n".join(parts)


def command_reading() -> str:
    return options_of(fit, panel=True)


def command_exits() -> str:
    return listed(("code", "meaning"), [(str(code), text) for code, text in EXIT_CODES.items()])


def command_files() -> str:
    return listed(("file", "what is in it"), [(f"`{name}`", PRODUCES[name]) for name in FILES])


TABLES: dict[str, Callable[[], str]] = {
    made.__name__: made for made in (commands, command_reading, command_exits, command_files)
}
