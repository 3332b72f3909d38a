"""Fits killed at random moments, again and again, until one of them gets through.

Every fit runs in a process of its own, keeps a checkpoint, and is killed (kill -9; in the last case
Ctrl-C) at a moment drawn from the time that it takes undisturbed. It is begun again with the same
arguments until it is done, and its model file compared with that of the undisturbed fit, byte for
byte. Pieces are written much more often than usual, so that many kills hit a file half written.

Then the price: the share of the time of longer fits that goes into checkpoints as they are.
"""

from __future__ import annotations

import argparse
import multiprocessing as mp
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.record import RESULTS, load, of_this_run, store
from ccot import CCOT, CCOTGW, TransportCoclustering
from ccot.blocks import streaming as stream
from ccot.cli import app
from ccot.cli.errors import INTERRUPTED
from ccot.datasets import make_latent_blocks
from ccot.persistence import checkpoint, checkpoint_files
from ccot.sources import FunctionSource

NAME = "faults"
MEANS = np.array([[4.0, 0.0, 2.0, 1.0], [1.0, 5.0, 1.0, 3.0], [2.0, 1.0, 0.0, 6.0]])
SECONDS_BETWEEN_WRITES = 0.02


# Matrices -------------------------------------------------------------------------------------


def crisp(n_rows: int, n_columns: int, sigma: float = 0.05) -> np.ndarray:
    return make_latent_blocks(MEANS, n_rows, n_columns, sigma=sigma, random_state=0).data


def noisy(n_rows: int, n_columns: int) -> np.ndarray:
    return crisp(n_rows, n_columns, sigma=4.0)


def counts(n_rows: int, n_columns: int) -> sp.csr_array:
    rng = np.random.default_rng(0)
    rows, columns = rng.integers(3, size=n_rows), rng.integers(4, size=n_columns)
    return sp.csr_array(rng.poisson(0.1 + 0.1 * MEANS[rows][:, columns]).astype(float))


def streamed(n_rows: int, n_columns: int) -> FunctionSource:
    profiles = MEANS[:, np.arange(n_columns) % 4]

    def make(first: int, last: int) -> np.ndarray:
        rng = np.random.default_rng([7, first])
        return profiles[rng.integers(3, size=last - first)] + 0.3 * rng.normal(
            size=(last - first, n_columns)
        )

    return FunctionSource(make, (n_rows, n_columns), part_rows=5_000)


