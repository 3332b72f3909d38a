"""The parts of ``reproduction.md`` that are measured: every figure of that page is made here."""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import product
from pathlib import Path

from stored import load, source

from benchmarks.readings import sigma_of
from ccot.experiments.protocol import DATA_SETS, METHODS, OVERLAPS, RIVALS, Protocol, Trial
from ccot.experiments.published import TABLE2
from ccot.experiments.sections import make_table1
from ccot.experiments.store import TRIALS, load_trials
from ccot.experiments.summary import Cell, summarise
from ccot.experiments.table2 import (
    make_counts,
    make_table2,
    make_table_of_p_values,
    make_table_of_right_numbers,
    make_table_of_seconds,
)
from ccot.experiments.tables import Table

RESULTS = Path(__file__).parent.parent / "benchmarks" / "results"
STORED = RESULTS / "paper"
STEPS = ("CCOT", "CCOT-GW")
COMPARED = frozenset(product(OVERLAPS, DATA_SETS, METHODS))
# Trials were made in a working copy whose commit was not kept.
LOST = frozenset({"2c4bce0a"})


# What is stored -------------------------------------------------------------------------------


@cache
def loaded(folder: Path, changed: int) -> list[Trial]:
    return load_trials(folder)


def version() -> tuple[Path, int]:
    """Return what the stored trials are known by: their folder, and when they were changed."""
    file = STORED / TRIALS
    if not file.exists():
        raise FileNotFoundError(2, "no trials", str(STORED))
    return STORED, file.stat().st_mtime_ns


def stored() -> list[Trial]:
    return loaded(*version())


def full_seeds(trials: Sequence[Trial], n_init: int) -> int:
    """Return how many seeds, from 0 on, have every set, overlap and method at this many starts."""
    done = {trial.task for trial in trials}
    most = 1 + max(trial.seed for trial in trials)
    missing = (task.seed for task in Protocol(most, n_init=n_init).tasks() if task not in done)
    return next(missing, most)


@cache
def largest(folder: Path, changed: int) -> tuple[Protocol, list[Trial]]:
    trials = [t for t in loaded(folder, changed) if (t.overlap, t.data_set, t.method) in COMPARED]
    if not trials:
        raise FileNotFoundError(2, "no trials", str(folder))
    starts = {trial.n_init for trial in trials if trial.n_init is not None}
    n_trials, n_init = max((full_seeds(trials, number), number) for number in starts)
    if n_trials == 0:
        raise FileNotFoundError(2, "no seed has all methods", str(folder))
    protocol = Protocol(n_trials=n_trials, n_init=n_init)
    by_task = {trial.task: trial for trial in trials}
    return protocol, [by_task[task] for task in protocol.tasks()]


def chosen() -> tuple[Protocol, list[Trial]]:
    """Return the largest complete comparison, with the most starts there are for it."""
    return largest(*version())


_SUMMARISED: list[tuple[list[Trial], list[Cell]]] = []


def cells() -> dict[tuple[str, str, str], Cell]:
    trials = chosen()[1]
    if not _SUMMARISED or _SUMMARISED[0][0] is not trials:
        _SUMMARISED[:] = [(trials, summarise(trials))]
    return {(c.overlap, c.data_set, c.method): c for c in _SUMMARISED[0][1]}


def shown(table: Table) -> str:
    """A table without its caption, which the page gives in words."""
    return table.markdown().split("\n\n", 1)[1]


# In words -------------------------------------------------------------------------------------


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}".removeprefix("0")


def of_sets(show: Callable[[str], str]) -> str:
    return ", ".join(f"{name} {show(name)}" for name in DATA_SETS)


def settings() -> str:
    protocol, trials = chosen()
    versions = "; ".join(dict.fromkeys(trial.versions for trial in trials))
    processors = "; ".join(dict.fromkeys(trial.processor for trial in trials))
    known = sorted({trial.commit for trial in trials if trial.commit})
    unknown = [trial.method for trial in trials if not trial.commit]
    of_these = ", ".join(m for m in METHODS if m in unknown)
    unsaid = [f"not recorded for {len(unknown)} trials of {of_these}"] * bool(unknown)
    commits = ", ".join([*known, *unsaid])
    others = sorted({t.commit for t in stored() if t.commit} - LOST - {*known})
    told = ", ".join(others) or "none"
    hours = sum(trial.seconds for trial in trials) / 3600
    return (
        f"{len(trials)} trials: {protocol.n_trials} matrices of each of {len(DATA_SETS)} sets at "
        f"{len(OVERLAPS)} overlaps, {len(METHODS)} methods; {protocol.n_init} starts of each "
        f"rival, {protocol.n_samplings} draws of CCOT. {hours:.1f} hours of processor time on "
        f"{processors}. Versions: {versions}. Commits: {commits}; of other parts of this page also "
        f"{told}.{lost_trials()} Stored in `benchmarks/results/paper`."
    )


