"""Weights of the rule that finds the number of row clusters, judged leaving one set out.

For every labelled matrix and seed: how well halves of the columns agree at every number of row
clusters, the jumps of the merge costs, and for the fit with every number its distance to what the
halves found at every number, its NMI and its ARI. From these the result of any pair of weights
follows without fitting again. Weights are chosen on all sets but one, every set counting alike, and
judged on the one left out.
"""

import argparse
from itertools import product

import numpy as np
from joblib import Parallel, delayed
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from benchmarks.data import Labelled, labelled, need_data
from benchmarks.record import of_this_run, store, stored_trials
from ccot.blocks.criteria import jump_scores, mean_costs
from ccot.blocks.fit import BlockSettings, _begin, _fit_side
from ccot.blocks.preparation import settle_family
from ccot.blocks.problem import pearson_dispersion
from ccot.blocks.reproducibility import _LEAST_SUPPORT, WEIGHTS, Halves, fit_halves
from ccot.blocks.select import trust_icl
from ccot.blocks.sweep import assign
from ccot.runtime.run import Run, as_generator

GRID = [*product((0.2, 0.4, 0.6, 0.8), (0.5, 1.0, 1.5, 2.0))]
Weights = tuple[float, float]


def measure(data: Labelled, seed: int) -> dict:
    """What the rule sees of the rows, and what each number would give."""
    run = Run(as_generator(seed))
    family = settle_family(data.matrix, "auto", "auto", "auto")[0]
    _, problem, starts = _begin(data.matrix, family, BlockSettings(), run)
    problem = problem.with_dispersion(pearson_dispersion(problem, starts[0].fine))
    limit, trusted = trust_icl(problem, starts)

    def fit(number: int) -> np.ndarray:
        return assign(problem, _fit_side(problem, starts, False, run, 0, number), 0)[0]

    if trusted[0]:
        jumps, agreement, fits = {limit[0]: 0.0}, np.ones((1, 1)), [fit(limit[0])]
        distances = np.zeros((1, 1))
    else:
        jumps = jump_scores(mean_costs([start.hierarchy for start in starts], 0), limit[0])
        halves = fit_halves(problem, 0, [*jumps], run)
        jumps, agreement = {int(k): jumps[int(k)] for k in halves.numbers}, halves.agreement
        fits = [fit(k) for k in jumps]
        distances = np.array([halves.distances(labels) for labels in fits])
    return {
        "kind": data.kind,
        "set": data.name,
        "seed": seed,
        "numbers": [*jumps],
        "jumps": np.round([*jumps.values()], 4).tolist(),
        "agreement": np.round(agreement, 4).tolist(),
        "distances": np.round(distances, 4).tolist(),
        "nmi": [_score(normalized_mutual_info_score, data, labels) for labels in fits],
        "ari": [_score(adjusted_rand_score, data, labels) for labels in fits],
    }


def _score(score, data: Labelled, labels: np.ndarray) -> float:
    return round(float(score(data.classes, labels)), 4)


def nearest(trial: dict, weights: Weights) -> int:
    """Where the number stands that the rule takes with these weights, if all are fitted."""
    agreement = np.mean(trial["agreement"], axis=0)
    found = agreement >= _LEAST_SUPPORT * agreement.max()
    return int(np.argmin(np.where(found, trial["distances"] @ _weighed(trial, weights), np.inf)))


def highest(trial: dict, weights: Weights) -> int:
    """Where the number of the highest score stands."""
    return int(np.argmax(_weighed(trial, weights)))


def _weighed(trial: dict, weights: Weights) -> np.ndarray:
    numbers = np.array(trial["numbers"])
    halves = Halves(numbers, np.array(trial["agreement"]), np.empty((0, len(numbers), 0)))
    scores = halves.scores(dict(zip(trial["numbers"], trial["jumps"], strict=True)), weights)
    return halves.weighed(scores).plausibility


def by_set(
    trials: list[dict], weights: Weights, score: str = "nmi", choose=nearest
) -> dict[tuple, float]:
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


def leave_one_out(trials: list[dict], choose=nearest) -> tuple[dict, dict, Weights]:
    """NMI of every set with weights chosen on the others, how often which, and those of all."""
    results = {weights: by_set(trials, weights, choose=choose) for weights in GRID}
    judged, chosen = {}, {}

    def best(without: tuple | None = None) -> Weights:
        return max(GRID, key=lambda weights: sum(
            value for name, value in results[weights].items() if name != without
        ))  # fmt: skip

    for left_out in results[GRID[0]]:
        weights = best(left_out)
        judged[left_out] = results[weights][left_out]
        chosen[str(weights)] = chosen.get(str(weights), 0) + 1
    return judged, chosen, best()


def summarise(trials: list[dict]) -> dict:
    judged, chosen, _ = leave_one_out(trials)
    by_score, _, score_weights = leave_one_out(trials, highest)
    return {
        "weights": WEIGHTS,
        "nmi": by_kind(by_set(trials, WEIGHTS)),
        "ari": by_kind(by_set(trials, WEIGHTS, "ari")),
        "left_out": by_kind(judged),
        "chosen": chosen,
        "highest": {
            "weights": score_weights,
            "nmi": by_kind(by_set(trials, score_weights, choose=highest)),
            "ari": by_kind(by_set(trials, score_weights, "ari", highest)),
            "left_out": by_kind(by_score),
        },
        "grid": [{"weights": weights, **by_kind(by_set(trials, weights))} for weights in GRID],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kinds", nargs="*", default=["text", "gene", "cells"])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--stored", action="store_true", help="sum up the stored trials again")
    arguments = parser.parse_args()
    if arguments.stored:
        trials = stored_trials("rules")
    else:
        need_data()
        tasks = [
            (data, seed)
            for kind in arguments.kinds
            for data in labelled(kind)
            for seed in range(arguments.seeds)
        ]
        trials = Parallel(arguments.jobs, verbose=5)(delayed(measure)(*task) for task in tasks)
        trials = list(map(of_this_run, trials))
    summary = summarise(trials)
    print(summary)
    print(f"stored {store('rules', {'summary': summary, 'trials': trials})}")


if __name__ == "__main__":
    main()
