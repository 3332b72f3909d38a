"""Other readings of the paper, random starts and the sweep of sigma, for ``reproduction.md``."""

from collections.abc import Iterable, Sequence
from functools import cache

import reproduction
from reproduction import number, verdict
from stored import load, source, table

from benchmarks.readings import D3_EQUAL, RANDOM_STARTS, VARIANTS, sigma_of
from ccot.experiments.protocol import (
    DATA_SETS,
    METHODS,
    OVERLAPS,
    RIVALS,
    Protocol,
    Trial,
    base_of,
)
from ccot.experiments.published import FIGURE2C, TABLE2
from ccot.experiments.summary import Cell, summarise
from ccot.experiments.table2 import SETTINGS

SETS = ("D1", "D2", "D3", D3_EQUAL, "D4")


@cache
def usual_tasks() -> frozenset:
    """Every task of the protocol that may be shown: with the usual starts and draws."""
    methods = (*METHODS, *VARIANTS, *RANDOM_STARTS)
    return frozenset(Protocol(100, methods=methods, data_sets=SETS).tasks())


def cells_of(methods: Sequence[str], sets: Sequence[str] = SETS) -> dict[tuple, Cell]:
    """Return the cells of methods by overlap, set and method; nothing if a method has no trial."""
    tasks = usual_tasks()
    kept = [
        trial
        for trial in reproduction.stored()
        if trial.method in methods and trial.data_set in sets and trial.task in tasks
    ]
    return {(cell.overlap, cell.data_set, cell.method): cell for cell in summarise(kept)}


def need(found: dict, part: str) -> dict:
    if not found:
        raise FileNotFoundError(2, f"no trials of {part}", "paper.py")
    return found


def in_cell(cell: Cell | None) -> str:
    if cell is None:
        return ""
    shares = (f"{100 * n / cell.n_trials:.0f}" for n in (cell.rows_right, cell.columns_right))
    return f"{number(cell.every.mean)} ({' / '.join(shares)})"


def printed(method: str, name: str) -> str:
    entry, counts = TABLE2[method][name.split()[0]], FIGURE2C[method][name.split()[0]]
    return f"{number(entry.mean)} ({counts[0]} / {counts[1]})"


def stopped(cells: Iterable[Cell]) -> str:
    """Say which trials of these cells ended at their iteration limit."""
    ended = [
        f"{cell.method} on {cell.data_set} ({cell.overlap}) {cell.n_trials - cell.converged}"
        for cell in cells
        if cell.converged < cell.n_trials
    ]
    return f"Trials that stopped at their iteration limit: {', '.join(ended) or 'none'}."


def matrices(cells: Iterable[Cell]) -> str:
    """Say how many matrices means are over, and which methods have fewer."""
    counts: dict[str, int] = {}
    for cell in cells:
        counts[cell.method] = min(cell.n_trials, counts.get(cell.method, cell.n_trials))
    most = max(counts.values())
    few = ", ".join(f"{method} {count}" for method, count in counts.items() if count < most)
    return f"{most} matrices{f' (fewer of {few})' * bool(few)}"


def readings(overlap: str) -> str:
    """The table of all readings of CCOT and CCOT-GW at one overlap."""
    need(cells_of(tuple(VARIANTS)), "variants")
    steps = [m for m in (*METHODS, *VARIANTS) if base_of(m) in reproduction.STEPS]
    found = cells_of(steps)
    rows = []
    for base in reproduction.STEPS:
        rows.append([f"{base}, paper", *(printed(base, name) for name in SETS)])
        for method in (m for m in steps if base_of(m) == base):
            seen = [in_cell(found.get((overlap, name, method))) for name in SETS]
            if any(seen):
                rows.append([method, *seen])
    trials = sorted({cell.n_trials for cell in found.values()})
    note = (
        f"Mean co-clustering error over all sets, and in brackets how often the number of row / "
        f"column clusters was right, in per cent; {overlap} noise, "
        f"{' to '.join(map(str, (trials[0], trials[-1])[: 1 + (len(trials) > 1)]))} matrices. "
        f"{SETTINGS} Votes are matched unless it is said. "
        + stopped(cell for cell in found.values() if cell.overlap == overlap)
    )
    return table(["reading", *SETS], rows) + f"\n\n{note}"


def variants() -> str:
    return readings("published")


def variants_calibrated() -> str:
    return readings("calibrated")


