"""Users and items by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

# Comparing a long text with every name takes long and helps nobody.
_LONGEST_COMPARED = 80


class UnknownNameError(ValueError):
    """A name that no user or item has."""


def as_names(names: Sequence[Any] | None, size: int, what: str) -> tuple[str, ...]:
    """Return names as text; the numbers where there are none.

    Parameters
    ----------
    names : sequence or None
        One for each user or item.
    size : int
        How many there are.
    what : str
        What they are, for messages.

    Returns
    -------
    tuple of str
        Names, each of them once.
    """
    given = tuple(str(name) for name in (range(size) if names is None else names))
    if len(given) != size:
        raise ValueError(f"there are {size} {what}s and {len(given)} names for them")
    if len(set(given)) < size:
        twice = Counter(given).most_common(1)[0][0]
        raise ValueError(f"two {what}s are called {twice!r}: names must differ")
    return given


def find(known: Mapping[str, int], name: str, what: str) -> int:
    """Return the number that belongs to a name.

    Parameters
    ----------
    known : mapping of str to int
        Names and numbers.
    name : str
        The one looked for.
    what : str
        What it is, for the message.

    Returns
    -------
    int
        Its number.

    Raises
    ------
    UnknownNameError
        If there is none; the message names those that look alike.

    Examples
    --------
    >>> find({"Fargo (1996)": 0, "Alien (1979)": 1}, "Alien (1979)", "item")
    1
    """
    if name in known:
        return known[name]
    near = get_close_matches(name, known, n=3) if len(name) <= _LONGEST_COMPARED else []
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
    raise UnknownNameError(f"no {what} is called {name!r}{hint}")
