"""Run every benchmark and store its results: ``python -m benchmarks.run``."""

import subprocess
import sys

from benchmarks.data import data_home

MODULES = ("detector", "nostructure", "quality", "speed", "robust", "scaling")
# These need matrices that are not ours to ship.
ON_REAL_DATA = ("real", "movielens", "movielens_study", "ratings", "service")


def main() -> None:
    for module in MODULES + (ON_REAL_DATA if data_home() else ()):
        print(f"== {module}", flush=True)
        subprocess.run([sys.executable, "-m", f"benchmarks.{module}"], check=True)


if __name__ == "__main__":
    main()