def equal() -> str:
    found = need(cells_of(METHODS, (D3_EQUAL,)), "D3 with equal proportions")
    rows = []
    for method in METHODS:
        paper = TABLE2.get(method, {}).get("D3")
        unequal = cells_of((method,), ("D3",))
        rows.append(
            [
                method,
                "" if method not in TABLE2 else number(paper and paper.mean),
                *(
                    in_cell(cells.get((overlap, name, method)))
                    for overlap in OVERLAPS
                    for name, cells in (("D3", unequal), (D3_EQUAL, found))
                ),
            ]
        )
    heads = ["method", "paper"]
    heads += [f"{kind}, {overlap}" for overlap in OVERLAPS for kind in ("unequal", "equal")]
    return table(heads, rows) + f"\n\n{SETTINGS}\n\n{stopped(found.values())}"


# Random starts --------------------------------------------------------------------------------


def near(cell: Cell | None, method: str) -> bool:
    paper = TABLE2[method][cell.data_set] if cell else None
    return bool(paper) and abs(cell.every.mean - paper.mean) <= paper.sd


def starts() -> str:
    random = need(cells_of(tuple(RANDOM_STARTS)), "random starts")
    usual = cells_of(tuple(RIVALS))
    rows, hits, compared = [], {"usual": 0, "random": 0}, 0
    for method in dict.fromkeys(base_of(m) for m in RANDOM_STARTS):
        paper = [TABLE2[method][name] for name in DATA_SETS]
        rows.append([f"{method}, paper", *(number(entry and entry.mean) for entry in paper)])
        for kind, cells, name in (
            ("usual", usual, method),
            ("random", random, f"{method}, random starts"),
        ):
            for overlap in OVERLAPS:
                seen = [cells.get((overlap, data_set, name)) for data_set in DATA_SETS]
                shown = [number(cell.every.mean) if cell else "" for cell in seen]
                rows.append([f"{method}, {kind} starts, {overlap}", *shown])
                if overlap == "published":
                    hits[kind] += sum(near(cell, method) for cell in seen)
        compared += sum(entry is not None for entry in paper)
    note = (
        f"Mean co-clustering error over {matrices([*usual.values(), *random.values()])} of each "
        f"set. Within the paper's mean ± sd at the published "
        f"noise: {hits['usual']} of {compared} with the usual starts, {hits['random']} with random "
        f"partitions; that random starts explain the paper's errors of the rivals "
        f"{verdict(hits['random'] > 0.8 * compared, hits['random'] > hits['usual'])}. "
        f"{stopped(random.values())}"
    )
    return table(["method, starts, overlap", *DATA_SETS], rows) + f"\n\n{note}"


# The sweep of sigma ---------------------------------------------------------------------------


def sweep_trials() -> list[Trial]:
    found = [trial for trial in reproduction.stored() if sigma_of(trial.overlap) is not None]
    if not found:
        raise FileNotFoundError(2, "no sweep", "paper.py")
    return found


def sweep() -> str:
    cells = summarise(sweep_trials())
    parts = []
    for name in DATA_SETS:
        here = {(sigma_of(c.overlap), c.method): c for c in cells if c.data_set == name}
        sigmas = sorted({sigma for sigma, _ in here})
        rows = [
            [
                method,
                *(
                    number(cell.every.mean) if (cell := here.get((sigma, method))) else ""
                    for sigma in sigmas
                ),
            ]
            for method in METHODS
        ]
        parts.append(table([f"{name}, sigma", *(f"{sigma:.3g}" for sigma in sigmas)], rows))
    note = f"Mean co-clustering error over {matrices(cells)} at each level."
    return "\n\n".join([*parts, f"{note} {SETTINGS} {stopped(cells)}"])


def reached() -> str:
    result = load("calibrate")
    rows = []
    for method in RIVALS:
        seen = [cell["reaches"].get(method, 0) for cell in result["cells"]]
        rows.append([method, *("never" if s is None else f"{s:.3g}" if s else "–" for s in seen)])
    for head, key in (("calibrated by the script", "sigma"), ("used here", "used")):
        rows.append([head, *(f"{cell[key]:.3g}" for cell in result["cells"])])
    rows.append(["median ratio there", *(f"{c['median_ratio']:.1f}" for c in result["cells"])])
    note = (
        "The smallest sigma of the sweep at which each rival has the mean error that the paper "
        "prints; the sigma at which the median over the rivals of the ratio of our error to the "
        "paper's, or of its reciprocal, is closest to one, and that ratio."
    )
    return table(["", *(cell["set"] for cell in result["cells"])], rows) + source(
        "calibrate", result, note
    )


TABLES = {
    f"reproduction_{made.__name__}": made
    for made in (variants, variants_calibrated, equal, starts, sweep, reached)
}
