import csv
from html.parser import HTMLParser

import numpy as np
import pytest

from ccot.experiments.protocol import DATA_SETS, METHODS, Protocol
from ccot.experiments.published import FIGURE2C, TABLE1, TABLE2
from ccot.experiments.sections import make_table1, write_part
from ccot.experiments.summary import summarise
from ccot.experiments.table2 import (
    SETTINGS,
    cells_csv,
    make_counts,
    make_table2,
    make_table_of_p_values,
    make_table_of_right_numbers,
    make_table_of_seconds,
)
from ccot.experiments.tables import Table, Text


def entries(table):
    """The plain entries, by row and head."""
    return {
        (row[0] if isinstance(row[0], str) else row[0].plain, head): entry
        for row in table.rows
        for head, entry in zip(table.heads, row, strict=True)
    }


class Cells(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.texts = [], []

    def handle_starttag(self, tag, attrs):
        if tag not in ("img", "meta", "wbr"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def test_a_table_in_four_languages():
    table = Table(
        "t", "A & B", ("set", "x_1"), [("D1", Text(".1 ± .2", bold=True, remark="+.05"))], ("50 %",)
    )
    assert "| D1 | **.1 ± .2** |" in table.markdown()
    assert table.csv() == "set,x_1\nD1,.1 ± .2\n"
    assert r"D1 & \textbf{.1 $\pm$ .2} \\" in table.latex()
    assert r"\caption{A \& B}" in table.latex()
    assert r"50 \%" in table.latex()
    parser = Cells()
    parser.feed(table.html())
    assert parser.open == []
    assert {"A & B", ".1\u202f±\u202f.2", "+.05", "50 %"} <= set(parser.texts)


def test_the_papers_numbers_cover_its_methods():
    assert set(TABLE2) == set(METHODS) - {"TransportCoclustering"}
    assert all(set(row) == set(DATA_SETS) for row in (*TABLE2.values(), *FIGURE2C.values(), TABLE1))
    dashes = sum(entry is None for row in TABLE2.values() for entry in row.values())
    assert dashes == 6


def test_table1_names_what_the_paper_and_the_parameters_disagree_on():
    cells = entries(make_table1())
    assert cells["D3, paper", "column proportions"] == "equal"
    assert cells["D3, here", "column proportions"] == ".5 .2 .1 .2"
    for name, paper in TABLE1.items():
        assert cells[f"{name}, here", "size"] == " × ".join(map(str, paper.size))
        assert cells[f"{name}, here", "blocks"] == " × ".join(map(str, paper.blocks))


@pytest.fixture
def cells(make_trials):
    rng = np.random.default_rng(0)
    return summarise(
        make_trials("K-means", rng.uniform(0.3, 0.5, 10))
        + make_trials("NMF", [None] * 6 + [0.4] * 4, shifted=True)
        + make_trials("CCOT", [0.01] * 9 + [None])
        + make_trials("TransportCoclustering", [0.0] * 10)
    )


def test_table2_is_over_all_sets_under_the_papers_numbers(cells):
    table = entries(make_table2(cells))
    assert table["D3, paper", "K-means"].plain == "–"
    assert table["D3, paper", "CCOT"] == Text(".031 ± .027")
    assert table["D3, published", "CCOT"] == Text(".059 ± .155", remark="+.028")
    assert table["D3, published", "TransportCoclustering"].bold
    assert not table["D3, published", "K-means"].bold
    assert any("NMF need non-negative" in note for note in make_table2(cells).notes)


def test_the_table_of_right_numbers_says_how_many_trials_count(cells):
    shown = make_table_of_right_numbers(cells)
    assert "right numbers only" in shown.caption
    table = entries(shown)
    assert table["D3, published", "NMF"].plain == "– (4)"
    assert table["D3, published", "CCOT"] == Text(".010 ± .000 (9)", remark="-.021")


def test_every_table_of_errors_states_loss_and_regularisation(cells):
    for table in (make_table2(cells), make_table_of_right_numbers(cells), make_counts(cells)):
        assert any("squared loss, reg 1" in note for note in table.notes)


def test_trials_that_did_not_converge_are_counted(make_trials):
    for method in ("NMF", "CCOT"):
        notes = make_table2(summarise(make_trials(method, [0.1] * 6, converged=False))).notes
        told = f"Trials that stopped at their iteration limit: {method} on D3 (published) 6."
        assert told in notes
    notes = make_table2(summarise(make_trials("NMF", [0.1] * 6))).notes
    assert "Trials that stopped at their iteration limit: none." in notes


def test_the_page_says_which_commits_and_that_some_are_not_recorded(make_trials, tmp_path):
    old, new = (make_trials("NMF", [0.1] * 2, commit=commit) for commit in (None, "abc123"))
    page = write_part("table2", Protocol(), [*old, *new], tmp_path).read_text()
    assert "Commits: abc123, not recorded." in page


def test_loss_and_regularisation_stand_under_every_table_of_the_comparison(cells):
    makers = (make_table2, make_table_of_right_numbers, make_table_of_p_values,
              make_table_of_seconds, make_counts)  # fmt: skip
    for make in makers:
        assert SETTINGS in make(cells).notes


def test_p_values_name_the_best(cells):
    row = entries(make_table_of_p_values(cells))
    assert row["D3, published", "TransportCoclustering"] == "best"
    assert row["D3, published", "K-means"] == ".002"


def test_the_csv_of_cells_has_the_papers_numbers(cells):
    rows = list(csv.DictReader(cells_csv(cells).splitlines()))
    ccot = next(row for row in rows if row["method"] == "CCOT")
    assert float(ccot["paper_mean"]) == 0.031
    assert int(ccot["right_n_trials"]) == 9
    assert float(ccot["every_mean"]) == pytest.approx(0.059)


def test_counts_are_of_methods_that_find_their_numbers(cells):
    table = make_counts(cells)
    assert table.heads == ("data set, overlap", "CCOT", "TransportCoclustering")
    assert table.rows == [["D3, paper", "99 / 98", ""], ["D3, published", "100 / 90", "100 / 100"]]
