"""The paper's own numbers, as printed there: tables 1 and 2, figure 2c, and titles of movies."""

import tomllib
from dataclasses import dataclass

from sklearn.utils import Bunch

from ccot.experiments.tables import read_asset


@dataclass(frozen=True)
class PaperError:
    """An entry of table 2: mean and standard deviation over 100 sets, and whether it is bold."""

    mean: float
    sd: float
    bold: bool = False


def _read(entry: str) -> PaperError | None:
    if entry == "-":
        return None
    mean, sd = entry.lstrip("*").split("±")
    return PaperError(float(mean), float(sd), bold=entry.startswith("*"))


_PRINTED = tomllib.loads(read_asset("published.toml"))
SOURCE, PAPER_TITLES = _PRINTED["source"], _PRINTED["titles"]
TABLE1 = {name: Bunch(**described) for name, described in _PRINTED["table1"].items()}
TABLE2: dict[str, dict[str, PaperError | None]] = {
    method: dict(zip(TABLE1, map(_read, entries.split()), strict=True))
    for method, entries in _PRINTED["table2"].items()
}
FIGURE2C: dict[str, dict[str, tuple[int, int]]] = _PRINTED["figure2c"]
