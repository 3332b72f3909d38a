"""The paper's own numbers, as printed there: tables 1 and 2, figure 2c, and titles of movies."""

import tomllib

from sklearn.utils import Bunch

from ccot.experiments.summary import Score
from ccot.experiments.tables import read_asset


def _read(entry: str) -> Score | None:
    """Return an entry of table 2, which is over 100 sets."""
    if entry == "-":
        return None
    mean, sd = entry.lstrip("*").split("±")
    return Score(100, float(mean), float(sd), bold=entry.startswith("*"))


_PRINTED = tomllib.loads(read_asset("published.toml"))
SOURCE, PAPER_TITLES = _PRINTED["source"], _PRINTED["titles"]
TABLE1 = {name: Bunch(**described) for name, described in _PRINTED["table1"].items()}
TABLE2: dict[str, dict[str, Score | None]] = {
    method: dict(zip(TABLE1, map(_read, entries.split()), strict=True))
    for method, entries in _PRINTED["table2"].items()
}
FIGURE2C: dict[str, dict[str, tuple[int, int]]] = _PRINTED["figure2c"]
