"""Rules by which tables are prepared and clusters counted, judged leaving one table out.

Five rules were chosen while these tables could be looked at: from which overlap of their ranges on
columns share a unit, from which skewness on logarithms or roots are taken, whether a few whole
numbers are amounts or names, the price of a further cluster in the evidence, and up to which share
of the finest clusters the evidence is trusted. The last two need no further fit: every number of
clusters is fitted once for every preparation. Rules are chosen on all tables but one, and judged on
the one left out: all five together, and each while the others are those of the package.
"""

import argparse
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.metrics import normalized_mutual_info_score

from benchmarks.record import load, store, this_run
from benchmarks.tables import LabelledTable, tables
from ccot import TransportCoclustering
from ccot.blocks import columns, preparation, table_columns, table_fit
from ccot.blocks import tables as prepared
from ccot.blocks.criteria import mean_costs
from ccot.blocks.fit import BlockSettings
from ccot.blocks.table_problem import make_table_problem, table_evidence
from ccot.estimators.tables import TableData
from ccot.runtime.run import Run

OVERLAPS, SKEWED, CODES = (0.2, 0.3, 0.4), (0.5, 1.0, 2.0, 99.0), ("bic", "number", "category")
PRICES, SHARES = (0.0, 0.25, 0.5, 0.75, 1.0), (0.1, 0.15, 0.25, 0.35, 0.5, 1.0)
PRICE = 0.5  # of the rule, in logarithms of the number, for every column
RULE = preparation._OVERLAP, prepared._SKEWED, "bic", PRICE, table_columns.TRUSTED_SHARE
GRID = [*product(OVERLAPS, SKEWED, CODES, PRICES, SHARES)]
Rule = tuple[float, float, str, float, float]


@contextmanager
def prepared_by(overlap: float, skewed: float, codes: str) -> Iterator[None]:
    """Prepare tables by other rules."""
    told = columns._is_category if codes == "bic" else lambda *_: codes == "category"
    with (
        patch.object(preparation, "_OVERLAP", overlap),
        patch.object(prepared, "_SKEWED", skewed),
        patch.object(columns, "_is_category", told),
    ):
        yield


def measure(data: LabelledTable, seed: int) -> list[dict[str, Any]]:
    """What the rules see of a table in each preparation, and what each number would give."""
    seen: dict[str, dict[str, Any]] = {}
    for rules in product(OVERLAPS, SKEWED, CODES):
        with prepared_by(*rules):
            rows = TransportCoclustering()._check_rows(data.frame)
        key = str(rows.preparation) if isinstance(rows, TableData) else "a matrix"
        if key not in seen:
            with prepared_by(*rules):
                found = _numbers(data, rows, seed)
            seen[key] = {"set": data.name, "seed": seed, "rules": [], **found}
        seen[key]["rules"].append(rules)
    return [*seen.values()]


def _numbers(data: LabelledTable, rows: Any, seed: int) -> dict[str, Any]:
    if not isinstance(rows, TableData):
        labels = TransportCoclustering(random_state=seed).fit(rows).row_labels_
        nmi = normalized_mutual_info_score(data.classes, labels)
        return {"evidence": {1: 0.0}, "nmi": {1: nmi}, "costs": [], "finest": 1, "columns": 1}
    run = Run(np.random.default_rng(seed))
    problem = make_table_problem(rows.preparation, rows.preparation.cells(rows.table))
    problem, starts = table_fit._starts(problem, BlockSettings(), run)
    n_finest, n_columns = starts[0].fine.shape[0], int(problem.owner[-1]) + 1
    evidence, nmi = {1: table_evidence(problem, starts[0].cut((1, None)))}, {1: 0.0}
    for k in range(2, min(table_fit._MOST_CLUSTERS, n_finest) + 1):
        blocks = table_fit._fit_at(problem, starts, k, len(starts))
        if blocks.shape[0] == k:
            # Without its price, which any weight can be given to later.
            paid = PRICE * np.log(k) * n_columns
            evidence[k] = table_evidence(problem, blocks) + paid
        nmi[k] = float(normalized_mutual_info_score(data.classes, blocks.labels[0]))
    costs = mean_costs([start.hierarchy for start in starts], 0)
    return {
        "evidence": evidence,
        "nmi": nmi,
        "costs": np.round(costs, 4).tolist(),
        "finest": n_finest,
        "columns": n_columns,
    }


