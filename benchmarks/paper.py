"""The paper's comparison at full length, stored for the page on reproduction.

100 matrices of each set and overlap, 1000 draws, 50 starts. Takes hours of processor time and can
be stopped at any time: the same command goes on.
"""

import argparse
import sys

from benchmarks.record import RESULTS
from ccot.experiments.protocol import METHODS, Protocol
from ccot.experiments.runner import run_protocol
from ccot.experiments.store import TrialStore
from ccot.runtime.progress import LineProgress

FOLDER = RESULTS / "paper"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--starts", type=int, nargs="*", default=[50])
    parser.add_argument("--methods", nargs="*", choices=METHODS, default=list(METHODS))
    parser.add_argument("--forget", action="store_true", help="drop stored trials of --methods")
    arguments = parser.parse_args()
    if arguments.forget:
        with TrialStore(FOLDER) as store:
            store.forget(lambda trial: trial.method in arguments.methods)
    for n_init in arguments.starts:
        protocol = Protocol(n_init=n_init, methods=tuple(arguments.methods))
        run_protocol(protocol, FOLDER, n_jobs=arguments.jobs, progress=LineProgress("paper"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
