"""Which values may stand in model files and checkpoints, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

Kind = TypeVar("Kind", bound=type)

_NAMES: dict[str, type] = {}
_FORMER: dict[str, type] = {}
_RENAMED: dict[type, dict[str, str]] = {}


def stored(*former: str, renamed: Mapping[str, str] | None = None) -> Callable[[Kind], Kind]:
    """Let a dataclass or enum be written to files under its own name.

    Parameters
    ----------
    *former : str
        Names under which earlier versions wrote it; files with these are still read.
    renamed : mapping of str to str, optional
        New names of its fields by those that earlier versions wrote.

    Returns
    -------
    callable
        A decorator that returns the class as it is.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @stored("Dot")
    ... @dataclass(frozen=True)
    ... class Point:
    ...     x: float
    >>> stored_types()["Dot"] is stored_types()["Point"] is Point
    True
    """

    def register(kind: Kind) -> Kind:
        name = kind.__name__
        known = _NAMES.setdefault(name, kind)
        if known is not kind and known.__module__ != kind.__module__:
            raise TypeError(f"two classes called {name} would be written to files: rename one")
        _NAMES[name] = kind
        _FORMER.update(dict.fromkeys(former, kind))
        _RENAMED[kind] = dict(renamed or {})
        return kind

    return register


def stored_types() -> dict[str, type]:
    """Return all registered classes by name, former names first."""
    return _FORMER | _NAMES


def with_new_names(kind: type, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a stored value by the names that its class has now."""
    new_names = _RENAMED.get(kind, {})
    return {new_names.get(name, name): value for name, value in fields.items()}
