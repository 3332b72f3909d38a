"""Weight of an installation: ``python -m benchmarks.install`` fills empty environments.

Stored are seconds of ``pip install`` of the wheel, on the clock (nothing cached, so the network
counts) and of processor time, least of three, bytes on the disk of every package, and seconds of
processor time of ``import ccot`` and of ``ccot --version``, least of five.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

from benchmarks.record import store

PROJECT = Path(__file__).parents[1]
EXTRAS = ("", "io", "report", "serve")
# Run by the interpreter of the new environment.
WEIGH = """
import json
from importlib.metadata import distributions
sizes = {}
for package in distributions():
    paths = [path.locate() for path in package.files or []]
    sizes[package.metadata["Name"]] = sum(p.stat().st_size for p in paths if p.is_file())
print(json.dumps(sizes))
"""


def run(*command: object) -> str:
    words = list(map(str, command))
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def seconds(*command: object) -> tuple[float, float]:
    """Return how long a command takes, on the clock and of processor time."""
    start, used = time.perf_counter(), processor_seconds()
    run(*command)
    return time.perf_counter() - start, processor_seconds() - used


def processor_seconds() -> float:
    """Return what the processes that this one started, and that have ended, have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def least(times: int, *command: object) -> float:
    return round(min(seconds(*command)[1] for _ in range(times)), 3)


def build(folder: Path) -> Path:
    run(sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder)
    (wheel,) = folder.glob("*.whl")
    return wheel


def install(wheel: Path, extra: str, folder: Path) -> tuple[float, float]:
    venv.create(folder, clear=True)
    wanted = f"{wheel}[{extra}]" if extra else wheel
    pip = (sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "install")
    return seconds(*pip, "--no-cache-dir", wanted)


def weigh(wheel: Path, extra: str, folder: Path, times: int) -> dict:
    python = folder / "bin" / "python"
    clock, processor = zip(*(install(wheel, extra, folder) for _ in range(times)), strict=True)
    sizes = {name: size for name, size in json.loads(run(python, "-c", WEIGH)).items() if size}
    return {
        "extra": extra,
        "seconds": round(min(clock), 1),
        "processor_seconds": round(min(processor), 1),
        "packages": len(sizes),
        "megabytes": round(sum(sizes.values()) / 1e6, 1),
        "megabytes_of": {
            name: round(size / 1e6, 1)
            for name, size in sorted(sizes.items(), key=lambda it: -it[1])
        },
        "seconds_to_import": least(5, python, "-c", "import ccot"),
        "seconds_of_version": least(5, folder / "bin" / "ccot", "--version"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--extras", nargs="*", default=EXTRAS, help="'' is the package alone")
    parser.add_argument("--times", type=int, default=3, help="installations of each")
    arguments = parser.parse_args()
    found = []
    with tempfile.TemporaryDirectory() as folder:
        wheel = build(Path(folder) / "wheel")
        kilobytes = round(wheel.stat().st_size / 1e3)
        for number, extra in enumerate(arguments.extras):
            found.append(weigh(wheel, extra, Path(folder) / str(number), arguments.times))
            largest = list(found[-1]["megabytes_of"].items())[:4]
            print({**found[-1], "megabytes_of": largest}, flush=True)
    store("install", {"wheel_kilobytes": kilobytes, "installations": found})


if __name__ == "__main__":
    main()
