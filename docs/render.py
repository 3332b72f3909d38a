"""Fill the tables of the docs from stored results: ``python docs/render.py [--check]``.

A page holds a pair of comments, ``<!-- table: NAME -->`` and ``<!-- end: NAME -->``; what stands
between them is written here from ``benchmarks/results``, and by nobody else.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

from ccot.jumps import LEVEL

DOCS = Path(__file__).parent
RESULTS = DOCS.parent / "benchmarks" / "results"
SLOT = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end: \2 -->)", re.DOTALL)

# Laclau et al. (2017): table 2 (co-clustering error) and figure 2c (numbers right in 100 trials).
PAPER = {
    "CCOT": {"D1": "100 / 100, .018", "D2": "83 / 97, .023", "D3": "99 / 98, .031",
             "D4": "73 / 86, .093"},
    "CCOTGW": {"D1": "98 / 100, .004", "D2": "81 / 72, .011", "D3": "93 / 97, .008",
               "D4": "70 / 87, .079"},
}  # fmt: skip


def load(name: str) -> dict:
    return json.loads((RESULTS / f"{name}.json").read_text())


def table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def source(name: str, result: dict, note: str) -> str:
    facts = result["facts"]
    stored = f"benchmarks/results/{name}.json"
    return f"\n\n{note} Stored in `{stored}` by `{facts['command']}`, {facts['date']}."


def share(part: float) -> str:
    return f"{100 * part:.2f} %" if part < 0.1 else f"{100 * part:.0f} %"


def unique(cells: list[dict], key: str) -> list:
    return list(dict.fromkeys(cell[key] for cell in cells))


def cell_of(cells: list[dict], **where) -> dict:
    return next(cell for cell in cells if all(cell[key] == where[key] for key in where))


def detector() -> str:
    result = load("detector")
    cells, sizes = result["cells"], unique(result["cells"], "values")
    rows = []
    for method, name in (("multiscale", "multiscale"), ("authors", "authors' code")):
        for law in unique(cells, "law"):
            seen = [cell_of(cells, method=method, law=law, values=size) for size in sizes]
            shares = [share(cell["false_alarms"] / cell["samples"]) for cell in seen]
            rows.append([f"{name}: {law}", *shares])
    note = (
        f"Share of {cells[0]['samples']} sorted samples of each size with at least one jump; "
        f"`level={result['level']:g}`."
    )
    return table(["values in the sample", *map(str, sizes)], rows) + source(
        "detector", result, note
    )


def reach() -> str:
    """How high a jump must be, in spans of the smaller step, to be significant."""
    rows = []
    for n_values in (50, 100, 300, 1000):
        tests = 2 * (n_values - 1) * max(1, n_values.bit_length() - 2)
        heights = [(tests / LEVEL) ** (1 / (size - 1)) - 1 for size in (2, 3, 5, 10, 20)]
        rows.append([str(n_values), *(f"{height:.2g}" if height < 99 else f"{height:.0f}"
                                      for height in heights)])  # fmt: skip
    return table(["values", *(f"{size} members" for size in (2, 3, 5, 10, 20))], rows)


def nostructure() -> str:
    result = load("nostructure")
    cells = result["cells"]
    kinds = unique(cells, "kind")
    rows = []
    for method in unique(cells, "method"):
        seen = [cell_of(cells, method=method, kind=kind) for kind in kinds]
        rows.append([method, *(f"{cell['one_by_one']} of {cell['matrices']}" for cell in seen)])
    note = "Matrices without blocks for which one row and one column cluster were reported."
    return table(["", *kinds], rows) + source("nostructure", result, note)


def quality() -> str:
    result = load("quality")
    cells = result["cells"]
    methods = [
        name for name in ("CCOT", 'CCOT reg="cv"', "CCOTGW") if name in unique(cells, "method")
    ]
    rows = []
    for name in ("D1", "D2", "D3", "D4"):
        for method in methods:
            cell = cell_of(cells, method=method, set=name)
            numbers = (
                f"{share_of(cell, 'row_number_right')} / {share_of(cell, 'column_number_right')}"
            )
            error = cell["error_where_right"]
            rows.append(
                [
                    f"{name}, {method}",
                    str(cell["seeds"]),
                    numbers,
                    "" if error is None else f"{error:.4f}",
                    PAPER[method.split()[0]][name],
                ]
            )
    note = (
        "Numbers of row / column clusters right, in per cent of the matrices, and the mean "
        "co-clustering error where both are right, as the paper counts it. Noise is that of the "
        "published parameters; see the limits below."
    )
    heads = ["set, method", "matrices", "numbers right (%)", "error", "paper"]
    return table(heads, rows) + source("quality", result, note)


def share_of(cell: dict, what: str) -> str:
    return f"{100 * cell[what] / cell['seeds']:.0f}"


def noise() -> str:
    result = load("limits")
    cells = result["noise"]
    sigmas = unique(cells, "sigma")
    rows = []
    for name in unique(cells, "set"):
        for method in unique(cells, "method"):
            seen = [cell_of(cells, set=name, method=method, sigma=sigma) for sigma in sigmas]
            rows.append([f"{name}, {method}", *(f"{cell['mean_error']:.2f}" for cell in seen)])
    note = f"Mean co-clustering error over {cells[0]['seeds']} matrices at each noise."
    heads = ["sigma", *(f"{sigma:g}" for sigma in sigmas)]
    return table(heads, rows) + source("limits", result, note)


def diagonal() -> str:
    result = load("limits")
    cells = result["diagonal"]
    kinds = unique(cells, "blocks")
    rows = []
    for method in unique(cells, "method"):
        seen = [cell_of(cells, method=method, blocks=kind) for kind in kinds]
        rows.append([method, *(f"{c['both_numbers_right']} of {c['seeds']}" for c in seen)])
    note = "Block-diagonal matrices, sigma = 0.01: both numbers right."
    return table(["blocks", *kinds], rows) + source("limits", result, note)


def degree() -> str:
    result = load("degree")
    cells = result["cells"]
    settings = list(dict.fromkeys((c["loss"], c["reg"], c["exact_refinement"]) for c in cells))
    rows = []
    for loss, reg, refined in settings:
        where = {"loss": loss, "reg": reg, "exact_refinement": refined}
        seen = [cell_of(cells, set=name, **where) for name in ("D1", "D2", "D3", "D4")]
        name = f"{loss}, reg {reg:g}, {'with' if refined else 'without'} refinement"
        rows.append([name, *(f"{cell['weakest']:+.6f}" for cell in seen)])
    note = (
        f"Correlation of log scalings and mean similarities, the weakest of rows and columns of "
        f"{result['seeds']} matrices."
    )
    return table(["loss", "D1", "D2", "D3", "D4"], rows) + source("degree", result, note)


def movielens() -> str:
    result = load("movielens")
    rows = [
        [
            f"{cell['method']}, {cell['detector']}",
            f"{cell['row_clusters']} x {cell['column_clusters']}",
        ]
        for cell in result["cells"]
    ]
    return table(["method, detector", "users x movies"], rows) + source(
        "movielens", result, "MovieLens-100K."
    )


def speed() -> str:
    result = load("speed")
    rows = [
        [
            cell["comparison"],
            f"{cell['times_faster']:.1f}",
            f"{cell['seconds_ours']:.3g}",
            cell["unit"],
        ]
        for cell in result["comparisons"]
    ]
    note = (
        f"Time of POT over ours, and ours in seconds, on {result['facts']['processor']}, "
        f"{result['facts']['cores']} cores; peak memory of {result['draws']} draws "
        f"{result['peak_megabytes']:.0f} MB."
    )
    return table(["against", "times faster", "seconds", "of"], rows) + source("speed", result, note)


TABLES: dict[str, Callable[[], str]] = {
    made.__name__: made
    for made in (detector, reach, nostructure, quality, noise, diagonal, degree, movielens, speed)
}


def render(page: str) -> str:
    return SLOT.sub(lambda slot: f"{slot[1]}\n{TABLES[slot[2]]()}\n\n{slot[3]}", page)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, fail on differences")
    check = parser.parse_args().check
    stale = []
    for path in sorted(DOCS.glob("*.md")):
        page = path.read_text()
        fresh = render(page)
        if fresh != page:
            stale.append(path.name)
            if not check:
                path.write_text(fresh)
    if stale:
        print(f"{'out of date' if check else 'rewritten'}: {', '.join(stale)}")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