# Cases ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """What is fitted to what, in a size for a stress and in one for a price.

    Without a model the command line fits; ``how`` it is stopped is the name of a signal.
    """

    make: Callable[[int, int], Any]
    model: Callable[[], Any] | None
    size: tuple[int, int]
    long_size: tuple[int, int] | None = None
    how: str = "SIGKILL"


CASES = {
    "CCOT": Case(crisp, lambda: CCOT(random_state=0), (6000, 300), (40_000, 800)),
    "CCOT, reg=cv": Case(crisp, lambda: CCOT(reg="cv", random_state=0), (300, 100), (3000, 400)),
    "CCOT, row by row": Case(
        streamed, lambda: CCOT(n_samplings=100, random_state=0), (400_000, 40), (20_000_000, 40)
    ),
    "CCOTGW": Case(crisp, lambda: CCOTGW(random_state=0), (120, 80), (1500, 1000)),
    "CCOTGW, landmarks": Case(
        crisp,
        lambda: CCOTGW(n_support=40, kernel_rank=100, random_state=0),
        (3000, 500),
        (300_000, 300),
    ),
    "TransportCoclustering": Case(
        noisy, lambda: TransportCoclustering(random_state=0), (200, 120), (12_000, 2000)
    ),
    "TransportCoclustering, counts": Case(
        counts, lambda: TransportCoclustering(random_state=0), (300, 200), (30_000, 3000)
    ),
    "TransportCoclustering, row by row": Case(
        streamed, lambda: TransportCoclustering(n_init=4, random_state=0), (60_000, 40),
        (3_000_000, 40),
    ),
    "ccot fit": Case(noisy, None, (200, 120)),
    "ccot fit, Ctrl-C": Case(noisy, None, (200, 120), how="SIGINT"),
}  # fmt: skip


def fit(name: str, folder: Path | None, out: Path, begun: Any, patience: float) -> None:
    """Fit, and write the model to a file."""
    os.environ["OMP_NUM_THREADS"] = "1"
    checkpoint.SECONDS, checkpoint.SHARE = patience, inf
    # Fewer rows than usual are searched for blocks, so that a short stream is one.
    stream.POOL_ENTRIES = 2**17
    case = CASES[name]
    data = case.make(*case.size)
    if case.model is None:
        command(data, folder, out, begun)
        return
    begun.send(time.monotonic())
    case.model().set_params(checkpoint=folder).fit(data).save(out)


def command(data: Any, folder: Path | None, out: Path, begun: Any) -> None:
    """Fit by the command line."""
    # As started from a terminal, whatever started this.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    folder = folder or out.with_suffix("")
    table, results = folder.with_suffix(".npy"), folder.with_suffix(".results")
    if not table.exists():
        np.save(table, data)
    how = ["--out", str(results), "--resume", "--no-report", "--quiet"]
    try:
        begun.send(time.monotonic())
        code = app(["fit", str(table), *how], standalone_mode=False)
    except KeyboardInterrupt:
        # Before the command was there to hear it, or when it was done.
        code = INTERRUPTED
    if code:
        sys.exit(code)
    shutil.copy(results / "model.ccot", out)


# Kills ----------------------------------------------------------------------------------------


def start(target: Callable[..., None], *arguments: Any) -> tuple[Any, float]:
    """Start a process; return it and the moment its fit began."""
    context = mp.get_context("forkserver")
    context.set_forkserver_preload(["ccot.persistence.checkpoint", "ccot.datasets"])
    told, begun = context.Pipe(duplex=False)
    process = context.Process(target=target, args=(*arguments, begun, SECONDS_BETWEEN_WRITES))
    process.start()
    # Only the process has the other end now: if it dies before it begins, nobody waits for it.
    begun.close()
    return process, told.recv()


def undisturbed(name: str, out: Path) -> float:
    """Fit once in peace, and return the seconds it took."""
    process, begun = start(fit, name, None, out)
    process.join()
    assert process.exitcode == 0, f"{name} failed undisturbed"
    return time.monotonic() - begun


def disturbed(name: str, seconds: float, folder: Path, out: Path, rng: Any, most: int) -> dict:
    """Fit until it gets through, killed at random moments before, at most so many times."""
    n_kills = n_torn = 0
    spent = 0.0
    while True:
        process, begun = start(fit, name, folder, out)
        # Later than the fit takes: it gets through in the end, however slow the machine became.
        process.join(rng.uniform(0, seconds) if n_kills < most else None)
        if process.exitcode is None:
            os.kill(process.pid, signal.Signals[CASES[name].how])
            process.join()
            n_kills += process.exitcode != 0
            n_torn += any(folder.parent.glob(f"{folder.stem}*/.*.part"))
        spent += time.monotonic() - begun
        if process.exitcode == 0:
            return {"n_kills": n_kills, "n_half_written": n_torn, "seconds": spent}
        assert process.exitcode in (-signal.SIGKILL, INTERRUPTED), f"{name} failed by itself"


def stress(name: str, n_kills: int, seed: int = 0) -> dict[str, Any]:
    """Kill fits of a case until so many were killed.

    Parameters
    ----------
    name : str
        One of ``CASES``.
    n_kills : int
        How many fits are to be killed.
    seed : int
        Of the moments.

    Returns
    -------
    dict
        Counts.
    """
    rng = np.random.default_rng(seed)
    runs: list[dict] = []
    n_identical = 0
    with tempfile.TemporaryDirectory() as scratch:
        expected = Path(scratch, "undisturbed.ccot")
        seconds = undisturbed(name, expected)
        while (left := n_kills - sum(run["n_kills"] for run in runs)) > 0:
            folder, out = Path(scratch, f"kept{len(runs)}"), Path(scratch, "out.ccot")
            runs.append(disturbed(name, seconds, folder, out, rng, left))
            if not runs[-1]["n_kills"]:
                # Nobody disturbed it after all: on a busy machine the first fit may have been slow.
                seconds = min(seconds, runs[-1]["seconds"])
            n_identical += out.read_bytes() == expected.read_bytes()
            out.unlink()
    return {
        "how": CASES[name].how,
        "n_fits": len(runs),
        "n_identical": n_identical,
        "n_kills": sum(run["n_kills"] for run in runs),
        "n_half_written": sum(run["n_half_written"] for run in runs),
        "seconds_undisturbed": round(seconds, 2),
        "seconds_a_fit": round(sum(run["seconds"] for run in runs) / len(runs), 2),
    }


# The price ------------------------------------------------------------------------------------


def price(name: str) -> dict[str, Any]:
    """Return what checkpoints cost a longer fit, with the usual time between writes."""
    context = mp.get_context("forkserver")
    told, answer = context.Pipe(duplex=False)
    with tempfile.TemporaryDirectory() as scratch:
        process = context.Process(target=fit_timed, args=(name, Path(scratch, "kept"), answer))
        process.start()
        answer.close()
        found = told.recv()
        process.join()
    return found


def clocks() -> np.ndarray:
    """Seconds on the clock, and of the processor."""
    return np.array([time.perf_counter(), time.process_time()])


def fit_timed(name: str, folder: Path, answer: Any) -> None:
    """Fit, and tell how much of the time went into the checkpoint."""
    case = CASES[name]
    assert case.model is not None
    assert case.long_size is not None
    data, model = case.make(*case.long_size), case.model()
    spent, written = np.zeros(2), []

    def timed(owner: Any, method: str) -> None:
        work = getattr(owner, method)

        def clocked(*arguments: Any, **options: Any) -> Any:
            nonlocal spent
            begun = clocks()
            try:
                return work(*arguments, **options)
            finally:
                spent += clocks() - begun

        setattr(owner, method, clocked)

    def counted(path: Path, *arguments: Any) -> Path:
        written.append(write(path, *arguments).stat().st_size)
        return path

    # What a fit does for its checkpoint: know its data, keep pieces, and the whole at the end.
    timed(checkpoint, "open_checkpoint")
    timed(checkpoint.CheckpointFolder, "_keep")
    timed(checkpoint.CheckpointFolder, "_close")
    write = checkpoint_files.write_values
    checkpoint_files.write_values = counted
    begun = clocks()
    model.set_params(checkpoint=folder).fit(data)
    whole = clocks() - begun
    answer.send(
        {
            "shape": list(case.long_size),
            "seconds": round(whole[0], 1),
            "seconds_checkpoint": round(spent[0], 2),
            "share": round(spent[0] / whole[0], 4),
            "processor_seconds": round(whole[1], 1),
            "processor_seconds_checkpoint": round(spent[1], 2),
            "processor_share": round(spent[1] / whole[1], 4),
            "n_writes": len(written),
            "megabytes_written": round(sum(written) / 1e6, 1),
        }
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=50, help="of each case; 0: none")
    parser.add_argument("--only", choices=CASES, help="one case")
    parser.add_argument("--no-prices", action="store_true", help="kill only")
    options = parser.parse_args()
    names = list(CASES) if options.only is None else [options.only]
    # What was measured before stays, unless it is measured again.
    stored = load(NAME) if (RESULTS / f"{NAME}.json").exists() else {}
    result = {part: stored.get(part, {}) for part in ("cases", "prices")}
    for name in names:
        if options.kills:
            result["cases"][name] = of_this_run(stress(name, options.kills))
            print(name, result["cases"][name], flush=True)
        if CASES[name].long_size is not None and not options.no_prices:
            result["prices"][name] = of_this_run(price(name))
            print(name, result["prices"][name], flush=True)
        store(NAME, result)


if __name__ == "__main__":
    main()
