"""The paper's own numbers, as printed there.

All of them are from C. Laclau, I. Redko, B. Matei, Y. Bennani and V. Brault, "Co-clustering through
optimal transport", ICML 2017: tables 1 and 2, and figure 3c.
"""

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

# None is the paper's "-": the method cannot find a partition with the requested numbers.
TABLE2: dict[str, dict[str, PaperError | None]] = {
    "K-means": {
        "D1": PaperError(0.018, 0.003, bold=True),
        "D2": PaperError(0.072, 0.044),
        "D3": None,
        "D4": PaperError(0.126, 0.038),
    },
    "NMF": {
        "D1": PaperError(0.042, 0.037),
        "D2": PaperError(0.083, 0.063),
        "D3": None,
        "D4": None,
    },
    "DKM": {
        "D1": PaperError(0.025, 0.048),
        "D2": PaperError(0.038, 0.000),
        "D3": PaperError(0.310, 0.000),
        "D4": PaperError(0.145, 0.082),
    },
    "Tri-NMF": {
        "D1": PaperError(0.082, 0.063),
        "D2": PaperError(0.052, 0.065),
        "D3": None,
        "D4": None,
    },
    "GLBM": {
        "D1": PaperError(0.021, 0.011),
        "D2": PaperError(0.032, 0.041),
        "D3": PaperError(0.262, 0.022),
        "D4": PaperError(0.115, 0.047),
    },
    "ITCC": {
        "D1": PaperError(0.021, 0.001),
        "D2": PaperError(0.047, 0.042),
        "D3": PaperError(0.241, 0.031),
        "D4": PaperError(0.121, 0.075),
    },
    "RBC": {
        "D1": PaperError(0.017, 0.045),
        "D2": PaperError(0.039, 0.052),
        "D3": None,
        "D4": PaperError(0.102, 0.071),
    },
    "CCOT": {
        "D1": PaperError(0.018, 0.013),
        "D2": PaperError(0.023, 0.036),
        "D3": PaperError(0.031, 0.027),
        "D4": PaperError(0.093, 0.032),
    },
    "CCOT-GW": {
        "D1": PaperError(0.004, 0.002, bold=True),
        "D2": PaperError(0.011, 0.056, bold=True),
        "D3": PaperError(0.008, 0.001, bold=True),
        "D4": PaperError(0.079, 0.031, bold=True),
    },
}

# Times out of 100 that the number of row and of column clusters was found.
FIGURE3 = {
    "CCOT": {"D1": (100, 100), "D2": (83, 97), "D3": (99, 98), "D4": (73, 86)},
    "CCOT-GW": {"D1": (98, 100), "D2": (81, 72), "D3": (93, 97), "D4": (70, 87)},
}
