"""In words: how the numbers of clusters were chosen, and warnings about them."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ccot.plotting._shared import SIDES, count
from ccot.plotting.evidence import SIGNIFICANT, is_tested

_DOUBTFUL = 0.5
# Runners-up this near are as good: nats of ICL, share of the jump's score, logarithm.
_NEAR_ICL, _NEAR_JUMP, _NEAR_REPRODUCIBLE = 3.0, 0.9, 0.05
_RULES = {
    "jump": "the cost of merging clusters jumps there",
    "reproducibility": "these clusters are found again with half of the data",
    "icl": "the integrated completed likelihood (ICL) is highest there",
}


def decisions(model: Any) -> list[str]:
    """Return a sentence on the number of row clusters, one on columns, and others where needed."""
    lines = [_decided(model, side) for side in SIDES]
    if hasattr(model, "family_"):
        lines.append(f"Entries are modelled as {model.family_}: {model.family_reason_}.")
    if getattr(model, "reg_path_", None) is not None:
        lines.append(
            f"The regularisation {model.reg_:g} was chosen by cross-validation: partitions of two "
            "halves of the data agree best there."
        )
    elif hasattr(model, "reg_"):
        lines.append(f"The regularisation was {model.reg_:g}.")
    return lines


def warnings_of(model: Any) -> list[str]:
    """Return warnings about the numbers of clusters or their members."""
    found = []
    for side in SIDES:
        found += [*_doubts_about_steps(model, side), *_doubts_about_members(model, side)]
    if any(_is_smooth(model, side) for side in SIDES):
        found.append(
            "Smooth scalings do not prove that there are no clusters: TransportCoclustering does "
            "not depend on jumps."
        )
    return [*found, *_doubts_about_blocks(model)]


def _decided(model: Any, side: str) -> str:
    number, reason = count(getattr(model, f"n_{side}_clusters_"), f"{side} cluster"), ""
    if getattr(model, f"n_{side}_clusters", None) is not None:
        reason = ": the number was given"
    elif hasattr(model, f"{side}_jumps_"):
        jumps, votes = (getattr(model, f"{side}_{a}_") for a in ("jumps", "cluster_votes"))
        what = "significant jump" if is_tested(model) else "jump"
        steps, draws = count(len(jumps), what), getattr(model, "n_samplings_", 1)
        reason = f": the sorted {side} scalings have {steps if len(jumps) else f'no {what}'}"
        if draws > 1 and votes:
            share = votes.get(getattr(model, f"n_{side}_clusters_"), 0.0)
            reason += f", as in {share:.0%} of {draws} draws"
    elif getattr(model, "candidates_", ()):
        rule = model.candidates_[0].criterion
        # Halves decide on the rows of a table; its columns are found after them.
        if rule != "reproducibility" or getattr(model.reproducibility_, side) is not None:
            reason = f": {_RULES[rule]}"
    return f"{number}{reason}."


def _is_smooth(model: Any, side: str) -> bool:
    """Tell whether a number was looked for and nothing but a smooth curve was seen."""
    return (
        hasattr(model, f"{side}_jumps_")
        and is_tested(model)
        and getattr(model, f"n_{side}_clusters") is None
        and getattr(model, f"n_{side}_clusters_") == 1
        and np.ptp(getattr(model, f"{side}_log_scaling_")) > 0
    )


def _doubts_about_steps(model: Any, side: str) -> Iterator[str]:
    if not hasattr(model, f"{side}_jumps_") or not is_tested(model):
        return
    if _is_smooth(model, side):
        yield (
            f"The sorted {side} scalings are smooth: no jump is significant, so all {side}s are "
            "in one cluster."
        )
        return
    number = getattr(model, f"n_{side}_clusters_")
    weak = int((np.asarray(getattr(model, f"{side}_jump_strength_")) < SIGNIFICANT).sum())
    if weak:
        steps = f"{count(number - 1, f'{side} jump')} {'is' if weak == 1 else 'are'}"
        yield (
            f"{weak} of {steps} not significant: they divide smooth curves because "
            f"{count(number, 'cluster')} were given."
        )
    share = getattr(model, f"{side}_cluster_votes_").get(number, 1.0)
    if getattr(model, f"n_{side}_clusters") is None and share < _DOUBTFUL:
        clusters = count(number, f"{side} cluster")
        yield f"Only {share:.0%} of the draws found {clusters}: the number is uncertain."


def _doubts_about_members(model: Any, side: str) -> Iterator[str]:
    confidence = getattr(model, f"{side}_confidence_", None)
    if confidence is None:
        return
    # Columns that were left out of a table are in no cluster.
    confidence = np.asarray(confidence)[np.asarray(getattr(model, f"{side}_labels_")) >= 0]
    doubtful = int((confidence < _DOUBTFUL).sum())
    if doubtful >= max(0.05 * len(confidence), 1):
        yield (
            f"The confidence of {count(doubtful, side)} of {len(confidence)} is below "
            f"{_DOUBTFUL:g}: check them before you rely on the clusters."
        )


def _doubts_about_blocks(model: Any) -> Iterator[str]:
    candidates = getattr(model, "candidates_", ())
    if candidates and model.n_row_clusters_ == model.n_column_clusters_ == 1:
        yield "No division into blocks describes the matrix better than a single block."
        return
    if len(candidates) < 2 or (model.n_row_clusters, model.n_column_clusters) != (None, None):
        return
    chosen, other = candidates[:2]
    lead = chosen.score - other.score
    near = {
        "icl": lead < _NEAR_ICL,
        "jump": other.score > _NEAR_JUMP * chosen.score,
        "reproducibility": lead < _NEAR_REPRODUCIBLE,
    }[chosen.criterion]
    if near:
        yield (
            f"{other.n_row_clusters} x {other.n_column_clusters} blocks are supported nearly as "
            f"well as {chosen.n_row_clusters} x {chosen.n_column_clusters}."
        )