def lost_trials() -> str:
    """Say which trials were made at a commit that nobody can look at."""
    lost = [trial for trial in stored() if trial.commit in LOST]
    swept = sum(sigma_of(trial.overlap) is not None for trial in lost)
    if not lost:
        return ""
    return (
        f" {len(lost)} trials, {len(lost) - swept} of other readings of the paper and {swept} of "
        f"the sweep of noises, were made at {', '.join(sorted(LOST))}, a commit that is not in "
        "this repository; some of them were made again, see below."
    )


def counted(cells: list[dict]) -> tuple[int, int]:
    """Return how many trials came out again, and how many were rerun."""
    return sum(cell["same"] for cell in cells), sum(cell["rerun"] for cell in cells)


def rerun() -> str:
    """Say how many stored trials came out again, and of which methods some did not."""
    result = load("rerun")
    cells = result["cells"]
    same, total = counted(cells)
    methods = dict.fromkeys(cell["method"] for cell in cells)
    of_method = {m: counted([cell for cell in cells if cell["method"] == m]) for m in methods}
    changed = {m: f"{done} of {n}" for m, (done, n) in of_method.items() if done < n}
    lost = counted([cell for cell in cells if cell.get("commit") in LOST])
    of_lost = (
        f" Of the {lost[1]} that were first made at a commit that is not in this repository, "
        f"{lost[0]} did."
    )
    told = (
        f" Not all did of {', '.join(f'{name} ({count})' for name, count in changed.items())}: "
        f"what this page says of {', '.join(changed)} was measured with earlier code."
    )
    note = (
        f"{same} of {total} stored trials, chosen at random among {len(methods)} methods and "
        "their variants, came out with the same bytes when they were run again."
        f"{of_lost * bool(lost[1])}{told * bool(changed)}"
    )
    return source("rerun", result, note).strip()


def table1() -> str:
    return shown(make_table1())


def table2() -> str:
    return shown(make_table2(list(cells().values())))


def p_values() -> str:
    return shown(make_table_of_p_values(list(cells().values())))


def right_numbers() -> str:
    return shown(make_table_of_right_numbers(list(cells().values())))


def counts() -> str:
    return shown(make_counts(list(cells().values())))


def processors() -> dict[str, list[str]]:
    """Return the methods of the comparison that were timed on each processor."""
    used = {(trial.processor, trial.method) for trial in chosen()[1]}
    return {p: [m for m in METHODS if (p, m) in used] for p in sorted({p for p, _ in used})}


def seconds() -> str:
    where = "; ".join(
        f"{processor}: {', '.join(names)}" for processor, names in processors().items()
    )
    return shown(make_table_of_seconds(list(cells().values()))) + f"\n\nTimed on {where}."


# Hypotheses -----------------------------------------------------------------------------------


def verdict(holds: bool, partly: bool = False) -> str:
    return "holds" if holds else "holds in part" if partly else "does not hold"


def k_means_is_perfect() -> list[str]:
    errors = [t.error for t in chosen()[1] if t.method == "K-means" and t.overlap == "published"]
    wrong = sum(error > 0 for error in errors)
    return [
        "At the published noise K-means, given the numbers, makes no error, so the paper's errors "
        "of K-means cannot come from it",
        f"{wrong} of {len(errors)} trials with an error, the largest {number(max(errors))}",
        verdict(wrong == 0, wrong < 0.05 * len(errors)),
    ]


def more_overlap() -> list[str]:
    table = cells()
    near = {overlap: [near_paper(table, overlap, m) for m in RIVALS] for overlap in OVERLAPS}
    (few, _), (many, compared) = (map(sum, zip(*near[o], strict=True)) for o in OVERLAPS)
    said = ", ".join(
        f"{method} {hits} of {sets}"
        for method, (hits, sets) in zip(RIVALS, near["calibrated"], strict=True)
    )
    return [
        "The paper's errors of the rivals belong to noisier matrices, such as the calibrated ones",
        f"our mean lies within the paper's mean ± sd for {few} of {compared} rivals and sets at "
        f"the published noise, for {many} at the calibrated one ({said})",
        verdict(many > 0.8 * compared, many > few),
    ]


