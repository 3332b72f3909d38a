import importlib
import re
import sys

import pytest

from tests.conftest import PROJECT


@pytest.fixture
def commands(monkeypatch):
    monkeypatch.syspath_prepend(PROJECT / "docs")
    yield importlib.import_module("commands")
    sys.modules.pop("commands", None)


def test_the_reference_is_what_the_program_says(commands):
    page = (PROJECT / "docs" / "cli.md").read_text()
    for name, make in commands.TABLES.items():
        found = re.search(rf"<!-- table: {name} -->\n(.*?)<!-- end: {name} -->", page, re.DOTALL)
        assert found, name
        assert found[1].strip() == make().strip(), "run python docs/render.py"


def test_every_option_is_explained(commands):
    for line in commands.commands().splitlines():
        if line.startswith("| `"):
            assert not line.endswith("|  |"), line
