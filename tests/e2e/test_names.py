"""Names, reasons and export on the page, in a real browser."""

import csv
import io
import json
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from ccot import CCOT, TransportCoclustering
from ccot.datasets import load_simulated, load_zoo
from ccot.recommend import BlockRecommender
from ccot.report import write_report
from tests.e2e.report_page import (
    arrange,
    choose_side,
    eventually,
    names_shown,
    overflow,
    overlapping_names,
    point_at,
    seconds_to_open,
    slide,
    violations,
)

PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}


class Labelled(BaseEstimator):
    """Any partition, as a fitted estimator."""

    def fit(self, rows, columns):
        self.row_labels_, self.column_labels_ = np.asarray(rows), np.asarray(columns)
        self.n_row_clusters_ = int(self.row_labels_.max()) + 1
        self.n_column_clusters_ = int(self.column_labels_.max()) + 1
        return self


def checkerboard(n_rows, n_columns, n_row_clusters, n_column_clusters, seed=0):
    rng = np.random.default_rng(seed)
    rows = np.r_[np.arange(n_row_clusters), rng.integers(0, n_row_clusters, n_rows)][:n_rows]
    columns = np.r_[
        np.arange(n_column_clusters), rng.integers(0, n_column_clusters, n_columns)
    ][:n_columns]  # fmt: skip
    means = rng.normal(size=(n_row_clusters, n_column_clusters)) * 3
    data = means[rows][:, columns] + rng.normal(size=(n_rows, n_columns))
    return data, Labelled().fit(rows, columns)


@pytest.fixture(scope="module")
def zoo(tmp_path_factory):
    shipped = load_zoo()
    model = TransportCoclustering(4, 5, n_init=2, random_state=0).fit(shipped.data)
    path = tmp_path_factory.mktemp("zoo") / "zoo.html"
    write_report(
        path, model, matrix=shipped.data, row_names=shipped.row_names,
        column_names=shipped.column_names, title="Zoo animals", annotations=shipped.annotations,
    )  # fmt: skip
    return shipped, model, path


def saved(page, press):
    with page.expect_download() as waiting:
        page.click(press)
    return waiting.value.suggested_filename, waiting.value.path().read_bytes()


# Names on the picture -------------------------------------------------------------------------


