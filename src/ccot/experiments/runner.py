"""Runs tasks over processes and keeps every trial the moment it is finished."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from joblib import Parallel, delayed, parallel_config
from threadpoolctl import threadpool_limits

from ccot.experiments.protocol import Protocol, Task, Trial, run_task
from ccot.experiments.store import TrialStore, sort_trials
from ccot.runtime.run import Progress, no_progress


def run_protocol(
    protocol: Protocol, folder: str | Path, *, n_jobs: int = 1, progress: Progress = no_progress
) -> list[Trial]:
    """Carry out what of a protocol a folder does not have yet, and return all of it."""
    tasks = protocol.tasks()
    with TrialStore(folder) as store:
        missing = [task for task in tasks if task not in store.trials]
        kept = len(tasks) - len(missing)
        progress("trials", kept, len(tasks))
        for number, trial in enumerate(run_tasks(missing, n_jobs), start=1):
            store.add(trial)
            progress("trials", kept + number, len(tasks))
        store.checkpoint()
        return sort_trials(store.trials[task] for task in tasks)


def run_tasks(tasks: Sequence[Task], n_jobs: int) -> Iterator[Trial]:
    """Yield trials in the order in which they are finished."""
    # One thread each, here and in the other processes: sums then come out alike everywhere.
    with threadpool_limits(1), parallel_config("loky", inner_max_num_threads=1):
        yield from Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)(
            delayed(run_task)(task) for task in tasks
        )
