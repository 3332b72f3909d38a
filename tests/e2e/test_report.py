"""The report in a real browser: it opens fast and alone, and everything on it does what it says."""

import functools
import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

from ccot import CCOT, TransportCoclustering
from ccot.baselines import TwoSidedKMeans
from ccot.cli.results import harmless
from ccot.datasets import load_simulated
from ccot.report import write_report
from ccot.report.pack import pack_matrix
from tests.e2e.report_page import (
    arrange,
    block_table,
    brightness,
    choose_side,
    download,
    eventually,
    listed_names,
    overflow,
    pixels,
    point_at,
    readout,
    seconds_to_open,
    slide,
    view,
)
from tests.report.models import crisp, noisy, ratings_like, text_like

PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
LIMIT = 3.0


@pytest.fixture(scope="module")
def d2(tmp_path_factory):
    data = load_simulated("D2", random_state=0).data
    model = CCOT(n_samplings=4, random_state=0).fit(data)
    path = tmp_path_factory.mktemp("d2") / "report.html"
    return data, model, write_report(path, model, matrix=data, title="Simulated set D2")


@pytest.fixture(scope="module")
def merged(tmp_path_factory):
    data, model = noisy()
    path = tmp_path_factory.mktemp("merged") / "report.html"
    return data, model, write_report(path, model, matrix=data)


def index(name):
    return int(name.split()[-1])


def check_entry(page, matrix):
    """The page's value is the matrix's; returns the row and the column."""
    row, column, value = readout(page)
    assert value == pytest.approx(matrix[index(row), index(column)], rel=1e-3, abs=1e-9)
    return index(row), index(column)


# The picture ----------------------------------------------------------------------------------


def test_d2_opens(d2, visit, artefacts):
    page = visit(d2[2])
    assert seconds_to_open(page) < LIMIT
    page.screenshot(path=artefacts / "d2_light.png", full_page=True)
    page.click("#theme")
    page.screenshot(path=artefacts / "d2_dark.png", full_page=True)
    assert page.inner_text("h1") == "Simulated set D2"
    figures = page.inner_text("#figures")
    assert "600 in 3 clusters" in figures
    assert "300 in 3 clusters" in figures
    assert page.locator("#charts figure").count() == 2
    assert page.locator("#charts .mark").count() == 4


def test_order_is_toggled(d2, visit):
    data, model, path = d2
    page = visit(path)
    by_cluster = pixels(page)
    point_at(page, 0.001, 0.001)
    row, column = check_entry(page, data)
    assert (model.row_labels_[row], model.column_labels_[column]) == (0, 0)
    point_at(page, 0.999, 0.999)
    row, column = check_entry(page, data)
    assert (model.row_labels_[row], model.column_labels_[column]) == (2, 2)
    arrange(page, "given")
    assert pixels(page) != by_cluster
    point_at(page, 0.001, 0.001)
    assert check_entry(page, data) == (0, 0)
    point_at(page, 0.999, 0.999)
    assert check_entry(page, data) == (599, 299)
    arrange(page, "clusters")
    page.mouse.move(1, 1)
    assert pixels(page) == by_cluster
    arrange(page, "means")
    assert "filled with their means" in page.inner_text("#legend-note")
    assert pixels(page) != by_cluster


