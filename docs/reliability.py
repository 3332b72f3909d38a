"""Tables of ``docs/reliability.md``; ``docs/render.py`` puts them in.

Where a result is not stored there is no table either.
"""

import ast
from collections.abc import Callable
from functools import partial
from itertools import groupby
from pathlib import Path

from stored import in_short, listed, load, run_of, source, table

PROJECT = Path(__file__).parents[1]
CORE = PROJECT / "src" / "ccot"
SOUGHT_SHARE = 0.9
COUNTS = ("mutants", "killed", "timeout", "survived", "explained")


def subject(file: str) -> str:
    """What a file of tests says of itself in its first line."""
    said = ast.get_docstring(ast.parse((PROJECT / file).read_text(encoding="utf-8"))) or ""
    return said.partition("\n")[0].removesuffix(".")


def tried_examples() -> str:
    result = load("truth")
    rows = [
        [
            f"`{file}`: {subject(file)}",
            *(f"{sum(tried[key] for tried in group):,}" for key in ("cases", "examples", "failed")),
        ]
        for file, seen in groupby(result["properties"], key=lambda tried: tried["file"])
        for group in [list(seen)]
    ]
    note = (
        f"{len(result['properties'])} properties, tried on {result['examples']:,} random examples "
        "in all. A case is a property for one library, precision, estimator or the like; failed "
        "ones are counted in the last column."
    )
    heads = ["properties", "cases", "examples passed", "cases failed"]
    return table(heads, rows) + source("truth", result, note, result["properties"])


def equal_labels() -> str:
    draws, blocks = load("gpu"), load("gpu_transport")
    rows = []
    for estimator, result, n_fits in (
        ("CCOT", draws, draws["labels"]["seeds"]),
        ("TransportCoclustering", blocks, blocks["labels"]["fits_a_set"]),
    ):
        equal, facts = result["labels"]["fits_with_equal_labels"], result["facts"]
        counts = f"{n_fits * len(equal)}", f"{sum(equal.values())}"
        measured = run_of(facts).removeprefix("made by ")
        rows.append([f"`{estimator}`", result["card"]["name"], *counts, measured])
    note = (
        "The simulated sets of the paper, each fitted with NumPy and on the GPU. Stored in "
        "`benchmarks/results/gpu.json` and `benchmarks/results/gpu_transport.json`."
    )
    heads = ["estimator", "GPU", "fits", "all labels equal", "measured by"]
    return table(heads, rows) + f"\n\n{note}"


HALF_AN_HOUR = 1800  # seconds of processor time


def killed_fits() -> str:
    result = load("faults")
    rows = [
        [
            name,
            case["how"],
            f"{case['n_kills']}",
            f"{case['n_half_written']}",
            f"{case['n_fits']}",
            f"{case['n_identical']}",
            f"{case['seconds_undisturbed']:.1f}",
            f"{case['seconds_a_fit']:.1f}",
        ]
        for name, case in result["cases"].items()
    ]
    if not rows:
        return ""
    note = (
        "Fits were stopped at random moments and started again until they were finished. Then the "
        "model file was compared, byte for byte, with that of an uninterrupted fit. Pieces were "
        "written much more often than usual. *During a write*: stops that left a file half "
        "written. The last columns are the seconds of an uninterrupted fit, and of an interrupted "
        "one with all restarts."
    )
    heads = ["fit", "signal", "stops", "during a write", "fits", "identical",
             "uninterrupted (s)", "interrupted (s)"]  # fmt: skip
    return table(heads, rows) + source("faults", result, note, result["cases"].values())


