"""Classes that model files and checkpoints may contain, by name."""

from collections.abc import Callable
from typing import Any, TypeVar

Kind = TypeVar("Kind", bound=type)
Upgrade = Callable[[dict[str, Any]], dict[str, Any]]

_NAMES: dict[str, type] = {}
_FORMER: dict[str, type] = {}
_UPGRADES: dict[type, Upgrade] = {}


class ModelFileError(ValueError):
    """A model file that cannot be read, or a model that cannot be written."""


def stored(*former: str, upgrade: Upgrade = dict) -> Callable[[Kind], Kind]:
    """Return a decorator of classes for files, with former names and ``upgrade`` of old fields."""

    def register(kind: Kind) -> Kind:
        name = kind.__name__
        known = _NAMES.setdefault(name, kind)
        if known is not kind and known.__module__ != kind.__module__:
            raise TypeError(f"two classes called {name} would be written to files: rename one")
        _NAMES[name] = kind
        _FORMER.update(dict.fromkeys(former, kind))
        _UPGRADES[kind] = upgrade
        return kind

    return register


def stored_types() -> dict[str, type]:
    """Return all registered classes by name, former names first."""
    return _FORMER | _NAMES


def upgraded(kind: type, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a stored value as its class has them now."""
    return _UPGRADES.get(kind, dict)(fields)
