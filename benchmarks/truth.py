"""How many random examples every property was tried on, counted while the tests run.

Runs the property tests, slow ones included, and stores the tally: a claim such as "tried on
thousands of problems" is then a number that somebody counted. Files of tests are counted one after
the other; what was counted before stays, unless it is counted again.
"""

import argparse
import os
import re
from pathlib import Path

import pytest

from benchmarks.record import RESULTS, load, of_this_run, store

NAME = "truth"
PROJECT = Path(__file__).parents[1]
FOLDERS = ("tests/truth", "tests/property")


class Tally:
    """A pytest plugin that reads Hypothesis's own statistics of every test."""

    def __init__(self) -> None:
        self.properties: dict[tuple[str, str], dict] = {}

    def _of(self, nodeid: str) -> dict:
        path, _, name = nodeid.partition("::")
        key = path, name.partition("[")[0]
        fresh = {"file": key[0], "property": key[1], "cases": 0, "examples": 0}
        return self.properties.setdefault(key, {**fresh, "failed": 0, "seconds": 0.0})

    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        statistics = getattr(item, "hypothesis_statistics", "")
        tried = re.findall(r"- (\d+) passing", statistics)
        self._of(item.nodeid)["examples"] += sum(map(int, tried))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            seen = self._of(report.nodeid)
            seen["cases"] += 1
            seen["failed"] += report.failed
            seen["seconds"] += report.duration


def count(file: str) -> list[dict]:
    """Run a file of tests, and return how often each of its properties was tried."""
    tally = Tally()
    pytest.main(["-q", "-p", "no:xdist", file], plugins=[tally])
    return [seen for seen in tally.properties.values() if seen["examples"]]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="*", help=f"of tests; by default all of {FOLDERS}")
    parser.add_argument(
        "--profile", choices=("default", "thorough"), default="thorough", help="how many examples"
    )
    options = parser.parse_args()
    os.environ["HYPOTHESIS_PROFILE"] = options.profile
    os.chdir(PROJECT)
    every = (str(path) for folder in FOLDERS for path in sorted(Path(folder).glob("test_*.py")))
    counted = load(NAME)["properties"] if (RESULTS / f"{NAME}.json").exists() else []
    for file in options.files or every:
        fresh = [of_this_run({**seen, "profile": options.profile}) for seen in count(file)]
        counted = [seen for seen in counted if seen["file"] != file] + fresh
        counted.sort(key=lambda seen: (seen["file"], seen["property"]))
        sums = {key: sum(seen[key] for seen in counted) for key in ("examples", "failed")}
        print(f"stored {store(NAME, {**sums, 'properties': counted})}: {sums}", flush=True)


if __name__ == "__main__":
    main()
