"""A plugin of pytest that judges mutants: one fork a mutant, its tests until one fails.

`mutation.py` starts it in a copy of the project whose functions carry their mutants along
(mutmut's trampolines). All tests run once with every function as it was, to learn who calls what
and how long it takes; then every mutant is switched on in a fork of this process, where everything
is imported already.
"""

import json
import math
import os
import resource
import signal
import sys
import time
from collections import defaultdict
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol
from mutmut.state import state

SWITCH = "MUTANT_UNDER_TEST"
# Tests that take longer, in seconds, are left out.
LONGEST = 0.5


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    if session.testsfailed:
        pytest.exit("the tests cannot be collected", returncode=1)
    mutants = json.loads(Path("mutants.json").read_text())
    callers, seconds = watch(session.items)
    verdicts = {}
    for mutant in mutants:
        tests = callers[mutant.partition("__mutmut_")[0]]
        verdict, killer = judge(mutant, tests, seconds) if tests else ("untested", None)
        verdicts[mutant] = verdict
        if killer is not None:
            # Who noticed one mutant of a function is likely to notice the next one.
            tests.insert(0, tests.pop(killer))
        print(f"{len(verdicts)}/{len(mutants)} {verdict} {mutant}", file=sys.__stderr__, flush=True)
    Path("verdicts.json").write_text(json.dumps(verdicts))
    return True


def watch(items: list[pytest.Item]) -> tuple[dict[str, list[pytest.Item]], dict[str, float]]:
    """Return the tests that reach each function, quick ones first, and how long tests take."""
    callers, seconds = defaultdict(list), {}
    os.environ[SWITCH] = "stats"
    for item in items:
        state()._stats.clear()
        start = time.process_time()
        if not passes(item):
            pytest.exit(f"{item.nodeid} fails without any mutant", returncode=1)
        seconds[item.nodeid] = time.process_time() - start
        for function in state()._stats:
            callers[function].append(item)
    os.environ[SWITCH] = ""
    for tests in callers.values():
        tests[:] = [test for test in tests if seconds[test.nodeid] <= LONGEST]
        tests.sort(key=lambda test: seconds[test.nodeid])
    return callers, seconds


def passes(item: pytest.Item) -> bool:
    # No next item: what a test has set up is gone when it is over.
    return not any(report.failed for report in runtestprotocol(item, log=False, nextitem=None))


def judge(
    mutant: str, tests: list[pytest.Item], seconds: dict[str, float]
) -> tuple[str, int | None]:
    """Return the verdict on a mutant, and which test killed it."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        os._exit(face(mutant, tests, seconds, writer))
    os.close(writer)
    with open(reader, "rb") as pipe:
        killer = pipe.read()
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        late = os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGALRM, signal.SIGKILL)
        return "timeout" if late else "killed", None
    if os.WEXITSTATUS(status) == 0:
        return "survived", None
    return "killed", int(killer) if killer else None


def face(mutant: str, tests: list[pytest.Item], seconds: dict[str, float], writer: int) -> int:
    """Run tests on a mutant until one fails; processor time is limited, test by test."""
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1), os.dup2(silence, 2)
    os.environ[SWITCH] = mutant
    signal.alarm(1800)
    try:
        for place, test in enumerate(tests):
            limit = math.ceil(time.process_time() + 3 * seconds[test.nodeid] + 1)
            resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
            if not passes(test):
                os.write(writer, str(place).encode())
                return 1
    except BaseException:
        return 1
    return 0