def near_paper(table: dict, overlap: str, method: str) -> tuple[int, int]:
    """Count the sets on which a mean is within a standard deviation of the paper's, of how many."""
    printed = {name: paper for name, paper in TABLE2[method].items() if paper is not None}
    means = {name: table[overlap, name, method].every.mean for name in printed}
    hits = [means[n] is not None and abs(means[n] - p.mean) <= p.sd for n, p in printed.items()]
    return sum(hits), len(hits)


def steps_reach_the_paper() -> list[str]:
    found = {(m, n): cells()["published", n, m] for m in STEPS for n in DATA_SETS}
    printed = {key: TABLE2[key[0]][key[1]] for key in found}
    right = sum(cell.right.mean is not None and cell.right.mean <= printed[key].mean
                for key, cell in found.items())  # fmt: skip
    of_all = sum(cell.every.mean <= printed[key].mean for key, cell in found.items())
    said = "; ".join(
        f"{m}: {of_sets(lambda n, m=m: number(found[m, n].every.mean))}" for m in STEPS
    )
    return [
        "CCOT and CCOT-GW reach the paper's own errors at the published noise",
        f"{of_all} of {len(found)} means over all sets are at most the paper's ({said}); {right} "
        "of those over the trials with the right numbers",
        verdict(of_all == len(found), right > 0),
    ]


def steps_break_first() -> list[str]:
    trials = [t for t in chosen()[1] if t.overlap == "calibrated"]
    found = [t.numbers_right for t in trials if t.method in STEPS]
    one = [(t.row_clusters, t.column_clusters) == (1, 1) for t in trials if t.method in STEPS]
    table = cells()
    best = of_sets(lambda n: number(min(table["calibrated", n, m].every.mean for m in RIVALS)))
    return [
        "They fail at noise levels at which the compared methods still find the blocks",
        f"at the calibrated noise both numbers are right in {sum(found)} of {len(found)} trials "
        f"of CCOT and CCOT-GW, one single block is reported in {sum(one)}; error of the best "
        f"compared method, given the numbers: {best}",
        verdict(sum(found) < 0.1 * len(found), sum(found) < 0.5 * len(found)),
    ]


def detector_is_weak() -> list[str]:
    trials = [t for t in chosen()[1] if t.overlap == "published" and t.method == "CCOT-GW"]
    in_order = [t for t in trials if t.rows_in_order and t.columns_in_order]
    authors = sum(authors_right(t) for t in in_order)
    ours = sum(t.numbers_right for t in in_order)
    return [
        "CCOT-GW's scalings show the blocks, and the authors' detector misses them",
        f"true clusters lie side by side along the sorted scalings in {len(in_order)} of "
        f"{len(trials)} trials; in these the authors' detector finds both numbers {authors} "
        f"times, ours {ours} times",
        verdict(authors < ours / 2, authors < ours),
    ]


def authors_right(trial: Trial) -> bool:
    found = trial.authors_row_clusters, trial.authors_column_clusters
    return found == (trial.true_row_clusters, trial.true_column_clusters)


def scalings_coincide() -> list[str]:
    trials = [t for t in chosen()[1] if t.overlap == "published" and t.method in STEPS]
    missed = [t for t in trials if not t.numbers_right]
    mixed = [t for t in missed if not (t.rows_in_order and t.columns_in_order)]
    where = ", ".join(
        f"{method} on {name} {count}"
        for method in STEPS
        for name in DATA_SETS
        if (count := sum((t.method, t.data_set) == (method, name) for t in missed))
    )
    return [
        "Where they miss a number although there is hardly any noise, two clusters have the same "
        "scaling",
        f"{len(missed)} of {len(trials)} trials at the published noise miss a number "
        f"({where or 'none'}); in {len(mixed)} of these, clusters mix along the scalings",
        verdict(len(mixed) == len(missed), 2 * len(mixed) > len(missed)),
    ]


def dashes() -> list[str]:
    table = cells()
    paper = {(m, n) for m in RIVALS for n in DATA_SETS if TABLE2[m][n] is None}
    ours = {(m, n) for m in RIVALS for n in DATA_SETS
            if not all(table[overlap, n, m].found for overlap in OVERLAPS)}  # fmt: skip
    said = ", ".join(
        f"{m} on {n} in {missed} of {cell.n_trials} ({overlap})"
        for m in RIVALS for n in DATA_SETS for overlap in OVERLAPS
        if (missed := (cell := table[overlap, n, m]).n_trials - cell.right.n_trials)
    )  # fmt: skip
    return [
        "Rivals cannot find a partition with the requested numbers where the paper prints a dash",
        f"{len(paper & ours)} of the paper's {len(paper)} dashes are dashes here, and "
        f"{len(ours - paper)} others; clusters left empty: {said or 'none'}",
        verdict(paper == ours, bool(paper & ours)),
    ]


