"""The fast tests on one Python: ``python -m benchmarks.pythons`` runs them and stores the counts.

Run it with the interpreter in question; rows of other versions are kept. ``--packages`` says where
the packages around ccot come from. Options for pytest stand after ``--``. Nothing is stored where
the tests did not come to their end.
"""

import argparse
import platform
import subprocess
import sys
import sysconfig
import tempfile
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree

from benchmarks.record import RESULTS, load, of_this_run, store

NAMED = ("numpy", "scipy", "scikit-learn", "pandas", "torch")


def count(report: Path) -> dict:
    """Return how many tests passed, were skipped and failed, of a report in JUnit's form."""
    (suite,) = ElementTree.parse(report).getroot().iter("testsuite")
    tests, skipped = int(suite.attrib["tests"]), int(suite.attrib["skipped"])
    failed = int(suite.attrib["failures"]) + int(suite.attrib["errors"])
    return {"passed": tests - skipped - failed, "skipped": skipped, "failed": failed}


def run_tests(options: list[str]) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        pytest = (sys.executable, "-m", "pytest", "-q", "-m", "not slow")
        done = subprocess.run([*pytest, f"--junitxml={report}", *options], check=False)
        if done.returncode not in (0, 1):
            raise SystemExit(f"pytest ended with {done.returncode}")
        return count(report)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--packages", choices=["locked", "newest", "lowest"], default="locked")
    parser.add_argument("options", nargs="*", help="for pytest, after --")
    arguments = parser.parse_args()
    row = of_this_run({
        "python": platform.python_version(),
        "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
        "packages": arguments.packages,
        "versions": {name: version(name) for name in NAMED},
        **run_tests(arguments.options),
    })  # fmt: skip
    known = load("pythons")["rows"] if (RESULTS / "pythons.json").exists() else []
    rows = {(one["python"], one["packages"]): one for one in [*known, row]}
    store("pythons", {"rows": [rows[key] for key in sorted(rows)]})
    return int(row["failed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
