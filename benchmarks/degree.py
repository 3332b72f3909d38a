"""What the scalings of CCOT-GW are: their correlation with the kernel degree."""

import argparse

import numpy as np

from benchmarks.record import store
from ccot import CCOTGW
from ccot.datasets import load_simulated
from ccot.scalings.kernels import gaussian_kernel, mean_distance


def degree(points: np.ndarray) -> np.ndarray:
    """Mean similarity of every point to all points."""
    return gaussian_kernel(points, points, mean_distance(points)).mean(axis=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    cells = []
    for name in ("D1", "D2", "D3", "D4"):
        for loss in ("square", "kl"):
            for reg, refined in ((1.0, True), (1.0, False), (0.1, False), (0.05, False)):
                correlations = []
                for seed in range(arguments.seeds):
                    matrix = load_simulated(name, random_state=seed).data
                    model = CCOTGW(reg=reg, loss=loss, exact_refinement=refined).fit(matrix)
                    for log_scaling, points in (
                        (model.row_log_scaling_, matrix),
                        (model.column_log_scaling_, matrix.T),
                    ):
                        correlations.append(np.corrcoef(log_scaling, degree(points))[0, 1])
                weakest = min(correlations, key=abs)
                cells.append(
                    {
                        "set": name,
                        "loss": loss,
                        "reg": reg,
                        "exact_refinement": refined,
                        "weakest": float(weakest),
                    }
                )
                print(cells[-1], flush=True)
    print(f"stored {store('degree', {'seeds': arguments.seeds, 'cells': cells})}")


if __name__ == "__main__":
    main()
