"""The page of the paper's tables fits a screen of 1280 pixels."""

from pathlib import Path

from ccot.experiments.protocol import DATA_SETS, METHODS, OVERLAPS, Protocol
from ccot.experiments.sections import write_part
from ccot.experiments.store import load_trials

STORED = Path(__file__).parents[2] / "benchmarks" / "results" / "paper"


def paper_page(folder):
    compared = {(o, d, m) for o in OVERLAPS for d in DATA_SETS for m in METHODS}
    trials = [t for t in load_trials(STORED) if (t.overlap, t.data_set, t.method) in compared]
    return write_part("table2", Protocol(), trials, folder)


def test_tables_fit_1280_pixels(browser, tmp_path):
    path = paper_page(tmp_path)
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.goto(path.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    widths = page.evaluate(
        "[...document.querySelectorAll('.wide')].map(box => [box.scrollWidth, box.clientWidth])"
    )
    assert len(widths) == 4
    assert all(content <= box for content, box in widths), widths
    page.screenshot(path=tmp_path / "paper.png", full_page=True)
    context.close()
