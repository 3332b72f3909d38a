"""Small real matrices that ship with the package, with names that people know."""

import csv
from importlib import resources

import numpy as np
from sklearn.utils import Bunch


def load_zoo() -> Bunch:
    """Return 101 animals and 16 of their traits (UCI Zoo, CC BY 4.0).

    Returns
    -------
    Bunch
        ``data`` of shape (101, 16): ones and zeros, and the number of legs; ``row_names``,
        ``column_names``, and ``annotations`` with the ``class`` of every animal.

    Examples
    --------
    >>> from ccot.datasets import load_zoo
    >>> zoo = load_zoo()
    >>> zoo.row_names[0], zoo.annotations["class"][0], zoo.data.shape
    ('aardvark', 'mammal', (101, 16))
    """
    return _load("zoo", ("class",))


def load_votes() -> Bunch:
    """Return 16 votes of the US House of Representatives in 1984 (UCI, CC BY 4.0).

    Returns
    -------
    Bunch
        ``data`` of shape (435, 16): 1 for yes, 0 for no, NaN for neither; ``row_names``,
        ``column_names``, and ``annotations`` with the ``party`` of every member.
    """
    return _load("votes", ("party",))


def load_penguins() -> Bunch:
    """Return measurements of 344 penguins of three species (Palmer Archipelago, CC0).

    Returns
    -------
    Bunch
        ``data`` of shape (344, 4): length and depth of the bill and length of the flipper in
        millimetres, mass in grams; NaN is missing; ``row_names``, ``column_names``, and
        ``annotations`` with ``species``, ``island``, ``sex`` and ``year``.
    """
    return _load("penguins", ("species", "island", "sex", "year"))


def load_southern_women() -> Bunch:
    """Return which of 14 social events 18 women of Natchez attended (Davis and others, 1941).

    Returns
    -------
    Bunch
        ``data`` (18, 14), ones and zeros; ``row_names``, ``column_names``, empty ``annotations``.
    """
    return _load("southern_women", ())


def load_titles() -> Bunch:
    """Return which of 65 words are in 150 titles of papers about clustering and related fields.

    Returns
    -------
    Bunch
        ``data`` (150, 65), ones and zeros; ``row_names`` (title, authors, year), ``column_names``
        (words in at least three titles), and ``annotations`` with the ``field``.
    """
    return _load("titles", ("field",))


def _load(name: str, known: tuple[str, ...]) -> Bunch:
    """Return a file of the package: names first, then numbers, then what is known besides."""
    file = resources.files("ccot.datasets") / "data" / f"{name}.csv"
    head, *lines = csv.reader(file.read_text(encoding="utf-8").splitlines())
    end = len(head) - len(known)
    numbers = [[float(value) if value else np.nan for value in line[1:end]] for line in lines]
    return Bunch(
        data=np.array(numbers),
        row_names=[line[0] for line in lines],
        column_names=head[1:end],
        annotations={known[i]: [x[end + i] or None for x in lines] for i in range(len(known))},
    )
