"""The reference runs, each with its matrix made anew and checked."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

DATA = Path(__file__).parent / "data"
RUN_NAMES = sorted(
    path.stem for path in DATA.glob("*.npz") if not path.stem.startswith(("trace_", "jumps_golden"))
)
TRACE_NAMES = sorted(path.stem.removeprefix("trace_") for path in DATA.glob("trace_*.npz"))
LOSSES = {"l2": "square", "kl": "kl"}


@dataclass(frozen=True)
class GoldenRun:
    """One run of the authors' program in our own words.

    Labels are as stored: from 1, and all 0 where no jump was found. `stored` has
    everything else, under the names that data/README.md explains.
    """

    name: str
    matrix: np.ndarray
    reg: float
    loss: str
    row_labels: np.ndarray
    column_labels: np.ndarray
    row_jumps: np.ndarray
    column_jumps: np.ndarray
    row_log_scaling: np.ndarray
    column_log_scaling: np.ndarray
    row_true: np.ndarray
    column_true: np.ndarray
    stored: dict[str, np.ndarray]


@cache
def load_run(name: str) -> GoldenRun:
    stored = load_npz(name)
    return GoldenRun(
        name=name,
        matrix=regenerate(stored),
        reg=float(stored["gamma"]),
        loss=LOSSES[str(stored["loss"])],
        row_labels=stored["z_out"],
        column_labels=stored["w_out"],
        row_jumps=stored["jumps_rows"],
        column_jumps=stored["jumps_cols"],
        row_log_scaling=np.log(stored["beta_rows"]),
        column_log_scaling=np.log(stored["beta_cols"]),
        row_true=stored["z_true"],
        column_true=stored["w_true"],
        stored=stored,
    )


def load_trace(name: str) -> dict[str, np.ndarray]:
    """Every intermediate of the run `name`."""
    return load_npz(f"trace_{name}")


def load_jump_cases() -> list[tuple[str, np.ndarray, np.ndarray, np.ndarray]]:
    """Key, sorted values, jumps and labels of every case of the detector alone."""
    stored = load_npz("jumps_golden")
    return [
        (str(key), stored[f"v__{key}"], stored[f"j__{key}"], stored[f"lab__{key}"])
        for key in stored["keys"]
    ]


def load_error_cases() -> list[dict]:
    """Partitions with the authors' error, where it is defined."""
    cases = json.loads((DATA / "cce_golden.json").read_text())
    return [case for case in cases if case["status"] != "undefined"]


def load_npz(name: str) -> dict[str, np.ndarray]:
    with np.load(DATA / f"{name}.npz", allow_pickle=False) as stored:
        return dict(stored)


def regenerate(stored: dict[str, np.ndarray]) -> np.ndarray:
    """Make the matrix of a run from its seed; fail if it is not the one that was used."""
    n_rows, n_columns = int(stored["n"]), int(stored["d"])
    means = stored["mu"]
    rng = np.random.default_rng(int(stored["seed"]))
    rows = rng.choice(len(means), size=n_rows, p=stored["prop_rows"] / stored["prop_rows"].sum())
    columns = rng.choice(
        means.shape[1], size=n_columns, p=stored["prop_cols"] / stored["prop_cols"].sum()
    )
    noise = rng.standard_normal((n_rows, n_columns))
    matrix = means[rows][:, columns] + float(stored["sigma_noise"]) * noise

    np.testing.assert_array_equal(rows, stored["z_true"])
    np.testing.assert_array_equal(columns, stored["w_true"])
    i, j = stored["X_probe_ij"].T
    np.testing.assert_array_equal(matrix[i, j], stored["X_probe"])
    np.testing.assert_allclose(matrix.sum(), stored["X_sum"], rtol=1e-13)
    np.testing.assert_allclose((matrix**2).sum(), stored["X_sumsq"], rtol=1e-13)
    if "X" in stored:
        np.testing.assert_array_equal(matrix, stored["X"])
    return matrix
