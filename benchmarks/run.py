"""Run the suite, store what it saw, render the pages: ``python -m benchmarks.run``.

The suite itself is part of the package (``ccot bench`` runs it anywhere). The profile ``large``
runs the benchmarks of growth beside it; ``--claims`` those behind the other pages as well, which
takes hours.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from benchmarks.data import data_home
from benchmarks.record import RESULTS

HERE = Path(__file__).parent
GROWTH = (
    ("growth",), ("growth", "--large"), ("large_blocks",), ("large_blocks", "--entries", "1e8"),
    ("threads",), ("large_gw",),
)  # fmt: skip
CLAIMS = ("detector", "nostructure", "quality", "speed", "robust", "scaling", "rivals")
# These need matrices that are not ours to ship.
ON_REAL_DATA = ("real", "tables", "movielens")


def python(*arguments: object) -> None:
    print("==", *arguments, flush=True)
    subprocess.run([sys.executable, *map(str, arguments)], check=True, cwd=HERE.parent)


def others(large: bool, claims: bool) -> list[tuple[str, ...]]:
    """Modules to run beside the suite, with their arguments."""
    claimed = CLAIMS + (ON_REAL_DATA if data_home() else ())
    return [*(GROWTH if large else ()), *((name,) for name in claimed if claims)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--profile", choices=("smoke", "standard", "large"), default="standard")
    parser.add_argument("--claims", action="store_true", help="also those behind the other pages")
    arguments = parser.parse_args()
    suite = ("-m", "ccot", "bench", "--profile", arguments.profile)
    if arguments.profile == "smoke":
        python(*suite, "--out", "build/bench.json")
        return
    python(*suite, "--out", RESULTS / "suite.json")
    for name, *options in others(arguments.profile == "large", arguments.claims):
        python("-m", f"benchmarks.{name}", *options)
    python("docs/render.py")
    python("docs/suite.py")


if __name__ == "__main__":
    main()
