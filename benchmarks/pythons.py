"""The fast tests on one Python: ``python -m benchmarks.pythons`` runs them and stores the counts.

Run it with the interpreter in question. The tests are run folder by folder, and counts are stored
after each: a run that was stopped goes on with what is missing or failed (``--forget`` starts
again). ``--packages`` says where the packages around ccot come from. Results of other versions of
Python stay.
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

PROJECT = Path(__file__).parents[1]
NAMED = ("numpy", "scipy", "scikit-learn", "pandas", "torch")
NONE_COLLECTED = 5


def parts() -> dict[str, list[str]]:
    """Return the folders of tests, the files beside them, and the examples in docstrings."""
    folders = sorted(path.parent.name for path in PROJECT.glob("tests/*/__init__.py"))
    loose = sorted(str(path.relative_to(PROJECT)) for path in PROJECT.glob("tests/test_*.py"))
    return {"src": ["src"], "tests": loose} | {f"tests/{it}": [f"tests/{it}"] for it in folders}


def count(report: Path) -> dict[str, int]:
    """Return how many tests passed, were skipped and failed, of a report in JUnit's form."""
    (suite,) = ElementTree.parse(report).getroot().iter("testsuite")
    tests, skipped = int(suite.attrib["tests"]), int(suite.attrib["skipped"])
    failed = int(suite.attrib["failures"]) + int(suite.attrib["errors"])
    return {"passed": tests - skipped - failed, "skipped": skipped, "failed": failed}


def run_tests(paths: list[str], workers: int) -> dict[str, int]:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        pytest = (sys.executable, "-m", "pytest", "-q", "-m", "not slow", "-n", str(workers))
        done = subprocess.run([*pytest, f"--junitxml={report}", *paths], check=False, cwd=PROJECT)
        if done.returncode not in (0, 1, NONE_COLLECTED):
            raise SystemExit(f"pytest ended with {done.returncode}")
        return count(report)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[[], *parts()], help="these alone")
    parser.add_argument("--packages", choices=["locked", "newest", "lowest"], default="locked")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--forget", action="store_true", help="run again what is stored")
    arguments = parser.parse_args()
    about = {
        "python": platform.python_version(),
        "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
        "packages": arguments.packages,
        "versions": {name: version(name) for name in NAMED},
    }
    failed = 0
    for part in arguments.parts or parts():
        row = {**about, "part": part}
        if arguments.forget or stored().get(key(row), {"failed": 1})["failed"]:
            print(part, flush=True)
            row = of_this_run(row | run_tests(parts()[part], arguments.workers))
            # Read again: another Python may have stored its own in the meantime.
            rows = stored() | {key(row): row}
            store("pythons", {"parts": len(parts()), "rows": [rows[it] for it in sorted(rows)]})
            failed += row["failed"]
    return int(failed > 0)


def key(row: dict) -> tuple[str, str, str]:
    return row["python"], row["packages"], row["part"]


def stored() -> dict[tuple[str, str, str], dict]:
    known = load("pythons")["rows"] if (RESULTS / "pythons.json").exists() else []
    return {key(row): row for row in known}


if __name__ == "__main__":
    sys.exit(main())
