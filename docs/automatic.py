"""The table of automatic numbers, which ``docs/render.py`` puts in."""

from collections.abc import Callable
from statistics import mean

from ratings import load, table

NAMES = {
    "found": "TransportCoclustering",
    "jump": "TransportCoclustering, jump alone",
    "given": "TransportCoclustering, number given",
    "k_means_silhouette": "K-means and silhouette",
    "hdbscan": "HDBSCAN",
}


def automatic() -> str:
    result = load("automatic")
    cells, facts = result["cells"], result["facts"]
    kinds = list(dict.fromkeys(cell["kind"] for cell in cells))
    rows = []
    for method in dict.fromkeys(cell["method"] for cell in cells):
        own = {cell["kind"]: cell for cell in cells if cell["method"] == method}
        scores = [f"{own[kind]['nmi']:.3f} / {own[kind]['ari']:.3f}" for kind in kinds]
        rows.append([NAMES[method], *scores])
    sets = {cell["kind"]: cell["sets"] for cell in cells}
    heads = ["NMI / ARI of row clusters", *(f"{kind} ({sets[kind]} sets)" for kind in kinds)]
    n_seeds = len({trial.get("seed", 0) for trial in result["trials"]})
    seeds = "one seed" if n_seeds == 1 else f"{n_seeds} seeds"
    note = (
        f"Means over the sets, {seeds}. Stored in `benchmarks/results/automatic.json` by "
        f"`{facts['command']}`, {facts['date']}."
    )
    return table(heads, rows) + f"\n\n{note}"


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
    summary, facts = result["summary"], result["facts"]
    kinds = list(summary["nmi"])
    chosen = ", ".join(
        f"{pair[1:-1].replace(', ', ' and ')} for {number} of the sets"
        for pair, number in sorted(summary["chosen"].items(), key=lambda item: -item[1])
    )
    rows = [
        ["NMI, weights of the rule", *(f"{summary['nmi'][kind]:.3f}" for kind in kinds)],
        ["ARI, weights of the rule", *(f"{summary['ari'][kind]:.3f}" for kind in kinds)],
        [
            "NMI, weights chosen on other sets",
            *(f"{summary['left_out'][kind]:.3f}" for kind in kinds),
        ],
    ]
    n_seeds = len({trial["seed"] for trial in result["trials"]})
    note = (
        f"Means over the sets, {n_seeds} seeds. Chosen on the other sets: {chosen}. Stored in "
        f"`benchmarks/results/rules.json` by `{facts['command']}`, {facts['date']}."
    )
    return table(["", *kinds], rows) + f"\n\n{note}"


TABLES: dict[str, Callable[[], str]] = {
    "automatic": automatic,
    "automatic_numbers": automatic_numbers,
    "number_rules": rules,
}
