"""What is made for others: container, site, paper, figures of weight and speed."""

import fnmatch
import importlib
import json
import re
import subprocess
import sys
import urllib.request
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
from typer.testing import CliRunner

from ccot import TransportCoclustering
from ccot.cli import app
from ccot.recommend import BlockRecommender
from tests.conftest import PROJECT
from tools import example_ratings, release_check

DOCKERFILE = (PROJECT / "Dockerfile").read_text().replace("\\\n", " ")
FINAL = DOCKERFILE[DOCKERFILE.rindex("\nFROM") :]
# Say which files a process opens for writing, and what it is asked to say.
WATCH = """
import os, sys
written = []
def hook(event, arguments):
    flags = arguments[2] if event == "open" else None
    if isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR):
        written.append(str(arguments[0]))
sys.addaudithook(hook)
from fastapi.testclient import TestClient
from ccot.recommend.server import Service, load_app
print(TestClient(load_app(Service(sys.argv[1]))).get("/health").json()["status"])
print([path for path in written if not path.startswith(("/dev/", "/tmp/"))])
"""


def instruction(name):
    (found,) = re.findall(rf"^{name} (.*)$", FINAL, flags=re.MULTILINE)
    return found


def test_container_is_not_run_by_root():
    assert instruction("USER") == "10001:10001"
    assert FINAL.index("USER") > FINAL.index("RUN useradd --uid 10001")
    assert "PYTHONDONTWRITEBYTECODE=1" in FINAL


def test_container_takes_what_it_copies():
    """Sources exist, and the list of what is left out lets them through."""
    ignored = (PROJECT / ".dockerignore").read_text().split()
    assert ignored[0] == "*"
    allowed = [line[1:] for line in ignored if line.startswith("!")]
    for line in re.findall(r"^COPY (?!--from)(.*)$", DOCKERFILE, flags=re.MULTILINE):
        for name in line.split()[:-1]:
            assert (PROJECT / name).exists()
            assert any(fnmatch.fnmatch(name, pattern) for pattern in allowed)
    for line in re.findall(r"pip install .*?-r \S+", DOCKERFILE):
        assert "--require-hashes" in line


def test_container_serves_what_the_command_understands(monkeypatch, tmp_path):
    """The default command is one of ours, with options that exist, on the port that is exposed."""
    called = {}
    monkeypatch.setattr(
        "ccot.recommend.server.run_service", lambda service, **options: called.update(options)
    )
    monkeypatch.setattr("ccot.recommend.server.load_app", lambda service: None)
    monkeypatch.setattr("ccot.recommend.server.check_address", lambda host, port: None)
    monkeypatch.chdir(tmp_path)
    assert json.loads(instruction("ENTRYPOINT")) == ["ccot"]
    arguments = json.loads(instruction("CMD"))
    (tmp_path / arguments[1]).write_text("")
    outcome = CliRunner().invoke(app, arguments)
    assert outcome.exit_code == 0, outcome.output
    assert called["host"] == "0.0.0.0"
    assert called["port"] == int(instruction("EXPOSE"))


def test_container_asks_for_health_where_the_service_answers(monkeypatch):
    words = json.loads(instruction("HEALTHCHECK").partition("CMD ")[2])
    asked = []
    monkeypatch.setattr(urllib.request, "urlopen", lambda url, timeout: asked.append(url))
    exec(words[2], {})
    assert asked == [f"http://127.0.0.1:{instruction('EXPOSE')}/health"]


