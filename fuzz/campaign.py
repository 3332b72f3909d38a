"""Every target until it has had its processor time: ``python -m fuzz.campaign --seconds 1800``.

Targets take turns, those whose code has changed first, then the one with the least processor time.
Time counts over all versions of a target's code, as continuous fuzzing counts: a changed reader
goes on with the inputs that were collected before. What was spent on code that has changed since
is kept apart, under ``earlier``. All is written after every turn: a campaign that was stopped goes
on where it was.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.record import this_run

NAMES = (
    "model", "recommender", "service", "xlsx", "json", "feather", "sqlite", "h5ad", "zarr",
    "parquet", "rows-parquet", "npz", "npy", "rows-npy", "mtx", "mtx-gzip", "text", "long", "gzip",
    "stdin",
)  # fmt: skip
_ADDED = ("executions", "accepted", "seconds", "cpu_s")
_LARGEST = ("slowest_s", "growth_mb", "coverage", "features")
_KEPT = ("executions", "cpu_s", "findings")
# Seconds on the clock for every second of processor time: other programs want to run as well.
_PATIENCE = 600


class Campaign:
    """Gives targets their turns, several at a time, and keeps the summary."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options, self._lock, self._busy = options, threading.Lock(), set[str]()
        path = options.summary
        known = json.loads(path.read_text()) if path.exists() else {}
        self.targets: dict[str, Any] = known.get("targets", {})
        self._wall_s = known.get("wall_s", 0)

    def work(self) -> None:
        """Take turns until no target is left that wants one."""
        while name := self._next():
            began = time.time()
            seconds = max(5, min(self._left(name), self._options.turn))
            turn = _turn(name, seconds, self._options.out)
            with self._lock:
                self._busy.remove(name)
                self._wall_s += time.time() - began
                self._add(name, turn)
                self._write()
                print(described(name, self.targets[name]), flush=True)

    def _left(self, name: str) -> float:
        """Return the seconds that a target is wanting; changed code gets a turn in any case."""
        seen = self.targets[name]
        return max(
            self._options.seconds - in_all(seen, "cpu_s"),
            min(self._options.turn, self._options.seconds) - seen["cpu_s"],
        )

    def _next(self) -> str | None:
        """Return a target whose code is new, or else the one that has had the least time."""
        with self._lock:
            waiting = [name for name in self._options.targets if name not in self._busy]
            for name in waiting:
                self._set_aside(name)
            waiting = [name for name in waiting if self._left(name) > 1]
            name = max(waiting, key=self._urgency, default=None)
            self._busy |= {name} - {None}
            return name

    def _urgency(self, name: str) -> tuple[bool, float]:
        return not self.targets[name]["cpu_s"], self._left(name)

    def _set_aside(self, name: str) -> None:
        """Put what is known of other code aside."""
        seen, code = self.targets.get(name), digest(name)
        if seen is None or seen.get("code") != code:
            before = {key: seen[key] for key in _KEPT} if seen and seen["executions"] else {}
            for key, more in (seen or {}).get("earlier", {}).items():
                before[key] = before[key] + more if key in before else more
            new = dict.fromkeys((*_ADDED, *_LARGEST), 0) | {"findings": [], "code": code}
            runs = (seen or {}).get("runs", [])
            self.targets[name] = new | {"runs": runs, "earlier": before}

    def _add(self, name: str, turn: dict[str, Any]) -> None:
        seen = self.targets[name]
        for key in _ADDED:
            seen[key] = round(seen[key] + turn.get(key, 0), 1)
        for key in _LARGEST:
            seen[key] = max(seen[key], turn.get(key, 0))
        if turn["why"] and turn["why"] not in seen["findings"]:
            seen["findings"].append(turn["why"])
        if (run := this_run()) not in seen["runs"]:
            seen["runs"].append(run)

    def _write(self) -> None:
        machine = {
            "cores": os.cpu_count(), "python": platform.python_version(), "versions": _versions(),
        }  # fmt: skip
        summary = {"wall_s": round(self._wall_s), "machine": machine, "targets": self.targets}
        self._options.summary.write_text(json.dumps(summary, indent=1) + "\n")


