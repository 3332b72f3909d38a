"""Rules by which tables are prepared and clusters counted, judged leaving one table out.

Five rules were chosen while these tables could be looked at: from which overlap of their ranges on
columns share a unit, from which skewness on logarithms or roots are taken, whether a few whole
numbers are amounts or names, the price of a further cluster in the evidence, and up to which share
of the finest clusters the evidence is trusted. The last two need no further fit: every number of
clusters is fitted once for every preparation. Rules are chosen on all tables but one, and judged on
the one left out: all five together, each while the others are those of the package, and the three
that hold a constant. The other two hold none: BIC tells amounts from names, and log(k) / 2 is what
Laplace's approximation charges for one parameter (the strength of a prior) seen through k means.
Planted tables need no labels that somebody gave: rules chosen on them alone are judged on all
labelled tables. Ten tables alone hardly tell 1080 combinations apart, so rules are also chosen on
the other tables and the planted ones together, also where these are drawn again.
"""

import argparse
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from sklearn.metrics import normalized_mutual_info_score

from benchmarks.record import load, store, this_run
from benchmarks.tables import LabelledTable, tables
from ccot import TransportCoclustering
from ccot.blocks import columns, preparation, table_columns, table_fit
from ccot.blocks import tables as prepared
from ccot.blocks.criteria import mean_costs
from ccot.blocks.fit import BlockSettings
from ccot.blocks.reproducibility import Halves
from ccot.blocks.table_problem import make_table_problem, table_evidence
from ccot.estimators.tables import TableData
from ccot.runtime.run import Run

OVERLAPS, SKEWED, CODES = (0.2, 0.3, 0.4), (0.5, 1.0, 2.0, 99.0), ("bic", "number", "category")
PRICES, SHARES = (0.0, 0.25, 0.5, 0.75, 1.0), (0.1, 0.15, 0.25, 0.35, 0.5, 1.0)
PRICE = 0.5  # of the rule, in logarithms of the number, for every column
RULE = preparation._OVERLAP, prepared._SKEWED, "bic", PRICE, table_columns.TRUSTED_SHARE
GRID = [*product(OVERLAPS, SKEWED, CODES, PRICES, SHARES)]
Rule = tuple[float, float, str, float, float]
NAMES = "overlap", "skewness", "codes", "price", "share"
# The rules that theory leaves open.
CONSTANTS = "overlap", "skewness", "share"
N_PLANTED, N_ROWS = 24, 300
# How often the planted tables are drawn again, with replacement.
N_DRAWN_AGAIN = 20