# The test client of Starlette warns of httpx; random ratings have no clusters to find again.
@pytest.mark.filterwarnings("ignore:Using `httpx`", "ignore:.*are not found again")
def test_service_writes_nothing(tmp_path):
    """So that the file system of the container may be read-only."""
    rng = np.random.default_rng(0)
    ratings = np.where(rng.random((20, 12)) < 0.6, rng.integers(1, 6, (20, 12)), np.nan)
    model = BlockRecommender(TransportCoclustering(2, 2, random_state=0)).fit(ratings)
    path = model.save(tmp_path / "model.ccot")
    done = subprocess.run(
        [sys.executable, "-B", "-W", "ignore", "-c", WATCH, str(path)],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    answer, written = done.stdout.split("\n")[:2]
    # SciPy before 1.14 makes a file to see whether it can.
    assert answer == "ok", done.stdout + done.stderr
    assert re.sub(r"\"b'\S*/scipy-\w+'\"", "", written) == "[]", done.stdout + done.stderr


def test_example_of_ratings_can_be_fitted(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["", str(tmp_path / "ratings.csv")])
    example_ratings.main()
    arguments = ["fit-ratings", str(tmp_path / "ratings.csv"), "--out", str(tmp_path / "m.ccot")]
    outcome = CliRunner().invoke(app, arguments)
    assert outcome.exit_code == 0, outcome.output


def test_readme_has_commands_to_check():
    commands = release_check.shell_commands(PROJECT / "README.md")
    assert [words[1] for words in commands] == ["simulate", "fit", "predict"]
    assert all("#" not in word for words in commands for word in words)


@pytest.fixture
def publish(monkeypatch):
    monkeypatch.syspath_prepend(PROJECT / "docs")
    return importlib.import_module("publish")


def test_sitemap_names_every_page_once(publish):
    tree = ElementTree.fromstring(publish.sitemap(["index.html", "tutorials/a&b.html"]))
    places = [place.text for place in tree.iter() if place.tag.endswith("loc")]
    assert places == [publish.address() + "index.html", publish.address() + "tutorials/a&b.html"]


def test_pages_that_moved_lead_somewhere(publish):
    docs = PROJECT / "docs"
    for old, new in publish.REDIRECTS.items():
        assert not any((docs / old).with_suffix(kind).exists() for kind in (".md", ".rst"))
        assert any((docs / new).with_suffix(kind).exists() for kind in (".md", ".rst"))


def test_an_old_address_names_the_new_one(publish, monkeypatch, tmp_path):
    monkeypatch.setattr(publish, "REDIRECTS", {"tutorials/old": "guide"})
    environment = SimpleNamespace(found_docs={"guide"})
    builder = SimpleNamespace(name="html")
    publish.finish(SimpleNamespace(outdir=tmp_path, env=environment, builder=builder), None)
    assert 'url=../guide.html"' in (tmp_path / "tutorials" / "old.html").read_text()
    assert "guide.html" in (tmp_path / "sitemap.xml").read_text()


def test_every_page_that_was_renamed_leads_somewhere(publish):
    command = ["git", "log", "--no-renames", "--diff-filter=D", "--format=", "--name-only", "docs"]
    listed = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git repository")
    pages = re.findall(r"^docs/(.+)\.(?:md|rst)$", listed.stdout, flags=re.MULTILINE)
    docs = PROJECT / "docs"
    there = {str(path.relative_to(docs).with_suffix("")) for path in docs.rglob("*.*")}
    assert set(pages) - there <= set(publish.REDIRECTS)


def test_card_is_a_picture_of_the_size_that_is_asked_for(publish):
    header = (PROJECT / "docs" / publish.CARD).read_bytes()[:24]
    assert header[1:4] == b"PNG"
    width, height = np.frombuffer(header[16:24], ">u4")
    assert (width, height) == (1200, 630)
    tags = publish.card_tags('a "title"', "u", "s")
    assert publish.address() + publish.CARD in tags
    assert "&quot;title&quot;" in tags


# What JOSS asks for since 2026.
SECTIONS = ["Summary", "Statement of need", "State of the field", "Software design",
            "Research impact statement", "AI usage disclosure", "Acknowledgements",
            "References"]  # fmt: skip


def paper():
    return (PROJECT / "paper" / "paper.md").read_text(encoding="utf-8")


def test_paper_says_what_the_results_say(monkeypatch):
    monkeypatch.syspath_prepend(PROJECT / "paper")
    build = importlib.import_module("build")
    assert build.render(paper()) == paper(), "run python paper/build.py"


def test_paper_is_as_long_as_asked_and_its_references_exist():
    body = paper().split("---", 2)[2]
    plain = re.sub(r"<!--.*?-->|^\|.*$", "", body, flags=re.MULTILINE)
    assert 750 <= len(plain.split()) <= 1750
    assert re.findall(r"^# (.*)$", body, flags=re.MULTILINE) == SECTIONS
    listed = set(re.findall(r"^@\w+\{(\w+),", (PROJECT / "paper/paper.bib").read_text(),
                            flags=re.MULTILINE))  # fmt: skip
    assert set(re.findall(r"@(\w+)", body)) == listed
    for name in re.findall(r"!\[[^\]]*\]\((\S+)\)", body):
        assert (PROJECT / "paper" / name).exists()


def test_operations_that_are_followed_are_those_that_are_stored():
    from benchmarks.operations.cases import OPERATIONS

    stored = json.loads((PROJECT / "benchmarks/results/operations.json").read_text())
    names = [one.name for one in OPERATIONS]
    assert len(set(names)) == 10
    assert [one["operation"] for one in stored["operations"]] == names


def test_weight_of_an_installation_is_stored():
    stored = json.loads((PROJECT / "benchmarks/results/install.json").read_text())
    alone = stored["installations"][0]
    assert alone["extra"] == ""
    assert alone["megabytes"] == pytest.approx(sum(alone["megabytes_of"].values()), abs=2)
    assert {"numpy", "scipy", "ccot"} <= {name.lower() for name in alone["megabytes_of"]}


def test_nothing_failed_on_the_pythons_that_were_tried():
    stored = json.loads((PROJECT / "benchmarks/results/pythons.json").read_text())
    versions = tuple(re.findall(r"^\| (3\.\d+) \|", (PROJECT / "docs/policies.md").read_text(),
                                flags=re.MULTILINE))  # fmt: skip
    for row in stored["rows"]:
        assert not row["failed"], row["part"]
        assert row["python"].rpartition(".")[0] in versions
