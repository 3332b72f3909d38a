"""The paper's study of MovieLens-100K, kept as values: ``ccot paper movielens`` writes its page."""

import argparse

from benchmarks.data import need_data
from benchmarks.record import store
from ccot._version import __version__
from ccot.datasets import fetch_movielens_100k
from ccot.experiments.movielens import describe, fit_models
from ccot.runtime.progress import LineProgress


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    movies = fetch_movielens_100k(need_data())
    models = fit_models(movies, 0, quick, LineProgress("study"))
    study = describe(movies, models) | {"seed": 0, "quick": quick, "ccot": __version__}
    print(f"stored {store('movielens_study', study)}")


if __name__ == "__main__":
    main()
