"""Users and items by name."""

from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer

# Longer texts are no misspelt names. Of the others, so many names are compared letter by letter:
# those with the most groups of three letters in common.
_LONGEST_COMPARED, _COMPARED = 80, 40


class UnknownNameError(ValueError):
    """A name that no user or item has."""


def as_names(names: Sequence[Any] | None, size: int, what: str) -> tuple[str, ...]:
    """Return names as text; the numbers where there are none."""
    given = tuple(str(name) for name in (range(size) if names is None else names))
    if len(given) != size:
        raise ValueError(f"there are {size} {what}s but {len(given)} names")
    if len(set(given)) < size:
        twice = Counter(given).most_common(1)[0][0]
        raise ValueError(f"two {what}s are named {twice!r}: names must differ")
    return given


class NameIndex:
    """The numbers that belong to names, and the names that look like an unknown one."""

    def __init__(self, names: Sequence[str], what: str, ids: Sequence[str] = ()) -> None:
        self._names, self._what = names, what
        # Who is called like another's identifier is meant by it.
        self._numbers = {name: i for both in (ids, names) for i, name in enumerate(both)}

    def __contains__(self, name: object) -> bool:
        return name in self._numbers

    def find(self, name: str) -> int:
        """Return the number of a name; the error of an unknown one names those that look alike."""
        if name in self._numbers:
            return self._numbers[name]
        near = self.similar(name)
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise UnknownNameError(f"there is no {self._what} {name!r}{hint}")

    def similar(self, name: str) -> list[str]:
        """Return up to three names that look like this one."""
        if len(name) > _LONGEST_COMPARED or not self._names:
            return []
        shared = (self.letters @ _LETTERS.transform([name]).T).toarray().ravel()
        nearest = np.argsort(-shared, kind="stable")[:_COMPARED]
        return get_close_matches(name, [self._names[int(k)] for k in nearest if shared[k] > 0], n=3)

    def search(self, text: str, most: int) -> list[str]:
        """Return names that hold a text, in small or capital letters; those it begins first."""
        joined, ends = self.joined
        text = " ".join(text.casefold().split())
        found = dict.fromkeys([self._numbers[text]] if text in self._numbers else [])
        for wanted in (f"\n{text}", text):
            at = joined.find(wanted)
            while at >= 0 and len(found) < most:
                number = int(np.searchsorted(ends, at, side="right"))
                found[number] = None
                at = joined.find(wanted, ends[number])
        return [self._names[number] for number in found]

    @cached_property
    def joined(self) -> tuple[str, np.ndarray]:
        """All names in small letters, each after a line break, and where they end."""
        lines = ["\n" + " ".join(name.casefold().split()) for name in self._names]
        return "".join(lines), np.cumsum([len(line) for line in lines])

    @cached_property
    def letters(self) -> Any:
        """Groups of three letters of every name, as unit vectors; made once, when first needed."""
        return _LETTERS.transform([name[:_LONGEST_COMPARED] for name in self._names])


_LETTERS = HashingVectorizer(analyzer="char_wb", ngram_range=(1, 3), n_features=2**16)