def fuzzed() -> str:
    result = load("fuzz")
    targets = result["targets"]
    rows = [
        [
            f"`{target}`",
            f"{_in_all(seen, 'cpu_s') / 60:.1f}",
            f"{_in_all(seen, 'executions'):,.0f}",
            f"{_n_findings(seen)}",
            f"{seen['cpu_s'] / 60:.1f}",
            f"{seen['executions']:,.0f}",
            f"{seen['accepted']:,.0f}",
            f"{seen['slowest_s']:.2f}",
            f"{seen['growth_mb']:.0f}",
        ]
        for target, seen in targets.items()
    ]
    machine = result["machine"]
    note = (
        "The first columns are for all versions of a reader's code: minutes of processor time, "
        "inputs tried, and inputs that broke a rule (findings). The others are for the newest "
        "version that was fuzzed: minutes, inputs, inputs that were accepted, the most processor "
        "time of a single read, and the most that a single read added to the peak of memory. "
        f"{_wanting(targets)} All findings are fixed, and each has become a test. On "
        f"{machine['cores']} cores, Python {machine['python']}, "
        f"{', '.join(f'{name} {number}' for name, number in machine['versions'].items())}."
    )
    heads = ["reader", "processor (min)", "inputs", "findings", "newest code (min)",
             "inputs to it", "accepted", "slowest (s)", "memory (MB)"]  # fmt: skip
    runs = [run for seen in targets.values() for run in seen["runs"]]
    made = f"{in_short(runs)}, and by" if runs else "made by"
    told = f"Stored in `benchmarks/results/fuzz.json`; {made} earlier runs that were not recorded."
    return table(heads, rows) + f"\n\n{note} {told}"


def _in_all(seen: dict, key: str) -> float:
    """Sum over all versions of a reader's code."""
    return seen[key] + seen["earlier"].get(key, 0)


def _n_findings(seen: dict) -> int:
    return len({*seen["findings"], *seen["earlier"].get("findings", ())})


def _wanting(targets: dict) -> str:
    """Return in words how much of half an hour each is still wanting."""
    left = [max(0.0, HALF_AN_HOUR - _in_all(seen, "cpu_s")) for seen in targets.values()]
    n_done = sum(one == 0 for one in left)
    n_new = sum(seen["cpu_s"] > 0 for seen in targets.values())
    return (
        f"{n_done} of {len(left)} readers have had half an hour; {sum(left) / 3600:.1f} hours of "
        f"processor time are missing. The newest versions of {n_new} have been fuzzed."
    )


def hostile_memory() -> str:
    result = load("hostile_memory")
    rows = [
        [
            cell["what"],
            f"{cell['file_megabytes']:.1f}",
            f"{cell['unfolded_megabytes']:.1f}",
            f"{cell['megabytes_more']:.0f}",
            f"{cell['times']:.1f}",
            "refused" if cell["refused"] else "read",
        ]
        for cell in sorted(result["cells"], key=lambda cell: not cell["honest"])
    ]
    n_honest = sum(cell["honest"] for cell in result["cells"])
    most = max(cell["times"] for cell in result["cells"])
    note = (
        f"The memory that a file adds to the peak, and its ratio to the unpacked size: at most "
        f"{most:.1f}. The first {n_honest} files are ordinary; the others are made to take as "
        "much memory as possible. Each is read by its own process, after a tiny file of its format."
    )
    heads = ["file", "size (MB)", "unpacked (MB)", "memory (MB)", "times", "outcome"]
    return table(heads, rows) + source("hostile_memory", result, note, result["cells"])


HELD = {
    "megabytes": "memory (MB)",
    "children_megabytes": "memory of worker processes (MB)",
    "files": "open files",
    "threads": "threads",
    "children": "processes",
    "temporary_files": "temporary files",
}


def soaked() -> str:
    result = load("soak")
    warm = next(s for s in result["samples"] if s["fit"] == result["warm_up_fits"])
    moments = warm, result["samples"][-1], result["after_shutdown"]
    rows = [[what, *(f"{seen[key]:.0f}" for seen in moments)] for key, what in HELD.items()]
    growth = result["growth_per_100_fits"]
    note = (
        f"{result['fits']:,} fits of {len(result['kinds'])} kinds in turn, "
        f"{result['seconds'] / 60:.0f} minutes. After the first {warm['fit']} the median of all "
        f"slopes is {growth['megabytes']:+.2f} MB in 100 fits, "
        f"{growth['children_megabytes']:+.2f} MB in the workers. joblib keeps an empty folder for "
        "every call to processes until Python ends: "
        f"{result['samples'][-1]['folders_of_joblib']} of them, not counted above."
    )
    if result["after_shutdown"]["children"]:
        note += (
            " What remains when the workers are gone are the resource trackers of joblib and of "
            "Python's multiprocessing, which clean up after a crash and end with Python."
        )
    heads = ["held", f"after {warm['fit']} fits", f"after {result['fits']:,}", "workers shut down"]
    return table(heads, rows) + source("soak", result, note)


