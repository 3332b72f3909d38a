"""The table of automatic numbers, which ``docs/render.py`` puts in."""

from collections.abc import Callable
from statistics import mean

from stored import load, source, table

from ccot.experiments.bench.automatic import mean_scores

NAMES = {
    "found": "TransportCoclustering",
    "jump": "TransportCoclustering, jump alone",
    "given": "TransportCoclustering, number given",
    "k_means_silhouette": "K-means and silhouette",
    "hdbscan": "HDBSCAN",
}


def _seeds(number: int) -> str:
    return "one seed" if number == 1 else f"{number} seeds"


def automatic() -> str:
    result = load("automatic")
    cells = result["cells"]
    kinds = list(dict.fromkeys(cell["kind"] for cell in cells))
    rows = []
    for method in dict.fromkeys(cell["method"] for cell in cells):
        own = {cell["kind"]: cell for cell in cells if cell["method"] == method}
        scores = [f"{own[kind]['nmi']:.3f} / {own[kind]['ari']:.3f}" for kind in kinds]
        rows.append([NAMES[method], *scores])
    sets = {cell["kind"]: cell["sets"] for cell in cells}
    heads = ["NMI / ARI of row clusters", *(f"{kind} ({sets[kind]} sets)" for kind in kinds)]
    seeds = _seeds(len({trial.get("seed", 0) for trial in result["trials"]}))
    note = f"Means over the sets, {seeds}."
    return table(heads, rows) + source("automatic", result, note, result["trials"])


def automatic_numbers() -> str:
    trials = load("automatic")["trials"]
    rows = []
    for name in dict.fromkeys(trial["set"] for trial in trials):
        own = {
            method: [t for t in trials if t["set"] == name and t["method"] == method]
            for method in ("found", "jump")
        }
        first = own["found"][0]
        rows.append(
            [name, first["kind"], str(first["classes"])]
            + [", ".join(str(t["row_clusters"]) for t in found) for found in own.values()]
            + [f"{mean(t['nmi'] for t in found):.3f}" for found in own.values()]
        )
    heads = ["set", "kind", "classes", "found", "jump alone", "NMI found", "NMI jump alone"]
    return table(heads, rows)


def rules() -> str:
    result = load("rules")
    summary = result["summary"]
    kinds = list(summary["nmi"])
    chosen = ", ".join(
        f"{pair[1:-1].replace(', ', ' and ')} for {number} of the sets"
        for pair, number in sorted(summary["chosen"].items(), key=lambda item: -item[1])
    )
    rows = [
        [f"{score}{what}", *(f"{found[key][kind]:.3f}" for kind in kinds)]
        for found, what in ((summary, ""), (summary["highest"], ", highest score"))
        for key, score in (
            ("nmi", "NMI"),
            ("ari", "ARI"),
            ("left_out", "NMI, weights chosen on other sets"),
        )
    ]
    n_seeds = len({trial["seed"] for trial in result["trials"]})
    note = (
        f"Means over the sets, {n_seeds} seeds. Weights chosen on the other sets: {chosen}. The "
        "rows *highest score* have the weights that are best for this rule on all sets, "
        f"{summary['highest']['weights'][0]:g} and {summary['highest']['weights'][1]:g}."
    )
    return table(["", *kinds], rows) + source("rules", result, note, result["trials"])


def _ours(result: dict, rival: str, kind: str) -> float:
    """The NMI of the first method on the sets of a kind that another one finished."""
    kinds = {case["name"]: case["axis"] for case in result["cases"]}
    done = {
        (trial["rival"], trial["case"]): trial["nmi"]
        for trial in result["trials"]
        if trial["status"] == "done" and kinds[trial["case"]] == kind
    }
    first = result["rivals"][0]["name"]
    return mean(done[first, case] for name, case in done if name == rival)


