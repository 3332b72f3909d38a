from dataclasses import replace

import pytest

from ccot.experiments.protocol import Protocol, Task, Trial, run_task


@pytest.fixture(scope="session")
def small() -> Protocol:
    """Three methods, two matrices of each set and overlap: 48 trials in a second or two."""
    return Protocol(n_trials=2, n_samplings=4, n_init=1, methods=("K-means", "ITCC", "CCOT"))


@pytest.fixture(scope="session")
def a_trial() -> Trial:
    return run_task(Task("D3", "published", 0, "K-means", 1, None))


@pytest.fixture(scope="session")
def make_trials(a_trial):
    """Return trials of made-up errors, one seed each; an error of None is a wrong number."""

    def make(method, errors, **more):
        return [
            replace(
                a_trial,
                method=method,
                seed=seed,
                error=0.5 if error is None else error,
                column_clusters=a_trial.true_column_clusters - (error is None),
                **more,
            )
            for seed, error in enumerate(errors)
        ]

    return make