def name_of(file: dict) -> str:
    return f"`{Path(file['file']).relative_to('src/ccot')}`"


def noticed(counts: dict) -> int:
    """Mutants on which a test failed, or no longer ended."""
    return counts["killed"] + counts["timeout"]


def mutant_row(name: str, counts: dict) -> list[str]:
    share = f"{100 * noticed(counts) / counts['mutants']:.1f} %"
    unexplained = counts["survived"] - counts["explained"]
    numbers = counts["mutants"], noticed(counts), share, counts["explained"], unexplained
    return [name, *map(str, numbers)]


def mutants() -> str:
    result = load("mutation")
    files = result["files"]
    whole = {key: sum(file[key] for file in files) for key in COUNTS}
    rows = [mutant_row("all", whole), *(mutant_row(name_of(file), file) for file in files)]
    below = [name_of(file) for file in files if noticed(file) < SOUGHT_SHARE * file["mutants"]]
    core = [path for part in ("blocks", "transport") for path in sorted(CORE.glob(f"{part}/*.py"))]
    seen = {file["file"] for file in files}
    left_out = [
        f"`{path.relative_to(CORE)}`"
        for path in core
        if path.name != "__init__.py" and str(path.relative_to(PROJECT)) not in seen
    ]
    note = (
        f"Below {100 * SOUGHT_SHARE:.0f} %: {', '.join(below) or 'none'}. Part of the numeric core "
        f"but not measured: {', '.join(left_out) or 'none'}. The stored result lists every "
        "survivor, with its reason if there is one."
    )
    heads = ["file", "mutants", "noticed", "share", "survivors with a reason", "without"]
    return table(heads, rows) + source("mutation", result, note, files)


def reliability_summary() -> str:
    """One line for each measurement, from the stored results."""
    truth, faults, fuzz, soak = (load(name) for name in ("truth", "faults", "fuzz", "soak"))
    files, cases, targets = load("mutation")["files"], faults["cases"].values(), fuzz["targets"]
    sums = {key: sum(file[key] for file in files) for key in COUNTS}
    worst = max(cell["times"] for cell in load("hostile_memory")["cells"])
    findings = sum(map(_n_findings, targets.values()))
    inputs, seconds = (
        sum(_in_all(seen, key) for seen in targets.values()) for key in ("executions", "cpu_s")
    )
    growth = soak["growth_per_100_fits"]["megabytes"]
    rows = [
        ("random examples of mathematical properties",
         f"{truth['examples']:,} examples of {len(truth['properties'])} properties, "
         f"{truth['failed']} failed"),
        ("errors inserted into the code and noticed by the tests",
         f"{noticed(sums):,} of {sums['mutants']:,}; "
         f"{sums['survived'] - sums['explained']} unnoticed without a reason"),
        ("fits killed and continued, with an identical model file",
         f"{sum(case['n_identical'] for case in cases)} of "
         f"{sum(case['n_fits'] for case in cases)} fits, "
         f"{sum(case['n_kills'] for case in cases)} kills"),
        ("fuzzed inputs",
         f"{inputs:,.0f} to {len(targets)} readers in {seconds / 3600:.1f} hours of processor "
         f"time, most to earlier code; {findings} findings, all fixed"),
        ("memory that the worst file takes", f"{worst:.1f} times its uncompressed size"),
        ("growth of memory", f"{growth:+.2f} MB in 100 fits, over "
                             f"{soak['fits']:,} fits"),
    ]  # fmt: skip
    return listed(("measured", "result"), rows)


def or_nothing(made: Callable[[], str]) -> str:
    try:
        return made()
    except FileNotFoundError:
        return ""


TABLES: dict[str, Callable[[], str]] = {
    made.__name__: partial(or_nothing, made)
    for made in (tried_examples, equal_labels, killed_fits, fuzzed, hostile_memory, soaked, mutants,
                 reliability_summary)
}  # fmt: skip