def test_zoom(d2, visit):
    data, model, path = d2
    page = visit(path)
    whole = view(page)
    assert whole == [0, 600, 0, 300]
    page.click("#zoom-in")
    assert view(page) == [150, 450, 75, 225]
    page.click("#zoom-out")
    assert view(page) == whole
    x, y = point_at(page, 0.1, 0.05)
    page.mouse.dblclick(x, y)
    sizes = np.bincount(model.row_labels_)[0], np.bincount(model.column_labels_)[0]
    assert view(page) == [0, sizes[0], 0, sizes[1]]
    point_at(page, 0.5, 0.5)
    row, column = check_entry(page, data)
    assert (model.row_labels_[row], model.column_labels_[column]) == (0, 0)
    page.mouse.dblclick(x, y)
    assert view(page) == whole
    page.keyboard.down("Control")
    page.mouse.wheel(0, -300)
    page.keyboard.up("Control")
    page.wait_for_function("document.getElementById('picture').classList.contains('zoomed')")
    assert view(page)[1] - view(page)[0] < 400
    before = view(page)
    page.mouse.down()
    page.mouse.move(x + 60, y + 40)
    page.mouse.up()
    moved = view(page)
    assert moved[1] - moved[0] == pytest.approx(before[1] - before[0])
    page.click("#zoom-all")
    assert view(page) == whole


def test_keys(d2, visit):
    data, _, path = d2
    page = visit(path)
    page.focus("#picture")
    page.keyboard.press("ArrowRight")
    first = check_entry(page, data)
    page.wait_for_selector('#readout[aria-live="polite"]', state="attached")
    page.keyboard.press("Shift+ArrowDown")
    second = check_entry(page, data)
    assert second[0] != first[0]
    assert second[1] == first[1]
    page.keyboard.press("+")
    page.keyboard.press("+")
    assert view(page)[1] - view(page)[0] == pytest.approx(150)
    page.keyboard.press("0")
    assert view(page) == [0, 600, 0, 300]
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.name") == "arrangement"


def test_blocks_are_shown_and_opened(d2, visit):
    _, model, path = d2
    page = visit(path)
    np.testing.assert_allclose(block_table(page), model.block_means_, rtol=6e-3, atol=1e-3)
    page.locator("#block-table tbody tr").nth(1).locator("button").nth(2).click()
    rows = np.cumsum([0, *np.bincount(model.row_labels_)])
    columns = np.cumsum([0, *np.bincount(model.column_labels_)])
    assert view(page) == [rows[1], rows[2], columns[2], columns[3]]


def test_what_is_low_sets_a_cluster_apart_too(visit, tmp_path):
    data = np.random.default_rng(0).normal(scale=0.1, size=(40, 12))
    data[30:, :3] -= 5
    model = TransportCoclustering(2, 2, n_init=1, random_state=0).fit(data)
    page = visit(write_report(tmp_path / "page.html", model, matrix=data))
    card = page.locator(".card").nth(model.row_labels_[30])
    names = card.locator("li span:first-child").all_inner_texts()[:3]
    assert set(names) == {"▼ column 0", "▼ column 1", "▼ column 2"}
    told = card.locator("li span:nth-child(2)").all_inner_texts()[:3]
    assert told == 3 * ["-1.7 sd"]
    assert card.locator("li .share").all_inner_texts()[:3] == 3 * ["100 %"]
    assert card.locator(".name-field").input_value().startswith("low column")


# The hierarchy --------------------------------------------------------------------------------


def test_slider_cuts_the_hierarchy(merged, visit, artefacts):
    data, model, path = merged
    page = visit(path)
    fitted, fitted_pixels = block_table(page), pixels(page)
    np.testing.assert_allclose(fitted, model.block_means_, rtol=6e-3, atol=1e-3)
    slide(page, "row", 5)
    slide(page, "column", 6)
    cut = model.cut(5, 6)
    rows, columns = np.eye(5)[cut.row_labels], np.eye(6)[cut.column_labels]
    means = (rows.T @ data @ columns) / np.outer(rows.sum(axis=0), columns.sum(axis=0))
    np.testing.assert_allclose(block_table(page), means, rtol=6e-3, atol=1e-3)
    assert pixels(page) != fitted_pixels
    page.screenshot(path=artefacts / "hierarchy.png")
    _, members = download(page)
    by_name = {index(name): int(cluster) for name, cluster, _ in members}
    shown = [by_name[i] for i in range(len(data))]
    assert adjusted_rand_score(shown, cut.row_labels) == 1
    assert {confidence for _, _, confidence in members} == {""}
    kept = round(100 * model.cut(5, model.hierarchy_.shape[1]).share_kept)
    assert f"{kept} % for rows" in page.inner_text("#cut-hint")
    assert page.locator("#charts .mark.now").count() == 2
    point_at(page, 0.3, 0.3)
    row, _ = check_entry(page, data)
    assert f"block R{by_name[row]}, C" in page.inner_text("#readout")
    page.click("#fitted")
    assert block_table(page) == fitted
    page.mouse.move(1, 1)
    assert pixels(page) == fitted_pixels


