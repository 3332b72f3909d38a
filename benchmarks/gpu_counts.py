"""TransportCoclustering on a GPU: seconds by phase, how busy the card is, and others beside it.

Sparse counts with planted blocks are drawn on the card, and fitted there and from a SciPy matrix.
Every step says what it saw and stores it, so that a run that is cut short keeps what it has; steps
that would begin after ``--limit`` seconds are left out::

    python -m benchmarks.gpu_counts --limit 180

The first matrix is also fitted with NumPy, to compare labels, and clustered by scanpy's recipe
where scanpy, igraph and leidenalg are installed.
"""

import argparse
import cProfile
import io
import json
import os
import pstats
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.metrics import normalized_mutual_info_score

from benchmarks.gpu_transport import card, differ, write
from benchmarks.large_blocks import CONTRAST, DENSE
from benchmarks.record import RESULTS, command
from ccot import TransportCoclustering
from ccot.blocks import fit as fitting
from ccot.blocks import start
from ccot.blocks.axes import n_entries
from ccot.estimators import transport
from ccot.metrics import error_rate
from ccot.runtime.backends import make_csr
from ccot.runtime.device_csr import to_scipy

# Rows, columns, and entries drawn for every row, of which some fall together.
SIZES = {
    "100,000 x 20,000": (100_000, 20_000, 490),
    "400,000 x 20,000": (400_000, 20_000, 570),
    "1,300,000 x 20,000": (1_300_000, 20_000, 800),
}
# Cells of one type are not all alike.
VARYING = {"100,000 x 20,000, rows vary": ((100_000, 20_000, 490), 0.5)}
# What is timed, each with the module that calls it.
PHASES = {
    "upload": (transport.TransportCoclustering, "_send"),
    "checks": (transport.TransportCoclustering, "_check_rows"),
    "choice of the family": (transport, "counts_on_device"),
    "logarithms, transposing, degrees": (fitting, "prepare_problem"),
    "singular vectors": (start, "embed"),
    "K-means": (start, "segment"),
    "sweeps of the starts": (start, "sweep"),
    "merges": (fitting, "build_hierarchy"),
    "numbers of clusters": (fitting, "select_numbers"),
    "cuts, splits and merges": (fitting, "_fit_by_icl"),
    "cuts": (fitting, "_fit_by_cut"),
    "assignment, confidence, block means": (fitting, "finish"),
    "what descriptions need": (transport.TransportCoclustering, "_keep_portraits"),
}


# Fits are repeated until they have taken so long together; their median is told.
ENOUGH_SECONDS = 2.0


def wait(device: str | None) -> None:
    if device is not None and device.startswith("cuda"):
        torch.cuda.synchronize()


def draw_counts(
    n_rows: int, n_columns: int, n_drawn: int, device: str, spread: float = 0.0
) -> tuple[Any, np.ndarray]:
    """Draw counts with 8 x 6 blocks and columns of unlike degrees on a device.

    Rows of one cluster differ by the spread, as cells of one type do: then no number of clusters is
    the right one, and halves of the data have to tell.
    """
    generator = torch.Generator(device).manual_seed(0)
    rows = torch.randint(len(DENSE), (n_rows,), device=device, generator=generator)
    n_kinds = int(DENSE.max()) + 1
    ends = torch.linspace(0, n_columns, n_kinds + 1, device=device).long()
    weight = np.ones((len(DENSE), n_kinds))
    np.put_along_axis(weight, DENSE, CONTRAST, axis=1)
    weight = torch.tensor(weight, device=device, dtype=torch.float32)
    parts = []
    for first in range(0, n_rows, 50_000):
        own = rows[first : first + 50_000]
        drawn = torch.rand((len(own), n_drawn), device=device, generator=generator)
        noise = torch.randn((len(own), n_kinds), device=device, generator=generator)
        share = (weight[own] * torch.exp(spread * noise)).cumsum(dim=1)
        share /= share[:, -1:].clone()
        kind = (drawn[:, :, None] > share[:, None, :-1]).sum(dim=2)
        within = torch.rand(drawn.shape, device=device, generator=generator) ** 1.5
        places = ends[kind] + (within * (ends[kind + 1] - ends[kind])).long()
        places = places.clamp(max=n_columns - 1).sort(dim=1).values
        new = torch.ones_like(places, dtype=torch.bool)
        new[:, 1:] = places[:, 1:] != places[:, :-1]
        index = new.flatten().nonzero()[:, 0]
        end = index.new_tensor([places.numel()])
        values = torch.diff(index, append=end).to(torch.float64)
        parts.append((new.sum(dim=1), places.flatten()[index].int(), values))
    counts, columns, values = (torch.cat(part) for part in zip(*parts, strict=True))
    starts = torch.zeros(n_rows + 1, dtype=torch.int32, device=device)
    starts[1:] = counts.cumsum(0)
    return make_csr(starts, columns, values, (n_rows, n_columns)), rows.cpu().numpy()


