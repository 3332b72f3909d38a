"""The paper's own numbers, as printed there: tables 1 and 2, and figure 2c."""

from __future__ import annotations

from dataclasses import dataclass

SOURCE = (
    'Laclau, Redko, Matei, Bennani and Brault, "Co-clustering through optimal transport", ICML 2017'
)


@dataclass(frozen=True)
class PaperSet:
    """A line of table 1."""

    size: tuple[int, int]
    blocks: tuple[int, int]
    overlapping: str
    proportions: str


@dataclass(frozen=True)
class PaperError:
    """An entry of table 2: mean and standard deviation over 100 sets, and whether it is bold."""

    mean: float
    sd: float
    bold: bool = False


TABLE1 = {
    "D1": PaperSet((600, 300), (3, 3), "[+]", "equal"),
    "D2": PaperSet((600, 300), (3, 3), "[+]", "unequal"),
    "D3": PaperSet((300, 200), (2, 4), "[++]", "equal"),
    "D4": PaperSet((300, 300), (5, 4), "[++]", "unequal"),
}

# Mean and standard deviation; * is bold, - the paper's own: no partition with these numbers.
_PRINTED = """
         D1           D2          D3          D4
K-means  *.018±.003  .072±.044   -           .126±.038
NMF      .042±.037   .083±.063   -           -
DKM      .025±.048   .038±.000   .310±.000   .145±.082
Tri-NMF  .082±.063   .052±.065   -           -
GLBM     .021±.011   .032±.041   .262±.022   .115±.047
ITCC     .021±.001   .047±.042   .241±.031   .121±.075
RBC      .017±.045   .039±.052   -           .102±.071
CCOT     .018±.013   .023±.036   .031±.027   .093±.032
CCOT-GW  *.004±.002  *.011±.056  *.008±.001  *.079±.031
"""


def _read(entry: str) -> PaperError | None:
    if entry == "-":
        return None
    mean, sd = entry.lstrip("*").split("±")
    return PaperError(float(mean), float(sd), bold=entry.startswith("*"))


TABLE2: dict[str, dict[str, PaperError | None]] = {
    method: dict(zip(TABLE1, map(_read, entries), strict=True))
    for method, *entries in map(str.split, _PRINTED.strip().splitlines()[1:])
}

# Times out of 100 that the number of row and of column clusters was found.
FIGURE2C = {
    "CCOT": {"D1": (100, 100), "D2": (83, 97), "D3": (99, 98), "D4": (73, 86)},
    "CCOT-GW": {"D1": (98, 100), "D2": (81, 72), "D3": (93, 97), "D4": (70, 87)},
}
