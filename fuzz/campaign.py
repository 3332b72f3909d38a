"""Every target for a given time, and a summary: ``python -m fuzz.campaign --seconds 1800``.

Processes of one target search apart from one another and start from what all of them found before:
``--out`` of one call may be ``--resume`` of the next, and the counts add up.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.record import this_run

NAMES = (
    "model", "recommender", "text", "long", "gzip", "npy", "npz", "mtx", "mtx-gzip", "parquet",
    "h5ad", "zarr", "stdin", "rows-npy", "rows-parquet", "service",
)  # fmt: skip
_CORPUS, _SUMMARY = "corpus.tar.xz", "fuzz.json"
_ADDED = ("executions", "accepted", "seconds", "cpu_s")
_LARGEST = ("slowest_s", "growth_mb", "coverage", "features")
# Of results from before the runs of a target were kept.
_UNRECORDED = {"command": "python -m fuzz.campaign", "commit": None, "date": "date not recorded"}
_FINDINGS = ("crash", "timeout", "oom", "leak")


def main() -> int:
    """Run all processes, `at_once` of them at a time, then add up."""
    options = _options()
    options.out.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="ccot-campaign-"))
    earlier = _unpacked(options.resume, work / "seeds") if options.resume else {}
    jobs = [options.targets[turn % len(options.targets)] for turn in range(options.processes)]
    began = time.time()
    with ThreadPoolExecutor(options.at_once or len(jobs)) as pool:
        ended = list(pool.map(
            lambda job: _process(job[1], job[0], options.seconds, work), enumerate(jobs)
        ))  # fmt: skip
    summary = _added_up(earlier, jobs, ended, options, time.time() - began)
    _pack(work, options.out, jobs, ended)
    (options.out / _SUMMARY).write_text(json.dumps(summary, indent=1) + "\n")
    _print(summary)
    shutil.rmtree(work)
    return 0


def _process(target: str, number: int, seconds: int, work: Path) -> list[dict[str, Any]]:
    """Fuzz one target until the time is over, again after every finding."""
    corpus, found = work / f"{number}" / "corpus", work / f"{number}" / "found"
    corpus.mkdir(parents=True)
    found.mkdir()
    for seed in _files(work / "seeds" / target):
        shutil.copy(seed, corpus / seed.name)
    until, turns = time.time() + seconds, []
    while (left := int(until - time.time())) > 5 and len(turns) < 50:
        command = [
            sys.executable, "-m", "fuzz.run", target, "--seconds", str(left), "--seed",
            str(1 + number + 1000 * len(turns) + int(time.time()) % 10**6), "--corpus",
            str(corpus), "--out", str(found),
        ]  # fmt: skip
        log = found / f"log-{len(turns)}.txt"
        with log.open("wb") as file:
            code = _ended(command, file, left + 120)
        turns.append(_turn(found, log, code))
    return turns


def _ended(command: Sequence[str], log: Any, limit: float) -> int:
    child = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    try:
        return child.wait(limit)
    except subprocess.TimeoutExpired:  # stuck where even the engine's alarm is not heard
        child.kill()
        return child.wait()


def _turn(found: Path, log: Path, code: int) -> dict[str, Any]:
    text = log.read_text(errors="replace")
    coverage = re.findall(r"cov: (\d+) ft: (\d+)", text)
    watch = found / "watch.json"
    seen = json.loads(watch.read_text()) if watch.exists() else {}
    watch.unlink(missing_ok=True)
    units = re.search(r"number_of_executed_units: (\d+)", text)
    return seen | {
        "executions": int(units.group(1)) if units else seen.get("executions", 0),
        "coverage": int(coverage[-1][0]) if coverage else 0,
        "features": int(coverage[-1][1]) if coverage else 0,
        "code": code,
        "why": _why(text) if code else "",
    }


def _why(log: str) -> str:
    """Return the line of a log that says what was wrong."""
    lines = log.splitlines()
    ends = [n for n, line in enumerate(lines) if "ERROR: libFuzzer" in line]
    if not ends:
        return lines[-1][:300] if lines else ""
    before = [line for line in lines[max(0, ends[0] - 4) : ends[0]] if line.strip()]
    # The number of the process would make the same finding many.
    return re.sub(r"==\d+== ", "", " | ".join([*before[-1:], lines[ends[0]]]))[:400]


def _added_up(
    earlier: dict[str, Any],
    jobs: Sequence[str],
    ended: Sequence[list[dict[str, Any]]],
    options: argparse.Namespace,
    wall: float,
) -> dict[str, Any]:
    targets: dict[str, Any] = earlier.get("targets", {})
    for name in dict.fromkeys(jobs):
        turns = [turn for job, found in zip(jobs, ended, strict=True) if job == name
                 for turn in found]  # fmt: skip
        known = name in targets
        total = targets.setdefault(name, dict.fromkeys((*_ADDED, *_LARGEST), 0) | {"findings": []})
        for key in _ADDED:
            total[key] = round(total[key] + sum(turn.get(key, 0) for turn in turns), 1)
        for key in _LARGEST:
            total[key] = max([total[key], *(turn.get(key, 0) for turn in turns)])
        total["findings"] += sorted({turn["why"] for turn in turns if turn["why"]})
        total.setdefault("runs", [_UNRECORDED] if known else []).append(this_run())
        total["processes"] = sum(job == name for job in jobs)
    machine = {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": _versions(),
    }
    return {
        "wall_s": round(earlier.get("wall_s", 0) + wall),
        "machine": machine,
        "targets": targets,
    }


def _versions() -> dict[str, str]:
    """Return the versions of what was fuzzed."""
    names = ("atheris", "numpy", "scipy", "pandas", "pyarrow", "h5py", "anndata", "zarr", "fastapi")
    found = {}
    for name in names:
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _pack(work: Path, out: Path, jobs: Sequence[str], ended: Sequence[Any]) -> None:
    """Keep inputs that failed with their logs, and the corpora for the next call."""
    with tarfile.open(out / "findings.tar.xz", "w:xz") as tar:
        for number, job in enumerate(jobs):
            for path in _files(work / str(number) / "found"):
                failed = path.name.startswith(_FINDINGS)
                last = path.name.startswith("log-") and ended[number][int(path.stem[4:])]["code"]
                if failed or last:
                    _add(tar, f"{job}/{number}-{path.name}", path.read_bytes()[-200_000:])
    with tarfile.open(out / _CORPUS, "w:xz") as tar:
        for number, job in enumerate(jobs):
            # The last of a corpus are the newest; a few megabytes a process are enough to go on.
            paths = sorted(_files(work / str(number) / "corpus"), key=lambda p: p.stat().st_mtime)
            room = 2 << 20
            for path in reversed(paths):
                room -= path.stat().st_size
                if room < 0:
                    break
                _add(tar, f"{job}/{path.name}", path.read_bytes())


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    tar.addfile(entry, io.BytesIO(content))


def _unpacked(folder: Path, place: Path) -> dict[str, Any]:
    """Return the summary of an earlier call, and put its corpora where processes start."""
    place.mkdir(parents=True)
    packed = folder / _CORPUS
    if packed.exists():
        with tarfile.open(packed) as tar:
            tar.extractall(place, filter="data")
    summary = folder / _SUMMARY
    return json.loads(summary.read_text()) if summary.exists() else {}


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.glob("*")) if path.is_file())


def _print(summary: dict[str, Any]) -> None:
    for name, seen in summary["targets"].items():
        print(
            f"{name:13s} {seen['seconds'] / 60:6.1f} min {seen['executions']:>10.0f} runs "
            f"{seen['executions'] / max(seen['seconds'], 1):7.0f}/s cov {seen['coverage']:5d} "
            f"ft {seen['features']:6d} slowest {seen['slowest_s']:6.2f} s "
            f"memory +{seen['growth_mb']:.0f} MB findings {len(seen['findings'])}"
        )
        for why in seen["findings"]:
            print(f"    {why}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", default=list(NAMES), help="default: all")
    parser.add_argument("--seconds", type=int, default=1800, help="of each process")
    parser.add_argument("--processes", type=int, help="default: one for each target")
    parser.add_argument("--at-once", type=int, default=0, help="default: all")
    parser.add_argument("--out", type=Path, default=Path("fuzz-out"))
    parser.add_argument("--resume", type=Path, help="--out of an earlier call")
    options = parser.parse_args()
    options.processes = options.processes or len(options.targets)
    return options


if __name__ == "__main__":
    sys.exit(main())
