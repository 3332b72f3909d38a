"""Workflows: pinned, with the least rights, and made of commands that exist."""

import json
import re
import shutil
import subprocess
import sys

import pytest

from tests.conftest import PROJECT, needs_unix
from tools import baselines, run_job

yaml = pytest.importorskip("yaml")

FOLDER = PROJECT / ".github" / "workflows"
FILES = sorted(FOLDER.glob("*.yml"))
# Rights beyond reading, and the only jobs that have them.
RIGHTS = {
    ("pages.yml", "deploy"): {"pages": "write", "id-token": "write"},
    ("release.yml", "attest"): {"id-token": "write", "attestations": "write"},
    ("release.yml", "publish"): {"id-token": "write"},
    ("release.yml", "announce"): {"contents": "write"},
    ("test.yml", "dependencies"): {"contents": "read"},
}


def jobs():
    for path in FILES:
        for name, job in yaml.safe_load(path.read_text())["jobs"].items():
            yield pytest.param(path.name, name, job, id=f"{path.stem}-{name}")


def commands(job):
    return [line.strip() for step in job["steps"] for line in step.get("run", "").splitlines()]


def test_there_are_all_of_them():
    assert [path.stem for path in FILES] == ["pages", "release", "scheduled", "test"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_actions_are_pinned_by_commit(path):
    text = path.read_text()
    used = re.findall(r"uses: (.*)", text)
    assert used
    for action in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)
    assert "secrets." not in text
    assert "pull_request_target" not in text


def test_one_action_one_commit():
    pins = {tuple(re.split("@| # ", action)) for path in FILES
            for action in re.findall(r"uses: (.*)", path.read_text())}  # fmt: skip
    assert len({name for name, *_ in pins}) == len(pins)


@pytest.mark.parametrize(("file", "name", "job"), list(jobs()))
def test_rights_and_limits(file, name, job):
    workflow = yaml.safe_load((FOLDER / file).read_text())
    assert workflow["permissions"] == {"contents": "read"}
    assert job.get("permissions") == RIGHTS.get((file, name))
    assert job["timeout-minutes"] <= 350
    for step in job["steps"]:
        if step.get("uses", "").startswith("actions/checkout"):
            assert step["with"]["persist-credentials"] is False
        # Nothing that somebody else wrote is put into a script.
        assert "${{" not in step.get("run", "")


@pytest.mark.parametrize(("file", "name", "job"), list(jobs()))
def test_commands_exist(file, name, job):
    makefile = (PROJECT / "Makefile").read_text()
    for line in commands(job):
        for target in re.findall(r"\bmake ([a-z-]+)", line):
            assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), line
        for module in re.findall(r"python -m ((?:tools|benchmarks|fuzz)[\w.]*)", line):
            path = PROJECT / module.replace(".", "/")
            assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), line
        for path in re.findall(r"\b(?:tests|requirements)/[\w./-]+", line):
            assert (PROJECT / path).exists(), line


def test_who_publishes_runs_nothing_of_ours():
    workflow = yaml.safe_load((FOLDER / "release.yml").read_text())["jobs"]
    for name in ("attest", "publish", "announce"):
        used = [step.get("uses", "") for step in workflow[name]["steps"]]
        assert not any("checkout" in action for action in used)
    assert workflow["publish"]["environment"] == "pypi"
    assert workflow["publish"]["needs"] == "attest"


@needs_unix
@pytest.mark.slow
@pytest.mark.skipif(not (PROJECT / ".git").exists(), reason="not a git repository")
def test_a_job_runs_in_a_clean_copy(capfd):
    steps = [
        {"uses": "actions/checkout@0"},
        {"run": "test -f pyproject.toml && python -c 'import sys; print(sys.prefix)'"},
        {"run": 'echo "$WORD" > here.txt; false | cat', "shell": "bash"},
        {"run": "echo never"},
    ]
    assert not run_job.run_job({"steps": steps}, {"WORD": "said"}, sys.executable)
    told = capfd.readouterr().out.splitlines()
    assert told[0] == "left out: actions/checkout"
    assert "ccot-job-" in told[2]
    assert "never" not in told[-1]
    assert not (PROJECT / "here.txt").exists()


@pytest.mark.skipif(not shutil.which("actionlint"), reason="no actionlint on this machine")
def test_actionlint_has_nothing_to_say():
    done = subprocess.run(["actionlint", *map(str, FILES)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_forms_ask_for_versions():
    for name in ("bug", "result"):
        form = yaml.safe_load((PROJECT / ".github/ISSUE_TEMPLATE" / f"{name}.yml").read_text())
        (field,) = [part for part in form["body"] if part["id"] == "versions"]
        assert "ccot --version --verbose" in field["attributes"]["label"]
        assert field["validations"]["required"]


def test_hosts_of_the_site_build_what_make_docs_builds():
    told = yaml.safe_load((PROJECT / ".readthedocs.yaml").read_text())["build"]["jobs"]
    (command,) = told["build"]["html"]
    assert "-W" in command.split()
    for line in told["install"]:
        for path in re.findall(r"requirements/[\w.]+", line):
            assert (PROJECT / path).exists()


def test_baselines_tell_what_is_worse():
    stored = {"operations": [{"operation": "a", "ratio": 1.0}, {"operation": "b", "ratio": 2.0}]}
    new = {"operations": [{"operation": "a", "ratio": 1.4}, {"operation": "b", "ratio": 3.1}]}
    assert len(baselines.speed(new, stored, 1.5)) == 1
    mutant = {"function": "f", "removed": "x", "added": "y", "line": 1, "reason": None}
    lost = {"files": [{"file": "m.py", "survivors": [mutant]}]}
    known = {"files": [{"file": "m.py", "survivors": [{**mutant, "line": 9}]}]}
    assert baselines.mutation(lost, {"files": []}, 1.5)
    assert not baselines.mutation(lost, known, 1.5)
    assert baselines.fuzz({"targets": {"npz": {"findings": ["crash"]}}}, {}, 1.5) == ["npz: crash"]


@pytest.mark.parametrize("kind", baselines.KINDS)
def test_stored_results_are_no_worse_than_themselves(kind):
    compare, name = baselines.KINDS[kind]
    path = baselines.RESULTS / name
    if not path.exists():
        pytest.skip(f"no {name}: the repository has it")
    stored = json.loads(path.read_text())
    worse = compare(stored, stored, 1.0)
    assert kind == "fuzz" or not worse