def test_slider_joins_steps(d2, visit):
    _, model, path = d2
    page = visit(path)
    slide(page, "row", 2)
    weakest = int(np.argmin(model.row_jump_strength_))
    joined = model.row_labels_ - (model.row_labels_ > weakest)
    _, members = download(page)
    by_name = {index(name): int(cluster) for name, cluster, _ in members}
    assert adjusted_rand_score([by_name[i] for i in range(600)], joined) == 1
    # Of two that were joined the larger keeps its number.
    assert set(by_name.values()) < set(model.row_labels_)


# Large matrices -------------------------------------------------------------------------------


def check_text(page, counts, model, names, artefacts, picture):
    assert seconds_to_open(page) < LIMIT
    page.screenshot(path=artefacts / picture, full_page=True)
    assert re.search(r"mean of [\d.]+ × [\d.]+ entries", page.inner_text("#legend-note"))
    for _ in range(6):
        page.click("#zoom-in")
    assert page.inner_text("#legend-note") == "Every entry is shown."
    point_at(page, 0.4, 0.6)
    row, column, value = readout(page)
    assert value == counts[index(row), names.index(column)]
    page.click("#zoom-all")
    before = pixels(page)
    arrange(page, "given")
    assert pixels(page) != before
    choose_side(page, "column")
    page.fill("#search", names[17])
    assert names[17] in listed_names(page)
    file, members = download(page)
    assert file == "column_labels.csv"
    assert all(names[17].lower() in name.lower() for name, _, _ in members)
    found = {name: int(cluster) for name, cluster, _ in members}
    assert found[names[17]] == model.column_labels_[17]


def test_text(visit, tmp_path, artefacts):
    counts, topics, topic_of_word = text_like()
    assert counts.shape == (3891, 4303)
    names = [f"word{topic}_{i}" for i, topic in enumerate(topic_of_word)]
    model = TransportCoclustering(3, 4, n_init=1, random_state=0).fit(counts)
    path = write_report(tmp_path / "text.html", model, matrix=counts, column_names=names)
    page = visit(path)
    for cluster, card in enumerate(page.locator(".card").all()):
        topic = np.bincount(topics[model.row_labels_ == cluster]).argmax()
        words = card.locator("li span:first-child").all_inner_texts()
        assert words
        high = [word for word in words if word.startswith("▲")]
        assert all(word.startswith(f"▲ word{topic}_") for word in high)
        assert not any(word.startswith(f"▼ word{topic}_") for word in words)
    check_text(page, counts, model, names, artefacts, "text.png")


@pytest.mark.slow
def test_classic3(data_home, visit, tmp_path, artefacts):
    with np.load(data_home / "text" / "classic3.npz") as stored:
        parts = stored["data"].astype(float), stored["indices"], stored["indptr"]
        counts = sp.csr_array(parts, shape=tuple(stored["shape"].tolist()))
        names = stored["col_names"].tolist()
    model = TransportCoclustering(3, 4, n_init=2, random_state=0).fit(counts)
    path = write_report(tmp_path / "classic3.html", model, matrix=counts, column_names=names)
    check_text(visit(path), counts, model, names, artefacts, "classic3.png")