class PeakMemory:
    """How much more memory the process takes at its peak than when the block was entered."""

    def __enter__(self) -> "PeakMemory":
        self.first = self.largest = self._resident()
        self.over = threading.Event()
        self.watch = threading.Thread(target=self._look)
        self.watch.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self.over.set()
        self.watch.join()

    @property
    def gigabytes(self) -> float:
        return round((self.largest - self.first) / 1e9, 2)

    def _look(self) -> None:
        while not self.over.wait(0.02):
            self.largest = max(self.largest, self._resident())

    @staticmethod
    def _resident() -> int:
        # Without psutil, which machines with GPUs may lack.
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def fit(X: Any, device: str | None, n_jobs: int | None = None) -> tuple[Any, float]:
    wait(device)
    begun = time.perf_counter()
    model = TransportCoclustering(random_state=0, device=device, n_jobs=n_jobs).fit(X)
    wait(device)
    return model, time.perf_counter() - begun


@contextmanager
def timed_phases(device: str | None) -> Iterator[dict[str, float]]:
    """Time the phases of the fits within; the card is waited for around each."""
    seconds = dict.fromkeys(PHASES, 0.0)
    kept = {name: getattr(*place) for name, place in PHASES.items()}

    def timed(name: str, work: Callable) -> Callable:
        def run(*given: Any, **options: Any) -> Any:
            wait(device)
            begun = time.perf_counter()
            try:
                return work(*given, **options)
            finally:
                wait(device)
                seconds[name] += time.perf_counter() - begun

        return run

    for name, place in PHASES.items():
        setattr(*place, timed(name, kept[name]))
    try:
        yield seconds
    finally:
        for name, place in PHASES.items():
            setattr(*place, kept[name])


def watch_kernels(X: Any, device: str, seconds: float) -> dict:
    """Fit once more and return how long the card was busy, and with what."""
    # Watching slows the host down, not the card: the share is that of a fit that is not watched.
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as seen:
        fit(X, device)
    kernels = sorted(seen.key_averages(), key=lambda one: -one.self_device_time_total)
    busy = sum(one.self_device_time_total for one in kernels) / 1e6
    return {
        "busy_seconds": round(busy, 3),
        "busy_share": round(busy / seconds, 2),
        "kernels": [
            {"name": one.key[:70], "calls": one.count,
             "milliseconds": round(one.self_device_time_total / 1e3, 1)}
            for one in kernels[:15]
        ],
    }  # fmt: skip


def watch_host(X: Any, device: str) -> list[str]:
    """Fit once more and return where the processor spends its time."""
    profile = cProfile.Profile(time.process_time)
    profile.runcall(fit, X, device)
    text = io.StringIO()
    pstats.Stats(profile, stream=text).sort_stats("tottime").print_stats(25)
    return [line.strip()[-110:] for line in text.getvalue().splitlines()[7:] if line.strip()]


def measure(name: str, X: Any, rows: np.ndarray, device: str, watched: bool) -> dict:
    """Fit, then fit again by phase and, if watched, with profiles of the card and the host."""
    on_gpu = device.startswith("cuda")
    if on_gpu:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    with PeakMemory() as host:
        model, seconds = fit(X, device)
    taken = [seconds]
    while sum(taken) < ENOUGH_SECONDS:
        taken.append(fit(X, device)[1])
    seconds = float(np.median(taken))
    peak = round(torch.cuda.max_memory_allocated(device) / 1e9, 2) if on_gpu else None
    cell: dict[str, Any] = {
        "matrix": name,
        "shape": list(X.shape),
        "entries": int(n_entries(X)),
        "from": "the card" if isinstance(X, torch.Tensor) else "SciPy",
        "seconds": round(seconds, 3),
        "fits": len(taken),
        "gpu_gigabytes": peak,
        "more_gigabytes_in_memory": host.gigabytes,
        "clusters": [model.n_row_clusters_, model.n_column_clusters_],
        "row_error": round(error_rate(rows, model.row_labels_), 5),
    }
    begun = time.perf_counter()
    model.describe_clusters()
    cell["seconds_to_describe"] = round(time.perf_counter() - begun, 3)
    with timed_phases(device) as phases:
        cell["seconds_by_phase_waiting"] = round(fit(X, device)[1], 3)
    cell["phases"] = {phase: round(took, 3) for phase, took in phases.items() if took}
    if on_gpu:
        cell |= watch_kernels(X, device, seconds)
    if watched:
        print(*watch_host(X, device), sep="\n")
    return cell | {"model": model}


