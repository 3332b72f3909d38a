"""One fit in a process of its own, with one thread: time, peak memory, error."""

import ctypes
import gc
import math
import multiprocessing
import os
import signal
import tempfile
import time
import warnings
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from unittest.mock import patch

from sklearn import metrics
from threadpoolctl import threadpool_limits

from ccot.experiments.bench.cases import Case
from ccot.experiments.bench.rivals import Job, Rival
from ccot.metrics import coclustering_error

_STATUS = Path("/proc/self/status")
_READY = "ready"
_PATIENCE = 20
_SCORES = {
    "nmi": metrics.normalized_mutual_info_score,
    "ami": metrics.adjusted_mutual_info_score,
    "ari": metrics.adjusted_rand_score,
}


@dataclass(frozen=True)
class Limits:
    """When a fit is stopped: seconds of processor time, gigabytes it may ask for."""

    seconds: float = 60.0
    gigabytes: float = 4.0


def measure(case: Case, rival: Rival, seed: int, limits: Limits) -> dict[str, Any]:
    """Let a rival co-cluster a case in a process of its own."""
    context = _context()
    ours, theirs = context.Pipe(duplex=False)
    # sparsebm leaves a log where it stands.
    with tempfile.TemporaryDirectory() as folder:
        process = context.Process(
            target=_fit_alone, args=(theirs, folder, case, rival, seed, limits), daemon=True
        )
        process.start()
        theirs.close()
        try:
            return _listen(ours, limits)
        except EOFError:
            process.join()
            if process.exitcode == -signal.SIGXCPU:
                return {"status": _stopped(limits)}
            return {"status": f"ended with exit code {process.exitcode}"}
        finally:
            process.kill()
            process.join()


def _context() -> Any:
    """Return the context of a server that has imported everything; the first call starts it."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        raise OSError("the suite forks processes, which this system cannot: use Linux or macOS")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, "ot"])
    # POT imports every array library it finds and needs none of them here.
    libraries = ("PYTORCH", "JAX", "TENSORFLOW", "CUPY")
    with patch.dict(os.environ, {f"POT_BACKEND_DISABLE_{name}": "1" for name in libraries}):
        forkserver.ensure_running()
    return context


def _listen(answer: Connection, limits: Limits) -> dict[str, Any]:
    """Wait for word that all is ready, then for the result."""
    said: Any = _READY
    while said == _READY:
        # A process that hangs uses no processor time: it is waited for on the clock.
        if not answer.poll(_PATIENCE * limits.seconds):
            return {"status": _stopped(limits)}
        said = answer.recv()
    return said


def _stopped(limits: Limits) -> str:
    return f"stopped after {limits.seconds:g} s"


def _fit_alone(
    answer: Connection, folder: str, case: Case, rival: Rival, seed: int, limits: Limits
) -> None:
    import resource

    # What the server imported stays: looking through it for garbage takes longer than many a fit.
    gc.freeze()
    os.chdir(folder)
    warnings.simplefilter("ignore")
    allowed = int(limits.gigabytes * 2**30)
    resource.setrlimit(resource.RLIMIT_DATA, (allowed, allowed))
    try:
        with threadpool_limits(1):
            small = case.warm_up(seed)
            rival.fit(Job(small.matrix, small.numbers, seed, 2 if case.n_draws else None))
            planted = case.make(seed)
            answer.send(_READY)
            # The kernel counts whole seconds, and asks again before it kills.
            until = math.ceil(time.process_time() + limits.seconds)
            resource.setrlimit(resource.RLIMIT_CPU, (until, until + 5))
            answer.send(_fit(rival, planted, seed, case.n_draws))
    except TimeoutError:
        # Of a program that the rival started.
        answer.send({"status": _stopped(limits)})
    except MemoryError:
        answer.send({"status": f"asked for more than {limits.gigabytes:g} GB"})
    except Exception as error:
        answer.send({"status": f"failed: {' '.join(str(error).split())[:80]}"})


def _fit(rival: Rival, planted: Any, seed: int, n_draws: int | None) -> dict[str, Any]:
    job = Job(planted.matrix, planted.numbers, seed, n_draws)
    before = _forget_peak()
    clock, processor = time.perf_counter(), _processor_time()
    labels = rival.fit(job)
    clock, processor = time.perf_counter() - clock, _processor_time() - processor
    peak = _kilobytes("VmHWM")
    return {
        "status": "done",
        "seconds": round(clock, 5),
        "processor_seconds": round(processor, 5),
        "megabytes": None if before is None or peak is None else round((peak - before) / 1024, 2),
        **_quality(planted, labels),
    }


def _processor_time() -> float:
    """Return the seconds of this process and of programs that it has waited for."""
    import resource

    programs = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + programs.ru_utime + programs.ru_stime


def _quality(planted: Any, labels: Any) -> dict[str, Any]:
    if labels is None:
        return {"error": None, "row_clusters": None, "column_clusters": None}
    if planted.column_labels is None:
        found = {name: score(planted.row_labels, labels[0]) for name, score in _SCORES.items()}
        scores = {name: round(float(score), 4) for name, score in found.items()}
        return scores | {"row_clusters": len(set(labels[0].tolist()))}
    error = coclustering_error(planted.row_labels, planted.column_labels, *labels)
    rows, columns = (len(set(side.tolist())) for side in labels)
    return {"error": round(float(error), 5), "row_clusters": rows, "column_clusters": columns}


def _forget_peak() -> int | None:
    """Give back what making the matrix left behind; return the kilobytes in use."""
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _kilobytes("VmRSS")


def _kilobytes(what: str) -> int | None:
    if not _STATUS.exists():
        return None
    lines = dict(line.split(":", 1) for line in _STATUS.read_text().splitlines())
    return int(lines[what].split()[0])
