"""Planted tables of numbers, counts and categories with gaps: all kinds together, and each alone.

Rows are of five clusters; each table has eight columns of each kind and a fifth of its cells are
gaps. The numbers of clusters are found from all columns; each kind alone is told them.
"""

import argparse

import numpy as np

from benchmarks.record import store
from ccot import TransportCoclustering
from ccot.metrics import error_rate
from tests.blocks.tables import draw_table, of_kind

KINDS = {"number": "numbers", "count": "counts", "word": "categories"}
N_CLUSTERS = 5


def trial(seed: int) -> dict:
    table, truth = draw_table(seed)
    model = TransportCoclustering(random_state=seed).fit(table)
    alone = {
        kind: error_rate(
            truth,
            TransportCoclustering(N_CLUSTERS, random_state=seed)
            .fit(of_kind(table, kind))
            .row_labels_,
        )
        for kind in KINDS
    }
    return {
        "seed": seed,
        "row_clusters": model.n_row_clusters_,
        "row_error": round(error_rate(truth, model.row_labels_), 5),
        **{kind: round(error, 5) for kind, error in alone.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=100)
    arguments = parser.parse_args()
    trials = []
    for seed in range(arguments.seeds):
        trials.append(trial(seed))
        if seed % 10 == 9:
            print(seed + 1, flush=True)
    right = [one["row_clusters"] == N_CLUSTERS for one in trials]
    summary = {
        "tables": len(trials),
        "shape": list(draw_table(0)[0].shape),
        "number_right": int(np.sum(right)),
        "row_error": round(float(np.mean([one["row_error"] for one in trials])), 4),
        "alone": {kind: round(float(np.mean([one[kind] for one in trials])), 4) for kind in KINDS},
        "least_alone": {kind: min(one[kind] for one in trials) for kind in KINDS},
    }
    print(summary)
    print(f"stored {store('mixed_tables', {'summary': summary, 'trials': trials})}")


if __name__ == "__main__":
    main()
