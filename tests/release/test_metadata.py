"""One source for what the project says about itself, and every other place equal to it."""

import json
import re
import shutil
import subprocess
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

import ccot
from hatch_build import with_addresses
from tests.conftest import PROJECT
from tools import changelog, metadata

SETTINGS = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FACTS = metadata.read_facts()
SOURCES = [
    PROJECT / name
    for name in tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
        "hatch"
    ]["build"]["targets"]["sdist"]["include"]
]
# Nobody's, in two halves, so that a move of the project does not change what is expected.
NEW, SITE = "https://github.com/" + "No-Body-0/ccot", "https://" + "no-body-0.github.io/ccot/"
# Hosts of registries; words in two halves, so that this file does not name them either.
HOSTS = re.compile("|".join(("pypi" r"\.org", "python" r"hosted\.org", "ana" r"conda\.org",
                             "npm" r"js\.org", "ghcr" r"\.io", "docker" r"\.io",
                             "deb" r"ian\.org", "py" r"torch\.org")))  # fmt: skip
# Folders of whoever made a release, as no other machine has them.
FOLDERS = re.compile(r"(?<![\w.)])/(?:root|work|home|Users)/\w")


def texts():
    """Every text file of a release."""
    paths = [path for source in SOURCES for path in [source, *source.rglob("*")] if path.is_file()]
    for path in paths:
        if "__pycache__" not in path.parts and "_build" not in path.parts:
            try:
                yield path, path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue


def test_files_are_those_that_the_tool_writes():
    assert not metadata.stale(), "run python -m tools.metadata"


def test_three_files_agree():
    software, deposit = (json.loads((PROJECT / name).read_text()) for name in
                         ("codemeta.json", ".zenodo.json"))  # fmt: skip
    citation = pytest.importorskip("yaml").safe_load((PROJECT / "CITATION.cff").read_text())
    assert software["version"] == deposit["version"] == str(citation["version"]) == ccot.__version__
    assert software["license"].endswith(f"/{deposit['license']}")
    assert deposit["license"] == citation["license"] == SETTINGS["license"]
    assert software["keywords"] == deposit["keywords"] == citation["keywords"]
    assert citation["keywords"] == SETTINGS["keywords"]
    assert software["codeRepository"] == citation["repository-code"]
    assert citation["preferred-citation"]["year"] == 2017
    assert len(citation["preferred-citation"]["authors"]) == 5


def test_citation_is_the_one_of_the_readme():
    readme = " ".join((PROJECT / "README.md").read_text(encoding="utf-8").split())
    for family, _ in metadata.PAPER["authors"]:
        assert family in readme
    assert metadata.PAPER["title"].lower() in readme.lower()


def test_pythons_are_the_same_everywhere():
    named = re.findall(r"Programming Language :: Python :: (3\.\d+)$",
                       "\n".join(SETTINGS["classifiers"]), flags=re.MULTILINE)  # fmt: skip
    allowed = SpecifierSet(SETTINGS["requires-python"])
    assert all(allowed.contains(name) for name in named)
    assert not allowed.contains(f"3.{int(named[0][2:]) - 1}")
    workflow = (PROJECT / ".github/workflows/test.yml").read_text()
    (matrix,) = re.findall(r"python: \[(.*)\]", workflow)
    assert re.findall(r"3\.\d+", matrix) == named
    policies = (PROJECT / "docs/policies.md").read_text()
    assert re.findall(r"^\| (3\.\d+) \|", policies, flags=re.MULTILINE) == named


def test_there_is_one_address_and_no_registry():
    """``ccot-dev`` in words is the placeholder; whoever moves the project moves all of it."""
    repository = FACTS.urls["Repository"]
    other = []
    for path, text in texts():
        addresses = re.findall(r"https://github\.com/[\w-]+/ccot\b", text)
        other += [(path.name, found) for found in addresses
                  if found != repository and "OWNER" not in found]  # fmt: skip
        for pattern in (HOSTS, FOLDERS):
            other += [(path.name, found[0]) for found in [pattern.search(text)] if found]
    assert not other


def test_description_on_an_index_has_addresses_in_place_of_paths():
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    page = with_addresses(readme, NEW, "0.1.0")
    targets = re.findall(r"\]\(([^)#]+)", page)
    ours = [target.split("/v0.1.0/") for target in targets if target.startswith(NEW)]
    assert len(ours) == len(targets) > 20
    assert {start for start, _ in ours} == {f"{NEW}/blob", f"{NEW}/raw"}
    assert all((PROJECT / path).is_file() for _, path in ours)
    assert f"{NEW}/blob/main/LICENSE" in with_addresses(readme, NEW, "0.2.0.dev0")


