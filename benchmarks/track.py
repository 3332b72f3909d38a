"""Time the ten operations beside their references: ``python -m benchmarks.track``.

``asv`` runs the same operations over the history of the repository (``benchmarks/asv.conf.json``,
``CONTRIBUTING.md``); this needs nothing but the library. ``--store`` makes a run the one that
later runs are compared with.
"""

import argparse
import json
import warnings
from pathlib import Path

from threadpoolctl import threadpool_limits

from benchmarks.operations.cases import OPERATIONS
from benchmarks.operations.measure import measure
from benchmarks.record import facts, store


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--only", default="", help="part of the name of an operation")
    parser.add_argument("--out", type=Path, help="write the result here")
    parser.add_argument("--store", action="store_true", help="and into benchmarks/results")
    arguments = parser.parse_args()
    chosen = [one for one in OPERATIONS if arguments.only in one.name]
    found = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for one in chosen:
            found.append(measure(one, arguments.turns))
            print("{operation:42s}{seconds:9.4f} s {ratio:8.2f} x {against}".format(**found[-1]))
    if arguments.out:
        told = {"facts": facts(), "operations": found}
        arguments.out.write_text(json.dumps(told, indent=1) + "\n")
    if arguments.store:
        store("operations", {"operations": found})


if __name__ == "__main__":
    main()