def beside_numpy(X: Any, found: Any, n_jobs: int) -> dict:
    """Fit the same counts with NumPy on some threads, and compare the labels."""
    with timed_phases(None) as phases:
        model, seconds = fit(X, None, n_jobs)
    return {
        "threads": n_jobs,
        "seconds": round(seconds, 2),
        "phases": {phase: round(took, 2) for phase, took in phases.items() if took},
        "labels_that_differ": differ(found, model),
    }


def beside_scanpy(X: Any, rows: np.ndarray) -> dict:
    """Cluster the same counts by scanpy's recipe, on all cores."""
    import anndata
    import scanpy

    adata = anndata.AnnData(X.astype(np.float32))
    begun = time.perf_counter()
    scanpy.pp.normalize_total(adata)
    scanpy.pp.log1p(adata)
    scanpy.pp.highly_variable_genes(adata, n_top_genes=2000)
    scanpy.pp.pca(adata)
    scanpy.pp.neighbors(adata)
    scanpy.tl.leiden(adata, flavor="igraph", n_iterations=2)
    seconds = time.perf_counter() - begun
    labels = adata.obs["leiden"].cat.codes.to_numpy()
    return {
        "versions": {name.__name__: name.__version__ for name in (scanpy, anndata)},
        "cores": os.cpu_count(),
        "seconds": round(seconds, 2),
        "clusters": int(labels.max()) + 1,
        "nmi": round(float(normalized_mutual_info_score(rows, labels)), 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=RESULTS / "gpu_counts.json")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--limit", type=float, default=1e9, metavar="SECONDS")
    parser.add_argument("--shrink", type=int, default=1, help="divide rows and columns, to try")
    parser.add_argument("--jobs", type=int, nargs="*", default=(1, 16), help="threads of NumPy")
    parser.add_argument("--sizes", type=int, default=len(SIZES), help="how many of the sizes")
    asked = parser.parse_args()
    if asked.shrink > 1:
        fitting.HERE_ENTRIES = start.HERE_ENTRIES = 0
    result: dict[str, Any] = {"card": card(asked.device), "cells": [], "numpy": [], "scanpy": []}
    begun = time.perf_counter()
    for part, found in measurements(asked):
        result[part].append(found)
        print(json.dumps(found), f"--- {time.perf_counter() - begun:.1f} s", sep="\n", flush=True)
        write(asked.out, result, command())
        if time.perf_counter() - begun > asked.limit:
            break
    print(f"stored {asked.out}")


def measurements(asked: argparse.Namespace) -> Iterator[tuple[str, dict]]:
    """Yield what is measured, each with the list that it belongs to."""
    device = asked.device

    def draw(size: tuple[int, ...], spread: float = 0.0) -> tuple[Any, np.ndarray]:
        return draw_counts(*(number // asked.shrink for number in size), device, spread)

    # The first fit on a card waits for its libraries.
    fit(draw((20_000, 2_000, 250))[0], device)
    for name, size in list(SIZES.items())[: asked.sizes]:
        small = name == next(iter(SIZES))
        X, rows = draw(size)
        found = measure(name, X, rows, device, watched=small)
        model = found.pop("model")
        yield "cells", found
        host = to_scipy(X)
        del X
        found = measure(name, host, rows, device, watched=small)
        del found["model"]
        yield "cells", found
        for n_jobs in asked.jobs if small else ():
            yield "numpy", beside_numpy(host, model, n_jobs)
        if small and find_spec("scanpy"):
            yield "scanpy", beside_scanpy(host, rows)
    for name, (size, spread) in VARYING.items():
        found = measure(name, *draw(size, spread), device, watched=False)
        del found["model"]
        yield "cells", found


if __name__ == "__main__":
    main()
