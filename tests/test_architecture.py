"""The shape of the package: how much a newcomer has to hold in mind."""

import statistics
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "ccot"
LENGTHS = {
    path.relative_to(SOURCE): len(path.read_text(encoding="utf-8").splitlines())
    for path in SOURCE.rglob("*.py")
}
WATCH = """
import os
import sys
import numpy as np
import ccot

PACKAGE = os.path.dirname(ccot.__file__) + os.sep
X = np.random.default_rng(0).normal(size=(60, 40))
X[:30, :20] += 6
used = set()


def watch(frame, event, _):
    name = frame.f_code.co_filename
    if event == "call" and name.startswith(PACKAGE):
        used.add(name.removeprefix(PACKAGE).replace(os.sep, "/"))


fit = getattr(ccot, sys.argv[1])(random_state=0).fit
fit(X)
sys.setprofile(watch)
fit(X)
sys.setprofile(None)
print(*sorted(used))
"""


@pytest.mark.parametrize(("name", "most"), [("CCOT", 15), ("TransportCoclustering", 22)])
def test_a_small_fit_stays_within_few_modules(name, most):
    command = [sys.executable, "-W", "ignore", "-c", WATCH, name]
    used = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert "sources/executors.py" not in used
    assert 5 < len(used) <= most, used


def test_few_modules_stand_at_the_top():
    top = {path.name for path in LENGTHS if len(path.parts) == 1}
    assert len(top - {"__init__.py", "__main__.py", "_version.py"}) <= 8


def test_modules_fit_on_a_few_screens():
    assert {str(path): n for path, n in LENGTHS.items() if n > 450} == {}
    assert 120 <= statistics.median(n for n in LENGTHS.values() if n > 5) <= 220