@pytest.mark.parametrize("window", [{}, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize(
    ("shape", "clusters"),
    [((60, 13), (3, 2)), ((400, 300), (40, 40)), ((60, 20_000), (5, 12)), ((120, 40), (1, 1))],
    ids=["small", "many clusters", "wide", "one cluster"],
)
def test_names_never_overlap(shape, clusters, window, visit, tmp_path, artefacts):
    data, model = checkerboard(*shape, *clusters)
    path = write_report(tmp_path / "page.html", model, matrix=data)
    page = visit(path, **window)
    assert overlapping_names(page) == []
    codes = {text.split()[0].rstrip("…") for text in names_shown(page) if text[0] in "RC"}
    assert {f"R{k}" for k in range(clusters[0])} <= codes
    page.screenshot(path=artefacts / f"names_{shape[1]}_{clusters[0]}_{len(window)}.png")
    if not window:
        assert {f"C{k}" for k in range(clusters[1])} <= codes
    for _ in range(3):
        page.click("#zoom-in")
        assert overlapping_names(page) == []
    arrange(page, "given")
    assert overlapping_names(page) == []
    assert overflow(page) <= 0
    # On paper the picture is drawn anew.
    arrange(page, "clusters")
    page.click("#zoom-all")
    page.set_viewport_size({"width": 720, "height": 1000})
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert overlapping_names(page) == []


def test_all_names_are_there_once_they_fit(zoo, visit):
    shipped, _, path = zoo
    page = visit(path)
    assert {*shipped.column_names, "class"} <= set(names_shown(page))
    assert overlapping_names(page) == []
    few = len(set(shipped.row_names) & set(names_shown(page)))
    assert 30 < few < 101
    page.click("#zoom-in")
    page.click("#zoom-in")
    top, bottom = map(float, page.get_attribute("#picture", "data-view").split()[:2])
    shown = set(shipped.row_names) & set(names_shown(page))
    assert len(shown) >= bottom - top - 2


def test_colours_and_names_stay_with_their_clusters(zoo, visit):
    page = visit(zoo[2])
    chips = (
        "[...document.querySelectorAll('#block-table tbody th')].map((head) =>"
        " [head.title.split(' ')[0], head.querySelector('.chip').style.background])"
    )
    first = dict(page.evaluate(chips))
    field = page.locator(".card .name-field").first
    field.fill("Mine")
    field.press("Tab")
    slide(page, "row", 9)
    assert {**dict(page.evaluate(chips)), **first} == dict(page.evaluate(chips))
    assert any(text.startswith("R0 Mine") for text in names_shown(page))
    slide(page, "row", 2)
    coarse = dict(page.evaluate(chips))
    assert coarse.items() <= first.items()


def test_readout_follows_and_stays_on_the_screen(zoo, visit):
    page = visit(zoo[2])
    for down, across in [(0.02, 0.02), (0.02, 0.98), (0.98, 0.98), (0.5, 0.5)]:
        x, y = point_at(page, down, across)
        box = page.locator("#readout").bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 1280
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= 900
        assert abs(box["x"] - x) < box["width"] + 40
        assert abs(box["y"] - y) < box["height"] + 40
    assert "class: " in page.inner_text("#readout")
    page.mouse.move(2, 2)
    assert not page.is_visible("#readout")


# Reasons --------------------------------------------------------------------------------------


def test_cards_say_what_sets_clusters_apart(zoo, visit):
    shipped, model, path = zoo
    page = visit(path)
    mammal = int(model.row_labels_[shipped.row_names.index("lion")])
    card = page.locator(".card").nth(mammal)
    assert card.locator("li").first.inner_text().startswith("▲ milk")
    assert "points)" in card.locator("li").first.inner_text()
    choose_side(page, "column")
    members = page.locator(".own-members").all_inner_texts()
    listed = {name for text in members for name in text.split(", ")}
    assert set(shipped.column_names) == listed


def test_annotations_are_compared(zoo, visit):
    shipped, model, path = zoo
    page = visit(path)
    assert page.is_visible("#annotations")
    head = page.locator(".cross thead th").all_inner_texts()
    assert head == sorted(set(shipped.annotations["class"]))
    counts = [
        [int(text.replace("·", "0")) for text in row.locator("td").all_inner_texts()]
        for row in page.locator(".cross tbody tr").all()
    ]
    classes = np.array(shipped.annotations["class"])
    expected = [
        [int(((classes == name) & (model.row_labels_ == k)).sum()) for name in head]
        for k in range(4)
    ]
    assert counts == expected
    from sklearn.metrics import adjusted_rand_score

    agreement = adjusted_rand_score(classes, model.row_labels_)
    assert f"clusters: {agreement:.2f} by" in page.inner_text("#annotations")


def test_modes_of_the_cells(zoo, visit):
    page = visit(zoo[2])
    # Legs are counted, the rest is yes or no: one scale does not fit both.
    assert page.input_value("#mode") == "standard"
    assert "the mean of the column" in page.inner_text("#legend-title")
    seen = set()
    for mode in ("value", "standard", "deviation", "lift", "information"):
        page.select_option("#mode", mode)
        seen.add(page.evaluate("document.getElementById('picture').toDataURL()"))
    assert len(seen) == 5
    assert "thousandths of a bit" in page.inner_text("#legend-title")
    page.select_option("#mode", "value")
    low, high = page.inner_text("#legend-low"), page.inner_text("#legend-high")
    page.locator("#contrast").fill("1")
    assert (page.inner_text("#legend-low"), page.inner_text("#legend-high")) != (low, high)


@pytest.mark.parametrize("sparse", [False, True])
def test_standard_deviations_of_sparse_matrices_too(sparse, visit, tmp_path):
    rng = np.random.default_rng(0)
    counts = rng.poisson(0.2, size=(40, 30)).astype(float)
    model = Labelled().fit(np.arange(40) % 2, np.arange(30) % 3)
    matrix = sp.csr_array(counts) if sparse else counts
    page = visit(write_report(tmp_path / "page.html", model, matrix=matrix))
    page.select_option("#mode", "standard")
    arrange(page, "given")
    point_at(page, 0.001, 0.001)
    expected = (counts[0, 0] - counts[:, 0].mean()) / counts[:, 0].std()
    told = re.search(r"standard deviations (\S+)", page.inner_text("#readout"))
    assert told is not None
    assert float(told[1]) == pytest.approx(expected, rel=6e-3)


# Taken away -----------------------------------------------------------------------------------


def test_pictures_are_saved(zoo, visit, artefacts):
    page = visit(zoo[2])
    name, png = saved(page, "#save-png")
    assert name == "zoo-animals-matrix.png"
    assert png.startswith(b"\x89PNG")
    name, svg = saved(page, "#save-svg")
    (artefacts / name).write_bytes(svg)
    texts = {node.text for node in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")}
    assert {"feathers", "milk", "legs"} <= texts
    # The scale of colours goes with the picture, and says what it is of.
    assert page.inner_text("#legend-title") in texts
    assert {page.inner_text("#legend-low"), page.inner_text("#legend-high")} <= texts
    assert any((text or "").startswith("R0 ") for text in texts)
    _, chart = saved(page, "#charts figure:first-child .save button:last-child")
    assert b"var(--" not in chart
    ET.fromstring(chart)
    assert saved(page, "#charts figure:first-child .save button:first-child")[1][:4] == b"\x89PNG"


def test_cells_in_view_are_saved(zoo, visit):
    shipped, _, path = zoo
    page = visit(path)
    page.click("#zoom-in")
    _, text = saved(page, "#save-cells")
    head, _, *lines = csv.reader(io.StringIO(text.decode()))
    assert 40 < len(lines) < 60
    for line in lines:
        row = shipped.data[shipped.row_names.index(line[0])]
        expected = [row[shipped.column_names.index(name)] for name in head[2:]]
        assert [float(value) for value in line[2:]] == expected


def test_members_of_a_cluster_are_saved(zoo, visit):
    shipped, model, path = zoo
    page = visit(path)
    _, text = saved(page, ".card:nth-child(2) > button")
    lines = list(csv.DictReader(io.StringIO(text.decode())))
    expected = {shipped.row_names[i] for i in np.flatnonzero(model.row_labels_ == 1)}
    assert {line["name"] for line in lines} == expected
    assert {line["cluster"] for line in lines} == {"1"}


def test_names_come_back_from_their_file(zoo, visit, tmp_path):
    shipped, model, path = zoo
    page = visit(path)
    field = page.locator(".card .name-field").nth(1)
    field.fill("Beasts & <b>birds</b>")
    field.press("Tab")
    slide(page, "row", 6)
    _, text = saved(page, "#save-names")
    kept = tmp_path / "names.json"
    kept.write_bytes(text)
    assert json.loads(text)["row"]["1"] == "Beasts & <b>birds</b>"
    again = write_report(tmp_path / "again.html", model, matrix=shipped.data, cluster_names=kept)
    page = visit(again)
    assert page.input_value("#row-number") == "6"
    page.click("#fitted")
    assert page.locator(".card .name-field").nth(1).input_value() == "Beasts & <b>birds</b>"
    assert any(text.startswith("R1 Beasts") for text in names_shown(page))


def test_the_address_holds_names_and_view(zoo, visit):
    page = visit(zoo[2])
    slide(page, "row", 6)
    page.select_option("#mode", "deviation")
    page.click("#zoom-in")
    field = page.locator(".card .name-field").first
    field.fill("Mine")
    field.press("Tab")
    assert eventually(page, lambda: "Mine" in page.url)
    view = page.get_attribute("#picture", "data-view")
    page.click(".bar a[href='#blocks']")
    page.wait_for_timeout(400)
    page.reload()
    page.wait_for_selector("html[data-ready]")
    assert page.get_attribute("#picture", "data-view") == view
    assert page.input_value("#mode") == "deviation"
    assert page.input_value("#row-number") == "6"
    assert page.locator(".card .name-field").first.input_value() == "Mine"


def test_an_address_of_nonsense_is_ignored(zoo, visit, tmp_path):
    page = visit(zoo[2])
    page.goto(f"{zoo[2].as_uri()}#state=%7Bnonsense")
    page.reload()
    page.wait_for_selector("html[data-ready]")
    assert page.locator("#block-table tbody tr").count() == 4


# Readers --------------------------------------------------------------------------------------


def test_fifty_thousand_rows_open_at_once(visit, tmp_path):
    data, model = checkerboard(50_000, 40, 8, 4)
    page = visit(write_report(tmp_path / "page.html", model, matrix=data))
    # One second on an idle machine; tests share theirs.
    assert seconds_to_open(page) < 3
    assert overlapping_names(page) == []


@pytest.fixture(scope="module")
def kinds_of_pages(zoo, tmp_path_factory):
    """Pages that differ in what they show."""
    folder, rng = tmp_path_factory.mktemp("kinds"), np.random.default_rng(0)
    noise = rng.normal(size=(40, 20))
    ratings = np.where(rng.random((40, 30)) < 0.4, rng.integers(1, 6, (40, 30)), np.nan)
    many, labelled = checkerboard(200, 120, 40, 40)
    steps = load_simulated("D3", random_state=0).data
    one = TransportCoclustering(random_state=0).fit(noise)
    facts = {"age": rng.normal(size=40) * 1e3, "long word of no known kind": 20 * ["a", "b"]}
    named = {"row": {"0": 6 * "a long name "}}
    return zoo[2], *(
        write_report(folder / f"{name}.html", model, **given)
        for name, model, given in (
            ("one", one, {"matrix": noise, "annotations": facts, "cluster_names": named}),
            ("ratings", BlockRecommender(random_state=0).fit(ratings), {}),
            ("many", labelled, {"matrix": many}),
            ("two", {"CCOT": CCOT(random_state=0).fit(steps), "again": CCOT().fit(steps)}, {}),
        )
    )


@pytest.mark.parametrize("options", [
    {}, {"color_scheme": "dark"}, {"viewport": {"width": 400, "height": 850}},
], ids=["light", "dark", "narrow"])  # fmt: skip
def test_axe_finds_nothing_and_all_fits(kinds_of_pages, visit, options):
    for path in kinds_of_pages:
        page = visit(path, **options)
        assert violations(page) == [], path.name
        assert overflow(page) <= 0, path.name
    page = visit(kinds_of_pages[0], **options)
    choose_side(page, "column")
    page.locator("summary").first.click()
    assert violations(page) == []


# Reproducibility --------------------------------------------------------------------------------


def test_the_page_shows_which_clusters_are_found_again(visit, artefacts, tmp_path):
    shipped = load_zoo()
    model = TransportCoclustering(criterion="reproducibility", n_init=2, random_state=0)
    page = visit(write_report(tmp_path / "zoo.html", model.fit(shipped.data), matrix=shipped.data))
    again = model.reproducibility_.row
    figure = page.locator("#charts figure", has_text="Rows: found again with half")
    assert figure.count() == 1
    assert figure.locator("circle").count() == len(again.numbers)
    cards = page.locator("#cards .card").all_inner_texts()
    for share, card in zip(again.clusters, cards, strict=True):
        expected = "not found again" if share < 0.5 else f"{100 * share:.0f} % of it is found again"
        assert expected in card
    assert "undefined" not in page.inner_text("body")
    figure.screenshot(path=artefacts / "halves.png")