def test_an_owner_moves_the_project_in_one_step(tmp_path):
    for name in ("pyproject.toml", "CHANGELOG.md", "Dockerfile", "docs/policies.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROJECT / name, tmp_path / name)
    shutil.copytree(PROJECT / ".github", tmp_path / ".github")
    (tmp_path / "src" / "ccot").mkdir(parents=True)
    shutil.copy(PROJECT / "src" / "ccot" / "_version.py", tmp_path / "src" / "ccot")
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    changed = metadata.move(NEW + "/", tmp_path)
    assert {path.name for path in changed} >= {"pyproject.toml", "Dockerfile", "config.yml"}
    urls = metadata.read_facts(tmp_path).urls
    assert urls["Repository"] == NEW
    assert urls["Documentation"] == SITE
    assert not any("ccot-dev" in path.read_text() for path in changed)


@pytest.mark.parametrize(
    ("said", "date"),
    [("## [0.1.0] - 2026-12-01\n", "2026-12-01"), ("## [0.1.0]\n", None), ("", None)],
)
def test_date_of_a_release(said, date):
    assert metadata.release_date("0.1.0", f"# Changelog\n\n## [Unreleased]\n\n{said}") == date


def test_changelog_keeps_its_form():
    text = (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8")
    heads = re.findall(r"^## (.*)$", text, flags=re.MULTILINE)
    assert heads[0] == "[Unreleased]"
    dated = [re.fullmatch(r"\[(\d+\.\d+\.\d+)\] - \d{4}-\d\d-\d\d( \[YANKED\])?", head)
             for head in heads[1:]]  # fmt: skip
    assert all(dated)
    numbers = [Version(found[1]) for found in dated if found]
    assert numbers == sorted(numbers, reverse=True)
    assert set(re.findall(r"^### (.*)$", text, flags=re.MULTILINE)) <= changelog.KINDS


def test_entry_of_a_release():
    newer = "## [0.2.0] - 2027-01-01\n\n### Added\n\n- a\n"
    text = f"# C\n\n## [Unreleased]\n\n{newer}\n## [0.1.0] - 2026-12-01\n\n- b\n"
    assert changelog.entry(text, "0.2.0") == "### Added\n\n- a"
    assert changelog.entry(text, "0.1.0") == "- b"
    assert not changelog.problems("v0.2.0", "0.2.0", text)
    assert len(changelog.problems("v0.3.0", "0.2.0", text)) == 1
    assert len(changelog.problems("v0.3.0.dev0", "0.3.0.dev0", text)) == 2


def test_conda_recipe_asks_for_what_the_package_asks_for():
    recipe = pytest.importorskip("yaml").safe_load((PROJECT / "conda/recipe.yaml").read_text())
    run = dict(line.split(" ", 1) for line in recipe["requirements"]["run"])
    assert run.pop("python") == ">=${{ python_min }}"
    assert SETTINGS["requires-python"] == f">={recipe['context']['python_min']}"
    asked = [Requirement(line) for line in SETTINGS["dependencies"]]
    assert run == {canonicalize_name(one.name): str(one.specifier) for one in asked}
    optional = {
        canonicalize_name(one.name): str(one.specifier)
        for extra in ("dask", "gpu", "io", "report", "scverse", "serve", "tables", "zarr")
        for one in map(Requirement, SETTINGS["optional-dependencies"][extra])
    }
    conda = {"matplotlib-base": "matplotlib", "pytorch": "torch"}
    constraints = dict(line.split(" ", 1) for line in recipe["requirements"]["run_constraints"])
    assert {conda.get(name, name): it for name, it in constraints.items()} == optional
    (entry,) = recipe["build"]["python"]["entry_points"]
    assert entry == "ccot = " + SETTINGS["scripts"]["ccot"]
    about = recipe["about"]
    assert about["license"] == SETTINGS["license"]
    assert about["summary"] == SETTINGS["description"]
    assert about["repository"] == FACTS.urls["Repository"]
    assert ccot.__version__.startswith(recipe["context"]["version"])
    commands = [line for test in recipe["tests"] for line in test.get("script", [])]
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    assert all(line in readme for line in commands if "--version" not in line)
