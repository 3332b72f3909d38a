"""How many random examples every property was tried on, counted while the tests run.

Runs the property tests with the thorough profile, slow ones included, and stores the tally: a claim
such as "tried on thousands of problems" is then a number that somebody counted.
"""

import argparse
import os
import re
import time
from pathlib import Path

import pytest

from benchmarks.record import store

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="*", default=FOLDERS)
    paths = parser.parse_args().paths
    os.environ["HYPOTHESIS_PROFILE"] = "thorough"
    os.chdir(PROJECT)
    tally, begun = Tally(), time.perf_counter()
    pytest.main(["-q", "-p", "no:xdist", *paths], plugins=[tally])
    tried = [seen for seen in tally.properties.values() if seen["examples"]]
    summary = {
        "profile": "thorough",
        "seconds": time.perf_counter() - begun,
        "examples": sum(seen["examples"] for seen in tried),
        "failed": sum(seen["failed"] for seen in tried),
        "properties": sorted(tried, key=lambda seen: (seen["file"], seen["property"])),
    }
    print(f"stored {store('truth', summary)}: {summary['examples']} examples")


if __name__ == "__main__":
    main()
