"""The file: whole or not there, and safe whatever the names are."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from ccot import CCOT, TransportCoclustering
from ccot.report import write_report
from ccot.report.page import SCRIPTS, embed
from tests.report.models import crisp

HOSTILE = "</script><script>alert(1)</script>&amp;<!--"


class Reader(HTMLParser):
    """Collects scripts, and text outside of them."""

    def __init__(self):
        super().__init__()
        self.inside, self.scripts, self.texts, self.tags = None, [], {}, []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.inside = tag
        if tag == "script":
            self.scripts.append((dict(attributes), ""))

    def handle_data(self, data):
        if self.inside == "script":
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)
        elif self.inside is not None:
            self.texts.setdefault(self.inside, data)

    def handle_endtag(self, tag):
        self.inside = None


def read(path):
    reader = Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    content = next(text for facts, text in reader.scripts if facts.get("id") == "content")
    return reader, json.loads(content)


@pytest.fixture(scope="module")
def fitted():
    return crisp()


def test_notes_come_before_the_warnings_of_the_models(fitted, tmp_path):
    data, model = fitted
    notes = [HOSTILE, "mind the step"]
    page = write_report(tmp_path / "page.html", model, matrix=data, notes=notes)
    _, content = read(page)
    assert content["models"][0]["warnings"][:2] == notes


def test_page_refers_to_nothing(fitted, tmp_path):
    data, model = fitted
    page = write_report(tmp_path / "page.html", model, matrix=data)
    reader, content = read(page)
    for _, attributes in reader.tags:
        assert "src" not in attributes
        assert attributes.get("href", "#").startswith(("#", "data:"))
    style_and_scripts = page.read_text().split('<script type="application/json"')[0]
    assert not re.search(r"url\(|@import", style_and_scripts)
    assert len(reader.scripts) == 2
    assert content["shape"] == [60, 45]
    assert content["agreement"] is None


def test_hostile_names_stay_data(fitted, tmp_path):
    data, model = fitted
    names = [f"{HOSTILE}{i}" for i in range(60)]
    page = write_report(
        tmp_path / "page.html", {HOSTILE: model}, matrix=data, row_names=names, title=HOSTILE
    )
    reader, content = read(page)
    assert len(reader.scripts) == 2
    assert reader.texts["h1"] == reader.texts["title"] == HOSTILE
    assert content["title"] == content["models"][0]["name"] == HOSTILE


def test_embedded_json_holds_no_markup():
    text = embed({"name": HOSTILE, "other": "\u2028 é \ud800"})
    assert not set("<>&") & set(text)
    assert text.isascii()
    assert json.loads(text)["name"] == HOSTILE


def test_scripts_never_write_markup():
    from importlib.resources import files

    for name in SCRIPTS:
        text = (files("ccot.report") / "assets" / name).read_text(encoding="utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text)
        assert "</script" not in text


def test_names_come_from_a_frame(tmp_path):
    data, _ = crisp()
    frame = pd.DataFrame(
        data, index=[f"r{i}" for i in range(60)], columns=[f"c{i}" for i in range(45)]
    )
    model = CCOT(2, 3, n_samplings=2, random_state=0).fit(frame)
    from ccot.report.page import _shown

    content = _shown({"CCOT": model}, frame, (None, None), None, None, None)
    same = _shown({"CCOT": model}, data, (list(frame.index), None), None, None, None)
    assert content["names"] == same["names"]
    assert content["title"] == "60 x 45 matrix, co-clustered"


def test_without_a_matrix(fitted, tmp_path):
    _, content = read(write_report(tmp_path / "deep" / "page.html", fitted[1]))
    assert content["matrix"] is None


def test_what_does_not_fit_is_refused(fitted, tmp_path):
    data, model = fitted
    path = tmp_path / "page.html"
    with pytest.raises(ValueError, match=r"matrix has shape \(45, 60\), but the first model was"):
        write_report(path, model, matrix=data.T)
    with pytest.raises(ValueError, match="3 row_names for 60 rows: pass one for each"):
        write_report(path, model, row_names=["a", "b", "c"])
    with pytest.raises(ValueError, match="models is empty"):
        write_report(path, {})
    with pytest.raises(NotFittedError):
        write_report(path, CCOT())
    other = CCOT(2, 2, n_samplings=2, random_state=0).fit(data[:50])
    with pytest.raises(ValueError, match="a report is of one matrix"):
        write_report(path, {"a": model, "b": other})
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_write_leaves_the_old_page(fitted, tmp_path, monkeypatch):
    page = write_report(tmp_path / "page.html", fitted[1])
    before = page.read_bytes()

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("ccot.persistence.atomic.os.replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_report(page, fitted[1], title="another")
    assert page.read_bytes() == before
    assert list(tmp_path.iterdir()) == [page]


def test_no_script_ends_within_the_content():
    assert embed("</script>") == '"\\u003c/script\\u003e"'


def test_masked_entries_do_not_reach_the_page(fitted, tmp_path):
    data, model = fitted
    mask = np.random.default_rng(0).random(data.shape) < 0.1
    pages = [
        write_report(tmp_path / f"{number}.html", model, matrix=matrix)
        for number, matrix in enumerate(
            [np.where(mask, np.nan, data), np.ma.masked_array(np.where(mask, 1e6, data), mask)]
        )
    ]
    assert pages[0].read_bytes() == pages[1].read_bytes()


def test_lists_of_lists_are_shown(fitted, tmp_path):
    data, model = fitted
    pages = [
        write_report(tmp_path / f"{number}.html", model, matrix=matrix)
        for number, matrix in enumerate([data, data.tolist()])
    ]
    assert pages[0].read_bytes() == pages[1].read_bytes()


def test_words_that_are_no_text_do_not_stop_a_page(tmp_path):
    kind = np.arange(40) % 2
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)) + 5 * kind[:, None])
    frame["word"] = np.where(kind == 0, "a", "\ud800x")
    model = TransportCoclustering(random_state=0).fit(frame)
    assert "word" in write_report(tmp_path / "page.html", model, matrix=frame).read_text()
