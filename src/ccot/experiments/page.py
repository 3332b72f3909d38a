"""What a command leaves behind: tables, figures, and one page that needs no other file."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from ccot.experiments.published import SOURCE
from ccot.experiments.tables import Table
from ccot.persistence.atomic import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLE = """
:root { color-scheme: light dark; --ink: #222; --paper: #fff; --faint: #6a6a6a; --line: #ddd; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e6e6; --paper: #16181c; --faint: #9a9a9a; --line: #3a3d42; }
  img { background: #fff; }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 78rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2 { line-height: 1.2; }
table { border-collapse: collapse; font-size: .8rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: .5rem 0; }
th, td { padding: .25rem .35rem; text-align: right; }
th[scope=row] { white-space: nowrap; }
th[scope=row], th:first-child { text-align: left; font-weight: 400; }
thead th, tr.last > * { border-bottom: 1px solid var(--line); }
thead th { font-weight: 600; vertical-align: bottom; }
td small { display: block; color: var(--faint); }
.wide { overflow-x: auto; margin: 1rem 0 .5rem; }
.note, footer { color: var(--faint); font-size: .85rem; max-width: 60rem; }
img { max-width: 100%; height: auto; }
"""


@dataclass(frozen=True)
class Picture:
    """A figure, the stem of its files, and what it shows."""

    name: str
    caption: str
    figure: Figure


@dataclass(frozen=True)
class Section:
    """A part of the page."""

    title: str
    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = ()


def write_sections(
    folder: Path, name: str, sections: Sequence[Section], settings: Sequence[str]
) -> Path:
    """Write the files of all sections, and the page ``name.html`` that shows them."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = []
    for section in sections:
        parts.append(f"<h2>{escape(section.title)}</h2>")
        for picture in section.pictures:
            parts.append(_write_picture(folder, picture))
        for table in section.tables:
            _write_table(folder, table)
            parts.append(table.html())
    page = folder / f"{name}.html"
    with write_atomically(page, "w") as file:
        file.write(_page("".join(parts), settings))
    return page


def _write_table(folder: Path, table: Table) -> None:
    texts = {"md": f"{table.markdown()}\n", "csv": table.csv(), "tex": table.latex()}
    for suffix, content in texts.items():
        with write_atomically(folder / f"{table.name}.{suffix}", "w") as file:
            file.write(content)


def _write_picture(folder: Path, picture: Picture) -> str:
    """Write a picture as PNG and SVG, and return the HTML that shows it."""
    import matplotlib

    images = {}
    # Without a date and with fixed names of elements, the same figure is the same file.
    with matplotlib.rc_context({"svg.hashsalt": "ccot"}):
        for kind, metadata in (("png", {"Software": None}), ("svg", {"Date": None})):
            image = io.BytesIO()
            picture.figure.savefig(image, format=kind, dpi=150, metadata=metadata)
            images[kind] = image.getvalue()
            with write_atomically(folder / f"{picture.name}.{kind}") as file:
                file.write(images[kind])
    code = base64.b64encode(images["png"]).decode()
    caption = escape(picture.caption)
    return f'<p><img alt="{caption}" src="data:image/png;base64,{code}"></p><p>{caption}</p>'


def _page(body: str, settings: Sequence[str]) -> str:
    lines = "".join(f"<p>{escape(line)}</p>" for line in settings)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<title>The paper's experiments</title>"
        f"<style>{_STYLE}</style></head><body><main><h1>The paper's experiments</h1>"
        "<p>Rows marked <i>paper</i> are what the paper prints; the rows below them were computed "
        "here, at the overlap they name. Small print under an error: its difference to the "
        f"paper's.</p>{body}</main><footer>{lines}<p>Paper: {escape(SOURCE)}.</p></footer></html>\n"
    )