def nmi_of(trial: dict[str, Any], price: float, share: float) -> float:
    """What a table gets where clusters are counted by a price and a trusted share."""
    scores = {
        k: score - price * np.log(k) * trial["columns"] for k, score in trial["evidence"].items()
    }
    with patch.object(table_columns, "TRUSTED_SHARE", share):
        number = table_columns.choose_number(np.array(trial["costs"]), scores, trial["finest"])
    return trial["nmi"][number]


def by_table(trials: list[dict[str, Any]], rule: Rule) -> dict[str, float]:
    """The mean over the seeds, for every table."""
    found: dict[str, list[float]] = {}
    for trial in trials:
        if rule[:3] in trial["rules"]:
            found.setdefault(trial["set"], []).append(nmi_of(trial, *rule[3:]))
    return {name: float(np.mean(values)) for name, values in found.items()}


def n_changes(rule: Rule) -> int:
    return sum(one != ours for one, ours in zip(rule, RULE, strict=True))


def leave_one_out(results: dict[Rule, dict[str, float]]) -> tuple[dict[str, float], dict[str, int]]:
    """NMI of every table by rules chosen on the others, and how often which were chosen."""
    judged: dict[str, float] = {}
    chosen: dict[str, int] = {}
    for left_out in results[RULE]:
        others = {
            rule: sum(value for name, value in found.items() if name != left_out)
            for rule, found in results.items()
        }
        # Of rules that are as good, the one that changes the package least.
        best = max(others, key=lambda rule: (round(others[rule], 6), -n_changes(rule)))
        judged[left_out] = results[best][left_out]
        chosen[str(best)] = chosen.get(str(best), 0) + 1
    return judged, chosen


def one_by_one(results: dict[Rule, dict[str, float]]) -> list[dict[str, Any]]:
    """Each rule while the others are those of the package: every value, and leaving one out."""
    lines = []
    for place, name in enumerate(("overlap", "skewness", "codes", "price", "share")):
        own = {
            rule: found
            for rule, found in results.items()
            if rule[:place] + rule[place + 1 :] == RULE[:place] + RULE[place + 1 :]
        }
        values = {str(rule[place]): mean(found) for rule, found in own.items()}
        left_out = mean(leave_one_out(own)[0])
        lines.append({"rule": name, "ours": str(RULE[place]), "nmi": values, "left_out": left_out})
    return lines


def numbered(values: dict[Any, float]) -> dict[int, float]:
    """Keys as numbers, which JSON has as text."""
    return {int(key): value for key, value in values.items()}


def stored_trials() -> list[dict[str, Any]]:
    return [
        trial
        | {key: numbered(trial[key]) for key in ("evidence", "nmi")}
        | {"rules": [tuple(rules) for rules in trial["rules"]]}
        for trial in load("table_rules")["trials"]
    ]


def mean(values: dict[str, float]) -> float:
    return round(float(np.mean([*values.values()])), 4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--stored", action="store_true", help="judge the stored fits again")
    arguments = parser.parse_args()
    # Rules that do badly warn that clusters do not come back; scores show it.
    warnings.filterwarnings("ignore")
    trials = stored_trials() if arguments.stored else []
    for data in [] if arguments.stored else tables():
        for seed in range(arguments.seeds):
            trials += measure(data, seed)
        print(data.name, len(trials), flush=True)
    results = {rule: by_table(trials, rule) for rule in GRID}
    judged, chosen = leave_one_out(results)
    best = max(results, key=lambda rule: mean(results[rule]))
    summary = {
        "rule": RULE,
        "nmi": mean(results[RULE]),
        "left_out": mean(judged),
        "combinations": len(GRID),
        "best": {"rule": best, "nmi": mean(results[best])},
        "chosen": chosen,
        "one_by_one": one_by_one(results),
        "by_table": {
            name: {"rule": round(results[RULE][name], 4), "left_out": round(value, 4)}
            for name, value in judged.items()
        },
    }
    print(summary)
    fitted = load("table_rules")["fitted"] if arguments.stored else this_run()
    result = {"summary": summary, "fitted": fitted, "trials": trials}
    print(f"stored {store('table_rules', result)}")


if __name__ == "__main__":
    main()