def test_ratings(visit, tmp_path, artefacts):
    ratings = ratings_like()
    model = TransportCoclustering(3, 4, n_init=1, random_state=0).fit(ratings)
    path = write_report(tmp_path / "ratings.html", model, matrix=ratings)
    assert path.stat().st_size < 8e6
    page = visit(path)
    assert seconds_to_open(page) < LIMIT
    page.screenshot(path=artefacts / "ratings.png", full_page=True)
    point_at(page, 0.5, 0.5)
    check_entry(page, ratings)
    check_members(page, model)


def check_members(page, model):
    page.click("[data-by=confidence]")
    _, members = download(page)
    confidence = [float(value) for _, _, value in members]
    assert confidence == sorted(confidence)
    assert [name for name, _, _ in members[:20]] == listed_names(page)
    for name, cluster, value in members:
        assert int(cluster) == model.row_labels_[index(name)]
        assert float(value) == pytest.approx(model.row_confidence_[index(name)], abs=6e-4)
    page.click("[data-by=confidence]")
    assert page.get_attribute("th:has([data-by=confidence])", "aria-sort") == "descending"
    page.select_option("#cluster-filter", "1")
    size = int((model.row_labels_ == 1).sum())
    assert page.inner_text("#member-count") == f"{size} of 943 rows"
    page.fill("#search", "row 1")
    assert all("row 1" in name for name in listed_names(page))
    page.fill("#search", "nobody has this name")
    assert listed_names(page) == []
    page.fill("#search", "")
    page.select_option("#cluster-filter", "")
    first = listed_names(page)[0]
    page.get_by_role("button", name=first, exact=True).click()
    assert readout(page)[0] == first
    assert view(page)[1] - view(page)[0] == pytest.approx(31)


def test_comparison(visit, tmp_path, artefacts):
    data, model = crisp()
    rival = TwoSidedKMeans(2, 2, n_init=1, random_state=0).fit(data)
    models = {"steps": model, "K-means": rival}
    page = visit(write_report(tmp_path / "page.html", models, matrix=data))
    lines = page.locator("#comparison-table tbody tr").all_inner_texts()
    assert [line.split("\t")[:2] for line in lines] == [
        ["steps (CCOT)", "2 × 3"],
        ["K-means (TwoSidedKMeans)", "2 × 2"],
    ]
    agreed = adjusted_rand_score(model.column_labels_, rival.column_labels_)
    assert lines[0].endswith(f"1.00 · {agreed:.2f}")
    page.select_option("#model", "1")
    assert page.inner_text("#figures").strip().endswith("TwoSidedKMeans")
    assert not page.is_visible("#sliders")
    np.testing.assert_allclose(block_table(page), rival.block_means_, rtol=6e-3, atol=1e-3)
    _, members = download(page)
    assert {confidence for _, _, confidence in members} == {""}
    page.screenshot(path=artefacts / "comparison.png", full_page=True)


# Readers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("page_of", ["d2", "merged"])
def test_phone(page_of, visit, artefacts, request):
    path = request.getfixturevalue(page_of)[2]
    page = visit(path, **PHONE, color_scheme="dark")
    page.screenshot(path=artefacts / f"{page_of}_phone.png", full_page=True)
    assert overflow(page) <= 0
    assert page.locator("#picture").bounding_box()["width"] > 300
    page.locator("#picture").tap()
    assert len(page.locator("#readout b").all()) == 3


def test_light_and_dark(d2, visit):
    page = visit(d2[2], color_scheme="dark")
    assert brightness(page) < 60
    dark = pixels(page)
    page.click("#theme")
    assert eventually(page, lambda: brightness(page) > 200)
    assert pixels(page) != dark
    page.emulate_media(color_scheme="light")
    assert brightness(page) > 200


