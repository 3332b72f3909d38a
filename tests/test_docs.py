"""The pages: their code runs, their links lead somewhere, and every public name is listed."""

import doctest
import importlib
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ccot.cli import app

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PUBLIC = (
    "ccot",
    "baselines",
    "datasets",
    "io",
    "metrics",
    "plotting",
    "recommend",
    "report",
    "scverse.pl",
    "scverse.tl",
)


def blocks_of(page: Path, language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE
    )


def test_answers_print_what_they_say():
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    names: dict = {}
    blocks = blocks_of(DOCS / "faq.md", "pycon")
    for number, block in enumerate(blocks):
        test = doctest.DocTestParser().get_doctest(block, names, f"faq {number}", "faq.md", 0)
        test.globs = names  # what one answer defines, the next may use
        runner.run(test, clear_globs=False)
    assert runner.tries > len(blocks)
    assert not runner.failures


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", DOCS / "index.md"], ids=lambda page: page.name
)
def test_first_steps_run(page, tmp_path, monkeypatch, capsys):
    matplotlib = pytest.importorskip("matplotlib")
    before = matplotlib.get_backend()
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    try:
        for block in blocks_of(page, "python"):
            exec(block, names)
    finally:
        matplotlib.use(before)
    assert "in 3 clusters" in capsys.readouterr().out


def test_tutorial_prints_what_it_says(tmp_path, monkeypatch):
    """Commands and Python of the tutorial on files, in its order."""
    monkeypatch.chdir(tmp_path)
    page = DOCS / "tutorials" / "file.md"
    printed = ""
    for line in "".join(blocks_of(page, "sh")).splitlines():
        if line == "head -n 4 D2.csv > new.csv":
            head = Path("D2.csv").read_text().splitlines(keepends=True)[:4]
            Path("new.csv").write_text("".join(head))
            continue
        command, *arguments = line.split()
        assert command == "ccot"
        outcome = CliRunner().invoke(app, arguments)
        assert outcome.exit_code == 0, outcome.output
        printed += outcome.output
    printed += Path("D2-ccot/row_labels.csv").read_text()
    for said in blocks_of(page, "text"):
        assert " ".join(said.split()) in " ".join(printed.split())
    (python,) = blocks_of(page, "python")
    exec(python, {})


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("**/*.md"))], ids=str
)
def test_links_lead_somewhere(page):
    targets = re.findall(r"\]\((?!https?:|mailto:|#)([^)#\s]+)", page.read_text())
    written = [target for target in targets if "auto_examples/" not in target]
    missing = [target for target in written if not (page.parent / target).exists()]
    assert not missing


def test_tables_are_those_of_the_stored_results(monkeypatch):
    """All pages but that of the reproduction, which has a test of its own."""
    if not (ROOT / "benchmarks" / "results").is_dir():
        pytest.skip("no benchmarks/results: tables are rendered from them in the repository")
    monkeypatch.syspath_prepend(DOCS)
    render = importlib.import_module("render").render
    pages = {path: path.read_text() for path in DOCS.glob("*.md") if path.stem != "reproduction"}
    assert any("<!-- table:" in page for page in pages.values())
    stale = [path.name for path, page in pages.items() if render(page) != page]
    assert not stale, "run python docs/render.py"


def test_reference_lists_every_public_name():
    listed = (DOCS / "api.rst").read_text().split()
    for name in PUBLIC:
        module = importlib.import_module("ccot" if name == "ccot" else f"ccot.{name}")
        public = {thing for thing in module.__all__ if not thing.startswith("__")}
        assert public <= set(listed), f"{module.__name__} has names that docs/api.rst does not list"