def in_all(seen: dict[str, Any], key: str) -> float:
    """Return a sum for a target, over today's code and what was there before."""
    return seen.get(key, 0) + seen.get("earlier", {}).get(key, 0)


def digest(name: str) -> str:
    """Return a digest of the code that a target reads with; comments do not count."""
    from fuzz.targets import TARGETS, code_of

    return code_of(TARGETS[name])


def _turn(target: str, seconds: float, out: Path) -> dict[str, Any]:
    """Fuzz a target for so much processor time, or until something is found."""
    found = out / target
    found.mkdir(parents=True, exist_ok=True)
    # What an earlier campaign left is no news of this one.
    (found / "watch.json").unlink(missing_ok=True)
    command = [
        sys.executable, "-m", "fuzz.run", target, "--seconds", f"{seconds:.0f}", "--seed",
        str(int(time.time()) % 10**6), "--corpus", str(found / "corpus"), "--out", str(found),
    ]  # fmt: skip
    log = found / f"log-{int(time.time())}.txt"
    with log.open("wb") as file:
        child = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
        try:
            code = child.wait(_PATIENCE * seconds)
        except subprocess.TimeoutExpired:  # stuck where even the engine's alarm is not heard
            child.kill()
            code = child.wait()
    text = log.read_text(errors="replace")
    coverage = re.findall(r"cov: (\d+) ft: (\d+)", text)
    watch = found / "watch.json"
    seen = json.loads(watch.read_text()) if watch.exists() else {}
    if not code:
        log.unlink()
    return seen | {
        "coverage": int(coverage[-1][0]) if coverage else 0,
        "features": int(coverage[-1][1]) if coverage else 0,
        "why": _why(text) if code else "",
    }


def _why(log: str) -> str:
    """Return the line of a log that says what was wrong."""
    lines = log.splitlines()
    ends = [n for n, line in enumerate(lines) if "ERROR: libFuzzer" in line]
    if not ends:
        said = [line for line in lines if line.strip()]
        return said[-1][:300] if said else f"it ended without a word ({len(log)} characters)"
    before = [line for line in lines[max(0, ends[0] - 4) : ends[0]] if line.strip()]
    # The number of the process would make the same finding many.
    return re.sub(r"==\d+== ", "", " | ".join([*before[-1:], lines[ends[0]]]))[:400]


def _versions() -> dict[str, str]:
    """Return the versions of what was fuzzed."""
    names = ("atheris", "numpy", "scipy", "pandas", "pyarrow", "h5py", "anndata", "zarr",
             "openpyxl", "fastapi")  # fmt: skip
    found = {}
    for name in names:
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def described(name: str, seen: dict[str, Any]) -> str:
    """Return a line on a target, and one for every finding."""
    line = (
        f"{name:13s} {in_all(seen, 'cpu_s') / 60:6.1f} min of processor, "
        f"{seen['cpu_s'] / 60:6.1f} on this code: {seen['executions']:>10.0f} runs "
        f"cov {seen['coverage']:5d} ft {seen['features']:6d} slowest {seen['slowest_s']:6.2f} s "
        f"memory +{seen['growth_mb']:.0f} MB findings {len(seen['findings'])}"
    )
    return "\n    ".join([line, *seen["findings"]])


def main() -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("targets", nargs="*", default=list(NAMES), help="default: all")
    parser.add_argument(
        "--seconds", type=int, default=1800, help="of processor time for each, in all"
    )
    parser.add_argument("--turn", type=int, default=120, help="seconds of processor time at once")
    parser.add_argument("--at-once", type=int, default=1, help="targets at a time")
    parser.add_argument("--out", type=Path, default=Path("fuzz-out"), help="corpora and findings")
    parser.add_argument(
        "--summary", type=Path, help="goes on from there; default: fuzz.json in the same folder"
    )
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    options.summary = options.summary or options.out / "fuzz.json"
    campaign = Campaign(options)
    with ThreadPoolExecutor(options.at_once) as pool:
        for ended in [pool.submit(campaign.work) for _ in range(options.at_once)]:
            ended.result()
    return 0


if __name__ == "__main__":
    sys.exit(main())