def steps_win() -> list[str]:
    table, wins = cells(), dict.fromkeys(OVERLAPS, 0)
    for overlap in OVERLAPS:
        for name in DATA_SETS:
            steps = [table[overlap, name, m].every.mean for m in STEPS]
            rivals = [table[overlap, name, m].every.mean for m in RIVALS]
            wins[overlap] += min(steps) < min(rivals)
    said = ", ".join(f"{count} of {len(DATA_SETS)} at {o} noise" for o, count in wins.items())
    return [
        "CCOT or CCOT-GW beats all rivals",
        f"sets on which one of them has a lower error than every rival: {said}",
        verdict(all(count == len(DATA_SETS) for count in wins.values()), any(wins.values())),
    ]


def blocks_repair() -> list[str]:
    table = cells()
    ours = {n: table["calibrated", n, "TransportCoclustering"] for n in DATA_SETS}
    best = {n: min(table["calibrated", n, m].every.mean for m in RIVALS) for n in DATA_SETS}
    level = sum(cell.every.mean <= best[n] + 0.01 for n, cell in ours.items())
    return [
        "TransportCoclustering finds the numbers and is as good as methods that are given them",
        "both numbers right, in per cent: "
        + of_sets(lambda n: f"{100 * ours[n].right.n_trials / ours[n].n_trials:.0f}")
        + "; error of all trials "
        + of_sets(lambda n: number(ours[n].every.mean))
        + ", best rival "
        + of_sets(lambda n: number(best[n])),
        verdict(level == len(ours), level > 0),
    ]


def hypotheses() -> str:
    tests = (k_means_is_perfect, more_overlap, steps_reach_the_paper, steps_break_first, steps_win,
             detector_is_weak, scalings_coincide, dashes, blocks_repair)  # fmt: skip
    lines = ["| hypothesis | measured | verdict |", "| --- | --- | --- |"]
    return "\n".join([*lines, *("| " + " | ".join(test()) + " |" for test in tests)])


# The rivals' speed ----------------------------------------------------------------------------


def rivals_public() -> str:
    result = load("rivals")
    rows = [
        [
            f"{cell['method']}, {cell['set']}",
            cell["public"],
            *(f"{cell[f'seconds_{who}']:.3f}" for who in ("ours", "public")),
            f"{cell['ratio']:.2f}",
            *(number(cell[f"error_{who}"]) for who in ("ours", "public")),
        ]
        for cell in result["public"]
    ]
    heads = ("method, set", "public implementation", "ours (s)", "theirs (s)", "ratio",
             "our error", "their error")  # fmt: skip
    note = (
        f"Processor time of {result['public'][0]['starts']} starts at the calibrated noise, the "
        f"least of several turns, on {result['facts']['processor']}. CGC fits averages of blocks "
        "by the same divergence, without the factors of rows and columns that ITCC has: a related "
        "model, so that its errors are not those of ITCC."
    )
    told = source("rivals", result, note, result["public"])
    return Table("", "", heads, rows).markdown().split("\n\n", 1)[1] + told


def rivals_cores() -> str:
    result = load("rivals")
    if not result["cores"]:
        return "Not measured yet: `python -m benchmarks.rivals --parts cores` does."
    rows = [
        [
            f"{cell['method']}, {cell['shape'][0]} × {cell['shape'][1]}",
            f"{cell['seconds_one']:.2f}",
            f"{cell['seconds_two']:.2f}",
            f"{cell['seconds_one'] / cell['seconds_two']:.2f}",
        ]
        for cell in result["cores"]
    ]
    heads = ("method, matrix", "n_jobs=1 (s)", "n_jobs=2 (s)", "times faster")
    note = (
        f"{result['cores'][0]['starts']} starts, on the clock; 600 × 300 is D1 at the calibrated "
        "noise. Fits of a fraction of a second gain little or nothing: with many small products, "
        "threads wait for each other, and starting a process takes longer."
    )
    told = source("rivals", result, note, result["cores"])
    return Table("", "", heads, rows).markdown().split("\n\n", 1)[1] + told


TABLES = {
    f"reproduction_{made.__name__}": made
    for made in (settings, rerun, table1, table2, p_values, right_numbers, counts, hypotheses,
                 seconds, rivals_public, rivals_cores)
}  # fmt: skip