def beside() -> str:
    """Times of a fit, this version beside the one before numbers were found by halves."""
    result = load("scaling_beside")
    heads = ["set", "one thread: processor time (s)", "times", "two cores: clock (s)", "times"]
    rows = []
    for name in dict.fromkeys(cell["set"] for cell in result["cells"]):
        line = [name]
        for cell in (cell for cell in result["cells"] if cell["set"] == name):
            line += [f"{cell['now']:.2f} (was {cell['before']:.2f})", f"{cell['ratio']:.2f}"]
        rows.append(line)
    note = (
        f"Medians of {result['repeats']} fits of each version, in turns. In brackets: commit "
        f"`{result['other_commit']}`, which had no `n_jobs`. Times on the clock are with "
        "`n_jobs=2`."
    )
    return table(heads, rows) + source("scaling_beside", result, note)


def automatic_rivals() -> str:
    result = load("automatic_rivals")
    kinds = list(dict.fromkeys(case["axis"] for case in result["cases"]))
    n_sets = {kind: sum(case["axis"] == kind for case in result["cases"]) for kind in kinds}
    rows = []
    for rival, scores in mean_scores(result):
        line = [rival]
        for kind in kinds:
            own = scores.get(kind)
            if own is None:
                line.append("not finished")
                continue
            part = ""
            if own["sets"] < n_sets[kind]:
                sets = "1 set" if own["sets"] == 1 else f"{own['sets']} sets"
                part = f" ({sets}; ours there {_ours(result, rival, kind):.3f})"
            line.append(" / ".join(f"{own[key]:.3f}" for key in ("nmi", "ami", "ari")) + part)
        rows.append(line)
    limits = result["profile"]["limits"]
    absent = [rival["name"] for rival in result["rivals"] if rival["version"] is None]
    note = (
        f"Means over the sets, {_seeds(result['profile']['paper_seeds'])}. A method that fails or "
        f"exceeds the limits ({limits['seconds']:g} s of processor time, "
        f"{limits['gigabytes']:g} GB) is not run on the larger sets of that kind."
        + (f" Not installed: {', '.join(absent)}." if absent else "")
    )
    heads = ["NMI / AMI / ARI", *(f"{kind} ({n_sets[kind]} sets)" for kind in kinds)]
    return table(heads, rows) + source("automatic_rivals", result, note, result["trials"])


def confidence() -> str:
    result = load("confidence")
    rows = [
        [f"{cell['from']:g} to {cell['to']:g}", str(cell["sets"])]
        + [f"{cell[key]:.2f}" for key in ("claimed", "right")]
        for cell in result["cells"]
        if cell["sets"]
    ]
    sets = [trial for trial in result["trials"] if trial["row_clusters"] > 1]
    off = mean(abs(trial["claimed"] - trial["right"]) for trial in sets)
    note = (
        f"A row is right if its class is the most frequent one of its cluster. In a bin, those of "
        f"the {len(sets)} sets with at least ten rows in it have equal weight. Over whole sets, "
        f"mean confidence and share of right rows differ by {off:.2f} on average."
    )
    heads = ["confidence", "sets", "mean confidence", "right"]
    return table(heads, rows) + source("confidence", result, note)


def _generalisation(axis: str, heading: str) -> str:
    result = load("generalisation")
    cells = [cell for cell in result["cells"] if cell["axis"] == axis]
    sizes = list(dict.fromkeys(cell["size"] for cell in cells))
    rows = []
    for method in dict.fromkeys(cell["method"] for cell in cells):
        own = {cell["size"]: cell for cell in cells if cell["method"] == method}
        scores = [f"{own[size]['agreement']:.2f} / {own[size]['error']:.3f}" for size in sizes]
        rows.append([method, *scores])
    n_seeds = len({trial["seed"] for trial in result["trials"]})
    note = f"Agreement (adjusted Rand index) / row error of one sample, {n_seeds} matrices a cell."
    return table([heading, *(f"{size:g}" for size in sizes)], rows) + source(
        "generalisation", result, note
    )


TABLES: dict[str, Callable[[], str]] = {
    "automatic": automatic,
    "automatic_numbers": automatic_numbers,
    "automatic_rivals": automatic_rivals,
    "fit_times": beside,
    "number_rules": rules,
    "confidence": confidence,
    "generalisation_rows": lambda: _generalisation("rows", "rows"),
    "generalisation_columns": lambda: _generalisation("columns", "columns of each sample"),
    "generalisation_noise": lambda: _generalisation("noise", "noise"),
}
