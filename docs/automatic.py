"""The table of automatic numbers, which ``docs/render.py`` puts in."""

from collections.abc import Callable

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
    note = (
        f"Means over the sets, one seed. Stored in `benchmarks/results/automatic.json` by "
        f"`{facts['command']}`, {facts['date']}."
    )
    return table(heads, rows) + f"\n\n{note}"


def automatic_numbers() -> str:
    trials = load("automatic")["trials"]
    rows = []
    for name in dict.fromkeys(trial["set"] for trial in trials):
        own = {trial["method"]: trial for trial in trials if trial["set"] == name}
        found = own["found"]
        rows.append(
            [name, found["kind"], str(found["classes"])]
            + [str(own[method]["row_clusters"]) for method in ("found", "jump")]
            + [f"{own[method]['nmi']:.3f}" for method in ("found", "jump")]
        )
    heads = ["set", "kind", "classes", "found", "jump alone", "NMI found", "NMI jump alone"]
    return table(heads, rows)


TABLES: dict[str, Callable[[], str]] = {
    "automatic": automatic,
    "automatic_numbers": automatic_numbers,
}
