"""Small pieces of the command line on their own."""

import io

import numpy as np

from ccot.cli.errors import one_line
from ccot.cli.fitting import _title
from ccot.cli.inputs import count_missing
from ccot.cli.results import harmless, write_rows


def test_messages_are_one_line():
    assert one_line(ValueError("too\n  long")) == "too long"
    assert one_line(ValueError()) == "ValueError"


def test_inputs_are_called_by_their_file():
    assert (_title("data/genes.csv.gz"), _title("-")) == ("genes", "stdin")


def test_missing_entries_are_counted():
    assert count_missing(np.array([[1, np.nan], [np.nan, 2]])) == 2


def test_formulas_get_a_quote():
    assert [harmless(name) for name in ("=1+1", "-1.5", "a=b")] == ["'=1+1", "-1.5", "a=b"]


def test_formulas_in_any_cell_get_a_quote():
    file, row = io.StringIO(), ("@x", "=1+1", -1.5, "-1.5", None, "-2+3")
    for raw_names, line in (
        (False, "'@x,'=1+1,-1.5,-1.5,,'-2+3"),
        (True, "@x,=1+1,-1.5,-1.5,,-2+3"),
    ):
        write_rows(file, ("name", "note"), [row], raw_names=raw_names)
        assert file.getvalue().splitlines()[-1] == line