def test_printed(d2, visit, artefacts):
    page = visit(d2[2], color_scheme="dark")
    on_screen = pixels(page)
    page.emulate_media(media="print")
    assert brightness(page) > 200
    assert eventually(page, lambda: pixels(page) != on_screen)
    page.screenshot(path=artefacts / "d2_printed.png", full_page=True)
    assert not page.is_visible(".bar")
    assert not page.is_visible("#download")
    assert page.inner_text("#member-pages") == "1–20 of 600"
    page.emulate_media(media="screen")
    assert eventually(page, lambda: pixels(page) == on_screen)
    printed = page.pdf(path=artefacts / "d2.pdf", format="A4", print_background=True)
    assert printed.startswith(b"%PDF")
    assert len(printed) > 20_000


def test_names_are_text(visit, tmp_path):
    data, model = crisp()
    nasty = [
        "<img src=x onerror=alert(1)>",
        "</script><script>window.taken = 1</script>",
        'comma, "quotes"\nand a line',
        "=1+1",
        "数据 ü",
    ]
    names = nasty + [f"row {i}" for i in range(5, 60)]
    path = write_report(
        tmp_path / "page.html", {"<b>model</b>": model}, matrix=data, row_names=names,
        column_names=[f"<i>{i}</i>" for i in range(45)], title="<u>title</u>",
    )  # fmt: skip
    page = visit(path)
    assert page.inner_text("h1") == "<u>title</u>"
    assert page.evaluate("window.taken") is None
    assert page.locator("main img, main i:not([style]), main b:not(#readout b)").count() == 0
    arrange(page, "given")
    point_at(page, 0.001, 0.001)
    assert readout(page)[:2] == (names[0], "<i>0</i>")
    _, members = download(page)
    # What a spreadsheet would run as a formula has a quote in front.
    assert {name for name, _, _ in members} == set(map(harmless, names))
    assert "'=1+1" in {name for name, _, _ in members}
    page = visit(write_report(path, model, matrix=data, row_names=names, raw_names=True))
    assert {name for name, _, _ in download(page)[1]} == set(names)


def test_part_of_a_matrix(visit, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "ccot.report.page.pack_matrix", functools.partial(pack_matrix, max_entries=1200)
    )
    data, model = crisp()
    page = visit(write_report(tmp_path / "page.html", model, matrix=data))
    shown = re.search(r"shows (\d+) rows and (\d+) columns", page.inner_text("#legend-note"))
    assert shown is not None
    assert view(page) == [0, int(shown[1]), 0, int(shown[2])]
    assert int(shown[1]) < 60
    point_at(page, 0.6, 0.7)
    check_entry(page, data)
    _, members = download(page)
    assert len(members) == 60


def test_missing_entries(visit, tmp_path):
    data, _ = crisp()
    data = data.copy()
    data[::2, ::3] = np.nan
    model = TransportCoclustering(2, 3, n_init=1, random_state=0).fit(data)
    page = visit(write_report(tmp_path / "page.html", model, matrix=data))
    np.testing.assert_allclose(block_table(page), model.block_means_, rtol=6e-3, atol=1e-3)
    arrange(page, "given")
    point_at(page, 0.001, 0.001)
    assert page.locator("#readout b").all_inner_texts() == ["row 0", "column 0", "missing"]


def test_without_a_matrix(visit, tmp_path):
    _, model = crisp()
    page = visit(write_report(tmp_path / "page.html", model))
    assert page.is_visible("#no-matrix")
    assert not page.is_visible("#picture")
    np.testing.assert_allclose(block_table(page), model.block_means_, rtol=6e-3, atol=1e-3)
    assert len(listed_names(page)) == 20


def test_smooth_curves_are_said_to_be(visit, tmp_path, artefacts):
    data = np.random.default_rng(0).normal(size=(80, 40))
    model = CCOT(n_samplings=8, random_state=0).fit(data)
    page = visit(write_report(tmp_path / "page.html", model, matrix=data))
    assert "no jump is significant" in page.inner_text("#warnings")
    assert "No jump is significant" in page.inner_text("#charts")
    assert not page.is_visible("#sliders")
    page.screenshot(path=artefacts / "smooth.png", full_page=True)
