"""What a command leaves behind: tables, figures, and one page that needs no other file."""

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from string import Template

from ccot.experiments.published import SOURCE
from ccot.experiments.tables import TEXTS, Table, read_asset
from ccot.persistence.atomic import write_file
from ccot.plotting._shared import Figure


@dataclass(frozen=True)
class Section:
    """A part of the page; pictures go by the stem of their files, by which TEXTS describe them."""

    title: str
    tables: Sequence[Table] = ()
    pictures: Mapping[str, Figure] = field(default_factory=dict)


def write_sections(
    folder: Path, name: str, sections: Sequence[Section], settings: Sequence[str]
) -> Path:
    """Write the files of all sections, and the page ``name.html`` that shows them."""
    parts = []
    for section in sections:
        parts.append(f"<h2>{escape(section.title)}</h2>")
        parts += [_write_picture(folder, *picture) for picture in section.pictures.items()]
        for table in section.tables:
            texts = {"md": f"{table.markdown()}\n", "csv": table.csv(), "tex": table.latex()}
            for suffix, text in texts.items():
                write_file(folder / f"{table.name}.{suffix}", text)
            parts.append(table.html())
    lines = "".join(f"<p>{escape(line)}</p>" for line in settings)
    shown = {"body": "".join(parts), "lines": lines, "source": escape(SOURCE)}
    page = folder / f"{name}.html"
    write_file(page, Template(read_asset("paper.html")).substitute(shown))
    return page


def _write_picture(folder: Path, name: str, figure: Figure) -> str:
    """Write a picture as PNG and SVG, and return the HTML that shows it."""
    import matplotlib

    images = {}
    # Without a date and with fixed names of elements, the same figure is the same file.
    with matplotlib.rc_context({"svg.hashsalt": "ccot"}):
        for kind, metadata in (("png", {"Software": None}), ("svg", {"Date": None})):
            image = io.BytesIO()
            figure.savefig(image, format=kind, dpi=150, metadata=metadata)
            images[kind] = image.getvalue()
            write_file(folder / f"{name}.{kind}", images[kind])
    code = base64.b64encode(images["png"]).decode()
    caption = escape(TEXTS["pictures"][name])
    return f'<p><img alt="{caption}" src="data:image/png;base64,{code}"></p><p>{caption}</p>'
