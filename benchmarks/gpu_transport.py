"""TransportCoclustering on a GPU against NumPy beside it: the same matrices, the same seed.

Dense values and sparse counts with planted blocks, large enough that the matrix is what costs, and
the simulated sets of the paper, which are so small that only their labels are of interest. What was
seen is written after every fit, so that a run that is cut short keeps what it has::

    python -m benchmarks.gpu_transport --out benchmarks/results/gpu_transport.json
"""

import argparse
import json
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from benchmarks.large_blocks import planted_counts
from benchmarks.record import RESULTS, commit
from ccot import TransportCoclustering
from ccot.datasets import load_simulated, make_latent_blocks
from ccot.experiments.bench.facts import PACKAGES, machine_facts
from ccot.metrics import error_rate

SETS = ("D1", "D2", "D3", "D4")
MEANS = np.array(
    [[1.0, -0.5, 0.3, -1.1], [-0.8, 0.9, 1.2, 0.1], [0.2, -1.2, -0.4, 0.8], [-0.3, 0.4, -0.9, -0.2],
     [0.7, 1.1, -0.1, 0.5]]
)  # fmt: skip
SIGMA = 3.0


def is_installed(name: str) -> bool:
    try:
        return bool(version(name))
    except PackageNotFoundError:
        return False


def card(device: str) -> dict:
    """The machine that PyTorch computes on."""
    if not device.startswith("cuda"):
        return {"name": device, "torch": torch.__version__}
    seen = torch.cuda.get_device_properties(device)
    return {
        "name": seen.name,
        "gigabytes": round(seen.total_memory / 2**30, 1),
        "multiprocessors": seen.multi_processor_count,
        "torch": torch.__version__,
    }


def fit(X: Any, device: str | None) -> tuple[TransportCoclustering, float, float | None]:
    """Fit; return the model, seconds, and the largest amount of GPU memory in gigabytes."""
    on_gpu = device is not None and device.startswith("cuda")
    if on_gpu:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    start = time.perf_counter()
    model = TransportCoclustering(random_state=0, device=device).fit(X)
    seconds = time.perf_counter() - start
    peak = torch.cuda.max_memory_allocated(device) / 1e9 if on_gpu else None
    return model, seconds, peak


def differ(one: TransportCoclustering, other: TransportCoclustering) -> list[int]:
    """Labels that differ, of rows and of columns."""
    names = ("row_labels_", "column_labels_")
    return [int(np.count_nonzero(getattr(one, n) != getattr(other, n))) for n in names]


def compare(name: str, X: Any, rows: np.ndarray, columns: np.ndarray, device: str):
    """Yield what is known after the fit on the device, then after that with NumPy."""
    is_sparse = sp.issparse(X)
    gpu, seconds, peak = fit(X, device)
    cell = {
        "matrix": name,
        "shape": list(X.shape),
        "entries": int(X.nnz if is_sparse else X.size),
        "gigabytes": round((X.data.nbytes + X.indices.nbytes if is_sparse else X.nbytes) / 1e9, 3),
        "family": gpu.family_,
        "seconds_gpu": round(seconds, 2),
        "gpu_gigabytes": None if peak is None else round(peak, 2),
        "clusters": [gpu.n_row_clusters_, gpu.n_column_clusters_],
        "row_error": round(error_rate(rows, gpu.row_labels_), 5),
        "column_error": round(error_rate(columns, gpu.column_labels_), 5),
    }
    yield cell
    cpu, seconds, _ = fit(X, None)
    yield cell | {
        "seconds_numpy": round(seconds, 2),
        "times_faster": round(seconds / cell["seconds_gpu"], 2),
        "labels_that_differ": differ(gpu, cpu),
        "clusters_numpy": [cpu.n_row_clusters_, cpu.n_column_clusters_],
        "partitions_differ_by": [
            round(error_rate(cpu.row_labels_, gpu.row_labels_), 6),
            round(error_rate(cpu.column_labels_, gpu.column_labels_), 6),
        ],
    }


def dense_case(shape: tuple[int, int]) -> tuple[Any, np.ndarray, np.ndarray]:
    made = make_latent_blocks(MEANS, *shape, sigma=SIGMA, random_state=0)
    return made.data, made.row_labels, made.column_labels


def same_labels(n_seeds: int, device: str) -> dict:
    """Fits of the simulated sets, at both overlaps, on which the device and NumPy agree."""
    equal = dict.fromkeys(SETS, 0)
    for name in SETS:
        for overlap in ("published", "calibrated"):
            for seed in range(n_seeds):
                X = load_simulated(name, random_state=seed, overlap=overlap).data
                equal[name] += not any(differ(fit(X, device)[0], fit(X, None)[0]))
    return {"fits_a_set": 2 * n_seeds, "fits_with_equal_labels": equal}


def write(path: Path, result: dict, command: str) -> None:
    facts = machine_facts(command, [name for name in PACKAGES if is_installed(name)])
    facts["commit"] = commit()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"facts": facts, **result}, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=RESULTS / "gpu_transport.json")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--dense", type=int, nargs=2, default=(20_000, 2_000), metavar="SIZE")
    parser.add_argument("--sparse", type=int, default=200_000, metavar="ROWS")
    parser.add_argument("--seeds", type=int, default=1)
    asked = parser.parse_args()
    command = (
        f"python -m benchmarks.gpu_transport --dense {asked.dense[0]} {asked.dense[1]} "
        f"--sparse {asked.sparse} --seeds {asked.seeds}"
    )
    # The first fit on a card waits for its libraries.
    start = time.perf_counter()
    for X in (dense_case((900, 500))[0], planted_counts(2_000)[0]):
        fit(X, asked.device)
    result: dict[str, Any] = {
        "card": card(asked.device),
        "warm_up_seconds": round(time.perf_counter() - start, 2),
        "sigma": SIGMA,
        "cells": [],
    }
    makes = {
        "dense values, 5 x 4 blocks": lambda: dense_case(tuple(asked.dense)),
        "sparse counts, 8 x 6 blocks": lambda: planted_counts(asked.sparse),
    }
    for name, make in makes.items():
        result["cells"].append({})
        for cell in compare(name, *make(), asked.device):
            result["cells"][-1] = cell
            write(asked.out, result, command)
            print(cell, flush=True)
    result["labels"] = same_labels(asked.seeds, asked.device)
    print(result["labels"], flush=True)
    write(asked.out, result, command)
    print(f"stored {asked.out}")


if __name__ == "__main__":
    main()
