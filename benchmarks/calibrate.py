"""The calibrated noise: at which sigma the rivals have the errors that the paper reports for them.

Reads the stored sweep (`python -m benchmarks.paper --parts sweep`). The mean error of each rival is
interpolated between the levels, linearly in the logarithms of sigma and of the error (at least
.001). The sigma of a set is the one at which the median over the rivals of the distance between
the logarithms of our error and of the paper's is smallest; the paper's dashes are left out.
"""

import sys

import numpy as np

from benchmarks.paper import FOLDER
from benchmarks.readings import load_matrix, sigma_of
from benchmarks.record import store
from ccot.experiments.protocol import DATA_SETS, RIVALS, Trial
from ccot.experiments.published import TABLE2
from ccot.experiments.store import load_trials

FLOOR = 1e-3
GRID = 2001


def curve(trials: list[Trial], name: str, method: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the levels of a sweep and the mean errors there."""
    errors: dict[float, list[float]] = {}
    for trial in trials:
        sigma = sigma_of(trial.overlap)
        if sigma is not None and (trial.data_set, trial.method) == (name, method):
            errors.setdefault(sigma, []).append(trial.error)
    levels = sorted(errors)
    return np.array(levels), np.array([np.mean(errors[level]) for level in levels])


def log_error(sigmas: np.ndarray, levels: np.ndarray, means: np.ndarray) -> np.ndarray:
    return np.interp(np.log(sigmas), np.log(levels), np.log(np.maximum(means, FLOOR)))


def reaches(levels: np.ndarray, means: np.ndarray, target: float) -> float | None:
    """Return the smallest sigma at which a curve has the error that is asked for."""
    sigmas = np.geomspace(levels[0], levels[-1], GRID)
    reached = log_error(sigmas, levels, means) >= np.log(max(target, FLOOR))
    return float(sigmas[reached.argmax()]) if reached.any() else None


def calibrate(trials: list[Trial], name: str) -> dict:
    printed = {m: TABLE2[m][name].mean for m in RIVALS if TABLE2[m][name] is not None}
    curves = {method: curve(trials, name, method) for method in printed}
    levels = next(iter(curves.values()))[0]
    sigmas = np.geomspace(levels[0], levels[-1], GRID)
    distance = np.median(
        [abs(log_error(sigmas, *curves[m]) - np.log(max(printed[m], FLOOR))) for m in printed],
        axis=0,
    )
    best = int(distance.argmin())
    return {
        "set": name,
        "sigma": float(sigmas[best]),
        "median_ratio": float(np.exp(distance[best])),
        "used": float(load_matrix(name, "calibrated", 0).sigma),
        "reaches": {method: reaches(*curves[method], printed[method]) for method in printed},
    }


def main() -> int:
    trials = [t for t in load_trials(FOLDER) if sigma_of(t.overlap) is not None]
    if not trials:
        print("no sweep is stored: python -m benchmarks.paper --parts sweep")
        return 1
    cells = [calibrate(trials, name) for name in DATA_SETS]
    for cell in cells:
        print(cell)
    print(f"stored {store('calibrate', {'cells': cells})}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
