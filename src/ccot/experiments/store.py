"""Trials: run over processes, and kept on disk in a journal and the Parquet files it goes into."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, get_type_hints

from joblib import Parallel, delayed, parallel_config
from threadpoolctl import threadpool_limits

from ccot.experiments import protocol as known
from ccot.experiments.protocol import Protocol, Task, Trial, run_task
from ccot.io.binary import check_installed
from ccot.persistence.atomic import locked_folder, write_file
from ccot.runtime.run import Progress, no_progress

JOURNAL, TRIALS, TIMINGS = "journal.jsonl", "trials.parquet", "timings.parquet"
MEASURED = ("seconds", "processor", "commit")
_KEY = tuple(field.name for field in fields(Task))


def run_protocol(
    protocol: Protocol,
    folder: str | Path,
    *,
    n_jobs: int = 1,
    progress: Progress = no_progress,
    run: Callable[[Task], Trial] = run_task,
) -> list[Trial]:
    """Carry out what of a protocol a folder does not have yet, and return all of it."""
    tasks = protocol.tasks()
    with TrialStore(folder) as store:
        missing = [task for task in tasks if task not in store.trials]
        kept = len(tasks) - len(missing)
        progress("trials", kept, len(tasks))
        for number, trial in enumerate(run_tasks(missing, n_jobs, run), start=1):
            store.add(trial)
            progress("trials", kept + number, len(tasks))
        store.checkpoint()
        return sort_trials(store.trials[task] for task in tasks)


def run_tasks(tasks: Sequence[Task], n_jobs: int, run: Callable[[Task], Trial]) -> Iterator[Trial]:
    """Yield trials in the order in which they are finished."""
    # One thread each, here and in the other processes: sums then come out alike everywhere.
    with threadpool_limits(1), parallel_config("loky", inner_max_num_threads=1):
        yield from Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)(
            delayed(run)(task) for task in tasks
        )


class TrialStore(AbstractContextManager["TrialStore"]):
    """The trials of one folder, open for more; those that cannot be read are a ValueError."""

    def __init__(self, folder: str | Path) -> None:
        with ExitStack() as claim:
            self.folder = claim.enter_context(locked_folder(folder))
            self.trials = _read(self.folder)
            self._journal = (self.folder / JOURNAL).open("ab")
            self._journal.truncate(len(_lines(self.folder / JOURNAL)))
            self._claim = claim.pop_all()

    def add(self, trial: Trial) -> None:
        """Keep a trial: when this returns, it is on the disk."""
        self._journal.write(json.dumps(asdict(trial)).encode() + b"\n")
        self._journal.flush()
        os.fsync(self._journal.fileno())
        self.trials[trial.task] = trial

    def checkpoint(self) -> None:
        """Write all trials to the Parquet files, and begin a new journal."""
        trials = sort_trials(self.trials.values())
        # The journal goes last: whatever moment this is killed at, no trial is only in memory.
        _write(self.folder / TIMINGS, trials, (*_KEY, *MEASURED))
        _write(self.folder / TRIALS, trials, _RESULTS)
        self._journal.truncate(0)

    def __exit__(self, *error: object) -> None:
        """Let go of the folder; an empty journal is removed."""
        self._journal.close()
        journal = self.folder / JOURNAL
        if journal.exists() and journal.stat().st_size == 0:
            journal.unlink()
        self._claim.close()


def load_trials(folder: str | Path) -> list[Trial]:
    """Return the trials of a folder, in order."""
    return sort_trials(_read(Path(folder)).values())


def sort_trials(trials: Iterable[Trial]) -> list[Trial]:
    """Return trials in the order in which they are stored."""
    return sorted(trials, key=_sort_key)


def _sort_key(trial: Trial) -> tuple[Any, ...]:
    """Names that the protocol has come first, in its order."""
    orders = known.OVERLAPS, known.DATA_SETS, known.METHODS
    named = zip(orders, (trial.overlap, trial.data_set, trial.method), strict=True)
    return (
        *((order.index(name) if name in order else len(order), name) for order, name in named),
        trial.n_init or 0,
        trial.n_samplings or 0,
        trial.seed,
    )


def _lines(journal: Path) -> bytes:
    """Return the complete lines of a journal; one that was being written does not count."""
    content = journal.read_bytes() if journal.exists() else b""
    return content[: content.rfind(b"\n") + 1]


_RESULTS = tuple(field.name for field in fields(Trial) if field.name not in MEASURED)


def _read(folder: Path) -> dict[Task, Trial]:
    """Return the trials of a folder: checkpointed, then journalled."""
    try:
        journalled = map(json.loads, _lines(folder / JOURNAL).splitlines())
        trials = [Trial(**row) for row in (*_read_parquet(folder), *journalled)]
    except (ValueError, KeyError, TypeError, OSError) as error:
        reason = " ".join(str(error).split())[:120]
        raise ValueError(
            f"the trials in {folder} cannot be read ({reason}): put {TRIALS}, {TIMINGS} and "
            f"{JOURNAL} back from a copy, or remove them to start again"
        ) from error
    return {trial.task: trial for trial in trials}


def _read_parquet(folder: Path) -> list[dict[str, Any]]:
    if not (folder / TRIALS).exists():
        return []
    parquet = _pyarrow().parquet
    results = parquet.read_table(folder / TRIALS).to_pylist()
    timings = parquet.read_table(folder / TIMINGS).to_pylist()
    measured = {tuple(row[name] for name in _KEY): row for row in timings}
    return [{**row, **measured[tuple(row[name] for name in _KEY)]} for row in results]


def _write(path: Path, trials: Sequence[Trial], names: Sequence[str]) -> None:
    pa = _pyarrow()
    hints = get_type_hints(Trial)
    schema = pa.schema([_column(pa, name, hints[name]) for name in names])
    rows = [{name: getattr(trial, name) for name in names} for trial in trials]
    sink = pa.BufferOutputStream()
    pa.parquet.write_table(pa.Table.from_pylist(rows, schema=schema), sink, compression="zstd")
    write_file(path, sink.getvalue().to_pybytes())


def _column(pa: Any, name: str, hint: Any) -> Any:
    kinds = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    plain = next(kind for kind in (hint, *getattr(hint, "__args__", ())) if kind in kinds)
    return pa.field(name, kinds[plain], nullable=hint not in kinds)


def _pyarrow() -> Any:
    check_installed("pyarrow", "trials are kept in Parquet files, which", "paper")
    import pyarrow
    import pyarrow.parquet

    return pyarrow
