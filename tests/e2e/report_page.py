"""The report as a reader's hands and eyes meet it."""

import csv
import io
import re

import pytest


def seconds_to_open(page):
    return int(page.get_attribute("html", "data-ready")) / 1000


def view(page):
    """The window: first and last row, first and last column, in the order shown."""
    return [float(edge) for edge in page.get_attribute("#picture", "data-view").split()]


def pixels(page):
    return page.evaluate("document.getElementById('picture').toDataURL()")


def arrange(page, value):
    page.locator(f"#arrangement input[value={value}]").check(force=True)


def point_at(page, down, across):
    """Points at a place in the picture, as shares of its height and width."""
    page.locator("#picture").evaluate("canvas => canvas.scrollIntoView({block: 'center'})")
    box = page.locator("#picture").bounding_box()
    left, top, width, height = map(float, page.get_attribute("#picture", "data-area").split())
    x, y = box["x"] + left + across * width, box["y"] + top + down * height
    page.mouse.move(x, y)
    return x, y


def overlapping_names(page):
    """Pairs of names on the picture whose boxes overlap, by more than a pixel."""
    boxes = page.evaluate("document.getElementById('picture').labelBoxes")
    return [
        (one["text"], other["text"])
        for i, one in enumerate(boxes)
        for other in boxes[:i]
        if min(one["x"] + one["width"], other["x"] + other["width"]) - max(one["x"], other["x"]) > 1
        and min(one["y"] + one["height"], other["y"] + other["height"]) - max(one["y"], other["y"])
        > 1
    ]


def names_shown(page):
    return page.evaluate("document.getElementById('picture').labelBoxes.map(({text}) => text)")


def readout(page):
    """Row, column and value that the page names."""
    row, column, value = (text for text in page.locator("#readout b").all_inner_texts())
    return row, column, number(value)


def number(text):
    return float(text.replace(",", ""))


def block_table(page):
    rows = page.locator("#block-table tbody tr").all()
    # Below a mean there may be another, in another unit.
    return [
        [number(text.split()[0]) for text in row.locator("td").all_inner_texts()] for row in rows
    ]


def slide(page, side, value):
    page.locator(f"#{side}-number").fill(str(value))
    page.wait_for_function(
        "([side, value]) => document.querySelectorAll(side === 'row' ? '#block-table tbody tr'"
        " : '#block-table thead th').length === value",
        arg=[side, value],
    )


def choose_side(page, side):
    page.locator(f"#members .side input[value={side}]").check(force=True)


def download(page):
    """The members that the page offers, as (name, cluster, confidence)."""
    with page.expect_download() as waiting:
        page.click("#download")
    with open(waiting.value.path(), encoding="utf-8", newline="") as file:
        text = file.read()
    lines = list(csv.reader(io.StringIO(text)))
    assert lines[0] == ["name", "cluster", "cluster_name", "confidence"]
    found = [(name, cluster, confidence) for name, cluster, _, confidence in lines[1:]]
    return waiting.value.suggested_filename, found


def listed_names(page):
    return page.locator("#member-table tbody tr td:first-child").all_inner_texts()


def overflow(page):
    """How many pixels the page is wider than its window."""
    return page.evaluate("document.documentElement.scrollWidth - innerWidth")


def brightness(page):
    """Of the page's ground, 0 to 255."""
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return sum(map(float, re.findall(r"[\d.]+", colour)[:3])) / 3


def eventually(page, holds, milliseconds=5000):
    """Tell whether something becomes true before long: the page draws when it gets to it."""
    for _ in range(milliseconds // 100):
        if holds():
            return True
        page.wait_for_timeout(100)
    return False


def violations(page):
    """What axe holds against a page: rule, and the first elements."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright",
        reason="the accessibility tests need axe: pip install 'ccot[test]'",
    )
    found = axe.Axe().run(page).response["violations"]
    return [(rule["id"], [node["html"] for node in rule["nodes"]][:3]) for rule in found]
