"""What is installed: locks that fit the project, licences."""

import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.conftest import PROJECT

ASKED = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
FOR_USERS = ("dask", "io", "paper", "report", "serve", "zarr")
LOCKS = {
    "locked": ("test", "report", "docs", "mutation", "lock"),
    "lowest": (*FOR_USERS, "test"),
}
PYTHONS = ("3.11", "3.12", "3.13")


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
