"""The two algorithms against the same work done with POT, side by side in one run."""

import argparse
import time
import tracemalloc

import numpy as np
import ot

from benchmarks.record import store
from ccot import CCOT, CCOTGW
from ccot.datasets import load_simulated
from ccot.metrics import error_rate
from ccot.scalings.kernels import gaussian_kernel, mean_distance

REG = 0.2


def seconds(work, *arguments) -> float:
    start = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - start


def ours(matrix: np.ndarray, n_draws: int) -> CCOT:
    return CCOT(reg=REG, n_samplings=n_draws, random_state=0, n_jobs=2).fit(matrix)


def pot_loop(matrix: np.ndarray, n_draws: int, method: str) -> None:
    """The draws and their transport alone: no jumps, no vote."""
    rng = np.random.default_rng(0)
    n_rows, n_columns = matrix.shape
    mass = np.full(n_columns, 1 / n_columns)
    for _ in range(n_draws):
        square = matrix[rng.choice(n_rows, n_columns, replace=False)]
        cost = ot.dist(square, np.ascontiguousarray(square.T))
        ot.sinkhorn(mass, mass, cost, REG * np.median(cost), method=method)


def gw_ours(matrix: np.ndarray) -> CCOTGW:
    return CCOTGW(exact_refinement=False).fit(matrix)


def gw_pot(matrix: np.ndarray) -> None:
    kernels = [gaussian_kernel(side, side, mean_distance(side)) for side in (matrix, matrix.T)]
    masses = [np.full(len(kernel), 1 / len(kernel)) for kernel in kernels]
    ot.gromov.entropic_gromov_barycenters(
        len(matrix), kernels, masses, masses[0], [0.5, 0.5], loss_fun="square_loss", epsilon=1.0,
        max_iter=10, tol=1e-4, init_C=kernels[0], symmetric=True,
        numItermax=100, stopThr=1e-6,
    )  # fmt: skip


def compare(name: str, ours_seconds: list, theirs_seconds: list, **more) -> dict:
    ratios = np.array(theirs_seconds) / np.array(ours_seconds)
    result = {
        "comparison": name,
        "times_faster": float(np.median(ratios)),
        "ratios": ratios.round(3).tolist(),
        "seconds_ours": float(np.median(ours_seconds)),
        "seconds_theirs": float(np.median(theirs_seconds)),
        **more,
    }
    print(result, flush=True)
    return result


def same_labels_in_float64(matrix: np.ndarray, n_draws: int) -> bool:
    """Fit as :func:`ours` does, but with every product in float64."""
    from ccot.scalings import draws

    trusted = draws._FLOAT32_RANGE
    draws._FLOAT32_RANGE = 0.0
    try:
        double = ours(matrix, n_draws)
    finally:
        draws._FLOAT32_RANGE = trusted
    single = ours(matrix, n_draws)
    return not any(
        error_rate(getattr(double, side), getattr(single, side))
        for side in ("row_labels_", "column_labels_")
    )


def peak_megabytes(work, *arguments) -> float:
    tracemalloc.start()
    work(*arguments)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--draws", type=int, default=1000)
    arguments = parser.parse_args()
    matrix = load_simulated("D1", random_state=1).data
    ours(matrix, 20), pot_loop(matrix, 5, "sinkhorn"), pot_loop(matrix, 2, "sinkhorn_log")
    fast, plain, log, gw_fast, gw_slow = [], [], [], [], []
    n_plain, n_log = arguments.draws // 10, max(1, arguments.draws // 100)
    for _ in range(arguments.repeats):
        plain.append(seconds(pot_loop, matrix, n_plain, "sinkhorn") / n_plain)
        fast.append(seconds(ours, matrix, arguments.draws) / arguments.draws)
        log.append(seconds(pot_loop, matrix, n_log, "sinkhorn_log") / n_log)
        gw_fast.append(seconds(gw_ours, matrix))
        gw_slow.append(seconds(gw_pot, matrix))
    per_draw = {"unit": "one draw of D1, jumps and vote included in ours"}
    store(
        "speed",
        {
            "comparisons": [
                compare("CCOT, POT's plain loop", fast, plain, **per_draw),
                compare("CCOT, POT's log-domain loop", fast, log, **per_draw),
                compare("CCOTGW without refinement, POT's barycentre", gw_fast, gw_slow, unit="D1"),
            ],
            "draws": arguments.draws,
            "labels_equal_float64": same_labels_in_float64(matrix, arguments.draws),
            "peak_megabytes": peak_megabytes(ours, matrix, arguments.draws),
        },
    )


if __name__ == "__main__":
    main()
