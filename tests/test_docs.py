"""The pages: their code runs, their links lead somewhere, and every public name is listed."""

import doctest
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PUBLIC = ("ccot", "baselines", "datasets", "io", "metrics", "plotting", "recommend", "report")


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


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("**/*.md"))], ids=str
)
def test_links_lead_somewhere(page):
    targets = re.findall(r"\]\((?!https?:|mailto:|#)([^)#\s]+)", page.read_text())
    written = [target for target in targets if "auto_examples/" not in target]
    missing = [target for target in written if not (page.parent / target).exists()]
    assert not missing


def test_reference_lists_every_public_name():
    listed = (DOCS / "api.rst").read_text().split()
    for name in PUBLIC:
        module = importlib.import_module("ccot" if name == "ccot" else f"ccot.{name}")
        public = {thing for thing in module.__all__ if not thing.startswith("__")}
        assert public <= set(listed), f"{module.__name__} has names that docs/api.rst does not list"
