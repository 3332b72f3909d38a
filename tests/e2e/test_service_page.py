"""The page of the service, and the pages beside the report, as a browser and axe see them."""

import socket
import threading
import time

import numpy as np
import pytest

from ccot import TransportCoclustering
from ccot.experiments import demo
from ccot.recommend import BlockRecommender
from tests.e2e.report_page import violations
from tests.e2e.test_paper_page import paper_page

TITLES = [f"Film {k} <b>" for k in range(30)]


@pytest.fixture(scope="module")
def address():
    """A service of even users who like even films, in a thread of this process."""
    uvicorn = pytest.importorskip("uvicorn", reason="the service needs pip install 'ccot[serve]'")
    from ccot.recommend.service import make_app

    rng = np.random.default_rng(0)
    alike = (np.arange(40)[:, None] + np.arange(30)) % 2 == 0
    rated = rng.random((40, 30)) < np.where(alike, 0.5, 0.1)
    ratings = np.where(rated, np.where(alike, 5.0, 2.0), np.nan)
    names = {"item_names": TITLES, "item_ids": range(100, 130)}
    app = make_app(BlockRecommender(random_state=0).fit(ratings, **names), token="secret")
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", ws="none"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        thread.join()


@pytest.fixture
def opened(browser):
    """Opens an address; nothing may be asked of any other."""
    contexts, asked = [], []

    def open_page(where, **options):
        contexts.append(browser.new_context(reduced_motion="reduce", **options))
        page = contexts[-1].new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.goto(where)
        return page

    yield open_page
    starts = {url.split("://")[0] + "://" + url.split("://")[-1].split("/")[0] for url in asked}
    for context in contexts:
        context.close()
    assert len({start for start in starts if not start.startswith("data")}) <= 1


def enter(page):
    page.wait_for_selector("#token-form:not([hidden])")
    page.fill("#token", "secret")
    page.press("#token", "Enter")
    page.wait_for_selector("#found button")


def test_a_user_is_searched_and_told_why(address, opened):
    page = opened(address)
    enter(page)
    assert "40 users in" in page.inner_text("#about")
    page.fill("#text", "17")
    page.wait_for_selector("#found li:only-child button")
    page.click("#found button")
    rows = page.locator("#list tbody tr")
    rows.first.wait_for()
    names = [text.split("\n")[0] for text in rows.locator("td:first-child").all_inner_texts()]
    assert all(int(name.split()[1]) % 2 == 1 for name in names[:4])
    rows.first.locator("button").click()
    page.wait_for_selector("#list pre:not([hidden])")
    assert "block of user cluster" in page.inner_text("#list pre")


def test_someone_new_rates_by_title_or_identifier(address, opened):
    page = opened(address)
    enter(page)
    page.select_option("#what", "items")
    page.fill("#text", "104")
    page.wait_for_selector("#found li:only-child button")
    page.click("#found button")
    page.locator("#list tbody tr").first.wait_for()
    assert page.inner_text("#rated li").startswith("Film 4 <b>")
    first = page.inner_text("#list tbody tr:first-child td:first-child")
    assert int(first.split()[1]) % 2 == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_the_service(address, opened, scheme):
    page = opened(f"{address}/docs", color_scheme=scheme)
    enter(page)
    page.click("#found button")
    page.locator("#list tbody tr").first.wait_for()
    page.wait_for_selector("#operations h2")
    assert "POST /recommend" in page.inner_text("#operations")
    assert violations(page) == []


@pytest.mark.parametrize("options", [
    {}, {"color_scheme": "dark"}, {"viewport": {"width": 390, "height": 844}},
], ids=["light", "dark", "narrow"])  # fmt: skip
def test_axe_finds_nothing_on_other_pages(opened, options, tmp_path):
    values = np.random.default_rng(0).normal(size=(20, 10))
    model = TransportCoclustering(2, 2, n_init=1, random_state=0).fit(values)
    section = demo.Section("zoo", "Found.", {"m": model}, values)
    path = tmp_path / "index.html"
    path.write_text(demo._page([section, section]), encoding="utf-8")
    for one in (path, paper_page(tmp_path)):
        assert violations(opened(one.as_uri(), **options)) == []
