"""Build a release twice, inspect it, install it and use it: ``make release-check``.

Everything happens in a temporary folder, in environments that are made for this purpose; what was
built lies in ``dist/`` at the end, with a list of what the installed package consists of.

``--tests PYTHON`` names an interpreter whose packages the fast tests may use. The package itself
comes from the wheel, never from ``src``.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import venv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

PROJECT = Path(__file__).parents[1]
# Of 10. The developers are reached through the repository and have no address for e-mail.
PYROMA = ("--min", 10, "--skip-tests", "AuthorEmail")
BIN = "Scripts" if os.name == "nt" else "bin"
# What one build has and the other has not; the bytes may not depend on it.
ODD = {"LC_ALL": "C", "TZ": "Pacific/Auckland", "PYTHONHASHSEED": "1"}


class Failed(Exception):
    """A step of the check did not pass."""


def run(*command: object, cwd: Path = PROJECT, **environment: str) -> str:
    """Run a command and return what it prints; what it prints is shown if it fails."""
    plain = {key: it for key, it in os.environ.items() if key != "SOURCE_DATE_EPOCH"}
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=plain | environment, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8",
        errors="replace",
    )  # fmt: skip
    if done.returncode:
        print(done.stdout)
        raise Failed(f"{' '.join(map(str, command))}: exit code {done.returncode}")
    return done.stdout


@contextmanager
def step(name: str) -> Iterator[None]:
    start = time.perf_counter()
    print(f"{name} ...", end=" ", flush=True)
    yield
    print(f"{time.perf_counter() - start:.0f} s", flush=True)


def make_environment(folder: Path) -> Path:
    """Make an empty environment and return its interpreter."""
    try:
        venv.create(folder, with_pip=True)
    except subprocess.CalledProcessError:  # Debian without python3-venv
        shutil.rmtree(folder)
        venv.create(folder)
        pip(folder / BIN / "python", "pip")
    return folder / BIN / "python"


def pip(python: Path, *arguments: object) -> None:
    """Install with the pip at hand: the environment itself may have none."""
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", *arguments)


def copy_project(folder: Path) -> Path:
    """Copy what a release is made of to another place."""
    settings = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    names = settings["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    folder.mkdir()
    for name in (*names, "pyproject.toml", ".gitignore"):
        if (PROJECT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "_build", "auto_examples")
            shutil.copytree(PROJECT / name, folder / name, ignore=ignored)
        else:
            shutil.copy(PROJECT / name, folder / name)
    return folder


def build(python: Path, sources: Path, out: Path, **environment: str) -> dict[str, bytes]:
    run(python, "-m", "hatchling", "build", "--directory", out, cwd=sources, **environment)
    return {path.name: path.read_bytes() for path in sorted(out.iterdir())}


def build_twice(python: Path, folder: Path) -> Path:
    first = build(python, PROJECT, folder / "dist")
    second = build(python, copy_project(folder / "a copy"), folder / "again", **ODD)
    if len(first) != 2 or first != second:
        raise Failed(f"two builds differ: {sorted(first)}, {sorted(second)}")
    return folder / "dist"


def inspect(python: Path, dist: Path) -> None:
    wheel, archive = only(dist, "*.whl"), only(dist, "*.tar.gz")
    run(python, "-m", "twine", "check", "--strict", wheel, archive)
    run(python, "-m", "check_wheel_contents", wheel)
    told = run(python, "-m", "pyroma", *PYROMA, archive)
    print(re.findall(r"Final rating: .*", told)[-1], end=", ")


def only(folder: Path, pattern: str) -> Path:
    (path,) = folder.glob(pattern)
    return path


def blocks_of(page: Path, language: str) -> list[str]:
    flags = re.DOTALL | re.MULTILINE
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), flags=flags)


def shell_commands(page: Path) -> list[list[str]]:
    """Return the lines of a page that call ``ccot``, as lists of words."""
    lines = "".join(blocks_of(page, "sh")).splitlines()
    return [line.partition("#")[0].split() for line in lines if line.startswith("ccot ")]


def use_commands(python: Path, work: Path) -> None:
    commands = shell_commands(PROJECT / "README.md")
    if not commands:
        raise Failed("README.md calls no command")
    for _, *arguments in commands:
        run(python.parent / "ccot", *arguments, cwd=work)
    if not list(work.glob("*/report.html")):
        raise Failed("the commands of README.md wrote no report")


def use_library(python: Path, work: Path) -> None:
    script = work / "readme.py"
    script.write_text("\n".join(blocks_of(PROJECT / "README.md", "python")), encoding="utf-8")
    told = run(python, script, cwd=work, MPLBACKEND="Agg")
    if "in 3 clusters" not in told:
        raise Failed(f"the example of README.md printed\n{told}")


def list_parts(tools: Path, python: Path, dist: Path) -> None:
    """Write the CycloneDX list of what the installed package consists of."""
    name = only(dist, "*.whl").name.partition("-py3")[0]
    parts = dist / f"{name}.cdx.json"
    run(tools, "-m", "cyclonedx_py", "environment", "--output-reproducible",
        "--pyproject", PROJECT / "pyproject.toml", "--output-file", parts, python)  # fmt: skip
    told = json.loads(parts.read_text(encoding="utf-8"))
    names = {part["name"].lower() for part in told["components"]}
    if "numpy" not in names or "hatchling" in names:
        raise Failed(f"{parts.name} lists {sorted(names)}")


def borrow(python: Path, lender: str) -> None:
    """Let an environment import what another has; editable packages of the other stay hidden."""
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    own, other = (Path(run(it, "-c", ask).strip()) for it in (python, lender))
    (own / "borrowed.pth").write_text(f"{other}\n", encoding="utf-8")


def run_tests(lender: str, folder: Path, dist: Path, options: list[str]) -> None:
    """Run the fast tests of the source distribution against the wheel."""
    python = make_environment(folder / "tested")
    pip(python, "--no-deps", only(dist, "*.whl"))
    borrow(python, lender)
    with tarfile.open(only(dist, "*.tar.gz")) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    sources = only(folder / "unpacked", "ccot-*")
    place = run(python, "-c", "import ccot; print(ccot.__file__)", cwd=sources).strip()
    if not Path(place).is_relative_to(folder):
        raise Failed(f"the tests would run against {place}")
    told = run(python, "-m", "pytest", "-q", "-m", "not slow", *options, "tests", "--pyargs",
               "ccot", cwd=sources)  # fmt: skip
    print(told.strip().splitlines()[-1], end=", ")


def check(folder: Path, lender: str | None, options: list[str]) -> Path:
    tools, user = (make_environment(folder / name) for name in ("tools", "user"))
    work = folder / "work"
    work.mkdir()
    steps: list[tuple[str, Callable[[], object]]] = []
    with step("tools"):
        pip(tools, "--require-hashes", "--only-binary", ":all:", "-r",
            PROJECT / "requirements" / "release.txt")  # fmt: skip
    with step("two builds, equal bytes"):
        dist = build_twice(tools, folder)
    wheel = only(dist, "*.whl")
    steps += [
        ("twine, check-wheel-contents, pyroma", lambda: inspect(tools, dist)),
        ("wheel into an empty environment", lambda: pip(user, wheel)),
        ("list of its parts", lambda: list_parts(tools, user, dist)),
        ("commands of README.md", lambda: use_commands(user, work)),
        ("and with the extra report", lambda: pip(user, f"{wheel}[report]")),
        ("Python of README.md", lambda: use_library(user, work)),
    ]
    if lender:
        steps.append(("fast tests", lambda: run_tests(lender, folder, dist, options)))
    for name, work_of_step in steps:
        with step(name):
            work_of_step()
    return dist


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tests", metavar="PYTHON", help="run the fast tests with its packages")
    parser.add_argument("--out", type=Path, default=PROJECT / "dist")
    parser.add_argument("options", nargs="*", help="for pytest, after --")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ccot-release-") as folder:
        try:
            dist = check(Path(folder), arguments.tests, arguments.options)
        except Failed as failed:
            print(f"\nnot ready: {failed}", file=sys.stderr)
            return 1
        shutil.rmtree(arguments.out, ignore_errors=True)
        shutil.copytree(dist, arguments.out)
    for path in sorted(arguments.out.iterdir()):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