def planted(seed: int) -> LabelledTable:
    """A table of 2 to 7 clusters of unequal sizes, its columns in units of their own.

    By turns it has numbers only, codes too, and words too. Half of the numbers are skewed and half
    of the codes names. In every other table all numbers grow with the size of a row.
    """
    rng = np.random.default_rng(seed)
    n_clusters = 2 + seed // 2 % 6
    truth = rng.choice(n_clusters, N_ROWS, p=rng.dirichlet(np.full(n_clusters, 5.0)))
    size = 0.5 * rng.normal(size=N_ROWS) * (seed % 2)

    def number() -> np.ndarray:
        return rng.normal(size=n_clusters)[truth] + rng.normal(size=N_ROWS) + size

    def level(n_levels: int) -> np.ndarray:
        share = rng.dirichlet(np.full(n_levels, 0.7), size=n_clusters).cumsum(axis=1)
        return (share[truth] < rng.random((N_ROWS, 1))).sum(axis=1).clip(0, n_levels - 1)

    columns: dict[str, Any] = {}
    for place in range(4):
        columns[f"plain{place}"] = 10 ** rng.uniform(-2, 3) * (number() + rng.uniform(0, 50))
        columns[f"skewed{place}"] = 10 ** rng.uniform(-2, 3) * np.exp(0.7 * number())
    for place in range(3 if seed % 3 else 0):
        columns[f"amount{place}"] = np.clip(np.round(3 + number()), 1, 5)
        columns[f"name{place}"] = level(5) + 1.0
    for place in range(3 if seed % 3 == 2 else 0):
        columns[f"word{place}"] = np.array(list("abcd"))[level(4)]
    return LabelledTable(f"planted{seed}", pd.DataFrame(columns), truth)


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
    halves = table_fit._fit_halves(problem, n_finest, run)
    return {
        "halves": halves
        and {
            "numbers": halves.numbers.tolist(),
            "agreement": np.round(halves.agreement, 6).tolist(),
        },
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
    halves = trial.get("halves")
    if halves is not None:
        told = np.array(halves["numbers"]), np.array(halves["agreement"])
        halves = Halves(*told, labels=np.empty(0))
    costs = np.array(trial["costs"])
    with patch.object(table_columns, "TRUSTED_SHARE", share):
        choice = table_columns.choose_number(costs, scores, trial["finest"], halves)
    return trial["nmi"][choice.number]


def by_table(trials: list[dict[str, Any]], rule: Rule) -> dict[str, float]:
    """The mean over the seeds, for every table."""
    found: dict[str, list[float]] = {}
    for trial in trials:
        if rule[:3] in trial["rules"]:
            found.setdefault(trial["set"], []).append(nmi_of(trial, *rule[3:]))
    return {name: float(np.mean(values)) for name, values in found.items()}


def n_changes(rule: Rule) -> int:
    return sum(one != ours for one, ours in zip(rule, RULE, strict=True))


def leave_one_out(
    results: dict[Rule, dict[str, float]], beside: dict[Rule, float] | None = None
) -> tuple[dict[str, float], dict[str, int]]:
    """NMI of every table by rules chosen on the others, and how often which were chosen.

    ``beside`` has the sum of what each rule gives on tables that are never left out.
    """
    judged: dict[str, float] = {}
    chosen: dict[str, int] = {}
    for left_out in results[RULE]:
        others = {
            rule: sum(value for name, value in found.items() if name != left_out)
            + (0.0 if beside is None else beside[rule])
            for rule, found in results.items()
        }
        # Of rules that are as good, the one that changes the package least.
        best = max(others, key=lambda rule: (round(others[rule], 6), -n_changes(rule)))
        judged[left_out] = results[best][left_out]
        chosen[str(best)] = chosen.get(str(best), 0) + 1
    return judged, chosen


def varied(results: dict[Rule, dict[str, float]], names: tuple[str, ...]) -> dict[Rule, Any]:
    """The rules that are those of the package but for some."""
    return {
        rule: found
        for rule, found in results.items()
        if all(
            one == ours or name in names for name, one, ours in zip(NAMES, rule, RULE, strict=True)
        )
    }


def by_planted(
    results: dict[Rule, dict[str, float]], planted: dict[Rule, dict[str, float]]
) -> dict[str, Any]:
    """Rules chosen on planted tables alone, and what they give on the labelled ones."""
    best = max(planted, key=lambda rule: (round(mean(planted[rule]), 6), -n_changes(rule)))
    equal = [rule for rule in planted if mean(planted[rule]) == mean(planted[best])]
    return {
        "tables": len(planted[best]),
        "ours": mean(planted[RULE]),
        "best": {"rule": best, "nmi": mean(planted[best])},
        "labelled": mean(results[best]),
        "as_good": len(equal),
        "labelled_as_good": [
            round(float(f([mean(results[rule]) for rule in equal])), 4) for f in (min, np.mean, max)
        ],
        "one_by_one": [
            {str(rule[place]): mean(found) for rule, found in varied(planted, (name,)).items()}
            for place, name in enumerate(NAMES)
        ],
    }


def with_planted(
    results: dict[Rule, dict[str, float]], planted: dict[Rule, dict[str, float]]
) -> dict[str, Any]:
    """Rules chosen on the other tables and the planted ones, as they are and drawn again."""
    values = {rule: np.array([*found.values()]) for rule, found in planted.items()}

    def left_out(drawn: Any) -> tuple[float, dict[str, int]]:
        sums = {rule: float(own[drawn].sum()) for rule, own in values.items()}
        judged, chosen = leave_one_out(results, sums)
        return mean(judged), chosen

    nmi, chosen = left_out(slice(None))
    rng, n_tables = np.random.default_rng(0), len(values[RULE])
    again = [left_out(rng.integers(n_tables, size=n_tables))[0] for _ in range(N_DRAWN_AGAIN)]
    return {"left_out": nmi, "chosen": chosen, "drawn_again": again}


def one_by_one(results: dict[Rule, dict[str, float]]) -> list[dict[str, Any]]:
    """Each rule while the others are those of the package: every value, and leaving one out."""
    lines = []
    for place, name in enumerate(NAMES):
        own = varied(results, (name,))
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
    # Rules that do badly warn that clusters are not found again; scores show it.
    warnings.filterwarnings("ignore")
    trials = stored_trials() if arguments.stored else []
    for data in [] if arguments.stored else tables():
        for seed in range(arguments.seeds):
            trials += measure(data, seed)
        print(data.name, len(trials), flush=True)
    for seed in [] if arguments.stored else range(N_PLANTED):
        trials += measure(planted(seed), 0)
        print(f"planted{seed}", len(trials), flush=True)
    is_planted = [trial["set"].startswith("planted") for trial in trials]
    simulated = [trial for trial, drawn in zip(trials, is_planted, strict=True) if drawn]
    labelled = [trial for trial, drawn in zip(trials, is_planted, strict=True) if not drawn]
    results = {rule: by_table(labelled, rule) for rule in GRID}
    judged, chosen = leave_one_out(results)
    constants, chosen_constants = leave_one_out(varied(results, CONSTANTS))
    best = max(results, key=lambda rule: mean(results[rule]))
    drawn = {rule: by_table(simulated, rule) for rule in GRID}
    summary = {
        "rule": RULE,
        "nmi": mean(results[RULE]),
        "left_out": mean(judged),
        "combinations": len(GRID),
        "best": {"rule": best, "nmi": mean(results[best])},
        "chosen": chosen,
        "constants": {
            "rules": CONSTANTS,
            "left_out": mean(constants),
            "combinations": len(varied(results, CONSTANTS)),
            "chosen": chosen_constants,
        },
        "planted": by_planted(results, drawn),
        "with_planted": with_planted(results, drawn),
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
