"""A real browser, where there is one, and pages that may not speak to anybody."""

import os
import shutil
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_chromium():
    asked = os.environ.get("CCOT_CHROMIUM")
    return asked or next(filter(None, map(shutil.which, NAMES)), None)


@pytest.fixture(scope="session")
def browser():
    path = find_chromium()
    if path is None:
        pytest.skip(
            "no Chromium for the browser tests: apt-get install chromium, or name one in "
            "CCOT_CHROMIUM"
        )
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="browser tests need playwright: pip install 'ccot[test]'"
    )
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="session")
def artefacts(tmp_path_factory):
    """Folder of screenshots: CCOT_ARTIFACTS, or one of pytest's."""
    asked = os.environ.get("CCOT_ARTIFACTS")
    folder = Path(asked) if asked else tmp_path_factory.mktemp("artefacts")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def visit(browser):
    """Opens pages; fails in the end if one of them complained or asked for anything else."""
    complaints, requests, contexts, visited = [], [], [], set()

    def open_page(path, **options):
        still = {"viewport": {"width": 1280, "height": 900}, "reduced_motion": "reduce"}
        context = browser.new_context(**{**still, **options})
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]", timeout=15_000)
        visited.add(path.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
    asked = {url.split("#")[0] for url in requests if not url.startswith(("data:", "blob:"))}
    assert asked <= visited
