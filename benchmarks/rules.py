"""Weights of the rule that finds the number of clusters, judged leaving one set out.

For every labelled matrix and seed: how well halves of the columns agree at every number of row
clusters, the jumps of the merge costs, and NMI and ARI of the fit with that number. From these the
result of any pair of weights follows without fitting again. Weights are chosen on all sets but one,
the kinds of sets counting alike, and judged on the one left out.
"""

import argparse
from itertools import product

import numpy as np
from joblib import Parallel, delayed
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from benchmarks.data import Labelled, labelled, need_data
from benchmarks.record import store
from ccot import TransportCoclustering
from ccot.blocks.criteria import jump_scores, mean_costs
from ccot.blocks.fit import BlockSettings, _begin
from ccot.blocks.preparation import settle_family
from ccot.blocks.problem import pearson_dispersion
from ccot.blocks.reproducibility import WEIGHTS, Halves, fit_halves
from ccot.blocks.select import trust_icl
from ccot.runtime.run import Run, as_generator

GRID = [*product((0.1, 0.2, 0.3, 0.4, 0.5), (0.3, 0.5, 0.7, 1.0, 1.5, 2.0))]
Weights = tuple[float, float]


def measure(data: Labelled, seed: int) -> dict:
    """What the rule sees of the rows, and what each number would give."""
    run = Run(as_generator(seed))
    family = settle_family(data.matrix, "auto", "auto", "auto")[0]
    _, problem, starts = _begin(data.matrix, family, BlockSettings(), run)
    problem = problem.with_dispersion(pearson_dispersion(problem, starts[0].fine))
    limit, trusted = trust_icl(problem, starts)
    if trusted[0]:
        jumps, agreement = {limit[0]: 0.0}, np.ones((1, 1))
    else:
        jumps = jump_scores(mean_costs([start.hierarchy for start in starts], 0), limit[0])
        halves = fit_halves(problem, 0, [*jumps], run)
        jumps, agreement = {int(k): jumps[int(k)] for k in halves.numbers}, halves.agreement
    fits = [fit_given(data, k, seed) for k in jumps]
    return {
        "kind": data.kind,
        "set": data.name,
        "seed": seed,
        "numbers": [*jumps],
        "jumps": np.round([*jumps.values()], 4).tolist(),
        "agreement": np.round(agreement, 4).tolist(),
        "nmi": [nmi for nmi, _ in fits],
        "ari": [ari for _, ari in fits],
    }


def fit_given(data: Labelled, number: int, seed: int) -> tuple[float, float]:
    model = TransportCoclustering(number, criterion="jump", random_state=seed).fit(data.matrix)
    scores = normalized_mutual_info_score, adjusted_rand_score
    nmi, ari = (round(float(score(data.classes, model.row_labels_)), 4) for score in scores)
    return nmi, ari


def choose(trial: dict, weights: Weights) -> int:
    """Where the number stands that the rule takes with these weights."""
    numbers = np.array(trial["numbers"])
    halves = Halves(numbers, np.array(trial["agreement"]), np.empty((0, len(numbers), 0)))
    scores = halves.scores(dict(zip(trial["numbers"], trial["jumps"], strict=True)), weights)
    return trial["numbers"].index(max(scores, key=lambda k: scores[k]))


def by_set(trials: list[dict], weights: Weights, score: str = "nmi") -> dict[tuple, float]:
    """The mean over the seeds, for every set."""
    found: dict[tuple, list[float]] = {}
    for trial in trials:
        value = trial[score][choose(trial, weights)]
        found.setdefault((trial["kind"], trial["set"]), []).append(value)
    return {name: float(np.mean(values)) for name, values in found.items()}


def by_kind(values: dict[tuple, float]) -> dict[str, float]:
    kinds = dict.fromkeys(kind for kind, _ in values)
    return {
        kind: float(np.mean([value for (other, _), value in values.items() if other == kind]))
        for kind in kinds
    }


def leave_one_out(trials: list[dict]) -> tuple[dict[tuple, float], dict[str, int]]:
    """NMI of every set with weights chosen on the others, and how often which were chosen."""
    results = {weights: by_set(trials, weights) for weights in GRID}
    judged, chosen = {}, {}
    for left_out in results[GRID[0]]:

        def on_others(weights: Weights, name: tuple = left_out) -> float:
            others = {key: value for key, value in results[weights].items() if key != name}
            return sum(by_kind(others).values())

        best = max(GRID, key=on_others)
        judged[left_out] = results[best][left_out]
        chosen[str(best)] = chosen.get(str(best), 0) + 1
    return judged, chosen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kinds", nargs="*", default=["text", "gene", "cells"])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    need_data()
    tasks = [
        (data, seed)
        for kind in arguments.kinds
        for data in labelled(kind)
        for seed in range(arguments.seeds)
    ]
    trials = Parallel(arguments.jobs, verbose=5)(delayed(measure)(*task) for task in tasks)
    judged, chosen = leave_one_out(trials)
    summary = {
        "weights": WEIGHTS,
        "nmi": by_kind(by_set(trials, WEIGHTS)),
        "ari": by_kind(by_set(trials, WEIGHTS, "ari")),
        "left_out": by_kind(judged),
        "chosen": chosen,
        "grid": [{"weights": weights, **by_kind(by_set(trials, weights))} for weights in GRID],
    }
    print(summary)
    print(f"stored {store('rules', {'summary': summary, 'trials': trials})}")


if __name__ == "__main__":
    main()
