"""What is installed and what is passed on: locks, licences, wheel and source distribution."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from benchmarks.licences import is_allowed, licence, packages
from tests.conftest import PROJECT

SETTINGS = tomllib.loads((PROJECT / "pyproject.toml").read_text())
ASKED = SETTINGS["project"]
SOURCES = SETTINGS["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
FOR_USERS = ("dask", "io", "paper", "report", "serve", "zarr")
LOCKS = {
    "locked": ("test", "report", "docs", "mutation", "lock"),
    "lowest": (*FOR_USERS, "test"),
}
PYTHONS = ("3.11", "3.12", "3.13", "3.14")


def lock(name):
    """The lines of a lock, one a package, with all its hashes."""
    text = (PROJECT / "requirements" / f"{name}.txt").read_text()
    plain = re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE)
    return plain.replace("\\\n", " ").splitlines()


def versions(name, python):
    """What a lock installs on Linux with a release of Python."""
    asked = [Requirement(line.partition("--hash")[0]) for line in lock(name)]
    here = {"python_version": python, "python_full_version": f"{python}.9"}
    chosen = [one for one in asked if one.marker is None or one.marker.evaluate(here)]
    found = {one.name: Version(str(one.specifier).removeprefix("==")) for one in chosen}
    assert len(found) == len(chosen)
    return found


def asked_for(extras):
    """Direct requirements; PyTorch is pinned but not locked."""
    lines = ASKED["dependencies"] + [
        line for extra in extras for line in ASKED["optional-dependencies"][extra]
    ]
    asked = [Requirement(line) for line in lines]
    return [(canonicalize_name(one.name), one) for one in asked if one.name != "torch"]


@pytest.mark.parametrize("name", LOCKS)
def test_every_line_of_a_lock_is_hashed_and_names_no_place(name):
    lines = lock(name)
    assert len(lines) > len(asked_for(LOCKS[name]))
    for line in lines:
        assert re.fullmatch(r"[a-z0-9-]+==[^ ]+( ; [^-]+)?(\s+--hash=sha256:[0-9a-f]{64})+", line)


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("name", LOCKS)
def test_locks_hold_what_the_project_asks_for(name, python):
    found = versions(name, python)
    for package, asked in asked_for(LOCKS[name]):
        assert asked.specifier.contains(found[package]), f"make lock: {asked} is {found[package]}"


def test_lowest_versions_are_the_bounds():
    found = versions("lowest", PYTHONS[0])
    for package, asked in asked_for(FOR_USERS):
        assert str(asked.specifier).startswith(">=")
        assert Version(str(asked.specifier)[2:]) == found[package], f"{asked}: {found[package]}"


def test_licences_are_known_and_ask_nothing_of_users():
    """PyTorch is left out: it may come with libraries of NVIDIA, under a licence of NVIDIA's."""
    found = {name: licence(it) for name, it in packages(f"ccot[{','.join(FOR_USERS)}]").items()}
    assert set(found) >= {name for name, _ in asked_for(FOR_USERS)}
    assert not {name: said for name, said in found.items() if not is_allowed(said)}


@pytest.mark.parametrize(
    ("expression", "is_fine"),
    [
        ("MIT", True),
        ("(MIT OR Apache-2.0 WITH LLVM-exception) AND Zlib", True),
        ("MIT AND GPL-3.0-only", False),
        ("LicenseRef-NVIDIA-Proprietary", False),
        ("", False),
        (None, False),
    ],
)
def test_allowed_licences(expression, is_fine):
    assert is_allowed(expression) is is_fine


def copy_sources(project, folder, backwards=False):
    """What a release is made of; file systems may list files in the order of their making."""
    folder.mkdir()
    made = shutil.ignore_patterns("__pycache__", "_build", "api", "auto_examples")
    for name in sorted([*SOURCES, "pyproject.toml", ".gitignore"], reverse=backwards):
        if (project / name).is_dir():
            shutil.copytree(project / name, folder / name, ignore=made)
        else:
            shutil.copy2(project / name, folder / name)
    return folder


def disturb(folder):
    """Other dates, other rights, and files that git ignores."""
    for path in folder.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
        os.utime(path, (10**9, 10**9))
    for junk in ("src/ccot/__pycache__/a.pyc", "docs/_build/html/a.html", "dist/a.whl", "build/a"):
        (folder / junk).parent.mkdir(parents=True)
        (folder / junk).write_text("junk")


def build(folder, out, *options, umask=0o022, **environment):
    """Build as ``pip`` would, with the build backend that is installed: no network."""
    plain = {key: value for key, value in os.environ.items() if key != "SOURCE_DATE_EPOCH"}
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(out), *options]
    subprocess.run(
        command, cwd=folder, env=plain | environment, umask=umask, check=True, capture_output=True
    )
    return {path.name: path.read_bytes() for path in out.iterdir()}


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    """Folder with a copy of the project, and what was built from it."""
    folder = tmp_path_factory.mktemp("release")
    build(copy_sources(PROJECT, folder / "project"), folder / "dist")
    return folder


def unpacked(release, folder):
    (path,) = release.glob("dist/*.tar.gz")
    with tarfile.open(path) as archive:
        archive.extractall(folder, filter="data")
    return folder / path.name.removesuffix(".tar.gz")


def test_builds_are_the_same_everywhere(release, tmp_path):
    elsewhere = copy_sources(release / "project", tmp_path / "another name", backwards=True)
    disturb(elsewhere)
    odd = {"LC_ALL": "C", "TZ": "Pacific/Auckland", "PYTHONHASHSEED": "1"}
    built = build(elsewhere, tmp_path / "dist", umask=0o077, **odd)
    assert len(built) == 2
    assert built == {path.name: path.read_bytes() for path in (release / "dist").iterdir()}


def test_weight_of_the_wheel_is_the_stored_one(release):
    (wheel,) = release.glob("dist/*.whl")
    stored = json.loads((PROJECT / "benchmarks/results/install.json").read_text())
    assert wheel.stat().st_size / 1e3 == pytest.approx(stored["wheel_kilobytes"], rel=0.2), (
        "run python -m benchmarks.install"
    )


def test_source_distribution_makes_the_same_wheel(release, tmp_path):
    sources = unpacked(release, tmp_path)
    ((name, wheel),) = build(sources, tmp_path / "dist", "--target", "wheel").items()
    assert wheel == (release / "dist" / name).read_bytes()


def test_source_distribution_holds_the_project(release, tmp_path):
    listed = subprocess.run(["git", "ls-files"], cwd=PROJECT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git repository")
    tracked = {name for name in listed.stdout.splitlines() if (PROJECT / name).exists()}
    sources = unpacked(release, tmp_path)
    held = {str(path.relative_to(sources)) for path in sources.rglob("*") if path.is_file()}
    assert tracked - held == {".ci/run"}
    assert "PKG-INFO" in held
