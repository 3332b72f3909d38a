"""Memory of ``ccot fit`` on a CSV file of 100 MB, from the start of the program to its end.

Real values fill the file with few cells, counts with many; both have planted blocks. Every fit is
the command itself in a process of its own, and its peak is what the system saw of that process: the
interpreter and all libraries included. They alone are measured by ``ccot --version``. What else is
installed counts: scikit-learn imports pandas where there is one. ``--python`` measures the command
of another environment, such as one with nothing but ccot in it.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.record import store

FILE_BYTES = 100e6
METHODS = ("auto", "ccot", "transport")
N_COLUMNS = 1000


def real_values(means: np.ndarray, rng: np.random.Generator) -> list[str]:
    return [f"{value:.5f}" for value in means + rng.normal(size=len(means))]


def counts(means: np.ndarray, rng: np.random.Generator) -> list[str]:
    return [str(value) for value in rng.poisson(np.exp(means))]


# What the system tells a parent of a child's peak begins with the parent's own size.
AS_CCOT = """
import runpy, sys
sys.argv[0] = "ccot"
try:
    runpy.run_module("ccot", run_name="__main__")
finally:
    print(open("/proc/self/status").read())
"""
KINDS = {"real values": real_values, "counts": counts}


def write_table(path: Path, kind: str) -> tuple[int, int]:
    """Write rows of 4 x 3 blocks until the file is as large as it should be; return the shape."""
    rng = np.random.default_rng(0)
    means = rng.normal(size=(4, 3))[:, rng.integers(0, 3, N_COLUMNS)]
    n_rows = 0
    with path.open("w") as file:
        file.write(",".join(f"c{place}" for place in range(N_COLUMNS)) + "\n")
        while file.tell() < FILE_BYTES:
            row = KINDS[kind](means[rng.integers(4)], rng)
            file.write(f"r{n_rows}," + ",".join(row) + "\n")
            n_rows += 1
    return n_rows, N_COLUMNS


def peak_bytes(python: str, *arguments: str) -> int:
    """Run the command line in a process of its own and return its peak of memory."""
    command = [python, "-c", AS_CCOT, *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    return 1024 * int(re.findall(r"VmHWM:\s*(\d+) kB", ended.stdout)[-1])


def has_pandas(python: str) -> bool:
    return not subprocess.run([python, "-c", "import pandas"], stderr=subprocess.DEVNULL).returncode


def measure(python: str, kinds: list[str], methods: list[str]) -> dict:
    cells = []
    with tempfile.TemporaryDirectory(prefix="ccot-") as folder:
        for kind in kinds:
            path = Path(folder, "table.csv")
            shape = write_table(path, kind)
            matrix = 8 * shape[0] * shape[1]
            for method in methods:
                out = str(Path(folder, "out"))
                peak = peak_bytes(python, "fit", str(path), "--method", method, "--out", out)
                cells.append(
                    {
                        "kind": kind,
                        "method": method,
                        "shape": list(shape),
                        "file_megabytes": round(path.stat().st_size / 1e6, 1),
                        "matrix_megabytes": round(matrix / 1e6, 1),
                        "peak_megabytes": round(peak / 1e6, 1),
                        "ratio": round(peak / matrix, 2),
                    }
                )
                print(cells[-1], flush=True)
    return {
        "cells": cells,
        "alone_megabytes": round(peak_bytes(python, "--version") / 1e6, 1),
        "pandas": has_pandas(python),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--python", default=sys.executable, help="default: this one")
    parser.add_argument("--dry", action="store_true", help="print what was seen, store nothing")
    arguments = parser.parse_args()
    result = measure(arguments.python, arguments.kinds, arguments.methods)
    print(f"the program alone: {result['alone_megabytes']} MB")
    if not arguments.dry:
        print(f"stored {store('csv_memory', result)}")


if __name__ == "__main__":
    main()
