"""Fill the tables and draw the figure of the paper from stored results: ``python paper/build.py``.

``--check`` writes nothing and fails where the text is not what the results say.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

PAPER = Path(__file__).parent
RESULTS = PAPER.parent / "benchmarks" / "results"
SLOT = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end: \2 -->)", re.DOTALL)
METHODS = {
    "found": "`TransportCoclustering`, numbers found",
    "k_means": "K-means",
    "spectral_biclustering": "SpectralBiclustering",
    "latent_block_model": "Gaussian latent block model",
}
REAL = {
    "found": "`TransportCoclustering`, found",
    "given": "`TransportCoclustering`, given",
    "k_means": "K-means, given",
    "spectral_coclustering": "SpectralCoclustering, given",
}
KINDS = {"text": "text", "gene": "expression"}


def load(name: str) -> dict:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def speed() -> str:
    one, log, barycentre = (cell["times_faster"] for cell in load("speed")["comparisons"])
    return (
        f"A draw of CCOT on 600 x 300 values takes {one:.1f} times less time than POT's plain\n"
        f"iterations, {log:.0f} times less than its log-domain ones, and the barycentre of\n"
        f"CCOT-GW {barycentre:.1f} times less, on two cores, medians of {repeats()} runs in turns."
    )


def repeats() -> int:
    return len(load("speed")["comparisons"][0]["ratios"])


def calibrated(factor: float) -> list[dict]:
    cells = [c for c in load("robust")["cells"] if c["overlap"] == "calibrated"]
    return sorted((c for c in cells if c["factor"] == factor), key=lambda c: c["set"])


def simulated() -> str:
    cells = calibrated(1.0)
    rows = [[name, *(f"{cell[key]:.3f}" for cell in cells)] for key, name in METHODS.items()]
    right = [f"{cell['numbers_right']} of {cell['seeds']}" for cell in cells]
    return table(["", *(c["set"] for c in cells)], [*rows, ["both numbers right", *right]])


def real() -> str:
    cells = {(c["kind"], c["method"]): c for c in load("real")["cells"]}
    heads = [f"{name}, {cells[kind, 'found']['sets']} sets" for kind, name in KINDS.items()]
    rows = [[name, *(f"{cells[kind, key]['nmi']:.3f}" for kind in KINDS)]
            for key, name in REAL.items()]  # fmt: skip
    return table(["normalised mutual information", *heads], rows)


TABLES: dict[str, Callable[[], str]] = {"speed": speed, "simulated": simulated, "real": real}


def render(page: str) -> str:
    return SLOT.sub(lambda slot: f"{slot[1]}\n{TABLES[slot[2]]()}\n\n{slot[3]}", page)


def draw(path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    factors = sorted({c["factor"] for c in load("robust")["cells"] if c["overlap"] == "calibrated"})
    figure, axes = plt.subplots(1, 4, figsize=(10, 2.7), sharey=True, layout="constrained")
    for number, ax in enumerate(axes):
        cells = [calibrated(factor)[number] for factor in factors]
        for key, name in METHODS.items():
            ax.plot(factors, [c[key] for c in cells], marker="o", ms=3, label=name.replace("`", ""))
        ax.set(title=cells[0]["set"], xlabel="noise")
    axes[0].set_ylabel("co-clustering error")
    figure.legend(*axes[0].get_legend_handles_labels(), ncols=4, loc="outside lower center")
    figure.savefig(path, dpi=150, metadata={"Software": None})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    path = PAPER / "paper.md"
    page = path.read_text(encoding="utf-8")
    fresh = render(page)
    if not check:
        path.write_text(fresh, encoding="utf-8")
        draw(PAPER / "noise.png")
    return int(check and fresh != page)


if __name__ == "__main__":
    sys.exit(main())
